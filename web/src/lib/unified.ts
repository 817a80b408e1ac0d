/** A line of a unified diff, with its number in what the file holds now. */
export interface UnifiedLine {
  change: "same" | "added" | "removed";
  text: string;
  number: number | null;
}

/** A unified diff as its hunks. What says that a file ends without a line break belongs to no line. */
export function readUnified(diff: string): UnifiedLine[][] {
  const hunks: UnifiedLine[][] = [];
  let number = 0;
  // A lone carriage return ends a line too, and stays in it, as one before a line break does: it may be all that differs.
  for (const line of diff.replace(/\n$/, "").split(/(?<=\r)(?!\n)|\n/)) {
    const head = /^@@ -\d+(?:,\d+)? \+(\d+)(?:,\d+)? @@/.exec(line);
    const hunk = hunks.at(-1);
    if (head) {
      number = Number(head[1]);
      hunks.push([]);
    } else if (hunk && line.startsWith("-")) hunk.push({ change: "removed", text: line.slice(1), number: null });
    else if (hunk && (line.startsWith("+") || line.startsWith(" "))) {
      hunk.push({ change: line.startsWith("+") ? "added" : "same", text: line.slice(1), number });
      number += 1;
    }
  }
  return hunks;
}

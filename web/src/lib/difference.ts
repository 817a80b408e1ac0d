/** A part of a line, and whether the other line has it too. */
export interface Piece {
  text: string;
  isOther: boolean;
}

/** Longer lines are compared as wholes: the table of all pairs would be too large. */
const WORDS_MAX = 400;

const split = (line: string): string[] => line.match(/[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu) ?? [];

/** Two lines as what both have and what only one has; nothing, if they have too little in common to be one line that was changed. */
export function changedWords(before: string, after: string): { before: Piece[]; after: Piece[] } | null {
  const [left, right] = [split(before), split(after)];
  if (left.length > WORDS_MAX || right.length > WORDS_MAX) return null;
  // The longest row of words that both have, counted from the end.
  const width = right.length + 1;
  const longest = new Uint16Array((left.length + 1) * width);
  for (let i = left.length - 1; i >= 0; i -= 1) {
    for (let j = right.length - 1; j >= 0; j -= 1) {
      longest[i * width + j] = left[i] === right[j] ? 1 + (longest[(i + 1) * width + j + 1] ?? 0) : Math.max(longest[(i + 1) * width + j] ?? 0, longest[i * width + j + 1] ?? 0);
    }
  }
  const pieces = { before: [] as Piece[], after: [] as Piece[] };
  let common = 0;
  let [i, j] = [0, 0];
  while (i < left.length || j < right.length) {
    const [one, other] = [left[i], right[j]];
    if (one !== undefined && one === other) {
      add(pieces.before, one, false);
      add(pieces.after, one, false);
      if (/\S/.test(one)) common += one.length;
      [i, j] = [i + 1, j + 1];
    } else if (one !== undefined && (other === undefined || (longest[(i + 1) * width + j] ?? 0) >= (longest[i * width + j + 1] ?? 0))) {
      add(pieces.before, one, true);
      i += 1;
    } else if (other !== undefined) {
      add(pieces.after, other, true);
      j += 1;
    }
  }
  const longer = Math.max(...[left, right].map((words) => words.filter((word) => /\S/.test(word)).join("").length));
  return longer > 0 && common * 3 >= longer ? pieces : null;
}

function add(pieces: Piece[], text: string, isOther: boolean): void {
  const last = pieces.at(-1);
  if (last?.isOther === isOther) last.text += text;
  else pieces.push({ text, isOther });
}

/** A row of a difference, and how it changed in words, where it is one line that was changed. */
export interface MarkedRow<Row> {
  row: Row;
  pieces?: Piece[];
}

/** The rows with what was removed before what was added, and what both have of lines that were changed. */
export function marked<Row extends { change: string; text: string }>(rows: Row[]): MarkedRow<Row>[] {
  const done: MarkedRow<Row>[] = [];
  for (let at = 0; at < rows.length; ) {
    const end = rows.findIndex((row, place) => place >= at && row.change !== "removed" && row.change !== "added");
    const run = rows.slice(at, end < 0 ? rows.length : end);
    const [removed, added] = ["removed", "added"].map((change) => run.filter((row) => row.change === change));
    const pairs = (removed ?? []).map((row, place) => {
      const other = added?.[place];
      return other && changedWords(row.text, other.text);
    });
    done.push(...(removed ?? []).map((row, place) => ({ row, pieces: pairs[place]?.before })), ...(added ?? []).map((row, place) => ({ row, pieces: pairs[place]?.after })));
    at += run.length;
    const same = rows[at];
    if (same) done.push({ row: same });
    at += 1;
  }
  return done;
}

interface Part<Row> {
  change: string;
  rows: Row[];
}

/** Parts that were removed and added next to each other as one: a step that was written anew is both. */
export function joined<Row, P extends Part<Row>>(parts: P[]): P[] {
  const isNew = ({ change }: P) => change === "added" || change === "removed";
  const all: P[] = [];
  for (const part of parts) {
    const last = all.at(-1);
    if (last && isNew(last) && isNew(part)) all[all.length - 1] = { ...last, rows: [...last.rows, ...part.rows] };
    else all.push(part);
  }
  return all;
}

/** What was, beside what is, of rows whose removed ones come first: a line that was changed beside itself, and what is the same on both sides. */
export function beside<Row extends { row: { change: string } }>(rows: Row[]): [Row | undefined, Row | undefined][] {
  const pairs: [Row | undefined, Row | undefined][] = [];
  for (let at = 0; at < rows.length; ) {
    const removed = runOf(rows, at, "removed");
    const added = runOf(rows, at + removed.length, "added");
    for (let place = 0; place < Math.max(removed.length, added.length); place += 1) pairs.push([removed[place], added[place]]);
    at += removed.length + added.length;
    const same = rows[at];
    if (same && removed.length + added.length === 0) {
      pairs.push([same, same]);
      at += 1;
    }
  }
  return pairs;
}

function runOf<Row extends { row: { change: string } }>(rows: Row[], from: number, change: string): Row[] {
  let end = from;
  while (rows[end]?.row.change === change) end += 1;
  return rows.slice(from, end);
}

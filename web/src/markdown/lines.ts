import type { Code, Nodes, Root, RootContent } from "mdast";

/** Lines of a text, from the first to the last. */
export interface Span {
  first: number;
  last: number;
}

/** Deeper than this nothing is drawn as what it is: it stands there as it was written. */
const DEPTH_MAX = 24;

/** Something that is drawn as one, and whose lines are nobody else's: a paragraph, a row of a table, a line of code. */
interface Leaf extends Span {
  /** What is drawn, and which line of it, where it has many. */
  node: Nodes;
  at: number;
}

/** Which lines of a text what is drawn stands for. Each line that is not blank belongs to exactly one thing. */
export class Lines {
  private readonly spans = new Map<Nodes, Span[]>();
  /** What footnotes are called, by the line at which they begin. */
  readonly notes = new Map<number, string>();
  /** What is drawn as it was written: its parts are nested too deep. */
  readonly asWritten = new Set<Nodes>();

  constructor(root: Root, readonly text: string[]) {
    const leaves: Leaf[] = [];
    this.collect(root.children, 0, leaves);
    settle(leaves, text);
    for (const { node, at, first, last } of leaves) {
      const spans = this.spans.get(node) ?? [];
      spans[at] = { first, last };
      this.spans.set(node, spans);
    }
  }

  /** The lines of what is drawn as one, or of one line of it. */
  of(node: Nodes, at = 0): Span | undefined {
    return this.spans.get(node)?.[at];
  }

  private collect(nodes: RootContent[], depth: number, leaves: Leaf[]): void {
    for (const node of nodes) {
      const { first, last } = spanOf(node);
      if (node.type === "footnoteDefinition") this.notes.set(first, node.label ?? node.identifier);
      const isParent = "children" in node && node.type !== "paragraph" && node.type !== "heading";
      if (node.type === "yaml" || (isParent && depth >= DEPTH_MAX)) {
        this.asWritten.add(node);
        for (let line = first; line <= last; line += 1) leaves.push({ node, at: line - first, first: line, last: line });
      } else if (node.type === "table") {
        for (const row of node.children) leaves.push({ node: row, at: 0, ...spanOf(row) });
      } else if (node.type === "code") {
        leaves.push(...linesOfCode(node, this.text));
      } else if (isParent && node.children.length > 0) {
        this.collect(node.children as RootContent[], depth + 1, leaves);
      } else {
        leaves.push({ node, at: 0, first, last });
      }
    }
  }
}

/** The lines on which something stands in the text; it may end right before the first character of the next one. */
export function spanOf({ position }: Nodes): Span {
  const [first, end] = [position?.start.line ?? 1, position?.end];
  return { first, last: Math.max(first, (end?.line ?? 1) - (end?.column === 1 ? 1 : 0)) };
}

/** The line that opens a fence is the first; then each line of code. */
function linesOfCode(node: Code, text: string[]): Leaf[] {
  const { first, last } = spanOf(node);
  const count = node.value === "" ? 0 : node.value.split("\n").length;
  const skipped = isFenced(node, text) ? 1 : 0;
  const leaves: Leaf[] = skipped ? [{ node, at: 0, first, last: first }] : [];
  for (let at = 0; at < count; at += 1) {
    const line = Math.min(first + skipped + at, last);
    leaves.push({ node, at: at + 1, first: line, last: line });
  }
  return leaves;
}

/** Whether code stands between fences, whose first line says what it is. */
export function isFenced(node: Code, text: string[]): boolean {
  const start = node.position?.start;
  return !!start && /^(`{3,}|~{3,})/.test((text[start.line - 1] ?? "").slice(start.column - 1));
}

const isBlank = (line: string | undefined) => /^\s*$/.test(line ?? "");

/** Gives each line that is not blank to the one that it follows: the end of a fence, a mark alone on its line. */
function settle(leaves: Leaf[], text: string[]): void {
  let before: Leaf | undefined;
  let free = 1;
  for (const [at, leaf] of leaves.entries()) {
    // The parser lets some end on the line on which the next one begins.
    const next = leaves[at + 1]?.first ?? Infinity;
    if (next > leaf.first) leaf.last = Math.min(leaf.last, next - 1);
    leaf.first = Math.max(leaf.first, free);
    leaf.last = Math.max(leaf.last, leaf.first);
    for (let line = free; line < leaf.first; line += 1) {
      if (isBlank(text[line - 1])) continue;
      if (before) before.last = line;
      else leaf.first = line;
    }
    free = leaf.last + 1;
    before = leaf;
  }
  for (let line = free; line <= text.length; line += 1) {
    if (before && !isBlank(text[line - 1])) before.last = line;
  }
}

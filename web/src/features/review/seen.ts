/** How long a line must have been in view. */
export const SEEN_MS = 300;
/** After a longer pause between two looks nobody knows what was in view. */
const PAUSE_MS = 3_000;
/** Heights are fractions of pixels. */
const ROUNDING = 1;

/** The part of a line that is in view: pixels from its top. */
export interface LineView {
  line: number;
  from: number;
  to: number;
  height: number;
}

/** Which lines were in view for long enough. A line that is taller than the window is seen from its top down. */
export class Watch {
  private held = new Map<number, LineView & { since: number }>();
  private depths = new Map<number, { to: number; height: number }>();
  private last = -Infinity;

  /** Nothing is in view any more: the tab was hidden, or other text is drawn. */
  clear(): void {
    this.held.clear();
  }

  /** How far down a line was seen. */
  depth(line: number): number {
    return this.depths.get(line)?.to ?? 0;
  }

  /** One look at what is in view now; the lines that have been seen in full with it. */
  look(views: LineView[], now: number): number[] {
    if (now - this.last > PAUSE_MS) this.clear();
    this.last = now;
    const held: typeof this.held = new Map();
    const seen: number[] = [];
    for (const view of views) {
      let part = { ...view, since: now };
      const before = this.held.get(view.line);
      if (before && before.height === view.height) {
        const [from, to] = [Math.max(before.from, view.from), Math.min(before.to, view.to)];
        if (to > from) part = { ...view, from, to, since: before.since };
      }
      if (now - part.since >= SEEN_MS) {
        const depth = this.deepen(part);
        if (depth >= view.height - ROUNDING) seen.push(view.line);
        part = { ...view, since: now };
      }
      held.set(view.line, part);
    }
    this.held = held;
    return seen;
  }

  private deepen({ line, from, to, height }: LineView): number {
    const known = this.depths.get(line);
    // Text that was laid out anew is read anew.
    let depth = known && known.height === height ? known.to : 0;
    if (from <= depth + ROUNDING) depth = Math.max(depth, to);
    this.depths.set(line, { to: depth, height });
    return depth;
  }
}

/** The lines of a block that must be seen: all but the blank ones. */
export function linesOf(block: { firstLine: number; lastLine: number }, text: string[]): number[] {
  const lines: number[] = [];
  for (let line = block.firstLine; line <= block.lastLine; line += 1) {
    if (!/^[ \t\r]*$/.test(text[line - 1] ?? "")) lines.push(line);
  }
  return lines;
}

/** The index of the first of these, in order, that fits. */
export function firstIndex(count: number, fits: (index: number) => boolean): number {
  let [low, high] = [0, count];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (fits(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

import { useCallback, useEffect, useMemo, useRef, type RefObject } from "react";
import { Problem, type Revision } from "../../api/client";
import { queries, revisionQuery } from "../../api/queries";
import { say } from "../../ui/basics";
import { lastOf, rowOf, whenDrawn } from "./rows";
import { firstIndex, linesOf, type LineView, Watch } from "./seen";
import { verdicts } from "../common/verdicts";

/** How often it is looked what is in view. */
const LOOK_MS = 100;
/** How long it waits before it reports again what the server could not be told. */
const RETRY_MS = 1_500;
/** Refusals that say: this revision is not read here any more. */
const GONE = ["shown_not_current", "no_such_block", "work_inactive"];
/** How far inside a line it is looked whether something lies over it. */
const INSIDE = 2;

/** What a person has seen of a revision, as the server knows it. */
export interface Seen {
  /** How many blocks are left to be seen. */
  unseen: number;
  /** Whether the server counts it as shown in full here: then, and not before, it can be approved. */
  isShown: boolean;
  /** Whether a line stands in a block that was not seen when the text was drawn. */
  wasUnseen: (line: number) => boolean;
  /** Goes to the first line that was not seen. */
  next: () => void;
}

/** Watches what is in view, and reports to the server which blocks were seen. */
export function useSeen({ id, revision, isOn, region, reveal }: {
  id: string;
  revision: Revision | undefined;
  isOn: boolean;
  region: RefObject<HTMLElement | null>;
  /** Draws all of the text, unfolded. */
  reveal: () => void;
}): Seen {
  const digest = revision?.digest;
  const text = useMemo(() => (revision?.markdown ?? "").split("\n"), [revision?.markdown]);
  const left = useMemo(() => (revision?.blocks ?? []).filter((block) => !block.seen), [revision?.blocks]);
  const isShown = revision?.shown ?? false;
  const first = useRef<Set<number> | null>(null);
  if (!first.current && revision) first.current = new Set(left.flatMap((block) => linesOf(block, text)));
  const watch = useRef(new Watch()).current;
  const lines = useRef(new Set<number>()).current;
  const latest = useRef({ left, text, isOn, isShown });
  latest.current = { left, text, isOn, isShown };

  useEffect(() => {
    if (!isOn || !revision || !digest || isShown) return;
    let [isOver, isBusy, isTold, wait] = [false, false, false, 0];
    const report = async () => {
      const { left, text, isShown } = latest.current;
      if (isBusy || isShown || performance.now() < wait) return;
      const blocks = left.filter((block) => linesOf(block, text).every((line) => lines.has(line))).map((block) => block.id);
      if (blocks.length === 0 && left.length > 0) return;
      isBusy = true;
      try {
        await verdicts.seen(id, digest, blocks);
        remember(id, revision.number, digest, new Set(blocks));
      } catch (problem) {
        // What is no longer waited for is not reported again; anything else may get through later.
        const isGone = problem instanceof Problem && GONE.includes(problem.kind);
        wait = isGone ? Infinity : performance.now() + RETRY_MS;
        // What was replaced or cannot be reached is told elsewhere on the screen; the rest is told once.
        const isKnown = isGone || (problem instanceof Problem && problem.status === 0);
        if (!isKnown && !isOver && !isTold) say(problem instanceof Error ? problem.message : String(problem), "bad");
        isTold ||= !isKnown;
      } finally {
        isBusy = false;
      }
    };
    const look = () => {
      if (document.visibilityState !== "visible" || !region.current) return watch.clear();
      const { left, text } = latest.current;
      const wanted = new Set(left.flatMap((block) => linesOf(block, text)).filter((line) => !lines.has(line)));
      const views = linesInView(region.current, wanted);
      const ends = new Map(views.map(({ line, last }) => [line, last]));
      for (const first of watch.look(views, performance.now())) for (let line = first; line <= (ends.get(first) ?? first); line += 1) lines.add(line);
      void report();
    };
    const again = () => {
      watch.clear();
      // Another tab may have reported more meanwhile.
      if (document.visibilityState === "visible") void queries.invalidateQueries({ queryKey: ["plan-revision", id] });
    };
    const scroller = region.current;
    const timer = window.setInterval(look, LOOK_MS);
    scroller?.addEventListener("scroll", look, { passive: true });
    document.addEventListener("visibilitychange", again);
    look();
    return () => {
      isOver = true;
      window.clearInterval(timer);
      scroller?.removeEventListener("scroll", look);
      document.removeEventListener("visibilitychange", again);
    };
  }, [isOn, digest, isShown, id, region, watch, lines, revision?.number]);

  const go = useCallback(() => {
    const { left, text } = latest.current;
    const line = left.flatMap((block) => linesOf(block, text)).find((line) => !lines.has(line));
    if (line === undefined || !region.current) return;
    if (!rowOf(region.current, line)) reveal();
    whenDrawn(region, line, (row) => {
      const depth = watch.depth(Number(row.dataset.line));
      row.scrollIntoView({ block: "start", behavior: "instant" });
      if (region.current) region.current.scrollTop += depth - (depth ? 2 * INSIDE : 0);
      row.focus({ preventScroll: true });
    });
  }, [lines, region, reveal, watch]);

  return {
    unseen: left.length,
    isShown,
    wasUnseen: useCallback((line: number) => first.current?.has(line) ?? true, []),
    next: go,
  };
}

/** What the server was told is known here too, on whichever screen the revision is looked at next. */
function remember(id: string, number: number, digest: string, seen: Set<string>): void {
  queries.setQueryData<Revision>(revisionQuery(id, number, digest).queryKey, (known) => {
    if (!known) return known;
    const blocks = known.blocks.map((block) => (seen.has(block.id) ? { ...block, seen: true } : block));
    return { ...known, blocks, shown: known.shown || blocks.every((block) => block.seen) };
  });
}

/** The lines, or parts of them, that nothing hides. */
function linesInView(region: HTMLElement, wanted: Set<number>): (LineView & { last: number })[] {
  if (wanted.size === 0) return [];
  const box = region.getBoundingClientRect();
  const top = Math.max(0, box.top);
  let bottom = Math.min(window.innerHeight, box.bottom);
  for (const over of region.querySelectorAll<HTMLElement>("[data-covers]")) bottom = Math.min(bottom, over.getBoundingClientRect().top);
  const rows = region.querySelectorAll<HTMLElement>("[role=tabpanel] [data-line]");
  const rect = (index: number) => (rows[index] as HTMLElement).getBoundingClientRect();
  const views: (LineView & { last: number })[] = [];
  const focused = document.activeElement?.closest<HTMLElement>("[data-line]");
  const isWanted = (first: number, last: number) => {
    for (let line = first; line <= last; line += 1) if (wanted.has(line)) return true;
    return false;
  };
  for (let index = firstIndex(rows.length, (index) => rect(index).bottom > top); index < rows.length; index += 1) {
    const row = rows[index] as HTMLElement;
    const { top: begin, height, left, width } = row.getBoundingClientRect();
    if (begin >= bottom) break;
    const [line, last] = [Number(row.dataset.line), lastOf(row)];
    if (!isWanted(line, last)) continue;
    const [from, to] = [Math.max(0, top - begin), Math.min(height, bottom - begin)];
    if (to - from < 2 * INSIDE) continue;
    const isFree = (y: number) => row.contains(document.elementFromPoint(left + width / 2, begin + y));
    if (!isFree(from + INSIDE) || !isFree(to - INSIDE)) continue;
    views.push(row === focused && height <= bottom - top ? { line, last, from: 0, to: height, height } : { line, last, from, to, height });
  }
  return views;
}

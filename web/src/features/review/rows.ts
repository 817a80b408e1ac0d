import { useLocation } from "@tanstack/react-router";
import { useEffect, type RefObject } from "react";

/** The row on the screen that a line stands in, if it is drawn: it may stand for more lines than one. */
export function rowOf(region: HTMLElement | null, line: number): HTMLElement | undefined {
  const rows = region?.querySelectorAll<HTMLElement>("[role=tabpanel] [data-line]") ?? [];
  return [...rows].find((row) => Number(row.dataset.line) <= line && line <= lastOf(row));
}

/** How long a row may take to be drawn: reading Markdown may have to be loaded first. */
const DRAWN_WITHIN_MS = 3_000;

/** Does this with the row of a line, once it is drawn. Gives what calls it off. */
export function whenDrawn(region: { current: HTMLElement | null }, line: number, then: (row: HTMLElement) => void): () => void {
  const until = performance.now() + DRAWN_WITHIN_MS;
  let frame = 0;
  const look = () => {
    const row = rowOf(region.current, line);
    if (row) then(row);
    else if (performance.now() < until) frame = requestAnimationFrame(look);
  };
  look();
  return () => cancelAnimationFrame(frame);
}

/** The last line that a row stands for. */
export const lastOf = (row: HTMLElement): number => Number(row.dataset.lastLine ?? row.dataset.line);

/** The line that an address names, such as `#L14`. */
export function lineNamed(hash: string): number | null {
  const found = /^#?L(\d{1,7})$/.exec(hash);
  return found ? Number(found[1]) : null;
}

/** Goes to the line that the address names, once the text is there. */
export function useNamedLine(isThere: boolean, region: RefObject<HTMLElement | null>, reveal: () => void) {
  const { hash } = useLocation();
  useEffect(() => {
    const line = lineNamed(hash);
    if (!isThere || line === null) return;
    reveal();
    return whenDrawn(region, line, (row) => {
      row.scrollIntoView({ block: "center" });
      row.focus({ preventScroll: true });
    });
  }, [isThere, hash, region, reveal]);
}

import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef, useState } from "react";
import type { Bar } from "../../api/client";
import { lasting, many, t, visible } from "../../lib/t";
import { Empty, inText } from "../../ui/basics";

/** Idle time longer than this is drawn as if it was this long. */
const IDLE = 20_000;
const ROW = 30;

interface Scale {
  /** Where a moment is, between 0 and 1. */
  at: (time: number) => number;
  /** Where time was left out, and how much. */
  gaps: { at: number; lasted: number }[];
}

/** Time with its idle stretches compressed: nothing happened there, and it is said how long. */
export function scaleOf(bars: Bar[], now: number): Scale {
  const edges = bars.filter((bar) => bar.kind !== "turn").flatMap((bar) => {
    const end = bar.ended ?? now;
    // A wait is drawn by its ends: what is between them is idle too.
    return bar.kind === "wait" ? [[bar.begun, bar.begun], [end, end]] : [[bar.begun, end]];
  });
  edges.sort((one, other) => (one[0] ?? 0) - (other[0] ?? 0));
  const first = edges[0]?.[0] ?? now;
  const pieces: { from: number; to: number; drawn: number }[] = [];
  const gaps: { from: number; lasted: number }[] = [];
  let reached = first;
  for (const [from = 0, to = 0] of edges) {
    if (from - reached > IDLE) gaps.push({ from: reached, lasted: from - reached });
    if (from > reached) pieces.push({ from: reached, to: from, drawn: Math.min(from - reached, IDLE) });
    if (to > Math.max(reached, from)) pieces.push({ from: Math.max(reached, from), to, drawn: to - Math.max(reached, from) });
    reached = Math.max(reached, to);
  }
  const total = pieces.reduce((sum, piece) => sum + piece.drawn, 0) || 1;
  const at = (time: number) => {
    let drawn = 0;
    for (const piece of pieces) {
      if (time >= piece.to) drawn += piece.drawn;
      else {
        if (time > piece.from) drawn += (piece.drawn * (time - piece.from)) / (piece.to - piece.from);
        break;
      }
    }
    return drawn / total;
  };
  return { at, gaps: gaps.map((gap) => ({ at: at(gap.from + gap.lasted / 2), lasted: gap.lasted })) };
}

/** "14:02:07". */
const second = (time: number) => new Date(time).toLocaleTimeString(undefined, { hour12: false });

/** A call by what it is aimed at. */
const brief = (words: string) => words.replace(/ \{.*?"(?:path|command|url|query|pattern)":"((?:[^"\\]|\\.)*)".*$/, " $1").replace(/ \{\}$/, "");

const FILL: Record<string, string> = { done: "var(--accent)", failed: "var(--bad)", doubt: "var(--bad)", stopped: "var(--soft)", open: "var(--wait)" };

/** What happened when. F fits, E goes to the next error, L follows. */
export function Timeline({ bars }: { bars: Bar[] }) {
  const rows = useMemo(() => bars.filter((bar) => bar.kind !== "turn"), [bars]);
  const box = useRef<HTMLDivElement>(null);
  const [live, setLive] = useState(true);
  const [picked, setPicked] = useState(-1);
  const now = useMemo(() => Date.now(), [bars]);
  const scale = useMemo(() => scaleOf(bars, now), [bars, now]);
  const list = useVirtualizer({ count: rows.length, getScrollElement: () => box.current, estimateSize: () => ROW, overscan: 12 });
  useEffect(() => {
    if (live && rows.length) list.scrollToIndex(rows.length - 1, { align: "end" });
  }, [live, rows.length, list]);
  const isWrong = (bar: Bar) => bar.state === "failed" || bar.state === "doubt";
  const nextError = () => {
    const after = rows.findIndex((bar, at) => at > picked && isWrong(bar));
    const found = after >= 0 ? after : rows.findIndex(isWrong);
    if (found < 0) return;
    setLive(false);
    setPicked(found);
    list.scrollToIndex(found, { align: "center" });
  };
  const act = useRef(nextError);
  act.current = nextError;
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (inText(event) || event.metaKey || event.ctrlKey || event.altKey) return;
      if (event.key === "e") act.current();
      if (event.key === "l") setLive(true);
      if (event.key === "f") {
        setLive(false);
        box.current?.scrollTo({ top: 0 });
      }
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, []);
  if (rows.length === 0) return <Empty title={t("Nothing ran yet.")} />;
  const errors = rows.filter(isWrong).length;
  return (
    <div className="flex min-h-0 flex-1 flex-col" data-testid="timeline">
      <div className="flex flex-wrap items-center gap-2 px-4 py-2 text-sm text-soft">
        <span>{t("{n} entries", { n: rows.length })}</span>
        {scale.gaps.length > 0 && <span>· {many(scale.gaps.length, "idle stretch compressed", "idle stretches compressed")}</span>}
        <span className="flex-1" />
        <button type="button" className="button small quiet" onClick={() => { setLive(false); box.current?.scrollTo({ top: 0 }); }}>{t("First")}</button>
        <button type="button" className="button small" disabled={errors === 0} onClick={nextError}>{t("Next error ({n})", { n: errors })}</button>
        <button type="button" className="button small" aria-pressed={live} onClick={() => setLive(true)}>{t("Live")}</button>
      </div>
      <div ref={box} className="min-h-0 flex-1 overflow-y-auto" tabIndex={0} role="region" aria-label={t("Timeline")} onWheel={() => setLive(false)} data-testid="timeline-rows">
        <div role="list" className="relative" style={{ height: list.getTotalSize() }}>
          {list.getVirtualItems().map((row) => {
            const bar = rows[row.index];
            if (!bar) return null;
            const [from, to] = [scale.at(bar.begun), scale.at(bar.ended ?? now)];
            const took = bar.ended === bar.begun ? "" : lasting((bar.ended ?? now) - bar.begun);
            return (
              <div key={row.key} role="listitem" className={`absolute inset-x-0 top-0 grid grid-cols-[4.4rem_minmax(0,1fr)] items-center gap-2 px-4 text-sm md:grid-cols-[4.4rem_minmax(0,2fr)_minmax(0,3fr)_4.5rem] ${picked === row.index ? "bg-bad-tint" : ""}`} style={{ height: ROW, transform: `translateY(${row.start}px)` }} data-seq={bar.seq} data-state={bar.state} title={visible(bar.note)}>
                <time className="font-mono text-xs text-soft">{second(bar.begun)}</time>
                <span className={`truncate ${isWrong(bar) ? "text-bad" : bar.kind === "mark" ? "font-medium" : ""}`}>
                  {bar.step != null && <span className="text-soft">{bar.step} · </span>}
                  {visible(bar.kind === "tool" ? brief(bar.words) : bar.words)}
                  {bar.note && bar.kind !== "model" && <span className="text-soft"> · {visible(bar.note)}</span>}
                </span>
                <svg aria-hidden="true" className="hidden h-4 w-full md:block" preserveAspectRatio="none" viewBox="0 0 1000 16">
                  <line x1="0" x2="1000" y1="8" y2="8" stroke="var(--line)" strokeWidth="1" vectorEffect="non-scaling-stroke" />
                  {bar.kind === "wait" ? (
                    <rect x={from * 1000} width={Math.max(6, (to - from) * 1000)} y="5" height="6" fill="none" stroke="var(--wait)" strokeDasharray="6 4" vectorEffect="non-scaling-stroke" />
                  ) : bar.kind === "mark" || bar.kind === "message" ? (
                    <rect x={from * 1000 - 3} width="6" y="2" height="12" fill={FILL[bar.state]} />
                  ) : (
                    <rect x={from * 1000} width={Math.max(4, (to - from) * 1000)} y="4" height="8" rx="2" fill={FILL[bar.state]} />
                  )}
                </svg>
                <span className="hidden text-right font-mono text-xs text-soft md:block">{took}</span>
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}

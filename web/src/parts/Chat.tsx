import { useVirtualizer } from "@tanstack/react-virtual";
import { lazy, memo, Suspense, useEffect, useLayoutEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { withAnswers } from "../api/answers";
import { streamOf } from "../api/streams";
import type { Item } from "../api/reduce";
import { ago, clock, lasting, many, t, visible } from "../t";
import { Chip, Empty, Failed, Skeleton } from "./basics";
import { ErrorBoundary } from "./ErrorScreen";

const Answer = lazy(() => import("./Answer").then(({ Answer }) => ({ default: Answer })));

/** The conversation of one session. It is mounted anew for every session: nothing of another one can stay. */
export function Chat({ id, onReview, empty }: { id: string; onReview: () => void; empty?: React.ReactNode }) {
  const stream = streamOf(id);
  const { log, link, answers } = useSyncExternalStore(stream.listen, stream.now);
  const items = useMemo(() => withAnswers(log?.items ?? [], answers), [log?.items, answers]);
  const box = useRef<HTMLDivElement>(null);
  const [pinned, setPinned] = useState(true);
  const list = useVirtualizer({
    count: items.length,
    getScrollElement: () => box.current,
    estimateSize: (at) => (items[at]?.kind === "answer" ? 96 : items[at]?.kind === "tool" ? 44 : 64),
    getItemKey: (at) => items[at]?.key ?? at,
    overscan: 6,
  });
  const older = useRef(false);
  useLayoutEffect(() => {
    if (pinned && items.length > 0) list.scrollToIndex(items.length - 1, { align: "end" });
  }, [items, pinned, list]);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const look = () => {
      setPinned(element.scrollHeight - element.scrollTop - element.clientHeight < 80);
      if (element.scrollTop < 200 && log && log.from > 0 && !older.current && log.items.length > 0) {
        older.current = true;
        const height = element.scrollHeight;
        void stream.older().finally(() => {
          older.current = false;
          requestAnimationFrame(() => {
            element.scrollTop += element.scrollHeight - height;
          });
        });
      }
    };
    element.addEventListener("scroll", look, { passive: true });
    return () => element.removeEventListener("scroll", look);
  }, [log, stream]);
  if (!log) {
    return link.state === "failed" && link.words ? <Failed problem={new Error(link.words)} /> : <Skeleton lines={6} />;
  }
  return (
    <div className="relative min-h-0 flex-1">
      {link.state === "reconnecting" && (
        <div role="status" className="absolute inset-x-0 top-2 z-10 mx-auto w-fit rounded-full bg-wait-tint px-3 py-1 text-sm font-medium text-wait shadow" data-testid="reconnecting">
          {t("Reconnecting, showing {time}", { time: clock(link.since) })}
        </div>
      )}
      <div ref={box} data-session={id} data-testid="chat" role="log" aria-label={t("Conversation")} tabIndex={0} className="h-full overflow-y-auto px-4 py-4 md:px-6">
        {items.length === 0 && (empty ?? <Empty title={t("Nothing was said here yet.")} />)}
        <div className="relative mx-auto w-full max-w-3xl" style={{ height: list.getTotalSize() }}>
          {list.getVirtualItems().map((row) => {
            const item = items[row.index];
            return item ? (
              <div key={row.key} ref={list.measureElement} data-index={row.index} className="absolute inset-x-0 top-0 pb-3" style={{ transform: `translateY(${row.start}px)` }}>
                <Entry item={item} onReview={onReview} />
              </div>
            ) : null;
          })}
        </div>
      </div>
      {!pinned && (
        <button type="button" className="button small absolute bottom-3 left-1/2 -translate-x-1/2 shadow" onClick={() => setPinned(true)}>
          {t("Newest")} ↓
        </button>
      )}
    </div>
  );
}

/** An answer, rendered; its plain text while the renderer is not there, or cannot be had. */
function Markdown({ text }: { text: string }) {
  const plain = <p className="whitespace-pre-wrap [overflow-wrap:anywhere]">{visible(text)}</p>;
  return (
    <ErrorBoundary fallback={plain}>
      <Suspense fallback={plain}>
        <Answer text={text} />
      </Suspense>
    </ErrorBoundary>
  );
}

const Entry = memo(function Entry({ item, onReview }: { item: Item; onReview: () => void }) {
  switch (item.kind) {
    case "said":
      return (
        <div className="flex justify-end">
          <div className={`max-w-[85%] rounded-2xl rounded-br-md bg-tint px-4 py-2 ${item.waiting ? "opacity-80" : ""}`}>
            <span className="sr-only">{t("{who} said:", { who: item.by })} </span>
            <p className="whitespace-pre-wrap [overflow-wrap:anywhere]">{visible(item.text)}</p>
            {(item.waiting || item.withdrawn) && <p className="mt-1 text-xs text-soft">{item.withdrawn ?? t("waiting for its turn")}</p>}
          </div>
        </div>
      );
    case "answer":
      return (
        <div data-live={item.live || undefined}>
          <span className="sr-only">{t("The agent said:")} </span>
          {item.live ? (
            <p className="whitespace-pre-wrap [overflow-wrap:anywhere]">
              {visible(item.text)}
              <span aria-hidden="true" className="breathing ml-0.5 inline-block h-4 w-2 translate-y-0.5 rounded-sm bg-accent" />
            </p>
          ) : (
            <>
              <Markdown text={item.text} />
              {item.isStopped && <p className="mt-1 text-xs text-soft" data-testid="stopped-answer">{t("Stopped here. What came so far is kept in this page only.")}</p>}
            </>
          )}
        </div>
      );
    case "tool":
      return <ToolCard item={item} />;
    case "revision":
      return (
        <div className="card flex flex-wrap items-center gap-x-3 gap-y-2 border-l-4 border-l-accent px-4 py-3" data-testid="plan-card">
          <div className="min-w-0 flex-1">
            <p className="label">{item.author === "you" ? t("Your revision {n}", { n: item.number }) : t("Plan, revision {n}", { n: item.number })}</p>
            <p className="truncate font-semibold">{visible(item.title)}</p>
          </div>
          <button type="button" className="button small" onClick={onReview}>
            {t("Review")}
          </button>
        </div>
      );
    case "ended":
      return <EndedCard item={item} />;
    case "command":
      return (
        <div className="card overflow-hidden text-sm" data-testid="command-answer" data-refused={item.isRefused || undefined}>
          <p className="border-b border-line bg-sunken px-3 py-1.5 font-mono [overflow-wrap:anywhere]">{visible(item.line)}</p>
          <pre tabIndex={0} aria-label={t("Answer to the command")} className={`max-h-[60vh] overflow-auto whitespace-pre-wrap px-3 py-2 font-mono text-xs [overflow-wrap:anywhere] ${item.isRefused ? "text-bad" : ""}`}>{visible(item.text)}</pre>
        </div>
      );
    case "mark": {
      const tone = { plain: "text-soft", good: "text-good", bad: "text-bad", wait: "text-wait" }[item.tone];
      return (
        <p className={`flex items-baseline gap-2 text-sm ${tone}`}>
          <span aria-hidden="true">{{ plain: "·", good: "✓", bad: "✕", wait: "◆" }[item.tone]}</span>
          <span className="[overflow-wrap:anywhere]">
            {visible(item.text)}
            {item.who && <span className="text-soft"> · {item.who}</span>}
            {item.at && <time dateTime={item.at} title={item.at} className="text-soft"> · {ago(item.at)}</time>}
          </span>
        </p>
      );
    }
  }
});

/** The end of a plan: what was observed, apart from what anybody says of it. Only what was observed is ever ticked. */
function EndedCard({ item }: { item: Extract<Item, { kind: "ended" }> }) {
  const { callsDone: done, callsFailed: failed, stepsWithoutCalls: gaps } = item.observation;
  const heading = item.basis === "observed" ? t("Plan done: every recorded step ran") : item.basis === "declared" ? t("Plan declared done by {who}", { who: item.who ?? "" }) : t("Plan reported done");
  return (
    <section className="card space-y-2 px-4 py-3 text-sm" aria-label={heading} data-testid="plan-ended" data-basis={item.basis}>
      <p className={`font-semibold ${item.basis === "observed" ? "text-good" : ""}`}>{item.basis === "observed" && <span aria-hidden="true">✓ </span>}{heading}</p>
      {item.claim && <p className="[overflow-wrap:anywhere]"><span className="label">{item.basis === "declared" ? t("Their words") : t("Claimed")}</span><br />{visible(item.claim)}</p>}
      <div>
        <span className="label">{t("Observed")}</span>
        <ul>
          <li>{done + failed === 0 ? t("no call ran") : failed > 0 ? t("{n} ran, {failed} failed", { n: many(done + failed, "call", "calls"), failed }) : t("{n} ran", { n: many(done, "call", "calls") })}</li>
          {item.touched.map((words) => <li key={words} className="[overflow-wrap:anywhere]">{visible(words)}</li>)}
        </ul>
      </div>
      {gaps.length > 0 && (
        <div data-testid="gaps">
          <span className="label text-wait">{t("No call was reported for")}</span>
          <ul>{gaps.map((step) => <li key={step.number} className="[overflow-wrap:anywhere]">{step.number}. {visible(step.title)}</li>)}</ul>
        </div>
      )}
      {item.at && <time dateTime={item.at} title={item.at} className="text-xs text-soft">{ago(item.at)}</time>}
    </section>
  );
}

const STATES: Record<string, [string, string, string]> = {
  asked: ["○", "text-soft", "asked for"],
  running: ["◐", "text-accent breathing", "running"],
  done: ["✓", "text-good", "done"],
  failed: ["✕", "text-bad", "failed"],
  doubt: ["?", "text-bad", "in doubt"],
  refused: ["⊘", "text-wait", "not run"],
  waiting: ["◆", "text-wait", "waits for you"],
};

function ToolCard({ item }: { item: Extract<Item, { kind: "tool" }> }) {
  const [open, setOpen] = useState(false);
  // A report is a claim: that it was made is no sign that what it says was done.
  const isClaim = item.tool === "plan_report" && item.state === "done";
  const [sign, tone, words] = isClaim ? ["·", "text-soft", "reported"] : STATES[item.state] ?? ["·", "", item.state];
  const took = item.begun && item.ended ? lasting(Date.parse(item.ended) - Date.parse(item.begun)) : "";
  return (
    <div className="card overflow-hidden text-sm" data-testid="tool-card" data-state={item.state}>
      <button type="button" aria-expanded={open} className="flex w-full items-center gap-2 px-3 py-2 text-left" onClick={() => setOpen(!open)}>
        <span aria-hidden="true" className={`w-4 text-center font-bold ${tone}`}>{sign}</span>
        <span className="sr-only">{t(words)}:</span>
        <span className="font-mono font-semibold">{visible(item.tool)}</span>
        <span className="min-w-0 flex-1 truncate font-mono text-soft">{visible(brief(item.arguments))}</span>
        {item.step !== undefined && <Chip>{t("step {n}", { n: item.step })}</Chip>}
        {(item.state === "doubt" || item.state === "waiting" || item.state === "refused") && <Chip tone={item.state === "doubt" ? "bad" : "wait"}>{t(words)}</Chip>}
        <span className="text-xs text-soft">{took}</span>
      </button>
      {open && (
        <div className="space-y-2 border-t border-line px-3 py-2">
          <pre tabIndex={0} className="max-h-60 overflow-auto whitespace-pre-wrap font-mono text-xs [overflow-wrap:anywhere]">{visible(item.arguments)}</pre>
          {item.output && <pre tabIndex={0} className="max-h-80 overflow-auto whitespace-pre-wrap rounded bg-sunken p-2 font-mono text-xs [overflow-wrap:anywhere]">{visible(item.output)}</pre>}
        </div>
      )}
    </div>
  );
}

/** The arguments in one line: what it is aimed at says most. */
function brief(text: string): string {
  try {
    const value = JSON.parse(text) as unknown;
    if (value && typeof value === "object") {
      const named = value as Record<string, unknown>;
      const first = ["path", "command", "url", "query", "pattern", "title", "text"].map((name) => named[name]).find((one) => one !== undefined) ?? Object.values(value)[0];
      if (typeof first === "string") return first.split("\n")[0] ?? "";
    }
  } catch {
    // What is no JSON is shown as it is.
  }
  return text === "{}" ? "" : text;
}

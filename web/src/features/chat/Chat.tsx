import { useVirtualizer } from "@tanstack/react-virtual";
import { lazy, memo, Suspense, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { withAnswers } from "../../session/answers";
import type { CallEntry, Entry } from "../../session/entries";
import { noteOf, outputOf, planEnd, type PlanEnd } from "../../session/present";
import { storeOf, useSession } from "../../session/store";
import { clock, lasting, many, t, visible } from "../../lib/t";
import { Ago } from "../../ui/Time";
import { Chip, Empty, Failed, Skeleton } from "../../ui/basics";
import { ErrorBoundary } from "../../ui/ErrorScreen";

const FileDiff = lazy(() => import("../common/FileDiff").then((part) => ({ default: part.FileDiff })));
const Markdown = lazy(() => import("../../markdown/Markdown").then((part) => ({ default: part.Markdown })));

/** The conversation of one session. It is mounted anew for every session: nothing of another one can stay. */
export function Chat({ id, onReview, empty }: { id: string; onReview: () => void; empty?: React.ReactNode }) {
  const known = useSession(id);
  const { log, link } = known;
  // The log is changed in place: what is known of it is a new one each time.
  const entries = useMemo(() => withAnswers([...(known.log?.entries ?? [])], known.answers), [known]);
  const box = useRef<HTMLDivElement>(null);
  const [pinned, setPinned] = useState(true);
  const list = useVirtualizer({
    count: entries.length,
    getScrollElement: () => box.current,
    estimateSize: (at) => (entries[at]?.kind === "answer" ? 96 : entries[at]?.kind === "call" ? 44 : 64),
    getItemKey: (at) => entries[at]?.key ?? at,
    overscan: 6,
  });
  const older = useRef(false);
  useLayoutEffect(() => {
    if (pinned && entries.length > 0) list.scrollToIndex(entries.length - 1, { align: "end" });
  }, [entries, pinned, list]);
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const look = () => {
      setPinned(element.scrollHeight - element.scrollTop - element.clientHeight < 80);
      if (element.scrollTop < 200 && log && log.from > 0 && !older.current) {
        older.current = true;
        const height = element.scrollHeight;
        void storeOf(id).older().finally(() => {
          older.current = false;
          requestAnimationFrame(() => {
            element.scrollTop += element.scrollHeight - height;
          });
        });
      }
    };
    element.addEventListener("scroll", look, { passive: true });
    return () => element.removeEventListener("scroll", look);
  }, [log, id]);
  useEffect(() => {
    // A page of events of which nothing is told leaves nothing to scroll by.
    const element = box.current;
    if (element && log && log.from > 0 && element.scrollHeight <= element.clientHeight) void storeOf(id).older();
  }, [known, log, id]);
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
        {entries.length === 0 && log.from === 0 && (empty ?? <Empty title={t("Nothing was said here yet.")} />)}
        <div className="relative mx-auto w-full max-w-3xl" style={{ height: list.getTotalSize() }}>
          {list.getVirtualItems().map((row) => {
            const entry = entries[row.index];
            return entry ? (
              <div key={row.key} ref={list.measureElement} data-index={row.index} className="absolute inset-x-0 top-0 pb-3" style={{ transform: `translateY(${row.start}px)` }}>
                <Row entry={entry} onReview={onReview} />
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
function Answer({ text }: { text: string }) {
  const plain = <p className="whitespace-pre-wrap [overflow-wrap:anywhere]">{visible(text)}</p>;
  return (
    <ErrorBoundary fallback={plain}>
      <Suspense fallback={plain}>
        <Markdown text={text} />
      </Suspense>
    </ErrorBoundary>
  );
}

const Row = memo(function Row({ entry, onReview }: { entry: Entry; onReview: () => void }) {
  switch (entry.kind) {
    case "message":
      return (
        <div className="flex justify-end">
          <div className={`max-w-[85%] rounded-2xl rounded-br-md bg-tint px-4 py-2 ${entry.isWaiting ? "opacity-80" : ""}`}>
            <span className="sr-only">{t("{who} said:", { who: entry.by })} </span>
            <p className="whitespace-pre-wrap [overflow-wrap:anywhere]">{visible(entry.text)}</p>
            {(entry.isWaiting || entry.withdrawn) && <p className="mt-1 text-xs text-soft">{entry.withdrawn ?? t("waiting for its turn")}</p>}
          </div>
        </div>
      );
    case "answer":
      return (
        <div data-live={entry.isLive || undefined}>
          <span className="sr-only">{t("The agent said:")} </span>
          {entry.isLive ? (
            <p className="whitespace-pre-wrap [overflow-wrap:anywhere]">
              {visible(entry.text)}
              <span aria-hidden="true" className="breathing ml-0.5 inline-block h-4 w-2 translate-y-0.5 rounded-sm bg-accent" />
            </p>
          ) : (
            <>
              <Answer text={entry.text} />
              {entry.isStopped && <p className="mt-1 text-xs text-soft" data-testid="stopped-answer">{t("Stopped here. What came so far is kept in this page only.")}</p>}
            </>
          )}
        </div>
      );
    case "call":
      return <CallCard call={entry} />;
    case "revision":
      return (
        <div className="card flex flex-wrap items-center gap-x-3 gap-y-2 border-l-4 border-l-accent px-4 py-3" data-testid="plan-card">
          <div className="min-w-0 flex-1">
            <p className="label">{entry.isByPerson ? t("Your revision {n}", { n: entry.number }) : t("Plan, revision {n}", { n: entry.number })}</p>
            <p className="truncate font-semibold">{visible(entry.title)}</p>
          </div>
          <button type="button" className="button small" onClick={onReview}>
            {t("Review")}
          </button>
        </div>
      );
    case "command":
      return (
        <div className="card overflow-hidden text-sm" data-testid="command-answer" data-refused={entry.isRefused || undefined}>
          <p className="border-b border-line bg-sunken px-3 py-1.5 font-mono [overflow-wrap:anywhere]">{visible(entry.line)}</p>
          <pre tabIndex={0} aria-label={t("Answer to the command")} className={`max-h-[60vh] overflow-auto whitespace-pre-wrap px-3 py-2 font-mono text-xs [overflow-wrap:anywhere] ${entry.isRefused ? "text-bad" : ""}`}>{visible(entry.text)}</pre>
        </div>
      );
    case "note": {
      const end = planEnd(entry.event);
      if (end) return <EndedCard end={end} at={entry.at} />;
      const { tone, text, who } = noteOf(entry.event);
      return (
        <p className={`flex items-baseline gap-2 text-sm ${{ plain: "text-soft", good: "text-good", bad: "text-bad", wait: "text-wait" }[tone]}`}>
          <span aria-hidden="true">{{ plain: "·", good: "✓", bad: "✕", wait: "◆" }[tone]}</span>
          <span className="[overflow-wrap:anywhere]">
            {visible(text)}
            {who && <span className="text-soft"> · {who}</span>}
            {entry.at && <span className="text-soft"> · <Ago at={entry.at} /></span>}
          </span>
        </p>
      );
    }
  }
});

/** The end of a plan: what was observed, apart from what anybody says of it. Only what was observed is ever ticked. */
function EndedCard({ end, at }: { end: PlanEnd; at: string }) {
  const { callsDone: done, callsFailed: failed, stepsWithoutCalls: gaps } = end.observation;
  const heading = end.basis === "observed" ? t("Plan done: every recorded step ran") : end.basis === "declared" ? t("Plan declared done by {who}", { who: end.who ?? "" }) : t("Plan reported done");
  return (
    <section className="card space-y-2 px-4 py-3 text-sm" aria-label={heading} data-testid="plan-ended" data-basis={end.basis}>
      <p className={`font-semibold ${end.basis === "observed" ? "text-good" : ""}`}>{end.basis === "observed" && <span aria-hidden="true">✓ </span>}{heading}</p>
      {end.claim && <p className="[overflow-wrap:anywhere]"><span className="label">{end.basis === "declared" ? t("Their words") : t("Claimed")}</span><br />{visible(end.claim)}</p>}
      <div>
        <span className="label">{t("Observed")}</span>
        <ul>
          <li>{done + failed === 0 ? t("no call ran") : failed > 0 ? t("{n} ran, {failed} failed", { n: many(done + failed, "call", "calls"), failed }) : t("{n} ran", { n: many(done, "call", "calls") })}</li>
          {end.touched.map((words) => <li key={words} className="[overflow-wrap:anywhere]">{visible(words)}</li>)}
        </ul>
      </div>
      {gaps.length > 0 && (
        <div data-testid="gaps">
          <span className="label text-wait">{t("No call was reported for")}</span>
          <ul>{gaps.map((step) => <li key={step.number} className="[overflow-wrap:anywhere]">{step.number}. {visible(step.title)}</li>)}</ul>
        </div>
      )}
      {at && <Ago at={at} className="text-xs text-soft" />}
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

function CallCard({ call }: { call: CallEntry }) {
  const [open, setOpen] = useState(false);
  const output = outputOf(call);
  // A report is a claim: that it was made is no sign that what it says was done.
  const isClaim = call.tool === "plan_report" && call.state === "done";
  const [sign, tone, words] = isClaim ? ["·", "text-soft", "reported"] : STATES[call.state] ?? ["·", "", call.state];
  const took = call.begun && call.ended ? lasting(Date.parse(call.ended) - Date.parse(call.begun)) : "";
  return (
    <div className="card overflow-hidden text-sm" data-testid="tool-card" data-state={call.state}>
      <button type="button" aria-expanded={open} className="flex w-full items-center gap-2 px-3 py-2 text-left" onClick={() => setOpen(!open)}>
        <span aria-hidden="true" className={`w-4 text-center font-bold ${tone}`}>{sign}</span>
        <span className="sr-only">{t(words)}:</span>
        <span className="font-mono font-semibold">{visible(call.tool)}</span>
        <span className="min-w-0 flex-1 truncate font-mono text-soft">{visible(brief(call.arguments))}</span>
        {call.step !== undefined && <Chip>{t("step {n}", { n: call.step })}</Chip>}
        {(call.state === "doubt" || call.state === "waiting" || call.state === "refused") && <Chip tone={call.state === "doubt" ? "bad" : "wait"}>{t(words)}</Chip>}
        <span className="text-xs text-soft">{took}</span>
      </button>
      {open && (
        <div className="space-y-2 border-t border-line px-3 py-2">
          {call.changes && <Suspense fallback={<Skeleton lines={2} />}>{call.changes.map((change, at) => <FileDiff key={at} change={change} />)}</Suspense>}
          <pre tabIndex={0} className="max-h-60 overflow-auto whitespace-pre-wrap font-mono text-xs [overflow-wrap:anywhere]">{visible(call.arguments)}</pre>
          {output && <pre tabIndex={0} className="max-h-80 overflow-auto whitespace-pre-wrap rounded bg-sunken p-2 font-mono text-xs [overflow-wrap:anywhere]">{visible(output)}</pre>}
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

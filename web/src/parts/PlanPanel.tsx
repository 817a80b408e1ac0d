import { useQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { Plan, Session } from "../api/client";
import { commentsQuery, controlQuery, diffQuery, meQuery, revisionQuery } from "../api/queries";
import { t, visible } from "../t";
import { AskCard, Doubts } from "./Asks";
import { Chip, Failed, say, Skeleton, toneOf, useKept } from "./basics";
import { type At, Changes, History, Lines, type Note } from "./PlanText";
import { NoteEditor, Verdict } from "./Verdict";
import { Controls, Steps } from "./Execution";
import { verdicts } from "./verdicts";

type Tab = "changes" | "plan" | "history";

/** The plan of one session: where it stands, what changed, what approving allows, and the verdicts. */
export function PlanPanel({ id, wide = false, onExpand }: { id: string; wide?: boolean; onExpand?: () => void }) {
  const control = useQuery(controlQuery(id));
  const { data: me } = useQuery(meQuery);
  const session = control.data;
  const plan = session?.plan ?? null;
  const reading = useReading(session);
  const panel = useRef<HTMLElement>(null);
  if (control.isPending) return <Skeleton lines={5} />;
  if (control.error || !session) return <Failed problem={control.error ?? new Error("?")} retry={() => void control.refetch()} />;
  const decides = me?.decides ?? false;
  return (
    <section ref={panel} tabIndex={-1} aria-label={t("Plan")} data-session={id} data-testid="plan-panel" className="flex h-full min-h-0 flex-col">
      <header className="flex items-center gap-2 border-b border-line px-4 py-3">
        <h2 className="label">{t("Plan")}</h2>
        {plan && <Chip tone={toneOf(plan.status)}>{t(plan.status)}</Chip>}
        {plan?.revision != null && <span className="text-sm text-soft" data-testid="plan-revision">{t("rev {n}", { n: plan.revision })}</span>}
        {plan?.digest && <code className="hidden text-xs text-soft sm:inline" title={plan.digest}>{plan.digest.slice(0, 8)}</code>}
        <span className="flex-1" />
        {onExpand && plan && (
          <button type="button" className="button quiet small" onClick={onExpand} aria-label={t("Open the review")}>⤢</button>
        )}
      </header>
      <div className="min-h-0 flex-1 overflow-y-auto" tabIndex={0} role="region" aria-label={t("Plan document")}>
        <p className="px-4 pt-3 text-sm text-soft" data-testid="mode">{modeWords(session)}</p>
        <div className="space-y-3 px-4 pt-3 empty:hidden">
          {session.ask && <AskCard id={id} ask={session.ask} decides={decides} />}
          <Doubts id={id} session={session} decides={decides} />
        </div>
        {reading.replaced && plan?.revision != null && (
          <div role="alert" className="mx-4 mt-3 rounded-lg bg-wait-tint p-3 text-sm text-wait" data-testid="replaced">
            <p className="font-semibold">{t("Revision {old} became {n} while you were reading. Nothing was approved.", { old: reading.replaced, n: plan.revision })}</p>
            {!reading.isCurrent && (
              <button type="button" className="button small mt-2" onClick={reading.advance}>{t("Show what changed")}</button>
            )}
          </div>
        )}
        {plan && reading.current && <Body key={reading.current.digest} id={id} plan={plan} session={session} at={reading.current} isCurrent={reading.isCurrent} decides={decides} wide={wide} panel={panel} onStale={reading.stale} onExpect={reading.expect} />}
        {plan && plan.revision == null && (
          <div className="px-4">
            <h3 className="mt-3 text-lg font-semibold leading-snug">{visible(plan.title)}</h3>
            <Steps plan={plan} id={id} decides={decides} />
            {!session.active && <EndedText id={id} plan={plan} />}
          </div>
        )}
        {!plan && (
          <div className="p-4">
            <button type="button" className="button primary" onClick={() => void verdicts.on(id)}>{t("Switch plan work on")}</button>
          </div>
        )}
      </div>
      {plan && <Controls id={id} session={session} plan={plan} decides={decides} />}
    </section>
  );
}

/** The text of the plan that ended last, as it was approved or rejected. */
function EndedText({ id, plan }: { id: string; plan: Plan }) {
  const revision = useQuery(revisionQuery(id, "current", plan.planId));
  if (!revision.data || revision.data.planId !== plan.planId) return null;
  return (
    <details className="py-2 text-sm">
      <summary className="cursor-pointer text-soft">{t("Its text, revision {n}", { n: revision.data.number })}</summary>
      <div className="pt-2"><Lines revision={revision.data} waits={false} notes={[]} onComment={() => {}} /></div>
    </details>
  );
}

/** Which revision is on the screen. A newer one does not slide in under a person who is about to decide. */
function useReading(session: Session | undefined) {
  const plan = session?.plan;
  const now: At | null = useMemo(
    () => (plan?.revision != null && plan.digest ? { plan: plan.planId, revision: plan.revision, digest: plan.digest } : null),
    [plan?.planId, plan?.revision, plan?.digest],
  );
  const [at, setAt] = useState<At | null>(now);
  const [replaced, setReplaced] = useState<number | null>(null);
  const waits = session?.waiting === "decision";
  const latest = useRef({ now, at });
  latest.current = { now, at };
  /** Whether what is on the screen waited for a decision, and whether this person asked for something newer. */
  const waited = useRef(false);
  const expected = useRef<string | null>(null);
  const jumps = useRef(false);
  useEffect(() => {
    if (!now) return setAt(null);
    if (at?.digest === now.digest) {
      waited.current = waits;
      return;
    }
    const asked = expected.current === at?.digest;
    if (jumps.current) {
      jumps.current = false;
      return setAt(now);
    }
    if (at && at.plan === now.plan && waited.current && !asked) return setReplaced(at.revision);
    if (asked || at?.plan !== now.plan) setReplaced(null);
    setAt(now);
  }, [now, at, waits]);
  const advance = useCallback(() => setAt(latest.current.now), []);
  return {
    current: at,
    isCurrent: at?.digest === now?.digest,
    replaced,
    advance,
    /** This person asks for something newer: it is shown as soon as it is there. */
    expect: useCallback(() => {
      expected.current = latest.current.at?.digest ?? null;
    }, []),
    /** The server says that something newer is there: it is shown at once, and that nothing was approved. */
    stale: useCallback(() => {
      const { now, at } = latest.current;
      setReplaced(at?.revision ?? null);
      if (at?.digest === now?.digest) jumps.current = true;
      else setAt(now);
    }, []),
  };
}

function modeWords(session: Session): string {
  const plan = session.plan;
  if (!session.active) return plan ? t("Plan work is off in this session. The last plan is {status}.", { status: t(plan.status) }) : t("Plan work is off in this session: the agent answers, and asks before it changes anything.");
  if (!plan) return t("Plan work is on in this session. Say what you want planned.");
  if (plan.waits) return plan.waits;
  switch (plan.status) {
    case "Drafting":
      return plan.drafted ? t("The plan is being written: {n} steps so far.", { n: plan.drafted }) : t("Plan work is on in this session. Say what you want planned.");
    case "Ready":
      return t("Ready for your decision. Nothing runs before you approve exactly this revision.");
    case "Running":
      return t("The approved revision is being executed, and nothing else.");
    case "Failed":
      return t("The execution failed. Resume it, leave a step out, or end it.");
    default:
      return t(plan.status);
  }
}

/** The document: what changed since this person last saw it, all of it, and how it came to be. */
function Body({ id, plan, session, at, isCurrent, decides, wide, panel, onStale, onExpect }: {
  id: string;
  plan: Plan;
  session: Session;
  at: At;
  isCurrent: boolean;
  decides: boolean;
  wide: boolean;
  panel: React.RefObject<HTMLElement | null>;
  onStale: () => void;
  onExpect: () => void;
}) {
  const revision = useQuery(revisionQuery(id, at.revision, at.digest));
  const diff = useQuery({ ...diffQuery(id, at.digest), enabled: isCurrent && session.active });
  const comments = useQuery(commentsQuery(id));
  const [chosen, setChosen] = useState<Tab | null>(null);
  const [kept, keep] = useKept(`notes:${id}:${at.digest}`, "[]");
  const notes = useMemo(() => JSON.parse(kept) as Note[], [kept]);
  const setNotes = (next: Note[]) => keep(next.length ? JSON.stringify(next) : "");
  const [writing, setWriting] = useState<number | null | undefined>(undefined);
  const hasChanges = (diff.data?.from ?? 0) > 0;
  const tab: Tab = chosen ?? (hasChanges ? "changes" : "plan");
  const waits = session.waiting === "decision" && isCurrent;
  const isDrawn = !!revision.data && (diff.data !== undefined || !session.active);
  const [isShown, setShown] = useState(false);
  useEffect(() => {
    if (!waits || !decides || !isDrawn || isShown) return;
    let over = false;
    // Two frames later it has been painted: then, and not before, it was shown.
    requestAnimationFrame(() => requestAnimationFrame(() => {
      if (!over) verdicts.shown(id, at.digest).then(() => !over && setShown(true), (problem: Error) => say(problem.message, "bad"));
    }));
    return () => {
      over = true;
    };
  }, [waits, decides, isDrawn, isShown, id, at.digest]);
  if (revision.error) return <Failed problem={revision.error} retry={() => void revision.refetch()} />;
  if (!revision.data) return <Skeleton lines={6} />;
  const answered = (comments.data ?? []).filter((row) => row.status !== "open");
  return (
    <div className="px-4 pb-4">
      <h3 className="mt-3 text-lg font-semibold leading-snug">{visible(revision.data.title)}</h3>
      <div role="tablist" aria-label={t("Views of the plan")} className="mt-3 flex gap-1 border-b border-line">
        {hasChanges && <TabButton is={tab === "changes"} onClick={() => setChosen("changes")}>{t("Changes since {n}", { n: diff.data?.from ?? 0 })}</TabButton>}
        <TabButton is={tab === "plan"} onClick={() => setChosen("plan")}>{t("Plan")}</TabButton>
        {at.revision > 1 && <TabButton is={tab === "history"} onClick={() => setChosen("history")}>{t("History")}</TabButton>}
      </div>
      <div role="tabpanel" aria-label={t("Plan text")} className="py-3">
        {tab === "changes" && diff.data && <Changes diff={diff.data} markdown={revision.data.markdown} waits={waits} notes={notes} onComment={setWriting} />}
        {tab === "plan" && <Lines revision={revision.data} waits={waits} notes={notes} onComment={setWriting} />}
        {tab === "history" && <History id={id} at={at} />}
      </div>
      <NoteEditor
        line={writing}
        text={writing == null ? "" : (revision.data.markdown.split("\n")[writing - 1] ?? "")}
        onClose={() => setWriting(undefined)}
        onSave={(text) => {
          setNotes([...notes, { line: writing ?? null, text }]);
          setWriting(undefined);
        }}
      />
      {notes.length > 0 && (
        <ul className="space-y-2 pb-3" aria-label={t("Notes not sent yet")} data-testid="notes">
          {notes.map((note, place) => (
            <li key={place} className="flex items-start gap-2 rounded-lg bg-wait-tint px-3 py-2 text-sm">
              <span className="flex-1 [overflow-wrap:anywhere]">
                <span className="text-soft">{note.line ? t("line {n}: ", { n: note.line }) : ""}</span>
                {visible(note.text)}
              </span>
              <button type="button" className="button quiet small" aria-label={t("Remove this note")} onClick={() => setNotes(notes.filter((_, other) => other !== place))}>✕</button>
            </li>
          ))}
        </ul>
      )}
      {answered.length > 0 && (
        <details className="pb-3 text-sm" open={wide}>
          <summary className="cursor-pointer text-soft">{t("Your earlier notes: {answered} answered", { answered: answered.length })}</summary>
          <ul className="mt-2 space-y-1" data-testid="ledger">
            {answered.map((row) => (
              <li key={row.number} className="flex gap-2">
                <span aria-hidden="true" className={row.status === "addressed" ? "text-good" : "text-bad"}>{row.status === "addressed" ? "✓" : "✕"}</span>
                <span className="[overflow-wrap:anywhere]">{visible(row.text)} <span className="text-soft">· {row.status === "addressed" ? t("addressed in {n}", { n: row.answeredIn ?? "" }) : t("declined: {why}", { why: visible(row.declined ?? "") })}</span></span>
              </li>
            ))}
          </ul>
        </details>
      )}
      {(plan.steps ?? []).some((step) => step.cameOut) || plan.status === "Running" ? <Steps plan={plan} id={id} decides={decides} /> : null}
      {waits && (
        <Verdict id={id} plan={plan} at={at} decides={decides} notes={notes} setNotes={setNotes} isShown={isShown} markdown={revision.data.markdown} panel={panel} wide={wide} onComment={() => setWriting(null)} onStale={onStale} onExpect={onExpect} onDiff={() => setChosen(tab === "plan" && hasChanges ? "changes" : "plan")} />
      )}
      {!waits && session.active && plan.status === "Ready" && isCurrent && <p className="text-sm text-soft">{t("A newer revision is needed before anything can be approved.")}</p>}
    </div>
  );
}

function TabButton({ is, onClick, children }: { is: boolean; onClick: () => void; children: React.ReactNode }) {
  return (
    <button type="button" role="tab" aria-selected={is} onClick={onClick} className={`-mb-px border-b-2 px-3 py-2 text-sm font-medium ${is ? "border-accent text-ink" : "border-transparent text-soft hover:text-ink"}`}>
      {children}
    </button>
  );
}

import { useQuery } from "@tanstack/react-query";
import { Suspense, useCallback, useEffect, useMemo, useReducer, useRef, useState } from "react";
import type { Plan, Session } from "../../api/client";
import { commentsQuery, controlQuery, diffQuery, meQuery, revisionQuery } from "../../api/queries";
import { parseJson } from "../../lib/storage";
import { t, visible } from "../../lib/t";
import { AskCard, Doubts } from "../permissions/Asks";
import { Chip, Failed, Skeleton, toneOf, useKept } from "../../ui/basics";
import { Decisions } from "../common/Decisions";
import { Changes, History, Source } from "./PlanText";
import { BeginPlan, strategyWords } from "./BeginPlan";
import { Below, DiscussionProvider, OpenThreads, type Discussion } from "./Discussion";
import { areNotes, isOpen, onRevision, replaced, type Writing } from "./notes";
import { isNewest, nothingRead, read, type Reading, type RevisionRef } from "./revision";
import { Drawn } from "./drawn";
import { useNamedLine, whenDrawn } from "./rows";
import { useSeen } from "./useSeen";
import { Verdict } from "./Verdict";
import { Controls, Steps } from "../execution/Execution";
import { verdicts } from "../common/verdicts";

type Tab = "changes" | "plan" | "source" | "history";

/** The plan of one session: where it stands, what changed, what approving allows, and the verdicts. */
export function PlanPanel({ id, wide = false, onExpand }: { id: string; wide?: boolean; onExpand?: () => void }) {
  const control = useQuery(controlQuery(id));
  const { data: me } = useQuery(meQuery);
  const session = control.data;
  const plan = session?.plan ?? null;
  const [reading, tell] = useReading(session);
  const { shown } = reading;
  const isCurrent = isNewest(reading);
  const panel = useRef<HTMLElement>(null);
  const region = useRef<HTMLDivElement>(null);
  if (control.isPending) return <Skeleton lines={5} />;
  if (control.error || !session) return <Failed problem={control.error ?? new Error("?")} retry={() => void control.refetch()} />;
  const decides = me?.decides ?? false;
  return (
    <section ref={panel} tabIndex={-1} aria-label={t("Plan")} data-session={id} data-testid="plan-panel" className="flex h-full min-h-0 flex-col">
      <header className="flex items-center gap-2 border-b border-line px-4 py-3">
        <h2 className="label">{t("Plan")}</h2>
        {plan && (isCurrent ? <Chip tone={toneOf(plan.status)}>{t(plan.status)}</Chip> : <Chip>{t("Replaced")}</Chip>)}
        {plan?.strategy && isCurrent && <span className="hidden text-sm text-soft sm:inline" data-testid="strategy">{strategyWords(plan.strategy)}</span>}
        {shown && <span className="text-sm text-soft" data-testid="plan-revision">{t("rev {n}", { n: shown.revision })}</span>}
        {shown && <code className="hidden text-xs text-soft sm:inline" title={shown.digest} data-testid="plan-digest">{shown.digest.slice(0, 8)}</code>}
        <span className="flex-1" />
        {onExpand && plan && (
          <button type="button" className="button quiet small" onClick={onExpand} aria-label={t("Open the review")}>⤢</button>
        )}
      </header>
      <div ref={region} className="min-h-0 flex-1 overflow-y-auto" tabIndex={0} role="region" aria-label={t("Plan document")}>
        <p className="px-4 pt-3 text-sm text-soft" data-testid="mode">{isCurrent ? modeWords(session) : t("Revision {n} was replaced. Nothing can be decided on it.", { n: shown?.revision ?? "" })}</p>
        <div className="space-y-3 px-4 pt-3 empty:hidden">
          {session.ask && <AskCard id={id} ask={session.ask} decides={decides} />}
          <Doubts id={id} session={session} decides={decides} />
        </div>
        <Replaced reading={reading} onAdvance={() => tell({ type: "advanced" })} />
        {/* The text and its buttons come together: a button that moves when the text comes is pressed by mistake. */}
        <Suspense fallback={<Skeleton lines={6} />}>{plan && shown && <Body key={shown.digest} id={id} plan={plan} session={session} at={shown} isCurrent={isCurrent} decides={decides} wide={wide} panel={panel} region={region} onStale={(what) => tell({ type: "refused", what })} onExpect={() => tell({ type: "expected" })} />}</Suspense>
        {plan && plan.revision == null && (
          <div className="px-4">
            <h3 className="mt-3 text-lg font-semibold leading-snug">{visible(plan.title)}</h3>
            <Steps plan={plan} id={id} decides={decides} />
            {!session.active && <EndedText id={id} plan={plan} />}
          </div>
        )}
        {!plan && (
          <div className="p-4">
            <BeginPlan id={id} />
          </div>
        )}
      </div>
      {plan && !session.active && (
        <details className="border-t border-line px-4 py-2">
          <summary className="cursor-pointer text-sm">{t("Plan something else")}</summary>
          <div className="pt-2"><BeginPlan id={id} /></div>
        </details>
      )}
      {plan && <Decisions><Controls id={id} session={session} plan={plan} decides={decides} /></Decisions>}
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
      <div className="pt-2"><Suspense fallback={<Skeleton lines={6} />}><Drawn id={id} revision={revision.data} mayComment={false} onComment={() => {}} /></Suspense></div>
    </details>
  );
}

/** Which revision is on the screen, told of what the server says before anything is drawn of it. */
function useReading(session: Session | undefined) {
  const [reading, tell] = useReducer(read, nothingRead);
  const plan = session?.plan;
  const newest: RevisionRef | null = plan?.revision != null && plan.digest ? { plan: plan.planId, revision: plan.revision, digest: plan.digest } : null;
  const waits = session?.waiting === "decision";
  const isKnown = reading.newest?.digest === newest?.digest && (reading.shown?.digest !== newest?.digest || !newest || reading.waited === waits);
  if (!isKnown) tell({ type: "arrived", newest, waits });
  return [reading, tell] as const;
}

/** That a newer revision is there; and that nothing was done, to who tried. */
function Replaced({ reading, onAdvance }: { reading: Reading; onAdvance: () => void }) {
  const { shown, newest, refused } = reading;
  if (!shown || !newest || (isNewest(reading) && (!refused || refused.revision === shown.revision))) return null;
  return (
    <div role="alert" className="mx-4 mt-3 rounded-lg bg-wait-tint p-3 text-sm text-wait" data-testid="replaced">
      {isNewest(reading) ? (
        <p className="font-semibold">{t("Nothing was {what}: revision {old} became {n} while you were reading.", { what: refused?.what ?? "", old: refused?.revision ?? "", n: newest.revision })}</p>
      ) : (
        <>
          <p className="font-semibold">{t("Revision {n} is there. You are reading revision {old}.", { old: shown.revision, n: newest.revision })}</p>
          <button type="button" className="button small mt-2" onClick={onAdvance}>{t("Show what changed")}</button>
        </>
      )}
    </div>
  );
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
function Body({ id, plan, session, at, isCurrent, decides, wide, panel, region, onStale, onExpect }: {
  id: string;
  plan: Plan;
  session: Session;
  at: RevisionRef;
  isCurrent: boolean;
  decides: boolean;
  wide: boolean;
  panel: React.RefObject<HTMLElement | null>;
  region: React.RefObject<HTMLElement | null>;
  onStale: (what: string) => void;
  onExpect: () => void;
}) {
  const asked = useQuery(revisionQuery(id, at.revision, at.digest));
  // It was asked for by its number, which another plan's revision may have by now: never that text under this digest.
  const revision = asked.data?.digest === at.digest ? asked.data : undefined;
  const diff = useQuery({ ...diffQuery(id, at.digest), enabled: isCurrent && session.active });
  const comments = useQuery(commentsQuery(id));
  const [chosen, setChosen] = useState<Tab | null>(null);
  // They outlive the revision they were made on: nobody's words go because the author was faster.
  const [kept, keep] = useKept(`notes:${id}:${plan.planId}`, "[]");
  const notes = useMemo(() => (parseJson(kept, areNotes) ?? []).map((note) => onRevision(note, at.digest)), [kept, at.digest]);
  const setNotes = useCallback((next: typeof notes) => keep(next.length ? JSON.stringify(next) : ""), [keep]);
  const addNote = useCallback(({ line, last }: Writing, text: string) => setNotes([...notes, { line, ...(last ? { last } : {}), text, on: { digest: at.digest, revision: at.revision } }]), [notes, setNotes, at.digest, at.revision]);
  const [writing, setWriting] = useState<Writing | null>(null);
  // What was typed elsewhere is kept as a note: nobody's words go because another line was chosen, or a newer text.
  const begin = useCallback((on: Writing) => {
    if (writing?.text?.trim()) addNote(writing, writing.text.trim());
    setWriting(on);
    setChosen((tab) => (tab === "history" ? "plan" : tab));
  }, [writing, addNote]);
  const latest = useRef({ writing, addNote, begin });
  latest.current = { writing, addNote, begin };
  useEffect(() => () => {
    const { writing, addNote } = latest.current;
    if (writing?.text?.trim()) addNote(writing, writing.text.trim());
  }, []);
  const onComment = useCallback((line: number) => latest.current.begin({ line }), []);
  const hasChanges = (diff.data?.from ?? 0) > 0;
  const tab: Tab = chosen ?? (hasChanges ? "changes" : "plan");
  const waits = session.waiting === "decision" && isCurrent;
  const mayComment = isCurrent && session.active;
  const threads = useMemo(() => (isCurrent ? (comments.data ?? []) : []), [isCurrent, comments.data]);
  const markdown = revision?.markdown ?? "";
  const me = useQuery(meQuery).data?.person ?? "";
  const discussion = useMemo((): Discussion => {
    const isDone = async (came: Promise<"done" | "stale" | "refused">) => (await came) === "done";
    return {
      me,
      waits,
      threads,
      notes,
      setNotes,
      addNote,
      writing,
      setWriting,
      lines: markdown.replace(/\n$/, "").split("\n"),
      post: ({ line, last }, text) => isDone(verdicts.post(id, at.digest, { line, lastLine: last ?? null, step: null, text })),
      reply: (number, text) => isDone(verdicts.reply(id, plan.planId, number, text)),
      edit: (number, text) => isDone(verdicts.changeComment(id, number, { planId: plan.planId, text })),
      resolve: (number, resolved) => isDone(verdicts.changeComment(id, number, { planId: plan.planId, resolved })),
      apply: waits && decides && plan.strategy === "document" ? async ({ number, place }, lines) => {
        if (!place) return;
        onExpect();
        if (await isDone(verdicts.edit(id, at.digest, replaced(markdown, place.line, place.lastLine, lines), true))) await verdicts.changeComment(id, number, { planId: plan.planId, resolved: true });
      } : null,
    };
  }, [me, waits, threads, notes, setNotes, addNote, writing, markdown, id, at.digest, decides, plan.planId, plan.strategy, onExpect]);
  const isDrawn = !!revision && (diff.data !== undefined || !session.active);
  const reveal = useCallback(() => setChosen("plan"), []);
  useNamedLine(wide && isDrawn, region, reveal);
  const seen = useSeen({ id, revision: revision, isOn: waits && decides && isDrawn, region, reveal });
  if (asked.error) return <Failed problem={asked.error} retry={() => void asked.refetch()} />;
  if (!revision) return <Skeleton lines={6} />;
  // The text says its title itself.
  const isSaidFirst = (tab === "plan" || tab === "source") && revision.markdown.startsWith(`# ${revision.title}\n`);
  const go = (line: number | null) => {
    if (line === null) return region.current?.querySelector<HTMLElement>("[data-testid=whole-plan]")?.scrollIntoView({ block: "center" });
    if (tab !== "source") setChosen("plan");
    whenDrawn(region, line, (row) => {
      row.scrollIntoView({ block: "center" });
      row.focus({ preventScroll: true });
    });
  };
  return (
    <div className="px-4 pb-4">
      <h3 className={isSaidFirst ? "sr-only" : "mt-3 text-lg font-semibold leading-snug"}>{visible(revision.title)}</h3>
      <div role="tablist" aria-label={t("Views of the plan")} className="mt-3 flex gap-1 border-b border-line">
        {hasChanges && <TabButton is={tab === "changes"} onClick={() => setChosen("changes")}>{t("Changes since {n}", { n: diff.data?.from ?? 0 })}</TabButton>}
        <TabButton is={tab === "plan"} onClick={() => setChosen("plan")}>{t("Plan")}</TabButton>
        <TabButton is={tab === "source"} onClick={() => setChosen("source")}>{t("Source")}</TabButton>
        {at.revision > 1 && <TabButton is={tab === "history"} onClick={() => setChosen("history")}>{t("History")}</TabButton>}
      </div>
      <div role="tabpanel" aria-label={t("Plan text")} className="py-3">
        <OpenThreads threads={threads} notes={notes} onGo={go} />
        <DiscussionProvider value={discussion}>
          {tab === "changes" && diff.data && <Changes wide={wide} diff={diff.data} markdown={revision.markdown} mayComment={mayComment} onComment={onComment} isUnseen={decides ? seen.wasUnseen : undefined} />}
          {tab === "plan" && <Drawn id={id} revision={revision} mayComment={mayComment} onComment={onComment} />}
          {tab === "source" && <Source revision={revision} mayComment={mayComment} onComment={onComment} />}
          {tab !== "history" && <div data-testid="whole-plan"><Below /></div>}
        </DiscussionProvider>
        {tab === "history" && <History id={id} at={at} wide={wide} />}
      </div>
      {(plan.steps ?? []).some((step) => step.cameOut) || plan.status === "Running" ? <Decisions><Steps plan={plan} id={id} decides={decides} /></Decisions> : null}
      {waits && (
        <Verdict id={id} plan={plan} at={at} decides={decides} notes={notes} setNotes={setNotes} addNote={addNote} posted={threads.filter((thread) => isOpen(thread) && thread.status === "posted").length} seen={seen} markdown={revision.markdown} panel={panel} wide={wide} onComment={begin} onStale={onStale} onExpect={onExpect} onDiff={() => setChosen(tab === "plan" && hasChanges ? "changes" : "plan")} />
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

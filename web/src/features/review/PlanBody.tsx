import { useQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { Plan, Session } from "../../api/client";
import { commentsQuery, diffQuery, meQuery, revisionQuery } from "../../api/queries";
import { parseJson } from "../../lib/storage";
import { t, visible } from "../../lib/t";
import { Failed, Skeleton, useKept } from "../../ui/basics";
import { Decisions } from "../common/Decisions";
import { verdicts } from "../common/verdicts";
import { Steps } from "../execution/Execution";
import { Below, DiscussionProvider, OpenThreads, type Discussion } from "./Discussion";
import { areNotes, isOpen, onRevision, replaced, type Writing } from "./notes";
import { Changes, History, Source } from "./PlanText";
import { Drawn } from "./drawn";
import type { RevisionRef } from "./revision";
import { useNamedLine, whenDrawn } from "./rows";
import { useSeen } from "./useSeen";
import { Verdict } from "./Verdict";

type Tab = "changes" | "plan" | "source" | "history";

/** The document: what changed since this person last saw it, all of it, and how it came to be. */
export function PlanBody({ id, plan, session, at, isCurrent, decides, wide, panel, region, onStale, onExpect }: {
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
  const addNote = useCallback(({ line, last }: Writing, text: string) => setNotes([...notes, { id: `${Date.now()}-${notes.length}`, line, ...(last ? { last } : {}), text, on: { digest: at.digest, revision: at.revision } }]), [notes, setNotes, at.digest, at.revision]);
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
      revision: at.revision,
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
  }, [me, waits, threads, notes, setNotes, addNote, writing, markdown, id, at.digest, at.revision, decides, plan.planId, plan.strategy, onExpect]);
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

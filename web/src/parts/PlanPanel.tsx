import { useQuery } from "@tanstack/react-query";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { Diff, Plan, Revision, Session } from "../api/client";
import { commentsQuery, controlQuery, diffQuery, meQuery, revisionQuery } from "../api/queries";
import { many, t, visible } from "../t";
import { AskCard, Doubts, LogInToDecide } from "./Asks";
import { Chip, Dialog, Failed, inText, say, Skeleton, toneOf, useKept } from "./basics";
import { Line } from "./Document";
import { verdicts } from "./verdicts";

/** How long a thing must have been there before a key or a click decides on it. */
const SETTLED = 500;

/** A note that was not sent yet. */
interface Note {
  line: number | null;
  text: string;
}
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
        {plan && !reading.current && (
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

interface At {
  plan: string;
  revision: number;
  digest: string;
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
    if (!waits || !isDrawn || isShown) return;
    let over = false;
    // Two frames later it has been painted: then, and not before, it was shown.
    requestAnimationFrame(() => requestAnimationFrame(() => {
      if (!over) verdicts.shown(id, at.digest).then(() => !over && setShown(true), (problem: Error) => say(problem.message, "bad"));
    }));
    return () => {
      over = true;
    };
  }, [waits, isDrawn, isShown, id, at.digest]);
  if (revision.error) return <Failed problem={revision.error} retry={() => void revision.refetch()} />;
  if (!revision.data) return <Skeleton lines={6} />;
  const open = (comments.data ?? []).filter((row) => row.status !== "open");
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
      {open.length > 0 && (
        <details className="pb-3 text-sm" open={wide}>
          <summary className="cursor-pointer text-soft">{t("Your earlier notes: {answered} answered", { answered: open.length })}</summary>
          <ul className="mt-2 space-y-1" data-testid="ledger">
            {open.map((row) => (
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

interface LineProps {
  waits: boolean;
  notes: Note[];
  onComment: (line: number) => void;
}

/** One row: its number, its text, and a place to comment. */
function Row({ number, text, change, waits, notes, onComment }: LineProps & { number: number | null; text: string; change?: string }) {
  const tone = change === "added" ? "bg-good-tint" : change === "removed" ? "bg-bad-tint line-through decoration-bad/60" : "";
  const noted = number !== null && notes.some((note) => note.line === number);
  return (
    <div className={`group flex items-start gap-2 rounded px-1 ${tone}`} data-change={change} data-line={number ?? undefined}>
      <span aria-hidden="true" className={`w-7 shrink-0 select-none pt-0.5 text-right font-mono text-xs ${change === "added" ? "text-good" : change === "removed" ? "text-bad" : "text-soft"}`}>
        {change === "added" ? "+" : change === "removed" ? "−" : ""}
        {number ?? ""}
      </span>
      {change && change !== "same" && <span className="sr-only">{change === "added" ? t("added:") : t("removed:")}</span>}
      <span className="min-w-0 flex-1 whitespace-pre-wrap [overflow-wrap:anywhere]"><Line text={text} /></span>
      {waits && number !== null && text.trim() && (
        <button type="button" className={`button quiet small !min-h-6 shrink-0 !px-1.5 ${noted ? "text-wait" : "opacity-0 focus:opacity-100 group-hover:opacity-100 max-md:opacity-100"}`} aria-label={t("Comment on line {n}", { n: number })} onClick={() => onComment(number)}>
          ✎
        </button>
      )}
    </div>
  );
}

function Lines({ revision, ...props }: LineProps & { revision: Revision }) {
  return (
    <div className="leading-relaxed" data-testid="plan-text">
      {revision.markdown.replace(/\n$/, "").split("\n").map((text, at) => (
        <Row key={at} number={at + 1} text={text} {...props} />
      ))}
    </div>
  );
}

/** What became of each step or section. Numbers that only moved do not count. */
function Changes({ diff, markdown, ...props }: LineProps & { diff: Diff; markdown: string }) {
  const [all, setAll] = useState(false);
  const lines = markdown.split("\n");
  let place = 0;
  const numbered = diff.parts.map((part) => ({
    part,
    rows: part.rows.map((row) => {
      if (row.change === "removed") return { row, number: null };
      const found = lines.indexOf(row.text, place);
      if (found >= 0) place = found + 1;
      return { row, number: found >= 0 ? found + 1 : null };
    }),
  }));
  const counts = { added: 0, removed: 0, changed: 0, same: 0 } as Record<string, number>;
  for (const part of diff.parts) counts[part.change] = (counts[part.change] ?? 0) + 1;
  return (
    <div data-testid="changes">
      <p className="mb-2 text-sm text-soft">
        {t("Since {since}:", { since: visible(diff.since) })}{" "}
        {[counts.added && t("{n} added", { n: counts.added }), counts.changed && t("{n} changed", { n: counts.changed }), counts.removed && t("{n} removed", { n: counts.removed })].filter(Boolean).join(" · ") || t("nothing but numbers changed")}
      </p>
      <div className="leading-relaxed">
        {numbered.map(({ part, rows }, at) =>
          part.change === "same" && !all ? null : (
            <div key={at} data-part={part.change}>
              {rows.map(({ row, number }, place) => (
                <Row key={place} number={number} text={row.text} change={part.change === "same" ? "same" : row.change} {...props} />
              ))}
            </div>
          ),
        )}
      </div>
      {(counts.same ?? 0) > 0 && (
        <button type="button" className="button quiet small mt-2" aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? t("Hide what is unchanged") : t("{n} unchanged hidden: show", { n: counts.same ?? 0 })}
        </button>
      )}
    </div>
  );
}

function History({ id, at }: { id: string; at: At }) {
  const [from, setFrom] = useState(Math.max(1, at.revision - 1));
  const [to, setTo] = useState(at.revision);
  const diff = useQuery(diffQuery(id, at.digest, from, to));
  const numbers = Array.from({ length: at.revision }, (_, place) => place + 1);
  const pick = (name: string, value: number, set: (value: number) => void) => (
    <label className="flex items-center gap-1 text-sm">
      {name}
      <select className="field !w-auto !py-1" value={value} onChange={(event) => set(Number(event.target.value))}>
        {numbers.map((number) => <option key={number}>{number}</option>)}
      </select>
    </label>
  );
  return (
    <div>
      <div className="mb-3 flex gap-3">{pick(t("From"), from, setFrom)}{pick(t("to"), to, setTo)}</div>
      {diff.data && <Changes diff={diff.data} markdown="" waits={false} notes={[]} onComment={() => {}} />}
      {diff.error && <Failed problem={diff.error} />}
    </div>
  );
}

function NoteEditor({ line, text, onClose, onSave }: { line: number | null | undefined; text: string; onClose: () => void; onSave: (text: string) => void }) {
  const [note, setNote] = useState("");
  useEffect(() => setNote(""), [line]);
  return (
    <Dialog title={line ? t("Comment on line {n}", { n: line }) : t("Comment on the plan")} open={line !== undefined} onClose={onClose}>
      {text && <p className="mb-2 rounded bg-sunken px-2 py-1 text-sm [overflow-wrap:anywhere]"><Line text={text} /></p>}
      <textarea
        autoFocus
        className="field"
        rows={4}
        value={note}
        aria-label={t("Your note")}
        placeholder={t("What should change, or what do you want to know?")}
        onChange={(event) => setNote(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.metaKey || event.ctrlKey) && note.trim()) onSave(note.trim());
        }}
      />
      <div className="mt-3 flex justify-end gap-2">
        {line != null && <button type="button" className="button quiet mr-auto" onClick={() => onSave(t("Leave this step out."))}>{t("Drop this step")}</button>}
        <button type="button" className="button" onClick={onClose}>{t("Cancel")}</button>
        <button type="button" className="button primary" disabled={!note.trim()} onClick={() => onSave(note.trim())}>{t("Add note")}</button>
      </div>
    </Dialog>
  );
}

/** What approving allows, and the verdicts. */
function Verdict({ id, plan, at, decides, notes, setNotes, isShown, markdown, panel, wide, onComment, onStale, onExpect, onDiff }: {
  id: string;
  plan: Plan;
  at: At;
  decides: boolean;
  notes: Note[];
  setNotes: (notes: Note[]) => void;
  isShown: boolean;
  markdown: string;
  panel: React.RefObject<HTMLElement | null>;
  wide: boolean;
  onComment: () => void;
  onStale: () => void;
  onExpect: () => void;
  onDiff: () => void;
}) {
  const [ask, setAsk] = useState<"plain" | "reject" | "edit" | null>(null);
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const [settled, setSettled] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(true), SETTLED);
    return () => clearTimeout(timer);
  }, []);
  const ready = decides && isShown && settled && !busy;
  const did = async (came: Promise<"done" | "stale" | "refused">) => {
    setBusy(true);
    const how = await came;
    setBusy(false);
    setAsk(null);
    if (how === "done") setNotes([]);
    if (how === "stale") onStale();
  };
  const words = notes.map((note) => (note.line ? `line ${note.line}: ${note.text}` : note.text));
  const approve = (withNotes: boolean) => did(verdicts.approve(id, at.digest, withNotes ? words : []));
  const send = () => {
    onExpect();
    return did(verdicts.changes(id, at.digest, notes.map(({ line, text }) => ({ line, step: null, text }))));
  };
  const act = useRef({ approve, send, ready, notes });
  act.current = { approve, send, ready, notes };
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const { approve, send, ready, notes } = act.current;
      if ((event.metaKey || event.ctrlKey) && event.key === "Enter" && notes.length > 0 && ready && !document.querySelector("dialog[open]")) void send();
      if (inText(event) || event.metaKey || event.ctrlKey || event.altKey || document.querySelector("dialog[open]")) return;
      const focused = panel.current?.contains(document.activeElement) ?? false;
      if (!wide && !focused) return;
      if ((event.key === "A" && wide) || (event.key === "a" && !wide)) {
        if (!ready) return;
        event.preventDefault();
        if (notes.length > 0) setAsk("plain");
        else void approve(false);
      } else if (event.key === "c") {
        event.preventDefault();
        onComment();
      } else if (event.key === "d") onDiff();
      else if (event.key === "j" || event.key === "k") step(panel.current, event.key === "j" ? 1 : -1);
      else if (event.key === "x") {
        const line = Number((document.activeElement as HTMLElement | null)?.closest<HTMLElement>("[data-line]")?.dataset.line);
        if (line) setNotes([...notes, { line, text: t("Leave this step out.") }]);
      }
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, [panel, wide, onComment, onDiff, setNotes]);
  const revision = at.revision;
  return (
    <div className="sticky bottom-0 -mx-4 -mb-4 border-t border-line bg-raised px-4 py-3" data-testid="verdicts">
      <p className="label">{t("Approving allows, and nothing else")}</p>
      <ul className="my-1 text-sm" data-testid="allows">
        {plan.allows.length === 0 && <li className="text-soft">{t("Nothing but reading.")}</li>}
        {plan.allows.map((words) => (
          <li key={words} className="flex gap-2 [overflow-wrap:anywhere]"><span aria-hidden="true" className="text-wait">⚠</span>{visible(words)}</li>
        ))}
      </ul>
      {!decides ? (
        <LogInToDecide />
      ) : (
        <div className="flex flex-wrap gap-2 pt-1 max-md:[&>*]:min-h-11 max-md:[&>*]:flex-1">
          {notes.length > 0 ? (
            <>
              <button type="button" className="button primary" disabled={!ready} onClick={() => void send()}>{t("Send {notes}, request changes", { notes: many(notes.length, "note", "notes") })}</button>
              <button type="button" className="button" disabled={!ready} onClick={() => void approve(true)}>{t("Approve rev {n} + notes", { n: revision })}</button>
              <button type="button" className="button quiet" disabled={!ready} onClick={() => setAsk("plain")}>{t("Approve without…")}</button>
            </>
          ) : (
            <>
              <button type="button" className="button primary" disabled={!ready} onClick={() => void approve(false)} data-testid="approve">{t("Approve rev {n}", { n: revision })}</button>
              <button type="button" className="button" onClick={onComment}>{t("Request changes…")}</button>
            </>
          )}
          <button type="button" className="button danger" disabled={!ready} onClick={() => { setText(""); setAsk("reject"); }}>{t("Reject…")}</button>
          <button type="button" className="button quiet" onClick={() => { setText(markdown); setAsk("edit"); }}>{t("Edit text → rev {n}", { n: revision + 1 })}</button>
        </div>
      )}
      <Dialog title={t("Approve without your notes?")} open={ask === "plain"} onClose={() => setAsk(null)}>
        <p className="text-soft">{t("You have {notes} that nobody would read.", { notes: many(notes.length, "note", "notes") })}</p>
        <div className="mt-4 flex justify-end gap-2">
          <button type="button" className="button" onClick={() => setAsk(null)}>{t("Go back")}</button>
          <button type="button" className="button primary" onClick={() => void approve(false)}>{t("Approve rev {n} without notes", { n: revision })}</button>
        </div>
      </Dialog>
      <Dialog title={t("Reject this plan?")} open={ask === "reject"} onClose={() => setAsk(null)}>
        <p className="text-sm text-soft">{t("It ends unexecuted. To have it changed instead, request changes.")}</p>
        <textarea className="field mt-2" rows={3} value={text} aria-label={t("Why")} placeholder={t("Why (optional)")} onChange={(event) => setText(event.target.value)} />
        <div className="mt-3 flex justify-end gap-2">
          <button type="button" className="button" onClick={() => setAsk(null)}>{t("Go back")}</button>
          <button type="button" className="button danger" onClick={() => void did(verdicts.reject(id, at.digest, text))}>{t("Reject rev {n}", { n: revision })}</button>
        </div>
      </Dialog>
      <Dialog title={t("Edit the text: your revision {n}", { n: revision + 1 })} open={ask === "edit"} onClose={() => setAsk(null)} wide>
        <textarea className="field h-[50vh] font-mono text-sm" value={text} aria-label={t("The plan's text")} onChange={(event) => setText(event.target.value)} />
        <div className="mt-3 flex justify-end gap-2">
          <button type="button" className="button" onClick={() => setAsk(null)}>{t("Go back")}</button>
          <button type="button" className="button primary" disabled={!text.trim() || text === markdown} onClick={() => { onExpect(); void did(verdicts.edit(id, at.digest, text)); }}>{t("Save as rev {n}", { n: revision + 1 })}</button>
        </div>
      </Dialog>
    </div>
  );
}

/** Moves the focus from step to step. */
function step(panel: HTMLElement | null, by: number): void {
  const buttons = [...(panel?.querySelectorAll<HTMLElement>("[data-line] button") ?? [])];
  const at = buttons.indexOf(document.activeElement as HTMLElement);
  buttons[Math.min(buttons.length - 1, Math.max(0, at + by))]?.focus();
}

/** The steps, how each came out, and what was done to the world. */
function Steps({ plan, id, decides }: { plan: Plan; id: string; decides: boolean }) {
  return (
    <div className="space-y-3 py-2">
      {plan.word && <p className="text-sm [overflow-wrap:anywhere]">{visible(plan.word)}</p>}
      {(plan.steps ?? []).length > 0 && (
        <ol className="space-y-1" data-testid="steps">
          {(plan.steps ?? []).map((step) => (
            <li key={step.number} className="flex items-baseline gap-2">
              <span className="w-6 text-right font-mono text-xs text-soft">{step.number}</span>
              <span className="flex-1 [overflow-wrap:anywhere]">{visible(step.words)}</span>
              {step.cameOut && <Chip tone={step.cameOut === "done" ? "good" : step.cameOut === "in doubt" || step.cameOut === "failed" ? "bad" : ""}>{step.cameOut}</Chip>}
              {!step.cameOut && decides && plan.waits && <button type="button" className="button quiet small" onClick={() => void verdicts.skip(id, step.number)}>{t("Skip")}</button>}
            </li>
          ))}
        </ol>
      )}
      {plan.done.length > 0 && (
        <div>
          <p className="label">{t("Done to the world")}</p>
          <ul className="text-sm" data-testid="done">{plan.done.map((words) => <li key={words} className="[overflow-wrap:anywhere]">{visible(words)}</li>)}</ul>
        </div>
      )}
    </div>
  );
}

/** What can be done to an execution. */
function Controls({ id, session, plan, decides }: { id: string; session: Session; plan: Plan; decides: boolean }) {
  if (!session.active) {
    return (
      <footer className="flex flex-wrap gap-2 border-t border-line px-4 py-3">
        <button type="button" className="button small" onClick={() => void verdicts.on(id)}>{t("Plan something else")}</button>
        <Export id={id} plan={plan} />
      </footer>
    );
  }
  const resumable = session.waiting === "resume" || (plan.waits !== null && plan.waits !== undefined && ["Approved", "Running", "Failed"].includes(plan.status));
  return (
    <footer className="flex flex-wrap gap-2 border-t border-line px-4 py-2">
      {resumable && decides && <button type="button" className="button small primary" onClick={() => void verdicts.resume(id)}>{t("Resume")}</button>}
      {plan.status === "Running" && !plan.waits && <button type="button" className="button small" onClick={() => void verdicts.pause(id)}>{t("Pause")}</button>}
      <button type="button" className="button small quiet" onClick={() => void verdicts.off(id)}>{t("End plan work")}</button>
      <span className="flex-1" />
      <Export id={id} plan={plan} />
    </footer>
  );
}

/** The text of the revision, as a file. */
function Export({ id, plan }: { id: string; plan: Plan }) {
  const revision = useQuery({ ...revisionQuery(id, plan.revision ?? "current", plan.digest ?? plan.planId), enabled: false });
  const save = async () => {
    const { data } = await revision.refetch();
    if (!data) return say(t("There is no text to export."), "bad");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([data.markdown], { type: "text/markdown" }));
    link.download = `plan-rev${data.number}-${data.digest.slice(0, 8)}.md`;
    link.click();
    URL.revokeObjectURL(link.href);
  };
  return <button type="button" className="button small quiet" onClick={() => void save()}>{t("Export")}</button>;
}

import { useEffect, useRef, useState } from "react";
import type { Plan } from "../../api/client";
import { useReachable } from "../../api/reachable";
import { many, t, visible } from "../../lib/t";
import { LogInToDecide } from "../permissions/Asks";
import { Dialog } from "../../ui/Dialog";
import { inText } from "../../ui/basics";
import { Decisions } from "../common/Decisions";
import type { Note, Writing } from "./notes";
import { linesOf } from "./Discussion";
import type { RevisionRef } from "./revision";
import { lastOf } from "./rows";
import type { Seen } from "./useSeen";
import { verdicts } from "../common/verdicts";

/** How long a thing must have been there before a key or a click decides on it. */
const SETTLED = 500;

/** What approving allows, and the verdicts. */
export function Verdict({ id, plan, at, decides, notes, setNotes, addNote, posted, seen, markdown, panel, wide, onComment, onStale, onExpect, onDiff }: {
  id: string;
  plan: Plan;
  at: RevisionRef;
  decides: boolean;
  notes: Note[];
  setNotes: (notes: Note[]) => void;
  addNote: (on: Writing, text: string) => void;
  /** How many comments were posted that the next request takes along. */
  posted: number;
  seen: Seen;
  markdown: string;
  panel: React.RefObject<HTMLElement | null>;
  wide: boolean;
  onComment: (on: Writing) => void;
  onStale: (what: string) => void;
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
  const reachable = useReachable();
  const isRead = seen.unseen === 0;
  // Who walks through the text with a button must not approve with the same click that shows the last of it.
  // Nor with one of the clicks right after it: each of them begins the wait anew.
  const [walked, setWalked] = useState(0);
  useEffect(() => {
    if (walked === 0 || !isRead) return;
    const timer = setTimeout(() => setWalked(0), SETTLED);
    return () => clearTimeout(timer);
  }, [walked, isRead]);
  const walkOn = () => setWalked((walked) => walked + 1);
  const ready = decides && settled && !busy && reachable;
  const readyToApprove = ready && isRead && seen.isShown && walked === 0;
  const next = () => {
    walkOn();
    seen.next();
  };
  const did = async (came: Promise<"done" | "stale" | "refused">, what: string, sendsNotes = true) => {
    setBusy(true);
    const how = await came;
    setBusy(false);
    setAsk(null);
    // An edit sends no notes: they stay.
    if (how === "done" && sendsNotes) setNotes([]);
    if (how === "stale") onStale(what);
  };
  const words = notes.map((note) => (note.line ? `${linesOf(note.line, note.last)}: ${note.text}` : note.text));
  const approve = (withNotes: boolean) => did(verdicts.approve(id, at.digest, withNotes ? words : []), t("approved"));
  const send = () => {
    onExpect();
    return did(verdicts.changes(id, at.digest, notes.map(({ line, last, text }) => ({ line, lastLine: last ?? null, step: null, text }))), t("sent"));
  };
  const first = useRef<HTMLButtonElement>(null);
  const act = useRef({ approve, send, next, ready, readyToApprove, isRead, notes, posted });
  act.current = { approve, send, next, ready, readyToApprove, isRead, notes, posted };
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const { approve, send, next, ready, readyToApprove, isRead, notes, posted } = act.current;
      if ((event.metaKey || event.ctrlKey) && event.key === "Enter" && notes.length > 0 && ready && !document.querySelector("dialog[open]")) void send();
      if (inText(event) || event.metaKey || event.ctrlKey || event.altKey || document.querySelector("dialog[open]")) return;
      const focused = panel.current?.contains(document.activeElement) ?? false;
      if (!wide && !focused) return;
      if ((event.key === "A" && wide) || (event.key === "a" && !wide)) {
        if (!readyToApprove) return;
        event.preventDefault();
        if (notes.length + posted > 0) setAsk("plain");
        else void approve(false);
      } else if (event.key === "c") {
        event.preventDefault();
        onComment(chosenLines(panel.current));
      } else if (event.key === "n") {
        event.preventDefault();
        if (isRead) first.current?.focus();
        else next();
      } else if (event.key === "d") onDiff();
      else if (event.key === "j" || event.key === "k") step(panel.current, event.key === "j" ? 1 : -1);
      else if (event.key === "x") {
        const line = focusedLine();
        if (line) addNote({ line }, t("Leave this step out."));
      }
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, [panel, wide, onComment, onDiff, addNote]);
  const revision = at.revision;
  return (
    <div className="sticky bottom-0 -mx-4 -mb-4 border-t border-line bg-raised px-4 py-3" data-testid="verdicts" data-covers>
      {plan.outside && <p className="mb-2 flex gap-2 text-sm [overflow-wrap:anywhere]" data-testid="outside"><span aria-hidden="true" className="text-wait">⚠</span>{visible(plan.outside)}</p>}
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
        <div className="flex flex-wrap gap-2 pt-1 max-md:grid max-md:grid-cols-2 max-md:[&_button]:min-h-11 max-md:[&_button]:px-1 max-md:[&_button]:text-[0.8125rem]">
          <Decisions>
            {!isRead && <button ref={first} type="button" className="button primary max-md:col-span-2" onClick={next} data-testid="next-unread">{t("Next unread ({n})", { n: seen.unseen })}</button>}
            {notes.length > 0 ? (
              <>
                <button type="button" className={`button max-md:col-span-2 ${isRead ? "primary" : ""}`} disabled={!ready} onClick={() => void send()}>{t("Send {notes}, request changes", { notes: many(notes.length, "note", "notes") })}</button>
                {isRead && <button type="button" className="button" disabled={!readyToApprove} onClick={() => void approve(true)}>{t("Approve rev {n} + notes", { n: revision })}</button>}
                {isRead && <button type="button" className="button quiet" disabled={!readyToApprove} onClick={() => setAsk("plain")}>{t("Approve without…")}</button>}
              </>
            ) : (
              <>
                {isRead && <button ref={first} type="button" className="button primary" disabled={!readyToApprove && walked === 0} aria-disabled={!readyToApprove} onClick={() => (walked > 0 ? walkOn() : posted > 0 ? setAsk("plain") : void approve(false))} data-testid="approve">{t("Approve rev {n}", { n: revision })}</button>}
                {posted > 0 && <button type="button" className="button" disabled={!ready} onClick={() => void send()}>{t("Send {comments}, request changes", { comments: many(posted, "comment", "comments") })}</button>}
                <button type="button" className="button" onClick={() => onComment({ line: null })}>{t("Request changes…")}</button>
              </>
            )}
            <button type="button" className="button danger" disabled={!ready} onClick={() => { setText(""); setAsk("reject"); }}>{t("Reject…")}</button>
            <button type="button" className="button quiet" onClick={() => { setText(markdown); setAsk("edit"); }}>{t("Edit text → rev {n}", { n: revision + 1 })}</button>
          </Decisions>
        </div>
      )}
      <Dialog title={notes.length > 0 ? t("Approve without your notes?") : t("Approve with comments open?")} open={ask === "plain"} onClose={() => setAsk(null)}>
        {notes.length > 0 && <p className="text-soft">{t("You have {notes} that nobody would read.", { notes: many(notes.length, "note", "notes") })}</p>}
        {posted > 0 && <p className="text-soft">{t("The author was not sent {comments}, and will not act on what is said there.", { comments: many(posted, "posted comment", "posted comments") })}</p>}
        <div className="mt-4 flex justify-end gap-2">
          <button type="button" className="button" onClick={() => setAsk(null)}>{t("Go back")}</button>
          <button type="button" className="button primary" disabled={!readyToApprove} onClick={() => void approve(false)}>{notes.length > 0 ? t("Approve rev {n} without notes", { n: revision }) : t("Approve rev {n} as it is", { n: revision })}</button>
        </div>
      </Dialog>
      <Dialog title={t("Reject this plan?")} open={ask === "reject"} onClose={() => setAsk(null)}>
        <p className="text-sm text-soft">{t("It ends unexecuted. To have it changed instead, request changes.")}</p>
        <textarea className="field mt-2" rows={3} value={text} aria-label={t("Why")} placeholder={t("Why (optional)")} onChange={(event) => setText(event.target.value)} />
        <div className="mt-3 flex justify-end gap-2">
          <button type="button" className="button" onClick={() => setAsk(null)}>{t("Go back")}</button>
          <button type="button" className="button danger" disabled={!ready} onClick={() => void did(verdicts.reject(id, at.digest, text), t("rejected"))}>{t("Reject rev {n}", { n: revision })}</button>
        </div>
      </Dialog>
      <Dialog title={t("Edit the text: your revision {n}", { n: revision + 1 })} open={ask === "edit"} onClose={() => setAsk(null)} wide>
        <textarea className="field h-[50vh] font-mono text-sm" value={text} aria-label={t("The plan's text")} onChange={(event) => setText(event.target.value)} />
        <div className="mt-3 flex justify-end gap-2">
          <button type="button" className="button" onClick={() => setAsk(null)}>{t("Go back")}</button>
          <button type="button" className="button primary" disabled={!ready || !text.trim() || text === markdown} onClick={() => { onExpect(); void did(verdicts.edit(id, at.digest, text), t("saved"), false); }}>{t("Save as rev {n}", { n: revision + 1 })}</button>
        </div>
      </Dialog>
    </div>
  );
}

/** The line that has the focus, if one has. */
function focusedLine(): number | null {
  const line = document.activeElement?.closest<HTMLElement>("[data-line]")?.dataset.line;
  return line ? Number(line) : null;
}

/** The lines that are marked, or the one that has the focus, or none. */
function chosenLines(panel: HTMLElement | null): Writing {
  const marked = window.getSelection();
  const rows = marked && !marked.isCollapsed && marked.rangeCount > 0 ? [...(panel?.querySelectorAll<HTMLElement>("[role=tabpanel] [data-line]") ?? [])].filter((row) => marked.getRangeAt(0).intersectsNode(row)) : [];
  const [from, to] = [rows[0], rows.at(-1)];
  if (!from || !to) return { line: focusedLine() };
  const [line, last] = [Number(from.dataset.line), lastOf(to)];
  return last > line ? { line, last } : { line };
}

/** Moves the focus from step to step. */
function step(panel: HTMLElement | null, by: number): void {
  const buttons = [...(panel?.querySelectorAll<HTMLElement>("[data-line] button") ?? [])];
  const at = buttons.indexOf(document.activeElement as HTMLElement);
  buttons[Math.min(buttons.length - 1, Math.max(0, at + by))]?.focus();
}

import { useEffect, useRef, useState } from "react";
import type { Plan } from "../../api/client";
import { useReachable } from "../../api/reachable";
import { many, t, visible } from "../../lib/t";
import { LogInToDecide } from "../permissions/Asks";
import { Dialog } from "../../ui/Dialog";
import { inText } from "../../ui/basics";
import { Line } from "./Document";
import { Decisions } from "../common/Decisions";
import type { Note } from "./PlanText";
import type { RevisionRef } from "./revision";
import type { Seen } from "./useSeen";
import { verdicts } from "../common/verdicts";

/** How long a thing must have been there before a key or a click decides on it. */
const SETTLED = 500;

/** What approving allows, and the verdicts. */
export function Verdict({ id, plan, at, decides, notes, setNotes, seen, markdown, panel, wide, onComment, onStale, onExpect, onDiff }: {
  id: string;
  plan: Plan;
  at: RevisionRef;
  decides: boolean;
  notes: Note[];
  setNotes: (notes: Note[]) => void;
  seen: Seen;
  markdown: string;
  panel: React.RefObject<HTMLElement | null>;
  wide: boolean;
  onComment: (line: number | null) => void;
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
  const did = async (came: Promise<"done" | "stale" | "refused">, what: string) => {
    setBusy(true);
    const how = await came;
    setBusy(false);
    setAsk(null);
    if (how === "done") setNotes([]);
    if (how === "stale") onStale(what);
  };
  const words = notes.map((note) => (note.line ? `line ${note.line}: ${note.text}` : note.text));
  const approve = (withNotes: boolean) => did(verdicts.approve(id, at.digest, withNotes ? words : []), t("approved"));
  const send = () => {
    onExpect();
    return did(verdicts.changes(id, at.digest, notes.map(({ line, text }) => ({ line, step: null, text }))), t("sent"));
  };
  const first = useRef<HTMLButtonElement>(null);
  const act = useRef({ approve, send, next, ready, readyToApprove, isRead, notes });
  act.current = { approve, send, next, ready, readyToApprove, isRead, notes };
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const { approve, send, next, ready, readyToApprove, isRead, notes } = act.current;
      if ((event.metaKey || event.ctrlKey) && event.key === "Enter" && notes.length > 0 && ready && !document.querySelector("dialog[open]")) void send();
      if (inText(event) || event.metaKey || event.ctrlKey || event.altKey || document.querySelector("dialog[open]")) return;
      const focused = panel.current?.contains(document.activeElement) ?? false;
      if (!wide && !focused) return;
      if ((event.key === "A" && wide) || (event.key === "a" && !wide)) {
        if (!readyToApprove) return;
        event.preventDefault();
        if (notes.length > 0) setAsk("plain");
        else void approve(false);
      } else if (event.key === "c") {
        event.preventDefault();
        onComment(focusedLine());
      } else if (event.key === "n") {
        event.preventDefault();
        if (isRead) first.current?.focus();
        else next();
      } else if (event.key === "d") onDiff();
      else if (event.key === "j" || event.key === "k") step(panel.current, event.key === "j" ? 1 : -1);
      else if (event.key === "x") {
        const line = focusedLine();
        if (line) setNotes([...notes, { line, text: t("Leave this step out.") }]);
      }
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, [panel, wide, onComment, onDiff, setNotes]);
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
                {isRead && <button ref={first} type="button" className="button primary" disabled={!readyToApprove && walked === 0} aria-disabled={!readyToApprove} onClick={() => (walked === 0 ? void approve(false) : walkOn())} data-testid="approve">{t("Approve rev {n}", { n: revision })}</button>}
                <button type="button" className="button" onClick={() => onComment(null)}>{t("Request changes…")}</button>
              </>
            )}
            <button type="button" className="button danger" disabled={!ready} onClick={() => { setText(""); setAsk("reject"); }}>{t("Reject…")}</button>
            <button type="button" className="button quiet" onClick={() => { setText(markdown); setAsk("edit"); }}>{t("Edit text → rev {n}", { n: revision + 1 })}</button>
          </Decisions>
        </div>
      )}
      <Dialog title={t("Approve without your notes?")} open={ask === "plain"} onClose={() => setAsk(null)}>
        <p className="text-soft">{t("You have {notes} that nobody would read.", { notes: many(notes.length, "note", "notes") })}</p>
        <div className="mt-4 flex justify-end gap-2">
          <button type="button" className="button" onClick={() => setAsk(null)}>{t("Go back")}</button>
          <button type="button" className="button primary" disabled={!readyToApprove} onClick={() => void approve(false)}>{t("Approve rev {n} without notes", { n: revision })}</button>
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
          <button type="button" className="button primary" disabled={!ready || !text.trim() || text === markdown} onClick={() => { onExpect(); void did(verdicts.edit(id, at.digest, text), t("saved")); }}>{t("Save as rev {n}", { n: revision + 1 })}</button>
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

/** Moves the focus from step to step. */
function step(panel: HTMLElement | null, by: number): void {
  const buttons = [...(panel?.querySelectorAll<HTMLElement>("[data-line] button") ?? [])];
  const at = buttons.indexOf(document.activeElement as HTMLElement);
  buttons[Math.min(buttons.length - 1, Math.max(0, at + by))]?.focus();
}

/** What a person has to say to a line, or to all of it. */
export function NoteEditor({ line, text, onClose, onSave }: { line: number | null | undefined; text: string; onClose: () => void; onSave: (text: string) => void }) {
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

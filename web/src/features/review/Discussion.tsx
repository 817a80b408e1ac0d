import { createContext, use, useEffect, useMemo, useRef, useState, type ReactNode } from "react";
import type { CommentRow } from "../../api/client";
import { t, visible } from "../../lib/t";
import { byLine, isOpen, standsBelow, suggestion, type Note, type Writing } from "./notes";
import { ThreadCard, type Doing } from "./ThreadCard";

/** What is said of a revision, and what somebody is about to say. */
export interface Discussion extends Doing {
  /** Notes can be gathered here and sent with a decision. */
  waits: boolean;
  threads: CommentRow[];
  notes: Note[];
  setNotes: (notes: Note[]) => void;
  /** Gathers a note here. */
  addNote: (writing: Writing, text: string) => void;
  writing: Writing | null;
  setWriting: (writing: Writing | null) => void;
  /** Posts a comment at once. Gives whether it was. */
  post: (writing: Writing, text: string) => Promise<boolean>;
}

const Context = createContext<(Discussion & { places: ReturnType<typeof byLine> }) | null>(null);

export function DiscussionProvider({ value, children }: { value: Discussion; children: ReactNode }) {
  const places = useMemo(() => byLine(value.threads, value.lines), [value.threads, value.lines]);
  const all = useMemo(() => ({ ...value, places }), [value, places]);
  return <Context value={all}>{children}</Context>;
}

/** What is said of these lines, below them; of the whole, if there are none. */
export function Below({ first = null, last = null }: { first?: number | null; last?: number | null }): ReactNode {
  const discussion = use(Context);
  if (!discussion) return null;
  const { places, notes, lines, writing, setWriting } = discussion;
  const isHere = (line: number | null) => (first === null || last === null ? line === null : line !== null && first <= line && line <= last);
  const threads = [...places].flatMap(([line, threads]) => (isHere(line) ? threads : []));
  const here = notes.flatMap((note, place) => (isHere(standsBelow(note.last ?? note.line, lines)) ? [{ note, place }] : []));
  // It stays where it was begun: to move it would be to begin it anew.
  const writes = writing && isHere(standsBelow(writing.line, lines)) ? writing : null;
  if (threads.length === 0 && here.length === 0 && !writes) return null;
  return (
    <div className="thread-place my-2 space-y-2">
      {threads.map((thread) => <ThreadCard key={thread.number} thread={thread} doing={discussion} />)}
      {here.map(({ note, place }) => <NoteCard key={note.id ?? place} note={note} place={place} discussion={discussion} />)}
      {writes && <Composer key={writes.line} writing={writes} discussion={discussion} onClose={() => setWriting(null)} />}
    </div>
  );
}

/** A note that was not sent, where it will stand. */
function NoteCard({ note, place, discussion }: { note: Note; place: number; discussion: Discussion }) {
  const [text, setText] = useState<string | null>(null);
  const { notes, setNotes } = discussion;
  const change = (next: string) => {
    setNotes(notes.map((other, at) => (at === place ? { ...other, text: next } : other)));
    setText(null);
  };
  return (
    <div className="rounded-lg bg-wait-tint px-3 py-2 text-sm" data-testid="note">
      <div className="flex items-center gap-2">
        <span className="text-wait">{note.line === null ? t("Your note, not sent yet") : t("Your note on {lines}, not sent yet", { lines: linesOf(note.line, note.last) })}</span>
        <span className="flex-1" />
        {text === null && <button type="button" className="button quiet small" onClick={() => setText(note.text)}>{t("Edit")}</button>}
        <button type="button" className="button quiet small" aria-label={t("Remove this note")} onClick={() => setNotes(notes.filter((_, other) => other !== place))}>✕</button>
      </div>
      {text === null ? <p className="whitespace-pre-wrap [overflow-wrap:anywhere]">{visible(note.text)}</p> : <Editor label={t("Your note")} text={text} setText={setText} onSave={async () => change(text.trim())} onClose={() => setText(null)} save={t("Save")} />}
    </div>
  );
}

/** Lines, as people say them. */
export const linesOf = (line: number, last?: number | null): string => (last && last > line ? t("lines {line} to {last}", { line, last }) : t("line {line}", { line }));

/** Text that is being written, with what saves it and what gives it up. */
export function Editor({ label, text, setText, onSave, onClose, save, children }: { label: string; text: string; setText: (text: string) => void; onSave: () => Promise<void>; onClose: () => void; save: string; children?: ReactNode }) {
  const [busy, setBusy] = useState(false);
  // Once: whoever presses twice means it once.
  const once = () => {
    if (busy || !text.trim()) return;
    setBusy(true);
    void onSave().finally(() => setBusy(false));
  };
  return (
    <>
      <textarea
        autoFocus
        className="field"
        rows={3}
        value={text}
        aria-label={label}
        placeholder={t("What should change, or what do you want to know?")}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          // The same keys decide outside of a text.
          if (event.key === "Escape" || event.key === "Enter") event.stopPropagation();
          if (event.key === "Escape") onClose();
          if (event.key === "Enter" && (event.metaKey || event.ctrlKey)) once();
        }}
      />
      <div className="mt-2 flex flex-wrap justify-end gap-2">
        {children}
        <button type="button" className="button small" onClick={onClose}>{t("Cancel")}</button>
        <button type="button" className="button small primary" disabled={!text.trim() || busy} onClick={once}>{save}</button>
      </div>
    </>
  );
}

/** What a person has to say to lines, or to all of it. */
function Composer({ writing, discussion, onClose }: { writing: Writing; discussion: Discussion; onClose: () => void }) {
  const { lines, waits, addNote, setWriting, post } = discussion;
  const { line, last, text = "" } = writing;
  const setText = (text: string) => setWriting({ ...writing, text });
  const [typed, setTyped] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const place = useRef<HTMLFormElement>(null);
  // Whoever gives up is where they were.
  const before = useRef(document.activeElement as HTMLElement | null);
  useEffect(() => {
    void place.current?.scrollIntoView({ block: "nearest" });
  }, []);
  const close = () => {
    onClose();
    if (before.current?.isConnected) before.current.focus();
  };
  const keep = (text: string) => {
    addNote(writing, text);
    close();
  };
  const postNow = async () => {
    setBusy(true);
    const isDone = await post(writing, text.trim());
    setBusy(false);
    if (isDone) close();
  };
  return (
    <form ref={place} className="rounded-lg border border-line bg-raised p-3 text-sm" aria-label={line === null ? t("Comment on the plan") : t("Comment on {lines}", { lines: linesOf(line, last) })} onSubmit={(event) => event.preventDefault()} onKeyDown={(event) => event.key === "Enter" && event.stopPropagation()}>
      <div className="mb-2 flex flex-wrap items-center gap-2 text-soft">
        {line === null ? t("On the whole plan") : (
          <label className="flex items-center gap-1">
            {t("Line {line} to", { line })}
            <input type="number" className="field !w-20 !py-0.5" min={line} max={lines.length} value={typed ?? last ?? line} aria-label={t("Last line")} onBlur={() => setTyped(null)} onChange={(event) => {
              setTyped(event.target.value);
              const to = Number(event.target.value);
              if (Number.isInteger(to) && to <= lines.length) setWriting({ line, ...(to > line ? { last: to } : {}), text });
            }} />
          </label>
        )}
        <span className="flex-1" />
        {line !== null && <button type="button" className="button quiet small" onClick={() => setText(`${text}${text && !text.endsWith("\n") ? "\n" : ""}${suggestion(lines.slice(line - 1, last ?? line))}`)}>{t("Suggest other words")}</button>}
        {line !== null && waits && <button type="button" className="button quiet small" onClick={() => keep(t("Leave this step out."))}>{t("Drop this step")}</button>}
      </div>
      <Editor label={t("Your note")} text={text} setText={setText} onSave={async () => (waits ? keep(text.trim()) : postNow())} onClose={close} save={waits ? t("Add note") : t("Comment now")}>
        {waits && <button type="button" className="button small" title={t("Everybody sees it at once; the author gets it with the next request for changes")} disabled={!text.trim() || busy} onClick={() => void postNow()}>{t("Comment now")}</button>}
      </Editor>
    </form>
  );
}

/** The way to each thread that is open, and to each note that was not sent. */
export function OpenThreads({ threads, notes, onGo }: { threads: CommentRow[]; notes: Note[]; onGo: (line: number | null) => void }) {
  const open = threads.filter(isOpen);
  if (open.length + notes.length === 0) return null;
  const entries = [
    ...open.map((thread) => ({ key: `thread-${thread.number}`, line: thread.place?.lastLine ?? null, text: thread.text, by: thread.by })),
    ...notes.map((note, at) => ({ key: `note-${at}`, line: note.last ?? note.line, text: note.text, by: t("not sent") })),
  ].sort((left, right) => (left.line ?? Infinity) - (right.line ?? Infinity));
  return (
    <details className="mb-3 text-sm" data-testid="open-threads">
      <summary className="cursor-pointer text-soft">{t("Open comments: {n}", { n: entries.length })}</summary>
      <ol className="mt-1 border-l border-line">
        {entries.map(({ key, line, text, by }) => (
          <li key={key}>
            <button type="button" className="flex w-full gap-2 rounded px-2 py-0.5 text-left hover:bg-sunken" onClick={() => onGo(line)}>
              <span className="w-16 shrink-0 text-soft">{line === null ? t("the whole") : t("line {line}", { line })}</span>
              <span className="min-w-0 flex-1 truncate">{visible(text.split("\n")[0] ?? "")}</span>
              <span className="text-soft">{visible(by)}</span>
            </button>
          </li>
        ))}
      </ol>
    </details>
  );
}

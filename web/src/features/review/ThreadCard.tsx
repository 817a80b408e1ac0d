import { useState } from "react";
import type { CommentRow, Schemas } from "../../api/client";
import { t, visible } from "../../lib/t";
import { Chip } from "../../ui/basics";
import { Ago } from "../../ui/Time";
import { Editor, linesOf } from "./Discussion";
import { readSuggestion, renumbered } from "./notes";

/** What can be done to a thread. */
export interface Doing {
  /** Who looks. */
  me: string;
  /** The revision on the screen, by its number, and its lines. */
  revision: number;
  lines: string[];
  reply: (number: number, text: string) => Promise<boolean>;
  edit: (number: number, text: string) => Promise<boolean>;
  resolve: (number: number, resolved: boolean) => Promise<boolean>;
  /** Makes a revision with other lines in the place of these; nothing, where the text cannot be edited. */
  apply: ((thread: CommentRow, lines: string[]) => Promise<void>) | null;
}

const TONES: Record<string, string> = { posted: "wait", open: "wait", declined: "bad" };

/** A comment with what followed on it. One that is settled is folded. */
export function ThreadCard({ thread, doing }: { thread: CommentRow; doing: Doing }) {
  const [reply, setReply] = useState<string | null>(null);
  const { number, place, status } = thread;
  const words = wordsOf(thread);
  const head = (
    <>
      <span className="font-medium">{visible(thread.by)}</span>
      <span className="text-soft">{thread.line ? linesOf(thread.line, thread.lastLine) : thread.step ? t("step {step}", { step: thread.step }) : t("on the whole")}{place?.fate === "same" ? "" : t(" of rev {n}", { n: thread.revision })}</span>
      <Chip tone={TONES[status]}>{words}</Chip>
      {place?.fate === "removed" && <span className="text-soft">{t("The text it was about is gone.")}</span>}
      {place?.fate === "changed" && <span className="text-soft">{t("The text has changed since.")}</span>}
    </>
  );
  const body = (
    <>
      <Entry number={number} text={thread.text} isEdited={thread.isEdited} canEdit={thread.by === doing.me && !thread.isSent} thread={thread} doing={doing} />
      {thread.replies.map((row, at) => <Reply key={at} row={row} thread={thread} doing={doing} />)}
      {reply === null ? (
        <div className="mt-1 flex gap-2">
          <button type="button" className="button quiet small" onClick={() => setReply("")}>{t("Reply")}</button>
          <button type="button" className="button quiet small" onClick={() => void doing.resolve(number, status !== "resolved")}>{status === "resolved" ? t("Open again") : t("Resolve")}</button>
        </div>
      ) : (
        <div className="mt-2"><Editor label={t("Your reply")} text={reply} setText={setReply} onSave={async () => { if (await doing.reply(number, reply.trim())) setReply(null); }} onClose={() => setReply(null)} save={t("Reply")} /></div>
      )}
    </>
  );
  return (
    <section className="rounded-lg border border-line bg-raised px-3 py-2 text-sm" aria-label={t("Comment {n}", { n: number })} data-testid="thread" data-thread={number}>
      {status === "resolved" ? (
        <details>
          <summary className="flex cursor-pointer flex-wrap items-center gap-x-2">{head}</summary>
          {body}
        </details>
      ) : (
        <>
          <div className="flex flex-wrap items-center gap-x-2">{head}</div>
          {body}
        </>
      )}
    </section>
  );
}

/** Where a thread stands. That it was addressed is its author's word. */
function wordsOf({ status, answeredIn, resolved }: CommentRow): string {
  switch (status) {
    case "posted":
      return t("not sent to the author yet");
    case "open":
      return t("waits for an answer");
    case "addressed":
      return t("addressed in {n}, says its author", { n: answeredIn ?? "" });
    case "declined":
      return t("declined in {n}", { n: answeredIn ?? "" });
    default:
      return t("resolved by {by}", { by: visible(resolved ?? "") });
  }
}

/** What a person wrote, with the words it suggests; its author can change it until it is sent. */
function Entry({ number, text, isEdited, canEdit, thread, doing }: { number: number; text: string; isEdited: boolean; canEdit: boolean; thread: CommentRow; doing: Doing }) {
  const [edited, setEdited] = useState<string | null>(null);
  if (edited !== null) return <Editor label={t("Your comment")} text={edited} setText={setEdited} onSave={async () => { if (await doing.edit(number, edited.trim())) setEdited(null); }} onClose={() => setEdited(null)} save={t("Save")} />;
  const { words, lines } = readSuggestion(text);
  return (
    <div>
      {words && <p className="whitespace-pre-wrap [overflow-wrap:anywhere]">{visible(words)}</p>}
      {lines && <Suggestion lines={lines} thread={thread} doing={doing} />}
      {(isEdited || canEdit) && (
        <p className="flex items-center gap-2 text-xs text-soft">
          {isEdited && t("edited")}
          {canEdit && <button type="button" className="button quiet small !min-h-6" onClick={() => setEdited(text)}>{t("Edit")}</button>}
        </p>
      )}
    </div>
  );
}

function Reply({ row, thread, doing }: { row: Schemas["ReplyRowDto"]; thread: CommentRow; doing: Doing }) {
  const isAuthor = row.by === null || row.by === undefined;
  return (
    <div className={`mt-2 border-l-2 pl-2 ${isAuthor ? "border-accent" : "border-line"}`}>
      <p className="flex flex-wrap gap-x-2 text-soft">
        <span className="font-medium text-ink">{isAuthor ? t("The author") : visible(row.by ?? "")}</span>
        <span>{t("in rev {n}", { n: row.revision })}</span>
        <Ago at={row.at} />
      </p>
      {row.text ? <Entry number={row.number ?? 0} text={row.text} isEdited={row.isEdited} canEdit={row.by === doing.me && !row.isSent} thread={thread} doing={doing} /> : <p className="text-soft">{t("addressed")}</p>}
    </div>
  );
}

/** Other lines for those a comment is about. */
function Suggestion({ lines: suggested, thread, doing }: { lines: string[]; thread: CommentRow; doing: Doing }) {
  const [busy, setBusy] = useState(false);
  const { place } = thread;
  // The threads and the text are read one after the other: what was placed in another revision is not applied to this one.
  const old = place && place.fate === "same" && place.revision === doing.revision ? doing.lines.slice(place.line - 1, place.lastLine) : null;
  const lines = old ? renumbered(old, suggested) : suggested;
  const { apply } = doing;
  return (
    <div className="my-1 rounded border border-line font-mono text-[0.8125rem]" data-testid="suggestion">
      {old?.map((line, at) => <p key={at} className="whitespace-pre-wrap bg-bad-tint px-2 [overflow-wrap:anywhere]"><span aria-hidden="true" className="text-bad">− </span><span className="sr-only">{t("removed:")}</span>{visible(line)}</p>)}
      {lines.map((line, at) => <p key={at} className="whitespace-pre-wrap bg-good-tint px-2 [overflow-wrap:anywhere]"><span aria-hidden="true" className="text-good">+ </span><span className="sr-only">{t("added:")}</span>{visible(line)}</p>)}
      {old && apply && thread.status !== "resolved" && (
        <p className="border-t border-line p-1 font-sans">
          <button type="button" className="button small" disabled={busy} onClick={() => { setBusy(true); void apply(thread, lines).finally(() => setBusy(false)); }}>{t("Apply: a revision by you")}</button>
        </p>
      )}
    </div>
  );
}

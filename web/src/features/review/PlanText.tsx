import { useQuery } from "@tanstack/react-query";
import { memo, useState } from "react";
import type { Diff, Revision } from "../../api/client";
import { diffQuery } from "../../api/queries";
import { isRecord } from "../../lib/storage";
import { t, visible } from "../../lib/t";
import { Failed } from "../../ui/basics";
import { Line } from "./Document";
import type { RevisionRef } from "./revision";

/** A note that was not sent yet. */
export interface Note {
  line: number | null;
  text: string;
}
/** Whether a stored value is a list of notes. */
export const areNotes = (value: unknown): value is Note[] =>
  Array.isArray(value) && value.every((note) => isRecord(note) && typeof note.text === "string" && (note.line === null || typeof note.line === "number"));

interface LineProps {
  waits: boolean;
  notes: Note[];
  onComment: (line: number) => void;
}

/** One row: its number, its text, and a place to comment. */
const Row = memo(function Row({ number, text, change, waits, notes, onComment }: LineProps & { number: number | null; text: string; change?: string }) {
  const tone = change === "added" ? "bg-good-tint" : change === "removed" ? "bg-bad-tint line-through decoration-bad/60" : "";
  const noted = number !== null && notes.some((note) => note.line === number);
  return (
    <div className={`group flex items-start gap-2 rounded px-1 ${tone}`} data-change={change} data-line={number ?? undefined} tabIndex={number === null ? undefined : -1}>
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
});

/** All of a revision, line by line. */
export function Lines({ revision, ...props }: LineProps & { revision: Revision }) {
  return (
    <div className="leading-relaxed" data-testid="plan-text">
      {revision.markdown.replace(/\n$/, "").split("\n").map((text, at) => (
        <Row key={at} number={at + 1} text={text} {...props} />
      ))}
    </div>
  );
}

/** What became of each step or section. Numbers that only moved do not count. What is the same is folded, unless this
 * person has not seen it. */
export function Changes({ diff, markdown, isUnseen, ...props }: LineProps & { diff: Diff; markdown: string; isUnseen?: (line: number) => boolean }) {
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
  const isFolded = ({ part, rows }: (typeof numbered)[number]) => part.change === "same" && !rows.some(({ number }) => number !== null && isUnseen?.(number));
  const folded = numbered.filter(isFolded).length;
  const counts = { added: 0, removed: 0, changed: 0, same: 0 } as Record<string, number>;
  for (const part of diff.parts) counts[part.change] = (counts[part.change] ?? 0) + 1;
  return (
    <div data-testid="changes">
      <p className="mb-2 text-sm text-soft">
        {t("Since {since}:", { since: visible(diff.since) })}{" "}
        {[counts.added && t("{n} added", { n: counts.added }), counts.changed && t("{n} changed", { n: counts.changed }), counts.removed && t("{n} removed", { n: counts.removed })].filter(Boolean).join(" · ") || t("nothing but numbers changed")}
      </p>
      <div className="leading-relaxed">
        {numbered.map((one, at) =>
          isFolded(one) && !all ? null : (
            <div key={at} data-part={one.part.change}>
              {one.rows.map(({ row, number }, place) => (
                <Row key={place} number={number} text={row.text} change={one.part.change === "same" ? "same" : row.change} {...props} />
              ))}
            </div>
          ),
        )}
      </div>
      {folded > 0 && (
        <button type="button" className="button quiet small mt-2" aria-expanded={all} onClick={() => setAll(!all)}>
          {all ? t("Hide what is unchanged") : t("{n} unchanged hidden: show", { n: folded })}
        </button>
      )}
    </div>
  );
}

/** Any two revisions, side by side. */
export function History({ id, at }: { id: string; at: RevisionRef }) {
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

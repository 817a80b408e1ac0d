import { useQuery } from "@tanstack/react-query";
import { memo, useState } from "react";
import type { Diff, Revision } from "../../api/client";
import { diffQuery } from "../../api/queries";
import { t, visible } from "../../lib/t";
import { Failed } from "../../ui/basics";
import { useMedia } from "../../lib/media";
import { Line } from "./Document";
import { CommentButton } from "./CommentButton";
import { Below } from "./Discussion";
import type { RevisionRef } from "./revision";
import { beside, joined, marked, type Piece } from "../../lib/difference";
import { Words } from "../common/Words";

interface LineProps {
  mayComment: boolean;
  onComment: (line: number) => void;
}

/** One row: its number, its text, and a place to comment. */
const Row = memo(function Row({ number, text, change, pieces, mayComment, onComment }: LineProps & { number: number | null; text: string; change?: string; pieces?: Piece[] }) {
  const tone = change === "added" ? "bg-good-tint" : change === "removed" ? "bg-bad-tint" : "";
  return (
    <>
    <div className={`group flex items-start gap-2 rounded px-1 ${tone}`} data-change={change} data-line={number ?? undefined} tabIndex={number === null ? undefined : -1}>
      <span aria-hidden="true" className={`w-7 shrink-0 select-none pt-0.5 text-right font-mono text-xs ${change === "added" ? "text-good" : change === "removed" ? "text-bad" : "text-soft"}`}>
        {change === "added" ? "+" : change === "removed" ? "−" : ""}
        {number ?? ""}
      </span>
      {change && change !== "same" && <span className="sr-only">{change === "added" ? t("added:") : t("removed:")}</span>}
      <span className="min-w-0 flex-1 whitespace-pre-wrap [overflow-wrap:anywhere]">{pieces ? <Words pieces={pieces} change={change} /> : change === "removed" ? <del className="no-underline"><Line text={text} /></del> : <Line text={text} />}</span>
      {mayComment && number !== null && text.trim() && <CommentButton line={number} onComment={onComment} />}
    </div>
    {number !== null && <Below first={number} last={number} />}
    </>
  );
});

/** Every character of a revision, line by line. */
export function Source({ revision, ...props }: LineProps & { revision: Revision }) {
  return (
    <div className="font-mono text-[0.8125rem] leading-relaxed" data-testid="plan-text">
      {revision.markdown.replace(/\n$/, "").split("\n").map((text, at) => (
        <Row key={at} number={at + 1} text={text} {...props} />
      ))}
    </div>
  );
}

/** What became of each step or section. Numbers that only moved do not count. What is the same is folded, unless this
 * person has not seen it. */
export function Changes({ diff, markdown, isUnseen, wide, ...props }: LineProps & { diff: Diff; markdown: string; wide: boolean; isUnseen?: (line: number) => boolean }) {
  const [all, setAll] = useState(false);
  const isBeside = useMedia("(min-width: 1200px)") && wide;
  const lines = markdown.split("\n");
  let place = 0;
  const numbered = joined(diff.parts).map((part) => ({
    part,
    rows: marked(part.change === "same" ? part.rows.map((row) => ({ ...row, change: "same" })) : part.rows).map(({ row, pieces }) => {
      if (row.change === "removed") return { row, pieces, number: null };
      const found = lines.indexOf(row.text, place);
      if (found >= 0) place = found + 1;
      return { row, pieces, number: found >= 0 ? found + 1 : null };
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
            <div key={at}>
              {isBeside
                ? beside(one.rows).map(([left, right], place) => (
                    <div key={place} className="grid grid-cols-2 gap-3">
                      <div className="min-w-0" aria-hidden={left?.row.change === "same"}>{left && <Row number={null} text={left.row.text} change={left.row.change} pieces={left.pieces} {...props} />}</div>
                      <div className="min-w-0">{right && <Row number={right.number} text={right.row.text} change={right.row.change} pieces={right.pieces} {...props} />}</div>
                    </div>
                  ))
                : one.rows.map(({ row, pieces, number }, place) => <Row key={place} number={number} text={row.text} change={row.change} pieces={pieces} {...props} />)}
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

/** Any two revisions, and what differs between them. */
export function History({ id, at, wide }: { id: string; at: RevisionRef; wide: boolean }) {
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
      {diff.data && <Changes wide={wide} diff={diff.data} markdown="" mayComment={false} onComment={() => {}} />}
      {diff.error && <Failed problem={diff.error} />}
    </div>
  );
}

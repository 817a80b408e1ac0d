import { useNavigate } from "@tanstack/react-router";
import { useCallback, useMemo, type MouseEvent } from "react";
import type { Revision } from "../../api/client";
import { t } from "../../lib/t";
import { PlanMarkdown, readPlan } from "../../markdown/PlanMarkdown";
import type { Span } from "../../markdown/lines";
import { CommentButton } from "./CommentButton";
import { Below } from "./Discussion";
import { rowOf } from "./rows";

/** A revision as what its Markdown means; each thing has its line, whose address leads back to it, and a place to comment. */
export function Rendered({ id, revision, mayComment, onComment }: { id: string; revision: Revision; mayComment: boolean; onComment: (line: number) => void }) {
  const plan = useMemo(() => readPlan(revision.markdown), [revision.markdown]);
  const navigate = useNavigate();
  const frame = useCallback(
    ({ first, last }: Span) => ({
      attributes: { "data-line": first, "data-last-line": last, tabIndex: -1 },
      margin: <a className="plan-number" href={addressOf(id, revision.number, first)} tabIndex={-1} aria-label={t("Line {n}", { n: first })}>{first}</a>,
      tools: mayComment ? <CommentButton line={first} onComment={onComment} /> : null,
      below: <Below first={first} last={last} />,
    }),
    [id, revision.number, mayComment, onComment],
  );
  /** The number of a line leads to its address in the review, without loading the page again. */
  const follow = (event: MouseEvent) => {
    const link = (event.target as HTMLElement).closest<HTMLAnchorElement>("a.plan-number");
    if (!link || event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    void navigate({ to: "/s/$id/plan", params: { id }, search: { rev: revision.number }, hash: link.hash.slice(1), replace: true, hashScrollIntoView: false });
  };
  return (
    <div data-testid="plan-rendered" onClick={follow}>
      <Outline headings={plan.headings} />
      <PlanMarkdown plan={plan} frame={frame} />
    </div>
  );
}

const addressOf = (id: string, revision: number, line: number) => `/s/${encodeURIComponent(id)}/plan?rev=${revision}#L${line}`;

/** The headings of a long plan, each a way to its place. */
function Outline({ headings }: { headings: ReturnType<typeof readPlan>["headings"] }) {
  if (headings.length < 3) return null;
  const go = (event: MouseEvent, line: number) => {
    const row = rowOf((event.target as HTMLElement).closest<HTMLElement>("[role=region]"), line);
    row?.scrollIntoView({ block: "start" });
    row?.focus({ preventScroll: true });
  };
  return (
    <details className="mb-3 text-sm" data-testid="outline">
      <summary className="cursor-pointer text-soft">{t("Outline: {n} headings", { n: headings.length })}</summary>
      <ol className="mt-1 border-l border-line">
        {headings.map(({ line, depth, words }) => (
          <li key={line} className={["", "", "pl-3", "pl-6", "pl-9", "pl-12", "pl-15"][depth]}>
            <button type="button" className="w-full rounded px-2 py-0.5 text-left hover:bg-sunken [overflow-wrap:anywhere]" onClick={(event) => go(event, line)}>{words}</button>
          </li>
        ))}
      </ol>
    </details>
  );
}

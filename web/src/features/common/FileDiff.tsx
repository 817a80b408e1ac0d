import type { Schemas } from "../../api/client";
import { marked } from "../../lib/difference";
import { t, visible } from "../../lib/t";
import { readUnified } from "../../lib/unified";
import { Words } from "./Words";

/** What became of a file, as an event or a receipt tells it. */
export type FileChange = Pick<Schemas["FileRowDto"], "path" | "before" | "after" | "diff">;

/** In a word: new, changed, or the same as before. */
export const fateOf = ({ before, after }: FileChange): string => (!before ? t("new") : before === after ? t("unchanged") : t("changed"));

/** What became of a file, line by line: what was removed before what was added, with the words of a changed line marked. */
export function FileDiff({ change }: { change: FileChange }) {
  const { path, before, after, diff } = change;
  return (
    <figure className="overflow-hidden rounded border border-line" data-testid="file-diff">
      <figcaption className="flex flex-wrap items-baseline gap-x-2 border-b border-line bg-sunken px-2 py-1 text-xs">
        <code className="font-semibold [overflow-wrap:anywhere]">{visible(path)}</code>
        <span>{fateOf(change)}</span>
        <span className="font-mono text-soft" title={`${before ?? t("no file")} → ${after}`}>{before ? before.slice(0, 8) : t("no file")} → {after.slice(0, 8)}</span>
      </figcaption>
      {diff == null ? (
        <p className="px-2 py-1 text-sm text-soft">{t("The lines are not recorded: what differs is too long, or the file held no text.")}</p>
      ) : (
        <div tabIndex={0} role="group" aria-label={t("What changed in {path}", { path: visible(path) })} className="max-h-96 overflow-auto font-mono text-xs leading-relaxed">
          {readUnified(diff).map((hunk, at) => (
            <div key={at}>
              {at > 0 && <p aria-hidden="true" className="border-y border-line bg-sunken px-2 text-soft">⋯</p>}
              {marked(hunk).map(({ row, pieces }, place) => (
                <p key={place} className={`flex gap-2 px-2 ${{ removed: "bg-bad-tint", added: "bg-good-tint" }[row.change as string] ?? ""}`}>
                  <span aria-hidden="true" className="w-8 shrink-0 select-none text-right text-soft">{row.number ?? ""}</span>
                  <span aria-hidden="true" className={`w-2 shrink-0 select-none ${row.change === "removed" ? "text-bad" : "text-good"}`}>{{ removed: "−", added: "+" }[row.change as string] ?? " "}</span>
                  {row.change !== "same" && <span className="sr-only">{row.change === "removed" ? t("removed:") : t("added:")}</span>}
                  <span className="min-w-0 flex-1 whitespace-pre-wrap [overflow-wrap:anywhere]">{pieces ? <Words pieces={pieces} change={row.change} /> : visible(row.text)}</span>
                </p>
              ))}
            </div>
          ))}
        </div>
      )}
    </figure>
  );
}

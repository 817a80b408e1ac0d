import type { ReactNode } from "react";
import { t } from "../../lib/t";

/** The way to comment on a line. */
export function CommentButton({ line, onComment }: { line: number; onComment: (line: number) => void }): ReactNode {
  return (
    <button type="button" className="button quiet small !min-h-6 shrink-0 !px-1.5 opacity-0 focus:opacity-100 group-hover:opacity-100 max-md:opacity-100" aria-label={t("Comment on line {n}", { n: line })} onClick={() => onComment(line)}>
      ✎
    </button>
  );
}

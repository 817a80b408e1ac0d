import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { SessionRow } from "../../api/client";
import { meQuery } from "../../api/queries";
import { t } from "../../lib/t";
import { waitingWords } from "../../session/waiting";
import { verdicts } from "./verdicts";

/** What a session waits for, in one line, with what resolves it: a button, or the place where it can be read first. */
export function WaitingLine({ row }: { row: SessionRow }) {
  const { data: me } = useQuery(meQuery);
  const { sessionId: id, waiting } = row;
  if (!waiting) return null;
  const button = (words: string, act: () => Promise<unknown>) => me?.decides && <button type="button" className="button small" onClick={() => void act()}>{words}</button>;
  return (
    <p className="flex w-full flex-wrap items-center gap-x-3 gap-y-1 text-sm text-wait" data-testid="waiting-line">
      <span><span aria-hidden="true">◆ </span>{waitingWords(waiting)}</span>
      {waiting === "resume" && button(t("Resume"), () => verdicts.resume(id))}
      {waiting === "run" && button(t("Resume the run"), () => verdicts.resumeRuns(id))}
      {waiting === "limit" && <Link to="/s/$id" params={{ id }} className="button small">{t("Open")}</Link>}
      {/* Nothing that must be read is decided from a list. */}
      {(waiting === "decision" || waiting === "permission" || waiting === "doubt") && <Link to="/s/$id/plan" params={{ id }} className="button small">{waiting === "decision" ? t("Review") : t("Read and decide")}</Link>}
    </p>
  );
}

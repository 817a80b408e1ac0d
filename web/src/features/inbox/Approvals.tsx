import { useQueries, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { Session, SessionRow } from "../../api/client";
import { approvalsQuery, controlQuery, decisionsQuery, meQuery } from "../../api/queries";
import { AskCard, Doubts, LimitCard } from "../permissions/Asks";
import { Ago } from "../../ui/Time";
import { Chip, Empty, Failed, Skeleton } from "../../ui/basics";
import { snooze, useSnoozed } from "./snooze";
import { verdicts } from "../common/verdicts";
import { clock, t, visible } from "../../lib/t";

/** What a thing that waits is called while it is hidden: another revision, or another call, is another thing. */
const waitKey = (row: SessionRow, session: Session | undefined) => `${row.sessionId}/${row.waiting}/${session?.ask?.digest ?? session?.plan?.digest ?? ""}`;

/** The ones that ask to be seen now, and how many are hidden. What they wait for is only looked at where one was hidden,
 * and until that is known nothing flashes up. */
export function useWaiting(): { shown: SessionRow[]; hidden: number } {
  const { data = [] } = useQuery(approvalsQuery);
  const isSnoozed = useSnoozed();
  const perhaps = data.filter((row) => isSnoozed.some(`${row.sessionId}/${row.waiting}/`));
  const sessions = useQueries({ queries: perhaps.map((row) => controlQuery(row.sessionId)) });
  const hidden = perhaps.filter((row, at) => isSnoozed.exactly(waitKey(row, sessions[at]?.data)));
  const unknown = perhaps.filter((_, at) => sessions[at]?.isPending);
  const kept = new Set([...hidden, ...unknown]);
  return { shown: data.filter((row) => !kept.has(row)), hidden: hidden.length };
}

/** Everything that waits for a person, in every session. */
export function Approvals({ onPick }: { onPick?: () => void }) {
  const approvals = useQuery(approvalsQuery);
  const decided = useQuery(decisionsQuery);
  const { data: me } = useQuery(meQuery);
  const { shown, hidden } = useWaiting();
  if (approvals.isPending) return <Skeleton lines={4} />;
  if (approvals.error) return <Failed problem={approvals.error} retry={() => void approvals.refetch()} />;
  return (
    <div className="mx-auto w-full max-w-3xl space-y-3 p-4" data-testid="approvals">
      <h1 className="text-lg font-semibold">{t("Waiting for you")}</h1>
      {shown.length === 0 && <Empty title={t("Nothing waits for you.")} />}
      {shown.map((row) => <Card key={row.sessionId} row={row} decides={me?.decides ?? false} onPick={onPick} />)}
      {hidden > 0 && <p className="text-sm text-soft">{t("{n} hidden on this device for a while; still waiting.", { n: hidden })}</p>}
      <details className="card p-4" open={(decided.data?.rows.length ?? 0) > 0 && shown.length === 0}>
        <summary className="cursor-pointer font-medium">{t("Decided today: {n}", { n: `${decided.data?.rows.length ?? 0}${decided.data?.more ? "+" : ""}` })}</summary>
        <ul className="mt-2 space-y-1 text-sm" data-testid="decided">
          {decided.data?.rows.slice(0, 50).map((row, at) => (
            <li key={at} className="flex flex-wrap gap-x-2">
              <time className="font-mono text-soft">{clock(row.at)}</time>
              <span className="font-medium">{row.verdict.replace(/, record .*/, "")}</span>
              <span className="text-soft">{row.kind.replaceAll("_", " ")} · {visible(row.title || row.sessionId)} · {row.who} · {row.surface.split(" ")[0]}</span>
            </li>
          ))}
        </ul>
      </details>
    </div>
  );
}

/** What waits, in a few words. A plan's own status only where the plan is what waits: the last one may be long done. */
function waitWords(row: SessionRow, session: Session | undefined): string {
  const plan = session?.active ? session.plan : null;
  if (row.waiting === "permission") return t("a call waits for permission");
  if (row.waiting === "doubt") return t("a call is in doubt");
  if (row.waiting === "run") return t("a run is paused");
  if (row.waiting === "limit") return t("a limit is reached");
  return plan ? `${t(plan.status)}${plan.revision ? ` · ${t("rev {n}", { n: plan.revision })}` : ""}` : t("needs you");
}

/** One thing that waits. */
function Card({ row, decides, onPick }: { row: SessionRow; decides: boolean; onPick?: () => void }) {
  const { data: session } = useQuery(controlQuery(row.sessionId));
  return (
    <article className="card p-4" data-testid="approval" data-session={row.sessionId}>
      <div className="flex flex-wrap items-baseline gap-2">
        <h2 className="min-w-0 flex-1 truncate font-semibold">{visible(row.title || row.sessionId)}</h2>
        <Chip tone="wait">{waitWords(row, session)}</Chip>
        <span className="text-xs text-soft"><Ago at={row.updated} /></span>
      </div>
      <div className="mt-2 space-y-2">
        {session?.ask ? (
          <AskCard id={row.sessionId} ask={session.ask} decides={decides} />
        ) : session?.doubts.length ? (
          <Doubts id={row.sessionId} session={session} decides={decides} />
        ) : session?.limit ? (
          <LimitCard id={row.sessionId} limit={session.limit} decides={decides} />
        ) : row.waiting === "run" ? (
          <div className="flex flex-wrap gap-2">
            <p className="w-full text-sm text-soft">{t("A run is paused and asks.")}</p>
            <button type="button" className="button small" onClick={() => void verdicts.resumeRuns(row.sessionId)}>{t("Resume the run")}</button>
            <button type="button" className="button small danger" onClick={() => void verdicts.stopRuns(row.sessionId)}>{t("Turn it off")}</button>
          </div>
        ) : (
          <div>
            <p className="font-medium">{visible(session?.plan?.title ?? "")}</p>
            {session?.plan?.outside && <p className="text-sm">⚠ {visible(session.plan.outside)}</p>}
            <ul className="text-sm text-soft">{session?.plan?.allows.map((words) => <li key={words}>⚠ {visible(words)}</li>)}</ul>
          </div>
        )}
        <div className="flex flex-wrap gap-2">
          <Link to="/s/$id/plan" params={{ id: row.sessionId }} className="button small primary" onClick={onPick}>
            {row.waiting === "decision" ? t("Review rev {n}", { n: session?.plan?.revision ?? "" }) : t("Open")}
          </Link>
          <button type="button" className="button small quiet" disabled={!session} onClick={() => snooze(waitKey(row, session), 60)} title={t("Hides it on this device for an hour. It is not denied.")}>{t("Not now")}</button>
        </div>
      </div>
    </article>
  );
}

import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { Approval } from "../api/client";
import { approvalsQuery, decisionsQuery, meQuery } from "../api/queries";
import { AskCard, Doubts } from "../parts/Asks";
import { Chip, Empty, Failed, Skeleton, toneOf } from "../parts/basics";
import { snooze, useSnoozed } from "../parts/snooze";
import { line } from "../parts/verdicts";
import { ago, clock, t, visible } from "../t";

/** What a thing that waits is called while it is hidden: another revision is another thing. */
export const waitKey = (row: Approval) => `${row.sessionId}/${row.waiting}/${row.session.ask?.digest ?? row.session.plan?.digest ?? ""}`;

/** The ones that ask to be seen now. */
export function useWaiting(): Approval[] {
  const { data = [] } = useQuery(approvalsQuery);
  const isSnoozed = useSnoozed();
  return data.filter((row) => !isSnoozed(waitKey(row)));
}

/** Everything that waits for a person, in every session. */
export function Approvals({ onPick }: { onPick?: () => void }) {
  const approvals = useQuery(approvalsQuery);
  const decided = useQuery(decisionsQuery);
  const { data: me } = useQuery(meQuery);
  const isSnoozed = useSnoozed();
  if (approvals.isPending) return <Skeleton lines={4} />;
  if (approvals.error) return <Failed problem={approvals.error} retry={() => void approvals.refetch()} />;
  const shown = approvals.data.filter((row) => !isSnoozed(waitKey(row)));
  const hidden = approvals.data.length - shown.length;
  return (
    <div className="mx-auto w-full max-w-3xl space-y-3 p-4" data-testid="approvals">
      <h1 className="text-lg font-semibold">{t("Waiting for you")}</h1>
      {shown.length === 0 && <Empty title={t("Nothing waits for you.")} />}
      {shown.map((row) => (
        <article key={row.sessionId} className="card p-4" data-testid="approval" data-session={row.sessionId}>
          <div className="flex flex-wrap items-baseline gap-2">
            <h2 className="min-w-0 flex-1 truncate font-semibold">{visible(row.title || row.sessionId)}</h2>
            {row.session.plan && row.waiting !== "run" && <Chip tone={toneOf(row.session.plan.status)}>{t(row.session.plan.status)}{row.session.plan.revision ? ` · ${t("rev {n}", { n: row.session.plan.revision })}` : ""}</Chip>}
            <span className="text-xs text-soft">{ago(row.updated)}</span>
          </div>
          <div className="mt-2 space-y-2">
            {row.session.ask ? (
              <AskCard id={row.sessionId} ask={row.session.ask} decides={me?.decides ?? false} />
            ) : row.session.doubts.length ? (
              <Doubts id={row.sessionId} session={row.session} decides={me?.decides ?? false} />
            ) : row.waiting === "run" ? (
              <div className="flex flex-wrap gap-2">
                <p className="w-full text-sm text-soft">{t("A run is paused and asks.")}</p>
                <button type="button" className="button small" onClick={() => void line(row.sessionId, "/auto resume")}>{t("Resume the run")}</button>
                <button type="button" className="button small danger" onClick={() => void line(row.sessionId, "/auto off")}>{t("Turn it off")}</button>
              </div>
            ) : (
              <div>
                <p className="font-medium">{visible(row.session.plan?.title ?? "")}</p>
                <ul className="text-sm text-soft">{row.session.plan?.allows.map((words) => <li key={words}>⚠ {visible(words)}</li>)}</ul>
              </div>
            )}
            <div className="flex flex-wrap gap-2">
              <Link to="/s/$id/plan" params={{ id: row.sessionId }} className="button small primary" onClick={onPick}>
                {row.waiting === "decision" ? t("Review rev {n}", { n: row.session.plan?.revision ?? "" }) : t("Open")}
              </Link>
              <button type="button" className="button small quiet" onClick={() => snooze(waitKey(row), 60)} title={t("Hides it on this device for an hour. It is not denied.")}>{t("Not now")}</button>
            </div>
          </div>
        </article>
      ))}
      {hidden > 0 && <p className="text-sm text-soft">{t("{n} hidden on this device for a while; still waiting.", { n: hidden })}</p>}
      <details className="card p-4" open={(decided.data?.length ?? 0) > 0 && shown.length === 0}>
        <summary className="cursor-pointer font-medium">{t("Decided today: {n}", { n: decided.data?.length ?? 0 })}</summary>
        <ul className="mt-2 space-y-1 text-sm" data-testid="decided">
          {decided.data?.slice(0, 50).map((row, at) => (
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

import { useState } from "react";
import type { Ask, Schemas, Session } from "../../api/client";
import { useNow } from "../../lib/now";
import { lasting, t, visible } from "../../lib/t";
import { useReachable } from "../../api/reachable";
import { Dialog } from "../../ui/Dialog";
import { Decisions } from "../common/Decisions";
import { verdicts } from "../common/verdicts";

/** A call that waits for permission: all of it, why it asks, and what each answer covers. */
export function AskCard({ id, ask, decides }: { id: string; ask: Ask; decides: boolean }) {
  const [replan, setReplan] = useState<string | null>(null);
  const reachable = useReachable();
  const left = Date.parse(ask.expires) - useNow(1_000);
  const expired = left <= 0;
  const decide = (permit: "once" | "until_plan_ends" | "deny") => void verdicts.permit(id, ask.digest, permit);
  return (
    <section aria-label={t("A call waits for permission")} className="card border-l-4 border-l-wait p-4" data-testid="ask">
      <div className="flex items-baseline justify-between gap-2">
        <h3 className="font-semibold">
          <span className="font-mono">{visible(ask.tool)}</span> <span className="chip wait">{ask.effect === "read" ? t("reads") : ask.effect === "write" ? t("writes") : t("reaches outside")}</span>
        </h3>
        <span className="text-xs text-soft">{expired ? t("expired: denied") : t("denied by itself in {time}", { time: lasting(left) })}</span>
      </div>
      <p className="mt-1 text-sm text-soft">{visible(ask.why)}</p>
      <pre tabIndex={0} aria-label={t("The call's arguments")} className="my-2 max-h-48 overflow-auto whitespace-pre-wrap rounded bg-sunken p-2 font-mono text-xs [overflow-wrap:anywhere]">{visible(ask.arguments)}</pre>
      {decides ? (
        <div className="flex flex-wrap gap-2">
          <Decisions>
            <button type="button" className="button small primary" disabled={expired} onClick={() => decide("once")}>{t("Once")}</button>
            {ask.pattern && (
              <button type="button" className="button small" disabled={expired} onClick={() => decide("until_plan_ends")} data-testid="rest-of-plan">
                {t("Rest of this plan: {scope}", { scope: visible(ask.pattern) })}
              </button>
            )}
            <button type="button" className="button small danger" disabled={expired} onClick={() => decide("deny")}>{t("Deny")}</button>
            <button type="button" className="button small quiet" disabled={expired} onClick={() => setReplan("")}>{t("Revise the plan…")}</button>
          </Decisions>
        </div>
      ) : (
        <LogInToDecide />
      )}
      <Dialog title={t("What should change?")} open={replan !== null} onClose={() => setReplan(null)}>
        <textarea className="field" rows={4} aria-label={t("What should change?")} value={replan ?? ""} onChange={(event) => setReplan(event.target.value)} />
        <div className="mt-3 flex justify-end gap-2">
          <button type="button" className="button" onClick={() => setReplan(null)}>{t("Cancel")}</button>
          <button type="button" className="button primary" disabled={!reachable || !replan?.trim()} onClick={() => void verdicts.permit(id, ask.digest, "replan", replan ?? "").then(() => setReplan(null))}>{t("Deny and revise")}</button>
        </div>
      </Dialog>
    </section>
  );
}

/** A limit for which a turn waits: which, whose, until when, and what a person can do. */
export function LimitCard({ id, limit, decides }: { id: string; limit: Schemas["LimitDto"]; decides: boolean }) {
  return (
    <section aria-label={t("A limit is reached")} className="card border-l-4 border-l-wait p-4" data-testid="limit">
      <h3 className="font-semibold">{limit.limit === "turns" ? t("Waits for another turn to end") : t("A limit is reached, and the turn waits")}</h3>
      <p className="mt-1 text-sm text-soft [overflow-wrap:anywhere]">{visible(limit.words)}.</p>
      {!limit.raisable && <p className="mt-1 text-sm text-soft">{t("What to do:")} {visible(limit.whatToDo)}.</p>}
      {limit.raisable && (decides ? (
        <div className="mt-2 flex flex-wrap gap-2">
          <Decisions>
            <button type="button" className="button small primary" onClick={() => void verdicts.raiseLimit(id)}>{t("As much again today")}</button>
          </Decisions>
          <button type="button" className="button small" onClick={() => void verdicts.stop(id)}>{t("End the turn")}</button>
        </div>
      ) : (
        <LogInToDecide />
      ))}
    </section>
  );
}

/** Calls whose outcome nobody knows, and what a person can say of each. */
export function Doubts({ id, session, decides }: { id: string; session: Session; decides: boolean }) {
  if (session.doubts.length === 0) return null;
  return (
    <section aria-label={t("Calls in doubt")} className="space-y-2" data-testid="doubts">
      {session.doubts.map((doubt) => (
        <div key={doubt.call} className="card border-l-4 border-l-bad p-4">
          <h3 className="font-semibold">{t("Did this happen?")} <span className="font-mono">{visible(doubt.tool)}</span></h3>
          <p className="text-sm text-soft">{t("The process ended in mid-call. Look, and say what you found; it is not made again before you do.")}</p>
          <pre tabIndex={0} aria-label={t("The call's arguments")} className="my-2 max-h-40 overflow-auto whitespace-pre-wrap rounded bg-sunken p-2 font-mono text-xs [overflow-wrap:anywhere]">{visible(doubt.arguments)}</pre>
          {decides ? (
            <div className="flex flex-wrap gap-2">
              <Decisions>
                <button type="button" className="button small" onClick={() => void verdicts.settle(id, doubt.call, true)}>{t("It happened")}</button>
                <button type="button" className="button small" onClick={() => void verdicts.settle(id, doubt.call, false)}>{t("It did not happen")}</button>
              </Decisions>
            </div>
          ) : (
            <LogInToDecide />
          )}
        </div>
      ))}
    </section>
  );
}

export function LogInToDecide() {
  return (
    <p className="text-sm text-soft">
      {t("You can read and talk here.")}{" "}
      <a className="font-medium text-accent underline" href={`/login?back=${encodeURIComponent(location.pathname)}`}>{t("Log in with the passphrase to decide")}</a>
    </p>
  );
}

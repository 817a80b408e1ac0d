import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import type { Plan, Session } from "../../api/client";
import { revisionQuery } from "../../api/queries";
import { t, visible } from "../../lib/t";
import { Chip, say } from "../../ui/basics";
import { verdicts } from "../common/verdicts";

const Receipt = lazy(() => import("./Receipt").then((part) => ({ default: part.Receipt })));

/** The steps, how each came out, and what was observed, apart from what is claimed. */
export function Steps({ plan, id, decides }: { plan: Plan; id: string; decides: boolean }) {
  return (
    <div className="space-y-3 py-2">
      {plan.claimed && (
        <p className="text-sm [overflow-wrap:anywhere]" data-testid="claimed">
          {plan.basis === "claimed" && <Chip tone="wait">{t("Claimed")}</Chip>} {visible(plan.claimed)}
        </p>
      )}
      {(plan.steps ?? []).length > 0 && (
        <ol className="space-y-1" data-testid="steps">
          {(plan.steps ?? []).map((step) => (
            <li key={step.number} className="flex items-baseline gap-2">
              <span className="w-6 text-right font-mono text-xs text-soft">{step.number}</span>
              <span className="flex-1 [overflow-wrap:anywhere]">{visible(step.words)}</span>
              {step.cameOut && <Chip tone={step.cameOut === "done" ? "good" : step.cameOut === "in doubt" || step.cameOut === "failed" ? "bad" : ""}>{step.cameOut}</Chip>}
              {!step.cameOut && decides && plan.waits && <button type="button" className="button quiet small" onClick={() => void verdicts.skip(id, step.number)}>{t("Skip")}</button>}
            </li>
          ))}
        </ol>
      )}
      {(plan.observed.length > 0 || plan.basis) && (
        <div>
          <p className="label">{t("Observed")}</p>
          <ul className="text-sm" data-testid="observed">
            {plan.observed.length === 0 && <li className="text-wait">{t("no call ran")}</li>}
            {plan.observed.map((words) => <li key={words} className="[overflow-wrap:anywhere]">{visible(words)}</li>)}
          </ul>
        </div>
      )}
      {(plan.observed.length > 0 || plan.basis) && <Suspense><Receipt id={id} plan={plan} /></Suspense>}
      {(plan.gaps ?? []).length > 0 && (
        <div>
          <p className="label text-wait">{t("No call was reported for")}</p>
          <ul className="text-sm" data-testid="gaps">{(plan.gaps ?? []).map((words) => <li key={words} className="[overflow-wrap:anywhere]">{visible(words)}</li>)}</ul>
        </div>
      )}
    </div>
  );
}

/** What can be done to an execution. */
export function Controls({ id, session, plan, decides }: { id: string; session: Session; plan: Plan; decides: boolean }) {
  if (!session.active) {
    return (
      <footer className="flex flex-wrap gap-2 border-t border-line px-4 py-3">
        <Export id={id} plan={plan} />
      </footer>
    );
  }
  const resumable = session.waiting === "resume" || (plan.waits !== null && plan.waits !== undefined && ["Approved", "Running", "Failed"].includes(plan.status));
  return (
    <footer className={`flex flex-wrap gap-2 border-t border-line px-4 py-2 ${session.waiting === "decision" ? "max-md:hidden" : ""}`}>
      {resumable && decides && <button type="button" className="button small primary" onClick={() => void verdicts.resume(id)}>{t("Resume")}</button>}
      {plan.status === "Running" && !plan.waits && <button type="button" className="button small" onClick={() => void verdicts.pause(id)}>{t("Pause")}</button>}
      {plan.status === "Running" && <button type="button" className="button small quiet" title={t("Complete, by your word: the record says that you declared it")} onClick={() => void verdicts.done(id)}>{t("Done")}</button>}
      <button type="button" className="button small quiet" onClick={() => void verdicts.off(id)}>{t("End plan work")}</button>
      <span className="flex-1" />
      <Export id={id} plan={plan} />
    </footer>
  );
}

/** The text of the revision, as a file. */
function Export({ id, plan }: { id: string; plan: Plan }) {
  const revision = useQuery({ ...revisionQuery(id, plan.revision ?? "current", plan.digest ?? plan.planId), enabled: false });
  const save = async () => {
    const { data } = await revision.refetch();
    if (!data) return say(t("There is no text to export."), "bad");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([data.markdown], { type: "text/markdown" }));
    link.download = `plan-rev${data.number}-${data.digest.slice(0, 8)}.md`;
    link.click();
    URL.revokeObjectURL(link.href);
  };
  return <button type="button" className="button small quiet" onClick={() => void save()}>{t("Export")}</button>;
}

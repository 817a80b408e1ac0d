import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useReducer, useRef } from "react";
import type { Plan, Session } from "../../api/client";
import { controlQuery, meQuery, revisionQuery } from "../../api/queries";
import { t, visible } from "../../lib/t";
import { AskCard, Doubts } from "../permissions/Asks";
import { Chip, Failed, Skeleton, toneOf } from "../../ui/basics";
import { Decisions } from "../common/Decisions";
import { BeginPlan, strategyWords } from "./BeginPlan";
import { isNewest, nothingRead, read, type Reading, type RevisionRef } from "./revision";
import { Drawn } from "./drawn";
import { Controls, Steps } from "../execution/Execution";

/** The document and all that is said of it: loaded when there is one. */
const PlanBody = lazy(() => import("./PlanBody").then(({ PlanBody }) => ({ default: PlanBody })));

/** The plan of one session: where it stands, what changed, what approving allows, and the verdicts. */
export function PlanPanel({ id, wide = false, onExpand }: { id: string; wide?: boolean; onExpand?: () => void }) {
  const control = useQuery(controlQuery(id));
  const { data: me } = useQuery(meQuery);
  const session = control.data;
  const plan = session?.plan ?? null;
  const [reading, tell] = useReading(session);
  const { shown } = reading;
  const isCurrent = isNewest(reading);
  const panel = useRef<HTMLElement>(null);
  const region = useRef<HTMLDivElement>(null);
  if (control.isPending) return <Skeleton lines={5} />;
  if (control.error || !session) return <Failed problem={control.error ?? new Error("?")} retry={() => void control.refetch()} />;
  const decides = me?.decides ?? false;
  return (
    <section ref={panel} tabIndex={-1} aria-label={t("Plan")} data-session={id} data-testid="plan-panel" className="flex h-full min-h-0 flex-col">
      <header className="flex items-center gap-2 border-b border-line px-4 py-3">
        <h2 className="label">{t("Plan")}</h2>
        {plan && (isCurrent ? <Chip tone={toneOf(plan.status)}>{t(plan.status)}</Chip> : <Chip>{t("Replaced")}</Chip>)}
        {plan?.strategy && isCurrent && <span className="hidden text-sm text-soft sm:inline" data-testid="strategy">{strategyWords(plan.strategy)}</span>}
        {shown && <span className="text-sm text-soft" data-testid="plan-revision">{t("rev {n}", { n: shown.revision })}</span>}
        {shown && <code className="hidden text-xs text-soft sm:inline" title={shown.digest} data-testid="plan-digest">{shown.digest.slice(0, 8)}</code>}
        <span className="flex-1" />
        {onExpand && plan && (
          <button type="button" className="button quiet small" onClick={onExpand} aria-label={t("Open the review")}>⤢</button>
        )}
      </header>
      <div ref={region} className="min-h-0 flex-1 overflow-y-auto" tabIndex={0} role="region" aria-label={t("Plan document")}>
        <p className="px-4 pt-3 text-sm text-soft" data-testid="mode">{isCurrent ? modeWords(session) : t("Revision {n} was replaced. Nothing can be decided on it.", { n: shown?.revision ?? "" })}</p>
        <div className="space-y-3 px-4 pt-3 empty:hidden">
          {session.ask && <AskCard id={id} ask={session.ask} decides={decides} />}
          <Doubts id={id} session={session} decides={decides} />
        </div>
        <Replaced reading={reading} onAdvance={() => tell({ type: "advanced" })} />
        {/* The text and its buttons come together: a button that moves when the text comes is pressed by mistake. */}
        <Suspense fallback={<Skeleton lines={6} />}>{plan && shown && <PlanBody key={shown.digest} id={id} plan={plan} session={session} at={shown} isCurrent={isCurrent} decides={decides} wide={wide} panel={panel} region={region} onStale={(what) => tell({ type: "refused", what })} onExpect={() => tell({ type: "expected" })} />}</Suspense>
        {plan && plan.revision == null && (
          <div className="px-4">
            <h3 className="mt-3 text-lg font-semibold leading-snug">{visible(plan.title)}</h3>
            <Steps plan={plan} id={id} decides={decides} />
            {!session.active && <EndedText id={id} plan={plan} />}
          </div>
        )}
        {!plan && (
          <div className="p-4">
            <BeginPlan id={id} />
          </div>
        )}
      </div>
      {plan && !session.active && (
        <details className="border-t border-line px-4 py-2">
          <summary className="cursor-pointer text-sm">{t("Plan something else")}</summary>
          <div className="pt-2"><BeginPlan id={id} /></div>
        </details>
      )}
      {plan && <Decisions><Controls id={id} session={session} plan={plan} decides={decides} /></Decisions>}
    </section>
  );
}

/** The text of the plan that ended last, as it was approved or rejected. */
function EndedText({ id, plan }: { id: string; plan: Plan }) {
  const revision = useQuery(revisionQuery(id, "current", plan.planId));
  if (!revision.data || revision.data.planId !== plan.planId) return null;
  return (
    <details className="py-2 text-sm">
      <summary className="cursor-pointer text-soft">{t("Its text, revision {n}", { n: revision.data.number })}</summary>
      <div className="pt-2"><Suspense fallback={<Skeleton lines={6} />}><Drawn id={id} revision={revision.data} mayComment={false} onComment={() => {}} /></Suspense></div>
    </details>
  );
}

/** Which revision is on the screen, told of what the server says before anything is drawn of it. */
function useReading(session: Session | undefined) {
  const [reading, tell] = useReducer(read, nothingRead);
  const plan = session?.plan;
  const newest: RevisionRef | null = plan?.revision != null && plan.digest ? { plan: plan.planId, revision: plan.revision, digest: plan.digest } : null;
  const waits = session?.waiting === "decision";
  const isKnown = reading.newest?.digest === newest?.digest && (reading.shown?.digest !== newest?.digest || !newest || reading.waited === waits);
  if (!isKnown) tell({ type: "arrived", newest, waits });
  return [reading, tell] as const;
}

/** That a newer revision is there; and that nothing was done, to who tried. */
function Replaced({ reading, onAdvance }: { reading: Reading; onAdvance: () => void }) {
  const { shown, newest, refused } = reading;
  if (!shown || !newest || (isNewest(reading) && (!refused || refused.revision === shown.revision))) return null;
  return (
    <div role="alert" className="mx-4 mt-3 rounded-lg bg-wait-tint p-3 text-sm text-wait" data-testid="replaced">
      {isNewest(reading) ? (
        <p className="font-semibold">{t("Nothing was {what}: revision {old} became {n} while you were reading.", { what: refused?.what ?? "", old: refused?.revision ?? "", n: newest.revision })}</p>
      ) : (
        <>
          <p className="font-semibold">{t("Revision {n} is there. You are reading revision {old}.", { old: shown.revision, n: newest.revision })}</p>
          <button type="button" className="button small mt-2" onClick={onAdvance}>{t("Show what changed")}</button>
        </>
      )}
    </div>
  );
}

function modeWords(session: Session): string {
  const plan = session.plan;
  if (!session.active) return plan ? t("Plan work is off in this session. The last plan is {status}.", { status: t(plan.status) }) : t("Plan work is off in this session: the agent answers, and asks before it changes anything.");
  if (!plan) return t("Plan work is on in this session. Say what you want planned.");
  if (plan.waits) return plan.waits;
  switch (plan.status) {
    case "Drafting":
      return plan.drafted ? t("The plan is being written: {n} steps so far.", { n: plan.drafted }) : t("Plan work is on in this session. Say what you want planned.");
    case "Ready":
      return t("Ready for your decision. Nothing runs before you approve exactly this revision.");
    case "Running":
      return t("The approved revision is being executed, and nothing else.");
    case "Failed":
      return t("The execution failed. Resume it, leave a step out, or end it.");
    default:
      return t(plan.status);
  }
}

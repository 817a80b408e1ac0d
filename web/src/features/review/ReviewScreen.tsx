import { useQuery } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import { controlQuery, plansQuery } from "../../api/queries";
import { Back } from "../common/Back";
import { Chip, toneOf } from "../../ui/basics";
import { OldRevision } from "./OldRevision";
import { PlanPanel } from "./PlanPanel";
import { t, visible } from "../../lib/t";

/** The review of a plan, on a page of its own. */
export function ReviewScreen({ id }: { id: string }) {
  const plans = useQuery(plansQuery(id));
  const newest = useQuery(controlQuery(id)).data?.plan?.revision;
  const { rev } = useSearch({ from: "/shell/s/$id/plan" });
  const isOld = rev !== undefined && newest != null && rev < newest;
  return (
    <div className="flex h-full min-h-0 flex-col">
      <Back id={id} title={t("Review")} />
      <div className="mx-auto flex min-h-0 w-full max-w-5xl flex-1">
        <div className="min-w-0 flex-1 bg-raised md:border-x md:border-line">{isOld ? <OldRevision key={rev} id={id} number={rev} newest={newest} /> : <PlanPanel id={id} wide />}</div>
        <aside aria-label={t("Plans of this session")} className="hidden w-60 space-y-2 overflow-y-auto p-4 text-sm lg:block">
          <p className="label">{t("Plans of this session")}</p>
          {[...(plans.data ?? [])].reverse().map((plan) => (
            <Link key={plan.planId} to="/s/$id/work" params={{ id }} search={{ plan: plan.planId }} className="block rounded-lg p-2 hover:bg-sunken">
              <span className="line-clamp-2">{visible(plan.title || t("Untitled"))}</span>
              <span className="flex gap-2 pt-1"><Chip tone={toneOf(plan.status)}>{t(plan.status)}</Chip><span className="text-soft">{t("rev {n}", { n: plan.revisions })}</span></span>
            </Link>
          ))}
          <p className="label pt-4">{t("Keys")}</p>
          <dl className="grid grid-cols-[auto_1fr] gap-x-3 gap-y-1 text-soft">
            {[["J K", t("next, previous line")], ["N", t("next unread")], ["C", t("comment")], ["X", t("drop the step")], ["D", t("changes or plan")], ["⌘↵", t("send notes")], ["⇧A", t("approve")]].map(([key, words]) => (
              <div key={key} className="contents"><dt className="font-mono">{key}</dt><dd>{words}</dd></div>
            ))}
          </dl>
        </aside>
      </div>
    </div>
  );
}

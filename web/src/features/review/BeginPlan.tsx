import { t } from "../../lib/t";
import { verdicts, type Strategy } from "../common/verdicts";

/** How a plan can be written, in a word and in a sentence. */
const STRATEGIES: Record<Strategy, [string, string]> = {
  document: ["A document", "The agent writes one text, and you approve it as a whole."],
  collect: ["Recorded calls", "The agent works as always, but its calls are written down and not run. You approve the list, and exactly these calls run."],
  build: ["Steps for specialists", "The agent draws up steps, each for a profile with its own instructions. You approve them all, and they run one after the other."],
};

/** The strategy of a plan, as people name it. */
export const strategyWords = (strategy: string): string => t(STRATEGIES[strategy as Strategy]?.[0] ?? strategy);

/** Where plan work begins: how the plan is to be written. */
export function BeginPlan({ id }: { id: string }) {
  return (
    <div className="space-y-2" role="group" aria-label={t("Switch plan work on")}>
      <p className="text-sm text-soft">{t("Nothing is changed before you approve. How is the plan to be written?")}</p>
      {(Object.keys(STRATEGIES) as Strategy[]).map((strategy) => (
        <button key={strategy} type="button" className="card block w-full p-3 text-left hover:bg-sunken" onClick={() => void verdicts.on(id, strategy)}>
          <span className="font-medium">{strategyWords(strategy)}</span>
          <span className="block text-sm text-soft">{t(STRATEGIES[strategy][1])}</span>
        </button>
      ))}
    </div>
  );
}

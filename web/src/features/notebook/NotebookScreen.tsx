import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { notebookQuery } from "../../api/queries";
import { Back } from "../common/Back";
import { Chip, Empty, Failed } from "../../ui/basics";
import { verdicts } from "../common/verdicts";
import { t } from "../../lib/t";

const Markdown = lazy(() => import("../../markdown/Markdown").then((part) => ({ default: part.Markdown })));

/** The agent's planning files, which no file tool sees: the pages as they stand, and what was archived. */
export function NotebookScreen({ id }: { id: string }) {
  const [page, setPage] = useState<string | null>(null);
  const notebook = useQuery(notebookQuery(id, page));
  const view = notebook.data;
  return (
    <div className="flex h-full min-h-0 flex-col">
      <Back id={id} title={t("Notebook")} />
      <div className="mx-auto min-h-0 w-full max-w-3xl flex-1 space-y-3 overflow-y-auto p-4" tabIndex={0} role="region" aria-label={t("The pages of the notebook")}>
        {notebook.error && <Failed problem={notebook.error} retry={() => void notebook.refetch()} />}
        {view && (
          <div className="flex flex-wrap items-center gap-2 text-sm">
            <Chip tone={view.on ? "good" : ""}>{view.on ? t("on") : t("off")}</Chip>
            <button type="button" className="button small" onClick={() => void verdicts.notebook(id, !view.on).then(() => notebook.refetch())}>
              {view.on ? t("Turn it off") : t("Turn it on")}
            </button>
            {page && <button type="button" className="button quiet small" onClick={() => setPage(null)}>{t("Back to the current pages")}</button>}
          </div>
        )}
        {view?.plan_stands_in && <p className="text-sm text-soft">{t("Plan work is active: the plan stands in for task_plan, and this page keeps what it held before.")}</p>}
        {view?.pages.length === 0 && <Empty title={t("No pages yet. The agent begins them when the work is long enough.")} />}
        {view?.pages.map((shown) => (
          <section key={shown.name} className="card p-4" aria-label={shown.name} data-testid="page">
            <h2 className="mb-2 font-mono text-xs text-soft">{shown.name}</h2>
            <Suspense fallback={<p className="whitespace-pre-wrap">{shown.text}</p>}>
              <Markdown text={shown.text} />
            </Suspense>
          </section>
        ))}
        {view && view.archive.length > 0 && (
          <section aria-label={t("Archive")}>
            <h2 className="mb-1 text-sm font-medium">{t("Archive")}</h2>
            <ul className="flex flex-wrap gap-1">
              {view.archive.map((name) => (
                <li key={name}>
                  <button type="button" className="button quiet small" aria-pressed={page === name} onClick={() => setPage(name)}>{name}</button>
                </li>
              ))}
            </ul>
          </section>
        )}
      </div>
    </div>
  );
}

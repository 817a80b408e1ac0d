import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { controlQuery, sessionsQuery } from "../api/queries";
import { Chip, Dialog, Empty, Failed, Skeleton } from "../parts/basics";
import { verdicts } from "../parts/verdicts";
import { ago, dollars, t, visible } from "../t";

/** Every session, with what it costs and where it stands. */
export function SessionsScreen() {
  const rows = useQuery(sessionsQuery);
  const [gone, setGone] = useState<{ id: string; title: string } | null>(null);
  const control = useQuery({ ...controlQuery(gone?.id ?? ""), enabled: gone !== null });
  if (rows.isPending) return <Skeleton lines={6} />;
  if (rows.error) return <Failed problem={rows.error} retry={() => void rows.refetch()} />;
  return (
    <div className="mx-auto w-full max-w-4xl p-4">
      <h1 className="mb-3 text-lg font-semibold">{t("Sessions")}</h1>
      {rows.data.length === 0 && <Empty title={t("There are no sessions yet.")} />}
      <ul className="space-y-2">
        {rows.data.map((row) => (
          <li key={row.sessionId} className={`card flex flex-wrap items-center gap-x-3 gap-y-1 p-3 ${row.archived ? "bg-sunken" : ""}`}>
            <Link to="/s/$id" params={{ id: row.sessionId }} className="min-w-0 flex-1 basis-60 truncate font-medium hover:underline">{visible(row.title || row.sessionId)}</Link>
            <span className="text-xs text-soft">{row.sessionId.split(":")[0]} · {row.plan ? t("plan {status}", { status: row.plan }) : t("no plan")} · {ago(row.updated)} · {dollars(row.costMicros ?? 0)}</span>
            {row.waiting && <Chip tone="wait">{t("needs you")}</Chip>}
            {row.parked && <Chip tone="bad">{t("parked")}</Chip>}
            <span className="flex gap-1">
              <button type="button" className="button quiet small" onClick={() => void verdicts.archive(row.sessionId, !row.archived)}>{row.archived ? t("Bring back") : t("Put away")}</button>
              <button type="button" className="button quiet small danger" onClick={() => setGone({ id: row.sessionId, title: row.title || row.sessionId })}>{t("Delete…")}</button>
            </span>
          </li>
        ))}
      </ul>
      <Dialog title={t("Delete “{title}”?", { title: visible(gone?.title ?? "") })} open={gone !== null} onClose={() => setGone(null)}>
        <p>{t("This ends {plan} and every run and schedule in it, leaves {queued} messages unanswered, and forgets what only this session remembers. It cannot be undone.", { plan: control.data?.active ? t("its plan") : t("no plan"), queued: control.data?.queued ?? 0 })}</p>
        <div className="mt-4 flex justify-end gap-2">
          <button type="button" className="button" onClick={() => setGone(null)}>{t("Keep it")}</button>
          <button type="button" className="button danger" onClick={() => gone && void verdicts.remove(gone.id).then(() => setGone(null))}>{t("Delete it")}</button>
        </div>
      </Dialog>
    </div>
  );
}

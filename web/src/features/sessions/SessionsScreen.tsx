import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { eachOnce, TOTAL_MAX } from "../../api/lists";
import { controlQuery, memoryQuery, sessionPagesQuery } from "../../api/queries";
import { Dialog } from "../../ui/Dialog";
import { Ago } from "../../ui/Time";
import { Chip, Empty, Failed, Skeleton, useSettled } from "../../ui/basics";
import { verdicts } from "../common/verdicts";
import { WaitingLine } from "../common/WaitingLine";
import { dollars, t, visible } from "../../lib/t";

/** Every session, with what it costs and where it stands: found by its title or key, and read a page at a time. */
export function SessionsScreen() {
  const [words, setWords] = useState("");
  const search = useSettled(words.trim());
  const pages = useInfiniteQuery(sessionPagesQuery(search));
  const [gone, setGone] = useState<{ id: string; title: string } | null>(null);
  const control = useQuery({ ...controlQuery(gone?.id ?? ""), enabled: gone !== null });
  const memory = useQuery({ ...memoryQuery(gone?.id ?? "", ""), enabled: gone !== null });
  const promoted = (memory.data?.items ?? []).filter(({ item }) => typeof item.provenance === "object" && "promoted" in item.provenance && (gone?.id ?? "").endsWith(String(item.provenance.promoted.from)));
  // A session that moves to the front between two pages is on both: as it is on the first of them, which is kept up to date.
  const rows = eachOnce(pages.data?.pages.flatMap((page) => page.rows) ?? []);
  const total = pages.data?.pages.at(-1)?.total ?? 0;
  return (
    <div className="mx-auto w-full max-w-4xl p-4">
      <div className="mb-3 flex flex-wrap items-center gap-3">
        <h1 className="text-lg font-semibold">{t("Sessions")}</h1>
        <input className="field !w-auto min-w-40 flex-1" type="search" maxLength={100} aria-label={t("Find a session")} placeholder={t("Find by words in messages, plans or titles")} value={words} onChange={(event) => setWords(event.target.value)} />
        {pages.data && <p role="status" className="text-sm text-soft" data-testid="session-count">{total < TOTAL_MAX ? t("{n} of {total}", { n: rows.length, total }) : t("{n} of {total} or more", { n: rows.length, total: TOTAL_MAX })}</p>}
      </div>
      {pages.error && <Failed problem={pages.error} retry={() => void pages.refetch()} />}
      {pages.isPending && <Skeleton lines={6} />}
      {pages.data && rows.length === 0 && <Empty title={search ? t("No message, plan or title has these words.") : t("There are no sessions yet.")} />}
      <ul className="space-y-2">
        {rows.map((row) => (
          <li key={row.sessionId} className={`card flex flex-wrap items-center gap-x-3 gap-y-1 p-3 ${row.archived ? "bg-sunken" : ""}`}>
            <Link to="/s/$id" params={{ id: row.sessionId }} className="min-w-0 flex-1 basis-60 truncate font-medium hover:underline">{visible(row.title || row.sessionId)}</Link>
            <span className="text-xs text-soft">{row.sessionId.split(":")[0]} · {row.plan ? t("plan {status}", { status: row.plan }) : t("no plan")} · <Ago at={row.updated} /> · {dollars(row.costMicros ?? 0)}</span>
            {row.parked && <Chip tone="bad">{t("parked")}</Chip>}
            <span className="flex gap-1">
              <button type="button" className="button quiet small" onClick={() => void verdicts.archive(row.sessionId, !row.archived)}>{row.archived ? t("Bring back") : t("Put away")}</button>
              <button type="button" className="button quiet small danger" onClick={() => setGone({ id: row.sessionId, title: row.title || row.sessionId })}>{t("Delete…")}</button>
            </span>
            <WaitingLine row={row} />
          </li>
        ))}
      </ul>
      {pages.hasNextPage && (
        <button type="button" className="button mt-3 w-full" disabled={pages.isFetchingNextPage} onClick={() => void pages.fetchNextPage()}>
          {total < TOTAL_MAX ? t("Show more: {n} are left", { n: total - rows.length }) : t("Show more")}
        </button>
      )}
      <Dialog title={t("Delete “{title}”?", { title: visible(gone?.title ?? "") })} open={gone !== null} onClose={() => setGone(null)}>
        <p>{t("This ends {plan} and every run and schedule in it, leaves {queued} messages unanswered, forgets what only this session remembers, and erases everything in it. It cannot be undone.", { plan: control.data?.active ? t("its plan") : t("no plan"), queued: control.data?.queued ?? 0 })}</p>
        {promoted.length > 0 && (
          <>
            <p className="mt-3">{t("What you made known everywhere stays:")}</p>
            <ul className="mt-1 max-h-40 list-disc overflow-y-auto pl-5" data-testid="stays">
              {promoted.map(({ item }) => <li key={item.id} className="break-words">{visible(item.text)}</li>)}
            </ul>
          </>
        )}
        <div className="mt-4 flex justify-end gap-2">
          <button type="button" className="button" onClick={() => setGone(null)}>{t("Keep it")}</button>
          <button type="button" className="button danger" onClick={() => gone && void verdicts.remove(gone.id).then((came) => came === "done" && setGone(null))}>{t("Delete it")}</button>
        </div>
      </Dialog>
    </div>
  );
}

import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import type { Ranked } from "../../api/client";
import { memoryQuery } from "../../api/queries";
import { Back } from "../common/Back";
import { Dialog } from "../../ui/Dialog";
import { Chip, Empty, Failed } from "../../ui/basics";
import { verdicts } from "../common/verdicts";
import { t, visible } from "../../lib/t";

/** What is remembered: the chain exactly as it is retrieved, with why each item was found. */
export function MemoryScreen({ id }: { id: string }) {
  const [words, setWords] = useState("");
  const [query, setQuery] = useState("");
  const memory = useQuery(memoryQuery(id, query));
  const [promote, setPromote] = useState<Ranked | null>(null);
  const [edit, setEdit] = useState<{ item: Ranked; text: string } | null>(null);
  useEffect(() => {
    const timer = setTimeout(() => setQuery(words.trim()), 250);
    return () => clearTimeout(timer);
  }, [words]);
  const scope = (item: Ranked) => (typeof item.item.scope === "string" ? item.item.scope : (Object.keys(item.item.scope)[0] ?? ""));
  const source = (item: Ranked) => (typeof item.item.provenance === "string" ? item.item.provenance : (Object.keys(item.item.provenance)[0] ?? ""));
  return (
    <div className="flex h-full min-h-0 flex-col">
      <Back id={id} title={t("Memory")} />
      <div className="mx-auto min-h-0 w-full max-w-3xl flex-1 space-y-3 overflow-y-auto p-4" tabIndex={0} role="region" aria-label={t("What is remembered")}>
        <input className="field" type="search" aria-label={t("Find what is remembered")} placeholder={t("Find, as the agent does when a turn begins")} value={words} onChange={(event) => setWords(event.target.value)} />
        {memory.error && <Failed problem={memory.error} retry={() => void memory.refetch()} />}
        {memory.data && (
          <p className="text-sm text-soft" data-testid="chain">
            {memory.data.chain.map(([name, count]) => `${String(name).replace(/:.*/, "")} (${count})`).join(" → ")}
            {" | "}
            {t("blocked: {n} foreign", { n: (memory.data.elsewhere ?? 0) + memory.data.blocked })}
          </p>
        )}
        {memory.data?.items.length === 0 && <Empty title={query ? t("Nothing here fits these words.") : t("Nothing is remembered here yet. Say /memory save, or let the agent.")} />}
        <ul className="space-y-2">
          {memory.data?.items.map((row) => (
            <li key={`${row.item.id}/${scope(row)}`} className="card p-3" data-testid="memory-item">
              <p className="[overflow-wrap:anywhere]">{visible(row.item.text)}</p>
              <div className="mt-2 flex flex-wrap items-center gap-2 text-xs text-soft">
                <Chip tone={scope(row) === "global" ? "run" : ""}>{scope(row)}</Chip>
                <span>{row.item.kind}</span>
                <span>{t("from {source}", { source: source(row) })}</span>
                <span>{t("{n} % sure", { n: row.item.confidence })}</span>
                {row.why.matched.length > 0 && <span data-testid="why">{t("found by {words}; score {score}", { words: row.why.matched.join(", "), score: row.why.score })}</span>}
                <span className="flex-1" />
                {scope(row) !== "global" && <button type="button" className="button quiet small" onClick={() => setEdit({ item: row, text: row.item.text })}>{t("Edit")}</button>}
                <button type="button" className="button quiet small" onClick={() => void verdicts.forget(id, row.item.id)}>{t("Forget")}</button>
                {scope(row) !== "global" && <button type="button" className="button quiet small" onClick={() => setPromote(row)}>{t("Promote to global…")}</button>}
              </div>
            </li>
          ))}
        </ul>
      </div>
      <Dialog title={t("Make this known in every session?")} open={promote !== null} onClose={() => setPromote(null)}>
        <blockquote className="rounded bg-sunken p-3 [overflow-wrap:anywhere]" data-testid="promote-text">{visible(promote?.item.text ?? "")}</blockquote>
        <p className="mt-2 text-sm text-soft">{t("Every conversation of yours is told this where it fits.")}</p>
        <div className="mt-4 flex justify-end gap-2">
          <button type="button" className="button" onClick={() => setPromote(null)}>{t("Cancel")}</button>
          <button type="button" className="button primary" onClick={() => promote && void verdicts.promote(id, promote.item.id, promote.item.text).then((came) => came === "done" && setPromote(null))}>{t("Promote exactly this text")}</button>
        </div>
      </Dialog>
      <Dialog title={t("Remember it in other words")} open={edit !== null} onClose={() => setEdit(null)}>
        <textarea className="field" rows={4} aria-label={t("The words")} value={edit?.text ?? ""} onChange={(event) => edit && setEdit({ ...edit, text: event.target.value })} />
        <div className="mt-3 flex justify-end gap-2">
          <button type="button" className="button" onClick={() => setEdit(null)}>{t("Cancel")}</button>
          <button type="button" className="button primary" disabled={!edit?.text.trim()} onClick={() => edit && void verdicts.remember(id, edit.item.item.id, edit.text.trim()).then((came) => came === "done" && setEdit(null))}>{t("Save")}</button>
        </div>
      </Dialog>
    </div>
  );
}

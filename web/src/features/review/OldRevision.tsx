import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Suspense, useCallback, useRef } from "react";
import { revisionQuery } from "../../api/queries";
import { t, visible } from "../../lib/t";
import { Chip, Failed, Skeleton } from "../../ui/basics";
import { Drawn } from "./drawn";
import { useNamedLine } from "./rows";

/** A revision by its number, as it was; nothing can be decided on it here. */
export function OldRevision({ id, number, newest }: { id: string; number: number; newest: number }) {
  const asked = useQuery(revisionQuery(id, number, "by number"));
  const region = useRef<HTMLDivElement>(null);
  const stay = useCallback(() => {}, []);
  useNamedLine(!!asked.data, region, stay);
  if (asked.error) return <Failed problem={asked.error} retry={() => void asked.refetch()} />;
  if (!asked.data) return <Skeleton lines={6} />;
  return (
    <section aria-label={t("Plan")} className="flex h-full min-h-0 flex-col" data-testid="old-revision">
      <header className="flex items-center gap-2 border-b border-line px-4 py-3">
        <h2 className="label">{t("Plan")}</h2>
        <Chip>{t("Replaced")}</Chip>
        <span className="text-sm text-soft">{t("rev {n}", { n: number })}</span>
        <code className="hidden text-xs text-soft sm:inline" title={asked.data.digest}>{asked.data.digest.slice(0, 8)}</code>
        <span className="flex-1" />
        <Link to="/s/$id/plan" params={{ id }} className="button small">{t("Show revision {n}", { n: newest })}</Link>
      </header>
      <div ref={region} className="min-h-0 flex-1 overflow-y-auto px-4 py-3" tabIndex={0} role="region" aria-label={t("Plan document")}>
        <h3 className="text-lg font-semibold leading-snug">{visible(asked.data.title)}</h3>
        <div role="tabpanel" aria-label={t("Plan text")} className="py-3"><Suspense fallback={<Skeleton lines={6} />}><Drawn id={id} revision={asked.data} mayComment={false} onComment={stay} /></Suspense></div>
      </div>
    </section>
  );
}

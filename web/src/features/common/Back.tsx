import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { controlQuery } from "../../api/queries";
import { t, visible } from "../../lib/t";

/** Where a screen of a session leads back to. */
export function Back({ id, title }: { id: string; title: string }) {
  const control = useQuery(controlQuery(id));
  return (
    <header className="flex items-center gap-2 border-b border-line px-4 py-3">
      <Link to="/s/$id" params={{ id }} className="button quiet small" aria-label={t("Back to the conversation")}>←</Link>
      <h1 className="min-w-0 flex-1 truncate font-semibold">
        {title} <span className="font-normal text-soft">· {visible(control.data?.title || id)}</span>
      </h1>
    </header>
  );
}

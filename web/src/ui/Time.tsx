import { useNow } from "../lib/now";
import { ago } from "../lib/t";

/** How long ago something was, which stays true while it is looked at. */
export function Ago({ at, className }: { at: string | number; className?: string }) {
  const now = useNow(20_000);
  const time = new Date(at).toISOString();
  return <time dateTime={time} title={time} className={className}>{ago(at, now)}</time>;
}

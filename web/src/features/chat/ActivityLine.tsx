import type { Session } from "../../api/client";
import { useNow } from "../../lib/now";
import { lasting, visible } from "../../lib/t";
import { activityOf } from "../../session/activity";
import type { SessionLog } from "../../session/log";

/** What goes on in this session now, and since when; where nothing does, what it waits for. */
export function ActivityLine({ log, session }: { log: SessionLog | null; session: Session | undefined }) {
  const now = useNow(1_000);
  if (!log || !session) return null;
  const { words, since, isMoving } = activityOf(log, session);
  const millis = since ? Math.max(0, now - Date.parse(since)) : 0;
  const lasts = since && (millis < 10_000 ? `${Math.floor(millis / 1_000)} s` : lasting(millis));
  return (
    <p className="flex items-baseline gap-2 px-4 pb-1 text-xs text-soft md:px-6" data-testid="activity">
      <span aria-hidden="true" className={isMoving ? "breathing text-accent" : session.waiting ? "text-wait" : ""}>{isMoving ? "◐" : session.waiting ? "◆" : "·"}</span>
      {/* The time is not read out again each second. */}
      <span role="status" className="min-w-0 truncate">{visible(words)}</span>
      {lasts && <span aria-hidden="true" className="shrink-0 font-mono">{lasts}</span>}
    </p>
  );
}

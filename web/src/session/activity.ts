import type { Session } from "../api/client";
import { clock, t } from "../lib/t";
import type { CallEntry } from "./entries";
import type { SessionLog } from "./log";
import { waitingWords } from "./waiting";

/** What goes on in a session, in words. */
export interface Told {
  words: string;
  /** When it began, where that is known. */
  since?: string;
  /** Whether something works on it now. */
  isMoving: boolean;
}

/** What goes on now: calls before the model, as the model waits for them. */
export function activityOf({ entries, activity, turn }: SessionLog, session: Session): Told {
  // The stream is there before the state is read again.
  const isOpen = turn?.isOpen ?? session.turnOpen;
  const waits = session.waiting ? waitingWords(session.waiting) : "";
  if (session.waiting && (session.waiting !== "decision" || !isOpen)) return { words: waits, isMoving: false };
  if (!isOpen) {
    if (session.queued > 0) return { words: t("Waits for its turn"), isMoving: true };
    return { words: t("Nothing is under way"), isMoving: false };
  }
  const running = runningCalls(entries);
  const [first] = running;
  const step = first?.step === undefined ? "" : ` (${t("step {n}", { n: first.step })})`;
  if (first) return { words: running.length > 1 ? t("Runs {n} calls", { n: running.length }) : `${t("Runs {tool}", { tool: first.tool })}${step}`, since: first.begun, isMoving: true };
  switch (activity?.kind) {
    case "model": {
      const words = (activity.attempt ?? 1) > 1 ? t("The model is asked, attempt {n}", { n: activity.attempt ?? 1 }) : t("The model is asked");
      const isWriting = entries.at(-1)?.kind === "answer" && (entries.at(-1) as { isLive?: boolean }).isLive;
      return { words: isWriting ? t("The model answers") : words, since: activity.since, isMoving: true };
    }
    case "retry":
      return { words: t("The model did not answer; it is asked again at {time}", { time: clock(activity.until ?? "") }), since: activity.since, isMoving: true };
    default:
      return { words: t("Works"), since: activity?.since, isMoving: true };
  }
}

/** The calls that run now: those of the newest answer, so few are looked at. */
function runningCalls(entries: readonly { kind: string }[]): CallEntry[] {
  const running: CallEntry[] = [];
  for (let at = entries.length - 1; at >= 0 && entries[at]?.kind !== "message"; at -= 1) {
    const entry = entries[at] as CallEntry;
    if (entry.kind === "call" && entry.state === "running") running.unshift(entry);
    if (entries.length - at > LOOKED_AT) break;
  }
  return running;
}
const LOOKED_AT = 200;

import type { Session } from "../api/client";
import { clock, t } from "../lib/t";
import type { CallEntry, Entry } from "./entries";
import type { SessionLog } from "./log";
import { waitingWords } from "./waiting";

/** What goes on in a session, in words. */
export interface Progress {
  words: string;
  /** When it began, where that is known. */
  since?: string;
  /** Whether something works on it now. */
  isMoving: boolean;
}

/** What goes on now: calls before the model, as the model waits for them. */
export function activityOf({ entries, activity, turn }: SessionLog, session: Session): Progress {
  // The stream is there before the state is read again.
  const isOpen = turn?.isOpen ?? session.turnOpen;
  const waits = session.waiting ? waitingWords(session.waiting) : "";
  if (session.waiting && (session.waiting !== "decision" || !isOpen)) return { words: waits, isMoving: false };
  if (!isOpen) {
    if (session.queued > 0) return { words: t("Queued"), isMoving: true };
    return { words: t("Idle"), isMoving: false };
  }
  const running = runningCalls(entries);
  const [first] = running;
  const step = first?.step === undefined ? "" : ` (${t("step {n}", { n: first.step })})`;
  if (first) return { words: running.length > 1 ? t("Running {n} calls", { n: running.length }) : `${t("Running {tool}", { tool: first.tool })}${step}`, since: first.begun, isMoving: true };
  switch (activity?.kind) {
    case "model": {
      const words = (activity.attempt ?? 1) > 1 ? t("Waiting for the model (attempt {n})", { n: activity.attempt ?? 1 }) : t("Waiting for the model");
      const isWriting = entries.slice(-LOOKED_AT).some((entry) => entry.kind === "answer" && entry.isLive);
      return { words: isWriting ? t("The model is answering") : words, since: activity.since, isMoving: true };
    }
    case "retry":
      return { words: t("The model did not answer; it is asked again at {time}", { time: clock(activity.until ?? "") }), since: activity.since, isMoving: true };
    default:
      return { words: t("Working"), since: activity?.since, isMoving: true };
  }
}

/** The calls that run now. They are of the newest answer, so few entries are looked at. */
function runningCalls(entries: readonly Entry[]): CallEntry[] {
  const isRunning = (entry: Entry): entry is CallEntry => entry.kind === "call" && entry.state === "running";
  return entries.slice(-LOOKED_AT).filter(isRunning);
}
const LOOKED_AT = 200;

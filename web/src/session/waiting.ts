import { t } from "../lib/t";

/** What a session waits for, by the server's word for it. */
const WAITING: Record<string, string> = {
  decision: "Waits for your decision on the plan",
  permission: "Waits for you: a call asks for permission",
  doubt: "Waits for you: nobody knows whether a call happened",
  resume: "The execution is paused; it goes on when you resume it",
  run: "A run is paused and asks",
  limit: "Waits: a limit is reached",
};

/** The same in one sentence. A word that this page does not know is said as it is. */
export const waitingWords = (waiting: string): string => t(WAITING[waiting] ?? waiting);

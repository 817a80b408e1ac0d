import { t } from "../lib/t";

/** What a session waits for, by the server's word for it. */
const WAITING: Record<string, string> = {
  decision: "The plan waits for your decision",
  permission: "A call waits for your permission",
  doubt: "It is unknown whether a call happened: look, and say what you find",
  resume: "The execution is paused; it goes on when you resume it",
  run: "A run is paused and needs you",
  limit: "A limit is reached",
};

/** The same in one sentence. A word that this page does not know is said as it is. */
export const waitingWords = (waiting: string): string => t(WAITING[waiting] ?? waiting);

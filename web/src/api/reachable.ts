import { useEffect, useSyncExternalStore } from "react";
import { api } from "./client";
import { PAGE_KEY, pageKey } from "./pageKey";

/** How often the server is asked whether it is there, while somebody could decide something. */
const PROBE_MS = 2_000;
/** How long it may take to answer. */
const ANSWER_MS = 4_000;

let reachable = true;
const listeners = new Set<() => void>();

function set(next: boolean): void {
  if (next === reachable) return;
  reachable = next;
  for (const listener of listeners) listener();
}

/** Whether a status is an answer of the server, and not of something in front of it that cannot reach it. */
export const isAnswer = (status: number): boolean => status !== 502 && status !== 504;

api.use({
  onResponse: ({ response }) => set(isAnswer(response.status)),
  onError: ({ error }) => {
    // A request that the page itself gave up says nothing about the server.
    if (!(error instanceof DOMException && error.name === "AbortError")) set(false);
  },
});

async function probe(): Promise<void> {
  if (document.visibilityState !== "visible") return;
  try {
    const headers = { [PAGE_KEY]: pageKey() ?? "" };
    const answer = await fetch("/api/me", { cache: "no-store", headers, signal: AbortSignal.timeout(ANSWER_MS) });
    set(isAnswer(answer.status));
  } catch {
    set(false);
  }
}

/** One timer for all who look. */
let watchers = 0;
let timer = 0;
function watch(): () => void {
  if (watchers++ === 0) {
    timer = window.setInterval(() => void probe(), PROBE_MS);
    window.addEventListener("offline", probe);
    window.addEventListener("online", probe);
  }
  return () => {
    if (--watchers > 0) return;
    window.clearInterval(timer);
    window.removeEventListener("offline", probe);
    window.removeEventListener("online", probe);
  };
}

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

/** Whether the server answers. Where it is used, the server is asked now and then. */
export function useReachable(): boolean {
  useEffect(watch, []);
  return useSyncExternalStore(subscribe, () => reachable);
}

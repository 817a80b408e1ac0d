import { useEffect, useState, type ReactNode } from "react";
import { readText, writeText } from "../lib/storage";
import { t } from "../lib/t";

/** Nothing to see yet, and one thing to do about it. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="mx-auto flex max-w-md flex-col items-center gap-3 px-6 py-16 text-center">
      <p className="text-soft">{title}</p>
      {children}
    </div>
  );
}

/** What went wrong, in the server's words, with a way on. */
export function Failed({ problem, retry }: { problem: Error; retry?: () => void }) {
  return (
    <div role="alert" className="m-4 rounded-lg border border-bad/40 bg-bad-tint p-4 text-bad">
      <p className="font-medium">{problem.message}</p>
      {retry && (
        <button type="button" className="button small mt-3" onClick={retry}>
          {t("Try again")}
        </button>
      )}
    </div>
  );
}

/** Lines where text will be. */
export function Skeleton({ lines = 3 }: { lines?: number }) {
  return (
    <div className="space-y-3 p-4" aria-hidden="true">
      {Array.from({ length: lines }, (_, at) => (
        <div key={at} className={`skeleton h-4 ${["w-11/12", "w-4/5", "w-2/3"][at % 3]}`} />
      ))}
    </div>
  );
}

export function Chip({ tone = "", children }: { tone?: string; children: ReactNode }) {
  return <span className={`chip ${tone}`}>{children}</span>;
}

/** The tone in which a status of a plan is drawn. */
export function toneOf(status: string): string {
  // Done is as a rule what a model reports: no tone may say more than that.
  if (status === "Approved") return "good";
  if (status === "Running") return "run";
  if (status === "Failed" || status === "Rejected") return "bad";
  return status === "Ready" ? "wait" : "";
}

type Toast = { id: number; text: string; tone: "plain" | "good" | "bad" };
let toastId = 0;
const toastEars = new Set<(toast: Toast) => void>();

/** Says something in passing. */
export function say(text: string, tone: Toast["tone"] = "plain"): void {
  toastEars.forEach((ear) => ear({ id: ++toastId, text, tone }));
}

export function Toasts() {
  const [toasts, setToasts] = useState<Toast[]>([]);
  useEffect(() => {
    const ear = (toast: Toast) => {
      setToasts((all) => [...all.slice(-3), toast]);
      setTimeout(() => setToasts((all) => all.filter((one) => one.id !== toast.id)), toast.tone === "bad" ? 9000 : 4500);
    };
    toastEars.add(ear);
    return () => void toastEars.delete(ear);
  }, []);
  return (
    <div role="status" aria-live="polite" className="pointer-events-none fixed inset-x-0 top-14 z-50 flex flex-col items-center gap-2 md:top-3">
      {toasts.map((toast) => (
        <div key={toast.id} className={`card max-w-[90vw] px-4 py-2 text-sm shadow-lg ${toast.tone === "bad" ? "bg-bad-tint text-bad" : toast.tone === "good" ? "bg-good-tint text-good" : ""}`}>
          {toast.text}
        </div>
      ))}
    </div>
  );
}

/** Whether a key was meant for text. */
export function inText(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement | null;
  return !!target?.closest("input, textarea, select, [contenteditable=true]");
}

/** A value that people type, once they pause. */
export function useSettled(value: string, pauseMs = 200): string {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), pauseMs);
    return () => clearTimeout(timer);
  }, [value, pauseMs]);
  return settled;
}

/** State that outlives the page, by key. */
export function useKept(key: string, first: string): [string, (value: string) => void] {
  const [kept, setKept] = useState(() => ({ key, value: readText(key) ?? first }));
  const value = (kept.key === key ? kept.value : readText(key)) || first;
  // What went in its place may have kept something when it went, after this was begun.
  useEffect(() => {
    const value = readText(key) ?? first;
    setKept((kept) => (kept.key === key && kept.value === value ? kept : { key, value }));
  }, [key, first]);
  return [
    value,
    (next) => {
      writeText(key, next);
      setKept({ key, value: next });
    },
  ];
}

/** Whether a person should know how much of something is used. */
export const isMostUsed = (meter?: { used: number; max?: number | null }): boolean => !!meter?.max && meter.used >= 0.8 * meter.max;

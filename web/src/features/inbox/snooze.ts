import { useSyncExternalStore } from "react";
import { isRecord, readJson, writeText } from "../../lib/storage";

/** What this device was told not to show for a while. It decides nothing. */
const KEY = "snoozed";
const isTimes = (value: unknown): value is Record<string, number> => isRecord(value) && Object.values(value).every((end) => typeof end === "number");
const ears = new Set<() => void>();
let kept = read();

function read(): Record<string, number> {
  return readJson(KEY, isTimes) ?? {};
}

/** Hides something until then. */
export function snooze(what: string, minutes: number): void {
  const until = Date.now() + minutes * 60_000;
  kept = Object.fromEntries([...Object.entries(read()).filter(([, end]) => end > Date.now()), [what, until]]);
  writeText(KEY, JSON.stringify(kept));
  tell();
}

function tell(): void {
  ears.forEach((ear) => ear());
  const next = Math.min(...Object.values(kept).filter((end) => end > Date.now()));
  if (Number.isFinite(next)) setTimeout(() => { kept = { ...kept }; ears.forEach((ear) => ear()); }, next - Date.now() + 20);
}
tell();

const listen = (ear: () => void) => {
  ears.add(ear);
  return () => ears.delete(ear);
};

/** What is hidden now: exactly this, or anything whose name begins so. */
export function useSnoozed(): { exactly: (what: string) => boolean; some: (prefix: string) => boolean } {
  const all = useSyncExternalStore(listen, () => kept);
  const lasts = (end: number) => end > Date.now();
  return {
    exactly: (what) => lasts(all[what] ?? 0),
    some: (prefix) => Object.entries(all).some(([what, end]) => what.startsWith(prefix) && lasts(end)),
  };
}

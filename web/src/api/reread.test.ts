import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { rereader } from "./reread";

/** Reads that take this long, and when each began and ended. */
function slowReads(took: number) {
  const reads: [number, number][] = [];
  const reread = rereader(async () => {
    const begun = Date.now();
    await new Promise((end) => setTimeout(end, took));
    reads.push([begun, Date.now()]);
  });
  return { reads, reread };
}

describe("reading again on a change", () => {
  beforeEach(() => void vi.useFakeTimers({ now: 0 }));
  afterEach(() => void vi.useRealTimers());

  it("is not put off by changes that never stop, although a read takes longer than the time between two", async () => {
    const { reads, reread } = slowReads(100);
    for (let ms = 0; ms < 1_000; ms += 10) {
      reread("sessions");
      await vi.advanceTimersByTimeAsync(10);
    }
    await vi.advanceTimersByTimeAsync(1_000);
    expect(reads.slice(0, 3)).toEqual([[30, 130], [160, 260], [290, 390]]);
    expect(reads.at(-1)?.[0]).toBeGreaterThan(990);
  });

  it("reads once for changes that come together, and once more for one that came while it read", async () => {
    const { reads, reread } = slowReads(100);
    for (let count = 0; count < 5; count++) reread("sessions");
    await vi.advanceTimersByTimeAsync(60);
    reread("sessions");
    await vi.advanceTimersByTimeAsync(1_000);
    expect(reads).toEqual([[30, 130], [160, 260]]);
  });

  it("goes on after a read that failed", async () => {
    let count = 0;
    const reread = rereader(() => (count++, Promise.reject(new Error("no"))));
    reread("sessions");
    await vi.advanceTimersByTimeAsync(50);
    reread("sessions");
    await vi.advanceTimersByTimeAsync(50);
    expect(count).toBe(2);
  });

  it("keeps keys apart", async () => {
    const read: string[] = [];
    const reread = rereader(async (key) => void read.push(key));
    reread("sessions");
    reread("approvals");
    await vi.advanceTimersByTimeAsync(50);
    expect(read).toEqual(["sessions", "approvals"]);
  });
});

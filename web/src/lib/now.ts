import { useSyncExternalStore } from "react";

/** One clock for all who look at it as often. */
class Clock {
  private time = Date.now();
  private timer = 0;
  private readonly listeners = new Set<() => void>();

  constructor(private readonly everyMs: number) {}

  readonly listen = (listener: () => void) => {
    if (this.listeners.size === 0) {
      this.time = Date.now();
      this.timer = window.setInterval(this.tick, this.everyMs);
    }
    this.listeners.add(listener);
    return () => {
      this.listeners.delete(listener);
      if (this.listeners.size === 0) window.clearInterval(this.timer);
    };
  };

  /** While nobody listens it is as late as whoever asks. */
  readonly now = () => (this.listeners.size === 0 ? Math.floor(Date.now() / this.everyMs) * this.everyMs : this.time);

  private readonly tick = () => {
    this.time = Date.now();
    for (const listener of this.listeners) listener();
  };
}

const clocks = new Map<number, Clock>();

/** The time, at most so many milliseconds old; who uses it is drawn again as it goes on. */
export function useNow(everyMs: number): number {
  let clock = clocks.get(everyMs);
  if (!clock) {
    clock = new Clock(everyMs);
    clocks.set(everyMs, clock);
  }
  return useSyncExternalStore(clock.listen, clock.now);
}

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { isRecord, readJson, readText, writeText } from "./storage";

const kept = new Map<string, string>();
beforeEach(() => {
  kept.clear();
  vi.stubGlobal("localStorage", {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => void kept.set(key, value),
    removeItem: (key: string) => void kept.delete(key),
  });
});
afterEach(() => vi.unstubAllGlobals());

describe("what the browser keeps", () => {
  it("is dropped where it cannot be read", () => {
    kept.set("snoozed", "{");
    expect(readJson("snoozed", isRecord)).toBeNull();
    expect(kept.has("snoozed")).toBe(false);
  });

  it("is dropped where it is something else than expected", () => {
    kept.set("snoozed", '["a"]');
    expect(readJson("snoozed", isRecord)).toBeNull();
    kept.set("snoozed", '{"a":1}');
    expect(readJson("snoozed", isRecord)).toEqual({ a: 1 });
  });

  it("may be refused altogether", () => {
    vi.stubGlobal("localStorage", {
      getItem: () => { throw new Error("denied"); },
      setItem: () => { throw new Error("denied"); },
      removeItem: () => { throw new Error("denied"); },
    });
    writeText("draft", "words");
    expect(readText("draft")).toBeNull();
    expect(readJson("draft", isRecord)).toBeNull();
  });
});

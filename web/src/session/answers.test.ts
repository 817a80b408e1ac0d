import { describe, expect, it } from "vitest";
import { withAnswers } from "./answers";
import type { Entry } from "./entries";

const mark = (key: string): Entry => ({ kind: "answer", key, turn: "t", at: "", text: key, bytes: 0, isLive: false });
const answer = (key: string, after: string | null) => ({ key, after, line: "/plan status", text: key, isRefused: false });
const keys = (entries: Entry[]) => entries.map((entry) => entry.key);

describe("answers to commands", () => {
  it("stand where they were typed, in their order", () => {
    expect(keys(withAnswers([mark("a"), mark("b")], [answer("1", "a"), answer("2", "a"), answer("3", "b")]))).toEqual(["a", "1", "2", "b", "3"]);
  });

  it("come first where nothing was said before, and last where what was before is gone", () => {
    expect(keys(withAnswers([mark("a")], [answer("1", null), answer("2", "gone")]))).toEqual(["1", "a", "2"]);
  });

  it("leave the conversation alone where there are none", () => {
    const entries = [mark("a")];
    expect(withAnswers(entries, [])).toBe(entries);
  });
});

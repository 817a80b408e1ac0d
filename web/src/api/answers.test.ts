import { describe, expect, it } from "vitest";
import { withAnswers } from "./answers";
import type { Item } from "./reduce";

const mark = (key: string): Item => ({ kind: "mark", key, at: "", tone: "plain", text: key });
const answer = (key: string, after: string | null) => ({ key, after, line: "/plan status", text: key, isRefused: false });
const keys = (items: Item[]) => items.map((item) => item.key);

describe("answers to commands", () => {
  it("stand where they were typed, in their order", () => {
    expect(keys(withAnswers([mark("a"), mark("b")], [answer("1", "a"), answer("2", "a"), answer("3", "b")]))).toEqual(["a", "1", "2", "b", "3"]);
  });

  it("come first where nothing was said before, and last where what was before is gone", () => {
    expect(keys(withAnswers([mark("a")], [answer("1", null), answer("2", "gone")]))).toEqual(["1", "a", "2"]);
  });

  it("leave the conversation alone where there are none", () => {
    const items = [mark("a")];
    expect(withAnswers(items, [])).toBe(items);
  });
});

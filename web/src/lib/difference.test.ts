import { describe, expect, it } from "vitest";
import { beside, changedWords, joined, marked } from "./difference";

const told = (pieces?: { text: string; isOther: boolean }[]) => pieces?.map(({ text, isOther }) => (isOther ? `[${text}]` : text)).join("");
const both = (before: string, after: string) => {
  const found = changedWords(before, after);
  return found && [told(found.before), told(found.after)];
};

describe("two lines", () => {
  it("differ in these words", () => {
    expect(both("2. Stop the service", "3. Stop all the services")).toEqual(["[2]. Stop the [service]", "[3]. Stop [all ]the [services]"]);
    expect(both("a", "a")).toEqual(["a", "a"]);
    expect(both("Back up the volume", "Back up the volume, twice.")).toEqual(["Back up the volume", "Back up the volume[, twice.]"]);
  });

  it("are not one line that was changed, if they have little in common", () => {
    expect(both("Delete everything", "Look at the photos first")).toBeNull();
    expect(both("", "words")).toBeNull();
    expect(both("a ".repeat(300), "b ".repeat(300))).toBeNull();
  });

  it("are put together again by their pieces, whatever they are", () => {
    const words = ["a", "b ", "  ", "é", ".", "`x`", "\t", "🙂"];
    for (let round = 0; round < 2_000; round += 1) {
      const line = () => Array.from({ length: Math.floor(Math.random() * 12) }, () => words[Math.floor(Math.random() * words.length)]).join("");
      const [before, after] = [line(), line()];
      const found = changedWords(before, after);
      if (!found) continue;
      expect(found.before.map(({ text }) => text).join("")).toBe(before);
      expect(found.after.map(({ text }) => text).join("")).toBe(after);
      const kept = (pieces: typeof found.before) => pieces.filter(({ isOther }) => !isOther).map(({ text }) => text).join("");
      expect(kept(found.before)).toBe(kept(found.after));
    }
  });
});

describe("the rows of a difference", () => {
  const rows = (...all: string[]) => all.map((row) => ({ change: { "+": "added", "-": "removed", " ": "same" }[row[0] ?? ""] ?? "", text: row.slice(1) }));

  it("have what was removed before what was added, and all of them are there", () => {
    const found = marked(rows(" one", "+two", "-two b", "-three", "+four words", " five", "+six"));
    expect(found.map(({ row, pieces }) => `${row.change} ${told(pieces) ?? row.text}`)).toEqual(["same one", "removed two[ b]", "removed three", "added two", "added four words", "same five", "added six"]);
  });

  it("stand side by side, each of them once, and what is the same on both sides", () => {
    const pairs = beside(marked(rows(" one", "+two", "-two b", "-three", " five", "+six")));
    expect(pairs.map((pair) => pair.map((side) => side?.row.text))).toEqual([["one", "one"], ["two b", "two"], ["three", undefined], ["five", "five"], [undefined, "six"]]);
  });

  it("are compared over parts of which one came in the other's place", () => {
    const parts = [{ change: "same", rows: [1] }, { change: "added", rows: [2] }, { change: "removed", rows: [3] }, { change: "changed", rows: [4] }, { change: "removed", rows: [5] }];
    expect(joined(parts).map(({ rows }) => rows)).toEqual([[1], [2, 3], [4], [5]]);
  });
});

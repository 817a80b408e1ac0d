import { describe, expect, it } from "vitest";
import type { CommentRow } from "../../api/client";
import { areNotes, byLine, isOpen, onRevision, readSuggestion, renumbered, replaced, standsBelow, suggestion } from "./notes";

const thread = (number: number, lastLine: number | null, status = "posted") => ({ number, status, place: lastLine === null ? null : { line: 1, lastLine, fate: "same" } }) as CommentRow;

describe("notes", () => {
  it("are read from what was kept, and nothing else is", () => {
    const on = { digest: "d", revision: 1 };
    expect(areNotes([{ line: 3, last: 5, text: "x", on }, { line: null, text: "y", on }])).toBe(true);
    for (const other of [[{ line: "3", text: "x", on }], [{ line: 3, on }], [{ line: 3, text: "x" }], [{ line: 3, last: "5", text: "x", on }], {}, null]) expect(areNotes(other)).toBe(false);
  });

  it("made on a replaced revision are about the whole, and say where they were made", () => {
    const on = { digest: "old", revision: 2 };
    expect(onRevision({ line: 3, text: "x", on }, "old")).toEqual({ line: 3, text: "x", on });
    expect(onRevision({ line: 3, text: "x", on }, "new")).toEqual({ line: null, text: "Line 3 of rev 2: x", on });
    expect(onRevision({ line: 3, last: 5, text: "x", on }, "new")).toEqual({ line: null, text: "Lines 3 to 5 of rev 2: x", on });
    expect(onRevision({ line: null, text: "x", on }, "new")).toEqual({ line: null, text: "x", on });
  });

  it("stand below the last line they are about, those on the whole below none", () => {
    const places = byLine([thread(1, 4), thread(2, null), thread(3, 4)], ["a", "b", "c", "d"]);
    expect([...places].map(([line, threads]) => [line, threads.map(({ number }) => number)])).toEqual([[4, [1, 3]], [null, [2]]]);
  });

  it("stand below a line with words where theirs is blank or gone", () => {
    const lines = ["", "a", "", "", "b"];
    expect([1, 2, 4, 5, 9, null].map((line) => standsBelow(line, lines))).toEqual([2, 2, 2, 5, 5, null]);
    expect(standsBelow(1, ["", " "])).toBe(null);
  });

  it("are open until they are answered or settled", () => {
    expect(["posted", "open", "addressed", "declined", "resolved"].map((status) => isOpen(thread(1, 1, status)))).toEqual([true, true, false, false, false]);
  });
});

describe("a suggestion", () => {
  it("is read as it was written, with the words around it", () => {
    for (const lines of [["1. Back it up."], ["a", "", "  b"], ["```sh", "run", "```"], ["````", "```", "````"], [""]]) expect(readSuggestion(`Rather:\n\n${suggestion(lines)}`)).toEqual({ words: "Rather:", lines });
    expect(readSuggestion("```suggestion\n```")).toEqual({ words: "", lines: [] });
    expect(readSuggestion("no suggestion ```x```")).toEqual({ words: "no suggestion ```x```", lines: null });
  });

  it("takes the number that its step has now", () => {
    expect(renumbered(["3. Stop.", "text"], ["2. Stop, then wait.", "2. other"])).toEqual(["3. Stop, then wait.", "2. other"]);
  });

  it("replaces its lines and no other", () => {
    expect(replaced("a\nb\nc\nd\n", 2, 3, ["x"])).toBe("a\nx\nd\n");
    expect(replaced("a\nb\n", 1, 1, [])).toBe("b\n");
  });
});

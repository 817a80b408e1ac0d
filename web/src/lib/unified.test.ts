import { describe, expect, test } from "vitest";
import { readUnified } from "./unified";

describe("a unified diff", () => {
  test("is read with the numbers that its lines have now", () => {
    const diff = "@@ -1,2 +1,2 @@\n one\n-two\n+three\n\\ No newline at end of file\n@@ -9 +9,2 @@\n nine\n+ten\n";
    expect(readUnified(diff)).toEqual([
      [
        { change: "same", text: "one", number: 1 },
        { change: "removed", text: "two", number: null },
        { change: "added", text: "three", number: 2 },
      ],
      [
        { change: "same", text: "nine", number: 9 },
        { change: "added", text: "ten", number: 10 },
      ],
    ]);
  });

  test("keeps carriage returns, which may be all that differs", () => {
    expect(readUnified("@@ -1,2 +1,2 @@\n-a\r\n+a\n-b\r+c\r").flat().map(({ text }) => text)).toEqual(["a\r", "a", "b\r", "c\r"]);
  });

  test("keeps lines that look like its own signs, and is nothing where nothing differs", () => {
    const diff = "@@ -1 +1,2 @@\n---- a\n+++ b\n+@@ -1 +1 @@\n";
    expect(readUnified(diff)).toEqual([
      [
        { change: "removed", text: "--- a", number: null },
        { change: "added", text: "++ b", number: 1 },
        { change: "added", text: "@@ -1 +1 @@", number: 2 },
      ],
    ]);
    expect(readUnified("")).toEqual([]);
  });
});

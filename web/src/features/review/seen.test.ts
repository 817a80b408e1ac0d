import { describe, expect, it } from "vitest";
import { firstIndex, linesOf, type LineView, Watch } from "./seen";

const whole = (line: number, height = 20): LineView => ({ line, from: 0, to: height, height });

/** Looks each 100 ms, as long as there is something to look at; what was seen at which time. */
function played(looks: LineView[][], every = 100): [number, number][] {
  const watch = new Watch();
  return looks.flatMap((views, at) => watch.look(views, at * every).map((line): [number, number] => [line, at * every]));
}

describe("a line", () => {
  it("counts when it was in view for 300 ms, and not before", () => {
    expect(played([[whole(1)], [whole(1)], [whole(1)], [whole(1)], []])).toEqual([[1, 300]]);
    expect(played([[whole(1)], [whole(1)], [whole(1)], []])).toEqual([]);
  });

  it("does not add up glances, and a long pause between two looks is none", () => {
    expect(played([[whole(1)], [whole(1)], [], [whole(1)], [whole(1)], [whole(1)]])).toEqual([]);
    expect(played([[whole(1)], [whole(1)]], 5_000)).toEqual([]);
    const watch = new Watch();
    watch.look([whole(1)], 0);
    watch.look([whole(1)], 200);
    watch.clear();
    expect(watch.look([whole(1)], 400)).toEqual([]);
  });

  it("that is cut off at an edge is not seen", () => {
    const cut = { line: 1, from: 0, to: 12, height: 20 };
    expect(played(Array.from({ length: 20 }, () => [cut]))).toEqual([]);
    const below = { line: 1, from: 8, to: 20, height: 20 };
    expect(played(Array.from({ length: 20 }, () => [below]))).toEqual([]);
  });

  it("that is taller than the window is seen when all of it was, from its top down", () => {
    const part = (from: number, to: number) => Array.from({ length: 8 }, () => [{ line: 1, from, to, height: 1_000 }]);
    expect(played([...part(0, 400), ...part(350, 750), ...part(700, 1_000)]).map(([line]) => line)).toEqual([1]);
    expect(played([...part(0, 400), ...part(600, 1_000)])).toEqual([]);
    expect(played([...part(600, 1_000), ...part(0, 400)])).toEqual([]);
  });

  it("that was laid out anew is read anew", () => {
    const part = (from: number, to: number, height: number) => Array.from({ length: 8 }, () => [{ line: 1, from, to, height }]);
    expect(played([...part(0, 500, 1_000), ...part(500, 1_200, 1_200)])).toEqual([]);
  });

  it("is counted while the text moves slowly, and not while it flies by", () => {
    const moved = (step: number) => Array.from({ length: 40 }, (_, at) => {
      const top = 400 - at * step;
      const [from, to] = [Math.max(0, -top), Math.min(20, 400 - top)];
      return to > from ? [{ line: 1, from, to, height: 20 }] : [];
    });
    expect(played(moved(10)).length).toBeGreaterThan(0);
    expect(played(moved(300))).toEqual([]);
  });
});

it("the lines of a block are those that are not blank", () => {
  const text = ["a", "", " \t", "b\r", "\u00a0"];
  expect(linesOf({ firstLine: 1, lastLine: 5 }, text)).toEqual([1, 4, 5]);
});

it("the first that fits is found in order", () => {
  for (const first of [0, 1, 7, 12]) expect(firstIndex(12, (at) => at >= first)).toBe(first);
});

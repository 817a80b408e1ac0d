import { describe, expect, it } from "vitest";
import type { Bar } from "../../api/client";
import { scaleOf } from "./Timeline";

const bar = (begun: number, ended: number, kind = "tool"): Bar => ({ seq: begun, kind, words: "", begun, ended, state: "done", note: "", step: null });

describe("the scale of a timeline", () => {
  it("compresses what is idle, and says how much it left out", () => {
    const night = 8 * 3_600_000;
    const scale = scaleOf([bar(0, 10_000), bar(night, night + 10_000)], night + 10_000);
    expect(scale.gaps.map((gap) => gap.lasted)).toEqual([night - 10_000]);
    expect([scale.at(0), scale.at(10_000), scale.at(night), scale.at(night + 10_000)]).toEqual([0, 0.25, 0.75, 1]);
  });

  it("draws a wait by its ends", () => {
    const scale = scaleOf([bar(0, 1_000), bar(1_000, 3_601_000, "wait"), bar(3_601_000, 3_602_000)], 3_602_000);
    expect(scale.gaps).toHaveLength(1);
  });
});

import { describe, expect, it } from "vitest";
import { dollars, lasting, visible } from "./t";

describe("words", () => {
  it("spell out what hides", () => {
    expect(visible("a\u202Eb\u200Bc\u{E0041}")).toBe("a⟦U+202E⟧b⟦U+200B⟧c⟦U+E0041⟧");
    expect(visible("plain, grüße\n\ttext")).toBe("plain, grüße\n\ttext");
  });
  it("say small sums and long times", () => {
    expect([dollars(0), dollars(300), dollars(420_000)]).toEqual(["$0", "$0.0003", "$0.42"]);
    expect([lasting(200), lasting(125_000), lasting(11_040_000)]).toEqual(["0.2 s", "2 m 5 s", "3 h 4 m"]);
  });
});

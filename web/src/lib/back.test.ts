import { describe, expect, it } from "vitest";
import { backTo } from "./back";

const origin = "http://localhost:7340";

describe("the way back after a login", () => {
  it("leads to the page that asked for it", () => {
    expect(backTo("/s/web:day-0001/plan?a=1#b", origin)).toBe(`${origin}/s/web:day-0001/plan?a=1#b`);
    expect(backTo(null, origin)).toBe(`${origin}/`);
  });

  it("leads to no other site, however that is written, and not to the login", () => {
    for (const wished of ["//evil.example", "/\\evil.example", "/\t/evil.example", "\\\\evil.example", "ht" + "tps://evil.example/", "javascript:alert(1)", "data:text/html,x", "/login", "/login?back=/", "http://localhost:7341/", "http://localhost:7340@evil.example/"]) {
      expect(backTo(wished, origin), wished).toBe(`${origin}/`);
    }
    // What only looks like another site stays on this one.
    expect(new URL(backTo("/.//evil.example", origin)).origin).toBe(origin);
  });
});

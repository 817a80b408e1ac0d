import { describe, expect, it } from "vitest";
import type { SessionRow } from "../api/client";
import { sidebarRows } from "./sidebar";

const row = (sessionId: string, more: Partial<SessionRow> = {}): SessionRow => ({ sessionId, version: 1, updated: "", title: sessionId, archived: false, running: false, costMicros: 0, ...more });

describe("the sidebar", () => {
  it("has what waits although it is not among the newest, first", () => {
    const waiting: SessionRow[] = [row("new", { waiting: "decision" }), row("old", { waiting: "decision" })];
    expect(sidebarRows([row("new", { waiting: "decision" }), row("other")], waiting).map((one) => one.sessionId)).toEqual(["old", "new", "other"]);
  });

  it("leaves out what was put away, unless it waits", () => {
    expect(sidebarRows([row("away", { archived: true }), row("asks", { archived: true, waiting: "run" })], []).map((one) => one.sessionId)).toEqual(["asks"]);
  });
});

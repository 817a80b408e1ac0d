import { describe, expect, it } from "vitest";
import type { ListChange, SessionRow } from "./client";
import { eachOnce, foundWith, Heard, NEWEST_MAX, newestWith, pagesWith, searchedWith, TOTAL_MAX, usedMore, waitingWith } from "./lists";

const row = (sessionId: string, more: Partial<SessionRow> = {}): SessionRow => ({ sessionId, version: 1, updated: "", title: sessionId, archived: false, running: false, costMicros: 0, ...more });
const change = (one: SessionRow, more: Partial<ListChange> = {}): ListChange => ({ row: one, own: true, begun: false, deleted: false, decided: false, usedTokens: 0, usedCostMicros: 0, ...more });
const ids = (rows: SessionRow[]) => rows.map((one) => one.sessionId);

describe("lists that hear what changed", () => {
  const [a, b, c] = [row("a"), row("b"), row("c")];
  it("puts what moved first, and forgets what was deleted", () => {
    expect(ids(newestWith([a, b, c], change(row("c", { version: 2 }))))).toEqual(["c", "a", "b"]);
    expect(ids(newestWith([a, b], change(c)))).toEqual(["c", "a", "b"]);
    expect(ids(newestWith([a, b], change(row("a", { version: 2 }), { deleted: true })))).toEqual(["b"]);
  });

  it("keeps the order of the server, whatever is heard first, and no more rows than it reads", () => {
    const older = row("b", { updated: "2029-01-01T00:00:01Z" });
    const rows = newestWith([row("a", { updated: "2029-01-01T00:00:02Z" })], change(older));
    expect(ids(rows)).toEqual(["a", "b"]);
    const many = Array.from({ length: NEWEST_MAX }, (_, at) => row(`s${at}`));
    expect(newestWith(many, change(c))).toHaveLength(NEWEST_MAX);
  });

  it("takes nothing of others, and nothing that was heard late", () => {
    expect(newestWith([a], change(c, { own: false }))).toEqual([a]);
    const later = row("a", { version: 3, title: "later" });
    expect(newestWith([b, later], change(row("a", { version: 2 })))).toEqual([b, later]);
    expect(waitingWith([row("a", { version: 3, waiting: "run" })], change(row("a", { version: 2 })))).toHaveLength(1);
  });

  it("brings nothing back that was decided or deleted since", () => {
    const heard = new Heard();
    expect(heard.takes(change(row("a", { version: 10 }), { deleted: true }))).toBe(true);
    expect(heard.takes(change(row("a", { version: 9, waiting: "decision" })))).toBe(false);
    expect(heard.takes(change(row("a", { version: 11 }), { deleted: true }))).toBe(false);
    expect(heard.takes(change(b))).toBe(true);
    expect(heard.takes(change(row("b", { parked: "why" })))).toBe(true);
    heard.clear();
    expect(heard.takes(change(row("a", { version: 2 })))).toBe(true);
  });

  it("moves a row between pages, and counts those that begin and that are deleted, wherever they are", () => {
    const pages = [{ rows: [a], total: 3, next: "x" }, { rows: [b], total: 3, next: "y" }];
    const seen = (one: ListChange) => pagesWith(pages, one).map((page) => [ids(page.rows), page.total]);
    expect(seen(change(row("b", { version: 2 })))).toEqual([[["b", "a"], 3], [[], 3]]);
    expect(seen(change(c))).toEqual([[["c", "a"], 3], [["b"], 3]]);
    expect(seen(change(c, { begun: true }))).toEqual([[["c", "a"], 4], [["b"], 4]]);
    expect(seen(change(a, { begun: true }))).toEqual([[["a"], 3], [["b"], 3]]);
    expect(seen(change(row("b", { version: 2 }), { deleted: true }))).toEqual([[["a"], 2], [[], 2]]);
    expect(seen(change(c, { deleted: true }))).toEqual([[["a"], 2], [["b"], 2]]);
    const many = [{ rows: [a], total: TOTAL_MAX, next: "x" }];
    expect(pagesWith(many, change(c, { begun: true }))[0]?.total).toBe(TOTAL_MAX);
  });

  it("knows a session once, though it keeps its place on a later page for a while after it moved", () => {
    const pages = [{ rows: [row("b", { version: 2 }), a], total: 3, next: "x" }, { rows: [b, c], total: 3, next: null }];
    const seen = pagesWith(pages, change(row("b", { version: 3 })));
    expect(seen.map((page) => ids(page.rows))).toEqual([["b", "a"], ["c"]]);
    const rows = eachOnce(pages.flatMap((page) => page.rows));
    expect(rows.map((one) => [one.sessionId, one.version])).toEqual([["b", 2], ["a", 1], ["c", 1]]);
  });

  it("changes only what a search found", () => {
    const pages = [{ rows: [a, b], total: 2, next: null }];
    expect(searchedWith(pages, change(c))).toEqual(pages);
    expect(searchedWith(pages, change(row("b", { version: 2, title: "new" })))[0]?.rows.map((one) => one.title)).toEqual(["a", "new"]);
    expect(searchedWith(pages, change(row("b", { version: 2 }), { deleted: true }))).toEqual([{ rows: [a], total: 1, next: null }]);
    expect(foundWith([row("a", { version: 3 })], change(row("a", { version: 2, title: "old" })))[0]?.title).toBe("a");
  });

  it("lists what waits, of whoever it is, until it does not", () => {
    const asks = change(row("o.a", { version: 2, waiting: "decision" }), { own: false });
    expect(ids(waitingWith([b], asks))).toEqual(["o.a", "b"]);
    expect(ids(waitingWith([asks.row, b], change(row("o.a", { version: 3 }), { own: false })))).toEqual(["b"]);
  });

  it("adds up what the owner's own sessions used", () => {
    const meter = (used: number) => ({ used, max: null });
    const usage = { owner: "ada", until: "", money: meter(1), tokens: meter(10), turns: meter(1), bytes: meter(5), priced: true };
    const used = { usedTokens: 7, usedCostMicros: 3 };
    expect(usedMore(usage, change(row("a"), used))).toEqual({ ...usage, money: meter(4), tokens: meter(17) });
    expect(usedMore(usage, change(row("a"), { ...used, own: false }))).toEqual(usage);
  });
});

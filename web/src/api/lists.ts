import type { ListChange, SessionRow, Usage } from "./client";

/** A page of sessions, how many there are on all pages as far as they are counted, and where the next one begins. */
export interface SessionPage {
  rows: SessionRow[];
  total: number;
  next: string | null;
}

/** How far sessions are counted. */
export const TOTAL_MAX = 1_000;

/** How many of the newest sessions are kept. */
export const NEWEST_MAX = 100;

/** How many sessions are remembered with how far they were heard. */
const HEARD_MAX = 10_000;

/** How far each session was heard: what comes later from further back, as it may from two nodes, brings nothing back. */
export class Heard {
  private versions = new Map<string, number>();

  /** Whether this is news. */
  takes(change: ListChange): boolean {
    const { sessionId, version } = change.row;
    if (version < (this.versions.get(sessionId) ?? 0)) return false;
    if (this.versions.size >= HEARD_MAX) this.versions.clear();
    // After its deletion a session goes on until it is erased: no list hears of that.
    this.versions.set(sessionId, change.deleted ? Infinity : version);
    return true;
  }

  /** Everything is read again: whoever serves it may have been restored from further back. */
  clear(): void {
    this.versions.clear();
  }
}

/** A row is not made older by what was heard late. */
const isOld = (known: SessionRow | undefined, change: ListChange) => known !== undefined && known.version > change.row.version;

const newestFirst = (one: SessionRow, other: SessionRow) => (one.updated < other.updated ? 1 : one.updated > other.updated ? -1 : 0);

/** The newest sessions of their owner, with what changed in them. */
export function newestWith(rows: SessionRow[], change: ListChange): SessionRow[] {
  const known = rows.find((row) => row.sessionId === change.row.sessionId);
  if (!change.own || isOld(known, change)) return rows;
  const others = rows.filter((row) => row !== known);
  return change.deleted ? others : [change.row, ...others].sort(newestFirst).slice(0, NEWEST_MAX);
}

/** What was found, with what changed in it. */
export function foundWith(rows: SessionRow[], change: ListChange): SessionRow[] {
  const known = rows.find((row) => row.sessionId === change.row.sessionId);
  if (!known || isOld(known, change)) return rows;
  return change.deleted ? rows.filter((row) => row !== known) : rows.map((row) => (row === known ? change.row : row));
}

/** Pages of sessions, with what changed in them. A session that is on none of them is new, or on a page that was not read. */
export function pagesWith(pages: SessionPage[], change: ListChange): SessionPage[] {
  const known = pages.flatMap((page) => page.rows).find((row) => row.sessionId === change.row.sessionId);
  if (!change.own || isOld(known, change)) return pages;
  const more = Number(change.begun && !known && !change.deleted) - Number(change.deleted);
  return pages.map((page, at) => {
    // It may be on two pages: what moves stays where it was listed for a while.
    const others = page.rows.filter((row) => row.sessionId !== change.row.sessionId);
    const total = page.total >= TOTAL_MAX ? page.total : page.total + more;
    return { ...page, total, rows: at === 0 && !change.deleted ? [change.row, ...others].sort(newestFirst) : others };
  });
}

/** These rows, each session once: where it comes first. */
export function eachOnce(rows: SessionRow[]): SessionRow[] {
  const known = new Set<string>();
  return rows.filter(({ sessionId }) => !known.has(sessionId) && known.add(sessionId));
}

/** The same, where they were searched for: only what was found changes. */
export function searchedWith(pages: SessionPage[], change: ListChange): SessionPage[] {
  return pages.map((page) => {
    const rows = foundWith(page.rows, change);
    return rows.length < page.rows.length ? { ...page, rows, total: page.total - 1 } : { ...page, rows };
  });
}

/** What waits for a person, with what changed in it. */
export function waitingWith(rows: SessionRow[], change: ListChange): SessionRow[] {
  const known = rows.find((row) => row.sessionId === change.row.sessionId);
  if (isOld(known, change)) return rows;
  const others = rows.filter((row) => row !== known);
  return change.row.waiting && !change.deleted ? [change.row, ...others].sort(newestFirst) : known ? others : rows;
}

/** What was used today, with what a change of their own session used. */
export function usedMore(usage: Usage, change: ListChange): Usage {
  if (!change.own) return usage;
  const { money, tokens } = usage;
  return { ...usage, money: { ...money, used: money.used + change.usedCostMicros }, tokens: { ...tokens, used: tokens.used + change.usedTokens } };
}

import type { SessionRow } from "../api/client";

/** What the sidebar lists: what waits and is not among the newest first, then the newest that were not put away. */
export function sidebarRows(newest: SessionRow[], waiting: SessionRow[]): SessionRow[] {
  const known = new Map(newest.map((row) => [row.sessionId, row]));
  const older = waiting.filter((row) => !known.has(row.sessionId));
  return [...older, ...newest.filter((row) => !row.archived || row.waiting)];
}

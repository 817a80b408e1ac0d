import { infiniteQueryOptions, QueryClient, queryOptions } from "@tanstack/react-query";
import { api, got, inSession, Problem, type Memory, type SessionRow } from "./client";
import { rereader } from "./reread";

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 2_000,
      refetchOnWindowFocus: true,
      retry: (count, error) => count < 2 && !(error instanceof Problem && error.status >= 400 && error.status < 500),
      retryDelay: 400,
    },
  },
});

/** Every key of something that belongs to a session names the session right behind its kind. */
export const meQuery = queryOptions({ queryKey: ["me"], queryFn: () => got(api.GET("/api/me")), staleTime: 30_000 });
export const modelQuery = queryOptions({ queryKey: ["model"], queryFn: () => got(api.GET("/api/model")), staleTime: 30_000 });
export const foundQuery = queryOptions({ queryKey: ["model-found"], queryFn: () => got(api.GET("/api/model/found")), staleTime: 60_000 });
/** How many sessions are read at once. */
const SESSIONS_PAGE = 100;

/** Some of the sessions, newest first, and how many there are. */
async function sessionPage(search: string, offset: number, limit: number): Promise<{ rows: SessionRow[]; total: number }> {
  let total = 0;
  const asked = api.GET("/api/sessions", { params: { query: { limit, offset, search: search || undefined } } });
  const rows = await got(asked.then((answer) => {
    total = Number(answer.response.headers.get("x-total-count") ?? 0);
    return answer;
  }));
  return { rows, total };
}
export const sessionsQuery = queryOptions({
  queryKey: ["sessions", "newest"],
  queryFn: () => sessionPage("", 0, SESSIONS_PAGE).then(({ rows }) => rows),
});
export const sessionPagesQuery = (search: string) =>
  infiniteQueryOptions({
    queryKey: ["sessions", "pages", search],
    queryFn: ({ pageParam }) => sessionPage(search, pageParam, SESSIONS_PAGE),
    initialPageParam: 0,
    getNextPageParam: (last, pages) => {
      const shown = pages.reduce((count, page) => count + page.rows.length, 0);
      return last.rows.length > 0 && shown < last.total ? shown : undefined;
    },
  });
export const foundSessionsQuery = (search: string, limit: number) =>
  queryOptions({ queryKey: ["sessions", "found", search, limit], queryFn: () => sessionPage(search, 0, limit).then(({ rows }) => rows) });
export const approvalsQuery = queryOptions({ queryKey: ["approvals"], queryFn: () => got(api.GET("/api/approvals")) });
export const peopleQuery = queryOptions({ queryKey: ["people"], queryFn: () => got(api.GET("/api/people")) });
export const tokensQuery = queryOptions({ queryKey: ["tokens"], queryFn: () => got(api.GET("/api/tokens")) });
export const decisionsQuery = queryOptions({
  queryKey: ["decisions"],
  queryFn: () => got(api.GET("/api/decisions", { params: { query: { since: new Date().setHours(0, 0, 0, 0) } } })),
});
export const usageQuery = queryOptions({ queryKey: ["usage"], queryFn: () => got(api.GET("/api/usage")), staleTime: 10_000 });

export const controlQuery = (id: string) =>
  queryOptions({
    queryKey: ["plan-control-state", id],
    queryFn: () => got(api.GET("/api/sessions/{id}", { params: inSession(id) })),
  });
/** What a digest names never changes. */
export const revisionQuery = (id: string, number: number | "current", digest: string) =>
  queryOptions({
    queryKey: ["plan-revision", id, number, digest],
    queryFn: () =>
      got(api.GET("/api/sessions/{id}/plan/revisions/{number}", { params: { path: { id, number: String(number) } } })),
    staleTime: Infinity,
  });
export const diffQuery = (id: string, digest: string, from?: number, to?: number) =>
  queryOptions({
    queryKey: ["plan-diff", id, digest, from ?? null, to ?? null],
    queryFn: () => got(api.GET("/api/sessions/{id}/plan/diff", { params: { ...inSession(id), query: { from, to } } })),
    staleTime: Infinity,
  });
export const commentsQuery = (id: string) =>
  queryOptions({
    queryKey: ["plan-comments", id],
    queryFn: () => got(api.GET("/api/sessions/{id}/plan/comments", { params: inSession(id) })),
  });
export const plansQuery = (id: string) =>
  queryOptions({
    queryKey: ["plans", id],
    queryFn: () => got(api.GET("/api/sessions/{id}/plans", { params: inSession(id) })),
  });
export const workQuery = (id: string) =>
  queryOptions({
    queryKey: ["work", id],
    queryFn: () => got(api.GET("/api/sessions/{id}/work", { params: inSession(id) })),
  });
export const slotsQuery = (id: string) =>
  queryOptions({
    queryKey: ["slots", id],
    queryFn: () => got(api.GET("/api/sessions/{id}/slots", { params: inSession(id) })),
  });
export const timelineQuery = (id: string, plan?: string, run?: string) =>
  queryOptions({
    queryKey: ["timeline", id, plan ?? null, run ?? null],
    queryFn: () => got(api.GET("/api/sessions/{id}/timeline", { params: { ...inSession(id), query: { plan, run } } })),
  });
export const memoryQuery = (id: string, query: string) =>
  queryOptions({
    queryKey: ["memory", id, query],
    queryFn: () => got(api.GET("/api/sessions/{id}/memory", { params: { ...inSession(id), query: { query } } })) as Promise<Memory>,
  });

export const notebookQuery = (id: string, page: string | null) =>
  queryOptions({
    queryKey: ["notebook", id, page],
    queryFn: () => got(api.GET("/api/sessions/{id}/notebook", { params: { ...inSession(id), query: page ? { page } : {} } })),
  });

/** A query's key is read again, named as JSON. */
const reread = rereader((key) => queries.invalidateQueries({ queryKey: JSON.parse(key) as string[] }));

/** What a session's events may have changed is read again; nothing of any other session. */
export function moved(id: string): void {
  for (const kind of ["plan-control-state", "plan-comments"]) reread(JSON.stringify([kind, id]));
  if (later.has(id)) return;
  // What is long to read is read at most once a second.
  later.add(id);
  setTimeout(() => {
    later.delete(id);
    for (const kind of ["plans", "work", "slots", "timeline", "memory", "notebook"]) reread(JSON.stringify([kind, id]));
  }, 1_000);
}
const later = new Set<string>();

/** Lists and badges are queries, read again on a hint. */
export function listsMoved(): void {
  for (const kind of ["sessions", "approvals", "decisions", "usage"]) reread(JSON.stringify([kind]));
}

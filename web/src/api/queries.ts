import { type InfiniteData, infiniteQueryOptions, QueryClient, queryOptions } from "@tanstack/react-query";
import { api, got, gotWithHeaders, inSession, Problem, type ListChange, type Memory, type SessionRow } from "./client";
import { foundWith, Heard, NEWEST_MAX, newestWith, pagesWith, searchedWith, type SessionPage, usedMore, waitingWith } from "./lists";
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

/** Some of the sessions, newest first. */
async function sessionPage(search: string, after: string | null, limit: number): Promise<SessionPage> {
  const query = { limit, after: after ?? undefined, search: search || undefined };
  const [rows, headers] = await gotWithHeaders(api.GET("/api/sessions", { params: { query } }));
  return { rows, total: Number(headers.get("x-total-count") ?? 0), next: headers.get("x-next-page") };
}
export const sessionsQuery = queryOptions({
  queryKey: ["sessions", "newest"],
  queryFn: () => sessionPage("", null, NEWEST_MAX).then(({ rows }) => rows),
});
export const sessionPagesQuery = (search: string) =>
  infiniteQueryOptions({
    queryKey: ["sessions", "pages", search],
    queryFn: ({ pageParam }) => sessionPage(search, pageParam, NEWEST_MAX),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next ?? undefined,
  });
export const foundSessionsQuery = (search: string, limit: number) =>
  queryOptions({ queryKey: ["sessions", "found", search, limit], queryFn: () => sessionPage(search, null, limit).then(({ rows }) => rows) });
export const approvalsQuery = queryOptions({ queryKey: ["approvals"], queryFn: () => got(api.GET("/api/approvals")) });
export const peopleQuery = queryOptions({ queryKey: ["people"], queryFn: () => got(api.GET("/api/people")) });
export const tokensQuery = queryOptions({ queryKey: ["tokens"], queryFn: () => got(api.GET("/api/tokens")) });
export const decisionsQuery = queryOptions({
  queryKey: ["decisions"],
  queryFn: async () => {
    const since = new Date().setHours(0, 0, 0, 0);
    const [rows, headers] = await gotWithHeaders(api.GET("/api/decisions", { params: { query: { since } } }));
    return { rows, more: headers.has("x-next-page") };
  },
});
/** Hints add what is used meanwhile; a new day begins at zero. */
export const usageQuery = queryOptions({
  queryKey: ["usage"],
  queryFn: () => got(api.GET("/api/usage")),
  staleTime: 10_000,
  refetchInterval: ({ state }) => (state.data ? Math.max(1_000, Date.parse(state.data.until) - Date.now() + 1_000) : false),
});

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
export const receiptQuery = (id: string, plan: string) =>
  queryOptions({
    queryKey: ["plan-receipt", id, plan],
    queryFn: () => got(api.GET("/api/sessions/{id}/plan/receipt", { params: inSession(id) })),
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
    for (const kind of ["plans", "plan-receipt", "work", "slots", "timeline", "memory", "notebook"]) reread(JSON.stringify([kind, id]));
  }, 1_000);
}
const later = new Set<string>();

/** Lists and badges are read again. */
export function listsMoved(): void {
  heard.clear();
  for (const kind of ["sessions", "approvals", "decisions", "usage"]) reread(JSON.stringify([kind]));
}

const heard = new Heard();
/** What a hint brought is put where lists show it; only what it does not bring is read. */
export function listChanged(change: ListChange): void {
  if (change.decided) reread(JSON.stringify(["decisions"]));
  queries.setQueryData(usageQuery.queryKey, (usage) => usage && usedMore(usage, change));
  if (!heard.takes(change)) return;
  // What is being read may be older than this.
  for (const kind of ["sessions", "approvals"]) if (queries.isFetching({ queryKey: [kind] })) reread(JSON.stringify([kind]));
  queries.setQueryData(sessionsQuery.queryKey, (rows) => rows && newestWith(rows, change));
  for (const [key, data] of queries.getQueriesData<InfiniteData<SessionPage, string | null>>({ queryKey: ["sessions", "pages"] })) {
    const changed = key[2] === "" ? pagesWith : searchedWith;
    if (data) queries.setQueryData(key, { ...data, pages: changed(data.pages, change) });
  }
  queries.setQueriesData<SessionRow[]>({ queryKey: ["sessions", "found"] }, (rows) => rows && foundWith(rows, change));
  queries.setQueryData(approvalsQuery.queryKey, (rows) => rows && waitingWith(rows, change));
}

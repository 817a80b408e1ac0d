import createClient from "openapi-fetch";
import { t } from "../lib/t";
import { sendAsked } from "./again";
import { isDefinite, NoAnswer, send } from "./intent";
import { PAGE_KEY, pageKey } from "./pageKey";
import type { components, paths } from "./types";

export type Schemas = components["schemas"];
export type Session = Schemas["SessionDto"];
export type PersonRow = Schemas["PersonRow"];
export type SessionRow = Schemas["SessionRowDto"];
export type ListChange = Schemas["ListChangeDto"];
export type Usage = Schemas["UsageDto"];
export type Plan = Schemas["PlanDto"];
export type Revision = Schemas["RevisionDto"];
export type Diff = Schemas["DiffDto"];
export type CommentRow = Schemas["CommentRowDto"];
export type Envelope = Schemas["Envelope"];
export type Preview = Schemas["Preview"];
export type Ask = Schemas["AskDto"];
export type Bar = Schemas["BarDto"];
export type Work = Schemas["core.WorkView"];
export type Memory = Schemas["core.MemoryView"];
export type Ranked = Schemas["core.Ranked"];
export type Me = Schemas["Me"];
export type Model = Schemas["ModelDto"];

/** Whether a foreign agent works in this session: `mcp:key`, or `owner.mcp:key` if it is somebody else's. */
export const isForeign = (id: string) => /^([0-9a-f]{32}\.)?mcp:/.test(id);

/** What is refused, in the server's words. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly kind: string,
    readonly detail: string,
    readonly currentDigest?: string,
  ) {
    super(detail);
  }
}

export const api = createClient<paths>({ baseUrl: "/", fetch: (request) => sendAsked(request, send) });

api.use({
  onRequest: ({ request }) => {
    const key = pageKey();
    if (key) request.headers.set(PAGE_KEY, key);
  },
});

/** A ticket for one stream: a browser sends no header with a WebSocket or with server-sent events. */
export const ticket = async () => encodeURIComponent((await got(api.POST("/api/tickets"))).ticket);

type Answer<T> = { data?: T; error?: unknown; response: Response };

/** The answer, or the problem thrown. Only a response that did not come is called offline. */
export async function got<T>(asked: Promise<Answer<T>>): Promise<T> {
  let answer: Answer<T>;
  try {
    answer = await asked;
  } catch (error) {
    if (error instanceof NoAnswer) throw new Problem(0, "offline", t("The server cannot be reached."));
    throw new Problem(0, "bad_answer", t("The answer of the server cannot be read: {error}", { error: String(error) }));
  }
  const { data, error, response } = answer;
  if (response.ok) return data as T;
  const problem = (error ?? {}) as { type?: string; detail?: string; currentDigest?: string };
  throw new Problem(
    response.status,
    problem.type?.replace("urn:planwright:", "") ?? "unknown",
    problem.detail ?? `${response.status} ${response.statusText}`,
    problem.currentDigest,
  );
}

/** The same with its headers: where the next page of a list begins. */
export async function gotWithHeaders<T>(asked: Promise<Answer<T>>): Promise<[T, Headers]> {
  const data = await got(asked);
  return [data, (await asked).response.headers];
}

/** Whether nobody knows what became of it: it may have been done, and is asked for again under the same key. */
export const isUnknown = (problem: unknown) => problem instanceof Problem && (problem.kind === "offline" || problem.kind === "bad_answer" || !isDefinite(problem.status));

/** What to tell a person whose action came to this. */
export function problemWords(problem: unknown): string {
  const words = problem instanceof Error ? problem.message : String(problem);
  return problem instanceof Problem && problem.kind === "offline" ? `${words} ${t("It may have arrived; doing it again does it once.")}` : words;
}

/** A decision names what was read. */
export const asRead = (digest: string) => ({ "If-Match": `"${digest}"` });

export const inSession = (id: string) => ({ path: { id } });

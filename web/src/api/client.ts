import createClient from "openapi-fetch";
import { t } from "../t";
import type { components, paths } from "./types";

export type Schemas = components["schemas"];
export type Session = Schemas["SessionDto"];
export type SessionRow = Schemas["OwnSessionDto"];
export type Waiting = Schemas["SessionRowDto"];
export type Plan = Schemas["PlanDto"];
export type Revision = Schemas["RevisionDto"];
export type Diff = Schemas["DiffDto"];
export type CommentRow = Schemas["CommentRowDto"];
export type Envelope = Schemas["Envelope"];
export type SessionEvent = Schemas["core.SessionEvent"];
export type Preview = Schemas["Preview"];
export type Ask = Schemas["AskDto"];
export type Bar = Schemas["BarDto"];
export type Work = Schemas["core.WorkView"];
export type Memory = Schemas["core.MemoryView"];
export type Ranked = Schemas["core.Ranked"];
export type Me = Schemas["Me"];
export type Model = Schemas["ModelDto"];

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

export const api = createClient<paths>({ baseUrl: "/" });

type Answer<T> = { data?: T; error?: unknown; response: Response };

/** The answer, or the problem thrown. */
export async function got<T>(asked: Promise<Answer<T>>): Promise<T> {
  let answer: Answer<T>;
  try {
    answer = await asked;
  } catch {
    throw new Problem(0, "offline", t("The server cannot be reached. Nothing was sent twice; try again."));
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

/** One key for each thing that a person does: sending it again has one effect. */
export const once = () => ({ "Idempotency-Key": crypto.randomUUID() });

/** A decision names what was read. */
export const asRead = (digest: string) => ({ "If-Match": `"${digest}"`, ...once() });

export const inSession = (id: string) => ({ path: { id } });

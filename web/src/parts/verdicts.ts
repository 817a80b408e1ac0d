import { api, asRead, got, inSession, once, Problem, type Schemas } from "../api/client";
import { listsMoved, moved, queries } from "../api/queries";
import { t } from "../t";
import { say } from "./basics";

/** What a verdict came to. */
export type Came = "done" | "stale" | "refused";

/** Does something to a session and says how it came out; what it changed is read again. */
async function act(id: string, asked: Promise<unknown>, done: string): Promise<Came> {
  try {
    await asked;
    if (done) say(done, "good");
    return "done";
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    const stale = problem.status === 412;
    say(stale ? t("Nothing was approved: it changed while you were reading. The change is shown.") : problem.detail, "bad");
    return stale ? "stale" : "refused";
  } finally {
    moved(id);
    listsMoved();
    void queries.invalidateQueries({ queryKey: ["memory", id] });
    await queries.refetchQueries({ queryKey: ["plan-control-state", id] });
  }
}

const to = (id: string, digest: string) => ({ params: { ...inSession(id), header: asRead(digest) } });

/** Everything that a person can do to a plan, a call or a run from here. */
export const verdicts = {
  shown: (id: string, digest: string) => got(api.POST("/api/sessions/{id}/plan/shown", to(id, digest))),
  approve: (id: string, digest: string, notes: string[] = [], hold = false) =>
    act(id, got(api.POST("/api/sessions/{id}/plan/approve", { ...to(id, digest), body: { notes, hold } })), hold ? t("Approved and held") : t("Approved; the execution starts")),
  changes: (id: string, digest: string, comments: Schemas["CommentDto"][]) =>
    act(id, got(api.POST("/api/sessions/{id}/plan/changes", { ...to(id, digest), body: { comments } })), t("Sent; a newer revision is on its way")),
  reject: (id: string, digest: string, why: string) =>
    act(id, got(api.POST("/api/sessions/{id}/plan/reject", { ...to(id, digest), body: { why: why || undefined } })), t("Rejected")),
  edit: (id: string, digest: string, markdown: string) =>
    act(id, got(api.PUT("/api/sessions/{id}/plan/content", { ...to(id, digest), body: { markdown } })), t("Saved; this revision is yours")),
  permit: (id: string, digest: string, permit: Schemas["PermitName"], text = "") =>
    act(id, got(api.POST("/api/sessions/{id}/permission", { ...to(id, digest), body: { permit, text } })), { once: t("Allowed, once"), until_plan_ends: t("Allowed, until the plan ends"), deny: t("Denied"), replan: t("Denied; the plan is to be revised") }[permit]),
  settle: (id: string, call: string, happened: boolean) =>
    act(id, got(api.POST("/api/sessions/{id}/plan/settle", { params: { ...inSession(id), header: once() }, body: { call, happened } })), t("Settled")),
  skip: (id: string, step: number) =>
    act(id, got(api.POST("/api/sessions/{id}/plan/skip", { params: { ...inSession(id), header: once() }, body: { step } })), t("Step {step} is left out", { step })),
  resume: (id: string) => act(id, got(api.POST("/api/sessions/{id}/plan/resume", { params: { ...inSession(id), header: once() } })), t("It goes on")),
  pause: (id: string) => act(id, got(api.POST("/api/sessions/{id}/plan/stop", { params: { ...inSession(id), header: once() } })), t("The execution is paused")),
  stop: (id: string) => act(id, got(api.POST("/api/sessions/{id}/stop", { params: { ...inSession(id), header: once() } })), t("Stopped")),
  off: (id: string) => act(id, got(api.DELETE("/api/sessions/{id}/plan", { params: { ...inSession(id), header: once() } })), t("Plan work has ended")),
  on: (id: string) => act(id, got(api.POST("/api/plans/enable", { params: { header: once() }, body: { sessionId: id } })), t("Plan work is on; say what you want planned")),
  rename: (id: string, title: string) => act(id, got(api.PATCH("/api/sessions/{id}", { params: { ...inSession(id), header: once() }, body: { title } })), t("Renamed")),
  archive: (id: string, archived: boolean) => act(id, got(api.PATCH("/api/sessions/{id}", { params: { ...inSession(id), header: once() }, body: { archived } })), archived ? t("Put away") : t("Brought back")),
  remove: (id: string) => act(id, got(api.DELETE("/api/sessions/{id}", { params: { ...inSession(id), header: once() } })), t("Deleted")),
  promote: (id: string, item: string, text: string) => act(id, got(api.POST("/api/sessions/{id}/memory/{item}/promote", { params: { path: { id, item } }, body: { text } })), t("Known everywhere now")),
  forget: (id: string, item: string) => act(id, got(api.DELETE("/api/sessions/{id}/memory/{item}", { params: { path: { id, item }, header: once() } })), t("Forgotten")),
};

/** What a line came to. What was refused came as a problem. */
type Reply = { accepted?: { words: string }; unreadable?: string; nothing?: string; moved?: { session: string; words: string } } | "help";

/** Says a line in a session, as a terminal would; throws what was refused. */
export async function line(id: string, text: string): Promise<void> {
  const asked = api.POST("/api/sessions/{id}/lines", { params: { ...inSession(id), header: once() }, body: { line: text } });
  const reply = (await got(asked)) as Reply;
  moved(id);
  listsMoved();
  if (reply === "help") return say(t("/plan on · /plan off · /goal add … · /task add … · /auto on · /memory save … · /reset"));
  if (reply.unreadable) throw new Problem(422, "unreadable", reply.unreadable);
  const words = reply.accepted?.words ?? reply.nothing ?? reply.moved?.words;
  if (words && text.startsWith("/")) say(words, reply.accepted ? "good" : "plain");
}

/** Says a line from a button; what is refused is said in passing. */
export function tell(id: string, text: string): Promise<void> {
  return line(id, text).catch((problem: Error) => say(problem.message, "bad"));
}

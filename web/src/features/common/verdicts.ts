import { api, asRead, got, inSession, Problem, problemWords, type Schemas } from "../../api/client";
import { listsMoved, moved, queries } from "../../api/queries";
import { t } from "../../lib/t";
import { say } from "../../ui/basics";

/** How a plan is written. */
export type Strategy = Schemas["StrategyName"];

/** What a verdict came to. */
export type Came = "done" | "stale" | "refused";

/** Does something to a session and says how it came out; what it changed is read again. */
async function act(id: string, asked: Promise<unknown>, done: string, stale = t("Nothing was done: it changed while you were reading. The change is shown.")): Promise<Came> {
  try {
    await asked;
    if (done) say(done, "good");
    return "done";
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    const isStale = problem.status === 412;
    // What the server knows was seen may differ from what is known here.
    if (problem.kind === "not_shown") void queries.invalidateQueries({ queryKey: ["plan-revision", id] });
    say(isStale ? stale : problemWords(problem), "bad");
    return isStale ? "stale" : "refused";
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
  seen: (id: string, digest: string, blocks: string[]) => got(api.POST("/api/sessions/{id}/plan/seen", { ...to(id, digest), body: { blocks } })),
  approve: (id: string, digest: string, notes: string[] = [], hold = false) =>
    act(id, got(api.POST("/api/sessions/{id}/plan/approve", { ...to(id, digest), body: { notes, hold } })), hold ? t("Approved and held") : t("Approved; the execution starts"), t("Nothing was approved: it changed while you were reading. The change is shown.")),
  changes: (id: string, digest: string, comments: Schemas["CommentDto"][]) =>
    act(id, got(api.POST("/api/sessions/{id}/plan/changes", { ...to(id, digest), body: { comments } })), t("Sent; a newer revision is on its way")),
  post: (id: string, digest: string, comment: Schemas["CommentDto"]) =>
    act(id, got(api.POST("/api/sessions/{id}/plan/comments", { ...to(id, digest), body: comment })), t("Posted")),
  reply: (id: string, planId: string, number: number, text: string) =>
    act(id, got(api.POST("/api/sessions/{id}/plan/comments/{number}/replies", { params: { path: { id, number } }, body: { planId, text } })), ""),
  changeComment: (id: string, number: number, change: Schemas["CommentChange"]) =>
    act(id, got(api.PATCH("/api/sessions/{id}/plan/comments/{number}", { params: { path: { id, number } }, body: change })), ""),
  reject: (id: string, digest: string, why: string) =>
    act(id, got(api.POST("/api/sessions/{id}/plan/reject", { ...to(id, digest), body: { why: why || undefined } })), t("Rejected")),
  edit: (id: string, digest: string, markdown: string, suggested = false) =>
    act(id, got(api.PUT("/api/sessions/{id}/plan/content", { ...to(id, digest), body: { markdown, suggested } })), t("Saved; this revision is yours")),
  permit: (id: string, digest: string, permit: Schemas["PermitName"], text = "") =>
    act(id, got(api.POST("/api/sessions/{id}/permission", { ...to(id, digest), body: { permit, text } })), { once: t("Allowed, once"), until_plan_ends: t("Allowed, until the plan ends"), deny: t("Denied"), replan: t("Denied; the plan is to be revised") }[permit]),
  settle: (id: string, call: string, happened: boolean) =>
    act(id, got(api.POST("/api/sessions/{id}/plan/settle", { params: inSession(id), body: { call, happened } })), t("Settled")),
  skip: (id: string, step: number) =>
    act(id, got(api.POST("/api/sessions/{id}/plan/skip", { params: inSession(id), body: { step } })), t("Step {step} is left out", { step })),
  resume: (id: string) => act(id, got(api.POST("/api/sessions/{id}/plan/resume", { params: inSession(id) })), t("It goes on")),
  pause: (id: string) => act(id, got(api.POST("/api/sessions/{id}/plan/stop", { params: inSession(id) })), t("The execution is paused")),
  raiseLimit: (id: string) => act(id, got(api.POST("/api/sessions/{id}/raise-limit", { params: inSession(id) })), t("Raised for today; it goes on")),
  stop: (id: string) => act(id, got(api.POST("/api/sessions/{id}/stop", { params: inSession(id) })), t("Stopped")),
  off: (id: string) => act(id, got(api.DELETE("/api/sessions/{id}/plan", { params: inSession(id) })), t("Plan work has ended")),
  done: (id: string) => act(id, got(api.POST("/api/sessions/{id}/plan/done", { params: inSession(id) })), t("Done, by your word")),
  on: (id: string, strategy: Strategy) => act(id, got(api.POST("/api/plans/enable", { body: { sessionId: id, strategy } })), t("Plan work is on; say what you want planned")),
  addGoal: (id: string, title: string) => act(id, got(api.POST("/api/sessions/{id}/goals", { params: inSession(id), body: { title } })), t("Added")),
  endGoal: (id: string, number: number, reached: boolean) => act(id, got(api.PATCH("/api/sessions/{id}/goals/{number}", { params: { path: { id, number } }, body: { reached } })), reached ? t("Reached") : t("Given up")),
  addTask: (id: string, title: string, goal: number | null) => act(id, got(api.POST("/api/sessions/{id}/tasks", { params: inSession(id), body: { title, goal } })), t("Added")),
  endTask: (id: string, number: number, done: boolean) => act(id, got(api.PATCH("/api/sessions/{id}/tasks/{number}", { params: { path: { id, number } }, body: { done } })), done ? t("Done, by your word") : t("Given up")),
  startRun: (id: string, run: Schemas["NewRun"]) => act(id, got(api.POST("/api/sessions/{id}/runs", { params: inSession(id), body: run })), t("The run starts")),
  stopRun: (id: string, number: number) => act(id, got(api.DELETE("/api/sessions/{id}/runs/{number}", { params: { path: { id, number } } })), t("The run has ended")),
  stopRuns: (id: string) => act(id, got(api.DELETE("/api/sessions/{id}/runs", { params: inSession(id) })), t("Its runs have ended")),
  resumeRun: (id: string, number: number) => act(id, got(api.POST("/api/sessions/{id}/runs/{number}/resume", { params: { path: { id, number } } })), t("It goes on")),
  resumeRuns: (id: string) => act(id, got(api.POST("/api/sessions/{id}/runs/resume", { params: inSession(id) })), t("It goes on")),
  addSchedule: (id: string, schedule: Schemas["NewScheduleDto"]) => act(id, got(api.POST("/api/sessions/{id}/schedules", { params: inSession(id), body: schedule })), t("Added")),
  endSchedule: (id: string, number: number) => act(id, got(api.DELETE("/api/sessions/{id}/schedules/{number}", { params: { path: { id, number } } })), t("It is off")),
  notebook: (id: string, on: boolean) => act(id, got(api.PUT("/api/sessions/{id}/notebook", { params: inSession(id), body: { on } })), on ? t("The notebook is on") : t("The notebook is off")),
  remember: (id: string, item: string, text: string) => act(id, got(api.PATCH("/api/sessions/{id}/memory/{item}", { params: { path: { id, item } }, body: { text } })), t("Saved")),
  rename: (id: string, title: string) => act(id, got(api.PATCH("/api/sessions/{id}", { params: inSession(id), body: { title } })), t("Renamed")),
  open: (id: string, root: string) => act(id, got(api.PATCH("/api/sessions/{id}", { params: inSession(id), body: { root } })), t("Works in {root}", { root })),
  archive: (id: string, archived: boolean) => act(id, got(api.PATCH("/api/sessions/{id}", { params: inSession(id), body: { archived } })), archived ? t("Put away") : t("Brought back")),
  remove: (id: string) => act(id, got(api.DELETE("/api/sessions/{id}", { params: inSession(id) })), t("Deleted")),
  promote: (id: string, item: string, text: string) => act(id, got(api.POST("/api/sessions/{id}/memory/{item}/promote", { params: { path: { id, item } }, body: { text } })), t("Known everywhere now")),
  forget: (id: string, item: string) => act(id, got(api.DELETE("/api/sessions/{id}/memory/{item}", { params: { path: { id, item } } })), t("Forgotten")),
};

/** Says a line in a session, as a terminal would: its answer in words; throws what was refused. The key is that of the draft, where there is one. */
export async function line(id: string, text: string, key?: string): Promise<Schemas["LineAnswer"]> {
  const header = key ? { "Idempotency-Key": key } : undefined;
  const answer = await got(api.POST("/api/sessions/{id}/lines/text", { params: { ...inSession(id), header }, body: { line: text } }));
  moved(id);
  listsMoved();
  return answer;
}

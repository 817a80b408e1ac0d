import { t } from "../lib/t";
import type { Basis, CallEntry, NoteEvent, Observation } from "./entries";

/** In which tone a line is drawn. */
export type Tone = "plain" | "good" | "bad" | "wait";
/** What a conversation says of an event, and who did it. */
export interface Note { tone: Tone; text: string; who?: string }
/** The end of a plan: what was observed, apart from what anybody says of it. */
export interface PlanEnd { basis: Basis; claim: string; touched: string[]; observation: Observation; who?: string }

type Ended = Extract<NoteEvent, { type: "plan_ended" }>["data"];

/** What whoever reports the end of a plan says of it. */
function claimOf({ account }: Ended): { claim: string; who?: string } {
  if (account.kind === "model") return { claim: account.summary };
  if (account.kind === "agent") return { claim: t("{agent} reports: {summary}", { agent: account.agent, summary: account.summary }) };
  return account.kind === "person" ? { claim: account.note ?? "", who: account.by.name } : { claim: "" };
}

/** How a plan ended, if it was completed: then a card says it, and not a line. */
export function planEnd(event: NoteEvent): PlanEnd | undefined {
  if (event.type !== "plan_ended" || event.data.end !== "completed") return undefined;
  const { touched, touchedMore: more, observation } = event.data;
  const changes = touched.map((one) => (one.kind === "wrote" ? t("wrote {path} ({bytes} bytes)", one) : t("reached {host}", one)));
  if (more > 0) changes.push(t("and {n} more", { n: more }));
  return { basis: observation.basis ?? "claimed", touched: changes, observation, ...claimOf(event.data) };
}

/** What a call gave back, in words. */
export function outputOf({ result }: CallEntry): string {
  if (!result) return "";
  if (result.kind === "output") return result.text;
  if (result.kind === "settled") return result.happened ? t("it happened, says a person") : t("it did not happen, says a person");
  switch (result.reply.kind) {
    case "planned": return t("recorded as a step of the plan; not made");
    case "plans": return t("the plans of this view");
    case "left_running": return t("the turn ended while it was under way");
    case "text": return result.reply.text;
    case "revision": return result.reply.heading;
    case "refused": return result.reply.text;
  }
}

const plain = (text: string, who?: string): Note => ({ tone: "plain", text, who });
const wait = (text: string, who?: string): Note => ({ tone: "wait", text, who });
const bad = (text: string, who?: string): Note => ({ tone: "bad", text, who });
const good = (text: string, who?: string): Note => ({ tone: "good", text, who });

/** What a conversation says of an event. */
export function noteOf(event: NoteEvent): Note {
  switch (event.type) {
    case "view_reset": return plain(t("A new view begins: the model is given nothing older"), event.data.by.name);
    case "notebook_switched": return plain(event.data.enabled ? t("The notebook is on") : t("The notebook is off; its pages stay"), event.data.by.name);
    case "session_renamed": return plain(t("Renamed: {title}", { title: event.data.title }), event.data.by.name);
    case "turn_paused": return wait(t("A limit is reached; the turn waits"));
    case "turn_resumed": return plain(t("The limit was raised"));
    case "limit_warned": return wait(t("80 % of what may be used is used"));
    case "model_call_failed": {
      const { message } = event.data.failure;
      if (event.data.retryAt == null) return bad(t("The model did not answer: {message}", { message }));
      return wait(event.data.retries.suspensions
        ? t("The model did not answer: {message}. It is asked again by itself later, or when you say something.", { message })
        : t("The model did not answer: {message}. It is tried again.", { message }));
    }
    case "model_call_orphaned": return wait(t("The process that asked the model is gone; it is asked again"));
    case "view_compacted": return plain(t("{messages} messages are summed up for the model; everything stays recorded", { messages: String(event.data.messageCount) }));
    case "permission_decided": {
      const permit = event.data.permit.kind;
      const words = { once: t("allowed, once"), until_plan_ends: t("allowed, until the plan ends"), deny: t("denied"), replan: t("denied; the plan is to be revised") }[permit];
      const tone = permit === "deny" || permit === "replan" ? bad : good;
      return tone(event.data.by ? words : t("denied: nobody decided in time"), event.data.by?.name);
    }
    case "turn_finished": {
      const { end } = event.data;
      if (end.kind === "failed") return bad(end.failure.message);
      return end.kind === "stopped" ? plain(t("Stopped"), end.by.name) : bad(t("The outcome of a call is unknown; look, and say what you find"));
    }
    case "plan_started": return plain(event.data.by ? t("Plan work is on: nothing is changed before you approve") : t("A new plan begins"), event.data.by?.name);
    case "changes_requested": {
      const { comments, by } = event.data;
      return wait(t("Changes requested ({n}): {notes}", { n: comments.length, notes: comments.map((comment) => comment.text).join(" · ") }), by.name);
    }
    case "plan_approved": return good(event.data.start === "hold" ? t("Approved and held") : t("Approved"), event.data.approval.by.name);
    case "decision_expired": return bad(t("Nobody decided in time; a newer revision is needed"));
    case "decision_reminded": return wait(t("This plan still waits for you"));
    case "execution_started": return plain(event.data.number > 1 ? t("The execution goes on ({n})", { n: event.data.number }) : t("The execution starts"));
    case "step_begun": return plain(t("Step {n} given to {by}: {title}", { n: event.data.step, by: event.data.agent, title: event.data.title }));
    case "step_ended": {
      const { end, step, summary } = event.data;
      const text = `${t("Step {n}: {end}", { n: step, end: t(end.kind) })}${summary ? ` · ${summary}` : ""}`;
      return end.kind === "failed" ? bad(text) : plain(text);
    }
    case "execution_paused": return wait(t("The execution is paused"));
    case "plan_failed": return bad(t("The model reports failure: {summary}", { summary: event.data.summary }));
    case "plan_ended": {
      const { claim, who } = claimOf(event.data);
      return plain(`${t("Plan {ended}", { ended: t(event.data.end) })}${claim ? `: ${claim}` : ""}`, who);
    }
    case "goal_added": return plain(t("Goal: {title}", { title: event.data.title }), event.data.by.name);
    case "task_added": return plain(t("Task: {title}", { title: event.data.title }), event.data.by?.name);
    case "task_ended": return plain(t("Task {end}", { end: t(event.data.end.kind) }));
    case "goal_ended": return plain(event.data.reached ? t("The goal is reached") : t("The goal is dropped"));
    case "run_started": return plain(t("A run begins"), event.data.by.name);
    case "run_warned": return wait(t("80 % of the run's {meter} is used", { meter: String(event.data.meter).replaceAll("_", " ") }));
    case "run_paused": return wait(t("The run is paused and asks"));
    case "run_resumed": return plain(t("The run goes on"), event.data.by?.name);
    case "run_ended": return plain(t("The run ended"));
    case "schedule_added": return plain(t("Schedule: {title}", { title: event.data.title }), event.data.by.name);
    case "slots_missed": return wait(t("{n} slots of a schedule were missed", { n: event.data.count }));
    case "schedule_ended": return plain(t("The schedule is off: {why}", { why: event.data.reason }));
  }
}

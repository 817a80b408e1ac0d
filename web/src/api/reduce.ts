import { t } from "../t";
import type { Envelope, Preview, Schemas } from "./client";

/** The envelopes whose events are of one subject. */
type Of<E extends { type: string }> = Extract<Envelope, { type: E["type"] }>;
type TurnEnvelope = Of<Schemas["event.TurnEvent"]>;
type PlanEnvelope = Of<Schemas["event.PlanEvent"]>;
type AutoEnvelope = Of<Schemas["event.AutoEvent"]>;
type ToolReply = Schemas["event.ToolReply"];

/** One thing in a conversation, as it is drawn. */
export type Item =
  | { kind: "said"; key: string; seq: number; at: string; by: string; text: string; waiting: boolean; withdrawn?: string }
  | { kind: "answer"; key: string; turn: string; at: string; text: string; live: boolean; cost: number; read: number; isStopped?: boolean }
  | { kind: "tool"; key: string; at: string; tool: string; arguments: string; state: ToolState; output: string; begun?: string; ended?: string; step?: number }
  | { kind: "revision"; key: string; at: string; number: number; title: string; digest: string; plan: string; author: string }
  | { kind: "ended"; key: string; at: string; ended: string; basis: Basis; claim: string; touched: string[]; observation: Observation; who?: string }
  | { kind: "command"; key: string; line: string; text: string; isRefused: boolean }
  | { kind: "mark"; key: string; at: string; tone: Tone; text: string; who?: string };
export type Observation = Schemas["event.Observation"];
/** Who says that a plan is done: the record, a model's report, or a person. */
export type Basis = Schemas["event.Basis"];
export type ToolState = "asked" | "running" | "done" | "failed" | "doubt" | "refused" | "waiting";
export type Tone = "plain" | "good" | "bad" | "wait";

/** A stretch of one session's stream, folded. */
export interface Log {
  session: string;
  /** The events that are in it: those after `from`, up to `to`. */
  from: number;
  to: number;
  items: Item[];
  /** Where an item is, by its key. */
  places: Map<string, number>;
  /** Whether it is being folded and not shown yet: its items may be changed in place. */
  isDraft: boolean;
  /** What this turn, and this stretch, has cost. */
  turn: { id: string; cost: number; open: boolean };
  context: number;
}

export const nothing = (session: string, from: number): Log => ({
  session,
  from,
  to: from,
  items: [],
  places: new Map(),
  isDraft: false,
  turn: { id: "", cost: 0, open: false },
  context: 0,
});

/** Takes one envelope in. What is of another session, or of none, or not the next one, changes nothing. */
export function take(log: Log, envelope: Envelope): Log {
  if (!envelope.sessionId || envelope.sessionId !== log.session) return log;
  if (envelope.type === "preview") return previewed(log, envelope.data);
  if (envelope.seq !== log.to + 1) return log;
  const next: Log = { ...log, to: envelope.seq };
  const at = envelope.time ?? "";
  switch (envelope.type) {
    case "message_queued": {
      const { text, by } = envelope.data;
      put(next, { kind: "said", key: `q${envelope.seq}`, seq: envelope.seq, at, by: by.name, text, waiting: true });
      break;
    }
    case "cause_withdrawn": {
      const { queued, reason } = envelope.data;
      change(next, `q${queued}`, "said", (item) => ({ ...item, waiting: false, withdrawn: reason }));
      break;
    }
    case "view_reset":
      mark(next, envelope, "plain", t("A new view begins: the model is given nothing older"), envelope.data.by.name);
      break;
    case "agent_called": {
      const { call, agent, tool, reply, arguments: asked } = envelope.data;
      const [state, output] = answered(reply);
      put(next, { kind: "tool", key: call, at, tool: `${agent}: ${tool}`, arguments: asked, state, output, begun: at, ended: at });
      break;
    }
    case "notebook_switched": {
      const { enabled, by } = envelope.data;
      mark(next, envelope, "plain", enabled ? t("The notebook is on") : t("The notebook is off; its pages stay"), by.name);
      break;
    }
    case "session_renamed":
      mark(next, envelope, "plain", t("Renamed: {title}", { title: envelope.data.title }), envelope.data.by.name);
      break;
    default:
      turn(next, envelope as TurnEnvelope, at);
      plan(next, envelope as PlanEnvelope, at);
      auto(next, envelope as AutoEnvelope);
  }
  return next;
}

/** A log that was read again, with the parts of stopped answers that only the earlier one knows: the journal has none of them. */
export function withStopped(log: Log, earlier: Log): Log {
  const items = [...log.items];
  earlier.items.forEach((item, place) => {
    if (item.kind !== "answer" || !item.isStopped || log.places.has(item.key)) return;
    const before = earlier.items[place - 1]?.key;
    const after = items.findIndex((one) => one.key === before);
    items.splice(after + 1, 0, item);
  });
  return { ...log, items, places: new Map(items.map((item, place) => [item.key, place])) };
}

/** A page of events at once: nobody sees what lies between them, so nothing is copied for each. */
export function takeAll(log: Log, events: Envelope[]): Log {
  let next: Log = { ...log, items: log.items.slice(), places: new Map(log.places), isDraft: true };
  for (const event of events) next = take(next, event);
  return { ...next, isDraft: false };
}

function put(log: Log, item: Item): void {
  const place = log.places.get(item.key);
  if (!log.isDraft) log.items = log.items.slice();
  if (place === undefined) {
    if (!log.isDraft) log.places = new Map(log.places);
    log.places.set(item.key, log.items.length);
    log.items.push(item);
  } else log.items[place] = item;
}

function change<K extends Item["kind"]>(log: Log, key: string, kind: K, how: (item: Extract<Item, { kind: K }>) => Item): void {
  const place = log.places.get(key);
  const item = place === undefined ? undefined : log.items[place];
  if (item?.kind === kind) put(log, how(item as Extract<Item, { kind: K }>));
}

function mark(log: Log, envelope: Envelope, tone: Tone, text: string, who?: string): void {
  put(log, { kind: "mark", key: `e${envelope.seq}`, at: envelope.time ?? "", tone, text, who });
}

const answerKey = (turnId: string, round: number) => `a${turnId}/${round}`;

/** A piece that is not committed yet: placed by its offset, dropped where it does not fit. */
function previewed(log: Log, piece: Preview["data"]): Log {
  if (log.turn.id !== piece.turn || !log.turn.open) return log;
  const key = answerKey(piece.turn, piece.round);
  const place = log.places.get(key);
  const before = place === undefined ? undefined : log.items[place];
  if (before?.kind === "answer" && !before.live) return log;
  const text = before?.kind === "answer" && piece.offset > 0 ? before.text : "";
  const bytes = piece.offset === 0 ? 0 : new TextEncoder().encode(text).length;
  if (piece.offset !== bytes) return log;
  const next = { ...log };
  put(next, { kind: "answer", key, turn: piece.turn, at: "", text: text + piece.text, live: true, cost: 0, read: 0 });
  return next;
}

/** What a caller reads, and whether that is a no. */
function answered(reply: ToolReply): [ToolState, string] {
  switch (reply.kind) {
    case "planned": return ["done", t("recorded as a step of the plan; not made")];
    case "plans": return ["done", t("the plans of this view")];
    case "left_running": return ["failed", t("the turn ended while it was under way")];
    case "text": return ["done", reply.text];
    case "revision": return ["done", reply.heading];
    case "refused": return ["refused", reply.text];
  }
}

function turn(log: Log, envelope: TurnEnvelope, at: string): void {
  switch (envelope.type) {
    case "turn_started":
      change(log, `q${envelope.data.queued}`, "said", (item) => ({ ...item, waiting: false }));
      log.turn = { id: envelope.data.turn, cost: 0, open: true };
      return;
    case "turn_paused":
      return mark(log, envelope, "wait", t("A limit is reached; the turn waits"));
    case "turn_resumed":
      return mark(log, envelope, "plain", t("The limit was raised"));
    case "limit_warned":
      return mark(log, envelope, "wait", t("80 % of what may be used is used"));
    case "model_call_started":
      for (const seq of envelope.data.messages) change(log, `q${seq}`, "said", (item) => ({ ...item, waiting: false }));
      return;
    case "model_answered": {
      // What came late was paid for, and changed nothing.
      if (envelope.data.arrival === "late") return;
      const { text, calls, usage } = envelope.data.answer;
      const cost = usage.costMicros;
      log.turn = { ...log.turn, cost: log.turn.cost + cost };
      log.context = usage.inputTokens || log.context;
      const key = answerKey(envelope.data.turn, envelope.data.round);
      if (text || log.places.has(key)) {
        put(log, { kind: "answer", key, turn: envelope.data.turn, at, text, live: false, cost, read: usage.inputTokens });
      }
      for (const call of calls) {
        put(log, { kind: "tool", key: call.id, at, tool: call.tool, arguments: call.arguments, state: "asked", output: "" });
      }
      return;
    }
    case "model_call_failed": {
      const { message } = envelope.data.failure;
      if (envelope.data.retryAt == null) mark(log, envelope, "bad", t("The model did not answer: {message}", { message }));
      else if (envelope.data.retries.suspensions) mark(log, envelope, "wait", t("The model did not answer: {message}. It is asked again by itself later, or when you say something.", { message }));
      else mark(log, envelope, "wait", t("The model did not answer: {message}. It is tried again.", { message }));
      return;
    }
    case "model_call_orphaned":
      mark(log, envelope, "wait", t("The process that asked the model is gone; it is asked again"));
      return;
    case "view_compacted":
      // What came late was paid for, and changed nothing.
      if (envelope.data.arrival === "late") return;
      mark(log, envelope, "plain", t("{messages} messages are summed up for the model; everything stays recorded", { messages: String(envelope.data.messageCount) }));
      return;
    case "call_started":
      change(log, envelope.data.call, "tool", (item) => ({ ...item, state: "running", begun: at, step: envelope.data.step ?? undefined }));
      return;
    case "permission_asked":
      change(log, envelope.data.call, "tool", (item) => ({ ...item, state: "waiting" }));
      return;
    case "permission_decided": {
      const permit = envelope.data.permit.kind;
      const words = { once: t("allowed, once"), until_plan_ends: t("allowed, until the plan ends"), deny: t("denied"), replan: t("denied; the plan is to be revised") }[permit];
      mark(log, envelope, permit === "deny" || permit === "replan" ? "bad" : "good", envelope.data.by ? words : t("denied: nobody decided in time"), envelope.data.by?.name);
      change(log, envelope.data.call, "tool", (item) => ({ ...item, state: permit === "once" || permit === "until_plan_ends" ? "asked" : "refused" }));
      return;
    }
    case "call_finished":
      change(log, envelope.data.call, "tool", (item) => ({ ...item, state: envelope.data.result.status === "done" ? "done" : "failed", output: envelope.data.result.output, ended: at }));
      return;
    case "call_answered": {
      const [state, output] = answered(envelope.data.reply);
      change(log, envelope.data.call, "tool", (item) => ({ ...item, state, output, ended: at }));
      return;
    }
    case "call_in_doubt":
      change(log, envelope.data.call, "tool", (item) => ({ ...item, state: "doubt", ended: at }));
      return;
    case "call_abandoned":
    case "call_orphaned":
      change(log, envelope.data.call, "tool", (item) => ({ ...item, state: "asked" }));
      return;
    case "doubt_settled": {
      const happened = envelope.data.verdict === "happened";
      change(log, envelope.data.call, "tool", (item) => ({ ...item, state: happened ? "done" : "failed", output: happened ? t("it happened, says a person") : t("it did not happen, says a person") }));
      return;
    }
    case "turn_finished": {
      log.turn = { ...log.turn, open: false };
      const end = envelope.data.end;
      if (end.kind === "failed") mark(log, envelope, "bad", end.failure.message);
      else if (end.kind === "stopped") mark(log, envelope, "plain", t("Stopped"), end.by.name);
      else if (end.kind === "in_doubt") mark(log, envelope, "bad", t("The outcome of a call is unknown; look, and say what you find"));
      const isStopped = end.kind === "stopped";
      // Who stops an answer has read a part of it: that stays.
      const isLive = (item: Item) => item.kind === "answer" && item.live;
      if (!log.items.some(isLive)) return;
      if (isStopped) log.items = log.items.map((item) => (item.kind === "answer" && item.live ? { ...item, live: false, isStopped: true } : item));
      log.items = log.items.filter((item) => !isLive(item));
      log.places = new Map(log.items.map((item, place) => [item.key, place]));
      return;
    }
  }
}

function plan(log: Log, envelope: PlanEnvelope, at: string): void {
  switch (envelope.type) {
    case "plan_started":
      mark(log, envelope, "plain", envelope.data.by ? t("Plan work is on: nothing is changed before you approve") : t("A new plan begins"), envelope.data.by?.name);
      return;
    case "revision_added": {
      const author = envelope.data.author.kind === "person" ? "you" : "model";
      const { number, title, plan } = envelope.data.revision;
      put(log, { kind: "revision", key: `r${envelope.data.digest}`, at, number, title, digest: envelope.data.digest, plan, author });
      return;
    }
    case "changes_requested":
      mark(log, envelope, "wait", t("Changes requested ({n}): {notes}", { n: envelope.data.comments.length, notes: envelope.data.comments.map((comment) => comment.text).join(" · ") }), envelope.data.by.name);
      return;
    case "plan_approved":
      mark(log, envelope, "good", envelope.data.start === "hold" ? t("Approved and held") : t("Approved"), envelope.data.approval.by.name);
      return;
    case "decision_expired":
      mark(log, envelope, "bad", t("Nobody decided in time; a newer revision is needed"));
      return;
    case "decision_reminded":
      mark(log, envelope, "wait", t("This plan still waits for you"));
      return;
    case "execution_started":
      mark(log, envelope, "plain", envelope.data.number > 1 ? t("The execution goes on ({n})", { n: envelope.data.number }) : t("The execution starts"));
      return;
    case "step_begun":
      mark(log, envelope, "plain", t("Step {n} given to {by}: {title}", { n: envelope.data.step, by: envelope.data.agent, title: envelope.data.title }));
      return;
    case "step_ended": {
      const end = envelope.data.end.kind;
      mark(log, envelope, end === "failed" ? "bad" : "plain", `${t("Step {n}: {end}", { n: envelope.data.step, end: t(end) })}${envelope.data.summary ? ` · ${envelope.data.summary}` : ""}`);
      return;
    }
    case "execution_paused":
      mark(log, envelope, "wait", t("The execution is paused"));
      return;
    case "plan_failed":
      mark(log, envelope, "bad", t("The model reports failure: {summary}", { summary: envelope.data.summary }));
      return;
    case "plan_ended": {
      const { end: ended, account, touched, touchedMore: more, observation } = envelope.data;
      const claim = account.kind === "model" ? account.summary : account.kind === "agent" ? t("{agent} reports: {summary}", { agent: account.agent, summary: account.summary }) : account.kind === "person" ? (account.note ?? "") : "";
      const who = account.kind === "person" ? account.by.name : undefined;
      if (ended !== "completed") {
        mark(log, envelope, "plain", `${t("Plan {ended}", { ended: t(ended) })}${claim ? `: ${claim}` : ""}`, who);
        return;
      }
      const basis = observation.basis ?? "claimed";
      const changes = touched.map((one) => (one.kind === "wrote" ? t("wrote {path} ({bytes} bytes)", one) : t("reached {host}", one)));
      if (more > 0) changes.push(t("and {n} more", { n: more }));
      put(log, { kind: "ended", key: `e${envelope.seq}`, at, ended, basis, claim, touched: changes, observation, who });
      return;
    }
    case "draft_changed":
    case "revision_shown":
    case "blocks_seen":
    case "step_queued":
      return;
  }
}

function auto(log: Log, envelope: AutoEnvelope): void {
  switch (envelope.type) {
    case "goal_added":
      return mark(log, envelope, "plain", t("Goal: {title}", { title: envelope.data.title }), envelope.data.by.name);
    case "task_added":
      return mark(log, envelope, "plain", t("Task: {title}", { title: envelope.data.title }), envelope.data.by?.name);
    case "task_ended": {
      const end = envelope.data.end.kind;
      return mark(log, envelope, "plain", t("Task {end}", { end: t(end) }));
    }
    case "goal_ended":
      return mark(log, envelope, "plain", envelope.data.reached ? t("The goal is reached") : t("The goal is dropped"));
    case "run_started":
      return mark(log, envelope, "plain", t("A run begins"), envelope.data.by.name);
    case "run_warned":
      return mark(log, envelope, "wait", t("80 % of the run's {meter} is used", { meter: String(envelope.data.meter).replaceAll("_", " ") }));
    case "run_paused":
      return mark(log, envelope, "wait", t("The run is paused and asks"));
    case "run_resumed":
      return mark(log, envelope, "plain", t("The run goes on"), envelope.data.by?.name);
    case "run_ended":
      return mark(log, envelope, "plain", t("The run ended"));
    case "schedule_added":
      return mark(log, envelope, "plain", t("Schedule: {title}", { title: envelope.data.title }), envelope.data.by.name);
    case "slots_missed":
      return mark(log, envelope, "wait", t("{n} slots of a schedule were missed", { n: envelope.data.count }));
    case "schedule_ended":
      return mark(log, envelope, "plain", t("The schedule is off: {why}", { why: envelope.data.reason }));
    case "ticked":
    case "run_moved":
    case "run_pinned":
    case "slot_claimed":
    case "slot_ended":
      return;
  }
}

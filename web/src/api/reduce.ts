import { t } from "../t";
import type { Envelope, Preview, Schemas } from "./client";

type TurnEvent = Schemas["core.TurnEvent"];
type PlanEvent = Schemas["core.PlanEvent"];
type AutoEvent = Schemas["core.AutoEvent"];
type Told = Schemas["core.Told"];
type Cases<T> = T extends unknown ? { [K in keyof T]: { kind: K; body: T[K] } }[keyof T] : never;

/** One thing in a conversation, as it is drawn. */
export type Item =
  | { kind: "said"; key: string; seq: number; at: string; by: string; text: string; waiting: boolean; withdrawn?: string }
  | { kind: "answer"; key: string; turn: string; at: string; text: string; live: boolean; cost: number; read: number; isStopped?: boolean }
  | { kind: "tool"; key: string; at: string; tool: string; arguments: string; state: ToolState; output: string; begun?: string; ended?: string; step?: number }
  | { kind: "revision"; key: string; at: string; number: number; title: string; digest: string; plan: string; author: string }
  | { kind: "ended"; key: string; at: string; ended: string; basis: Basis; claim: string; touched: string[]; observation: Observation; who?: string }
  | { kind: "command"; key: string; line: string; text: string; isRefused: boolean }
  | { kind: "mark"; key: string; at: string; tone: Tone; text: string; who?: string };
export type Observation = Schemas["core.Observation"];
/** Who says that a plan is done: the record, a model's report, or a person. */
export type Basis = Schemas["core.Basis"];
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

/** The one case of an externally tagged union. */
function only<T extends object>(value: T): Cases<T> {
  const kind = Object.keys(value)[0] as keyof T;
  return { kind, body: value[kind] } as Cases<T>;
}

/** Takes one envelope in. What is of another session, or of none, or not the next one, changes nothing. */
export function take(log: Log, envelope: Envelope): Log {
  if (!envelope.sessionId || envelope.sessionId !== log.session) return log;
  if (envelope.seq == null) {
    return envelope.type === "preview" ? previewed(log, envelope.data as Preview) : log;
  }
  if (envelope.seq !== log.to + 1) return log;
  const next: Log = { ...log, to: envelope.seq };
  const event = envelope.data as Schemas["core.SessionEvent"];
  const at = envelope.time ?? "";
  if ("message_queued" in event) {
    const { text, by } = event.message_queued;
    put(next, { kind: "said", key: `q${envelope.seq}`, seq: envelope.seq, at, by: by.id, text, waiting: true });
  } else if ("cause_withdrawn" in event) {
    const { queued, why } = event.cause_withdrawn;
    change(next, `q${queued}`, "said", (item) => ({ ...item, waiting: false, withdrawn: why }));
  } else if ("view_reset" in event) {
    mark(next, envelope, "plain", t("A new view begins: the model is given nothing older"), event.view_reset.by.id);
  } else if ("turn" in event) turn(next, envelope, at, event.turn);
  else if ("plan" in event) plan(next, envelope, at, event.plan);
  else if ("agent_called" in event) {
    const { call, agent, tool, told, arguments: asked } = event.agent_called;
    const [state, output] = answered(told);
    put(next, { kind: "tool", key: call, at, tool: `${agent}: ${tool}`, arguments: asked, state, output, begun: at, ended: at });
  } else if ("auto" in event) auto(next, envelope, event.auto);
  else if ("notebook" in event && "switched" in event.notebook) {
    const { on, by } = event.notebook.switched;
    mark(next, envelope, "plain", on ? t("The notebook is on") : t("The notebook is off; its pages stay"), by.id);
  } else if ("life" in event && "renamed" in event.life) {
    mark(next, envelope, "plain", t("Renamed: {title}", { title: event.life.renamed.title }), event.life.renamed.by.id);
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
function previewed(log: Log, piece: Preview): Log {
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

/** What a call was told, and whether that is a no. */
function answered(told: Told): [ToolState, string] {
  return told === "planned" ? ["done", t("recorded as a step of the plan; not made")]
    : told === "plans" ? ["done", t("the plans of this view")]
    : told === "left_running" ? ["failed", t("the turn ended while it was under way")]
    : "text" in told ? ["done", told.text.text]
    : "revision" in told ? ["done", told.revision.heading]
    : ["refused", told.refused.words];
}

function turn(log: Log, envelope: Envelope, at: string, event: TurnEvent): void {
  const { kind, body } = only(event);
  switch (kind) {
    case "turn_started":
      change(log, `q${body.queued}`, "said", (item) => ({ ...item, waiting: false }));
      log.turn = { id: body.turn, cost: 0, open: true };
      return;
    case "model_call_started":
      for (const seq of body.entered ?? []) change(log, `q${seq}`, "said", (item) => ({ ...item, waiting: false }));
      return;
    case "model_answered": {
      const { text = "", calls = [], usage } = body.answer;
      const cost = usage?.cost_micros ?? 0;
      log.turn = { ...log.turn, cost: log.turn.cost + cost };
      log.context = usage?.input ?? log.context;
      const key = answerKey(body.turn, body.round);
      if (text || log.places.has(key)) {
        put(log, { kind: "answer", key, turn: body.turn, at, text, live: false, cost, read: usage?.input ?? 0 });
      }
      for (const call of calls) {
        put(log, { kind: "tool", key: call.id, at, tool: call.tool, arguments: call.arguments, state: "asked", output: "" });
      }
      return;
    }
    case "model_call_failed": {
      const { message } = body.failure;
      if (body.retry_at == null) mark(log, envelope, "bad", t("The model did not answer: {message}", { message }));
      else if (body.asking?.suspended) mark(log, envelope, "wait", t("The model did not answer: {message}. It is asked again by itself later, or when you say something.", { message }));
      else mark(log, envelope, "wait", t("The model did not answer: {message}. It is tried again.", { message }));
      return;
    }
    case "model_call_orphaned":
      mark(log, envelope, "wait", t("The process that asked the model is gone; it is asked again"));
      return;
    case "view_compacted":
      // What came late was paid for, and changed nothing.
      if (body.arrival === "late") return;
      mark(log, envelope, "plain", t("{messages} messages are summed up for the model; everything stays recorded", { messages: String(body.messages) }));
      return;
    case "call_started":
      change(log, body.call, "tool", (item) => ({ ...item, state: "running", begun: at, step: body.step ?? undefined }));
      return;
    case "permission_asked":
      change(log, body.call, "tool", (item) => ({ ...item, state: "waiting" }));
      return;
    case "permission_decided": {
      const permit = typeof body.permit === "string" ? body.permit : "replan";
      const words = { once: t("allowed, once"), until_plan_ends: t("allowed, until the plan ends"), deny: t("denied"), replan: t("denied; the plan is to be revised") }[permit] ?? permit;
      mark(log, envelope, permit === "deny" || permit === "replan" ? "bad" : "good", body.by ? words : t("denied: nobody decided in time"), body.by?.id);
      change(log, body.call, "tool", (item) => ({ ...item, state: permit === "once" || permit === "until_plan_ends" ? "asked" : "refused" }));
      return;
    }
    case "call_finished":
      change(log, body.call, "tool", (item) => ({ ...item, state: body.result.status === "done" ? "done" : "failed", output: body.result.output, ended: at }));
      return;
    case "call_answered": {
      const [state, output] = answered(body.told);
      change(log, body.call, "tool", (item) => ({ ...item, state, output, ended: at }));
      return;
    }
    case "call_in_doubt":
      change(log, body.call, "tool", (item) => ({ ...item, state: "doubt", ended: at }));
      return;
    case "call_abandoned":
    case "call_orphaned":
      change(log, body.call, "tool", (item) => ({ ...item, state: "asked" }));
      return;
    case "doubt_settled": {
      const happened = body.verdict === "happened";
      change(log, body.call, "tool", (item) => ({ ...item, state: happened ? "done" : "failed", output: happened ? t("it happened, says a person") : t("it did not happen, says a person") }));
      return;
    }
    case "turn_finished": {
      log.turn = { ...log.turn, open: false };
      const end = body.end;
      if (typeof end === "object" && "failed" in end) mark(log, envelope, "bad", end.failed.failure.message);
      else if (typeof end === "object" && "stopped" in end) mark(log, envelope, "plain", t("Stopped"), end.stopped.by.id);
      else if (typeof end === "object" && "in_doubt" in end) mark(log, envelope, "bad", t("The outcome of a call is unknown; look, and say what you find"));
      const isStopped = typeof end === "object" && "stopped" in end;
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

function plan(log: Log, envelope: Envelope, at: string, event: PlanEvent): void {
  const { kind, body } = only(event);
  switch (kind) {
    case "plan_started":
      mark(log, envelope, "plain", body.by ? t("Plan work is on: nothing is changed before you approve") : t("A new plan begins"), body.by?.id);
      return;
    case "revision_added": {
      const author = typeof body.author === "object" ? "you" : "model";
      const { number, title, plan } = body.revision;
      put(log, { kind: "revision", key: `r${body.digest}`, at, number, title, digest: body.digest, plan, author });
      return;
    }
    case "changes_requested":
      mark(log, envelope, "wait", t("Changes requested ({n}): {notes}", { n: body.comments.length, notes: body.comments.map((comment) => comment.text).join(" · ") }), body.by.id);
      return;
    case "plan_approved":
      mark(log, envelope, "good", body.start === "hold" ? t("Approved and held") : t("Approved"), body.approval.by.id);
      return;
    case "decision_expired":
      mark(log, envelope, "bad", t("Nobody decided in time; a newer revision is needed"));
      return;
    case "decision_reminded":
      mark(log, envelope, "wait", t("This plan still waits for you"));
      return;
    case "execution_started":
      mark(log, envelope, "plain", body.number > 1 ? t("The execution goes on ({n})", { n: body.number }) : t("The execution starts"));
      return;
    case "step_begun":
      mark(log, envelope, "plain", t("Step {n} given to {by}: {title}", { n: body.step, by: body.by, title: body.title }));
      return;
    case "step_ended": {
      const end = typeof body.end === "string" ? body.end : (Object.keys(body.end)[0] ?? "ended");
      mark(log, envelope, end === "failed" ? "bad" : "plain", `${t("Step {n}: {end}", { n: body.step, end: t(end) })}${body.summary ? ` · ${body.summary}` : ""}`);
      return;
    }
    case "execution_paused":
      mark(log, envelope, "wait", t("The execution is paused"));
      return;
    case "plan_failed":
      mark(log, envelope, "bad", t("The model reports failure: {summary}", { summary: body.summary }));
      return;
    case "plan_ended": {
      const { ended, word, touched = [], touched_more: more = 0 } = body;
      const observation = body.observation ?? { calls_done: 0, calls_failed: 0 };
      const claim = "model" in word ? word.model.summary : "agent" in word ? t("{agent} reports: {summary}", { agent: word.agent.agent, summary: word.agent.summary }) : "person" in word ? (word.person.said ?? "") : "";
      const who = "person" in word ? word.person.by.id : undefined;
      if (ended !== "completed") {
        mark(log, envelope, "plain", `${t("Plan {ended}", { ended: t(ended) })}${claim ? `: ${claim}` : ""}`, who);
        return;
      }
      const basis = observation.basis ?? "claimed";
      const changes = touched.map((one) => ("wrote" in one ? t("wrote {path} ({bytes} bytes)", one.wrote) : t("reached {host}", one.reached)));
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

function auto(log: Log, envelope: Envelope, event: AutoEvent): void {
  const { kind, body } = only(event);
  switch (kind) {
    case "goal_added":
      return mark(log, envelope, "plain", t("Goal: {title}", { title: body.title }), body.by.id);
    case "task_added":
      return mark(log, envelope, "plain", t("Task: {title}", { title: body.title }), body.by?.id);
    case "task_ended": {
      const end = typeof body.end === "string" ? body.end : (Object.keys(body.end)[0] ?? "");
      return mark(log, envelope, "plain", t("Task {end}", { end: t(end) }));
    }
    case "goal_ended":
      return mark(log, envelope, "plain", body.reached ? t("The goal is reached") : t("The goal is dropped"));
    case "run_started":
      return mark(log, envelope, "plain", t("A run begins"), body.by.id);
    case "run_warned":
      return mark(log, envelope, "wait", t("80 % of the run's {meter} is used", { meter: String(body.meter).replaceAll("_", " ") }));
    case "run_paused":
      return mark(log, envelope, "wait", t("The run is paused and asks"));
    case "run_resumed":
      return mark(log, envelope, "plain", t("The run goes on"), body.by?.id);
    case "run_ended":
      return mark(log, envelope, "plain", t("The run ended"));
    case "schedule_added":
      return mark(log, envelope, "plain", t("Schedule: {title}", { title: body.title }), body.by.id);
    case "slots_missed":
      return mark(log, envelope, "wait", t("{n} slots of a schedule were missed", { n: body.count }));
    case "schedule_ended":
      return mark(log, envelope, "plain", t("The schedule is off: {why}", { why: body.why }));
    case "ticked":
    case "run_moved":
    case "run_pinned":
    case "slot_claimed":
    case "slot_ended":
      return;
  }
}

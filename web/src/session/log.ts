import type { Envelope, Preview, Schemas } from "../api/client";
import { NOTED, type AnswerEntry, type CallEntry, type CallResult, type CallState, type Entry, type MessageEntry, type NoteEvent } from "./entries";

/** What a turn is at: the model is asked, or will be asked again, or none of that; and since when. */
export interface Activity { kind: "model" | "retry" | "between"; since: string; attempt?: number; until?: string }

/** A turn, as far as this stretch knows it. */
export interface TurnSum { id: string; cost: number; isOpen: boolean }

const isNoted = new Set<string>(NOTED);
const messageKey = (seq: number) => `q${seq}`;
const answerKey = (turn: string, round: number) => `a${turn}/${round}`;
const utf8 = new TextEncoder();

/** What becomes of an entry by an event that names it; nothing, if the event says nothing of it. */
type Change = (entry: Entry) => Entry | undefined;
const ofMessage = (how: (message: MessageEntry) => MessageEntry): Change => (entry) => (entry.kind === "message" ? how(entry) : undefined);
const ofCall = (part: Partial<CallEntry>): Change => (entry) => (entry.kind === "call" ? { ...entry, ...part } : undefined);

/** What a turn is at after an event; nothing, if the event says nothing of that. */
function activityAfter(envelope: Envelope, since: string): Activity | undefined {
  switch (envelope.type) {
    case "model_call_started":
      return { kind: "model", since, attempt: envelope.data.attempt };
    case "model_call_failed":
      return envelope.data.retryAt == null ? { kind: "between", since } : { kind: "retry", since, until: envelope.data.retryAt };
    case "turn_started":
      return { kind: "between", since };
    case "model_answered":
    case "view_compacted":
      return envelope.data.arrival === "late" ? undefined : { kind: "between", since };
    case "model_call_abandoned":
    case "model_call_orphaned":
      return { kind: "between", since };
  }
  return undefined;
}

/** In what state a call is that was answered without being made. */
export function stateOf(reply: Schemas["event.ToolReply"]): CallState {
  if (reply.kind === "left_running") return "failed";
  return reply.kind === "refused" ? "refused" : "done";
}

/**
 * A stretch of one session's stream, folded into what a conversation shows; without a word of its own.
 *
 * Two stretches, one behind the other, make the same as their events in one: what a stretch says of an entry before it is kept until
 * that is there. So an older page is folded by itself and put in front, and no event is read twice.
 */
export class SessionLog {
  readonly entries: Entry[] = [];
  /** The events that are in it: those after `from`, up to `to`. */
  from: number;
  to: number;
  /** How large the latest request was, in tokens. */
  context = 0;
  /** What is under way beside calls; none while no turn is, and undefined where this stretch says nothing of it. */
  activity: Activity | null | undefined;
  /** The turn that began last, and the one that was last answered: where none began in this stretch, that is the latest. */
  private begun: string | undefined;
  private answered: string | undefined;
  private turns = new Map<string, TurnSum>();
  /** The place of the first entry, and of each by its key: places stay when older entries come in front. */
  private first = 0;
  private readonly places = new Map<string, number>();
  private late = new Map<string, Change[]>();
  /** The answers that are being streamed. */
  private readonly live = new Set<string>();

  constructor(readonly session: string, from: number) {
    this.from = from;
    this.to = from;
  }

  /** The latest turn, if any is known. */
  get turn(): TurnSum | undefined {
    const latest = this.begun ?? this.answered;
    return latest === undefined ? undefined : this.turns.get(latest);
  }

  /** Takes one envelope in, and says whether that changed anything. What is of another session, or of none, or not the next one, does not. */
  take(envelope: Envelope): boolean {
    if (!envelope.sessionId || envelope.sessionId !== this.session) return false;
    if (envelope.type === "preview") return this.preview(envelope.data);
    if (envelope.seq !== this.to + 1) return false;
    this.to = envelope.seq;
    this.fold(envelope, envelope.seq, envelope.time ?? "");
    return true;
  }

  /** The same with a page of them. */
  takeAll(page: Envelope[]): this {
    for (const envelope of page) this.take(envelope);
    return this;
  }

  /** Puts the stretch that ends where this one begins in front of it. That one is of no use any more. */
  prepend(older: SessionLog): void {
    if (older.session !== this.session || older.to !== this.from) return;
    for (const [key, changes] of this.late) for (const change of changes) older.change(key, change);
    this.late = older.late;
    // What is put again stays where it was first.
    for (const entry of this.entries.filter((entry) => older.places.has(entry.key))) {
      older.put(entry);
      this.remove(entry.key);
    }
    this.first -= older.entries.length;
    this.entries.unshift(...older.entries);
    older.entries.forEach((entry, at) => this.places.set(entry.key, this.first + at));
    const turns = new Map(older.turns);
    for (const [id, { cost, isOpen }] of this.turns) turns.set(id, { id, cost: cost + (turns.get(id)?.cost ?? 0), isOpen });
    this.turns = turns;
    this.begun ??= older.begun;
    this.answered ??= older.answered;
    this.context ||= older.context;
    if (this.activity === undefined) this.activity = older.activity;
    this.from = older.from;
  }

  private fold(envelope: Envelope, seq: number, at: string): void {
    this.activity = activityAfter(envelope, at) ?? (envelope.type === "turn_finished" ? null : this.activity);
    this.message(envelope, seq, at);
    this.call(envelope, at);
    this.answer(envelope, at);
    if (envelope.type === "revision_added") {
      const { revision, digest, author } = envelope.data;
      this.put({ kind: "revision", key: `r${seq}`, at, number: revision.number, title: revision.title, digest, plan: revision.plan, isByPerson: author.kind === "person" });
    }
    if (isNoted.has(envelope.type) && isTold(envelope as NoteEvent)) this.put({ kind: "note", key: `e${seq}`, at, event: envelope as NoteEvent });
    if (envelope.type === "turn_finished") this.finish(envelope.data.turn, envelope.data.end.kind === "stopped");
  }

  private message(envelope: Envelope, seq: number, at: string): void {
    const taken = ofMessage((message) => ({ ...message, isWaiting: false }));
    switch (envelope.type) {
      case "message_queued":
        this.put({ kind: "message", key: messageKey(seq), seq, at, by: envelope.data.by.name, text: envelope.data.text, isWaiting: true });
        return;
      case "cause_withdrawn": {
        const { queued, reason } = envelope.data;
        return this.change(messageKey(queued), ofMessage((message) => ({ ...message, isWaiting: false, withdrawn: reason })));
      }
      case "turn_started":
        this.begun = envelope.data.turn;
        this.turnMoved(envelope.data.turn, 0, true);
        return this.change(messageKey(envelope.data.queued), taken);
      case "model_call_started":
        for (const queued of envelope.data.messages) this.change(messageKey(queued), taken);
        return;
    }
  }

  private answer(envelope: Envelope, at: string): void {
    // What came late was paid for, and changed nothing.
    if (envelope.type !== "model_answered" || envelope.data.arrival === "late") return;
    const { turn, round, answer } = envelope.data;
    const { text, calls, usage } = answer;
    this.answered = turn;
    this.turnMoved(turn, usage.costMicros, this.turns.get(turn)?.isOpen ?? true);
    this.context = usage.inputTokens || this.context;
    const key = answerKey(turn, round);
    const wasLive = this.live.delete(key);
    if (text || wasLive) this.put({ kind: "answer", key, turn, at, text, bytes: 0, isLive: false });
    for (const call of calls) this.put({ kind: "call", key: call.id, at, tool: call.tool, arguments: call.arguments, state: "asked" });
  }

  private call(envelope: Envelope, at: string): void {
    switch (envelope.type) {
      case "agent_called": {
        const { call, agent, tool, reply, arguments: asked } = envelope.data;
        this.put({ kind: "call", key: call, at, agent, tool, arguments: asked, state: stateOf(reply), result: { kind: "reply", reply }, begun: at, ended: at });
        return;
      }
      case "call_started":
        return this.change(envelope.data.call, ofCall({ state: "running", begun: at, step: envelope.data.step ?? undefined }));
      case "permission_asked":
        return this.change(envelope.data.call, ofCall({ state: "waiting" }));
      case "permission_decided": {
        const permit = envelope.data.permit.kind;
        return this.change(envelope.data.call, ofCall({ state: permit === "once" || permit === "until_plan_ends" ? "asked" : "refused" }));
      }
      case "call_finished": {
        const { status, output, changes } = envelope.data.result;
        this.end(envelope.data.call, status === "done" ? "done" : "failed", { kind: "output", text: output }, at);
        return changes.length > 0 ? this.change(envelope.data.call, ofCall({ changes })) : undefined;
      }
      case "call_answered":
        return this.end(envelope.data.call, stateOf(envelope.data.reply), { kind: "reply", reply: envelope.data.reply }, at);
      case "call_in_doubt":
        return this.change(envelope.data.call, ofCall({ state: "doubt", ended: at }));
      case "call_abandoned":
      case "call_orphaned":
        return this.change(envelope.data.call, ofCall({ state: "asked" }));
      case "doubt_settled": {
        const happened = envelope.data.verdict === "happened";
        return this.change(envelope.data.call, ofCall({ state: happened ? "done" : "failed", result: { kind: "settled", happened } }));
      }
    }
  }

  private end(call: string, state: CallState, result: CallResult, ended: string): void {
    this.change(call, ofCall({ state, result, ended }));
  }

  private turnMoved(id: string, cost: number, isOpen: boolean): void {
    this.turns.set(id, { id, cost: (this.turns.get(id)?.cost ?? 0) + cost, isOpen });
  }

  private finish(turn: string, isStopped: boolean): void {
    this.turnMoved(turn, 0, false);
    for (const key of this.live) {
      // Who stops an answer has read a part of it: that stays. Another one is not an answer.
      if (isStopped) this.change(key, (entry) => (entry.kind === "answer" ? { ...entry, isLive: false, isStopped: true } : undefined));
      else this.remove(key);
    }
    this.live.clear();
  }

  /** A piece that is not committed yet: placed by its offset, dropped where it does not fit. */
  private preview({ turn, round, offset, text }: Preview["data"]): boolean {
    // Of a turn that began before this stretch nothing may be known yet.
    const sum = this.turn;
    if (sum && (sum.id !== turn || !sum.isOpen)) return false;
    const key = answerKey(turn, round);
    const before = this.at(key);
    if (before && (before.kind !== "answer" || !before.isLive)) return false;
    const known = offset === 0 || before?.kind !== "answer" ? undefined : before;
    if (offset !== (known?.bytes ?? 0)) return false;
    const bytes = offset + utf8.encode(text).length;
    const answer: AnswerEntry = { kind: "answer", key, turn, at: "", text: (known?.text ?? "") + text, bytes, isLive: true };
    this.live.add(key);
    this.put(answer);
    return true;
  }

  private at(key: string): Entry | undefined {
    const place = this.places.get(key);
    return place === undefined ? undefined : this.entries[place - this.first];
  }

  private put(entry: Entry): void {
    const place = this.places.get(entry.key);
    if (place !== undefined) this.entries[place - this.first] = entry;
    else this.places.set(entry.key, this.first + this.entries.push(entry) - 1);
  }

  private change(key: string, change: Change): void {
    const entry = this.at(key);
    const changed = entry && change(entry);
    if (changed) this.put(changed);
    else if (!entry) this.late.set(key, [...(this.late.get(key) ?? []), change]);
  }

  private remove(key: string): void {
    const place = this.places.get(key);
    if (place === undefined) return;
    this.places.delete(key);
    this.entries.splice(place - this.first, 1);
    for (let at = place - this.first; at < this.entries.length; at += 1) this.places.set(this.entries[at]?.key ?? "", this.first + at);
  }
}

/** Whether an event of a noted type is told: some tell only how they ended. */
function isTold(event: NoteEvent): boolean {
  if (event.type === "turn_finished") return ["failed", "stopped", "in_doubt"].includes(event.data.end.kind);
  return event.type !== "view_compacted" || event.data.arrival !== "late";
}

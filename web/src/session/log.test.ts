import { describe, expect, it } from "vitest";
import type { Envelope } from "../api/client";
import { NOTED, type Entry, type NoteEvent } from "./entries";
import { SessionLog } from "./log";
import { noteOf, outputOf, planEnd } from "./present";
import published from "./samples.json";

const HERE = "web:talk-one";
const by = { owner: "00", name: "ada", surface: "web", standing: "decides" as const };
const envelope = (seq: number | null, type: Envelope["type"], data: unknown, sessionId = HERE): Envelope =>
  ({ id: "x", source: "planwright", type, time: "2026-01-01T00:00:00Z", subject: null, data, sessionId, seq, schema: "session_event/1" }) as Envelope;
const said = (seq: number, text: string, sessionId = HERE) => envelope(seq, "message_queued", { text, by }, sessionId);
const folded = (events: Envelope[], from = 0) => new SessionLog(HERE, from).takeAll(events);
const usage = { inputTokens: 5, outputTokens: 2, cachedTokens: 0, costMicros: 7 };
const answered = (seq: number, text: string, arrival = "in_time", turn = "t1", round = 1) => envelope(seq, "model_answered", { turn, round, arrival, answer: { text, calls: [], usage } });
const piece = (offset: number, text: string, turn = "t1") => envelope(null, "preview", { turn, round: 1, attempt: 1, offset, text });
const begun = (seq: number, turn = "t1") => envelope(seq, "turn_started", { turn, queued: 1, recalled: [] });

/** Everything of a log that anybody sees. */
const seen = ({ entries, from, to, turn, context, activity }: SessionLog) => structuredClone({ entries, from, to, turn, context, activity });

/** Events of every kind, as the server publishes them. */
const samples = published as unknown as Envelope[];
const numbered = (events: Envelope[]) => events.map((event, at) => ({ ...event, sessionId: HERE, seq: at + 1 }) as Envelope);

/** Numbers that are the same for the same seed. */
function randoms(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

describe("a log", () => {
  it("takes nothing of another session, and nothing without one", () => {
    const log = folded([]);
    expect(log.take(said(1, "foreign", "web:talk-two"))).toBe(false);
    expect(log.take({ ...said(1, "nobody's"), sessionId: undefined as never })).toBe(false);
    expect(log.entries).toEqual([]);
    expect(log.take(said(1, "mine"))).toBe(true);
    expect(log.entries).toHaveLength(1);
  });

  it("takes every event once, and in order", () => {
    const log = folded([said(1, "a"), said(1, "a"), said(3, "c"), said(2, "b"), said(1, "a"), said(3, "c")]);
    expect(log.entries.map((entry) => entry.kind === "message" && entry.text)).toEqual(["a", "b", "c"]);
    expect(log.to).toBe(3);
  });

  it("shows a preview until the answer is committed, and drops what does not fit", () => {
    const log = folded([said(1, "hi"), begun(2), piece(0, "Grü"), piece(4, "ß"), piece(9, "lost"), piece(6, "e")]);
    expect(log.entries.at(-1)).toMatchObject({ kind: "answer", text: "Grüße", isLive: true });
    log.take(answered(3, "Grüße!"));
    expect(log.entries.at(-1)).toMatchObject({ kind: "answer", text: "Grüße!", isLive: false });
    expect(log.take(piece(0, "late"))).toBe(false);
  });

  it("shows what is streamed of a turn that began before it", () => {
    const log = folded([piece(0, "half")], 700);
    expect(log.entries).toMatchObject([{ kind: "answer", text: "half", isLive: true }]);
    log.takeAll([answered(701, "half of it"), envelope(702, "turn_finished", { turn: "t1", end: { kind: "answered" } })]);
    expect(log.entries).toMatchObject([{ kind: "answer", text: "half of it", isLive: false }]);
    expect(log.take(piece(0, "late"))).toBe(false);
    expect(log.turn).toEqual({ id: "t1", cost: 7, isOpen: false });
  });

  it("leaves the answer alone that counted when another attempt's comes late", () => {
    const log = folded([answered(1, "this one")]);
    const before = seen(log);
    log.take(answered(2, "too late", "late"));
    expect(seen(log)).toEqual({ ...before, to: 2 });
  });

  it("keeps what was streamed when a person stops it, and drops it otherwise", () => {
    const live = () => folded([said(1, "hi"), begun(2), piece(0, "half an")]);
    const stopped = live().takeAll([envelope(3, "turn_finished", { turn: "t1", end: { kind: "stopped", by } })]);
    expect(stopped.entries).toMatchObject([{ kind: "message" }, { kind: "answer", text: "half an", isLive: false, isStopped: true }, { kind: "note" }]);
    const failed = live().takeAll([envelope(3, "turn_finished", { turn: "t1", end: { kind: "failed", failure: { kind: "permanent", message: "no" } } })]);
    expect(failed.entries.some((entry) => entry.kind === "answer")).toBe(false);
  });

  it("keeps a stopped answer when older messages are read, though the journal has none of it", () => {
    const log = folded([envelope(3, "model_call_started", { turn: "t1", round: 1, attempt: 1, messages: [1], bracket: {} }), piece(0, "half an"), envelope(4, "turn_finished", { turn: "t1", end: { kind: "stopped", by } })], 2);
    log.prepend(folded([said(1, "hi"), begun(2)]));
    expect(log.entries).toMatchObject([{ kind: "message", isWaiting: false }, { kind: "answer", isStopped: true }, { kind: "note" }]);
  });

  it("is the same whatever pages it was read in", () => {
    let changed = 0;
    for (let seed = 1; seed <= 100; seed += 1) {
      const random = randoms(seed);
      const order = samples.map((event) => ({ event, at: seed === 1 ? 0 : random(1_000_000) })).sort((one, other) => one.at - other.at);
      const events = numbered(order.map(({ event }) => event));
      const whole = seen(folded(events));
      const cuts = [...new Set([0, ...Array.from({ length: 1 + random(9) }, () => random(events.length)), events.length])].sort((one, other) => one - other);
      const pages = cuts.slice(1).map((to, at) => folded(events.slice(cuts[at], to), cuts[at]));
      const newest = pages.pop();
      for (const page of pages.reverse()) {
        const own = [...page.entries];
        newest?.prepend(page);
        const now = new Set(newest?.entries);
        changed += own.filter((entry) => !now.has(entry)).length;
      }
      expect(newest && seen(newest), `seed ${seed}, cuts ${cuts.join()}`).toEqual(whole);
    }
    // Entries that a later page says more of are what this is about.
    expect(changed).toBeGreaterThan(100);
  });

  it("folds ten thousand events in a moment", () => {
    const many = numbered(Array.from({ length: 10_000 }, (_, at) => samples[at % samples.length] as Envelope));
    const began = performance.now();
    folded(many);
    // As long as a frame or two; three times what is promised of a whole page.
    expect(performance.now() - began).toBeLessThan(600);
  });
});

describe("what a conversation says", () => {
  const entries: Entry[] = numbered(samples).flatMap((event, at) => folded([event], at).entries);

  it("is said of an event of every noted kind, and of a call's every end", () => {
    const noted = entries.flatMap((entry) => (entry.kind === "note" ? [entry.event] : []));
    expect(new Set(noted.map((event) => event.type))).toEqual(new Set(NOTED));
    for (const event of noted) expect(planEnd(event)?.basis ?? noteOf(event).text, event.type).not.toBe("");
    const calls = numbered(samples).flatMap((event) => (event.type === "agent_called" ? folded([{ ...event, seq: 1 } as Envelope]).entries : []));
    expect(calls.length).toBeGreaterThan(0);
    for (const call of calls) expect(call.kind === "call" && outputOf(call)).not.toBe("");
  });

  it("never calls approved what expired", () => {
    const [note] = folded([envelope(1, "decision_expired", { digest: "d" })]).entries;
    expect(note?.kind === "note" && noteOf(note.event)).toEqual({ tone: "bad", text: "Nobody decided in time; a newer revision is needed", who: undefined });
  });

  it("calls a model's report a claim, beside what was observed", () => {
    const observation = { callsDone: 1, callsFailed: 0, basis: "claimed", stepsWithoutCalls: [{ number: 2, title: "Delete the disk" }] };
    const ended = envelope(1, "plan_ended", { plan: "p", end: "completed", account: { kind: "model", summary: "all moved" }, touched: [{ kind: "wrote", path: "a", bytes: 1 }], touchedMore: 0, observation });
    expect(planEnd(ended as NoteEvent)).toEqual({ basis: "claimed", claim: "all moved", touched: ["wrote a (1 bytes)"], observation });
  });
});

import { describe, expect, it } from "vitest";
import type { Envelope } from "./client";
import { nothing, take, takeAll, withStopped } from "./reduce";

const HERE = "web:talk-one";
const by = { owner: "00", name: "ada", surface: "web", standing: "decides" as const };
const envelope = (seq: number | null, type: Envelope["type"], data: unknown, sessionId = HERE): Envelope =>
  ({ id: "x", source: "planwright", type, time: "2026-01-01T00:00:00Z", subject: null, data, sessionId, seq, schema: "session_event/1" }) as Envelope;
const said = (seq: number, text: string, sessionId = HERE) => envelope(seq, "message_queued", { text, by }, sessionId);

describe("a log", () => {
  it("takes nothing of another session, and nothing without one", () => {
    const log = nothing(HERE, 0);
    expect(take(log, said(1, "foreign", "web:talk-two"))).toBe(log);
    expect(take(log, { ...said(1, "nobody's"), sessionId: undefined as never })).toBe(log);
    expect(take(log, said(1, "mine")).items).toHaveLength(1);
  });

  it("takes every event once, and in order", () => {
    const log = [said(1, "a"), said(1, "a"), said(3, "c"), said(2, "b"), said(1, "a"), said(3, "c")].reduce(take, nothing(HERE, 0));
    expect(log.items.map((item) => item.kind === "said" && item.text)).toEqual(["a", "b", "c"]);
    expect(log.to).toBe(3);
  });

  it("shows a preview until the answer is committed, and drops what does not fit", () => {
    const turn = "t1";
    const piece = (offset: number, text: string) => envelope(null, "preview", { turn, round: 1, attempt: 1, offset, text });
    let log = [said(1, "hi"), envelope(2, "turn_started", { turn, queued: 1, recalled: [] })].reduce(take, nothing(HERE, 0));
    log = [piece(0, "Grü"), piece(4, "ß"), piece(9, "lost"), piece(6, "e")].reduce(take, log);
    expect(log.items.at(-1)).toMatchObject({ kind: "answer", text: "Grüße", live: true });
    log = take(log, envelope(3, "model_answered", { turn, round: 1, answer: { text: "Grüße!", calls: [], usage: { inputTokens: 5, outputTokens: 2, cachedTokens: 0, costMicros: 0 } } }));
    expect(log.items.at(-1)).toMatchObject({ kind: "answer", text: "Grüße!", live: false });
    expect(take(log, piece(0, "late"))).toBe(log);
  });

  it("leaves the answer alone that counted when another attempt's comes late", () => {
    const answer = (text: string, arrival: string) => ({ turn: "t1", round: 1, arrival, answer: { text, calls: [], usage: { inputTokens: 5, outputTokens: 2, cachedTokens: 0, costMicros: 0 } } });
    const counted = take(nothing(HERE, 0), envelope(1, "model_answered", answer("this one", "in_time")));
    const late = take(counted, envelope(2, "model_answered", answer("too late", "late")));
    expect(late.items).toEqual(counted.items);
  });

  it("never calls approved what expired", () => {
    const log = take(nothing(HERE, 0), envelope(1, "decision_expired", { digest: "d" }));
    expect(log.items).toMatchObject([{ kind: "mark", tone: "bad", text: "Nobody decided in time; a newer revision is needed" }]);
  });

  it("keeps what was streamed when a person stops it, and drops it otherwise", () => {
    const turn = "t1";
    const piece = envelope(null, "preview", { turn, round: 1, attempt: 1, offset: 0, text: "half an" });
    const live = [said(1, "hi"), envelope(2, "turn_started", { turn, queued: 1, recalled: [] }), piece].reduce(take, nothing(HERE, 0));
    const stopped = take(live, envelope(3, "turn_finished", { turn, end: { kind: "stopped", by } }));
    expect(stopped.items).toMatchObject([{ kind: "said" }, { kind: "answer", text: "half an", live: false, isStopped: true }, { kind: "mark", text: "Stopped" }]);
    const failed = take(live, envelope(3, "turn_finished", { turn, end: { kind: "failed", failure: { kind: "permanent", message: "no" } } }));
    expect(failed.items.some((item) => item.kind === "answer")).toBe(false);
  });

  it("keeps a stopped answer when older messages are read, though the journal has none of it", () => {
    const turn = "t1";
    const piece = envelope(null, "preview", { turn, round: 1, attempt: 1, offset: 0, text: "half an" });
    const events = [said(1, "hi"), envelope(2, "turn_started", { turn, queued: 1, recalled: [] }), envelope(3, "turn_finished", { turn, end: { kind: "stopped", by } })];
    const seen = [...events.slice(0, 2), piece, ...events.slice(2)].reduce(take, nothing(HERE, 0));
    const again = takeAll(nothing(HERE, 0), events);
    expect(again.items).toHaveLength(2);
    expect(withStopped(again, seen).items).toEqual(seen.items);
    expect(withStopped(again, seen).places).toEqual(seen.places);
  });

  it("calls a model's report a claim, beside what was observed", () => {
    const observation = { callsDone: 1, callsFailed: 0, basis: "claimed", stepsWithoutCalls: [{ number: 2, title: "Delete the disk" }] };
    const ended = envelope(1, "plan_ended", { plan: "p", end: "completed", account: { kind: "model", summary: "all moved" }, touched: [{ kind: "wrote", path: "a", bytes: 1 }], touchedMore: 0, observation });
    const log = take(nothing(HERE, 0), ended);
    expect(log.items).toMatchObject([{ kind: "ended", basis: "claimed", claim: "all moved", touched: ["wrote a (1 bytes)"], observation }]);
  });

  it("folds a page at once to what one event after another gives, and leaves what was there alone", () => {
    const first = take(nothing(HERE, 0), said(1, "one"));
    const page = [said(2, "two"), envelope(3, "cause_withdrawn", { queued: 2, reason: "reset" }), said(4, "three")];
    const before = structuredClone(first);
    expect(takeAll(first, page)).toEqual(page.reduce(take, first));
    expect(first).toEqual(before);
  });
});

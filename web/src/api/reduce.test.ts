import { describe, expect, it } from "vitest";
import type { Envelope } from "./client";
import { nothing, take } from "./reduce";

const HERE = "web:talk-one";
const by = { id: "ada", surface: "web", standing: "decides" as const };
const envelope = (seq: number | null, data: unknown, sessionId = HERE, type = "event"): Envelope =>
  ({ id: "x", source: "planwright", type, time: "2026-01-01T00:00:00Z", subject: null, data, sessionId, seq, schema: "session_event/1" }) as Envelope;
const said = (seq: number, text: string, sessionId = HERE) => envelope(seq, { message_queued: { text, by } }, sessionId);

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
    const piece = (offset: number, text: string) => envelope(null, { turn, round: 1, attempt: 1, offset, text }, HERE, "preview");
    let log = [said(1, "hi"), envelope(2, { turn: { turn_started: { turn, queued: 1 } } })].reduce(take, nothing(HERE, 0));
    log = [piece(0, "Grü"), piece(4, "ß"), piece(9, "lost"), piece(6, "e")].reduce(take, log);
    expect(log.items.at(-1)).toMatchObject({ kind: "answer", text: "Grüße", live: true });
    log = take(log, envelope(3, { turn: { model_answered: { turn, round: 1, answer: { text: "Grüße!", usage: { input: 5, output: 2 } } } } }));
    expect(log.items.at(-1)).toMatchObject({ kind: "answer", text: "Grüße!", live: false });
    expect(take(log, piece(0, "late"))).toBe(log);
  });

  it("never calls approved what expired", () => {
    const log = take(nothing(HERE, 0), envelope(1, { plan: { decision_expired: { digest: "d" } } }));
    expect(log.items).toMatchObject([{ kind: "mark", tone: "bad", text: "Nobody decided in time; a newer revision is needed" }]);
  });
});

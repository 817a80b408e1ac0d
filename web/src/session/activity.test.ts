import { describe, expect, it } from "vitest";
import type { Envelope, Session } from "../api/client";
import { activityOf } from "./activity";
import { SessionLog } from "./log";

const HERE = "web:talk-one";
const usage = { inputTokens: 5, outputTokens: 2, cachedTokens: 0, costMicros: 7 };
let seconds = 0;
const event = (type: Envelope["type"], data: unknown) => ({ type, data, sessionId: HERE, time: `2026-01-01T00:00:0${(seconds += 1)}Z` });
const log = (...events: object[]) => {
  seconds = 0;
  return new SessionLog(HERE, 0).takeAll(events.map((one, at) => ({ ...one, seq: at + 1 }) as Envelope));
};
const resting = { waiting: null, turnOpen: false, queued: 0 } as unknown as Session;
const started = () => event("turn_started", { turn: "t1", queued: 1, recalled: [] });
const asked = (attempt = 1) => event("model_call_started", { turn: "t1", round: 1, attempt, messages: [] });
const answered = (...calls: string[]) =>
  event("model_answered", { turn: "t1", round: 1, arrival: "in_time", answer: { text: "", calls: calls.map((id) => ({ id, tool: `tool_${id}`, arguments: "{}" })), usage } });
const runs = (call: string, step?: number) => event("call_started", { call, attempt: 1, step });

describe("what goes on in a session", () => {
  it("is that the model is asked, and since when; and how often, if it was asked before", () => {
    expect(activityOf(log(started(), asked()), resting)).toEqual({ words: "The model is asked", since: "2026-01-01T00:00:02Z", isMoving: true });
    expect(activityOf(log(started(), asked(2)), resting).words).toBe("The model is asked, attempt 2");
  });

  it("is the call that runs, with its step, or how many do", () => {
    expect(activityOf(log(started(), asked(), answered("a", "b"), runs("a", 3)), resting)).toEqual({ words: "Runs tool_a (step 3)", since: "2026-01-01T00:00:04Z", isMoving: true });
    expect(activityOf(log(started(), asked(), answered("a", "b"), runs("a"), runs("b")), resting).words).toBe("Runs 2 calls");
  });

  it("is what a person is waited for, before anything else", () => {
    const waits = { ...resting, waiting: "permission", turnOpen: true } as Session;
    expect(activityOf(log(started(), asked(), answered("a")), waits)).toEqual({ words: "Waits for you: a call asks for permission", isMoving: false });
  });

  it("is nothing once the turn has ended, whatever ran in it", () => {
    const ended = event("turn_finished", { turn: "t1", end: { kind: "answered" } });
    expect(activityOf(log(started(), asked(), answered(), ended), resting)).toEqual({ words: "Nothing is under way", isMoving: false });
    expect(activityOf(log(), { ...resting, queued: 1 } as Session).words).toBe("Waits for its turn");
  });

  it("is the same whatever pages it was read in", () => {
    const events = [started(), asked(), answered("a"), runs("a")].map((one, at) => ({ ...one, seq: at + 1 }) as Envelope);
    for (let cut = 0; cut <= events.length; cut += 1) {
      const newer = new SessionLog(HERE, cut).takeAll(events.slice(cut));
      newer.prepend(new SessionLog(HERE, 0).takeAll(events.slice(0, cut)));
      expect(activityOf(newer, resting).words).toBe("Runs tool_a");
    }
  });
});

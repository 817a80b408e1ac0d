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
    expect(activityOf(log(started(), asked()), resting)).toEqual({ words: "Waiting for the model", since: "2026-01-01T00:00:02Z", isMoving: true });
    expect(activityOf(log(started(), asked(2)), resting).words).toBe("Waiting for the model (attempt 2)");
  });

  it("is the call that runs, with its step, or how many do", () => {
    expect(activityOf(log(started(), asked(), answered("a", "b"), runs("a", 3)), resting)).toEqual({ words: "Running tool_a (step 3)", since: "2026-01-01T00:00:04Z", isMoving: true });
    expect(activityOf(log(started(), asked(), answered("a", "b"), runs("a"), runs("b")), resting).words).toBe("Running 2 calls");
  });

  it("is what a person is waited for, before anything else", () => {
    const waits = { ...resting, waiting: "permission", turnOpen: true } as Session;
    expect(activityOf(log(started(), asked(), answered("a")), waits)).toEqual({ words: "A call waits for your permission", isMoving: false });
  });

  it("is the call that runs also when somebody has said something since", () => {
    const queued = event("message_queued", { text: "and?", by: { name: "ada" } });
    expect(activityOf(log(started(), asked(), answered("a"), runs("a"), queued), resting).words).toBe("Running tool_a");
  });

  it("is that the model answers, and when it is asked again if it did not", () => {
    const live = log(started(), asked());
    live.take({ type: "preview", sessionId: HERE, seq: null, data: { turn: "t1", round: 1, attempt: 1, offset: 0, text: "So" } } as unknown as Envelope);
    expect(activityOf(live, resting).words).toBe("The model is answering");
    const failed = event("model_call_failed", { turn: "t1", round: 1, attempt: 1, failure: { kind: "transient", message: "busy" }, retryAt: "2026-01-01T00:01:00Z", retries: {} });
    expect(activityOf(log(started(), asked(), failed), resting)).toMatchObject({ words: expect.stringContaining("it is asked again at"), since: failed.time });
    expect(activityOf(log(started(), asked()), { ...resting, waiting: "decision", turnOpen: true } as Session).words).toBe("Waiting for the model");
  });

  it("is nothing once the turn has ended, whatever ran in it", () => {
    const ended = event("turn_finished", { turn: "t1", end: { kind: "answered" } });
    expect(activityOf(log(started(), asked(), answered(), ended), resting)).toEqual({ words: "Idle", isMoving: false });
    expect(activityOf(log(), { ...resting, queued: 1 } as Session).words).toBe("Queued");
  });

  it("is the same whatever pages it was read in", () => {
    seconds = 0;
    const events = [started(), asked(2)].map((one, at) => ({ ...one, seq: at + 1 }) as Envelope);
    for (let cut = 0; cut <= events.length; cut += 1) {
      const newer = new SessionLog(HERE, cut).takeAll(events.slice(cut));
      newer.prepend(new SessionLog(HERE, 0).takeAll(events.slice(0, cut)));
      expect(activityOf(newer, resting)).toEqual({ words: "Waiting for the model (attempt 2)", since: "2026-01-01T00:00:02Z", isMoving: true });
    }
  });
});

import { describe, expect, it } from "vitest";
import { KEY, NoAnswer, send, sessionMoved } from "./intent";

const HERE = "http://localhost/api/sessions/web%3Atalk-one";
const ask = (path: string, body: unknown, headers: Record<string, string> = {}) =>
  new Request(`${HERE}${path}`, { method: "POST", body: JSON.stringify(body), headers });

/** A server that answers in turn with these; a null is a response that is lost. */
function server(...answers: (number | null)[]) {
  const keys: (string | null)[] = [];
  const fetched = async (request: Request) => {
    keys.push(request.headers.get(KEY));
    const answer = answers.shift();
    if (answer == null) throw new TypeError("Failed to fetch");
    return new Response("{}", { status: answer });
  };
  return { keys, fetched };
}

describe("an intent", () => {
  it("keeps its key until there is a definite answer", async () => {
    const { keys, fetched } = server(null, 503, 200, 200);
    await expect(send(ask("/plan/skip", { step: 1 }), fetched)).rejects.toBeInstanceOf(NoAnswer);
    for (let at = 0; at < 3; at += 1) await send(ask("/plan/skip", { step: 1 }), fetched);
    expect(keys[0]).toMatch(/^[0-9a-f-]{36}$/);
    expect(keys[1]).toBe(keys[0]);
    expect(keys[2]).toBe(keys[0]);
    expect(keys[3]).not.toBe(keys[0]);
  });

  it("is another one with other words, or another thing that was read", async () => {
    const { keys, fetched } = server(null, null, null);
    for (const request of [ask("/plan/reject", { why: "a" }), ask("/plan/reject", { why: "b" }), ask("/plan/reject", { why: "a" }, { "If-Match": '"d"' })]) {
      await expect(send(request, fetched)).rejects.toBeInstanceOf(NoAnswer);
    }
    expect(new Set(keys).size).toBe(3);
  });

  it("is another one once its session has moved: a second Stop stops what runs then", async () => {
    const { keys, fetched } = server(null, 200);
    await expect(send(ask("/stop", {}), fetched)).rejects.toBeInstanceOf(NoAnswer);
    sessionMoved("web:talk-one");
    await send(ask("/stop", {}), fetched);
    expect(keys[1]).not.toBe(keys[0]);
  });

  it("leaves a key that its caller keeps alone", async () => {
    const { keys, fetched } = server(null, 200);
    await expect(send(ask("/messages", { text: "a" }, { [KEY]: "mine" }), fetched)).rejects.toBeInstanceOf(NoAnswer);
    sessionMoved("web:talk-one");
    await send(ask("/messages", { text: "a" }, { [KEY]: "mine" }), fetched);
    expect(keys).toEqual(["mine", "mine"]);
  });

  it("was not answered where the response breaks off", async () => {
    const broken = async () => new Response(new ReadableStream({ start: (stream) => stream.error(new TypeError("network error")) }));
    await expect(send(ask("/stop", { broken: true }), broken)).rejects.toBeInstanceOf(NoAnswer);
  });
});

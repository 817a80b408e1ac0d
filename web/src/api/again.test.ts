import { afterEach, expect, test } from "vitest";
import { answerAsks, sendAsked } from "./again";

const refused = () => new Response(JSON.stringify({ type: "urn:planwright:ask_again", detail: "again" }), { status: 403 });
const request = () => new Request("http://localhost/api/approve", { method: "POST", body: "what was decided" });

afterEach(() => answerAsks(undefined));

test("what is refused for an old passphrase is sent again once it was given", async () => {
  const sent: string[] = [];
  const send = async (one: Request) => {
    sent.push(await one.text());
    return sent.length === 1 ? refused() : new Response("done");
  };
  const asked: string[] = [];
  answerAsks(async (words) => asked.push(words) > 0);
  expect(await (await sendAsked(request(), send)).text()).toBe("done");
  expect(sent).toEqual(["what was decided", "what was decided"]);
  expect(asked).toEqual(["again"]);
});

test("who does not give it is told why, and nothing is sent again", async () => {
  let sent = 0;
  const send = async () => {
    sent += 1;
    return refused();
  };
  answerAsks(async () => false);
  expect((await sendAsked(request(), send)).status).toBe(403);
  expect(sent).toBe(1);
  answerAsks(undefined);
  expect((await sendAsked(request(), send)).status).toBe(403);
});

test("another refusal asks for nothing", async () => {
  answerAsks(async () => {
    throw new Error("asked");
  });
  const other = async () => new Response(JSON.stringify({ type: "urn:planwright:may_not_decide" }), { status: 403 });
  expect((await sendAsked(request(), other)).status).toBe(403);
});

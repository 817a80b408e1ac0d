// A model that plays one story, and speaks the formats of three makers: it plans, is asked for changes, revises, waits for
// approval, does each step with a tool of the agent's own, and reports it. It reads where it stands from what it is sent.
import { createServer } from "node:http";

export const FIRST = "# Tidy the photos\n\n1. Make a list.\n2. Copy the files.\n";
export const SECOND = "# Tidy the photos\n\n1. Make a backup.\n2. Make a list.\n3. Copy the files.\n";

/** What to do next, given the tools that are offered and the calls that came back. */
function next({ tools, calls, folder }) {
  const named = (fits) => tools.find((tool) => fits.test(tool));
  if (tools.length === 0) return { say: "Tidy the photos" };
  const last = calls.at(-1);
  const plan = (name, args) => {
    const tool = named(new RegExp(`${name}$`));
    if (tool) return { tool, args };
    // A tool that has just become available may be told of a moment later: look at the plan meanwhile.
    const looks = calls.slice(-5).filter((call) => /plan_get$/.test(call.name)).length;
    return looks < 5 && name !== "plan_get" ? plan("plan_get", {}) : { say: `${name} is not offered; there are ${tools.join(", ")}` };
  };
  if (!last) return plan("plan_set_content", { plan_markdown: FIRST });
  const step = [...calls].reverse().map((call) => /Do step (\d+) of \d+ now, and no other: ([^\n]*)/.exec(call.result)).find(Boolean);
  if (last.is("shell")) return plan("plan_report", { status: "done", summary: step[2], evidence: `step-${step[1]}.txt`, step: Number(step[1]) });
  if (/the plan is Done/.test(last.result)) return { say: "The photos are tidy." };
  if (/Changes were requested/.test(last.result)) return plan("plan_set_content", { plan_markdown: SECOND, replies: [{ comment: 1 }] });
  if (/Call plan_get for the first step/.test(last.result)) return plan("plan_get", {});
  if (/Do step \d+ of \d+ now/.test(last.result)) {
    const command = `echo ${step[2].replace(/[^\w ]/g, "")} > ${folder}/step-${step[1]}.txt`;
    const shell = named(/^(Bash|shell|local_shell|shell_command|exec_command|run_shell_command|bash|developer__shell)$/);
    if (!shell) return { say: `no shell is offered; there are ${tools.join(", ")}` };
    return { tool: shell, args: shell === "exec_command" ? { cmd: command } : { command } };
  }
  if (/Saved as revision|waits for a person's decision|^Ready, revision/.test(last.result)) return plan("plan_ask", { wait_seconds: 40 });
  return { say: `lost: ${last.result.slice(0, 200)}` };
}

const text = (content) => (typeof content === "string" ? content : (content ?? []).map((part) => part.text ?? (part.content ? text(part.content) : "")).join("\n"));
const call = (name, result) => ({ name, result, is: (what) => what === "shell" && /bash|shell|exec_command/i.test(name) });
let count = 0;

/** How each maker writes it: what it sends, and the events of an answer. */
const FORMATS = {
  "/v1/messages": {
    read: (body) => {
      const blocks = body.messages.flatMap((message) => (Array.isArray(message.content) ? message.content : []));
      const made = blocks.filter((block) => block.type === "tool_use");
      const results = new Map(blocks.filter((block) => block.type === "tool_result").map((block) => [block.tool_use_id, text(block.content)]));
      return { tools: (body.tools ?? []).map((tool) => tool.name), calls: made.filter(({ id }) => results.has(id)).map(({ id, name }) => call(name, results.get(id))) };
    },
    write: (done, id) => {
      const block = done.tool ? { type: "tool_use", id: `toolu_${id}`, name: done.tool, input: {} } : { type: "text", text: "" };
      const delta = done.tool ? { type: "input_json_delta", partial_json: JSON.stringify(done.args) } : { type: "text_delta", text: done.say };
      return [
        { type: "message_start", message: { id: `msg_${id}`, type: "message", role: "assistant", model: "story", content: [], stop_reason: null, usage: { input_tokens: 10, output_tokens: 1 } } },
        { type: "content_block_start", index: 0, content_block: block },
        { type: "content_block_delta", index: 0, delta },
        { type: "content_block_stop", index: 0 },
        { type: "message_delta", delta: { stop_reason: done.tool ? "tool_use" : "end_turn", stop_sequence: null }, usage: { output_tokens: 9 } },
        { type: "message_stop" },
      ].map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
    },
    whole: (done, id) => ({ id: `msg_${id}`, type: "message", role: "assistant", model: "story", stop_reason: done.tool ? "tool_use" : "end_turn", usage: { input_tokens: 10, output_tokens: 9 }, content: [done.tool ? { type: "tool_use", id: `toolu_${id}`, name: done.tool, input: done.args } : { type: "text", text: done.say }] }),
  },
  "/v1/responses": {
    read: (body) => {
      const input = Array.isArray(body.input) ? body.input : [];
      const results = new Map(input.filter((item) => /_output$/.test(item.type)).map((item) => [item.call_id, text(typeof item.output === "object" && !Array.isArray(item.output) ? item.output.content : item.output)]));
      const made = input.filter((item) => /^(function|custom_tool|local_shell)_call$/.test(item.type));
      const tools = (body.tools ?? []).flatMap((tool) => (tool.type === "namespace" ? tool.tools.map((inner) => `${tool.name}${inner.name}`) : [tool.name ?? tool.type]));
      return { tools, spaces: (body.tools ?? []).filter((tool) => tool.type === "namespace").map((tool) => tool.name), calls: made.filter((item) => results.has(item.call_id)).map((item) => call(item.name ?? "shell", results.get(item.call_id))) };
    },
    write: (done, id, { spaces = [] }) => {
      const space = spaces.find((name) => done.tool?.startsWith(name));
      const item = done.tool
        ? { type: "function_call", id: `fc_${id}`, call_id: `call_${id}`, name: space ? done.tool.slice(space.length) : done.tool, ...(space ? { namespace: space } : {}), arguments: JSON.stringify(done.args), status: "completed" }
        : { type: "message", id: `msg_${id}`, role: "assistant", status: "completed", content: [{ type: "output_text", text: done.say, annotations: [] }] };
      const response = { id: `resp_${id}`, object: "response", status: "completed", model: "story", output: [item], usage: { input_tokens: 10, output_tokens: 9, total_tokens: 19, input_tokens_details: { cached_tokens: 0 }, output_tokens_details: { reasoning_tokens: 0 } } };
      return [
        { type: "response.created", response: { ...response, status: "in_progress", output: [] } },
        { type: "response.output_item.added", output_index: 0, item },
        { type: "response.output_item.done", output_index: 0, item },
        { type: "response.completed", response },
      ].map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
    },
  },
  "/v1/chat/completions": {
    read: (body) => {
      const results = new Map(body.messages.filter((message) => message.role === "tool").map((message) => [message.tool_call_id, text(message.content)]));
      const made = body.messages.flatMap((message) => message.tool_calls ?? []);
      return { tools: (body.tools ?? []).map((tool) => tool.function.name), calls: made.filter(({ id }) => results.has(id)).map(({ id, function: { name } }) => call(name, results.get(id))) };
    },
    write: (done, id) => {
      const delta = done.tool ? { role: "assistant", tool_calls: [{ index: 0, id: `call_${id}`, type: "function", function: { name: done.tool, arguments: JSON.stringify(done.args) } }] } : { role: "assistant", content: done.say };
      const chunk = (delta, reason) => ({ id: `c${id}`, object: "chat.completion.chunk", created: 1, model: "story", choices: [{ index: 0, delta, finish_reason: reason }] });
      const usage = { id: `c${id}`, object: "chat.completion.chunk", created: 1, model: "story", choices: [], usage: { prompt_tokens: 10, completion_tokens: 9, total_tokens: 19 } };
      return [chunk(delta, null), chunk({}, done.tool ? "tool_calls" : "stop"), usage].map((event) => `data: ${JSON.stringify(event)}\n\n`).concat("data: [DONE]\n\n");
    },
    whole: (done, id) => ({ id: `c${id}`, object: "chat.completion", created: 1, model: "story", usage: { prompt_tokens: 10, completion_tokens: 9, total_tokens: 19 }, choices: [{ index: 0, finish_reason: done.tool ? "tool_calls" : "stop", message: done.tool ? { role: "assistant", content: null, tool_calls: [{ id: `call_${id}`, type: "function", function: { name: done.tool, arguments: JSON.stringify(done.args) } }] } : { role: "assistant", content: done.say } }] }),
  },
};

/** Serves the story on loopback; steps are done in this folder. */
export async function tell(folder) {
  const log = [];
  const server = createServer(async (request, answer) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const path = new URL(request.url, "http://x").pathname;
    const format = FORMATS[path];
    if (request.method !== "POST" || !format) {
      log.push(`${request.method} ${path}`);
      answer.writeHead(path === "/v1/models" ? 200 : 404, { "content-type": "application/json" });
      return answer.end(JSON.stringify(path === "/v1/models" ? { object: "list", data: [{ id: "story", object: "model" }] } : { error: { message: `there is no ${path}` } }));
    }
    const body = JSON.parse(Buffer.concat(chunks).toString("utf8"));
    const asked = format.read(body);
    const done = next({ ...asked, folder });
    const id = (count += 1);
    log.push(done.tool ? `${done.tool} ${JSON.stringify(done.args)}` : `says ${done.say}`);
    if (process.env.STORY_LOG) console.error(path, asked.tools.length, "tools", log.at(-1), "| last:", asked.calls.at(-1)?.result?.slice(0, 160));
    if (body.stream === false || (body.stream === undefined && format.whole)) {
      answer.writeHead(200, { "content-type": "application/json" });
      return answer.end(JSON.stringify(format.whole(done, id)));
    }
    answer.writeHead(200, { "content-type": "text/event-stream" });
    for (const event of format.write(done, id, asked)) answer.write(event);
    answer.end();
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return { url: `http://127.0.0.1:${server.address().port}`, log, close: () => server.close() };
}

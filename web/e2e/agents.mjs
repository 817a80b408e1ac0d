// Real agents, as they come from the registry, against a model that plays a story, with nothing but loopback: each writes a
// plan, is asked for changes in the dashboard, revises, is approved in the browser, does the steps with its own tools, and
// reports them. `node e2e/agents.mjs [--only NAME]`
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { networkInterfaces, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { openBrowser, openPage } from "./browser.mjs";
import { House, logIn, program, stop } from "./house.mjs";
import { assert, Suite, until } from "./kit.mjs";
import { conformance } from "./conformance.mjs";
import { tell } from "./story-model.mjs";

const clients = resolve(import.meta.dirname, "../../tools/agents/node_modules");
const picture = process.argv.includes("--pictures") ? process.argv[process.argv.indexOf("--pictures") + 1] : undefined;
const only = process.argv.includes("--only") ? process.argv[process.argv.indexOf("--only") + 1] : undefined;
const TASK = "Tidy the photos. Plan first.";

/** How each is installed, told where its model is, and run once. */
const AGENTS = {
  "claude-code": {
    binary: () => join(clients, "@anthropic-ai/claude-code-linux-x64/claude"),
    config: ".claude.json",
    prepare: (home) => writeFileSync(join(home, ".claude.json"), JSON.stringify({ hasCompletedOnboarding: true, theme: "light" }, null, 2)),
    env: (model) => ({ ANTHROPIC_BASE_URL: model.url, ANTHROPIC_API_KEY: "none", ANTHROPIC_MODEL: "story", ANTHROPIC_SMALL_FAST_MODEL: "story", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1", DISABLE_AUTOUPDATER: "1", DISABLE_TELEMETRY: "1", ENABLE_TOOL_SEARCH: "false" }),
    args: () => ["-p", TASK, "--allowedTools", "Bash", "mcp__planwright"],
  },
  codex: {
    binary: () => join(clients, ".bin/codex"),
    config: ".codex/config.toml",
    prepare: (home, model) => {
      mkdirSync(join(home, ".codex"));
      writeFileSync(join(home, ".codex/config.toml"), `model = "story"\nmodel_provider = "story"\n\n[model_providers.story]\nname = "story"\nbase_url = "${model.url}/v1"\nwire_api = "responses"\nrequires_openai_auth = false\n`);
    },
    env: () => ({}),
    args: (folder) => ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-C", folder, TASK],
  },
  goose: {
    binary: () => join(clients, ".bin/goose"),
    config: ".config/goose/config.yaml",
    prepare: (home) => {
      mkdirSync(join(home, ".config/goose"), { recursive: true });
      writeFileSync(join(home, ".config/goose/config.yaml"), "GOOSE_PROVIDER: openai\nGOOSE_MODEL: story\nGOOSE_MODE: auto\nextensions:\n  developer:\n    name: developer\n    type: builtin\n    enabled: true\n    bundled: true\n    timeout: 300\n");
    },
    env: (model) => ({ OPENAI_HOST: model.url, OPENAI_API_KEY: "none", GOOSE_DISABLE_KEYRING: "1", GOOSE_TELEMETRY_ENABLED: "false" }),
    args: () => ["run", "--no-session", "-t", TASK],
  },
};

function installed(agent, home, house, folder) {
  const file = join(home, AGENTS[agent].config);
  const before = readFileSync(file, "utf8");
  const run = (...more) => spawnSync(program, ["--data", house.data, "mcp", "--plan", "document", "--no-start", "install", agent, "--yes", ...more], { cwd: folder, env: { ...process.env, HOME: home }, encoding: "utf8" });
  const first = run();
  assert.equal(first.status, 0, first.stderr);
  assert.match(first.stdout, /will be changed:\n(.|\n)*planwright/);
  assert.equal(run("--undo").status, 0);
  if (agent !== "claude-code") assert.equal(readFileSync(file, "utf8"), before, "taken out byte for byte");
  assert.equal(run().status, 0);
}

async function story(agent, browser) {
  const { binary, prepare, env, args } = AGENTS[agent];
  assert.ok(existsSync(binary()), `${agent} is not installed: npm install --no-save --ignore-scripts --prefix tools/agents`);
  // Not below the system's temporary directory: one of them refuses to live there.
  const base = mkdtempSync(join(resolve(import.meta.dirname, "../../target"), "agent-"));
  const [home, folder] = [join(base, "home"), join(base, "project")];
  mkdirSync(home);
  mkdirSync(folder);
  const model = await tell(folder);
  const house = await House.open();
  let child;
  try {
    prepare(home, model);
    installed(agent, home, house, folder);
    let said = "";
    child = spawn(binary(), args(folder), { cwd: folder, stdio: ["ignore", "pipe", "pipe"], env: { PATH: process.env.PATH, LANG: "C.UTF-8", TERM: "dumb", HOME: home, ...env(model) } });
    child.stdout.on("data", (data) => (said += data));
    child.stderr.on("data", (data) => (said += data));
    const ended = new Promise((done) => child.once("exit", done));
    const waits = async () => (await house.ask("GET", "/api/approvals")).body?.[0]?.sessionId;
    const words = () => `${agent} said:\n${said.slice(-1500)}\nthe model was asked:\n${model.log.slice(-12).join("\n")}`;
    const { seen: id } = await until(waits, Boolean, { within: 60_000, what: "a plan" }).catch((error) => { throw new Error(`${error.message}\n${words()}`); });
    assert.match(id, /^mcp:/);
    const page = await openPage(browser, house.base);
    await logIn(page, house);
    await page.goto(`${house.base}/s/${id}/plan`);
    const approve = page.locator("[data-testid=approve]");
    await approve.waitFor();
    assert.match(await page.locator("body").innerText(), /Planwright neither sees nor limits/);
    if (picture) await page.screenshot({ path: join(picture, `${agent}-review.png`) });
    await page.getByRole("button", { name: "Request changes…" }).click();
    await page.getByLabel("Your note").fill("Back it up first.");
    await page.getByRole("button", { name: "Add note" }).click();
    await page.getByRole("button", { name: /Send 1 note/ }).click();
    await page.getByText("Changes since 1").waitFor({ timeout: 60_000 });
    await approve.click();
    const state = async () => (await house.status(id)).plan;
    await until(state, (plan) => plan?.status === "Done", { within: 90_000, what: "the end" }).catch((error) => { throw new Error(`${error.message}\n${words()}`); });
    assert.match((await state()).claimed, /reports: Copy the files.* \(see step-3\.txt\); Planwright saw none of it done/);
    const events = (await house.ask("GET", `/api/sessions/${id}/events`)).body.map(({ type, data }) => ({ type, data }));
    const kinds = events.map(({ type }) => type);
    const many = (kind) => kinds.filter((other) => other === kind).length;
    assert.deepEqual([many("revision_added"), many("changes_requested"), many("plan_approved"), many("step_begun"), many("step_ended")], [2, 1, 1, 3, 3]);
    assert.ok(!kinds.includes("turn_started"), "nothing of ours ran");
    assert.deepEqual([1, 2, 3].map((step) => readFileSync(join(folder, `step-${step}.txt`), "utf8").trim()), ["Make a backup", "Make a list", "Copy the files"], "it did the steps itself");
    if (picture) {
      await page.goto(`${house.base}/s/${id}`);
      await page.getByText(/given to/).first().waitFor();
      await page.screenshot({ path: join(picture, `${agent}-done.png`) });
    }
    assert.deepEqual(page.faults, []);
    await page.context().close();
    const code = await Promise.race([ended, new Promise((done) => setTimeout(() => done("still there"), 30_000))]);
    assert.equal(code, 0, words());
    return { said, calls: model.log };
  } finally {
    if (child) await stop(child, "SIGKILL");
    model.close();
    await house.close();
    rmSync(base, { recursive: true, force: true });
  }
}

const outside = Object.keys(networkInterfaces()).filter((name) => name !== "lo");
assert.deepEqual(outside, [], "run it where there is only loopback: ./prove agents");
const begun = Date.now();
const browser = await openBrowser();
const suite = new Suite("agents");
for (const agent of Object.keys(AGENTS)) {
  suite.test(`${agent} plans, is asked for changes, is approved in the browser, does the steps and reports them`, async () => {
    const { said } = await story(agent, browser);
    if (picture) writeFileSync(join(picture, `${agent}.txt`), said);
  });
}
const stories = await suite.run(only);
await browser.close();
const wire = conformance();
const spoken = await wire.run(only);
await wire.close();
const [passed, failed] = [stories.passed + spoken.passed, stories.failed + spoken.failed];
console.log(`agents: ${passed} passed, ${failed} failed, ${Math.round((Date.now() - begun) / 1000)} s`);
process.exit(failed ? 1 : 0);

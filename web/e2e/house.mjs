// The real server with the scripted model, each in a directory and at a port of its own, stopped by pid.
import { spawn } from "node:child_process";
import { mkdtempSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "../..");
const profile = process.env.PROFILE ?? "debug";
export const program = join(root, "target", profile, "planwright");
const scripted = join(root, "target", profile, "scripted-model");
export const PASSPHRASE = "the quiet kettle sings";

/** Runs a program until it is stopped, and gives the first line that fits. */
export function start(command, args, fits, options = {}) {
  return new Promise((done, fail) => {
    const child = spawn(command, args, { stdio: ["pipe", "pipe", "pipe"], ...options });
    let text = "";
    const hear = (data) => {
      text += data;
      const found = fits.exec(text);
      if (found) done({ child, found });
    };
    child.stdout.on("data", hear);
    child.stderr.on("data", hear);
    child.on("exit", (code) => fail(new Error(`${command} ended (${code}): ${text.slice(-2000)}`)));
    if (options.input !== undefined) child.stdin.end(options.input);
  });
}

export async function stop(child, signal = "SIGTERM") {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((done) => child.once("exit", done));
  child.kill(signal);
  await ended;
}

/** A model that says what messages ask for. */
export async function startModel(scripts) {
  const folder = mkdtempSync(join(tmpdir(), "planwright-e2e-model-"));
  const file = join(folder, "scripts.json");
  writeFileSync(file, JSON.stringify(scripts ?? {}));
  const { child, found } = await start(scripted, ["--by-script", "--port", "0", "--scripts", file], /listening at (http:\S+)/);
  rmSync(folder, { recursive: true, force: true });
  return { url: found[1], child, requests: async () => (await fetch(found[1].replace("/v1", "/requests"))).json() };
}

/** One installation. */
export class House {
  static async open({ model, config = "", passphrase = PASSPHRASE, env = {}, terminal = false } = {}) {
    const house = new House();
    house.home = mkdtempSync(join(tmpdir(), "planwright-e2e-"));
    house.data = join(house.home, "data");
    house.workspace = join(house.home, "workspace");
    mkdirSync(house.data, { mode: 0o700 });
    mkdirSync(house.workspace);
    const price = "price_in = 1.0\nprice_out = 2.0\n";
    const asks = model ? `[model]\nurl = "${model.url}"\nname = "scripted"\n${price}` : "";
    writeFileSync(join(house.data, "config.toml"), `[server]\nbind = "127.0.0.1:0"\nlogins_per_minute = 1000\n${config}\n${asks}`, { mode: 0o600 });
    house.chosen = passphrase;
    house.env = env;
    house.terminal = terminal;
    house.port = 0;
    await house.up();
    return house;
  }

  async up() {
    if (this.port) {
      const path = join(this.data, "config.toml");
      writeFileSync(path, readFileSync(path, "utf8").replace(/127\.0\.0\.1:\d+"/, `127.0.0.1:${this.port}"`), { mode: 0o600 });
    }
    if (this.terminal) return this.upAtTerminal();
    const args = ["up", "--data", this.data, "--workspace", this.workspace, "--json", ...(this.chosen ? ["--passphrase-stdin"] : [])];
    const { child, found } = await start(program, args, /"url":"(http:\/\/localhost:(\d+))"/, { input: this.chosen ? `${this.chosen}\n` : "", env: { ...process.env, PLANWRIGHT_LOG: "warn", OPENAI_API_KEY: "", OPENROUTER_API_KEY: "", OLLAMA_HOST: "127.0.0.1:9", ...this.env } });
    this.child = child;
    this.base = found[1];
    this.port = Number(found[2]);
    this.token = readFileSync(join(this.data, "token"), "utf8").trim();
  }

  /** The same at a terminal, where it shows a link for the first passphrase. */
  async upAtTerminal() {
    const words = [program, "up", "--data", this.data, "--workspace", this.workspace].map((word) => `'${word}'`).join(" ");
    const { child, found } = await start("script", ["--quiet", "--flush", "--return", "--command", `exec ${words}`, "/dev/null"], /((http:\/\/localhost:(\d+))\/login#invitation=\w+)/, { env: { ...process.env, PLANWRIGHT_LOG: "error", TERM: "dumb" } });
    [this.child, this.link, this.base, this.port] = [child, found[1], found[2], Number(found[3])];
    this.token = readFileSync(join(this.data, "token"), "utf8").trim();
  }

  async down(signal = "SIGTERM") {
    await stop(this.child, signal);
  }

  /** Ends it. The data of a run that failed is kept. */
  async close({ keep = false } = {}) {
    await this.down("SIGKILL");
    if (keep) console.log(`its data is kept in ${this.home}`);
    else rmSync(this.home, { recursive: true, force: true });
  }

  /** Who decides, over HTTP, as another surface would. */
  async decider() {
    if (!this.deciding) {
      const answer = await fetch(`${this.base}/api/tokens`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ name: "e2e", passphrase: PASSPHRASE }) });
      this.deciding = (await answer.json()).token;
    }
    return this.deciding;
  }

  /** Somebody else, who was invited, chose the same passphrase, and may decide. */
  async person(name) {
    const invited = await this.ask("POST", "/api/people", { name, roles: ["decide"] });
    const invitation = invited.body.link.split("#invitation=")[1];
    const body = JSON.stringify({ invitation, passphrase: this.passphrase ?? PASSPHRASE });
    const chosen = await fetch(`${this.base}/api/passphrase`, { method: "POST", headers: { "content-type": "application/json" }, body });
    if (chosen.status !== 200) throw new Error(`${name} cannot choose: ${chosen.status} ${await chosen.text()}`);
  }

  async ask(method, path, body, headers = {}) {
    const answer = await fetch(`${this.base}${path}`, {
      method,
      headers: { authorization: `Bearer ${await this.decider()}`, ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await answer.text();
    return { status: answer.status, body: text ? JSON.parse(text) : null };
  }

  say(id, text) {
    return this.ask("POST", `/api/sessions/${id}/messages`, { text });
  }

  status(id) {
    return this.ask("GET", `/api/sessions/${id}`).then((answer) => answer.body);
  }

  async rests(id, fits = (session) => session.resting) {
    for (let at = 0; at < 400; at += 1) {
      const session = await this.status(id);
      if (fits(session)) return session;
      await new Promise((done) => setTimeout(done, 25));
    }
    throw new Error(`${id} does not come to rest: ${JSON.stringify(await this.status(id))}`);
  }

  /** A session with a plan that waits for a decision. */
  async ready(id, plan, more = {}) {
    await this.ask("POST", `/api/sessions/${id}/plan`, {});
    await this.say(id, `please plan\n${script({ plan, ...more })}`);
    return this.rests(id, (session) => session.waiting === "decision");
  }
}

export const script = (value) => `script ${JSON.stringify(value)}`;

/** Logs a page in. */
export async function logIn(page, house, person) {
  await page.goto(`${house.base}/login`);
  await page.getByLabel("Passphrase").fill(house.passphrase ?? PASSPHRASE);
  if (person) await page.getByLabel(/Your name/).fill(person);
  await page.getByRole("button", { name: "Log in", exact: true }).click();
  await page.waitForURL((url) => !url.pathname.startsWith("/login"));
}

/** Asks as the page itself would: with its cookie and its key. */
export const askAsPage = (page, path, { headers, ...more } = {}) =>
  page.evaluate(
    async ([path, more, headers]) => {
      const answer = await fetch(path, { ...more, headers: { ...headers, "planwright-page-key": localStorage.getItem("page-key") ?? "" } });
      const text = await answer.text();
      return { status: answer.status, text };
    },
    [path, more, headers],
  );

export const sessionUrl = (house, id) => `${house.base}/s/${encodeURIComponent(id)}`;

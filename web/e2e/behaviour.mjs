// What people met in daily use of the dashboard, against the real server with the scripted model: lost responses, broken
// storage, commands typed in the conversation, many sessions, what is claimed and what was observed, narrow windows.
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openPage } from "./browser.mjs";
import { House, logIn, PASSPHRASE, script, sessionUrl } from "./house.mjs";
import { assert, sleep, Suite, until } from "./kit.mjs";

/** The suite over a house, with a browser. */
export function behaviour({ house, model, browser }) {
  const suite = new Suite("behaviour");
  const test = suite.test.bind(suite);
  let number = 0;
  const fresh = () => `api:e2e-use-${String(++number).padStart(4, "0")}`;
  const opened = async (id, options) => {
    const page = await openPage(browser, house.base, options);
    page.setDefaultTimeout(30_000);
    await logIn(page, house);
    if (id) await page.goto(sessionUrl(house, id));
    return page;
  };
  const done = async (page, ...expected) => {
    const faults = page.faults.filter((fault) => !expected.some((words) => fault.includes(words)));
    assert.deepEqual(faults, []);
    await page.context().close();
  };
  const composer = (page) => page.getByLabel("Message", { exact: true });
  const type = async (page, text) => {
    await composer(page).fill(text);
    await composer(page).press("Enter");
  };
  const events = async (id) => (await house.ask("GET", `/api/sessions/${id}/events`)).body;
  const line = (id, text) => house.ask("POST", `/api/sessions/${id}/lines`, { line: text });

  /** Loses the next responses to what fits: the server gets the request, the page gets nothing. */
  const loseResponses = async (page, fits, times = 1) => {
    const keys = [];
    let left = times;
    await page.route(fits, async (route) => {
      if (route.request().method() === "GET") return route.continue();
      keys.push(await route.request().headerValue("idempotency-key"));
      if (left-- <= 0) return route.continue();
      await route.fetch();
      return route.abort("connectionreset");
    });
    return keys;
  };

  test("intent: a second Enter after a lost response queues one message, also after a reload", async () => {
    const id = fresh();
    const page = await opened(id);
    await composer(page).waitFor();
    const keys = await loseResponses(page, /\/messages$/, 2);
    const text = `hello there\n${script({ say: "once only" })}`;
    await type(page, text);
    await page.getByText(/cannot be reached/).waitFor();
    assert.equal(await composer(page).inputValue(), text, "the draft is kept until there is an answer");
    await composer(page).press("Enter");
    await until(() => keys.length, (count) => count === 2);
    await page.reload();
    await until(() => composer(page).inputValue(), (value) => value === text);
    await composer(page).press("Enter");
    await until(() => composer(page).inputValue(), (value) => value === "", { what: "the empty composer" });
    await house.rests(id);
    assert.equal(keys.length, 3);
    assert.equal(new Set(keys).size, 1, JSON.stringify(keys));
    assert.equal((await events(id)).filter((event) => event.type === "message_queued").length, 1);
    // The same words again are another message.
    await type(page, text);
    await until(async () => (await events(id)).filter((event) => event.type === "message_queued").length, (count) => count === 2);
    assert.notEqual(keys[3], keys[0]);
    await house.rests(id);
    await done(page);
  });

  test("intent: a command and a button keep their key until there is an answer", async () => {
    const id = fresh();
    await line(id, "/memory save The cellar is dry.");
    const page = await opened(id);
    await composer(page).waitFor();
    const typed = await loseResponses(page, /\/lines\/text$/);
    await type(page, "/goal add tidy the cellar");
    await page.getByText(/cannot be reached/).waitFor();
    await composer(page).press("Enter");
    await until(() => typed.length, (count) => count === 2);
    await until(() => composer(page).inputValue(), (value) => value === "");
    assert.equal(typed[1], typed[0]);
    assert.equal((await house.ask("GET", `/api/sessions/${id}/work`)).body.goals.length, 1);
    // With nothing heard of the session meanwhile, a second press is the same wish.
    await page.routeWebSocket(/\/api\/ws/, () => {});
    await page.route(/\/api\/hints/, (route) => route.abort());
    await page.goto(`${sessionUrl(house, id)}/memory`);
    const pressed = await loseResponses(page, /\/memory\/[^/]+\/promote$/);
    await page.getByRole("button", { name: "Promote to global…" }).first().click();
    for (let at = 1; at <= 2; at += 1) {
      // What was not done leaves its dialog open.
      await page.getByRole("button", { name: "Promote exactly this text" }).click();
      await until(() => pressed.length, (count) => count === at);
    }
    assert.ok(pressed[0], "a promotion has a key");
    assert.equal(pressed[1], pressed[0]);
    await done(page);
  });

  test("intent: only a response that did not come is called unreachable", async () => {
    const id = fresh();
    const page = await opened(id);
    await composer(page).waitFor();
    await page.route(/\/messages$/, (route) => route.fulfill({ status: 200, contentType: "application/json", body: "<html>" }));
    await type(page, "hello");
    await page.getByText(/cannot be read/).waitFor();
    assert.equal(await page.getByText(/cannot be reached/).count(), 0);
    await page.unroute(/\/messages$/);
    await page.route(/\/messages$/, (route) => route.fulfill({ status: 429, contentType: "application/problem+json", body: JSON.stringify({ type: "urn:planwright:too_often", detail: "you ask too often; wait a second" }) }));
    await composer(page).press("Enter");
    await page.getByText(/you ask too often/).waitFor();
    assert.equal(await page.getByText(/cannot be reached/).count(), 0);
    await done(page);
  });

  test("remount: nothing of one session is on the screen of another", async () => {
    const [a, b] = [fresh(), fresh()];
    await line(a, "/memory save ALPHA secret.");
    await line(b, "/memory save BRAVO fact.");
    await house.ask("PATCH", `/api/sessions/${a}`, { title: "alpha talk" });
    await house.ask("PATCH", `/api/sessions/${b}`, { title: "bravo talk" });
    const page = await opened();
    await page.goto(`${sessionUrl(house, b)}/memory`);
    await page.getByText("BRAVO fact.").waitFor();
    // The router changes the address in place, as a link or the back key does.
    await page.goto(`${sessionUrl(house, a)}/memory`);
    await page.getByText("ALPHA secret.").waitFor();
    await page.evaluate((path) => history.pushState({}, "", path), `/s/${encodeURIComponent(b)}/memory`);
    await page.goBack();
    await page.getByText("ALPHA secret.").waitFor();
    await page.getByLabel("Find what is remembered").fill("secret");
    await page.getByRole("button", { name: "Promote to global…" }).first().click();
    await page.locator("[data-testid=promote-text]").waitFor();
    await page.goForward();
    await page.getByRole("heading", { name: /Memory · bravo talk/ }).waitFor();
    await sleep(400);
    assert.equal(await page.locator("[data-testid=promote-text]").count(), 0);
    assert.equal(await page.getByLabel("Find what is remembered").inputValue(), "");
    assert.ok(!(await page.locator("main").innerText()).includes("ALPHA"));
    await done(page);
  });

  test("storage: a bad stored value does not blank the page", async () => {
    const id = fresh();
    const ready = await house.ready(id, "# Tidy\n\n1. Sweep.\n");
    const page = await openPage(browser, house.base);
    await page.addInitScript(({ id, plan }) => {
      localStorage.setItem("snoozed", "{");
      localStorage.setItem("theme", "{");
      localStorage.setItem("panel", "{");
      localStorage.setItem(`notes:${id}:${plan}`, '{"a":');
      localStorage.setItem(`sent:${id}`, "[");
    }, { id, plan: ready.plan.planId });
    await logIn(page, house);
    await page.goto(sessionUrl(house, id));
    await page.locator("[data-testid=verdicts]").waitFor();
    await page.getByText("Sweep.").first().waitFor();
    await type(page, `hello\n${script({ say: "all is well" })}`);
    await page.getByText("all is well", { exact: true }).waitFor();
    await done(page);
  });

  test("storage: a part that an upgrade removed costs one screen, keeps the navigation, and offers to reload", async () => {
    const id = fresh();
    await house.say(id, `hello\n${script({ say: "plain **words**" })}`);
    await house.rests(id);
    const page = await openPage(browser, house.base);
    let isGone = true;
    await page.route(/\/assets\/(Markdown|MemoryScreen)-[^/]*\.js$/, (route) => (isGone ? route.fulfill({ status: 404, body: "" }) : route.fallback()));
    await logIn(page, house);
    await page.goto(sessionUrl(house, id));
    // Without its renderer an answer is plain text, and the rest works.
    await page.getByText("plain **words**", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Memory" }).click();
    await page.locator("[data-testid=screen-error]").waitFor();
    assert.ok(await page.locator("[data-testid=session-list]").isVisible());
    await page.locator("[data-testid=session-list] a").first().click();
    await composer(page).waitFor();
    await page.getByRole("button", { name: "Memory" }).click();
    isGone = false;
    await page.getByRole("button", { name: "Reload the page" }).click();
    await page.getByLabel("Find what is remembered").waitFor();
    await done(page, "dynamically imported", "Failed to fetch", "error boundary", "ErrorBoundary", "CatchBoundary", "Lazy");
  });

  test("commands: every command that looks answers where it was typed", async () => {
    const id = fresh();
    await house.ready(id, "# Tidy the cellar\n\n1. Sweep.\n2. Paint.\n");
    const page = await opened(id);
    await page.locator("[data-testid=verdicts]").waitFor();
    const answers = page.locator("[data-testid=command-answer]");
    let asked = 0;
    const answered = async (command, words) => {
      const before = (await house.status(id)).version;
      await type(page, command);
      asked += 1;
      await until(() => answers.filter({ hasText: command }).last().innerText().catch(() => ""), (text) => words.test(text), { what: `the answer to ${command}` });
      return before;
    };
    await answered("/plan status", /Plan ready · rev 1[\s\S]*Tidy the cellar/);
    await answered("/plan list", /Ready\s+1 revisions\s+Tidy the cellar/);
    await answered("/plan show", /1\. Sweep\.[\s\S]*2\. Paint\./);
    await answered("/plan comments", /no comments on this plan/);
    await answered("/plan diff", /rev 0 → 1[\s\S]*\+ 2\. Paint\./);
    await answered("/auto status", /no goals, tasks, runs or schedules/);
    await answered("/goal", /no goals, tasks, runs or schedules/);
    await answered("/memory", /blocked: \d+ foreign/);
    await answered("/notebook", /notebook: off/);
    await answered("/sessions", /api:e2e-use-/);
    await answered("/help", /where the plan stands/);
    await answered("/goal add paint it white", /the goal is set/);
    await answered("/plna status", /✗/);
    await answered("/plan resume", /✗/);
    // What was refused stays in the box, to be put right; what was shown is gone from it.
    assert.equal(await composer(page).inputValue(), "/plan resume");
    // In their order, behind what was there.
    const shown = (await page.locator("[data-testid=chat] [data-index]").evaluateAll((all) => all.sort((one, other) => one.dataset.index - other.dataset.index).map((row) => row.querySelector("[data-testid=command-answer] p")?.textContent))).filter(Boolean);
    assert.deepEqual(shown.slice(-2), ["/plna status", "/plan resume"]);
    assert.ok(asked >= 14);
    await done(page);
  });

  test("commands: /new and /switch take the page there", async () => {
    const id = fresh();
    await house.say(id, `hello\n${script({ say: "the first talk" })}`);
    await house.rests(id);
    const page = await opened(id);
    await page.getByText("the first talk", { exact: true }).waitFor();
    await type(page, "/new");
    await page.waitForURL((url) => !url.pathname.includes(encodeURIComponent(id)) && url.pathname.startsWith("/s/"));
    await page.getByText("What should be done?").waitFor();
    await type(page, `hello\n${script({ say: "the second talk" })}`);
    await page.getByText("the second talk", { exact: true }).waitFor();
    await type(page, `/switch ${id}`);
    await page.waitForURL((url) => url.pathname.includes(encodeURIComponent(id)));
    await page.getByText("the first talk", { exact: true }).waitFor();
    await type(page, "/switch api:no-such-session-here");
    await page.locator("[data-testid=command-answer]", { hasText: "there is no session" }).waitFor();
    await done(page);
  });

  test("sessions: all of 230 are reachable, found by title, and what waits is in the sidebar", async () => {
    const waits = fresh();
    await house.ready(waits, "# The oldest of them all\n\n1. Wait.\n");
    await house.ask("PATCH", `/api/sessions/${waits}`, { title: "waits since long ago" });
    const names = Array.from({ length: 230 }, (_, at) => `crowd-${String(at).padStart(4, "0")}`);
    for (let at = 0; at < names.length; at += 10) {
      await Promise.all(names.slice(at, at + 10).map((name) => line(`api:e2e-${name}`, `/rename ${name === "crowd-0003" ? "Needle in the hay" : name}`)));
    }
    const answer = await fetch(`${house.base}/api/sessions?limit=1`, { headers: { authorization: `Bearer ${await house.decider()}` } });
    const total = Number(answer.headers.get("x-total-count"));
    assert.ok(total >= 231, `${total} sessions`);
    const page = await opened();
    await page.goto(`${house.base}/sessions`);
    const count = page.locator("[data-testid=session-count]");
    await until(() => count.innerText(), (text) => text === `100 of ${total}`);
    while (await page.getByRole("button", { name: /Show more/ }).count()) {
      await page.getByRole("button", { name: /Show more/ }).click().catch(() => {});
      await sleep(200);
    }
    await until(() => count.innerText(), (text) => text === `${total} of ${total}`);
    await page.getByLabel("Find a session").fill("NEEDLE in");
    await until(() => count.innerText(), (text) => text === "1 of 1");
    await page.getByRole("link", { name: "Needle in the hay" }).click();
    await page.waitForURL(/crowd-0003/);
    // It is far beyond the first page, and still one glance away.
    await page.locator("[data-testid=session-list] a[data-state='needs you']", { hasText: "waits since long ago" }).waitFor();
    await page.keyboard.press("Control+k");
    await page.getByPlaceholder("A session, or where to go").fill("crowd-0007");
    await page.getByRole("option", { name: /crowd-0007/ }).waitFor();
    await page.keyboard.press("Enter");
    await page.waitForURL(/crowd-0007/);
    await done(page);
  });

  test("completion: a report is a claim, apart from what was observed, and never a green tick", async () => {
    const id = fresh();
    const { plan } = await house.ready(id, "# Move the photos\n\n1. Copy the files.\n2. Delete the old disk.\n", { work: [["write_file", { path: `${id.slice(4)}.txt`, content: "x" }]] });
    const digest = { "if-match": `"${plan.digest}"` };
    await house.ask("POST", `/api/sessions/${id}/plan/shown`, undefined, digest);
    await house.ask("POST", `/api/sessions/${id}/plan/approve`, {}, digest);
    await house.rests(id, (session) => session.plan?.status === "Done");
    const page = await opened(id);
    const card = page.locator("[data-testid=plan-ended]");
    await card.waitFor();
    const text = await card.innerText();
    assert.match(text, /Plan reported done/);
    assert.match(text, /claimed\s+as planned/i);
    assert.match(text, /observed\s+1 call ran\s+wrote .*\.txt/i);
    assert.match(text, /no call was reported for\s+1\. Copy the files\.\s+2\. Delete the old disk\./i);
    assert.doesNotMatch(text, /✓|completed/);
    const report = page.locator("[data-testid=tool-card]", { hasText: "plan_report" });
    assert.equal(await report.locator(".text-good").count(), 0);
    assert.doesNotMatch(await report.innerText(), /✓/);
    const panel = page.locator("[data-testid=plan-panel]");
    assert.match(await panel.innerText(), /1 call ran/);
    assert.equal(await panel.locator(".chip.good").count() + (await card.locator(".text-good").count()), 0);
    const { body } = await house.ask("POST", `/api/sessions/${id}/lines/text`, { line: "/plan status" });
    assert.doesNotMatch(body.text, /✓/);
    // What a person declares is theirs.
    const other = fresh();
    const ready = await house.ready(other, "# Tidy\n\n1. Sweep.\n", { work: [["write_file", { path: "outside/of-it.txt", content: "x" }]] });
    const match = { "if-match": `"${ready.plan.digest}"` };
    await house.ask("POST", `/api/sessions/${other}/plan/shown`, undefined, match);
    await house.ask("POST", `/api/sessions/${other}/plan/approve`, { grant: { tools: ["write_file"], paths: ["inside/"] } }, match);
    await house.rests(other, (session) => session.waiting === "permission");
    await page.goto(sessionUrl(house, other));
    await type(page, "/plan done");
    await card.filter({ hasText: /Plan declared done by/ }).waitFor();
    assert.match(await card.innerText(), /no call ran/);
    await done(page);
  });

  test("stop: what was streamed stays on the screen, and says that it was stopped", async () => {
    const id = fresh();
    const page = await opened(id);
    // What is said before the page listens is not streamed to it.
    await type(page, `hello\n${script({ say: "now it listens" })}`);
    await page.getByText("now it listens", { exact: true }).waitFor({ timeout: 20_000 });
    await sleep(1_000);
    await type(page, `talk\n${script({ say: "slow words ", times: 400, pace_ms: 25 })}`);
    await page.locator("[data-live]", { hasText: /(slow words ?){5}/ }).waitFor({ timeout: 20_000 });
    await page.getByRole("button", { name: "Stop", exact: true }).click();
    await page.locator("[data-testid=stopped-answer]").waitFor();
    await house.rests(id);
    const kept = await page.locator("[data-testid=chat]").innerText();
    assert.ok((kept.match(/slow words/g) ?? []).length >= 6, kept.slice(0, 300));
    assert.equal(await page.locator("[data-live]").count(), 0);
    await done(page);
  });

  test("keys: J J J C comments on the line that has the focus; ? opens the help and types nothing", async () => {
    const id = fresh();
    await house.ready(id, "# Move\n\n1. First.\n2. Second.\n3. Third.\n");
    const page = await opened();
    await page.goto(`${sessionUrl(house, id)}/plan`);
    await page.locator("[data-testid=verdicts]").waitFor();
    for (const key of ["j", "j", "j", "c"]) await page.keyboard.press(key);
    await page.getByRole("form", { name: "Comment on line 4" }).waitFor();
    await page.keyboard.press("Escape");
    await page.goto(sessionUrl(house, id));
    await composer(page).waitFor();
    await page.locator("[data-testid=chat]").focus();
    await page.keyboard.press("?");
    await page.locator("[data-testid=key-help]").waitFor();
    assert.match(await page.locator("[data-testid=key-help]").innerText(), /next, previous line/);
    await page.keyboard.press("Escape");
    await page.locator("[data-testid=key-help]").waitFor({ state: "detached" });
    assert.equal(await composer(page).inputValue(), "");
    await composer(page).focus();
    await page.keyboard.press("?");
    assert.equal(await composer(page).inputValue(), "?");
    await done(page);
  });

  for (const theme of ["light", "dark"]) {
    test(`layout: at 1024 x 768 (${theme}) nothing overlaps and there is room to write`, async () => {
      const id = fresh();
      await house.ready(id, "# Move the photos\n\n1. First.\n");
      await house.ask("PATCH", `/api/sessions/${id}`, { title: "A title of some length for a session" });
      const page = await opened(id, { width: 1024, height: 768, theme });
      await page.locator("[data-testid=verdicts]").waitFor();
      const box = async (locator) => locator.boundingBox();
      const title = await box(page.locator("main h1 button"));
      const cost = await box(page.locator("[data-testid=cost]"));
      const nav = await box(page.getByRole("navigation", { name: "Of this session" }));
      const text = await box(composer(page));
      assert.ok(title.width >= 150, `the title is ${title.width} px wide`);
      const overlaps = (one, other) => one.x < other.x + other.width && other.x < one.x + one.width && one.y < other.y + other.height && other.y < one.y + one.height;
      assert.ok(!overlaps(cost, nav), JSON.stringify({ cost, nav }));
      assert.ok(text.width >= 280, `the composer is ${text.width} px wide`);
      const clipped = await page.locator("main").evaluate((main) => main.scrollWidth > main.clientWidth);
      assert.ok(!clipped, "nothing is cut off");
      if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/1024-${theme}.png` });
      await done(page);
    });
  }

  test("owners: two people use one key for a session each; who may decide reads and approves the other's in the page", async () => {
    const id = fresh();
    await house.say(id, "this one is mine");
    await house.rests(id);
    await house.person("bea");
    const asks = await fetch(`${house.base}/api/tokens`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ name: "bea", person: "bea", speaks_only: true, passphrase: house.passphrase ?? PASSPHRASE }) });
    const { token } = await asks.json();
    const asBea = async (method, path, body) => {
      const answer = await fetch(`${house.base}${path}`, { method, headers: { authorization: `Bearer ${token}`, "content-type": "application/json" }, body: body && JSON.stringify(body) });
      return { status: answer.status, body: await answer.json() };
    };
    assert.equal((await asBea("POST", `/api/sessions/${id}/plan`, {})).status, 201);
    await asBea("POST", `/api/sessions/${id}/messages`, { text: `her plan\n${script({ plan: "# Hers\n\n1. Sweep\n" })}` });
    await until(async () => (await asBea("GET", `/api/sessions/${id}`)).body.waiting, (waiting) => waiting === "decision");
    assert.equal((await house.status(id)).waiting, null, "mine is as it was");
    const page = await opened();
    await page.goto(`${house.base}/approvals`);
    const card = page.locator("[data-testid=approval]", { hasText: "Hers" });
    await card.waitFor();
    const theirs = await card.getAttribute("data-session");
    assert.match(theirs, new RegExp(`^[0-9a-f]{32}\\.${id}$`));
    await page.goto(sessionUrl(house, theirs));
    if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/theirs.png` });
    await page.locator("[data-testid=approve]").waitFor();
    await page.locator("[data-testid=approve]").click();
    await until(async () => (await asBea("GET", `/api/sessions/${id}`)).body.plan?.status, (status) => status && status !== "Ready");
    await done(page);
  });

  test("roots: a new session works where it is told to, and keeps that", async () => {
    const root = mkdtempSync(join(tmpdir(), "planwright-e2e-root-"));
    const own = await House.open({ model, config: `[workspace]\nroots = ["${root}"]` });
    try {
      const page = await openPage(browser, own.base);
      await logIn(page, own);
      const id = fresh();
      await page.goto(sessionUrl(own, id));
      const choice = page.locator("[data-testid=roots]");
      await choice.waitFor();
      assert.equal(await choice.locator("option").count(), 2);
      await choice.selectOption(root);
      await page.getByText(`Works in ${root}`).first().waitFor();
      assert.equal((await own.status(id)).root, root);
      const again = await own.ask("PATCH", `/api/sessions/${id}`, { root: own.workspace });
      assert.equal(again.status, 409, JSON.stringify(again.body));
      const other = await own.ask("PATCH", `/api/sessions/${fresh()}`, { root: "/etc" });
      assert.equal(other.status, 422, JSON.stringify(other.body));
      await own.ready(id, "# There\n\n1. Write\n", { work: [["write_file", { path: "there.txt", content: "x" }]] });
      await until(() => page.locator("[data-testid=allows]").innerText(), (text) => text.includes(`work in ${root}`));
      await page.locator("[data-testid=approve]").click();
      await own.rests(id, (session) => session.plan?.status === "Done");
      assert.ok(existsSync(join(root, "there.txt")));
      await done(page);
    } finally {
      await own.close();
      rmSync(root, { recursive: true, force: true });
    }
  });

  test("limits: a day that is used up says so, waits, and goes on with one press; Settings shows what is used", async () => {
    const own = await House.open({ model, config: "[limits]\ndollars_per_day = 0.0002" });
    try {
      const [first, second] = [fresh(), fresh()];
      for (const words of ["hello", "hello again"]) {
        await own.say(first, words);
        await own.rests(first);
      }
      const page = await openPage(browser, own.base, { width: 1024, height: 768 });
      await logIn(page, own);
      await page.goto(sessionUrl(own, second));
      await type(page, "hello there");
      const card = page.locator("[data-testid=limit]");
      await card.waitFor();
      const words = await card.innerText();
      assert.match(words, /owner may use \$0\.0002 a day, and \$0\.000\d is used; this holds until 20\d\d-\d\d-\d\d 00:00 UTC/);
      await page.goto(`${own.base}/approvals`);
      await page.locator("[data-testid=approval]").getByText("a limit is reached", { exact: true }).waitFor();
      await page.goto(`${own.base}/settings`);
      await until(() => page.locator("[data-testid=usage]").innerText(), (text) => /Money today\s+\$0\.000\d of \$0\.0002/.test(text));
      await page.goto(sessionUrl(own, second));
      await card.getByRole("button", { name: "As much again today" }).click();
      await own.rests(second, (session) => !session.turnOpen && session.limit === null);
      await card.waitFor({ state: "detached" });
      await done(page);
    } finally {
      await own.close();
    }
  });

  test("waiting: a call that waits is not marked done, and its run is not called running", async () => {
    const id = fresh();
    await line(id, "/goal add tidy up");
    await line(id, `/task add g1 sweep ${script({ calls: [["write_file", { path: "swept.txt", content: "x" }]] })}`);
    await line(id, "/auto on g1");
    await house.rests(id, (session) => session.waiting === "permission");
    const page = await opened();
    await page.goto(`${house.base}/approvals`);
    const card = page.locator(`[data-testid=approval][data-session="${id}"]`);
    await card.waitFor();
    await until(() => card.innerText(), (text) => /a call waits for permission/.test(text));
    assert.doesNotMatch(await card.innerText(), /\bDone\b/);
    await page.goto(`${sessionUrl(house, id)}/work`);
    const run = page.locator("[data-testid=run]");
    await run.waitFor();
    assert.match(await run.innerText(), /a call waits for your permission/);
    assert.doesNotMatch(await run.innerText(), /\brunning\b/);
    await line(id, "/auto off");
    await done(page);
  });

  return suite;
}

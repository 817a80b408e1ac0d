// What every screen must be: readable by everyone, wide enough for nothing, and deaf to what text asks it to run.
import { createServer } from "node:http";
import AxeBuilder from "@axe-core/playwright";
import { openPage } from "./browser.mjs";
import { askAsPage, House, logIn, PASSPHRASE, script, sessionUrl } from "./house.mjs";
import { assert, sleep, Suite, until } from "./kit.mjs";
import { payloads } from "./payloads.mjs";

export function surfaces({ house, model, browser }) {
  const suite = new Suite("surfaces");
  const id = "api:e2e-every-screen";

  suite.test("29 axe finds nothing on any route, light and dark, 390 and 1280 wide, and nothing overflows", async () => {
    await house.ready(id, "# Move the photos\n\n1. Read `compose.yml`.\n2. Stop the service.\n", { say: "I wrote **a plan**." });
    for (const line of ["/notebook on", "/goal add tidy", "/task add g1 sweep", "/memory save The backups live in the cellar.", "/schedule add 0 7 * * * UTC water the plants"]) {
      await house.ask("POST", `/api/sessions/${id}/lines`, { line });
    }
    let looked = 0;
    // At quick size each theme at one of the widths, and not at the same one each time.
    const chance = Math.random() < 0.5;
    for (const theme of ["light", "dark"]) {
      for (const width of [390, 1280].filter((width) => !process.argv.includes("--quick") || (width === 390) === ((theme === "light") === chance))) {
        const page = await openPage(browser, house.base, { width, height: width === 390 ? 844 : 800, theme });
        await page.goto(`${house.base}/login`);
        const at = encodeURIComponent(id);
        for (const path of ["/login", "/welcome", `/s/${at}`, `/s/${at}/plan`, `/s/${at}/work`, `/s/${at}/memory`, `/s/${at}/notebook`, "/approvals", "/sessions", "/settings"]) {
          if (path === "/welcome") await logIn(page, house);
          await page.goto(`${house.base}${path}`);
          await page.locator("h1, h2").first().waitFor();
          await sleep(350);
          const views = path === `/s/${at}` && width === 390 ? ["Chat", "Plan"] : [null];
          for (const view of views) {
            if (view) await page.getByRole("tab", { name: new RegExp(`^${view}`) }).first().click();
            const found = await new AxeBuilder({ page }).analyze();
            const words = found.violations.map((one) => `${one.id} (${one.nodes.length}): ${one.nodes[0]?.html.slice(0, 160)} ${one.nodes[0]?.failureSummary?.slice(0, 200)}`);
            assert.deepEqual(words, [], `${path} ${view ?? ""} ${theme} ${width}`);
            const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
            assert.equal(over, 0, `${path} is ${over} px too wide at ${width}`);
            looked += 1;
          }
        }
        assert.deepEqual(page.faults, []);
        await page.context().close();
      }
    }
    suite.figures.push({ name: "axe violations", value: 0, limit: 0, unit: `on ${looked} screens` });
  });

  suite.test("a plan that was written after reading says so where it is decided, at every width", async () => {
    const talk = "api:e2e-read-before";
    await house.say(talk, `look\n${script({ calls: [["list_files", {}]], say: "I looked." })}`);
    await house.rests(talk);
    await house.ready(talk, "# Move the photos\n\n1. Read `compose.yml`.\n2. Stop the service.\n");
    for (const theme of ["light", "dark"]) {
      for (const width of [390, 1024, 1440]) {
        const page = await openPage(browser, house.base, { width, height: width === 390 ? 844 : 800, theme });
        await logIn(page, house);
        await page.goto(`${sessionUrl(house, talk)}/plan`);
        await page.getByTestId("outside").getByText("Written after reading what came from outside (list_files)").waitFor();
        const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
        assert.equal(over, 0, `${over} px too wide at ${width}`);
        if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/outside-${width}-${theme}.png` });
        await page.context().close();
      }
    }
  });

  suite.test("30 text that wants to be a script stays text, and nothing is cut from what is approved", async () => {
    const talk = "api:e2e-hostile-text";
    const plan = `# ${payloads[0]}\n\n${payloads.map((text, at) => `${at + 1}. ${text.replaceAll("\n", " ")}`).join("\n")}\n`;
    await house.ask("POST", `/api/sessions/${talk}/plan`, {});
    await house.say(talk, `${payloads.slice(0, 60).join("\n")}\n${script({ plan, revised: `${plan}\nThe end.\n`, say: payloads.join("\n\n") })}`);
    const session = await house.rests(talk, (now) => now.waiting === "decision");
    await house.ask("POST", `/api/sessions/${talk}/plan/changes`, { comments: payloads.slice(0, 30).map((text, at) => ({ line: at + 1, step: null, text })) }, { "if-match": `"${session.plan.digest}"` });
    await house.rests(talk, (now) => now.waiting === "decision" && now.plan.revision === 2);
    const files = "api:e2e-hostile-files";
    const names = payloads.map((text) => text.replaceAll("/", "_").slice(0, 60));
    await house.say(files, `files\n${script({ calls_at_once: names.slice(0, 40).map((path, at) => ["write_file", { path, content: payloads[at] }]) })}`);
    await house.rests(files, (now) => now.resting || now.waiting !== null);
    const titled = payloads.slice(0, 30).map((_, at) => `api:e2e-titled-${String(at).padStart(3, "0")}`);
    for (const [at, one] of titled.entries()) {
      await house.ask("POST", `/api/sessions/${one}/lines`, { line: `/memory save ${payloads[at]}` });
      await house.ask("PATCH", `/api/sessions/${one}`, { title: payloads[at].slice(0, 200) });
    }
    const page = await openPage(browser, house.base);
    const dialogs = [];
    page.on("dialog", (dialog) => {
      dialogs.push(dialog.message());
      void dialog.dismiss();
    });
    await logIn(page, house);
    const drawn = async (path) => {
      await page.goto(`${house.base}${path}`);
      await page.locator("h1, h2").first().waitFor();
      await sleep(500);
      assert.equal(await page.evaluate(() => window.__xss), undefined, path);
    };
    const at = encodeURIComponent(talk);
    for (const path of [`/s/${at}`, `/s/${at}/work`, `/s/${at}/memory`, `/s/${encodeURIComponent(files)}`, `/s/${encodeURIComponent(files)}/work`, "/sessions", "/approvals", `/s/${encodeURIComponent(titled[0])}/memory`]) await drawn(path);
    await drawn(`/s/${at}/plan`);
    const rendered = page.getByTestId("plan-rendered");
    await page.getByRole("tab", { name: "Plan", exact: true }).click();
    await rendered.waitFor();
    assert.equal(await page.evaluate(() => window.__xss), undefined, "the plan as its Markdown means it");
    await page.getByRole("tab", { name: "Source", exact: true }).click();
    const shown = await page.locator("[data-testid=plan-text] [data-line] > span:last-of-type").allTextContents();
    const spelled = (text) => text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|\udb40[\udc00-\udfff]/g, (hidden) => `⟦U+${hidden.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟧`);
    const text = (await house.ask("GET", `/api/sessions/${talk}/plan/revisions/current`)).body.markdown;
    assert.deepEqual(shown, text.replace(/\n$/, "").split("\n").map(spelled));
    assert.deepEqual([page.faults, dialogs], [[], []]);
    suite.figures.push({ name: "payloads that ran or asked elsewhere", value: 0, limit: 0, unit: `of ${payloads.length}, through plan, comments, answers, tool output, file names and titles` });
    await page.context().close();
  });

  suite.test("a token opens the page and gives no right to decide", async () => {
    const page = await openPage(browser, house.base);
    await page.goto(`${sessionUrl(house, id)}/plan`);
    await page.getByRole("button", { name: /with a token/ }).click();
    await page.getByLabel(/^Token/).fill(house.token);
    await page.getByRole("button", { name: "Log in", exact: true }).click();
    // Whoever was sent to the login comes back to where they were going.
    await page.waitForURL((url) => decodeURIComponent(url.pathname) === `/s/${id}/plan`);
    await page.getByText("Log in with the passphrase to decide").first().waitFor();
    assert.equal(await page.locator("[data-testid=approve]").count(), 0);
    const cookie = (await page.context().cookies()).find((one) => one.name === "planwright");
    assert.deepEqual([cookie.httpOnly, cookie.sameSite], [true, "Strict"]);
    const refused = await askAsPage(page, `/api/sessions/${encodeURIComponent(id)}/plan/approve`, { method: "POST", headers: { "if-match": `"${"0".repeat(64)}"`, "content-type": "application/json" }, body: "{}" });
    assert.equal(refused.status, 403);
    await page.goto(`${house.base}/settings`);
    await page.getByRole("button", { name: "Log out" }).click();
    // Logging out loads the page anew; until it is there, nothing can be asked in it.
    await page.getByRole("button", { name: /with a token/ }).waitFor();
    assert.equal((await askAsPage(page, "/api/me")).status, 401);
    assert.equal(await page.evaluate(() => localStorage.getItem("page-key")), null);
    await page.context().close();
  });

  for (const host of ["127.0.0.1", "localhost"]) {
    suite.test(`another port of ${host} gets the cookie, and with it reads, says and approves nothing`, async () => {
      const at = encodeURIComponent(id);
      const digest = (await house.ask("GET", `/api/sessions/${at}/plan`)).body.digest;
      const before = (await house.ask("GET", `/api/sessions/${at}`)).body.version;
      const heard = [];
      const other = createServer((request, response) => {
        heard.push(request.headers);
        response.setHeader("content-type", "text/html").end("<!doctype html><title>A development server</title><h1>App</h1>");
      });
      await new Promise((done) => other.listen(0, host, done));
      const page = await openPage(browser, house.base);
      await logIn(page, house);
      await page.goto(`${house.base}/approvals`);
      // A link that an agent gave the person.
      const there = await page.context().newPage();
      await there.goto(`http://${host}:${other.address().port}/app`);
      const stolen = await there.evaluate(() => ({ keys: Object.keys(localStorage), cookie: document.cookie }));
      assert.deepEqual(stolen, { keys: [], cookie: "" });
      other.close();
      const cookie = heard.map((headers) => headers.cookie).find(Boolean) ?? "";
      // The cookie belongs to localhost, whatever the port: there the attack is the real one.
      if (host === "localhost") assert.match(cookie, /planwright=\w+/);
      const secret = /planwright=(\w+)/.exec(cookie)?.[1] ?? "none";
      const tries = [
        ["GET", "/api/me"],
        ["GET", `/api/sessions/${at}/events`],
        ["GET", `/api/sessions/${at}/stream`],
        ["POST", "/api/tickets"],
        ["POST", `/api/sessions/${at}/messages`, { text: "from another port" }],
        ["POST", `/api/sessions/${at}/plan/shown`, {}],
        ["POST", `/api/sessions/${at}/plan/approve`, {}],
      ];
      for (const [method, path, body] of tries) {
        for (const headers of [{ cookie }, { cookie, "planwright-page-key": secret }, { authorization: `Bearer ${secret}` }]) {
          const answer = await fetch(`${house.base}${path}`, { method, headers: { ...headers, "if-match": `"${digest}"`, "content-type": "application/json" }, body: body && JSON.stringify(body) });
          assert.equal(answer.status, 401, `${method} ${path} ${JSON.stringify(headers)}`);
        }
      }
      assert.equal((await house.ask("GET", `/api/sessions/${at}`)).body.version, before);
      // The person themselves goes on, in a second tab, and by a link of another site.
      const second = await page.context().newPage();
      await second.goto(`${house.base}/settings`);
      await second.getByRole("button", { name: "Log out" }).waitFor();
      await there.setContent(`<a href="${sessionUrl(house, id)}/plan">Review the plan</a>`);
      await there.getByRole("link").click();
      await there.getByTestId("approve").or(there.getByText(/unread/i)).first().waitFor();
      await page.context().close();
    });
  }

  suite.test("the first passphrase is chosen with the link that a terminal shows, once, and another person by theirs", async () => {
    const other = await House.open({ model, passphrase: "", terminal: true });
    try {
      const page = await openPage(browser, other.base);
      // As somebody comes who knows nothing but the address.
      await page.goto(other.base);
      await page.getByText("Open the link that planwright up printed").waitFor();
      await page.goto(other.link);
      await page.getByLabel("Once more").waitFor();
      assert.ok(!page.url().includes("invitation="), "the secret does not stay in the address");
      await page.getByLabel("Passphrase").fill(PASSPHRASE);
      await page.getByLabel("Once more").fill("something else");
      await page.getByRole("button", { name: "Choose it and log in" }).click();
      await page.getByRole("alert").getByText("The two differ.").waitFor();
      await page.getByLabel("Once more").fill(PASSPHRASE);
      await page.getByRole("button", { name: "Choose it and log in" }).click();
      await page.waitForURL((url) => !url.pathname.startsWith("/login"));
      const me = JSON.parse((await askAsPage(page, "/api/me")).text);
      assert.deepEqual([me.person, me.decides, me.passphraseChosen], ["owner", true, true]);
      const again = await page.evaluate(async (token) => (await fetch("/api/passphrase", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ passphrase: "another passphrase", token }) })).status, other.token);
      assert.equal(again, 409);
      // Another person is invited in the settings, and comes by their link.
      await page.goto(`${other.base}/settings`);
      const people = page.getByTestId("people");
      await people.getByLabel("Name").fill("Bea Ü");
      await people.getByRole("button", { name: "Invite" }).click();
      const link = await page.getByTestId("invitation").locator("code").innerText();
      if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/people.png`, fullPage: true });
      const hers = await openPage(browser, other.base);
      await hers.goto(link);
      await hers.getByLabel("Passphrase").fill("her own passphrase");
      await hers.getByLabel("Once more").fill("her own passphrase");
      await hers.getByRole("button", { name: "Choose it and log in" }).click();
      await hers.waitForURL((url) => !url.pathname.startsWith("/login"));
      const she = JSON.parse((await askAsPage(hers, "/api/me")).text);
      assert.deepEqual([she.person, she.decides, she.roles], ["Bea Ü", true, ["speak", "decide"]]);
      // What the owner takes from her reaches her page at once.
      await page.reload();
      await page.locator("[data-person='Bea Ü']").getByLabel("decides").click();
      await page.getByText("Changed").waitFor();
      assert.equal(JSON.parse((await askAsPage(hers, "/api/me")).text).decides, false);
      page.once("dialog", (dialog) => void dialog.accept());
      await page.locator("[data-person='Bea Ü']").getByRole("button", { name: "Remove" }).click();
      await page.getByText("Removed").waitFor();
      assert.equal((await askAsPage(hers, "/api/me")).status, 401);
      await hers.context().close();
      await page.context().close();
    } finally {
      await other.close();
    }
  });

  suite.test("a decision that needs the passphrase again asks for it, and then goes on by itself", async () => {
    const talk = "api:e2e-ask-again";
    await house.ready(talk, "# Sweep\n\n1. Sweep the floor.\n");
    const page = await openPage(browser, house.base);
    await logIn(page, house);
    await page.goto(sessionUrl(house, talk));
    // The server's own refusal needs a quarter of an hour; the one that the page hears is the same.
    let refused = 0;
    await page.route("**/plan/approve", async (route) => {
      refused += 1;
      if (refused > 1) return route.continue();
      const problem = { type: "urn:planwright:ask_again", title: "Forbidden", status: 403, detail: "give your passphrase again" };
      return route.fulfill({ status: 403, contentType: "application/problem+json", body: JSON.stringify(problem) });
    });
    await page.locator("[data-testid=approve]:not([disabled]):not([aria-disabled=true])").click();
    const asked = page.getByTestId("passphrase-again");
    await asked.getByLabel("Passphrase").fill("not the one");
    await asked.getByRole("button", { name: "Go on" }).click();
    await asked.getByRole("alert").waitFor();
    if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/passphrase-again.png` });
    await asked.getByLabel("Passphrase").fill(PASSPHRASE);
    await asked.getByRole("button", { name: "Go on" }).click();
    await until(async () => (await house.status(talk)).plan?.status, (status) => status !== "Ready");
    assert.equal(refused, 2, "asked, and asked again");
    await page.context().close();
  });

  suite.test("a call in doubt is shown with its choices, and what a person says settles it", async () => {
    const other = await House.open({ model, config: "[effects]\ntool_seconds = 4\n[command]\nenabled = true\nseconds = 3\n" });
    try {
      const talk = "api:e2e-in-doubt";
      const { plan } = await other.ready(talk, "# Wait\n\n1. Wait a while.\n", { work: [["run_command", { command: "sleep 20" }]] });
      const digest = { "if-match": `"${plan.digest}"` };
      // The command has three seconds: whoever looks is there before it begins.
      const page = await openPage(browser, other.base);
      await logIn(page, other);
      await page.goto(sessionUrl(other, talk));
      await other.ask("POST", `/api/sessions/${talk}/plan/shown`, undefined, digest);
      const approved = await other.ask("POST", `/api/sessions/${talk}/plan/approve`, { grant: { tools: ["run_command"] } }, digest);
      assert.equal(approved.status, 200, JSON.stringify(approved.body));
      const kinds = async () => (await other.ask("GET", `/api/sessions/${talk}/events`)).body.map((event) => event.type);
      await until(kinds, (all) => all.includes("call_started"));
      await page.locator("[data-testid=tool-card][data-state=running]").waitFor();
      await other.down("SIGKILL");
      await other.up();
      const doubt = page.locator("[data-testid=doubts]");
      await doubt.waitFor();
      assert.match(await doubt.innerText(), /Did this happen\?[\s\S]*sleep 20/);
      // Until its time is over the call may still be under way: a word that comes too early is refused.
      await until(async () => {
        await doubt.getByRole("button", { name: "It did not happen" }).click({ timeout: 500 }).catch(() => {});
        return doubt.count();
      }, (count) => count === 0, { within: 15_000, what: "the settled doubt" });
      await until(kinds, (all) => all.includes("doubt_settled"));
      await page.context().close();
    } finally {
      await other.close();
    }
  });

  return suite;
}

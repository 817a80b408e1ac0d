// How a plan's work goes on, and what came of it: what was observed, apart from what is said.
import { openPage } from "./browser.mjs";
import { logIn, script, sessionUrl } from "./house.mjs";
import { assert, Suite, until } from "./kit.mjs";

/** A file that no other session has written. */
const pathOf = (number) => `notes ${number}/<img src=x onerror=alert(1)>.txt`;

export function progress({ house, browser }) {
  const suite = new Suite("progress");
  let number = 0;
  /** A session whose plan wrote a file, changed a line of it, and is reported as done; and a page of it. */
  const worked = async (path) => {
    const id = `api:e2e-progress-${String(++number).padStart(4, "0")}`;
    const file = pathOf(number);
    const work = [
      ["write_file", { path: file, content: "apples\npears and \u202eplums\n" }],
      ["edit_file", { path: file, old: "apples", new: "sour apples" }],
      ["list_files", {}],
    ];
    await house.ready(id, "# Shop\n\n1. Write the list.\n2. Pay.\n", { work });
    const page = await openPage(browser, house.base);
    await logIn(page, house);
    await page.goto(`${sessionUrl(house, id)}/plan`);
    await page.getByTestId("approve").click();
    await house.rests(id, (session) => session.plan?.status === "Done");
    await page.goto(`${sessionUrl(house, id)}${path}`);
    return { id, page, file };
  };
  const done = async (page) => {
    assert.deepEqual(page.faults, []);
    await page.context().close();
  };

  suite.test("59 what a call made of a file is shown line by line, with what it held before", async () => {
    const { page, file } = await worked("");
    const card = page.getByTestId("tool-card").filter({ hasText: "edit_file" });
    await card.getByRole("button").click();
    const diff = card.getByTestId("file-diff");
    await diff.getByText(file).waitFor();
    // The words of the changed line, and every character of the others: also those that hide.
    assert.equal(await diff.locator("ins").innerText(), "sour ");
    const text = await diff.innerText();
    assert.match(text, /[0-9a-f]{8} → [0-9a-f]{8}/);
    assert.match(text, /−\s*removed:\s*apples/);
    assert.match(text, /\+\s*added:\s*sour apples/);
    assert.ok(!text.includes("\u202e") && text.includes("U+202E"), text);
    assert.equal(await page.locator("img[src=x]").count(), 0);
    await done(page);
  });

  suite.test("60 the receipt of a plan lists each file once, with every change, what it cost and how long it took, apart from what is claimed", async () => {
    const { id, page, file: path } = await worked("/plan");
    const receipt = page.getByTestId("receipt");
    await receipt.getByText("Took").waitFor();
    assert.match(await receipt.innerText(), /took\s+\d.*cost\s+\S.*files\s+1/is);
    const file = receipt.getByTestId("receipt-file");
    assert.equal(await file.count(), 1);
    assert.match(await file.locator("summary").innerText(), /new, 2 writes/);
    await file.locator("summary").click();
    assert.equal(await file.getByTestId("file-diff").count(), 2);
    // That step 2 was paid for is said and was not seen: the receipt has no word of it.
    assert.match(await page.getByTestId("gaps").innerText(), /Pay/);
    assert.doesNotMatch(await receipt.innerText(), /Pay|as planned/);
    const { body } = await house.ask("GET", `/api/sessions/${id}/plan/receipt`);
    assert.deepEqual(body.files.map((row) => [row.path, row.before === null]), [[path, true], [path, false]]);
    assert.equal(body.files[0].after, body.files[1].before);
    await done(page);
  });

  suite.test("61 one line says what goes on, and since when", async () => {
    const id = "api:e2e-progress-line";
    await house.say(id, `hello\n${script({ say: "Hello." })}`);
    await house.rests(id);
    const page = await openPage(browser, house.base);
    await logIn(page, house);
    await page.goto(sessionUrl(house, id));
    const line = page.getByTestId("activity");
    await line.getByText("Idle").waitFor();
    await house.say(id, `think\n${script({ say: "I thought.", thinks_ms: 4_000 })}`);
    await line.getByText("Waiting for the model").waitFor();
    await line.getByText(/^[1-3] s$/).waitFor();
    await line.getByText("Idle").waitFor();
    await house.ready(id, "# Wait\n\n1. Wait.\n");
    await line.getByText("The plan waits for your decision").waitFor();
    await done(page);
  });

  suite.test("62 each row of the list of sessions says what it waits for, with what resolves it", async () => {
    const [decision, paused] = ["api:e2e-progress-waits-1", "api:e2e-progress-waits-2"];
    await house.ready(decision, "# Wait for me\n\n1. Wait.\n");
    await house.ready(paused, "# Pause me\n\n1. Wait.\n", { work: [["list_files", {}]], thinks_ms: 2_000 });
    const page = await openPage(browser, house.base);
    await logIn(page, house);
    await page.goto(`${sessionUrl(house, paused)}/plan`);
    await page.getByTestId("approve").click();
    await until(() => house.status(paused), ({ plan }) => plan?.status === "Running", { what: "an execution" });
    await house.ask("POST", `/api/sessions/${paused}/plan/stop`);
    await house.rests(paused, (session) => session.waiting === "resume");
    for (const id of [decision, paused]) await house.ask("PATCH", `/api/sessions/${id}`, { title: `row of ${id.slice(-7)}` });
    await page.goto(`${house.base}/sessions`);
    const row = (id) => page.locator("li", { hasText: `row of ${id.slice(-7)}` }).getByTestId("waiting-line");
    await row(decision).getByText("The plan waits for your decision").waitFor();
    await row(paused).getByText("The execution is paused; it goes on when you resume it").waitFor();
    await row(paused).getByRole("button", { name: "Resume", exact: true }).click();
    await house.rests(paused, (session) => session.plan?.status === "Done");
    await row(paused).waitFor({ state: "detached" });
    await row(decision).getByRole("link", { name: "Review" }).click();
    await page.getByTestId("approve").waitFor();
    await done(page);
  });

  return suite;
}

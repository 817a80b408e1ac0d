// Work that is set up by hand: how a plan is written, goals, tasks, runs and schedules, without a line typed.
import { openPage } from "./browser.mjs";
import { logIn, script, sessionUrl } from "./house.mjs";
import { assert, Suite, until } from "./kit.mjs";

export function work({ house, browser }) {
  const suite = new Suite("work");
  let number = 0;
  const fresh = () => `api:e2e-by-hand-${String(++number).padStart(4, "0")}`;
  const opened = async (id, path = "", options = {}) => {
    const page = await openPage(browser, house.base, options);
    await logIn(page, house);
    await page.goto(`${sessionUrl(house, id)}${path}`);
    return page;
  };
  const done = async (page) => {
    assert.deepEqual(page.faults, []);
    await page.context().close();
  };
  const workOf = async (id) => (await house.ask("GET", `/api/sessions/${id}/work`)).body;

  suite.test("53 where plan work begins, each way to write a plan says what it is, and the panel names the one that was chosen", async () => {
    for (const [name, strategy] of [["A document", "document"], ["Recorded calls", "collect"], ["Steps for specialists", "build"]]) {
      const id = fresh();
      await house.ask("POST", `/api/sessions`, { key: id.slice(4) });
      const page = await opened(id, "/plan");
      await page.getByRole("group", { name: "Switch plan work on" }).getByRole("button", { name: new RegExp(`^${name}`) }).click();
      await until(async () => (await house.status(id)).plan?.strategy, (now) => now === strategy, { what: strategy });
      await page.getByTestId("strategy").getByText(name).waitFor();
      await done(page);
    }
  });

  suite.test("54 an execution is declared done by a person, and the record says who declared it", async () => {
    const id = fresh();
    await house.ready(id, "# Wait\n\n1. Wait.\n", { work: [["list_files", {}]], thinks_ms: 4_000 });
    const page = await opened(id, "/plan");
    await page.getByTestId("approve").click();
    await page.getByRole("button", { name: "Done", exact: true }).click();
    const ended = await house.rests(id, (session) => session.plan?.status === "Done");
    assert.equal(ended.plan.basis, "declared");
    await done(page);
  });

  suite.test("55 a goal, its tasks, a run with its limits and a schedule are made with forms, and ended with buttons", async () => {
    const id = fresh();
    await house.say(id, `hello\n${script({ say: "Hello." })}`);
    await house.rests(id);
    const page = await opened(id, "/work");
    const forms = page.getByTestId("work-forms");
    const fill = async (button, fields, save) => {
      await forms.getByRole("button", { name: button }).click();
      for (const [label, value] of fields) {
        const field = page.getByRole("dialog").locator("label", { has: page.locator("span", { hasText: new RegExp(`^${label}$`) }) }).locator("input, select");
        if ((await field.evaluate((element) => element.tagName)) === "SELECT") await field.selectOption(value);
        else await field.fill(value);
      }
      await page.getByRole("button", { name: save }).click();
      await page.getByRole("dialog").waitFor({ state: "detached" });
    };
    await fill("Add a goal…", [["Goal", "papers for the <b>tax</b> office"]], "Add the goal");
    await page.getByTestId("goals").getByText("papers for the <b>tax</b> office").waitFor();
    for (const task of ["list what is missing", "write the letter"]) await fill("Add a task…", [["Task", task]], "Add the task");
    await page.getByTestId("goals").getByText("write the letter").waitFor();
    await page.getByRole("button", { name: "Give up: write the letter" }).click();
    await until(() => workOf(id), ({ tasks }) => tasks.some(({ ended }) => ended), { what: "the task, given up" });
    await fill("Add a schedule…", [["What is to be done", "sweep"], ["When", "weekdays"], ["At", "07:30"], ["Time zone", "Europe/Berlin"]], "Add the schedule");
    const { schedules } = await workOf(id);
    assert.equal(schedules[0].upcoming.length, 5);
    assert.ok(schedules[0].upcoming.every((time) => ![0, 6].includes(new Date(time / 1000).getUTCDay())), JSON.stringify(schedules[0].upcoming));
    await page.getByText("next 5 times").click();
    assert.equal(await page.getByTestId("upcoming").locator("li").count(), 5);
    await fill("Start a run…", [["Minutes", "30"], ["Dollars", "0.5"]], "Start the run");
    await page.getByTestId("run").first().waitFor();
    const { runs } = await workOf(id);
    assert.deepEqual(runs[0].used.filter(([name]) => ["time", "money"].includes(name)).map(([, , limit]) => limit), [1_800_000_000, 500_000], JSON.stringify(runs[0].used));
    await page.getByTestId("run").first().getByRole("button", { name: "Stop" }).click();
    await until(() => workOf(id), ({ runs }) => runs.length === 0, { what: "no run" });
    await page.getByRole("button", { name: "Off", exact: true }).click();
    await until(() => workOf(id), ({ schedules }) => schedules.length === 0, { what: "no schedule" });
    await page.getByRole("button", { name: /^Reached/ }).click();
    await until(() => workOf(id), ({ goals }) => goals.length === 0, { what: "no goal" });
    await done(page);
  });

  suite.test("56 a form that the server refuses says why and keeps what was typed, and the same request again has one effect", async () => {
    const id = fresh();
    await house.say(id, `hello\n${script({ say: "Hello." })}`);
    await house.rests(id);
    const page = await opened(id, "/work");
    await page.getByRole("button", { name: "Add a schedule…" }).click();
    await page.getByLabel("What is to be done").fill("sweep");
    await page.getByLabel("Time zone").fill("Europe/Nowhere");
    await page.getByRole("button", { name: "Add the schedule" }).click();
    await page.getByText(/there is no time zone "Europe\/Nowhere"/).waitFor();
    assert.equal(await page.getByLabel("What is to be done").inputValue(), "sweep");
    await done(page);
    const again = { "idempotency-key": "the same goal" };
    const first = await house.ask("POST", `/api/sessions/${id}/goals`, { title: "one" }, again);
    assert.deepEqual(await house.ask("POST", `/api/sessions/${id}/goals`, { title: "one" }, again), first);
    assert.equal((await workOf(id)).goals.length, 1);
    const end = { "idempotency-key": "the same end" };
    const ended = await house.ask("PATCH", `/api/sessions/${id}/goals/1`, { reached: true }, end);
    assert.deepEqual(await house.ask("PATCH", `/api/sessions/${id}/goals/1`, { reached: true }, end), ended);
    assert.equal(ended.status, 200, JSON.stringify(ended.body));
  });

  return suite;
}

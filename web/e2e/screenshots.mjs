// Draws every screen and state at desktop and phone size, light and dark, into the folder that is named.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { openBrowser, openPage } from "./browser.mjs";
import { House, logIn, sessionUrl, startModel, stop } from "./house.mjs";
import { sleep } from "./kit.mjs";

const folder = process.argv[2] ?? "screenshots";
const few = process.argv.includes("--docs");
mkdirSync(folder, { recursive: true });
const FIRST = "# Move the photo server to PostgreSQL 18\n\nGoal: the same photos, on the new database, with an hour of downtime at most.\n\n1. Read `compose.yml` and note the volume of the database.\n2. Stop the service `photos`.\n3. Run `pg_upgrade` from 17 to 18.\n4. Start the service and look at ten photos.\n\nRisks: the upgrade needs as much free space as the data.\n";
const SECOND = FIRST.replace("2. Stop", "2. Back up the volume to `/backup/pg17`, and keep it for 30 days.\n3. Stop").replace("3. Run `pg", "4. Run `pg").replace("4. Start the service", "5. Start the service");

const work = [["write_file", { path: "backup/pg17/NOTE.md", content: "kept until December" }], ["read_file", { path: "missing.yml" }], ["write_file", { path: "compose.yml", content: "image: postgres:18" }]];
const say = "The volume is **pgdata**. The plan keeps the service down for about *twenty minutes*; nothing is changed before you approve.";
const quiet = "The second week: after the holiday, before the festival.\n\n| week | nights | price |\n| --- | --- | --- |\n| 1 | 5 | 740 |\n| 2 | 5 | 590 |\n\n- fly on **Tuesday**\n- book the *small* hotel";
const model = await startModel({
  "Move the photos": { plan: FIRST, revised: SECOND, work, say },
  "quietest in Lisbon": { say: quiet },
  "list what is missing": { calls: Array.from({ length: 9 }, (_, at) => ["read_file", { path: `paper-${at}.pdf` }]) },
});
const house = await House.open({ model });
const browser = await openBrowser();
try {
  const photos = "web:photo-server";
  await house.ask("POST", `/api/sessions/${photos}/plan`, {});
  await house.say(photos, "Move the photos to PostgreSQL 18, please.");
  let session = await house.rests(photos, (now) => now.waiting === "decision");
  await house.ask("PATCH", `/api/sessions/${photos}`, { title: "Photo server" });
  const lisbon = "web:lisbon-trip";
  await house.say(lisbon, "Which week in May is quietest in Lisbon?");
  await house.rests(lisbon);
  await house.ask("PATCH", `/api/sessions/${lisbon}`, { title: "Lisbon in May" });
  const taxes = "web:tax-papers";
  for (const line of ["/goal add papers for the tax office", "/task add g1 list what is missing", "/task add g1 write the letter", "/schedule add 0 7 * * * Europe/Lisbon look at the inbox", "/memory save Invoices are in the folder receipts/2026.", "/memory save The tax number ends in 417.", "/auto on g1 calls=5"]) {
    await house.ask("POST", `/api/sessions/${taxes}/lines`, { line });
  }
  await house.ask("PATCH", `/api/sessions/${taxes}`, { title: "Tax papers" });
  await house.rests(taxes, (now) => now.waiting === "run");
  const shots = async (name, path, act, sizes = [[1280, 800], [390, 844]], themes = few ? ["light"] : ["light", "dark"]) => {
    for (const theme of themes) {
      for (const [width, height] of sizes) {
        const page = await openPage(browser, house.base, { width, height, theme, deviceScaleFactor: few ? 1 : 1 });
        await (path === "/login" ? page.goto(`${house.base}/login`) : logIn(page, house));
        if (path !== "/login") await page.goto(path.startsWith("http") ? path : `${house.base}${path}`);
        await page.locator("h1, h2").first().waitFor();
        await sleep(900);
        await act?.(page, width);
        await sleep(400);
        await page.screenshot({ path: join(folder, `${name}-${width === 390 ? "phone" : "desktop"}${themes.length > 1 ? `-${theme}` : ""}.png`) });
        await page.context().close();
      }
    }
  };
  const phonePlan = async (page, width) => width === 390 && page.getByRole("tab", { name: /^Plan/ }).first().click();
  if (!few) {
    await shots("login", "/login");
    await shots("welcome", "/welcome");
    await shots("new", "/s/web%3Afresh-session");
    await shots("chat", sessionUrl(house, lisbon));
    await shots("plan-first", sessionUrl(house, photos), phonePlan);
  }
  const seen = await openPage(browser, house.base);
  await logIn(seen, house);
  await seen.goto(sessionUrl(house, photos));
  await seen.locator("[data-testid=approve]:not([disabled])").waitFor();
  await seen.context().close();
  session = await house.status(photos);
  await house.ask("POST", `/api/sessions/${photos}/plan/changes`, { comments: [{ line: 6, step: null, text: "Back it up first; keep the copy for a month." }] }, { "if-match": `"${session.plan.digest}"` });
  await house.rests(photos, (now) => now.waiting === "decision" && now.plan.revision === 2);
  await shots("plan", sessionUrl(house, photos), phonePlan);
  await shots("review", `${sessionUrl(house, photos)}/plan`, async (page) => {
    await page.locator("[data-line]").first().hover();
    await page.getByLabel(/Comment on line/).first().click();
    await page.getByLabel("Your note").fill("Is there room for it?");
    await page.getByRole("button", { name: "Add note" }).click();
  });
  await shots("approvals", "/approvals");
  if (!few) {
    await shots("drawer", sessionUrl(house, lisbon), async (page, width) => width > 390 && page.locator("[data-testid=approvals-button]").click());
    await shots("palette", sessionUrl(house, lisbon), (page) => page.keyboard.press("Control+k"));
    await shots("memory", `${sessionUrl(house, taxes)}/memory`, (page) => page.getByLabel("Find what is remembered").fill("invoices"));
    await shots("sessions", "/sessions");
    await shots("settings", "/settings");
    await shots("nothing", "/nowhere/at/all");
  }
  await shots("runs", `${sessionUrl(house, taxes)}/work`);
  session = await house.status(photos);
  const digest = { "if-match": `"${session.plan.digest}"` };
  await house.ask("POST", `/api/sessions/${photos}/plan/shown`, undefined, digest);
  await house.ask("POST", `/api/sessions/${photos}/plan/approve`, { notes: ["mind the free space"] }, digest);
  await house.rests(photos, (now) => now.plan?.status === "Done");
  await shots("done", sessionUrl(house, photos), phonePlan);
  await shots("timeline", `${sessionUrl(house, photos)}/work`);
} finally {
  await browser.close();
  await house.close();
  await stop(model.child, "SIGKILL");
}

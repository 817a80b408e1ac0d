// Everything that must hold in a real browser. `node e2e/run.mjs [--only WORDS] [--cluster] [--quick]`
import { openBrowser } from "./browser.mjs";
import { House, script, startModel, stop } from "./house.mjs";
import { behaviour } from "./behaviour.mjs";
import { discussion } from "./discussion.mjs";
import { progress } from "./progress.mjs";
import { reading } from "./reading.mjs";
import { requirements } from "./requirements.mjs";
import { review } from "./review.mjs";
import { surfaces } from "./surfaces.mjs";
import { work } from "./work.mjs";
import { startCluster } from "./cluster.mjs";

const word = (name) => process.argv.includes(name);
const only = word("--only") ? process.argv[process.argv.indexOf("--only") + 1] : undefined;
/** The ten that matter most where three nodes share the work. */
const ON_CLUSTER = ["01", "03", "04", "05", "06", "07", "08", "10", "14", "17"];

/** A session of 1,000 messages, and one of 10,000 events, made by the real server while the first tests run. */
function seed(house, events) {
  const long = "api:e2e-long-talk";
  const wide = "api:e2e-wide-run";
  const talk = async () => {
    for (let at = 0; at < 500; at += 1) {
      await house.say(long, `message ${at}\n${script({ say: `answer ${at}, with **some** words and \`code\`` })}`);
      await house.rests(long);
    }
    return long;
  };
  const run = async () => {
    const calls = Array.from({ length: 60 }, () => ["list_files", {}]);
    for (;;) {
      const { version } = await house.status(wide);
      if (version >= events) return wide;
      await house.say(wide, `work\n${script({ calls_at_once: calls })}`);
      await house.rests(wide);
    }
  };
  const seeds = { events, long: talk(), wide: run() };
  // Who needs one is told what became of it.
  for (const one of [seeds.long, seeds.wide]) one.catch(() => {});
  return seeds;
}

const begun = Date.now();
const browser = await openBrowser();
let [passed, failed] = [0, 0];
const count = (result) => {
  passed += result.passed;
  failed += result.failed;
};
try {
  if (!word("--cluster-only")) {
    const model = await startModel();
    const house = await House.open({ model });
    let finished = false;
    try {
      const seeded = only && !/^(21|22|28)/.test(only) ? {} : seed(house, word("--quick") ? 3_000 : 10_000);
      count(await requirements({ house, model, browser, seeded }).run(only));
      count(await review({ house, model, browser }).run(only));
      count(await reading({ house, browser }).run(only));
      count(await discussion({ house, browser }).run(only));
      count(await work({ house, browser }).run(only));
      count(await progress({ house, browser }).run(only));
      count(await surfaces({ house, model, browser }).run(only));
      // Last, because it leaves hundreds of sessions behind.
      count(await behaviour({ house, model, browser }).run(only));
      finished = true;
    } finally {
      await house.close({ keep: failed > 0 || !finished });
      await stop(model.child, "SIGKILL");
    }
  }
  if (word("--cluster") || word("--cluster-only")) {
    const cluster = await startCluster();
    try {
      const suite = requirements({ house: cluster, model: cluster.model, browser, name: "cluster", seeded: {} });
      suite.tests = suite.tests.filter((test) => ON_CLUSTER.some((number) => test.name.startsWith(number)));
      count(await suite.run(only));
    } finally {
      await cluster.close();
    }
  }
} finally {
  await browser.close();
}
console.log(`dashboard: ${passed} passed, ${failed} failed, ${Math.round((Date.now() - begun) / 1000)} s`);
process.exit(failed ? 1 : 0);

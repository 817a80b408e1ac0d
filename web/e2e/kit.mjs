// Tests by their names: each says what must hold, and fails with what it saw.
import assert from "node:assert/strict";

export { assert };
export const sleep = (millis) => new Promise((done) => setTimeout(done, millis));

/** Waits until it holds; what it saw last, if it never does. */
export async function until(look, fits, { within = 8_000, what = "it" } = {}) {
  const begun = Date.now();
  let seen;
  while (Date.now() - begun < within) {
    seen = await look();
    if (fits(seen)) return { seen, took: Date.now() - begun };
    await sleep(15);
  }
  throw new Error(`${what} did not come within ${within} ms; last seen: ${JSON.stringify(seen)?.slice(0, 600)}`);
}

export class Suite {
  constructor(name) {
    this.name = name;
    this.tests = [];
    this.figures = [];
  }
  test(name, act) {
    this.tests.push({ name, act });
  }
  /** Something that was measured, with what it must stay under. */
  figure(name, value, limit, unit) {
    this.figures.push({ name, value, limit, unit });
    assert.ok(value <= limit, `${name}: ${value} ${unit}, at most ${limit}`);
  }
  /** A time, measured again if it is over: the least of five. What is slow by itself is slow each time; what neighbours took of the cores is not. */
  async time(name, limit, measure) {
    const took = [];
    do took.push(Math.round(await measure()));
    while (took.at(-1) > limit && took.length < 5);
    const tries = took.length > 1 ? ` (${took.join(", ")})` : "";
    this.figure(`${name}${tries}`, Math.min(...took), limit, "ms");
  }
  async run(only) {
    let failed = 0;
    let passed = 0;
    for (const { name, act } of this.tests) {
      if (only && !name.includes(only)) continue;
      const begun = Date.now();
      try {
        await act();
        passed += 1;
        console.log(`PASS ${this.name} ${name} (${Date.now() - begun} ms)`);
      } catch (error) {
        failed += 1;
        console.log(`FAIL ${this.name} ${name} (${Date.now() - begun} ms)\n     ${String(error.stack ?? error).slice(0, 1500)}`);
      }
    }
    for (const { name, value, limit, unit } of this.figures) console.log(`     ${name}: ${value} ${unit} (at most ${limit})`);
    return { passed, failed };
  }
}

import { describe, expect, it } from "vitest";
import { isNewest, nothingRead, read, type Reading, type ReadingEvent, type RevisionRef } from "./revision";

const rev = (revision: number, plan = "p1"): RevisionRef => ({ plan, revision, digest: `${plan}-${revision}` });
const arrived = (newest: RevisionRef | null, waits = true): ReadingEvent => ({ type: "arrived", newest, waits });
const after = (...events: ReadingEvent[]): Reading => events.reduce(read, nothingRead);

describe("what is on the screen", () => {
  it("stays when a newer revision arrives under someone who could decide, and nobody is told that nothing was approved", () => {
    const reading = after(arrived(rev(1)), arrived(rev(2)));
    expect([reading.shown, reading.newest, isNewest(reading), reading.refused]).toEqual([rev(1), rev(2), false, null]);
    const third = read(reading, arrived(rev(3)));
    expect([third.shown, third.newest]).toEqual([rev(1), rev(3)]);
    expect(read(third, { type: "advanced" })).toMatchObject({ shown: rev(3), newest: rev(3), refused: null });
  });

  it("moves on when nothing could be decided, when this person asked for it, and with another plan", () => {
    expect(after(arrived(rev(1), false), arrived(rev(2))).shown).toEqual(rev(2));
    expect(after(arrived(rev(1)), { type: "expected" }, arrived(rev(2)))).toMatchObject({ shown: rev(2), expects: null });
    expect(after(arrived(rev(1)), arrived(rev(1, "p2"))).shown).toEqual(rev(1, "p2"));
    expect(after(arrived(rev(1)), arrived(null))).toEqual(nothingRead);
  });

  it("asks again for each revision: what was expected once does not let the next one slide in", () => {
    const reading = after(arrived(rev(1)), { type: "expected" }, arrived(rev(2)), arrived(rev(3)));
    expect([reading.shown, isNewest(reading)]).toEqual([rev(2), false]);
  });

  it("moves on after a refusal, whether the newer one is known or not, and says what was not done", () => {
    const refused: ReadingEvent = { type: "refused", what: "approved" };
    const known = after(arrived(rev(1)), arrived(rev(2)), refused);
    expect(known).toMatchObject({ shown: rev(2), refused: { what: "approved", revision: 1 } });
    const unknown = after(arrived(rev(1)), refused);
    expect([unknown.shown, unknown.jumps]).toEqual([rev(1), true]);
    expect(read(unknown, arrived(rev(2)))).toMatchObject({ shown: rev(2), jumps: false, refused: { what: "approved", revision: 1 } });
  });
});

import { expect, it } from "vitest";
import { whenOf } from "./WorkForms";

const said = { minutes: "90", time: "09:05", at: "2026-11-16T09:00", cron: " 0 9 * * 1-5 ", zone: "Europe/Berlin" };

it("a time is told to the server as a person chose it", () => {
  expect(whenOf("every", said)).toEqual({ kind: "every", minutes: 90 });
  expect(whenOf("daily", said)).toEqual({ kind: "cron", expression: "5 9 * * *", zone: "Europe/Berlin" });
  expect(whenOf("weekdays", said)).toEqual({ kind: "cron", expression: "5 9 * * 1-5", zone: "Europe/Berlin" });
  expect(whenOf("once", said)).toEqual({ kind: "once", at: "2026-11-16T09:00", zone: "Europe/Berlin" });
  expect(whenOf("cron", said)).toEqual({ kind: "cron", expression: "0 9 * * 1-5", zone: "Europe/Berlin" });
});

it("what is no time is not sent", () => {
  for (const kind of ["every", "daily", "weekdays", "once", "cron"] as const) expect(whenOf(kind, { minutes: "0", time: "", at: "", cron: "0 9", zone: "UTC" })).toBeNull();
});

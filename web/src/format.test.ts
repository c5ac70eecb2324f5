import { expect, test } from "vitest";
import { age, ago, bytes, cost, day, dollars, duration, shortPath, tokens } from "./format";

const NOW = Date.parse("2026-01-10T12:00:00Z");

test.each([
  ["2026-01-10T11:59:58Z", "now"],
  ["2026-01-10T11:59:20Z", "40s"],
  ["2026-01-10T11:01:00Z", "59m"],
  ["2026-01-10T00:00:00Z", "12h"],
  ["2026-01-01T12:00:00Z", "9d"],
  ["2027-01-01T12:00:00Z", "now"],
  ["not a time", "now"],
])("the age of %s is %s", (at, expected) => expect(age(at, NOW)).toBe(expected));

test.each([
  [0, "0 ms"],
  [1_500, "1.5 s"],
  [42_000, "42 s"],
  [125_000, "2m 5s"],
  [7_260_000, "2h 1m"],
])("%d ms are %s", (ms, expected) => expect(duration(ms)).toBe(expected));

test("large numbers are rounded", () => {
  expect([999, 1_234, 45_600, 2_300_000].map(tokens)).toEqual(["999", "1.2k", "46k", "2.3M"]);
  expect([10, 2_048, 3_145_728].map(bytes)).toEqual(["10 B", "2 KB", "3.0 MB"]);
  expect([0, 0.004, 1.239].map(dollars)).toEqual(["$0", "<$0.01", "$1.24"]);
});

test("a path keeps its end", () => {
  expect(shortPath("/home/ada/code/engine")).toBe("…/code/engine");
  expect(shortPath("/srv/x")).toBe("/srv/x");
});

test.each([
  ["2026-01-10T01:00:00", "Today"],
  ["2026-01-11T01:00:00", "Today"],
  ["2026-01-09T23:00:00", "Yesterday"],
  ["2026-01-05T23:00:00", "Monday"],
  ["2025-12-05T23:00:00", "December 2025"],
  ["not a time", "Some day"],
])("%s stands under %s", (at, expected) => expect(day(at, new Date("2026-01-10T12:00:00").getTime())).toBe(expected));

test("a moment ago is just now", () => expect([ago("2026-01-10T11:59:58Z", NOW), ago("2026-01-10T11:01:00Z", NOW)]).toEqual(["just now", "59m ago"]));

test("a cost is a lower bound where some calls have none", () => {
  expect([{}, { costUsd: 1.239 }, { costUsd: 1.239, unpricedCalls: 2 }].map(cost)).toEqual([undefined, "$1.24", "≥ $1.24"]);
});

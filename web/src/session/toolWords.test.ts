import { expect, test } from "vitest";
import type { Json } from "../json";
import cases from "./fixtures/toolWords.json";
import { toolWords } from "./toolWords";

test.each(cases as [string, Json, string, boolean][])("%s %j reads %s", (name, args, expected, isCode) => {
  const { verb, object, code } = toolWords(name, args);
  expect([`${verb} ${object}`, code]).toEqual([expected, isCode]);
});

test("an object that is too long is cut", () => {
  expect(toolWords("bash", { command: "x".repeat(300) }).object).toBe(`${"x".repeat(200)}…`);
});

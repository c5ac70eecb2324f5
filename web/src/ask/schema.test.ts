import { expect, test } from "vitest";
import { type Entry, complaint, contentOf, itemsOf } from "./schema";

function asked(property: unknown, required = false) {
  const [item] = itemsOf({ type: "object", properties: { it: property }, required: required ? ["it"] : [] });
  if (item === undefined) throw new Error("nothing is asked for");
  return item;
}

/** What an entry becomes, or what is wrong with it. */
function check(property: unknown, entry: Entry, expected: unknown, required = false) {
  const item = asked(property, required);
  expect(complaint(item, entry) ?? contentOf([item], { it: entry })["it"]).toEqual(expected);
}

test("texts have lengths and formats", () => {
  check({ type: "string" }, "Ada", "Ada");
  check({ type: "string", minLength: 3 }, "ab", "At least 3 characters.");
  check({ type: "string", maxLength: 3 }, "abcd", "At most 3 characters.");
  check({ type: "string", format: "email" }, "nobody", "This has to be an address like name@example.org.");
  check({ type: "string", format: "email" }, "ada@example.org", "ada@example.org");
  check({ type: "string", format: "uri" }, "example", "This has to be an address like https://example.org.");
  check({ type: "string", format: "date" }, "2026-01-31", "2026-01-31");
  check({ type: "string", format: "date-time" }, "2026-01-31T10:00", new Date("2026-01-31T10:00").toISOString());
});

test("numbers are numbers, within their bounds", () => {
  check({ type: "number" }, "1.5", 1.5);
  check({ type: "integer" }, "1.5", "This has to be a whole number.");
  check({ type: "number" }, "many", "This has to be a number.");
  check({ type: "integer", minimum: 1 }, "0", "At least 1.");
  check({ type: "integer", maximum: 9 }, "10", "At most 9.");
  check({ type: "integer", minimum: 0 }, "0", 0);
});

test("a switch that is off is an answer", () => check({ type: "boolean" }, false, false, true));

test("choices have values and may have names", () => {
  expect(asked({ type: "string", enum: ["r", "b"], enumNames: ["Red"] })).toMatchObject({
    kind: "one",
    choices: [
      { value: "r", label: "Red" },
      { value: "b", label: "b" },
    ],
  });
  expect(asked({ type: "string", oneOf: [{ const: "r", title: "Red" }] })).toMatchObject({ kind: "one", choices: [{ value: "r", label: "Red" }] });
  check({ type: "array", items: { enum: ["a", "b"] }, minItems: 1 }, ["b"], ["b"]);
  check({ type: "array", items: { anyOf: [{ const: "a", title: "A" }] }, maxItems: 1 }, ["a", "b"], "Choose at most 1.");
});

test("what is needed has to be there, and what is not may be left out", () => {
  check({ type: "string" }, " ", "This is needed.", true);
  check({ type: "array", items: { enum: ["a"] } }, [], "This is needed.", true);
  check({ type: "string", minLength: 5 }, "", undefined);
  check({ type: "number" }, "", undefined);
});

test("defaults are filled in, and a kind that is not known is asked for as text", () => {
  const items = itemsOf({
    properties: { n: { type: "integer", default: 3 }, b: { type: "boolean", default: true }, s: { type: "string", title: "Name", default: "x" }, odd: { type: "colour" } },
  });
  expect(items.map((item) => [item.kind, item.label, item.initial])).toEqual([
    ["number", "n", "3"],
    ["switch", "b", true],
    ["text", "Name", "x"],
    ["text", "odd", ""],
  ]);
  expect(contentOf(items, {})).toEqual({ n: 3, b: true, s: "x" });
});

test("what is no schema asks for nothing", () => expect(itemsOf("hello")).toEqual([]));

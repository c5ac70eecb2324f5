import { expect, test } from "vitest";
import { shapesAt, shown, typed } from "./schema";

const schema = {
  properties: {
    limits: { $ref: "#/$defs/Limits" },
    agents: { type: "object", additionalProperties: { $ref: "#/$defs/Agent" } },
    schedules: { type: "array", items: { $ref: "#/$defs/Schedule" } },
  },
  $defs: {
    Limits: {
      type: "object",
      properties: {
        global: { type: ["integer", "null"], description: "How much." },
        per_job: { type: "object", additionalProperties: { type: "integer" } },
        per_agent: { type: "object", additionalProperties: { type: "number", format: "double" } },
      },
    },
    Agent: { type: "object", properties: { effort: { type: ["string", "null"], enum: ["low", "high"] }, hosts: { type: "array", items: { type: "string" } }, budget: { $ref: "#/$defs/Caps", description: "Caps." } } },
    Caps: { type: "object", additionalProperties: false, properties: { turn: { type: ["number", "null"] }, day: { type: ["number", "null"] } } },
    Schedule: { type: "object", properties: { enabled: { anyOf: [{ type: "boolean" }, { type: "null" }] } } },
  },
};

function kinds(path: string[]) {
  return shapesAt(schema, path).map(({ key, kind }) => `${key}: ${kind}`);
}

test("each setting has the field of its type", () => {
  expect(kinds(["limits"])).toEqual(["global: number", "per_job: numbers", "per_agent: numbers"]);
  expect(kinds(["agents", "*"])).toEqual(["effort: choice", "hosts: words", "budget: numbers"]);
  expect(kinds(["schedules", "*"])).toEqual(["enabled: switch"]);
});

test("a value that is shown and typed again is the same", () => {
  const check = (path: string[], key: string, value: unknown) => {
    const shape = shapesAt(schema, path).find((one) => one.key === key);
    if (shape === undefined) throw new Error(key);
    expect(typed(shape, shown(shape, value))).toEqual(value);
  };
  check(["limits"], "global", 3);
  check(["limits"], "per_job", { "a = b": 2, c: 1 });
  check(["limits"], "per_agent", { "*": 0.5 });
  check(["agents", "*"], "effort", "low");
  check(["agents", "*"], "hosts", ["a", "b"]);
  check(["agents", "*"], "budget", { turn: 1.5, day: 20 });
  check(["schedules", "*"], "enabled", false);
  check(["limits"], "global", null);
});

test("a line that is no number is not dropped, and a table names its keys", () => {
  const shapes = shapesAt(schema, ["agents", "*"]);
  const budget = shapes.find((one) => one.key === "budget");
  if (budget === undefined) throw new Error("budget");
  expect(budget.hint).toBe("Caps. One on a line: turn = number, day = number.");
  for (const words of ["turn = 1\nday", "turn = one", "turn =", "= 1"]) expect(typed(budget, words)).toBe(words);
});

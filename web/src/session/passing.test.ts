import { expect, test } from "vitest";
import { Passing } from "./passing";
import type { WireEvent } from "./wire";

type Told = readonly [type: string, data: object, agentId?: string];

const PIECES: readonly Told[] = [
  ["assistant.message_delta", { deltaContent: "main" }],
  ["assistant.reasoning_delta", { deltaContent: "main" }],
  ["assistant.message_delta", { deltaContent: "other" }, "other"],
  ["tool.execution_partial_result", { toolCallId: "c1" }],
  ["tool.execution_partial_result", { toolCallId: "c2" }],
];

function event([type, data, agentId]: Told): WireEvent {
  return { id: "", type, timestamp: "", parentId: null, data, ...(agentId === undefined ? {} : { agentId }) };
}

/** Which of the pieces are left once the log has this. */
function check(logged: Told, left: number[]) {
  const passing = new Passing();
  const pieces = PIECES.map(event);
  for (const piece of pieces) passing.take(piece, true);
  passing.take(event(logged), false);
  expect([...passing].map((piece) => pieces.indexOf(piece))).toEqual(left);
}

test("a message takes the place of its agent's pieces", () => {
  check(["assistant.message", {}], [2, 3, 4]);
  check(["assistant.message", {}, "other"], [0, 1, 3, 4]);
});

test("a call that ended takes the place of its output", () => check(["tool.execution_complete", { toolCallId: "c1" }], [0, 1, 2, 4]));

test("nothing of an agent's is left when its turn is over", () => check(["assistant.turn_end", {}], [2]));

test("what else is in the log leaves them alone", () => check(["permission.requested", {}], [0, 1, 2, 3, 4]));

test("there is a bound", () => {
  const passing = new Passing();
  for (let at = 0; at < 100_000; at += 1) passing.take(event(["assistant.message_delta", { at }]), true);
  const kept = [...passing];
  expect(kept.length).toBeLessThanOrEqual(20_000);
  expect(kept.at(-1)?.data).toEqual({ at: 99_999 });
});

import { expect, test } from "vitest";
import { find, step } from "./find";
import { fold } from "./fold";
import { rows } from "./rows";

const TRANSCRIPT = fold([
  { id: "1", type: "user.message", timestamp: "", parentId: null, data: { content: "Mend the Parser" } },
  { id: "2", type: "assistant.message", timestamp: "", parentId: null, data: { messageId: "m", content: "Done.", toolRequests: [] } },
  { id: "3", type: "tool.execution_start", timestamp: "", parentId: null, data: { toolCallId: "c", toolName: "bash", arguments: { command: "grep parser" } } },
]);

function check(words: string, expected: string[]) {
  expect(find(rows(TRANSCRIPT, new Map(), false), words)).toEqual(expected);
}

test("words are found in prompts and arguments, whatever their case", () => check("PARSER", ["u:1", "t:c"]));
test("no words find nothing", () => check("  ", []));
test("what is not there is not found", () => check("lexer", []));

test("steps go round", () => {
  expect(step(["a", "b"], null, 1)).toBe("a");
  expect(step(["a", "b"], null, -1)).toBe("b");
  expect(step(["a", "b"], "b", 1)).toBe("a");
  expect(step(["a", "b"], "a", -1)).toBe("b");
  expect(step([], "a", 1)).toBeNull();
});

import { expect, test } from "vitest";
import { messageOf } from "./comments";

test("comments become one message with places and quotes", () => {
  const comments = [
    { path: "/p/src/a.ts", line: 3, quote: "  let x;", text: "Use const. " },
    { path: "/q/b.ts", line: 1, quote: "y", text: "Why?" },
  ];
  expect(messageOf(comments, "/p")).toBe("src/a.ts:3\n> let x;\nUse const.\n\n/q/b.ts:1\n> y\nWhy?");
});

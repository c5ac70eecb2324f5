import { expect, test } from "vitest";
import { draftOf, keepDraft, messageOf, placeOf } from "./comments";

test("comments become one message with places and quotes", () => {
  const comments = [
    { path: "/p/src/a.ts", side: "after", line: 3, quote: "  let x;", text: "Use const. " } as const,
    { path: "/q/b.ts", side: "before", line: 1, quote: "y", text: "Why?" } as const,
  ];
  expect(messageOf(comments, "/p")).toBe("src/a.ts:3\n> let x;\nUse const.\n\n/q/b.ts:1 (removed)\n> y\nWhy?");
});

test("a removed line and the one in its place are different places", () => {
  expect(placeOf({ kind: "removed", before: 3, after: null, text: "a", changed: null })).toEqual({ side: "before", line: 3 });
  expect(placeOf({ kind: "added", before: null, after: 3, text: "b", changed: null })).toEqual({ side: "after", line: 3 });
  expect(placeOf({ kind: "note", before: null, after: null, text: "", changed: null })).toBeNull();
});

test("comments that are not sent are kept for their session", () => {
  const comment = { path: "/p/a", side: "after", line: 1, quote: "a", text: "b" } as const;
  keepDraft("one", [comment]);
  expect([draftOf("one"), draftOf("two")]).toEqual([[comment], []]);
  keepDraft("one", []);
  expect(draftOf("one")).toEqual([]);
});

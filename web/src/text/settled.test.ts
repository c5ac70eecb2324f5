import { expect, test } from "vitest";
import { settledEnd } from "./settled";

/** `|` stands where the text settles. However it comes in, it settles there. */
function check(marked: string) {
  const [settled = "", rest = ""] = marked.split("|");
  const text = settled + rest;
  expect(settledEnd(text, 0)).toBe(settled.length);
  let end = 0;
  for (let length = 0; length <= text.length; length += 1) end = settledEnd(text.slice(0, length), end);
  expect(end).toBe(settled.length);
}

test("a paragraph settles when the next one begins", () => {
  check("|one");
  check("|one\ntwo\n");
  check("one\n\n|two");
  check("one\n\ntwo\n \n|three\nfour");
});

test("code settles when its fence is closed", () => {
  check("one\n\n|```\nlet a;\n\nlet b;\n");
  check("one\n\n```\nlet a;\n\nlet b;\n```\n\n|two");
  check("|~~~\n```\n\n");
});

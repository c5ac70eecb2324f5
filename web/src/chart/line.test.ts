import { expect, test } from "vitest";
import { path } from "./line";

test("a line goes through its ends", () => {
  expect(path([{ x: 0, y: 0 }, { x: 10, y: 0 }])).toBe("M0.0,0.0L10.0,0.0");
  expect(path([{ x: 0, y: 0 }, { x: 5, y: 5 }, { x: 10, y: 0 }])).toBe("M0.0,0.0Q5.0,5.0 10.0,0.0");
  expect(path([])).toBe("");
});

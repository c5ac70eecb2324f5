import { expect, test } from "vitest";
import { isFramed, isLink } from "./canvases";

test("only pages of this machine are framed", () => {
  const framed = ["http://127.0.0.1:8080/board", "http://localhost", "http://localhost:1/"];
  const others = ["https://127.0.0.1/", "http://127.0.0.1.evil.example/", "http://localhost@evil.example/", "http://example.com", "javascript:alert(1)"];
  expect(framed.map(isFramed)).toEqual([true, true, true]);
  expect(others.map(isFramed)).toEqual([false, false, false, false, false]);
});

test("only addresses of the web are links", () => {
  expect(["https://example.com", "http://a", "javascript:alert(1)", "data:text/html,x", "file:///etc/passwd"].map(isLink)).toEqual([true, true, false, false, false]);
});

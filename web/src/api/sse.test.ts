import { expect, test } from "vitest";
import { EventReader } from "./sse";

/** Whatever the pieces are, the events are the same. */
function check(text: string, expected: unknown[]) {
  for (const size of [1, 2, 7, text.length]) {
    const reader = new EventReader();
    const events = [];
    for (let at = 0; at < text.length; at += size) events.push(...reader.feed(text.slice(at, at + size)));
    expect(events).toEqual(expected);
  }
}

test("an event has a type, an id and data", () => {
  check("id: 7\nevent: session\ndata: {}\n\n", [{ type: "session", data: "{}", id: "7" }]);
});

test("an event without an id has none, whatever came before", () => {
  check("id: 7\ndata: a\n\ndata: b\n\n", [
    { type: "message", data: "a", id: "7" },
    { type: "message", data: "b", id: null },
  ]);
});

test("comments and empty events are nothing", () => check(": beat\n\n\nevent: x\n\n", []));

test("lines of data are joined, carriage returns are not data", () => {
  check("data: a\r\ndata:b\r\n\r\n", [{ type: "message", data: "a\nb", id: null }]);
});

test("half an event waits for its end", () => check("data: a\n\ndata: b\n", [{ type: "message", data: "a", id: null }]));

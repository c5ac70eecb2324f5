import { describe, expect, test } from "vitest";
import type { Block, Lane } from "./block";
import { type Transcript, apply, breakOff, emptyTranscript, fold } from "./fold";
import { rows } from "./rows";
import type { WireEvent } from "./wire";

/**
 * Written by `hangar --model scripted --output-format json`, or heard by a client of `hangar --headless`; pieces and progress
 * are in them. `claude`, `codex` and `acp` are translations by `hangar run --rehearse`: the first two of stand-ins that print
 * lines in the agent's format, the third of our own agent. `odd` and `cut` are written by hand: what old logs may have, and answers that ended early.
 */
const FIXTURES = import.meta.glob<string>("./fixtures/*.jsonl", { query: "?raw", import: "default", eager: true });

function events(name: string): WireEvent[] {
  const lines = (FIXTURES[`./fixtures/${name}.jsonl`] ?? "").trimEnd().split("\n");
  return lines.map((line) => JSON.parse(line) as WireEvent);
}

const names = Object.keys(FIXTURES).map((path) => path.replace("./fixtures/", "").replace(".jsonl", ""));

/** Questions, retries, some notices and the reasoning of other agents are told live and are not in the log. */
const ONLY_LIVE: readonly string[] = ["abort", "acp", "claude", "codex", "drop", "odd", "plan", "questions", "retry", "rewind"];

function short(text: string): string {
  const line = text.split("\n")[0] ?? "";
  return line.length > 80 ? `${line.slice(0, 80)}…` : line;
}

function line(block: Block): string {
  switch (block.kind) {
    case "user":
      return `user: ${short(block.text)}`;
    case "text":
    case "reasoning":
      return `${block.kind}${block.open ? " (open)" : ""}: ${short(block.text)}`;
    case "tool": {
      const verdict = block.verdict === null ? "" : ` [${block.verdict.outcome}]`;
      const agent = block.agent === null ? "" : ` by ${block.agent.name} (${block.agent.state})`;
      const diff = block.diff === null ? "" : " with a diff";
      return `tool ${block.name}: ${block.state}${verdict}${agent}${diff}: ${short(block.error ?? block.output)}`;
    }
    case "ask":
      return `ask ${block.ask}: ${block.outcome ?? "open"}`;
    case "notice":
      return `${block.level}: ${short(block.text)}`;
  }
}

function outline(lane: Lane, indent = ""): string[] {
  return lane.blocks.flatMap((block) => [
    indent + line(block),
    ...(block.kind === "tool" && block.agent !== null ? outline(block.agent.lane, `${indent}  `) : []),
  ]);
}

function check(transcript: Transcript, expected: string[]) {
  expect(outline(transcript.main)).toEqual(expected);
}

let next = 0;

function event(type: string, data: unknown, extra: Partial<WireEvent> = {}): WireEvent {
  next += 1;
  return { id: `e${next}`, type, timestamp: "2026-01-01T00:00:00.000Z", parentId: null, data, ...extra };
}

describe("real logs", () => {
  test.each(names.filter((name) => !ONLY_LIVE.includes(name)))("%s: what was followed live is what the log says", (name) => {
    const all = events(name);
    const live = fold(all);
    const logged = fold(all.filter((one) => one.ephemeral !== true));
    expect(outline(live.main)).toEqual(outline(logged.main));
    expect(outline(live.main).some((text) => text.includes("(open)"))).toBe(false);
  });

  test.each(names)("%s: every page of it can be shown alone", (name) => {
    const all = events(name);
    for (let from = 0; from < all.length; from += 1) {
      const transcript = fold(all.slice(from));
      const shown = rows(transcript, new Map(), false);
      expect(new Set(shown.map((row) => row.key)).size).toBe(shown.length);
    }
  });

  test("tools, with their output, exit code and diff", () =>
    check(fold(events("tools")), [
      "user: Fix add.",
      "reasoning: The sum is a difference. I should look at the operator.",
      "text: The sum is a **difference**; I fix the operator and check it.",
      "tool edit: ok with a diff: File /home/ada/project/calc.py updated with changes.",
      "tool grep: ok: ./calc.py:    return a - b",
      "tool bash: failed: line 1",
      "tool view: failed: Path does not exist",
      "text: tok0 tok1 tok2 tok3 tok4 tok5 tok6 tok7 tok8 tok9 tok10 tok11 ",
    ]));

  test("an agent has a lane below its call", () =>
    check(fold(events("agent")), [
      "user: Ask somebody.",
      "tool task: ok by explore (ok): There is one function.",
      "  user: Look.",
      "  reasoning: let me see",
      "  tool grep: ok: ./calc.py",
      "  text: There is one function.",
      "text: Somebody looked.",
    ]));

  test("an error of the model is told", () => check(fold(events("fail")), ["user: FAIL:400", "error: 400 mock failure 400"]));

  test("a denied call has failed", () =>
    check(fold(events("denied")), [
      "user: Try it.",
      "tool bash: failed: Permission denied and could not request permission from user",
      "text: It was not allowed.",
    ]));
});

describe("pieces", () => {
  test("fill an open block, and the final event replaces them", () => {
    const transcript = emptyTranscript();
    apply(transcript, event("assistant.reasoning_delta", { reasoningId: "r", deltaContent: "hm" }, { ephemeral: true }));
    apply(transcript, event("assistant.message_delta", { messageId: "m", deltaContent: "Hel" }, { ephemeral: true }));
    apply(transcript, event("assistant.message_delta", { messageId: "m", deltaContent: "lo" }, { ephemeral: true }));
    check(transcript, ["reasoning (open): hm", "text (open): Hello"]);
    apply(transcript, event("assistant.message", { messageId: "m", content: "Hello.", reasoningText: "hm!", toolRequests: [] }));
    check(transcript, ["reasoning: hm!", "text: Hello."]);
  });

  test("say so when the connection was lost in between", () => {
    const transcript = fold([event("assistant.message_delta", { messageId: "m", deltaContent: "Hel" })]);
    breakOff(transcript);
    breakOff(transcript);
    check(transcript, ["text (open): Hel … "]);
    apply(transcript, event("assistant.message", { messageId: "m", content: "Hello", toolRequests: [] }));
    check(transcript, ["text: Hello"]);
  });

  test("of a turn that was aborted do not stay open", () =>
    check(
      fold([
        event("assistant.message_delta", { messageId: "m", deltaContent: "Hel" }),
        event("assistant.tool_call_delta", { toolCallId: "c", toolName: "bash", inputDelta: '{"com' }),
        event("assistant.turn_end", { turnId: "0" }),
        event("abort", { reason: "user_abort" }),
      ]),
      ["text: Hel", "tool bash: queued: ", "warning: Aborted"],
    ));

  test("of output are the whole so far", () =>
    check(
      fold([
        event("tool.execution_start", { toolCallId: "c", toolName: "bash", arguments: {} }),
        event("tool.execution_partial_result", { toolCallId: "c", partialOutput: "one" }),
        event("tool.execution_partial_result", { toolCallId: "c", partialOutput: "one two" }),
      ]),
      ["tool bash: running: one two"],
    ));
});

describe("questions", () => {
  const asked = event("permission.requested", { requestId: "p", permissionRequest: { kind: "shell", toolCallId: "c" } });
  const started = event("tool.execution_start", { toolCallId: "c", toolName: "bash", arguments: {} });

  test("are open until they are answered, and then a mark on their call", () => {
    check(fold([started, asked]), ["tool bash: running: ", "ask permission: open"]);
    const answered = fold([started, asked, event("permission.completed", { requestId: "p", result: { kind: "approved" } })]);
    check(answered, ["tool bash: running [approved]: ", "ask permission: approved"]);
    expect(rows(answered, new Map(), false).map((row) => row.block.kind)).toEqual(["tool"]);
  });

  test("hold the call that they are about, or that was running", () => {
    const asking = (...events: WireEvent[]) => fold([started, ...events]).main.blocks.map((block) => block.kind === "tool" && block.asking);
    const form = event("elicitation.requested", { requestId: "f", message: "Who?" });
    expect(asking(asked)).toEqual([true, false]);
    expect(asking(form)).toEqual([true, false]);
    expect(asking(form, event("elicitation.completed", { requestId: "f", action: "accept" }))).toEqual([false, false]);
  });

  test("are a row of their own if nobody can answer them any more", () => {
    const kinds = (alive: boolean) => rows(fold([started, asked]), new Map(), alive).map((row) => row.block.kind);
    expect(kinds(true)).toEqual(["tool"]);
    expect(kinds(false)).toEqual(["tool", "ask"]);
  });

  test("that were denied stay visible", () => {
    const denied = event("permission.completed", { requestId: "p", result: { kind: "denied-interactively-by-user", feedback: "no" } });
    expect(rows(fold([started, asked, denied]), new Map(), false).map((row) => row.block.kind)).toEqual(["tool", "ask"]);
  });
});

test("a conversation that was compacted is told once", () => {
  const [start, end] = [event("session.compaction_start", {}), event("session.compaction_complete", { success: true, preCompactionTokens: 118_204, postCompactionTokens: 21_330 })];
  check(fold([start]), ["info: Compacting the conversation to make room"]);
  check(fold([start, end]), ["info: Conversation compacted: 118k → 21k tokens"]);
  check(fold([end]), ["info: Conversation compacted: 118k → 21k tokens"]);
  check(fold([start, end, start]), ["info: Conversation compacted: 118k → 21k tokens", "info: Compacting the conversation to make room"]);
});

test("a model may use the id of a call again", () => {
  const call = [
    event("tool.execution_start", { toolCallId: "c", toolName: "bash", arguments: {} }),
    event("tool.execution_complete", { toolCallId: "c", success: true, result: { content: "1" } }),
  ];
  const again = [
    event("tool.execution_start", { toolCallId: "c", toolName: "grep", arguments: {} }),
    event("tool.execution_complete", { toolCallId: "c", success: true, result: { content: "2" } }),
  ];
  const transcript = fold([...call, ...again]);
  check(transcript, ["tool bash: ok: 1", "tool grep: ok: 2"]);
  expect(new Set(transcript.main.blocks.map((block) => block.key)).size).toBe(2);
});

test("what was rewound is marked, not lost", () => {
  const kept = event("user.message", { content: "one" });
  const dropped = event("user.message", { content: "two" });
  const transcript = fold([kept, dropped, event("hangar.history_truncated", { upToEventId: dropped.id })]);
  expect(transcript.main.blocks.map((block) => block.rewound)).toEqual([false, true, false]);
});

test("a rewind that is told of twice is shown once", () => {
  const dropped = event("user.message", { content: "one" });
  const told = ["hangar.history_truncated", "session.snapshot_rewind"].map((type) => event(type, { upToEventId: dropped.id }));
  const transcript = fold([dropped, ...told]);
  expect(transcript.main.blocks.map((block) => block.rewound)).toEqual([true, false]);
});

test("a change within an agent is a change of its block", () => {
  const all = events("agent");
  const start = all.findIndex((one) => one.type === "subagent.configured");
  const transcript = fold(all.slice(0, start));
  const before = transcript.main.blocks.at(-1);
  for (const one of all.slice(start, start + 3)) apply(transcript, one);
  expect(transcript.main.blocks.at(-1)).not.toBe(before);
});

test("events of any shape are borne", () => {
  const types = [...new Set(names.flatMap((name) => events(name).map((one) => one.type)))];
  const shapes: unknown[] = [undefined, null, 7, "text", [], {}, { content: 7, toolCallId: {}, toolRequests: "x", result: [], permissionRequest: 1 }];
  for (const type of [...types, "permission.requested", "permission.completed", "session.usage_info", "moon.phase"]) {
    for (const data of shapes) {
      for (const agentId of [undefined, "a"]) {
        const transcript = fold([event(type, data, agentId === undefined ? {} : { agentId })]);
        expect(rows(transcript, new Map(), false).length).toBeLessThan(3);
      }
    }
  }
});

test("fifty thousand events are folded in a moment", () => {
  const many = Array.from({ length: 10_000 }, (_, index) => index).flatMap((index) => [
    event("user.message", { content: `prompt ${index}` }),
    event("assistant.message", { messageId: `m${index}`, content: "answer", reasoningText: "thought", toolRequests: [] }),
    event("tool.execution_start", { toolCallId: `c${index}`, toolName: "bash", arguments: {} }),
    event("tool.execution_complete", { toolCallId: `c${index}`, success: true, result: { content: "1" } }),
    event("assistant.turn_end", { turnId: "0" }),
  ]);
  expect(fold(many).main.blocks.length).toBe(40_000);
});

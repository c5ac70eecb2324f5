import { expect, test } from "vitest";
import type { Json } from "../json";
import { toolWords } from "./toolWords";

test.each<[string, Json, string]>([
  ["bash", { command: "cargo test\necho done" }, "Run cargo test"],
  ["edit", { path: "a.rs", old_str: "x" }, "Edit a.rs"],
  ["apply_patch", "*** Begin Patch\n*** Update File: src/x.rs\n", "Patch src/x.rs"],
  ["Read", { file_path: "/x" }, "Read /x"],
  ["task", { description: "look around", prompt: "…" }, "Agent look around"],
  ["everything-echo", { n: 1, message: "hi" }, "everything-echo hi"],
  ["bash", null, "Run "],
  ["shell", { command: ["ls", "-l"] }, "Run ls -l"],
  ["weird", ["not", "an", "object"], "weird "],
])("%s %j reads %s", (name, args, expected) => {
  const { verb, object } = toolWords(name, args);
  expect(`${verb} ${object}`).toBe(expected);
});

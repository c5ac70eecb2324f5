// The transcript of every log in `fixtures`, as lines of text in files beside the logs. `crates/transcript` is held against
// the same files: a change of the fold is made in both places. `npx vitest run -u` writes them.

import { expect, test } from "vitest";
import type { Json } from "../json";
import type { Agent, Block, Lane, ToolBlock } from "./block";
import { type Transcript, fold } from "./fold";
import { toolWords } from "./toolWords";
import type { WireEvent } from "./wire";

const FIXTURES = import.meta.glob<string>("./fixtures/*.jsonl", { query: "?raw", import: "default", eager: true });

/** FNV-1a over UTF-8, so that a difference behind the shown beginning is seen too. */
function hash(text: string): string {
  let sum = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) sum = Math.imul(sum ^ byte, 0x01000193) >>> 0;
  return sum.toString(16).padStart(8, "0");
}

/** The beginning of a text and the hash of all of it. */
function short(text: string): string {
  if (text === "") return '""';
  const characters = [...(text.split("\n")[0] ?? "")];
  const shown = characters.length > 80 ? `${characters.slice(0, 80).join("")}…` : characters.join("");
  return `"${shown}" #${hash(text)}`;
}

function named(name: string, value: string | number | null): string {
  return value === null ? "" : ` ${name}=${value}`;
}

function textOf(name: string, value: string | null): string {
  return value === null || value === "" ? "" : ` ${name}=${short(value)}`;
}

function json(value: Json): string {
  return value === null ? "null" : `#${hash(JSON.stringify(value))}`;
}

function agentOf({ name, state, description, background, model, error, tools, tokens, ms }: Agent): string {
  const counts = named("tools", tools) + named("tokens", tokens) + named("ms", ms);
  return ` agent=${name} (${state}${background ? ", background" : ""}: ${description})${named("model", model)}${counts}${textOf("error", error)}`;
}

function tool(block: ToolBlock): string {
  const { verb, object, code } = toolWords(block.name, block.args);
  const verdict = block.verdict === null ? "" : ` [${block.verdict.outcome}${textOf("detail", block.verdict.detail)}]`;
  const pictures = block.pictures.map((picture) => ` ${picture.mimeType} #${hash(picture.base64)}`).join("");
  return [
    `tool ${block.name}: ${block.state}${block.asking ? " asking" : ""}${verdict}${named("call", block.call)}${textOf("title", block.title)}`,
    named("exit", block.exitCode),
    textOf("progress", block.progress),
    textOf("diff", block.diff),
    pictures,
    block.agent === null ? "" : agentOf(block.agent),
    ` words=${short(verb)} ${code ? "code" : "prose"} ${short(object)} args=${json(block.args)}`,
    textOf("draft", block.draft),
    textOf("error", block.error),
    textOf("output", block.output),
  ].join("");
}

function body(block: Block): string {
  switch (block.kind) {
    case "user": {
      const attached = block.attachments.length === 0 ? "" : ` with ${block.attachments.join(", ")}`;
      return `user${named("delivery", block.delivery)}${named("source", block.source)}${attached}: ${short(block.text)}`;
    }
    case "text":
    case "reasoning":
      return `${block.kind}${block.open ? " (open)" : ""}: ${short(block.text)}`;
    case "tool":
      return tool(block);
    case "ask": {
      const about = named("call", block.call) + named("holds", block.holds);
      return `ask ${block.ask}: ${block.outcome ?? "open"}${about}${textOf("detail", block.detail)} data=${json(block.event.data as Json)}`;
    }
    case "notice":
      return `${block.level}: ${short(block.text)}${textOf("detail", block.detail)}`;
  }
}

function line(block: Block): string {
  const ended = block.kind === "tool" ? block.endedAt : null;
  const place = hash([block.key, block.eventId, block.at, ended ?? ""].join(" "));
  return `${block.rewound ? "rewound " : ""}${body(block)} @${place}`;
}

function outline(lane: Lane, indent: string, seen: Set<Lane>): string[] {
  if (seen.has(lane)) return [];
  seen.add(lane);
  return lane.blocks.flatMap((block) => {
    const below = block.kind === "tool" && block.agent !== null ? outline(block.agent.lane, `${indent}  `, seen) : [];
    return [indent + line(block), ...below];
  });
}

function outlineOf(transcript: Transcript): string[] {
  const { model, effort, context } = transcript;
  const status = `model=${model ?? "-"} effort=${effort ?? "-"} context=${context === null ? "-" : `${context.tokens}/${context.limit}`}`;
  return [...outline(transcript.main, "", new Set()), status];
}

test.each(Object.keys(FIXTURES))("%s", async (path) => {
  const lines = (FIXTURES[path] ?? "").trimEnd().split("\n");
  const all = lines.map((line) => JSON.parse(line) as WireEvent);
  const live = outlineOf(fold(all));
  const logged = outlineOf(fold(all.filter((event) => event.ephemeral !== true)));
  const text = ["followed live:", ...live, "", "read from the log:", ...logged, ""].join("\n");
  await expect(text).toMatchFileSnapshot(path.replace(".jsonl", ".outline.txt"));
});

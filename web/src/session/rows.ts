// The transcript as rows of a list: agents' lanes are laid out below the call that started them, unless folded.

import type { Block, Lane, ToolBlock } from "./block";
import type { Transcript } from "./fold";

export interface TranscriptRow {
  readonly key: string;
  readonly guess: number;
  readonly block: Block;
  readonly depth: number;
  readonly open: boolean;
}

/** Rows that the reader has opened or closed. */
export type Openness = ReadonlyMap<string, boolean>;

const LINE = 22;
const CHARACTERS_PER_LINE = 90;
/** Diffs up to this size are shown without being asked for. */
const SMALL_DIFF_LINES = 40;

function lines(text: string): number {
  let count = 1;
  for (let at = text.indexOf("\n"); at !== -1 && count < 400; at = text.indexOf("\n", at + 1)) count += 1;
  return Math.min(400, Math.max(count, Math.ceil(text.length / CHARACTERS_PER_LINE)));
}

function toolStartsOpen(tool: ToolBlock): boolean {
  if (tool.agent !== null) return tool.agent.state === "running";
  return tool.diff !== null && lines(tool.diff) <= SMALL_DIFF_LINES;
}

export function startsOpen(block: Block): boolean {
  if (block.kind === "tool") return toolStartsOpen(block);
  return block.kind !== "reasoning" && block.kind !== "notice";
}

/** Blocks are values, so what was guessed of one holds for as long as it exists. */
const guesses = new WeakMap<Block, { readonly open: number; readonly folded: number }>();

function guess(block: Block, open: boolean): number {
  let known = guesses.get(block);
  if (known === undefined) {
    known = { open: guessOf(block, true), folded: guessOf(block, false) };
    guesses.set(block, known);
  }
  return open ? known.open : known.folded;
}

function guessOf(block: Block, open: boolean): number {
  switch (block.kind) {
    case "user":
      return 40 + lines(block.text) * LINE;
    case "text":
      return 16 + lines(block.text) * LINE;
    case "reasoning":
      return open ? 40 + lines(block.text) * LINE : 32;
    case "tool":
      return open && block.agent === null ? 60 + Math.min(20, lines(block.diff ?? block.output)) * 19 : 32;
    case "ask":
    case "notice":
      return 32;
  }
}

/**
 * Permissions that were given are a mark on their call, and what waits for an answer stands where it can be answered; a row
 * would say nothing more.
 */
function isShown(block: Block, alive: boolean): boolean {
  if (block.kind !== "ask") return true;
  return block.outcome === null ? !alive : block.call === null || block.outcome === "denied";
}

/** `alive`: somebody works on the session. */
export function rows(transcript: Transcript, opened: Openness, alive: boolean): TranscriptRow[] {
  const out: TranscriptRow[] = [];
  const seen = new Set<Lane>();
  const add = (lane: Lane, depth: number, prefix: string) => {
    if (seen.has(lane)) return;
    seen.add(lane);
    for (const block of lane.blocks) {
      if (!isShown(block, alive)) continue;
      const key = prefix + block.key;
      const open = opened.get(key) ?? startsOpen(block);
      out.push({ key, guess: guess(block, open), block, depth, open });
      if (block.kind === "tool" && block.agent !== null && open) add(block.agent.lane, depth + 1, `${key}/`);
    }
  };
  add(transcript.main, 0, "");
  return out;
}

// Finding words in a transcript: in what is loaded, whether it is drawn or not.

import type { Block } from "./block";
import type { TranscriptRow } from "./rows";

function textOf(block: Block): string {
  switch (block.kind) {
    case "user":
    case "text":
    case "reasoning":
      return block.text;
    case "tool":
      return `${block.name}\n${block.args === null ? block.draft : JSON.stringify(block.args)}\n${block.output}\n${block.diff ?? ""}\n${block.error ?? ""}`;
    case "ask":
      return block.detail ?? "";
    case "notice":
      return `${block.text}\n${block.detail ?? ""}`;
  }
}

/** The keys of the rows that have the words in them, whatever the case. */
export function find(rows: readonly TranscriptRow[], words: string): string[] {
  const wanted = words.trim().toLowerCase();
  if (wanted === "") return [];
  return rows.filter((row) => textOf(row.block).toLowerCase().includes(wanted)).map((row) => row.key);
}

/** The match after (or before) the current one; at the end it begins again. */
export function step(matches: readonly string[], current: string | null, by: 1 | -1): string | null {
  if (matches.length === 0) return null;
  const at = current === null ? -1 : matches.indexOf(current);
  if (at === -1) return (by === 1 ? matches[0] : matches.at(-1)) ?? null;
  return matches[(at + by + matches.length) % matches.length] ?? null;
}

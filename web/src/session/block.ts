// The blocks of a transcript. Blocks are immutable: a change replaces the block, so a view knows by identity when to render
// again.

import type { Json } from "../json";
import type { AskKind, NoticeLevel, Outcome, Picture, WireEvent } from "./wire";

/** Position of a block in the log, and its start time. */
interface Placed {
  readonly key: string;
  readonly eventId: string;
  readonly at: string;
  /** Taken back by a rewind: still in the log, no longer in the conversation. */
  readonly rewound: boolean;
}

export interface UserBlock extends Placed {
  readonly kind: "user";
  readonly text: string;
  readonly delivery: string | null;
  readonly attachments: readonly string[];
  readonly source: string | null;
}

export interface TextBlock extends Placed {
  readonly kind: "text";
  readonly text: string;
  readonly open: boolean;
}

export interface ReasoningBlock extends Placed {
  readonly kind: "reasoning";
  readonly text: string;
  readonly open: boolean;
}

export type ToolState = "writing" | "queued" | "running" | "ok" | "failed";

export interface ToolBlock extends Placed {
  readonly kind: "tool";
  readonly call: string;
  readonly name: string;
  readonly title: string | null;
  readonly args: Json;
  /** The arguments while the model still writes them. */
  readonly draft: string;
  readonly state: ToolState;
  readonly output: string;
  readonly progress: string | null;
  readonly diff: string | null;
  readonly error: string | null;
  readonly exitCode: number | null;
  readonly pictures: readonly Picture[];
  readonly endedAt: string | null;
  /** Whether a question about it is pending. */
  readonly asking: boolean;
  readonly verdict: { readonly outcome: Outcome; readonly detail: string | null } | null;
  readonly agent: Agent | null;
}

/** An agent that works for this one, with a lane of blocks of its own. */
export interface Agent {
  readonly name: string;
  readonly description: string;
  readonly background: boolean;
  readonly model: string | null;
  readonly state: "running" | "ok" | "failed";
  readonly error: string | null;
  readonly tools: number | null;
  readonly tokens: number | null;
  readonly ms: number | null;
  readonly lane: Lane;
}

export interface AskBlock extends Placed {
  readonly kind: "ask";
  readonly request: string;
  readonly ask: AskKind;
  readonly call: string | null;
  /** The call that waits for the answer: its own, or the one that was running when it was asked. */
  readonly holds: string | null;
  readonly event: WireEvent;
  readonly outcome: Outcome | null;
  readonly detail: string | null;
}

export interface NoticeBlock extends Placed {
  readonly kind: "notice";
  readonly level: NoticeLevel;
  readonly text: string;
  readonly detail: string | null;
}

export type Block = UserBlock | TextBlock | ReasoningBlock | ToolBlock | AskBlock | NoticeBlock;

/** The blocks of one agent. It only grows; `calls`, `asks` and `texts` say where the block of an id is. */
export interface Lane {
  readonly blocks: Block[];
  readonly calls: Map<string, number>;
  readonly asks: Map<string, number>;
  readonly texts: Map<string, number>;
  /** Reasoning that has begun and whose message is still to come. */
  thinking: number | null;
  /** Event of the last rewind: a server tells of one twice. */
  rewoundTo: string | null;
}

export function emptyLane(): Lane {
  return { blocks: [], calls: new Map(), asks: new Map(), texts: new Map(), thinking: null, rewoundTo: null };
}

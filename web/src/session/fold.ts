// The transcript as a fold over events: the same function reads history and follows a session that is being written.
// Ephemeral events fill blocks that are open; the event that is logged in the end replaces what they built.

import { fields, textOrNull } from "../json";
import { type Agent, type Block, type Lane, type ToolBlock, emptyLane } from "./block";
import { type Fact, type NoticeLevel, type ToolRequest, type WireEvent, read } from "./wire";

/** Text that a block keeps while it is written; more is cut at the front, and the final event brings the whole. */
const OPEN_TEXT_LIMIT = 400_000;
/** Agents within agents; deeper ones are shown at the deepest lane. */
const DEEPEST = 8;

export interface Transcript {
  readonly main: Lane;
  /** Which tool call an agent works for, and in which lane that call is. */
  readonly agents: Map<string, { readonly lane: Lane; readonly call: string; readonly parent: Lane; readonly depth: number }>;
  model: string | null;
  effort: string | null;
  context: { tokens: number; limit: number } | null;
  /** Grows with every change, for views that ask whether there was one. */
  version: number;
}

export function emptyTranscript(): Transcript {
  return {
    main: emptyLane(),
    agents: new Map(),
    model: null,
    effort: null,
    context: null,
    version: 0,
  };
}

export function fold(events: Iterable<WireEvent>): Transcript {
  const transcript = emptyTranscript();
  for (const event of events) apply(transcript, event);
  return transcript;
}

/** Takes one more event in. The transcript is the caller's own and changes in place; its blocks are replaced. */
export function apply(transcript: Transcript, event: WireEvent): void {
  const fact = read(event);
  if (fact === null) return;
  transcript.version += 1;
  const lane = laneOf(transcript, event, fact);
  applyTo(transcript, lane, event, fact);
  touchOwners(transcript, event.agentId);
}

/** A connection was lost: what was being written may lack a piece, and says so until the final event comes. */
export function breakOff(transcript: Transcript): void {
  const lanes = [transcript.main, ...[...transcript.agents.values()].map((agent) => agent.lane)];
  for (const lane of lanes) {
    lane.blocks.forEach((block, index) => {
      if ((block.kind === "text" || block.kind === "reasoning") && block.open && !block.text.endsWith(" … ")) {
        lane.blocks[index] = { ...block, text: `${block.text} … ` };
        transcript.version += 1;
      }
    });
  }
}

function laneOf(transcript: Transcript, event: WireEvent, fact: Fact): Lane {
  if (event.agentId === undefined) return transcript.main;
  const known = transcript.agents.get(event.agentId);
  if (known !== undefined) return known.lane;
  const start = fact.is === "agentStarted" ? fact : unseenStart(event.agentId, event);
  return startAgent(transcript, event.agentId, event, start);
}

/** The agent began in a page of history that is not loaded yet; its call is known from what it does. */
function unseenStart(agentId: string, event: WireEvent): Started {
  const call = textOrNull(fields(event.data)["parentToolCallId"]) ?? agentId;
  return { is: "agentStarted", call, name: "Agent", description: "", background: false, model: null };
}

type Started = Extract<Fact, { is: "agentStarted" }>;

/** The agent's call may be in any lane, for agents start agents. */
function startAgent(transcript: Transcript, agentId: string, event: WireEvent, fact: Started): Lane {
  const owner = [...transcript.agents.values()].find((agent) => agent.lane.calls.has(fact.call));
  const parent = owner?.lane ?? transcript.main;
  const depth = (owner?.depth ?? 0) + 1;
  const lane = depth > DEEPEST ? parent : emptyLane();
  const agent: Agent = {
    name: fact.name,
    description: fact.description,
    background: fact.background,
    model: fact.model,
    state: "running",
    error: null,
    tools: null,
    tokens: null,
    ms: null,
    lane,
  };
  const request: ToolRequest = { call: fact.call, name: "task", args: null, title: null };
  const index = callIndex(parent, event, request);
  replaceTool(parent, index, (tool) => ({ ...tool, agent }));
  transcript.agents.set(agentId, { lane, call: fact.call, parent, depth });
  return lane;
}

/** An agent's block shows what happens in its lane, so a change there is a change of it and of those around it. */
function touchOwners(transcript: Transcript, agentId: string | undefined): void {
  let agent = agentId === undefined ? undefined : transcript.agents.get(agentId);
  for (let depth = 0; agent !== undefined && depth <= DEEPEST; depth += 1) {
    const { parent, call } = agent;
    const index = parent.calls.get(call);
    if (index !== undefined) replaceTool(parent, index, (tool) => ({ ...tool }));
    agent = [...transcript.agents.values()].find((other) => other.lane === parent);
  }
}

function push(lane: Lane, block: Block): number {
  lane.blocks.push(block);
  return lane.blocks.length - 1;
}

function replaceTool(lane: Lane, index: number, change: (tool: ToolBlock) => ToolBlock): void {
  const block = lane.blocks[index];
  if (block?.kind === "tool") lane.blocks[index] = change(block);
}

// Blocks are written out field by field: spreading a common part into them made folding eight times slower.

function newText(kind: "text" | "reasoning", key: string, text: string, open: boolean, event: WireEvent): Block {
  return { key, eventId: event.id, at: event.timestamp, rewound: false, kind, text, open };
}

function newNotice(level: NoticeLevel, text: string, detail: string | null, event: WireEvent): Block {
  return { key: `n:${event.id}`, eventId: event.id, at: event.timestamp, rewound: false, kind: "notice", level, text, detail };
}

function newTool(event: WireEvent, request: ToolRequest, key: string): ToolBlock {
  return {
    key,
    eventId: event.id,
    at: event.timestamp,
    rewound: false,
    kind: "tool",
    call: request.call,
    name: request.name,
    title: request.title,
    args: request.args,
    draft: "",
    state: "queued",
    output: "",
    progress: null,
    diff: null,
    error: null,
    exitCode: null,
    pictures: [],
    endedAt: null,
    asking: false,
    verdict: null,
    agent: null,
  };
}

/** The block of a call. Some models use an id again in a later turn: a call that has ended is another one. */
function callIndex(lane: Lane, event: WireEvent, request: ToolRequest, mayHaveEnded = true): number {
  const known = lane.calls.get(request.call);
  const block = known === undefined ? undefined : lane.blocks[known];
  if (known !== undefined && block?.kind === "tool") {
    const ended = block.state === "ok" || block.state === "failed";
    if (mayHaveEnded || !ended) return known;
  }
  const key = known === undefined ? `t:${request.call}` : `t:${request.call}:${event.id}`;
  const index = push(lane, newTool(event, request, key));
  lane.calls.set(request.call, index);
  return index;
}

function addPiece(lane: Lane, kind: "text" | "reasoning", id: string, piece: string, event: WireEvent): void {
  if (piece === "") return;
  const key = `${kind === "text" ? "m" : "r"}:${id}`;
  const index = lane.texts.get(key);
  const block = index === undefined ? undefined : lane.blocks[index];
  if (index !== undefined && block?.kind === kind) {
    const text = (block.text + piece).slice(-OPEN_TEXT_LIMIT);
    lane.blocks[index] = { ...block, text, open: true };
    return;
  }
  const made = push(lane, newText(kind, key, piece, true, event));
  lane.texts.set(key, made);
  if (kind === "reasoning") lane.thinking = made;
}

function finishText(lane: Lane, kind: "text" | "reasoning", key: string, text: string, event: WireEvent): void {
  const index = lane.texts.get(key);
  const block = index === undefined ? undefined : lane.blocks[index];
  if (index !== undefined && block?.kind === kind) {
    lane.blocks[index] = { ...block, text, open: false };
  } else if (text.trim() !== "") {
    lane.texts.set(key, push(lane, newText(kind, key, text, false, event)));
  }
}

/** Reasoning has an id of its own while it streams and none in the log; what is being thought belongs to the message. */
function finishThinking(lane: Lane, message: string, text: string, event: WireEvent): void {
  const index = lane.thinking;
  lane.thinking = null;
  const block = index === null ? undefined : lane.blocks[index];
  if (index !== null && block?.kind === "reasoning") {
    lane.blocks[index] = { ...block, text: text === "" ? block.text : text, open: false };
    return;
  }
  if (text !== "") finishText(lane, "reasoning", `r:${message}`, text, event);
}

function applyTo(transcript: Transcript, lane: Lane, event: WireEvent, fact: Fact): void {
  switch (fact.is) {
    case "userSaid":
      push(lane, {
        key: `u:${event.id}`,
        eventId: event.id,
        at: event.timestamp,
        rewound: false,
        kind: "user",
        text: fact.text,
        delivery: fact.delivery,
        attachments: fact.attachments,
        source: fact.source,
      });
      return;
    case "turnStarted":
      lane.thinking = null;
      return;
    case "turnEnded":
      closeTexts(lane);
      return;
    case "messageDelta":
      addPiece(lane, "text", fact.message, fact.piece, event);
      return;
    case "messageDone":
      finishThinking(lane, fact.message, fact.reasoning, event);
      finishText(lane, "text", `m:${fact.message}`, fact.text, event);
      for (const request of fact.requests) {
        const index = callIndex(lane, event, request, false);
        replaceTool(lane, index, (tool) => ({
          ...tool,
          name: request.name,
          title: request.title ?? tool.title,
          args: request.args,
          draft: "",
          state: tool.state === "writing" ? "queued" : tool.state,
        }));
      }
      return;
    case "answerCut":
      finishThinking(lane, fact.message, fact.reasoning, event);
      finishText(lane, "text", `m:${fact.message}`, fact.text, event);
      // Other interruptions have events of their own.
      if (fact.recovered) push(lane, newNotice("warning", "Interrupted", null, event));
      return;
    case "reasoningDelta":
      addPiece(lane, "reasoning", fact.reasoning, fact.piece, event);
      return;
    case "reasoningDone": {
      // It may come before its message, after it, or without one; the message may have told it already.
      const told = lane.blocks.findLast((block) => block.kind === "reasoning");
      if (told?.kind === "reasoning" && told.text === fact.text) return;
      finishText(lane, "reasoning", `r:${fact.reasoning}`, fact.text, event);
      return;
    }
    case "toolWriting": {
      const request: ToolRequest = { call: fact.call, name: fact.name ?? "tool", args: null, title: null };
      const index = callIndex(lane, event, request, false);
      replaceTool(lane, index, (tool) => ({
        ...tool,
        name: fact.name ?? tool.name,
        draft: (tool.draft + fact.piece).slice(-OPEN_TEXT_LIMIT),
        state: tool.state === "queued" && tool.args === null ? "writing" : tool.state,
      }));
      return;
    }
    case "toolStarted": {
      const index = callIndex(lane, event, fact.request, false);
      replaceTool(lane, index, (tool) => ({
        ...tool,
        name: fact.request.name,
        title: fact.request.title ?? tool.title,
        args: fact.request.args ?? tool.args,
        at: event.timestamp,
        draft: "",
        state: "running",
      }));
      return;
    }
    case "toolOutput":
      change(lane, fact.call, (tool) => ({ ...tool, output: fact.text.slice(-OPEN_TEXT_LIMIT) }));
      return;
    case "toolProgress":
      change(lane, fact.call, (tool) => ({ ...tool, progress: fact.message }));
      return;
    case "toolDone": {
      // Its start may be in a page of history that is not loaded yet.
      const index = callIndex(lane, event, { call: fact.call, name: "tool", args: null, title: null });
      replaceTool(lane, index, (tool) => ({
        ...tool,
        state: fact.success && (fact.exitCode ?? 0) === 0 ? "ok" : "failed",
        output: fact.output === "" ? tool.output : fact.output,
        diff: fact.diff,
        error: fact.error,
        exitCode: fact.exitCode,
        pictures: fact.pictures,
        progress: null,
        endedAt: event.timestamp,
      }));
      return;
    }
    case "asked": {
      const { request, kind, call } = fact;
      const holds = call ?? runningCall(lane);
      const block: Block = {
        key: `a:${request}`,
        eventId: event.id,
        at: event.timestamp,
        rewound: false,
        kind: "ask",
        request,
        ask: kind,
        call,
        holds,
        event,
        outcome: null,
        detail: null,
      };
      lane.asks.set(request, push(lane, block));
      if (holds !== null) change(lane, holds, (tool) => ({ ...tool, asking: true }));
      return;
    }
    case "answered": {
      const index = lane.asks.get(fact.request);
      const block = index === undefined ? undefined : lane.blocks[index];
      if (index === undefined || block?.kind !== "ask") return;
      lane.blocks[index] = { ...block, outcome: fact.outcome, detail: fact.detail };
      if (block.holds !== null) change(lane, block.holds, (tool) => ({ ...tool, asking: false }));
      if (block.call !== null) {
        const verdict = { outcome: fact.outcome, detail: fact.detail };
        change(lane, block.call, (tool) => ({ ...tool, verdict }));
      }
      return;
    }
    case "agentStarted":
      return;
    case "agentEnded": {
      const owner = event.agentId === undefined ? undefined : transcript.agents.get(event.agentId);
      change(owner?.parent ?? lane, fact.call, (tool) => {
        if (tool.agent === null) return tool;
        const state = fact.error === null ? "ok" : "failed";
        const { error, tools, tokens, ms } = fact;
        return { ...tool, agent: { ...tool.agent, state, error, tools, tokens, ms } };
      });
      closeTexts(lane);
      return;
    }
    case "notice":
      if (fact.text === "") return;
      if (fact.level === "error") closeTexts(lane);
      addNotice(lane, fact, event);
      return;
    case "rewound":
      if (lane.rewoundTo === fact.upTo) return;
      lane.rewoundTo = fact.upTo;
      rewind(lane, fact.upTo);
      push(lane, newNotice("info", "Rewound to an earlier point", null, event));
      return;
    case "modelIs":
      if (fact.changed) {
        push(lane, newNotice("info", `Model: ${fact.model}`, null, event));
      }
      if (lane === transcript.main) {
        transcript.model = fact.model;
        transcript.effort = fact.effort;
      }
      return;
    case "context":
      if (lane === transcript.main && fact.limit > 0) transcript.context = { tokens: fact.tokens, limit: fact.limit };
      return;
  }
}

function addNotice(lane: Lane, fact: Extract<Fact, { is: "notice" }>, event: WireEvent): void {
  const made = newNotice(fact.level, fact.text, fact.detail, event);
  const last = fact.instead === null ? undefined : lane.blocks.findLast((block) => block.kind === "notice");
  if (last?.kind === "notice" && last.text === fact.instead) lane.blocks[lane.blocks.lastIndexOf(last)] = { ...made, key: last.key };
  else push(lane, made);
}

function runningCall(lane: Lane): string | null {
  const running = lane.blocks.findLast((block) => block.kind === "tool" && block.state === "running");
  return running?.kind === "tool" ? running.call : null;
}

function change(lane: Lane, call: string, with_: (tool: ToolBlock) => ToolBlock): void {
  const index = lane.calls.get(call);
  if (index !== undefined) replaceTool(lane, index, with_);
}

/** A turn that ended without its message (it was aborted) leaves no block waiting for more. */
function closeTexts(lane: Lane): void {
  for (let index = lane.blocks.length - 1; index >= 0; index -= 1) {
    const block = lane.blocks[index];
    if (block === undefined || block.kind === "user") return;
    if ((block.kind === "text" || block.kind === "reasoning") && block.open) {
      lane.blocks[index] = { ...block, open: false };
    }
    if (block.kind === "tool" && block.state === "writing") {
      lane.blocks[index] = { ...block, state: "queued" };
    }
  }
}

function rewind(lane: Lane, upTo: string): void {
  const from = lane.blocks.findIndex((block) => block.eventId === upTo);
  if (from === -1) return;
  for (let index = from; index < lane.blocks.length; index += 1) {
    const block = lane.blocks[index];
    if (block !== undefined) lane.blocks[index] = { ...block, rewound: true };
  }
}

// The resources of /api/v1, as `docs/portal.md` describes them.

import type { WireEvent } from "../session/wire";

export type SessionState = "working" | "waiting" | "idle" | "closed" | "failed";

export const SESSION_STATES: readonly SessionState[] = ["working", "waiting", "idle", "failed", "closed"];

/** Whether a turn is under way, be it that it waits for an answer. */
export function isAtWork(state: SessionState): boolean {
  return state === "working" || state === "waiting";
}

export interface Usage {
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly costUsd?: number;
  readonly premiumRequests?: number;
  readonly turns?: number;
}

export interface Session {
  readonly id: string;
  readonly name?: string;
  readonly state: SessionState;
  readonly runtime: string;
  readonly model?: string;
  readonly effort?: string;
  readonly workspace: string;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly events: number;
  readonly usage?: Usage;
  readonly context?: { readonly tokens: number; readonly limit: number };
  readonly approvals?: number;
  readonly run?: { readonly id: string; readonly job: string; readonly workId: number; readonly task: string; readonly driving: boolean };
  readonly resumable?: boolean;
  readonly error?: string;
  readonly policy?: string;
}

export interface Meta {
  readonly version: string;
  readonly tokenRequired: boolean;
  readonly authenticated: boolean;
  readonly home?: string;
  readonly repoRoot?: string;
  readonly workspace?: string;
  readonly test?: boolean;
  readonly entry?: { readonly path: string };
}

export type Policy = "ask" | "allow-all";

export interface NewSession {
  runtime?: string;
  model?: string;
  effort?: string;
  workspace: string;
  policy?: Policy;
  prompt?: string;
  name?: string;
}

export interface LoggedEvent {
  readonly seq: number;
  readonly event: WireEvent;
}

export interface EventPage {
  readonly events: LoggedEvent[];
  readonly last: number;
}

export interface Approval {
  readonly id: string;
  readonly sessionId: string;
  readonly sessionName?: string;
  readonly kind: "permission" | "question" | "elicitation" | "plan";
  readonly event: WireEvent;
  readonly since: string;
  readonly state: "open" | "answered";
}

export type Answer =
  | { decision: "approve" | "approve-for-session" | "deny"; feedback?: string }
  | { answer: string }
  | { action: "accept" | "decline" | "cancel"; content?: Record<string, unknown> };

export interface Preflight {
  readonly program?: string;
  readonly version?: string;
  readonly auth?: unknown;
  readonly problems?: unknown[];
  readonly warnings?: unknown[];
  readonly ready?: boolean;
}

export interface Runtime {
  readonly name: string;
  readonly label?: string;
  readonly install?: string;
  readonly capabilities?: unknown;
  readonly preflight?: Preflight;
  readonly checkedAt?: string;
  readonly default?: boolean;
}

export interface ModelList {
  /** `null`: they cannot be known, and any name may work. */
  readonly models: readonly { readonly id: string; readonly name?: string; readonly provider?: string }[] | null;
  readonly problem?: string;
}

export type Hint = readonly ["TaskNode" | "CondNode", number] | "ParBegin" | "ParEnd" | "CondBegin" | "CondEnd" | "LoopEnd" | "AltEnd";

export interface ChartNode {
  readonly id: number;
  readonly hint: Hint;
  readonly label?: string;
  readonly arrows?: readonly { readonly to: number; readonly loopBack: boolean; readonly label?: string }[];
}

export interface ChartGraph {
  readonly nodes: readonly ChartNode[];
}

export interface GridRow {
  readonly keyword: string;
  readonly jobs: readonly ({ readonly name: string; readonly jobName: string } | null)[];
}

export interface Jobs {
  readonly entry?: { readonly path: string; readonly problems: readonly string[] };
  readonly grid: readonly GridRow[];
  readonly jobs: Readonly<Record<string, { readonly requireUserInput?: boolean }>>;
  readonly chart: Readonly<Record<string, ChartGraph>>;
  readonly tasks: readonly { readonly name: string; readonly requireUserInput: boolean }[];
}

export type RunState = "running" | "succeeded" | "failed" | "canceled" | "interrupted" | "limited";
export type WorkState = "waiting" | "running" | "succeeded" | "failed" | "stopped";

export interface RunWork {
  readonly workId: number;
  readonly task: string;
  readonly state: WorkState;
  readonly starts: number;
  readonly sessions: readonly { readonly id: string; readonly driving: boolean; readonly attempt?: number; readonly succeeded?: boolean }[];
}

export interface Run {
  readonly id: string;
  readonly job: string;
  readonly state: RunState;
  readonly startedAt: string;
  readonly endedAt?: string;
  readonly workspace: string;
  readonly input?: string;
  readonly turns?: number;
  readonly tokens?: number;
  readonly reason?: string;
  readonly works: readonly RunWork[];
  readonly resumable?: boolean;
}

export interface Decision {
  readonly at: string;
  readonly workId?: number;
  readonly task: string;
  readonly reason: string;
}

export interface RunDetail extends Run {
  readonly chart?: ChartGraph;
  readonly decisions?: readonly Decision[];
}

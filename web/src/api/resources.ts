// The resources of /api/v1. Their types are generated from the server's own description; here is what pages add to them.

import type { SessionState } from "./openapi";

export type {
  Answer,
  Approval,
  BoardColumn,
  Budget,
  Canvas,
  Check,
  ChangedFile,
  Changes,
  ChartGraph,
  ChartNode,
  CostRow,
  Costs,
  Decision,
  EventPage,
  Fleet,
  FleetWorker,
  Hint,
  Issue,
  IssueBoard,
  IssueCandidate,
  IssueDetails,
  IssueOrder,
  Jobs,
  LoggedEvent,
  Memory,
  MemoryNote,
  Meta,
  ModelList,
  Policy,
  Queue,
  QueueItem,
  Run,
  RunDetails,
  RunState,
  RunWork,
  Runtime,
  Session,
  SessionState,
  TranscriptHits,
  Schedules,
  Settings,
  Workflow,
  WorkflowCheck,
  WorkflowText,
  WorkState,
} from "./openapi";

export const SESSION_STATES: readonly SessionState[] = ["working", "waiting", "queued", "idle", "failed", "closed"];

/** A turn is in progress or waits for an answer. */
export function isAtWork(state: SessionState): boolean {
  return state === "working" || state === "waiting";
}

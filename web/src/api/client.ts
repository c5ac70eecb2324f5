// Requests to /api/v1. Every failure is a `Problem`.

import { signal } from "@preact/signals";
import { takeFirst } from "./first";
import type { Answer, BudgetRaise, CostsBy, Delivery, IssueOrder, NewRun, NewSession, NewWorkflowText, NoteEdit, Routes, SettingsChanges, WorkerMode, WorkflowDraft } from "./openapi";
import { asProblem, problemOf } from "./problem";

const BASE = "/api/v1";

/** Set when the server wants a token; the application shows the login page then. */
export const loginNeeded = signal(false);

type Route = keyof Routes;

/** The names in braces of a route: `id` of `GET /sessions/{id}`. */
type Names<R extends string> = R extends `${string}{${infer Name}}${infer Rest}` ? Name | Names<Rest> : never;

/** Parameters of a request to a route. */
type Request<R extends Route> = ([Names<R>] extends [never] ? unknown : { readonly path: Readonly<Record<Names<R>, string>> }) &
  (Routes[R] extends { readonly query: infer Query } ? { readonly query?: Query } : unknown) &
  (Routes[R] extends { readonly body: infer Body } ? { readonly body: Body } : unknown);

/** A request without the type of its route. */
interface Parts {
  readonly path?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: unknown;
}

async function ask<R extends Route>(route: R, parts: Request<R>, cancel?: AbortSignal): Promise<Routes[R]["answer"]> {
  const [method = "GET", template = ""] = route.split(" ");
  const { path: names = {}, query: values = {}, body } = parts as Parts;
  const path = template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(names[name] ?? "")) + query(values);
  const request: RequestInit = { method, credentials: "same-origin" };
  if (cancel !== undefined) request.signal = cancel;
  if (body !== undefined) {
    request.body = JSON.stringify(body);
    request.headers = { "content-type": "application/json" };
  }
  let response: Response;
  try {
    response = (method === "GET" ? await takeFirst(path) : null) ?? (await fetch(BASE + path, request));
  } catch (error) {
    throw cancel?.aborted ? error : asProblem(error);
  }
  if (!response.ok) {
    const problem = await problemOf(response);
    if (problem.status === 401 && path !== "/login") loginNeeded.value = true;
    throw problem;
  }
  const text = await response.text();
  return (text === "" ? null : JSON.parse(text)) as Routes[R]["answer"];
}

/** `?a=1&b=2` of those that are set. */
function query(values: NonNullable<Parts["query"]>): string {
  const set = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== undefined && value !== "" && value !== false) set.set(name, String(value));
  }
  const text = set.toString();
  return text === "" ? "" : `?${text}`;
}

export type SessionQuery = Omit<NonNullable<Routes["GET /sessions"]["query"]>, "limit">;
type EventQuery = Routes["GET /sessions/{id}/events"]["query"];

export const api = {
  meta: () => ask("GET /meta", {}),
  login: (token: string) => ask("POST /login", { body: { token } }),
  logout: () => ask("POST /logout", {}),

  sessions: (filter: SessionQuery, cancel?: AbortSignal) => ask("GET /sessions", { query: { ...filter, limit: 100 } }, cancel),
  session: (id: string) => ask("GET /sessions/{id}", { path: { id } }),
  createSession: (body: NewSession) => ask("POST /sessions", { body }),
  renameSession: (id: string, name: string) => ask("PATCH /sessions/{id}", { path: { id }, body: { name } }),
  deleteSession: (id: string) => ask("DELETE /sessions/{id}", { path: { id } }),
  send: (id: string, text: string, mode: Delivery) => ask("POST /sessions/{id}/messages", { path: { id }, body: { text, mode } }),
  abort: (id: string) => ask("POST /sessions/{id}/abort", { path: { id } }),
  stopSession: (id: string) => ask("POST /sessions/{id}/stop", { path: { id } }),
  events: (id: string, query: EventQuery, cancel?: AbortSignal) => ask("GET /sessions/{id}/events", { path: { id }, query }, cancel),

  approvals: () => ask("GET /approvals", {}),
  answer: (id: string, body: Answer) => ask("POST /approvals/{id}", { path: { id }, body }),

  runtimes: (check: boolean) => ask("GET /runtimes", { query: { check } }),
  models: (name: string) => ask("GET /runtimes/{name}/models", { path: { name } }),

  issues: (workflow?: string) => ask("GET /issues", { query: { ...(workflow !== undefined && { workflow }) } }),
  issue: (workflow: string, issue: string) => ask("GET /issues/{workflow}/{issue}", { path: { workflow, issue } }),
  actOnIssue: (workflow: string, issue: string, body: IssueOrder) => ask("POST /issues/{workflow}/{issue}/actions", { path: { workflow, issue }, body }),
  candidateDiff: (workflow: string, issue: string, candidate: number) => ask("GET /issues/{workflow}/{issue}/candidates/{candidate}/diff", { path: { workflow, issue, candidate: String(candidate) } }),
  workflow: (workflow: string) => ask("GET /workflows/{workflow}", { path: { workflow } }),
  checkWorkflow: (workflow: string, body: WorkflowDraft) => ask("POST /workflows/{workflow}/check", { path: { workflow }, body }),
  saveWorkflow: (workflow: string, body: NewWorkflowText) => ask("PUT /workflows/{workflow}", { path: { workflow }, body }),

  queue: (limit: number) => ask("GET /queue", { query: { limit } }),
  pauseQueue: () => ask("POST /queue/pause", {}),
  resumeQueue: () => ask("POST /queue/resume", {}),
  drainQueue: () => ask("POST /queue/drain", {}),
  stopQueue: () => ask("POST /queue/stop", {}),
  raiseBudget: (body: BudgetRaise) => ask("POST /budgets/raise", { body }),
  costs: (by: CostsBy) => ask("GET /costs", { query: { by } }),
  changes: (id: string) => ask("GET /sessions/{id}/changes", { path: { id } }),
  revertChange: (id: string, path: string, hunk?: number) =>
    ask("POST /sessions/{id}/changes/revert", { path: { id }, body: { path, ...(hunk !== undefined && { hunk }) } }),
  fleet: () => ask("GET /fleet", {}),
  setWorkerMode: (name: string, mode: WorkerMode) => ask("POST /fleet/workers/{name}/mode", { path: { name }, body: { mode } }),
  memory: () => ask("GET /memory", {}),
  editNote: (body: NoteEdit) => ask("PATCH /memory", { body }),
  deleteNote: (repository: string, id: number) => ask("DELETE /memory", { query: { repository, id } }),
  search: (query: string) => ask("GET /search", { query: { query } }),
  deleteRun: (id: string) => ask("DELETE /runs/{id}", { path: { id } }),

  jobs: () => ask("GET /jobs", {}),
  installEntry: (path: string) => ask("PUT /jobs/entry", { body: { path } }),

  runs: (cursor?: string) => ask("GET /runs", { query: { limit: 50, ...(cursor !== undefined && { cursor }) } }),
  run: (id: string) => ask("GET /runs/{id}", { path: { id } }),
  startRun: (body: NewRun) => ask("POST /runs", { body }),
  stopRun: (id: string) => ask("POST /runs/{id}/stop", { path: { id } }),
  resumeRun: (id: string) => ask("POST /runs/{id}/resume", { path: { id } }),
  settings: () => ask("GET /settings", {}),
  changeSettings: (changes: SettingsChanges["changes"]) => ask("PATCH /settings", { body: { changes } }),
  testProvider: (name: string) => ask("POST /settings/providers/{name}/test", { path: { name } }),
  schedules: () => ask("GET /schedules", {}),
  runSchedule: (name: string) => ask("POST /schedules/{name}/run", { path: { name } }),
  retryRun: (id: string) => ask("POST /runs/{id}/retry", { path: { id } }),
};

function at(...segments: string[]): string {
  return segments.map((segment) => `/${encodeURIComponent(segment)}`).join("");
}

export const streams = {
  resources: () => `${BASE}/stream`,
  session: (id: string, after: number) => `${BASE}/sessions${at(id, "stream")}${query({ after })}`,
  run: (id: string, after: number) => `${BASE}/runs${at(id, "stream")}${query({ after })}`,
};

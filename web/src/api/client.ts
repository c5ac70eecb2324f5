// Requests to /api/v1. Every failure is a `Problem`.

import { signal } from "@preact/signals";
import { takeFirst } from "./first";
import { asProblem, problemOf } from "./problem";
import type {
  Answer,
  Approval,
  EventPage,
  Jobs,
  Meta,
  ModelList,
  NewSession,
  Run,
  RunDetail,
  Runtime,
  Session,
  SessionState,
} from "./resources";

const BASE = "/api/v1";

/** Set when the server wants a token; the application shows the login page then. */
export const loginNeeded = signal(false);

type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

async function ask<T>(method: Method, path: string, body?: unknown, cancel?: AbortSignal): Promise<T> {
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
  return (text === "" ? null : JSON.parse(text)) as T;
}

/** `?a=1&b=2` of those that are set. */
function query(values: Record<string, string | number | undefined>): string {
  const set = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== undefined && value !== "") set.set(name, String(value));
  }
  const text = set.toString();
  return text === "" ? "" : `?${text}`;
}

function at(...segments: string[]): string {
  return segments.map((segment) => `/${encodeURIComponent(segment)}`).join("");
}

export interface SessionQuery {
  readonly query?: string;
  readonly state?: SessionState;
  readonly runtime?: string;
  readonly cursor?: string;
}

export const api = {
  meta: () => ask<Meta>("GET", "/meta"),
  login: (token: string) => ask<null>("POST", "/login", { token }),
  logout: () => ask<null>("POST", "/logout"),

  sessions: (filter: SessionQuery, cancel?: AbortSignal) =>
    ask<{ sessions: Session[]; next?: string }>("GET", `/sessions${query({ ...filter, limit: 100 })}`, undefined, cancel),
  session: (id: string) => ask<Session>("GET", `/sessions${at(id)}`),
  createSession: (order: NewSession) => ask<Session>("POST", "/sessions", order),
  renameSession: (id: string, name: string) => ask<Session>("PATCH", `/sessions${at(id)}`, { name }),
  deleteSession: (id: string) => ask<null>("DELETE", `/sessions${at(id)}`),
  send: (id: string, text: string, mode: "enqueue" | "immediate") =>
    ask<{ state: SessionState }>("POST", `/sessions${at(id, "messages")}`, { text, mode }),
  abort: (id: string) => ask<null>("POST", `/sessions${at(id, "abort")}`),
  stopSession: (id: string) => ask<null>("POST", `/sessions${at(id, "stop")}`),
  events: (id: string, range: { before?: number; after?: number; limit?: number }, cancel?: AbortSignal) =>
    ask<EventPage>("GET", `/sessions${at(id, "events")}${query(range)}`, undefined, cancel),

  approvals: () => ask<{ approvals: Approval[] }>("GET", "/approvals"),
  answer: (id: string, answer: Answer) => ask<Approval>("POST", `/approvals${at(id)}`, answer),

  runtimes: (check: boolean) => ask<{ runtimes: Runtime[] }>("GET", `/runtimes${check ? "?check=true" : ""}`),
  models: (runtime: string) => ask<ModelList>("GET", `/runtimes${at(runtime, "models")}`),

  jobs: () => ask<Jobs>("GET", "/jobs"),
  installEntry: (path: string) => ask<unknown>("PUT", "/jobs/entry", { path }),

  runs: (cursor?: string) => ask<{ runs: Run[]; next?: string }>("GET", `/runs${query({ limit: 50, cursor })}`),
  run: (id: string) => ask<RunDetail>("GET", `/runs${at(id)}`),
  startRun: (order: { job: string; input?: string; workspace: string }) => ask<Run>("POST", "/runs", order),
  stopRun: (id: string) => ask<null>("POST", `/runs${at(id, "stop")}`),
  resumeRun: (id: string) => ask<null>("POST", `/runs${at(id, "resume")}`),
  retryRun: (id: string) => ask<Run>("POST", `/runs${at(id, "retry")}`),
};

export const streams = {
  resources: () => `${BASE}/stream`,
  session: (id: string, after: number) => `${BASE}/sessions${at(id, "stream")}${query({ after })}`,
  run: (id: string, after: number) => `${BASE}/runs${at(id, "stream")}${query({ after })}`,
};

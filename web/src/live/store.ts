// State shared by all pages and updated by the server's stream: the connection, open approvals, and changed resources.

import { computed, effect, signal } from "@preact/signals";
import { api, loginNeeded, streams } from "../api/client";
import { rememberToken } from "../api/first";
import { type Problem, asProblem } from "../api/problem";
import type { Approval, Meta, Run, Runtime, Session } from "../api/resources";
import { listenTogether } from "../api/shared";
import type { StreamState } from "../api/stream";
import { appearance } from "../theme";
import { type Notice, showNotice } from "./notify";

export const meta = signal<Meta | null>(null);
export const metaProblem = signal<Problem | null>(null);
export const connection = signal<StreamState>("connecting");
/** Incremented when the stream reconnects: lists that were loaded before may have missed changes. */
export const epoch = signal(0);
export const approvals = signal<readonly Approval[]>([]);
export const openApprovals = computed(() => approvals.value.filter((approval) => approval.state === "open"));
/** The current time, for ages and durations. It does not advance while the page is hidden. */
export const now = signal(Date.now());

type Listener = {
  session?: (session: Session) => void;
  run?: (run: Run) => void;
  runtime?: (runtime: Runtime) => void;
  /** A session was deleted, here or elsewhere. */
  gone?: (session: string) => void;
};

const listeners = new Set<Listener>();

/** Subscribes to changes of resources. Returns a function that unsubscribes. */
export function onChange(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export async function loadMeta(): Promise<void> {
  try {
    const known = await api.meta();
    meta.value = known;
    appearance.value = known.appearance;
    metaProblem.value = null;
    loginNeeded.value = known.tokenRequired && !known.authenticated;
    rememberToken(known.tokenRequired);
  } catch (error) {
    metaProblem.value = asProblem(error);
  }
}

export async function loadApprovals(): Promise<void> {
  try {
    approvals.value = (await api.approvals()).approvals;
  } catch {
    // They are loaded again when the stream reconnects.
  }
}

export function takeApproval(approval: Approval): void {
  const others = approvals.peek().filter((known) => known.id !== approval.id);
  approvals.value = approval.state === "open" ? [...others, approval] : others;
}

const TICK_MS = 1_000;

let stop: (() => void) | null = null;

/** Starts the stream, or restarts it after a login. */
export function startLive(): void {
  stop?.();
  if (loginNeeded.peek() || meta.peek() === null) return;
  stop = listenTogether("hangar.resources", {
    url: streams.resources,
    state: (state) => {
      connection.value = state;
    },
    event: ({ type, data }) => hear(type, JSON.parse(data)),
  });
}

function hear(type: string, data: unknown): void {
  switch (type) {
    case "hello":
      epoch.value += 1;
      void loadMeta();
      void loadApprovals();
      break;
    case "approval":
      takeApproval(data as Approval);
      break;
    case "session":
      for (const listener of listeners) listener.session?.(data as Session);
      break;
    case "run":
      for (const listener of listeners) listener.run?.(data as Run);
      break;
    case "runtime":
      for (const listener of listeners) listener.runtime?.(data as Runtime);
      break;
    case "notice":
      showNotice(data as Notice);
      break;
    case "gone": {
      const { kind, id } = data as { kind: string; id: string };
      if (kind !== "session") break;
      approvals.value = approvals.peek().filter((approval) => approval.sessionId !== id);
      for (const listener of listeners) listener.gone?.(id);
      break;
    }
    default:
    // A newer server may send other kinds.
  }
}

// A tab that needs a login gives up the shared stream.
effect(() => {
  if (!loginNeeded.value) return;
  stop?.();
  stop = null;
});

export function startClock(): void {
  setInterval(() => {
    if (document.visibilityState === "visible") now.value = Date.now();
  }, TICK_MS);
}

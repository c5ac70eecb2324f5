// A server-sent event stream that reconnects, resumes after the last event, and disconnects while the tab is hidden.
//
// Not `EventSource`: it cannot say why it failed, does not notice a silent server (a laptop that slept), and never
// reconnects after a status other than 200.

import { loginNeeded } from "./client";
import { asProblem, problemOf } from "./problem";
import { EventReader, type ServerEvent } from "./sse";

/** The server sends something every 15 s; after more than twice that, the connection counts as dead. */
const SILENCE_MS = 40_000;
const FIRST_RETRY_MS = 300;
const LAST_RETRY_MS = 5_000;
/** A connection that lasted this long resets the retry delay. */
const STEADY_MS = 3_000;
/** Browsers allow six connections to a server over all tabs, so a hidden tab closes its own after this time. */
const HIDDEN_MS = 60_000;

export type StreamState = "connecting" | "open" | "lost" | "ended";

export interface StreamHandlers {
  /** The URL to read from. Called before each attempt, because it names the last event that was received. */
  readonly url: () => string;
  readonly event: (event: ServerEvent) => void;
  readonly state?: (state: StreamState) => void;
  /** The server answered 404 or 410: there is no point in retrying. */
  readonly gone?: (detail: string) => void;
  /** Stay connected while the tab is hidden. */
  readonly alsoHidden?: boolean;
}

/** Starts to listen. Returns a function that stops. */
export function listen(handlers: StreamHandlers): () => void {
  let stopped = false;
  let current: AbortController | null = null;
  let retry: ReturnType<typeof setTimeout> | undefined;
  let hide: ReturnType<typeof setTimeout> | undefined;
  let delay = FIRST_RETRY_MS;

  const connect = async () => {
    clearTimeout(retry);
    if (stopped || current !== null || loginNeeded.peek()) return;
    const abort = new AbortController();
    current = abort;
    handlers.state?.("connecting");
    let opened = Number.POSITIVE_INFINITY;
    let silence = setTimeout(() => abort.abort(), SILENCE_MS);
    try {
      const response = await fetch(handlers.url(), { signal: abort.signal, headers: { accept: "text/event-stream" } });
      if (!response.ok || response.body === null) throw await problemOf(response);
      opened = Date.now();
      handlers.state?.("open");
      const reader = new EventReader();
      const decoder = new TextDecoder();
      const body = response.body.getReader();
      for (;;) {
        const { done, value } = await body.read();
        if (done || stopped) break;
        clearTimeout(silence);
        silence = setTimeout(() => abort.abort(), SILENCE_MS);
        for (const event of reader.feed(decoder.decode(value, { stream: true }))) handlers.event(event);
      }
    } catch (error) {
      const problem = asProblem(error);
      if (problem.status === 401) loginNeeded.value = true;
      if (problem.status === 404 || problem.status === 410) {
        end();
        handlers.gone?.(problem.message);
      }
    }
    clearTimeout(silence);
    current = null;
    if (stopped) return;
    handlers.state?.("lost");
    // A server that closes every connection immediately must not be asked three times a second.
    if (Date.now() - opened > STEADY_MS) delay = FIRST_RETRY_MS;
    if (!handlers.alsoHidden && document.visibilityState === "hidden" && hide === undefined) return;
    // Jitter: after a restart of the server, not all pages reconnect at the same moment.
    retry = setTimeout(connect, delay * (0.75 + Math.random() / 2));
    delay = Math.min(delay * 2, LAST_RETRY_MS);
  };

  const look = () => {
    clearTimeout(hide);
    hide = undefined;
    if (document.visibilityState === "hidden") {
      if (handlers.alsoHidden) return;
      hide = setTimeout(() => {
        hide = undefined;
        current?.abort();
      }, HIDDEN_MS);
    } else {
      now();
    }
  };
  const now = () => {
    delay = FIRST_RETRY_MS;
    void connect();
  };
  const end = () => {
    stopped = true;
    clearTimeout(retry);
    clearTimeout(hide);
    document.removeEventListener("visibilitychange", look);
    window.removeEventListener("online", now);
    current?.abort();
    handlers.state?.("ended");
  };

  document.addEventListener("visibilitychange", look);
  window.addEventListener("online", now);
  void connect();
  return end;
}

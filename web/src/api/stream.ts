// One live connection that is kept up: it comes back after a cut, goes on where it was, and lets go while nobody looks.
//
// Not `EventSource`: that one cannot say why it failed, does not notice a server that fell silent (a laptop that
// slept), and never comes back after an answer other than 200.

import { loginNeeded } from "./client";
import { asProblem, problemOf } from "./problem";
import { EventReader, type ServerEvent } from "./sse";

/** The server says something every 15 s; twice that and a bit is silence. */
const SILENCE_MS = 40_000;
const FIRST_RETRY_MS = 300;
const LAST_RETRY_MS = 5_000;
/** A connection that held this long was a good one. */
const STEADY_MS = 3_000;
/** Browsers keep six connections to a server, over all tabs: a tab that nobody sees gives its own back. */
const HIDDEN_MS = 60_000;

export type StreamState = "connecting" | "open" | "lost" | "ended";

export interface StreamHandlers {
  /** The address to read from, asked before each attempt: it names the last event that was seen. */
  readonly url: () => string;
  readonly event: (event: ServerEvent) => void;
  readonly state?: (state: StreamState) => void;
  /** The server does not know what is asked for; there is no point in trying again. */
  readonly gone?: (detail: string) => void;
  /** Stays connected while nobody sees the tab. */
  readonly alsoHidden?: boolean;
}

/** Starts to listen; the function that comes back ends it. */
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
    // A server that ends every connection at once is not to be asked three times a second.
    if (Date.now() - opened > STEADY_MS) delay = FIRST_RETRY_MS;
    if (!handlers.alsoHidden && document.visibilityState === "hidden" && hide === undefined) return;
    // Many pages come back to a server that was restarted: not all in the same moment.
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

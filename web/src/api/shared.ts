// One stream for all tabs of a browser. Browsers allow six connections to a server over all tabs; with a stream in each, the
// seventh tab would wait forever. The tab that holds the lock listens and broadcasts to the others; when it closes, the
// next one gets the lock and listens.

import type { ServerEvent } from "./sse";
import { type StreamHandlers, type StreamState, listen } from "./stream";

type Told = { is: "asking" } | { is: "state"; state: StreamState } | { is: "event"; event: ServerEvent };

/** Like `listen`, but also while the tab is hidden, because another tab may be visible. */
export function listenTogether(name: string, handlers: StreamHandlers): () => void {
  const all: StreamHandlers = { ...handlers, alsoHidden: true };
  // The Web Locks API exists in secure contexts only: not over plain HTTP from another machine.
  if (!("locks" in navigator)) return listen(all);
  const channel = new BroadcastChannel(name);
  const tell = (told: Told) => channel.postMessage(told);
  const waiting = new AbortController();
  let state: StreamState = "connecting";
  /** The first event of the connection, for tabs that open later. */
  let first: ServerEvent | null = null;
  let leads = false;
  let stop = () => {};
  channel.onmessage = ({ data }: MessageEvent<Told>) => {
    if (leads) {
      if (data.is !== "asking") return;
      tell({ is: "state", state });
      if (first !== null) tell({ is: "event", event: first });
    } else if (data.is === "state") {
      handlers.state?.(data.state);
    } else if (data.is === "event") {
      handlers.event(data.event);
    }
  };
  tell({ is: "asking" });
  const lead = () =>
    new Promise<void>((release) => {
      leads = true;
      const end = listen({
        ...all,
        state: (next) => {
          state = next;
          if (state !== "open") first = null;
          tell({ is: "state", state });
          handlers.state?.(state);
        },
        event: (event) => {
          first ??= event;
          tell({ is: "event", event });
          handlers.event(event);
        },
      });
      stop = () => {
        // The other tabs are not told: one of them takes over.
        channel.close();
        end();
        release();
      };
    });
  navigator.locks.request(name, { signal: waiting.signal }, lead).catch(() => {
    // Rejected only by the abort below.
  });
  return () => {
    waiting.abort();
    if (leads) stop();
    else channel.close();
  };
}

// One connection for all tabs of a browser. Browsers keep six connections to a server, over all tabs; a stream in each
// would leave the seventh tab waiting for ever. The tab that has the lock listens and tells the others; when it goes, the
// next one gets the lock and listens itself.

import type { ServerEvent } from "./sse";
import { type StreamHandlers, type StreamState, listen } from "./stream";

type Told = { is: "asking" } | { is: "state"; state: StreamState } | { is: "event"; event: ServerEvent };

/** Like `listen`, and also while the tab is hidden: what is heard may be for a tab that is not. */
export function listenTogether(name: string, handlers: StreamHandlers): () => void {
  const all: StreamHandlers = { ...handlers, alsoHidden: true };
  // Pages that came over plain HTTP from another machine have no locks.
  if (!("locks" in navigator)) return listen(all);
  const channel = new BroadcastChannel(name);
  const tell = (told: Told) => channel.postMessage(told);
  const waiting = new AbortController();
  let state: StreamState = "connecting";
  /** What a connection begins with; tabs that come later have not heard it. */
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
        // The others are not told that it ended: one of them goes on.
        channel.close();
        end();
        release();
      };
    });
  navigator.locks.request(name, { signal: waiting.signal }, lead).catch(() => {
    // Only ever because the wait was given up below.
  });
  return () => {
    waiting.abort();
    if (leads) stop();
    else channel.close();
  };
}

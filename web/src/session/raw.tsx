// The log of a session as it is: one event per row, as JSON where it is opened.

import { useEffect, useState } from "preact/hooks";
import { api } from "../api/client";
import { type Problem, asProblem } from "../api/problem";
import type { Session } from "../api/resources";
import { clock } from "../format";
import { Copy } from "../text/copy";
import { Empty, Loading, Trouble } from "../ui/parts";

/** Events of one request; older ones are loaded by a button. */
const PAGE = 200;

interface RawEvent {
  readonly seq: number;
  readonly type: string;
  readonly at: string;
  readonly json: string;
}

function rawOf({ seq, event }: { readonly seq: number; readonly event: unknown }): RawEvent {
  const { type, timestamp } = event as { readonly type?: string; readonly timestamp?: string };
  return { seq, type: type ?? "", at: timestamp ?? "", json: JSON.stringify(event, null, 2) };
}

export function RawView({ session }: { session: Session }) {
  const [events, setEvents] = useState<readonly RawEvent[] | null>(null);
  const [wanted, setWanted] = useState("");
  const [problem, setProblem] = useState<Problem | null>(null);
  const load = (before?: number) =>
    api.events(session.id, { limit: PAGE, ...(before !== undefined && { before }) }).then(
      (found) => setEvents((known) => [...found.events.map(rawOf), ...(before === undefined ? [] : (known ?? []))]),
      (error: unknown) => setProblem(asProblem(error)),
    );
  useEffect(() => void load(), [session.id, session.events]);
  if (events === null) return problem === null ? <Loading what="the events" /> : <Trouble problem={problem} />;
  const first = events[0]?.seq ?? 1;
  const shown = wanted === "" ? events : events.filter((event) => event.type.includes(wanted) || event.json.includes(wanted));
  return (
    <div class="raw">
      {problem && <Trouble problem={problem} />}
      <div class="changes-head">
        <input class="field" type="search" aria-label="Filter events" placeholder="Type or text" value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} />
        <span class="hint nowrap">
          {shown.length} of {session.events} events
        </span>
        <a class="button small" href={`/api/v1/sessions/${encodeURIComponent(session.id)}/events?limit=500`} target="_blank" rel="noreferrer">
          JSON
        </a>
        {first > 1 && (
          <button type="button" class="button small" onClick={() => void load(first)}>
            Older
          </button>
        )}
      </div>
      {shown.length === 0 ? (
        <Empty icon="search" title="No event matches" />
      ) : (
        <ol class="raw-events">
          {shown.map((event) => (
            <li key={event.seq}>
              <details>
                <summary>
                  <span class="raw-seq">{event.seq}</span> <code>{event.type}</code> <time dateTime={event.at}>{clock(event.at)}</time>
                </summary>
                <div class="raw-json">
                  <Copy text={() => event.json} />
                  <pre tabIndex={0}>{event.json}</pre>
                </div>
              </details>
            </li>
          ))}
        </ol>
      )}
    </div>
  );
}

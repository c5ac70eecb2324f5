// All sessions of this machine, newest first.

import { useEffect, useRef, useState } from "preact/hooks";
import { api } from "../api/client";
import { type Problem, asProblem } from "../api/problem";
import { SESSION_STATES, type Session, type SessionState } from "../api/resources";
import { dollars, sessionTitle, shortPath, tokens } from "../format";
import { moveFocus, useShortcuts } from "../keyboard";
import { epoch, onChange } from "../live/store";
import { paths, refine, search } from "../router";
import { Icon } from "../ui/icons";
import { Age, Empty, Key, Loading, PageHead, StateMark, Trouble } from "../ui/parts";

/** Typing is not asked about letter by letter. */
const TYPING_MS = 150;

interface Filter {
  readonly query: string;
  readonly state: string;
  readonly runtime: string;
}

function isState(word: string): word is SessionState {
  return (SESSION_STATES as readonly string[]).includes(word);
}

function asQuery(filter: Filter) {
  return {
    ...(filter.query === "" ? {} : { query: filter.query }),
    ...(isState(filter.state) ? { state: filter.state } : {}),
    ...(filter.runtime === "" ? {} : { runtime: filter.runtime }),
  };
}

function matches(session: Session, filter: Filter): boolean {
  return (filter.state === "" || session.state === filter.state) && (filter.runtime === "" || session.runtime === filter.runtime) && filter.query === "";
}

export function SessionsPage() {
  const filter: Filter = {
    query: search.value.get("query") ?? "",
    state: search.value.get("state") ?? "",
    runtime: search.value.get("runtime") ?? "",
  };
  const [sessions, setSessions] = useState<readonly Session[] | null>(null);
  const [next, setNext] = useState<string | undefined>();
  const [runtimes, setRuntimes] = useState<readonly string[]>([]);
  const [problem, setProblem] = useState<Problem | null>(null);
  const searchField = useRef<HTMLInputElement>(null);
  const key = JSON.stringify(filter);

  useEffect(() => {
    const cancel = new AbortController();
    const timer = setTimeout(
      () => {
        api.sessions(asQuery(filter), cancel.signal).then(
          (page) => {
            setSessions(page.sessions);
            setNext(page.next);
            setProblem(null);
          },
          (error: unknown) => {
            if (!cancel.signal.aborted) setProblem(asProblem(error));
          },
        );
      },
      sessions === null ? 0 : TYPING_MS,
    );
    return () => {
      clearTimeout(timer);
      cancel.abort();
    };
  }, [key, epoch.value]);

  useEffect(() => {
    api.runtimes(false).then(
      (answer) => setRuntimes(answer.runtimes.map((runtime) => runtime.name)),
      () => setRuntimes([]),
    );
  }, []);

  useEffect(
    () =>
      onChange({
        session: (changed) =>
          setSessions((known) => {
            if (known === null) return known;
            const others = known.filter((session) => session.id !== changed.id);
            if (others.length < known.length) {
              return known.map((session) => (session.id === changed.id ? changed : session));
            }
            return matches(changed, filter) ? [changed, ...known] : known;
          }),
      }),
    [key],
  );

  useShortcuts("Sessions", [
    { keys: "/", does: "Search", run: () => searchField.current?.focus() },
    { keys: "j", does: "Next session", run: () => moveFocus(".session-row", 1) },
    { keys: "k", does: "Previous session", run: () => moveFocus(".session-row", -1) },
  ]);

  const more = async () => {
    if (next === undefined) return;
    const page = await api.sessions({ ...asQuery(filter), cursor: next });
    setSessions((known) => [...(known ?? []), ...page.sessions]);
    setNext(page.next);
  };
  const filtered = filter.query !== "" || filter.state !== "" || filter.runtime !== "";

  return (
    <div class="page">
      <PageHead title="Sessions">
        <a class="button primary only-narrow" href="/new">
          <Icon name="plus" /> New session
        </a>
      </PageHead>
      <div class="filters">
        <label class="search-field">
          <Icon name="search" />
          <input
            ref={searchField}
            type="search"
            value={filter.query}
            placeholder="Search sessions"
            aria-label="Search sessions"
            onInput={(event) => refine({ query: event.currentTarget.value })}
            onKeyDown={(event) => {
              if (event.key === "Escape") event.currentTarget.blur();
            }}
          />
          <Key keys="/" />
        </label>
        <select class="field" aria-label="State" value={filter.state} onChange={(event) => refine({ state: event.currentTarget.value })}>
          <option value="">Any state</option>
          {SESSION_STATES.map((state) => (
            <option value={state}>{state}</option>
          ))}
        </select>
        <select class="field" aria-label="Runtime" value={filter.runtime} onChange={(event) => refine({ runtime: event.currentTarget.value })}>
          <option value="">Any runtime</option>
          {[...new Set([...runtimes, ...(filter.runtime === "" ? [] : [filter.runtime])])].map((name) => (
            <option value={name}>{name}</option>
          ))}
        </select>
      </div>
      {problem && <Trouble problem={problem} />}
      {sessions === null && problem === null && <Loading what="sessions" />}
      {sessions !== null && sessions.length === 0 && (filtered ? <NothingFound /> : <NoSessions />)}
      {sessions !== null && sessions.length > 0 && (
        <ul class="rows" aria-label="Sessions">
          {sessions.map((session) => (
            <SessionRow key={session.id} session={session} />
          ))}
        </ul>
      )}
      {next !== undefined && (
        <button type="button" class="button" onClick={() => void more().catch((error: unknown) => setProblem(asProblem(error)))}>
          Show more
        </button>
      )}
    </div>
  );
}

function NothingFound() {
  return (
    <Empty icon="search" title="No session matches">
      <p>Try fewer words, or</p>
      <button type="button" class="button" onClick={() => refine({ query: "", state: "", runtime: "" })}>
        Show all
      </button>
    </Empty>
  );
}

function NoSessions() {
  return (
    <Empty icon="sessions" title="No sessions yet">
      <p>
        A session is a conversation with an agent that works in a folder of yours. Those that you start in a terminal with{" "}
        <code>hangar</code> are listed here too.
      </p>
      <a class="button primary" href="/new">
        <Icon name="plus" /> Start the first one
      </a>
    </Empty>
  );
}

function cost(session: Session): string {
  const usage = session.usage ?? {};
  if (usage.costUsd !== undefined && usage.costUsd > 0) return dollars(usage.costUsd);
  const sum = (usage.inputTokens ?? 0) + (usage.outputTokens ?? 0);
  return sum === 0 ? "" : `${tokens(sum)} tok`;
}

function SessionRow({ session }: { session: Session }) {
  return (
    <li>
      <a class="session-row list-row" href={paths.session(session.id)}>
        <span class="cell-state">
          <StateMark state={session.state} />
        </span>
        <span class="cell-name">
          <span class="row-title">{sessionTitle(session)}</span>
          <span class="row-sub" title={session.workspace}>
            {session.run === undefined ? shortPath(session.workspace) : `${session.run.job} · ${session.run.task}`}
          </span>
        </span>
        <span class="cell-model">
          <span>{session.runtime}</span>
          {session.model !== undefined && <span class="row-sub">{session.model}</span>}
        </span>
        <span class="cell-cost">{cost(session)}</span>
        <span class="cell-age">
          <Age at={session.updatedAt} />
        </span>
      </a>
    </li>
  );
}

// All sessions of this machine, newest first.

import { useEffect, useRef, useState } from "preact/hooks";
import { api } from "../api/client";
import { type Problem, asProblem } from "../api/problem";
import { SESSION_STATES, type Session, type SessionState } from "../api/resources";
import { cost, day, sessionTitle, shortPath, tokens } from "../format";
import { moveFocus, useShortcuts } from "../keyboard";
import { epoch, onChange } from "../live/store";
import { paths, refine, search } from "../router";
import { Icon } from "../ui/icons";
import { Age, Empty, Key, Loading, PageHead, StateMark, Trouble } from "../ui/parts";

/** Debounce of the search field. */
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

interface Seen {
  /** The query, and the server that answered it: a list of another server is useless. */
  readonly key: string;
  readonly sessions: readonly Session[];
  readonly next: string | undefined;
}

/** The list as last shown, so that it appears immediately when the reader returns to the page. */
let seen: Seen | null = null;

onChange({
  gone: (id) => {
    if (seen !== null) seen = { ...seen, sessions: seen.sessions.filter((session) => session.id !== id) };
  },
});

/** Merges the newest page with the known sessions, so that pages loaded later are kept. */
function renewed(known: Seen | null, key: string, page: { readonly sessions: readonly Session[]; readonly next?: string }): Seen {
  if (known === null || known.key !== key || known.sessions.length <= page.sessions.length) return { key, sessions: page.sessions, next: page.next };
  const fresh = new Set(page.sessions.map((session) => session.id));
  return { ...known, sessions: [...page.sessions, ...known.sessions.filter((session) => !fresh.has(session.id))] };
}

export function SessionsPage() {
  const filter: Filter = {
    query: search.value.get("query") ?? "",
    state: search.value.get("state") ?? "",
    runtime: search.value.get("runtime") ?? "",
  };
  const asked = JSON.stringify(filter);
  const key = `${asked} ${epoch.value}`;
  const [list, setList] = useState(() => (seen?.key === key ? seen : null));
  const [runtimes, setRuntimes] = useState<readonly string[]>([]);
  const [problem, setProblem] = useState<Problem | null>(null);
  const searchField = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (list !== null) seen = list;
  }, [list]);

  const load = (cancel: AbortSignal) =>
    api.sessions(asQuery(filter), cancel).then(
      (page) => {
        setList((known) => renewed(known, key, page));
        setProblem(null);
      },
      (error: unknown) => {
        if (!cancel.aborted) setProblem(asProblem(error));
      },
    );
  useEffect(() => {
    const cancel = new AbortController();
    const timer = setTimeout(() => void load(cancel.signal), list === null ? 0 : TYPING_MS);
    return () => {
      clearTimeout(timer);
      cancel.abort();
    };
  }, [asked]);
  const loadedIn = useRef(epoch.value);
  useEffect(() => {
    if (loadedIn.current === epoch.value) return;
    loadedIn.current = epoch.value;
    const cancel = new AbortController();
    void load(cancel.signal);
    return () => cancel.abort();
  }, [epoch.value]);

  useEffect(() => {
    api.runtimes(false).then(
      (answer) => setRuntimes(answer.runtimes.map((runtime) => runtime.name)),
      () => setRuntimes([]),
    );
  }, []);

  const update = (change: (sessions: readonly Session[]) => readonly Session[]) =>
    setList((known) => (known === null ? known : { ...known, sessions: change(known.sessions) }));
  useEffect(
    () =>
      onChange({
        session: (changed) =>
          update((known) => {
            if (known.some((session) => session.id === changed.id)) {
              return known.map((session) => (session.id === changed.id ? changed : session));
            }
            return matches(changed, filter) ? [changed, ...known] : known;
          }),
        gone: (id) => update((known) => known.filter((session) => session.id !== id)),
      }),
    [key],
  );

  useShortcuts("Sessions", [
    { keys: "/", does: "Search", run: () => searchField.current?.focus() },
    { keys: "j", does: "Next session", run: () => moveFocus(".session-row", 1) },
    { keys: "k", does: "Previous session", run: () => moveFocus(".session-row", -1) },
  ]);

  const more = async () => {
    if (list?.next === undefined) return;
    const page = await api.sessions({ ...asQuery(filter), cursor: list.next });
    setList((known) => (known === null ? known : { ...known, sessions: [...known.sessions, ...page.sessions], next: page.next }));
  };
  const sessions = list?.sessions ?? null;
  const filtered = filter.query !== "" || filter.state !== "" || filter.runtime !== "";

  return (
    <div class="page">
      <PageHead title="Sessions">
        <a class="button primary only-narrow" href="/new">
          <Icon name="plus" /> New session
        </a>
        <div class="filters" role="search">
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
      </PageHead>
      {problem && <Trouble problem={problem} />}
      {sessions === null && problem === null && <Loading what="sessions" />}
      {sessions !== null && sessions.length === 0 && (filtered ? <NothingFound /> : <NoSessions />)}
      {sessions !== null && sessions.length > 0 && (
        <div class="days">
          {byDay(sessions).map(([heading, those]) => (
            <section aria-label={heading} key={heading}>
              <h2>{heading}</h2>
              <ul class="rows">
                {those.map((session) => (
                  <SessionRow key={session.id} session={session} />
                ))}
              </ul>
            </section>
          ))}
        </div>
      )}
      {list?.next !== undefined && (
        <button type="button" class="button" onClick={() => void more().catch((error: unknown) => setProblem(asProblem(error)))}>
          Show more
        </button>
      )}
    </div>
  );
}

function byDay(sessions: readonly Session[]): [string, Session[]][] {
  const days = new Map<string, Session[]>();
  const today = Date.now();
  for (const session of sessions) {
    const heading = day(session.updatedAt, today);
    const those = days.get(heading);
    if (those === undefined) days.set(heading, [session]);
    else those.push(session);
  }
  return [...days];
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

function used(session: Session): string {
  const usage = session.usage ?? {};
  if (usage.costUsd !== undefined && usage.costUsd > 0) return cost(usage) ?? "";
  const sum = (usage.inputTokens ?? 0) + (usage.outputTokens ?? 0);
  return sum === 0 ? "" : `${tokens(sum)} tok`;
}

function SessionRow({ session }: { session: Session }) {
  const { run } = session;
  const words = sessionTitle(session);
  // Sessions of a job are named after their tasks, since all start with the same prompt of the job's file.
  const title = run === undefined ? words : run.task;
  return (
    <li>
      <a class="session-row list-row" href={paths.session(session.id)}>
        <span class="cell-state">
          <StateMark state={session.state} />
        </span>
        <span class="cell-name">
          <span class="row-title">{title}</span>
          <span class="row-sub" title={session.workspace}>
            {run === undefined ? shortPath(session.workspace) : `${run.job} · ${words}`}
          </span>
        </span>
        <span class="cell-model">
          {session.model !== undefined && <span>{session.model}</span>}
          <span class="row-sub">{session.agent ?? session.runtime}</span>
        </span>
        <span class="cell-cost">{used(session)}</span>
        <span class="cell-age">
          <Age at={session.updatedAt} />
        </span>
      </a>
    </li>
  );
}

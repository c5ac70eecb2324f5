// The frame around every page: navigation, open approvals, and the state of the connection.

import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { loginNeeded } from "./api/client";
import type { Problem } from "./api/problem";
import { helpOpen, useShortcuts } from "./keyboard";
import { connection, loadMeta, meta, metaProblem, openApprovals, startLive } from "./live/store";
import { ApprovalsPage } from "./pages/approvals";
import { CostsPage } from "./pages/costs";
import { InboxPage } from "./pages/inbox";
import { IssuePage } from "./pages/issue";
import { IssuesPage } from "./pages/issues";
import { JobsPage } from "./pages/jobs";
import { LoginPage } from "./pages/login";
import { FleetPage } from "./pages/fleet";
import { MemoryPage } from "./pages/memory";
import { NewSessionPage } from "./pages/newSession";
import { QueuePage } from "./pages/queue";
import { RunPage } from "./pages/run";
import { RunsPage } from "./pages/runs";
import { RuntimesPage } from "./pages/runtimes";
import { SearchPage } from "./pages/search";
import { SessionPage } from "./pages/session";
import { SessionsPage } from "./pages/sessions";
import { SettingsPage } from "./pages/settings";
import { WorkflowPage } from "./pages/workflow";
import { type Page, arrival, go, route } from "./router";
import { nextTheme, shownTheme, theme } from "./theme";
import { Help } from "./ui/help";
import { Icon, type IconName } from "./ui/icons";
import { Empty, Trouble } from "./ui/parts";

const AWAY_AGAIN_MS = 2_000;

interface Place {
  readonly page: Page;
  readonly path: string;
  readonly label: string;
  readonly icon: IconName;
  readonly keys: string;
  /** Pages that are part of this one. */
  readonly holds: readonly Page[];
}

const PLACES: readonly Place[] = [
  { page: "sessions", path: "/sessions", label: "Sessions", icon: "sessions", keys: "g s", holds: ["session"] },
  { page: "approvals", path: "/approvals", label: "Approvals", icon: "approvals", keys: "g a", holds: [] },
  { page: "inbox", path: "/inbox", label: "Inbox", icon: "down", keys: "g b", holds: [] },
  { page: "issues", path: "/issues", label: "Issues", icon: "form", keys: "g i", holds: ["issue", "workflow"] },
  { page: "jobs", path: "/jobs", label: "Jobs", icon: "jobs", keys: "g j", holds: [] },
  { page: "runs", path: "/runs", label: "Runs", icon: "runs", keys: "g r", holds: ["run"] },
  { page: "queue", path: "/queue", label: "Queue", icon: "plan", keys: "g q", holds: [] },
  { page: "costs", path: "/costs", label: "Costs", icon: "form", keys: "g c", holds: [] },
  { page: "search", path: "/search", label: "Search", icon: "search", keys: "g /", holds: [] },
  { page: "memory", path: "/memory", label: "Memory", icon: "thought", keys: "g m", holds: [] },
  { page: "runtimes", path: "/runtimes", label: "Runtimes", icon: "runtimes", keys: "g t", holds: [] },
  { page: "fleet", path: "/fleet", label: "Fleet", icon: "runtimes", keys: "g f", holds: [] },
  { page: "settings", path: "/settings", label: "Settings", icon: "settings", keys: "g ,", holds: [] },
];

/** The places of this portal: one of a single machine has no fleet. */
function shownPlaces(): readonly Place[] {
  return PLACES.filter((place) => place.page !== "fleet" || meta.value?.fleet === true);
}

function PageOf() {
  const here = route.value;
  switch (here.page) {
    case "sessions":
      return <SessionsPage />;
    case "session":
      return <SessionPage key={here.id} id={here.id} />;
    case "new":
      return <NewSessionPage />;
    case "jobs":
      return <JobsPage />;
    case "runs":
      return <RunsPage />;
    case "run":
      return <RunPage key={here.id} id={here.id} />;
    case "approvals":
      return <ApprovalsPage />;
    case "queue":
      return <QueuePage />;
    case "issues":
      return <IssuesPage />;
    case "issue":
      return <IssuePage key={`${here.workflow}/${here.id}`} workflow={here.workflow} id={here.id} />;
    case "workflow":
      return <WorkflowPage key={here.id} id={here.id} />;
    case "inbox":
      return <InboxPage />;
    case "costs":
      return <CostsPage />;
    case "search":
      return <SearchPage />;
    case "memory":
      return <MemoryPage />;
    case "fleet":
      return <FleetPage />;
    case "runtimes":
      return <RuntimesPage />;
    case "settings":
      return <SettingsPage />;
    case "unknown":
      return (
        <Empty icon="search" title="There is no such page">
          <p>
            <code>{here.path}</code> is none of ours.
          </p>
          <a class="button" href="/sessions">
            Go to the sessions
          </a>
        </Empty>
      );
  }
}

export function App() {
  if (loginNeeded.value) return <LoginPage />;
  // Wait until it is known whether a token is needed: earlier requests would be refused.
  if (meta.value !== null) return <Frame />;
  return metaProblem.value === null ? null : <Away problem={metaProblem.value} />;
}

/** The page came out of a cache, or the server went while it loaded. */
function Away({ problem }: { problem: Problem }) {
  useEffect(() => {
    const timer = setTimeout(() => void loadMeta().then(startLive), AWAY_AGAIN_MS);
    return () => clearTimeout(timer);
  }, [problem]);
  return (
    <main class="login">
      <Trouble problem={problem} />
    </main>
  );
}

function Frame() {
  useShortcuts("Everywhere", [
    ...shownPlaces().map((place) => ({ keys: place.keys, does: place.label, run: () => go(place.path) })),
    { keys: "c", does: "New session", run: () => go("/new") },
    { keys: "t", does: "Change the theme", run: nextTheme },
    {
      keys: "?",
      does: "These keys",
      run: () => {
        helpOpen.value = !helpOpen.value;
      },
    },
  ]);
  const main = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    main.current?.scrollTo(0, arrival.value.top);
  }, [arrival.value]);
  const waiting = openApprovals.value.length;
  useEffect(() => {
    const mark = () => {
      const bare = document.title.replace(/^\(\d+\) /, "");
      const title = waiting > 0 ? `(${waiting}) ${bare}` : bare;
      if (document.title !== title) document.title = title;
    };
    mark();
    // Pages set their own title as they come; the number stays in front of it.
    const watch = new MutationObserver(mark);
    const title = document.querySelector("title");
    if (title !== null) watch.observe(title, { childList: true });
    return () => watch.disconnect();
  }, [waiting]);
  // Of a tab among many only its icon is seen.
  useEffect(() => {
    document.querySelector('link[rel="icon"]')?.setAttribute("href", waiting > 0 ? "/favicon-waiting.svg" : "/favicon.svg");
  }, [waiting > 0]);
  return (
    <div class="frame">
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          main.current?.focus();
        }}
      >
        Skip to the page
      </a>
      <Navigation waiting={waiting} />
      <main id="main" tabIndex={-1} ref={main}>
        <ConnectionBar />
        <PageOf />
      </main>
      <Help />
    </div>
  );
}

const THEME_ICONS = { system: "screen", light: "sun", dark: "moon" } as const;

function Navigation({ waiting }: { waiting: number }) {
  const here = route.value.page;
  const places = useRef<HTMLUListElement>(null);
  // A phone shows only some of the places; the current one is among them.
  useEffect(() => {
    places.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [here]);
  return (
    <nav class="nav" aria-label="Main">
      <a class="brand" href="/sessions">
        <img src="/favicon.svg" alt="" width="22" height="22" />
        <span>Hangar</span>
      </a>
      <a class="button primary new" href="/new" title="New session (c)">
        <Icon name="plus" /> <span class="label">New session</span>
      </a>
      <ul ref={places}>
        {shownPlaces().map((place) => {
          const current = place.page === here || place.holds.includes(here);
          return (
            <li>
              <a href={place.path} class="place" aria-current={current ? "page" : undefined} title={`${place.label} (${place.keys})`}>
                <Icon name={place.icon} />
                <span>{place.label}</span>
                {place.page === "approvals" && waiting > 0 && (
                  <span class="count" aria-label={`${waiting} waiting`}>
                    {waiting}
                  </span>
                )}
              </a>
            </li>
          );
        })}
      </ul>
      <div class="nav-foot">
        <ConnectionMark />
        <span class="nav-buttons">
          <button type="button" class="button icon-only quiet" aria-label={`Theme: ${theme.value}`} title={`Theme: ${theme.value === "configured" ? `as configured, ${shownTheme.value}` : theme.value} (t)`} onClick={nextTheme}>
            <Icon name={THEME_ICONS[shownTheme.value]} />
          </button>
          <button
            type="button"
            class="button icon-only quiet"
            aria-label="Keys"
            title="Keys (?)"
            onClick={() => {
              helpOpen.value = true;
            }}
          >
            <Icon name="keyboard" />
          </button>
        </span>
      </div>
    </nav>
  );
}

function ConnectionMark() {
  const state = connection.value;
  const words = state === "open" ? "Connected" : state === "lost" ? "Disconnected" : "Connecting";
  return (
    <span class={`state tone-${state === "open" ? "good" : state === "lost" ? "bad" : "none"}`} data-connection={state} title={`Hangar ${meta.value?.version ?? ""}`}>
      <span class="dot" aria-hidden="true" />
      <span class="word">{words}</span>
    </span>
  );
}

/** In the way only when something is wrong; on a small screen it is all there is to see of the connection. */
function ConnectionBar() {
  if (connection.value !== "lost") return null;
  return (
    <div class="connection-bar" role="status">
      Hangar does not answer. Is <code>hangar up</code> still running? Trying again…
    </div>
  );
}

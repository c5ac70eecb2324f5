// URLs and pages. A URL has everything needed to show the same page again after a reload.

import { batch, signal } from "@preact/signals";

export type Route =
  | { page: "sessions" }
  | { page: "session"; id: string }
  | { page: "new" }
  | { page: "jobs" }
  | { page: "runs" }
  | { page: "run"; id: string }
  | { page: "approvals" }
  | { page: "queue" }
  | { page: "issues" }
  | { page: "issue"; workflow: string; id: string }
  | { page: "workflow"; id: string }
  | { page: "inbox" }
  | { page: "costs" }
  | { page: "search" }
  | { page: "memory" }
  | { page: "fleet" }
  | { page: "runtimes" }
  | { page: "settings" }
  | { page: "unknown"; path: string };

export type Page = Route["page"];

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

export function parse(path: string): Route {
  const [first, second, third, ...rest] = path.split("/").filter((segment) => segment !== "");
  if (third !== undefined) {
    const isIssue = first === "issues" && second !== undefined && rest.length === 0;
    return isIssue ? { page: "issue", workflow: decoded(second), id: decoded(third) } : { page: "unknown", path };
  }
  if (second !== undefined) {
    if (first === "sessions") return { page: "session", id: decoded(second) };
    if (first === "runs") return { page: "run", id: decoded(second) };
    if (first === "workflows") return { page: "workflow", id: decoded(second) };
    return { page: "unknown", path };
  }
  switch (first) {
    case undefined:
    case "index.html":
    case "sessions":
      return { page: "sessions" };
    case "new":
    case "jobs":
    case "runs":
    case "approvals":
    case "queue":
    case "issues":
    case "inbox":
    case "costs":
    case "search":
    case "memory":
    case "fleet":
    case "runtimes":
    case "settings":
      return { page: first };
    default:
      return { page: "unknown", path };
  }
}

export const route = signal<Route>(parse(location.pathname));
export const search = signal(new URLSearchParams(location.search));

/** Scroll position of a page: the top, or the earlier position when the reader goes back to it. */
export const arrival = signal({ top: 0 });

/** Places that were left, by address; who goes back further than that begins at the top. */
const MOST_LEFT = 50;
const left = new Map<string, number>();
let here = address();

function address(): string {
  return location.pathname + location.search;
}

/** Notes how far down the page is that is about to go. */
function leave(): void {
  left.delete(here);
  left.set(here, document.getElementById("main")?.scrollTop ?? 0);
  const [oldest] = left.keys();
  if (left.size > MOST_LEFT && oldest !== undefined) left.delete(oldest);
}

function arrive(top: number): void {
  here = address();
  batch(() => {
    route.value = parse(location.pathname);
    search.value = new URLSearchParams(location.search);
    arrival.value = { top };
  });
}

export function go(path: string): void {
  leave();
  if (path !== address()) history.pushState(null, "", path);
  arrive(0);
}

function goBack(): void {
  leave();
  arrive(left.get(address()) ?? 0);
}

/** Changes the query of this page without a history entry: going back should not undo filters. */
export function refine(values: Record<string, string>): void {
  const next = new URLSearchParams(search.peek());
  for (const [name, value] of Object.entries(values)) {
    if (value === "") next.delete(name);
    else next.set(name, value);
  }
  const text = next.toString();
  history.replaceState(null, "", location.pathname + (text === "" ? "" : `?${text}`));
  search.value = next;
  here = address();
}

export const paths = {
  session: (id: string) => `/sessions/${encodeURIComponent(id)}`,
  run: (id: string) => `/runs/${encodeURIComponent(id)}`,
  issue: (workflow: string, id: string) => `/issues/${encodeURIComponent(workflow)}/${encodeURIComponent(id)}`,
  workflow: (key: string) => `/workflows/${encodeURIComponent(key)}`,
};

/** Plain clicks on links of our own stay in the application; all others are the browser's. */
export function startRouting(): void {
  history.scrollRestoration = "manual";
  window.addEventListener("popstate", goBack);
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (link === null || link.target !== "" || link.origin !== location.origin || link.hasAttribute("download")) return;
    if (link.pathname.startsWith("/api/")) return;
    event.preventDefault();
    go(link.pathname + link.search);
  });
}

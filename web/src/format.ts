// Numbers and times in as few characters as one can read at a glance.

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

function seconds(from: string, to: number): number {
  const start = Date.parse(from);
  return Number.isNaN(start) ? 0 : Math.max(0, Math.round((to - start) / 1000));
}

export function age(at: string, now: number): string {
  const passed = seconds(at, now);
  if (passed < 10) return "now";
  if (passed < MINUTE) return `${passed}s`;
  if (passed < HOUR) return `${Math.floor(passed / MINUTE)}m`;
  if (passed < DAY) return `${Math.floor(passed / HOUR)}h`;
  return `${Math.floor(passed / DAY)}d`;
}

/** In a sentence. */
export function ago(at: string, now: number): string {
  const passed = age(at, now);
  return passed === "now" ? "just now" : `${passed} ago`;
}

/** Under which heading something of that day stands in a list. */
export function day(at: string, now: number): string {
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) return "Some day";
  const midnight = new Date(now).setHours(0, 0, 0, 0);
  const days = Math.round((midnight - new Date(time).setHours(0, 0, 0, 0)) / (DAY * 1_000));
  if (days <= 0) return "Today";
  if (days === 1) return "Yesterday";
  if (days < 7) return time.toLocaleDateString([], { weekday: "long" });
  return time.toLocaleDateString([], { month: "long", year: "numeric" });
}

export function duration(milliseconds: number): string {
  if (milliseconds < 1_000) return `${Math.max(0, Math.round(milliseconds))} ms`;
  const whole = milliseconds / 1_000;
  if (whole < 10) return `${whole.toFixed(1)} s`;
  if (whole < MINUTE) return `${Math.round(whole)} s`;
  if (whole < HOUR) return `${Math.floor(whole / MINUTE)}m ${Math.round(whole % MINUTE)}s`;
  return `${Math.floor(whole / HOUR)}h ${Math.floor((whole % HOUR) / MINUTE)}m`;
}

export function between(from: string, to: string | number): string {
  const end = typeof to === "number" ? to : Date.parse(to);
  return duration(end - Date.parse(from));
}

export function tokens(count: number): string {
  if (count < 1_000) return String(count);
  if (count < 10_000) return `${(count / 1_000).toFixed(1)}k`;
  if (count < 1_000_000) return `${Math.round(count / 1_000)}k`;
  return `${(count / 1_000_000).toFixed(1)}M`;
}

export function bytes(count: number): string {
  if (count < 1_024) return `${count} B`;
  if (count < 1_024 * 1_024) return `${Math.round(count / 1_024)} KB`;
  return `${(count / 1_024 / 1_024).toFixed(1)} MB`;
}

/** Known cost of a session; a lower bound where the cost of some calls is not known. */
export function cost(usage: { costUsd?: number; unpricedCalls?: number }): string | undefined {
  if (usage.costUsd === undefined) return undefined;
  return (usage.unpricedCalls ?? 0) > 0 ? `≥ ${dollars(usage.costUsd)}` : dollars(usage.costUsd);
}

export function dollars(amount: number): string {
  if (amount === 0) return "$0";
  return amount < 0.01 ? "<$0.01" : `$${amount.toFixed(2)}`;
}

export function clock(at: string): string {
  const time = new Date(at);
  if (Number.isNaN(time.getTime())) return "";
  return time.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
}

export function moment(at: string): string {
  const time = new Date(at);
  return Number.isNaN(time.getTime()) ? at : time.toLocaleString();
}

/** The server's sentences name things in lower case, as programs do; on a page they begin like sentences. */
export function sentence(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** A session's name is the first message at first, which may have many lines. */
export function sessionTitle(session: { readonly name?: string; readonly id: string }): string {
  const line = (session.name ?? "").split("\n").find((text) => text.trim() !== "");
  return line ?? `Session ${session.id.slice(0, 8)}`;
}

/** The end of a path is what tells it from others. */
export function shortPath(path: string): string {
  const parts = path.split("/").filter((part) => part !== "");
  return parts.length <= 2 ? path : `…/${parts.slice(-2).join("/")}`;
}

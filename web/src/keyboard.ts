// Keyboard shortcuts. The application and each page register their keys; the most recently registered handler wins.

import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

export interface Shortcut {
  /** As the help shows it: `j`, `g s` (one after the other), `Ctrl+Enter`. */
  readonly keys: string;
  readonly does: string;
  readonly run: (event: KeyboardEvent) => void;
  /** Also while a field is being written in. */
  readonly inFields?: boolean;
}

export interface Group {
  readonly title: string;
  readonly shortcuts: readonly Shortcut[];
}

export const groups = signal<readonly Group[]>([]);
export const helpOpen = signal(false);

/** Timeout of the second key of a pair. */
const PAIR_MS = 1_200;

let first: { key: string; at: number } | null = null;

function named(event: KeyboardEvent): string {
  const parts = [];
  if (event.ctrlKey || event.metaKey) parts.push("Ctrl");
  if (event.altKey) parts.push("Alt");
  if (event.shiftKey && event.key.length > 1) parts.push("Shift");
  parts.push(event.key === " " ? "Space" : event.key);
  return parts.join("+");
}

function isField(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement || isTextInput(target))
  );
}

function isTextInput(target: HTMLElement): boolean {
  return target instanceof HTMLInputElement && !["checkbox", "radio", "button", "submit"].includes(target.type);
}

function onKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing) return;
  const key = named(event);
  const writing = isField(event.target);
  // A dialog has its own keys; the help goes by the key that it came with, too.
  if (document.querySelector("dialog[open]") !== null && !(helpOpen.peek() && key === "?")) return;
  const now = Date.now();
  const pair = first !== null && now - first.at < PAIR_MS ? `${first.key} ${key}` : null;
  first = null;
  const all = [...groups.peek()].reverse().flatMap((group) => group.shortcuts);
  const allowed = all.filter((shortcut) => !writing || shortcut.inFields === true);
  const hit = allowed.find((shortcut) => shortcut.keys === pair) ?? allowed.find((shortcut) => shortcut.keys === key);
  if (hit !== undefined) {
    event.preventDefault();
    hit.run(event);
  } else if (allowed.some((shortcut) => shortcut.keys.startsWith(`${key} `))) {
    first = { key, at: now };
  }
}

export function startKeyboard(): void {
  window.addEventListener("keydown", onKey);
}

/** The keys of a part of the page, as long as it is shown. */
export function useShortcuts(title: string, shortcuts: readonly Shortcut[]): void {
  const newest = useRef(shortcuts);
  newest.current = shortcuts;
  const names = shortcuts.map((shortcut) => shortcut.keys).join();
  useEffect(() => {
    // What a key does may change with every drawing; which keys there are does not.
    const stable = newest.current.map((shortcut, index) => ({
      ...shortcut,
      run: (event: KeyboardEvent) => newest.current[index]?.run(event),
    }));
    const group = { title, shortcuts: stable };
    groups.value = [...groups.peek(), group];
    return () => {
      groups.value = groups.peek().filter((other) => other !== group);
    };
  }, [title, names]);
}

/** `j` and `k` move the focus over the elements that match; the page scrolls with it. */
export function moveFocus(selector: string, by: 1 | -1): void {
  const all = [...document.querySelectorAll<HTMLElement>(selector)];
  const now = all.findIndex((element) => element === document.activeElement || element.contains(document.activeElement));
  const next = all[now === -1 ? (by === 1 ? 0 : all.length - 1) : Math.max(0, Math.min(all.length - 1, now + by))];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

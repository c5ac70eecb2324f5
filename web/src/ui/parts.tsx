// Components that all pages share.

import { computed } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import { type Problem, asProblem } from "../api/problem";
import type { RunState, SessionState, WorkState } from "../api/resources";
import { age, moment, sentence } from "../format";
import { now } from "../live/store";
import { Icon, type IconName } from "./icons";

type AnyState = SessionState | RunState | WorkState;

const TONES: { readonly [state in AnyState]: string } = {
  working: "busy",
  running: "busy",
  waiting: "warn",
  queued: "none",
  idle: "good",
  succeeded: "good",
  closed: "none",
  stopped: "none",
  canceled: "none",
  failed: "bad",
  interrupted: "warn",
  limited: "warn",
};

export function StateMark({ state, label }: { state: AnyState; label?: string }) {
  return (
    <span class={`state tone-${TONES[state]}`} data-state={state}>
      <span class="dot" aria-hidden="true" />
      <span class="word">{label ?? state}</span>
    </span>
  );
}

/** A node of a job waits for its turn; a session that waits wants an answer. */
export function WorkMark({ state }: { state: WorkState }) {
  return state === "waiting" ? <StateMark state="closed" label="not started" /> : <StateMark state={state} />;
}

export function Age({ at }: { at: string }) {
  // A separate signal, so that a list of three hundred is not rendered every second; few ages change in one.
  const words = useMemo(() => computed(() => age(at, now.value)), [at]);
  return (
    <time dateTime={at} title={moment(at)}>
      {words}
    </time>
  );
}

/** A sentence of the server's: what stands in backticks is code. */
export function Sentence({ text }: { text: string }) {
  return <>{sentence(text).split("`").map((part, at) => (at % 2 === 1 ? <code>{part}</code> : part))}</>;
}

export function Key({ keys }: { keys: string }) {
  return (
    <span class="keys">
      {keys.split(" ").map((key) => (
        <kbd>{key}</kbd>
      ))}
    </span>
  );
}

export function Empty({ icon, title, children }: { icon: IconName; title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <span class="empty-icon">
        <Icon name={icon} />
      </span>
      <h2>{title}</h2>
      {children}
    </div>
  );
}

export function Trouble({ problem, retry }: { problem: Problem; retry?: () => void }) {
  return (
    <div class="trouble" role="alert">
      <Icon name="warning" />
      <p>
        <Sentence text={problem.message} />
      </p>
      {retry && (
        <button type="button" class="button small" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

export function Loading({ what }: { what: string }) {
  // Most answers come at once: only slow ones are worth a word.
  const [slow, setSlow] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setSlow(true), 250);
    return () => clearTimeout(timer);
  }, []);
  return (
    <p class="loading" role="status">
      {slow ? `Loading ${what}…` : ""}
    </p>
  );
}

interface ActionProps {
  readonly label: string;
  readonly icon?: IconName;
  readonly tone?: "plain" | "primary" | "danger";
  readonly small?: boolean;
  readonly disabled?: boolean;
  readonly title?: string;
  readonly onFail: (problem: Problem | null) => void;
  readonly act: () => Promise<unknown>;
}

/** A button for an asynchronous action: disabled while it runs, and errors go to the page. */
export function Action({ label, icon, tone = "plain", small, disabled, title, onFail, act }: ActionProps) {
  const [busy, setBusy] = useState(false);
  const press = async () => {
    if (busy) return;
    setBusy(true);
    try {
      await act();
      onFail(null);
    } catch (error) {
      onFail(asProblem(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <button type="button" class={`button ${tone}${small ? " small" : ""}`} disabled={disabled || busy} aria-busy={busy} title={title} onClick={press}>
      {icon && <Icon name={icon} />}
      <span class="label">{label}</span>
    </button>
  );
}

interface ConfirmProps {
  readonly title: string;
  readonly children: ComponentChildren;
  readonly action: string;
  readonly onConfirm: () => void;
  readonly onClose: () => void;
}

export function Confirm({ title, children, action, onConfirm, onClose }: ConfirmProps) {
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      <div class="dialog-actions">
        <button type="button" class="button" onClick={onClose}>
          Cancel
        </button>
        <button type="button" class="button danger" onClick={onConfirm} autoFocus>
          {action}
        </button>
      </div>
    </Dialog>
  );
}

/** The browser's own dialog: it keeps the focus inside, closes by Escape and gives the focus back. */
export function Dialog({ title, children, onClose }: { title: string; children: ComponentChildren; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  return (
    <dialog
      ref={dialog}
      aria-labelledby={heading}
      onClose={onClose}
      onClick={(event) => {
        if (event.target === dialog.current) onClose();
      }}
    >
      <div class="dialog-body">
        <h2 id={heading}>{title}</h2>
        {children}
      </div>
    </dialog>
  );
}

export function PageHead({ title, children, sub }: { title: string; children?: ComponentChildren; sub?: ComponentChildren }) {
  useEffect(() => {
    document.title = `${title} · Hangar`;
  }, [title]);
  return (
    <header class="page-head">
      <div>
        <h1>{title}</h1>
        {sub && <p class="page-sub">{sub}</p>}
      </div>
      <div class="page-actions">{children}</div>
    </header>
  );
}

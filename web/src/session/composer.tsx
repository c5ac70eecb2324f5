// The message box of a session. A draft survives a reload and a failed send.

import { useEffect, useRef, useState } from "preact/hooks";
import { api } from "../api/client";
import { type Problem, asProblem } from "../api/problem";
import { type Session, isAtWork } from "../api/resources";
import { Icon } from "../ui/icons";
import { Key, Trouble } from "../ui/parts";
import type { SessionFeed } from "./feed";

const TALLEST = 320;

function draftKey(id: string): string {
  return `hangar.draft.${id}`;
}

function savedDraft(id: string): string {
  try {
    return sessionStorage.getItem(draftKey(id)) ?? "";
  } catch {
    return "";
  }
}

function saveDraft(id: string, text: string): void {
  try {
    if (text === "") sessionStorage.removeItem(draftKey(id));
    else sessionStorage.setItem(draftKey(id), text);
  } catch {
    // Without storage, a draft lives only as long as the page.
  }
}

interface Props {
  readonly feed: SessionFeed;
  readonly session: Session;
}

export function Composer({ feed, session }: Props) {
  const [text, setText] = useState(() => savedDraft(feed.id));
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  const working = isAtWork(session.state);

  useEffect(() => saveDraft(feed.id, text), [text]);
  useEffect(() => {
    const element = field.current;
    if (element === null) return;
    element.style.height = "auto";
    element.style.height = `${Math.min(TALLEST, element.scrollHeight + 2)}px`;
  }, [text]);

  const send = async (mode: "enqueue" | "immediate") => {
    const words = text.trim();
    if (words === "" || busy) return;
    setBusy(true);
    setProblem(null);
    const forget = feed.expect(words);
    setText("");
    try {
      await api.send(feed.id, words, mode);
    } catch (error) {
      forget();
      setText(words);
      setProblem(asProblem(error));
    } finally {
      setBusy(false);
      field.current?.focus();
    }
  };

  const onKey = (event: KeyboardEvent) => {
    if (event.key === "Escape") field.current?.blur();
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    void send(event.shiftKey && working ? "immediate" : "enqueue");
  };

  if (session.resumable === false && session.state === "closed") {
    return (
      <p class="composer-closed">
        This session can be read, and its agent cannot go on with it. <a href="/new">Start a new one</a>
      </p>
    );
  }
  const empty = text.trim() === "";
  const hint = working ? "The agent is at work. What you queue waits until it is done; what you steer with reaches it at once." : session.state === "closed" ? "Send a message to go on with this session." : "";
  return (
    <div class="composer">
      {problem && <Trouble problem={problem} />}
      <div class="composer-box">
        <textarea
          id="composer"
          ref={field}
          rows={1}
          value={text}
          aria-label="Message to the agent"
          placeholder={working ? "Queue a message, or steer…" : "Message…"}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={onKey}
        />
        <div class="composer-actions">
          <span class="composer-hint">{hint}</span>
          {working && (
            <button type="button" class="button" disabled={empty || busy} onClick={() => void send("immediate")} title="Give it to the agent at once (Ctrl+Shift+Enter)">
              <Icon name="bolt" />
              Steer
            </button>
          )}
          <button type="button" class="button primary" disabled={empty || busy} onClick={() => void send("enqueue")}>
            <Icon name="send" />
            {working ? "Queue" : "Send"}
            <Key keys="Ctrl+↵" />
          </button>
        </div>
      </div>
    </div>
  );
}

// The transcript on the page: rows, what was sent and is not there yet, and the way back to the end.

import { useComputed, useSignal } from "@preact/signals";
import { useCallback, useMemo, useRef } from "preact/hooks";
import { type Session, isAtWork } from "../api/resources";
import { useShortcuts } from "../keyboard";
import { type ListControl, VirtualList } from "../list/virtualList";
import { Icon } from "../ui/icons";
import { Empty } from "../ui/parts";
import { Row } from "./blocks";
import type { SessionFeed } from "./feed";
import { find, step } from "./find";
import { type TranscriptRow, rows } from "./rows";

interface Props {
  readonly feed: SessionFeed;
  readonly session: Session;
}

export function TranscriptView({ feed, session }: Props) {
  const opened = useSignal<ReadonlyMap<string, boolean>>(new Map());
  const atEnd = useSignal(true);
  const control = useRef<ListControl | null>(null);
  const alive = useComputed(() => feed.session.value !== null && isAtWork(feed.session.value.state));
  const shown = useComputed(() => {
    // The transcript changes in place; its version says that it did.
    void feed.version.value;
    return rows(feed.transcript, opened.value, alive.value);
  });
  const speaker = session.run === undefined ? "You" : "Job";
  const toggle = useCallback((key: string, open: boolean) => {
    opened.value = new Map(opened.peek()).set(key, open);
  }, []);

  const move = (by: 1 | -1) => {
    const list = shown.peek();
    const key = control.current?.current() ?? null;
    const now = list.findIndex((row) => row.key === key);
    const next = list[Math.max(0, Math.min(list.length - 1, now === -1 ? list.length - 1 : now + by))];
    if (next !== undefined) control.current?.show(next.key);
  };
  const nextPrompt = (by: 1 | -1) => {
    const list = shown.peek();
    const key = control.current?.current() ?? null;
    const now = list.findIndex((row) => row.key === key);
    for (let at = now + by; at >= 0 && at < list.length; at += by) {
      const row = list[at];
      if (row?.block.kind === "user" && row.depth === 0) return control.current?.show(row.key);
    }
  };
  const flipAll = () => {
    const list = shown.peek();
    const tools = list.filter((row) => row.block.kind === "tool" || row.block.kind === "reasoning");
    const open = tools.some((row) => !row.open);
    opened.value = new Map([...opened.peek(), ...tools.map((row): [string, boolean] => [row.key, open])]);
  };
  const toEnd = async () => {
    await feed.toEnd();
    control.current?.toEnd();
  };
  const sought = useSignal<{ words: string; at: string | null } | null>(null);
  const findField = useRef<HTMLInputElement>(null);
  const seek = () => {
    sought.value ??= { words: "", at: null };
    requestAnimationFrame(() => findField.current?.focus());
  };
  useShortcuts("Transcript", [
    { keys: "/", does: "Find in what is loaded", run: seek },
    { keys: "j", does: "Next block", run: () => move(1) },
    { keys: "k", does: "Previous block", run: () => move(-1) },
    { keys: "n", does: "Next prompt", run: () => nextPrompt(1) },
    { keys: "p", does: "Previous prompt", run: () => nextPrompt(-1) },
    { keys: "o", does: "Open or fold all tool calls", run: flipAll },
    { keys: "g g", does: "To the beginning of what is loaded", run: () => control.current?.toBeginning() },
    { keys: "G", does: "To the end, and follow", run: () => void toEnd() },
  ]);

  const words = sought.value?.words ?? "";
  const matches = useMemo(() => find(shown.value, words), [shown.value, words]);
  const toMatch = (by: 1 | -1) => {
    if (sought.value === null) return;
    const at = step(matches, sought.value.at, by);
    sought.value = { ...sought.value, at };
    if (at !== null) control.current?.reveal(at);
  };
  const unsent = feed.unsent.value;
  if (shown.value.length === 0 && unsent.length === 0) {
    return (
      <div class="transcript">
        <Empty icon="sessions" title="Nothing was said yet">
          <p>Write below what the agent should do.</p>
        </Empty>
      </div>
    );
  }
  return (
    <div class="transcript">
      {sought.value !== null && (
        <div class="find" role="search">
          <input
            ref={findField}
            class="field"
            aria-label="Find in the transcript"
            placeholder="Find"
            value={sought.value.words}
            onInput={(event) => {
              sought.value = { words: event.currentTarget.value, at: null };
            }}
            onKeyDown={(event) => {
              if (event.key === "Enter") toMatch(event.shiftKey ? -1 : 1);
              if (event.key === "Escape") sought.value = null;
            }}
          />
          <span role="status">
            {matches.length === 0 ? (sought.value.words.trim() === "" ? "" : "nothing") : `${matches.indexOf(sought.value.at ?? "") + 1} of ${matches.length}`}
          </span>
          <button type="button" class="button icon-only quiet" aria-label="Close" onClick={() => (sought.value = null)}>
            <Icon name="cross" />
          </button>
        </div>
      )}
      <VirtualList<TranscriptRow>
        rows={shown.value}
        label="Transcript"
        control={control}
        onEdge={(edge) => void (edge === "first" ? feed.loadOlder() : feed.loadNewer())}
        ends={feed.newer.value === "none"}
        onFollow={(follows) => {
          atEnd.value = follows;
          feed.followed = follows;
        }}
        before={<Older feed={feed} />}
        render={(row) => <Row found={sought.value?.at === row.key} row={row} alive={alive.value} speaker={speaker} toggle={toggle} />}
      />
      {unsent.length > 0 && (
        <ul class="unsent" aria-label="Waiting to be taken up">
          {unsent.map((entry) => (
            <li key={entry.key}>
              <span class="spinner" aria-hidden="true" /> {entry.text}
            </li>
          ))}
        </ul>
      )}
      {!atEnd.value && (
        <button type="button" class="button to-end" onClick={() => void toEnd()}>
          <Icon name="down" /> To the end
        </button>
      )}
    </div>
  );
}

function Older({ feed }: { feed: SessionFeed }) {
  const state = feed.older.value;
  if (state === "none") return null;
  return (
    <p class="older" role="status">
      {state === "loading" ? "Loading what was before…" : "There is more before this"}
    </p>
  );
}

// One session: what was said and done, live, and a place to say more.

import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { api } from "../api/client";
import { type Problem, asProblem } from "../api/problem";
import { type Session, isAtWork } from "../api/resources";
import { cost, moment, sessionTitle, shortPath, tokens } from "../format";
import { useShortcuts } from "../keyboard";
import { connection, epoch, openApprovals } from "../live/store";
import { go, paths } from "../router";
import { AskCard, pressAnswer } from "../ask/card";
import { Composer } from "../session/composer";
import { Canvases } from "../session/canvases";
import { ChangesView } from "../session/changes";
import { SessionFeed } from "../session/feed";
import { RawView } from "../session/raw";
import { TranscriptView } from "../session/transcript";
import { Folder } from "../text/diffView";
import { Icon } from "../ui/icons";
import { Action, Age, Confirm, Dialog, Empty, Loading, Sentence, StateMark, Trouble } from "../ui/parts";

/** Blocks that are on the screen when a session is opened, more or less. */
const LAST_BLOCKS = 12;

export function SessionPage({ id }: { id: string }) {
  const feed = useMemo(() => new SessionFeed(id), [id]);
  useEffect(() => {
    void feed.start();
    return () => feed.close();
  }, [feed]);
  useEffect(() => {
    // The server was away when this page was opened, and is back.
    if (feed.problem.peek() !== null && !feed.ready.peek()) void feed.start();
  }, [epoch.value]);
  const session = feed.session.value;
  const problem = feed.problem.value;
  if (feed.deleted.value) {
    return (
      <Empty icon="trash" title="This session was deleted">
        <a class="button" href="/sessions">
          All sessions
        </a>
      </Empty>
    );
  }
  if (problem?.status === 404) {
    return (
      <Empty icon="sessions" title="There is no such session">
        <p>It may have been deleted, or the address is not quite right.</p>
        <a class="button" href="/sessions">
          All sessions
        </a>
      </Empty>
    );
  }
  if (session === null || !feed.ready.value) {
    return <div class="page">{problem === null ? <Loading what="the session" /> : <Trouble problem={problem} retry={() => void feed.start()} />}</div>;
  }
  return <SessionView feed={feed} session={session} />;
}

function SessionView({ feed, session }: { feed: SessionFeed; session: Session }) {
  const [problem, setProblem] = useState<Problem | null>(null);
  const [tab, setTab] = useState<"transcript" | "changes" | "raw">("transcript");
  const asks = openApprovals.value.filter((approval) => approval.sessionId === session.id);
  const title = sessionTitle(session);
  useEffect(() => {
    document.title = `${title} · Hangar`;
  }, [title]);
  const answer = (how: "approve" | "session" | "deny") => pressAnswer(document.querySelector<HTMLElement>(".asks .ask"), how);
  useShortcuts("Session", [
    { keys: "i", does: "Write a message", run: () => document.getElementById("composer")?.focus() },
    { keys: "a", does: "Allow what is asked", run: () => answer("approve") },
    { keys: "s", does: "Allow it for this session", run: () => answer("session") },
    { keys: "d", does: "Deny what is asked", run: () => answer("deny") },
    { keys: "v", does: "Transcript or changes", run: () => setTab((now) => (now === "changes" ? "transcript" : "changes")) },
    { keys: "X", does: "Abort what is being done", run: () => void api.abort(session.id).catch((error: unknown) => setProblem(asProblem(error))) },
  ]);
  return (
    <div class="session-page" data-connection={feed.connection.value}>
      <SessionHead feed={feed} session={session} title={title} onFail={setProblem} />
      <div class="session-columns">
        <Folder.Provider value={session.workspace}>
          <div class="session-main">
            {problem && <Trouble problem={problem} />}
            {feed.problem.value && <Trouble problem={feed.problem.value} />}
            {session.error !== undefined && session.state === "failed" && !tells(feed, session.error) && (
              <div class="trouble" role="status">
                <Icon name="warning" />
                <p>
                  <Sentence text={session.error} />
                </p>
              </div>
            )}
            {session.noProgress !== undefined && (
              <div class="trouble warn" role="status">
                <Icon name="warning" />
                <p>
                  <Sentence text={session.noProgress} />
                </p>
              </div>
            )}
            <Canvases session={session} />
            <div class="tabs">
              <div role="tablist" aria-label="View">
                {(["transcript", "changes", "raw"] as const).map((name) => (
                  <button type="button" role="tab" class="tab" aria-selected={tab === name} onClick={() => setTab(name)}>
                    {{ transcript: "Transcript", changes: "Changes", raw: "Raw" }[name]}
                  </button>
                ))}
              </div>
            </div>
            {tab === "changes" && <ChangesView session={session} onSent={() => setTab("transcript")} />}
            {tab === "raw" && <RawView session={session} />}
            {tab === "transcript" && <TranscriptView feed={feed} session={session} />}
            <div class="session-foot">
              {asks.length > 0 && (
                <div class="asks">
                  {asks.map((approval, index) => (
                    <AskCard key={approval.id} approval={approval} keys={index === 0} />
                  ))}
                </div>
              )}
              <Composer feed={feed} session={session} />
            </div>
          </div>
        </Folder.Provider>
        <Facts feed={feed} session={session} />
      </div>
    </div>
  );
}

/** Whether the end of the transcript shows it already. */
function tells(feed: SessionFeed, error: string): boolean {
  void feed.version.value;
  return feed.transcript.main.blocks.slice(-LAST_BLOCKS).some((block) => block.kind === "notice" && block.level === "error" && block.text === error);
}

interface HeadProps {
  readonly feed: SessionFeed;
  readonly session: Session;
  readonly title: string;
  readonly onFail: (problem: Problem | null) => void;
}

function SessionHead({ feed, session, title, onFail }: HeadProps) {
  const [dialog, setDialog] = useState<"rename" | "delete" | null>(null);
  const working = isAtWork(session.state);
  // Without the server at all the bar above says so.
  const lost = feed.connection.value === "lost" && connection.value !== "lost";
  return (
    <header class="session-head">
      <div class="session-title">
        <h1 title={title}>{title}</h1>
        <div class="session-line">
          <StateMark state={session.state} />
          {lost && <span class="state tone-warn">connection lost, trying again</span>}
          <span class="nowrap" title={session.agent === undefined ? undefined : `named agent on ${session.runtime}`}>
            {session.agent ?? session.runtime}
          </span>
          {session.model !== undefined && (
            <span class="nowrap">
              {session.model}
              {session.effort !== undefined && ` · ${session.effort}`}
            </span>
          )}
          {session.workspace !== "" && (
            <span class="hide-narrow" title={session.workspace}>
              {shortPath(session.workspace)}
            </span>
          )}
          {session.run !== undefined && (
            <a href={paths.run(session.run.id)} class="hide-narrow">
              {session.run.job} · {session.run.task}
            </a>
          )}
          <ContextMeter feed={feed} session={session} />
        </div>
      </div>
      <div class="page-actions">
        {working && <Action label="Abort" icon="stop" title="Abort what is being done (X)" act={() => api.abort(session.id)} onFail={onFail} />}
        {session.state !== "closed" && <Action label="Stop" icon="exit" title="End the agent; the log stays" act={() => api.stopSession(session.id)} onFail={onFail} />}
        <button type="button" class="button icon-only" aria-label="Rename" title="Rename" onClick={() => setDialog("rename")}>
          <Icon name="pencil" />
        </button>
        <button type="button" class="button icon-only" aria-label="Delete" title="Delete" onClick={() => setDialog("delete")}>
          <Icon name="trash" />
        </button>
      </div>
      {dialog === "rename" && <Rename feed={feed} session={session} onClose={() => setDialog(null)} onFail={onFail} />}
      {dialog === "delete" && (
        <Confirm
          title="Delete this session?"
          action="Delete"
          onClose={() => setDialog(null)}
          onConfirm={() => {
            setDialog(null);
            api.deleteSession(session.id).then(
              () => go("/sessions"),
              (error: unknown) => onFail(asProblem(error)),
            );
          }}
        >
          <p>It ends, and its log of {session.events} events is removed from this machine for good. Files that the agent changed stay as they are.</p>
        </Confirm>
      )}
    </header>
  );
}

function Rename({ feed, session, onClose, onFail }: { feed: SessionFeed; session: Session; onClose: () => void; onFail: (problem: Problem | null) => void }) {
  const [name, setName] = useState(session.name ?? "");
  const save = (event: Event) => {
    event.preventDefault();
    onClose();
    api.renameSession(session.id, name.trim()).then(
      (renamed) => {
        feed.session.value = renamed;
      },
      (error: unknown) => onFail(asProblem(error)),
    );
  };
  return (
    <Dialog title="Rename this session" onClose={onClose}>
      <form onSubmit={save}>
        <input class="field wide" aria-label="Name" value={name} autoFocus onInput={(event) => setName(event.currentTarget.value)} />
        <div class="dialog-actions">
          <button type="button" class="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" class="button primary" disabled={name.trim() === ""}>
            Rename
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function contextOf(feed: SessionFeed, session: Session) {
  void feed.version.value;
  return feed.transcript.context ?? session.context ?? null;
}

function ContextMeter({ feed, session }: { feed: SessionFeed; session: Session }) {
  const context = contextOf(feed, session);
  if (context === null || context.limit === 0) return null;
  const share = Math.min(100, Math.round((context.tokens / context.limit) * 100));
  return (
    <span class={`meter${share > 85 ? " full" : ""}`} title={`${context.tokens} of ${context.limit} tokens of context`}>
      <span class="meter-bar" role="meter" aria-label="Context used" aria-valuemin={0} aria-valuemax={100} aria-valuenow={share}>
        <span style={{ width: `${share}%` }} />
      </span>
      {share}% context
    </span>
  );
}

function Facts({ feed, session }: { feed: SessionFeed; session: Session }) {
  const usage = session.usage ?? {};
  const context = contextOf(feed, session);
  const facts: [string, ComponentChildren][] = [
    ["State", <StateMark state={session.state} />],
    ["Agent", session.agent],
    ["Runtime", session.runtime],
    ["Model", session.model ?? "chosen by the runtime"],
    ["Effort", session.effort],
    ["Policy", session.policy],
    ["Folder", session.workspace === "" ? undefined : <code>{session.workspace}</code>],
    ["Tokens in", usage.inputTokens === undefined ? undefined : tokens(usage.inputTokens)],
    ["Tokens out", usage.outputTokens === undefined ? undefined : tokens(usage.outputTokens)],
    ["Context", context === null ? undefined : `${tokens(context.tokens)} of ${tokens(context.limit)}`],
    ["Cost", cost(usage)],
    ["Premium requests", usage.premiumRequests],
    ["Turns", usage.turns],
    ["Events", session.events],
    ["Started", <span title={moment(session.createdAt)}><Age at={session.createdAt} /></span>],
    ["Id", <code>{session.id}</code>],
  ];
  return (
    <aside class="facts" aria-label="About this session">
      <dl>
        {facts
          .filter(([, value]) => value !== undefined)
          .map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
      </dl>
      {session.run !== undefined && (
        <a class="button wide" href={paths.run(session.run.id)}>
          <Icon name="runs" /> Run of {session.run.job}
        </a>
      )}
    </aside>
  );
}

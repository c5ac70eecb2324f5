// One run of a job: its chart as it moves, what was decided, and the sessions behind each task.

import { useEffect, useState } from "preact/hooks";
import { api, streams } from "../api/client";
import { type Problem, asProblem } from "../api/problem";
import type { Check, Decision, Run, RunDetails, RunWork, Session } from "../api/resources";
import { listen } from "../api/stream";
import { Chart } from "../chart/chart";
import { between, clock, moment, shortPath, tokens } from "../format";
import { useShortcuts } from "../keyboard";
import { connection, now, onChange } from "../live/store";
import { go, paths } from "../router";
import { ChangesView } from "../session/changes";
import { Icon } from "../ui/icons";
import { SessionBeside } from "./beside";
import { Action, Confirm, Empty, Loading, Sentence, StateMark, Trouble, WorkMark } from "../ui/parts";

/** The newest of a run: its chart and decisions from its page, its state from the stream. */
function useRun(id: string) {
  const [run, setRun] = useState<RunDetails | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [lost, setLost] = useState(false);
  useEffect(() => {
    let last = 0;
    let ended = false;
    let loading = false;
    let again = false;
    // Records come in bursts, and each may bring a decision: one request at a time, and one more after the last.
    const load = async () => {
      if (loading) {
        again = true;
        return;
      }
      loading = true;
      try {
        const detail = await api.run(id);
        if (!ended) {
          setRun(detail);
          setProblem(null);
        }
      } catch (error) {
        if (!ended) setProblem(asProblem(error));
      }
      loading = false;
      if (again && !ended) {
        again = false;
        void load();
      }
    };
    void load();
    const stop = listen({
      url: () => streams.run(id, last),
      state: (state) => setLost(state === "lost"),
      event: (event) => {
        if (event.id !== null) last = Number(event.id);
        if (event.type === "run") {
          const changed = JSON.parse(event.data) as Run;
          setRun((known) => (known === null ? known : { ...known, ...changed }));
        } else {
          void load();
        }
      },
    });
    return () => {
      ended = true;
      stop();
    };
  }, [id]);
  return { run, problem, lost, setProblem };
}

/** Sessions that are shown beside each other. */
const MOST_BESIDE = 3;
/** Steps and bounds of the zoom. */
const ZOOM_STEP = 1.25;
const ZOOM_LEAST = 0.4;
const ZOOM_MOST = 2.5;

const INTERRUPTED = "The server ended while this was running. Resume goes on where it was, Retry begins anew.";

/** In a run that has ended nothing is running, whatever its last record says. */
function standing(run: RunDetails): readonly RunWork[] {
  // A task without a slot does not run, whatever it was told to do.
  const state = (work: RunWork): RunWork["state"] => (run.state !== "running" ? "stopped" : work.waits !== undefined ? "waiting" : "running");
  return run.works.map((work) => (work.state === "running" ? { ...work, state: state(work) } : work));
}

export function RunPage({ id }: { id: string }) {
  const { run, problem, lost, setProblem } = useRun(id);
  const [selected, setSelected] = useState<number | null>(null);
  const [shown, setShown] = useState<readonly string[]>([]);
  // Without a number the chart is as large as fits.
  const [zoom, setZoom] = useState<number | null>(null);
  const [tab, setTab] = useState<"flow" | "changes">("flow");
  const enlarge = (by: number) => setZoom((now) => Math.min(ZOOM_MOST, Math.max(ZOOM_LEAST, (now ?? 1) * by)));
  const show = (session: string) => setShown((known) => (known.includes(session) ? known.filter((other) => other !== session) : [...known, session].slice(-MOST_BESIDE)));
  useEffect(() => {
    document.title = `${run?.job ?? "Run"} · Hangar`;
  }, [run?.job]);
  const step = (by: 1 | -1) => {
    const works = run?.works ?? [];
    const index = works.findIndex((work) => work.workId === selected);
    const next = works[Math.max(0, Math.min(works.length - 1, index + by))];
    if (next !== undefined) setSelected(next.workId);
  };
  useShortcuts("Run", [
    { keys: "j", does: "Next task", run: () => step(1) },
    { keys: "k", does: "Previous task", run: () => step(-1) },
    { keys: "+", does: "Enlarge the chart", run: () => enlarge(ZOOM_STEP) },
    { keys: "-", does: "Shrink the chart", run: () => enlarge(1 / ZOOM_STEP) },
    { keys: "0", does: "Fit the chart to the page", run: () => setZoom(null) },
    { keys: "v", does: "Flow or changes", run: () => setTab((now) => (now === "changes" ? "flow" : "changes")) },
    { keys: "Escape", does: "Select no task", run: () => setSelected(null) },
  ]);
  if (run === null) {
    if (problem?.status === 404) {
      return (
        <Empty icon="runs" title="There is no such run">
          <p>It may have been made by another portal, or the address is not quite right.</p>
          <a class="button" href="/runs">
            All runs
          </a>
        </Empty>
      );
    }
    return <div class="page">{problem === null ? <Loading what="the run" /> : <Trouble problem={problem} />}</div>;
  }
  const works = standing(run);
  const work = works.find((candidate) => candidate.workId === selected);
  const reason = run.reason ?? (run.state === "interrupted" ? INTERRUPTED : undefined);
  return (
    <div class="run-page">
      <RunHead run={run} lost={lost} onFail={setProblem} />
      {problem && <Trouble problem={problem} />}
      {reason !== undefined && run.state !== "succeeded" && (
        <div class={run.state === "failed" ? "trouble" : "trouble warn"} role="status">
          <Icon name="warning" />
          <p>
            <Sentence text={reason} />
          </p>
        </div>
      )}
      <div class="tabs" role="tablist" aria-label="View">
        {(["flow", "changes"] as const).map((name) => (
          <button type="button" role="tab" class="tab" aria-selected={tab === name} onClick={() => setTab(name)}>
            {name === "changes" ? "Changes" : "Flow"}
          </button>
        ))}
      </div>
      {tab === "changes" && <RunChanges run={run} works={works} />}
      <div class="run-columns" hidden={tab !== "flow"}>
        <section class="run-chart" aria-label="Flow">
          {run.chart && (
            <div class="zoom" role="group" aria-label="Size of the chart">
              <button type="button" class="button icon-only" aria-label="Smaller" title="Smaller (-)" onClick={() => enlarge(1 / ZOOM_STEP)}>
                −
              </button>
              <button type="button" class="button" aria-label="Fit the chart to the page" title="Fit (0)" onClick={() => setZoom(null)}>
                {zoom === null ? "Fit" : `${Math.round(zoom * 100)} %`}
              </button>
              <button type="button" class="button icon-only" aria-label="Larger" title="Larger (+)" onClick={() => enlarge(ZOOM_STEP)}>
                +
              </button>
            </div>
          )}
          {run.chart ? (
            <Chart chart={run.chart} works={works} selected={selected} zoom={zoom} onSelect={(workId) => setSelected(workId === selected ? null : workId)} />
          ) : (
            <WorkList works={works} selected={selected} select={setSelected} />
          )}
        </section>
        <aside class="run-side" aria-label="Details">
          {work ? <WorkPanel work={work} shown={shown} show={show} close={() => setSelected(null)} /> : <Overview run={run} works={works} />}
          <Checks checks={run.checks} workId={work?.workId ?? null} />
          <Decisions decisions={run.decisions ?? []} workId={work?.workId ?? null} />
        </aside>
      </div>
      {shown.length > 0 && tab === "flow" && (
        <div class="besides">
          {shown.map((session) => (
            <SessionBeside key={session} id={session} title={titleOf(works, session)} close={() => show(session)} />
          ))}
        </div>
      )}
    </div>
  );
}

/** Task and attempt of a session. */
function titleOf(works: readonly RunWork[], id: string): string {
  for (const work of works) {
    const at = work.sessions.findIndex((session) => session.id === id);
    if (at !== -1) return `${work.task}, attempt ${work.sessions[at]?.attempt ?? at + 1}`;
  }
  return id;
}

function RunHead({ run, lost, onFail }: { run: RunDetails; lost: boolean; onFail: (problem: Problem | null) => void }) {
  const running = run.state === "running";
  const end = run.endedAt ?? (running ? Math.max(now.value, Date.parse(run.startedAt)) : undefined);
  return (
    <header class="session-head">
      <div class="session-title">
        <h1>{run.job}</h1>
        <div class="session-line">
          <StateMark state={run.state} />
          {lost && connection.value !== "lost" && <span class="state tone-warn">connection lost, trying again</span>}
          {end !== undefined && <span class="nowrap">{between(run.startedAt, end)}</span>}
          <span class="hide-narrow" title={run.workspace}>
            {shortPath(run.workspace)}
          </span>
          {run.turns !== undefined && <span class="nowrap hide-narrow">{run.turns} turns</span>}
          {run.tokens !== undefined && <span class="nowrap">{tokens(run.tokens)} tokens</span>}
        </div>
      </div>
      <div class="page-actions">
        {running && <Action label="Stop" icon="stop" tone="danger" act={() => api.stopRun(run.id)} onFail={onFail} />}
        {run.resumable && !running && (
          <Action label="Resume" icon="play" tone="primary" title="Go on where it was" act={() => api.resumeRun(run.id)} onFail={onFail} />
        )}
        <a class="button hide-narrow" href={`/api/v1/runs/${encodeURIComponent(run.id)}`} target="_blank" rel="noreferrer">
          JSON
        </a>
        {!running && <DeleteRun run={run} onFail={onFail} />}
        {!running && (
          <Action
            label="Retry"
            icon="retry"
            title="A new run of the same order"
            act={async () => {
              const again = await api.retryRun(run.id);
              go(paths.run(again.id));
            }}
            onFail={onFail}
          />
        )}
      </div>
    </header>
  );
}

function DeleteRun({ run, onFail }: { run: RunDetails; onFail: (problem: Problem | null) => void }) {
  const [asks, setAsks] = useState(false);
  const remove = () => {
    setAsks(false);
    api.deleteRun(run.id).then(
      () => go("/runs"),
      (error: unknown) => onFail(asProblem(error)),
    );
  };
  return (
    <>
      <button type="button" class="button icon-only" aria-label="Delete" title="Delete" onClick={() => setAsks(true)}>
        <Icon name="trash" />
      </button>
      {asks && (
        <Confirm title="Delete this run?" action="Delete" onClose={() => setAsks(false)} onConfirm={remove}>
          <p>Its record is removed for good. Its sessions and their costs stay.</p>
        </Confirm>
      )}
    </>
  );
}

function Overview({ run, works }: { run: RunDetails; works: readonly RunWork[] }) {
  const count = (state: RunWork["state"], word: string) => {
    const number = works.filter((work) => work.state === state).length;
    return number === 0 ? [] : [`${number} ${word}`];
  };
  const tasks = [...count("succeeded", "done"), ...count("running", "running"), ...count("failed", "failed"), ...count("stopped", "stopped"), ...count("waiting", "not started")];
  const facts: [string, string | undefined][] = [
    ["Input", run.input || undefined],
    ["Folder", run.workspace],
    ["Started", moment(run.startedAt)],
    ["Ended", run.endedAt === undefined ? undefined : moment(run.endedAt)],
    ["Tasks", tasks.join(", ")],
    ["Id", run.id],
  ];
  return (
    <section class="panel" aria-label="Overview">
      <dl class="facts-list">
        {facts
          .filter(([, value]) => value !== undefined)
          .map(([name, value]) => (
            <div>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
      </dl>
      <p class="hint">Choose a task in the chart to see its sessions.</p>
    </section>
  );
}

function WorkPanel({ work, shown, show, close }: { work: RunWork; shown: readonly string[]; show: (session: string) => void; close: () => void }) {
  return (
    <section class="panel" aria-label={`Task ${work.task}`}>
      <header>
        <h2>{work.task}</h2>
        <WorkMark state={work.state} />
        <button type="button" class="button icon-only" aria-label="Close" onClick={close}>
          <Icon name="cross" />
        </button>
      </header>
      {work.waits !== undefined && work.state === "waiting" && (
        <p class="hint warn" role="status">
          <Sentence text={work.waits} />
        </p>
      )}
      {work.sessions.length === 0 ? (
        <p class="hint">No session was opened for it {work.state === "waiting" ? "yet" : ""}.</p>
      ) : (
        <ul class="work-sessions">
          {work.sessions.map((session, index) => (
            <li>
              <a class="list-row work-session" href={paths.session(session.id)}>
                <Icon name={session.driving ? "approvals" : "sessions"} />
                <span class="row-title">
                  {session.driving ? "Driving session" : "Session"} {session.attempt ?? index + 1}
                </span>
                <span class="row-sub">{session.succeeded === undefined ? "open" : session.succeeded ? "succeeded" : "failed"}</span>
              </a>
              <button type="button" class="button small" aria-pressed={shown.includes(session.id)} onClick={() => show(session.id)}>
                {shown.includes(session.id) ? "Hide" : "Show here"}
              </button>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

/** Results of the commands and files of the criteria. */
export function Checks({ checks, workId }: { checks: readonly Check[]; workId: number | null }) {
  const shown = workId === null ? checks : checks.filter((check) => check.workId === workId);
  if (shown.length === 0) return null;
  return (
    <section class="panel" aria-label="Verification">
      <h2>Verification</h2>
      <ol class="decisions">
        {shown.map((check) => (
          <li>
            <time dateTime={check.at}>{clock(check.at)}</time>
            <span class="decision-task">{check.task}</span>
            <div class="decision-reason">
              {check.failures.length === 0 ? (
                <span class="chip tone-good">passed</span>
              ) : (
                check.failures.map((failure) => (
                  <details open={failure.output !== undefined && failure.output !== ""}>
                    <summary>
                      <span class="chip tone-bad">failed</span> <Sentence text={failure.what} />
                    </summary>
                    {failure.output !== undefined && failure.output !== "" && (
                      <pre class="check-output" tabIndex={0}>
                        {failure.output}
                      </pre>
                    )}
                  </details>
                ))
              )}
            </div>
          </li>
        ))}
      </ol>
    </section>
  );
}

/** Changes of all sessions of the run, with the results of its checks beside them. */
function RunChanges({ run, works }: { run: RunDetails; works: readonly RunWork[] }) {
  const sessions = works.flatMap((work) => work.sessions.filter((session) => !session.driving || work.sessions.length === 1).map((session) => ({ work, session })));
  return (
    <div class="run-columns">
      <div class="run-changes">
        {sessions.length === 0 && (
          <Empty icon="file" title="No session has worked yet">
            <p>Changes of files appear here by task.</p>
          </Empty>
        )}
        {sessions.map(({ work, session }) => (
          <SessionChanges key={session.id} id={session.id} title={`${work.task}, attempt ${session.attempt}`} />
        ))}
      </div>
      <aside class="run-side" aria-label="Details">
        <Checks checks={run.checks} workId={null} />
        <Decisions decisions={run.decisions} workId={null} />
      </aside>
    </div>
  );
}

function SessionChanges({ id, title }: { id: string; title: string }) {
  const [session, setSession] = useState<Session | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => {
    let ended = false;
    const load = () =>
      api.session(id).then(
        (found) => {
          if (!ended) setSession(found);
        },
        (error: unknown) => {
          if (!ended) setProblem(asProblem(error));
        },
      );
    void load();
    const stop = onChange({ session: (changed) => changed.id === id && setSession(changed) });
    return () => {
      ended = true;
      stop();
    };
  }, [id]);
  return (
    <section aria-label={title}>
      <h2>
        <a href={paths.session(id)}>{title}</a>
      </h2>
      {problem && <Trouble problem={problem} />}
      {session && <ChangesView session={session} brief />}
    </section>
  );
}

function WorkList({ works, selected, select }: { works: readonly RunWork[]; selected: number | null; select: (id: number) => void }) {
  return (
    <ul class="rows">
      {works.map((work) => (
        <li>
          <button type="button" class="list-row" aria-pressed={selected === work.workId} onClick={() => select(work.workId)}>
            <WorkMark state={work.state} /> {work.task}
          </button>
        </li>
      ))}
    </ul>
  );
}

function Decisions({ decisions, workId }: { decisions: readonly Decision[]; workId: number | null }) {
  const shown = workId === null ? decisions : decisions.filter((decision) => decision.workId === workId);
  return (
    <section class="panel" aria-label="Decisions">
      <h2>Decisions</h2>
      {shown.length === 0 ? (
        <p class="hint">Nothing was decided yet.</p>
      ) : (
        <ol class="decisions">
          {shown.map((decision) => (
            <li>
              <time dateTime={decision.at}>{clock(decision.at)}</time>
              <span class="decision-task">{decision.task}</span>
              <Reason text={decision.reason} />
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}

/** The message of an error that is told as JSON; any other text as it is. */
function messageOf(text: string): string {
  if (!text.startsWith("{")) return text;
  try {
    const { message } = JSON.parse(text) as { readonly message?: unknown };
    return typeof message === "string" ? message : text;
  } catch {
    return text;
  }
}

/** `[CRITERIA] Criteria condition passed`: the word in brackets says what kind of decision it is. */
function Reason({ text }: { text: string }) {
  const parts = /^\[([^\]]+)\]\s*(.*)$/s.exec(text);
  const kind = parts?.[1] ?? "";
  const words = messageOf(parts === null ? text : (parts[2] ?? "").replace(/^Decision: /, ""));
  const tone = kind.includes("SUCCEEDED") ? "good" : kind.includes("FAILED") || kind.includes("CRASHED") ? "bad" : "none";
  return (
    <p class="decision-reason">
      {kind !== "" && <span class={`chip tone-${tone}`}>{kind.toLowerCase()}</span>} {words.toLowerCase() === kind.toLowerCase() ? "" : <Sentence text={words} />}
    </p>
  );
}

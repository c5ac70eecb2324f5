// The jobs of the entry file, as the grid that it lays out.

import { useEffect, useState } from "preact/hooks";
import { api } from "../api/client";
import { type Problem, asProblem } from "../api/problem";
import type { Jobs, Runtime } from "../api/resources";
import { Chart } from "../chart/chart";
import { moveFocus, useShortcuts } from "../keyboard";
import { epoch, meta } from "../live/store";
import { go, paths, search } from "../router";
import { Icon } from "../ui/icons";
import { Action, Empty, Key, Loading, PageHead, Trouble } from "../ui/parts";

export function JobsPage() {
  const [jobs, setJobs] = useState<Jobs | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  // An address may name a job, and where it is to work.
  const [wanted, setChosen] = useState<string | null>(() => search.peek().get("job"));
  useEffect(() => {
    api.jobs().then(setJobs, (error: unknown) => setProblem(asProblem(error)));
  }, [epoch.value]);
  useShortcuts("Jobs", [
    { keys: "j", does: "Next job", run: () => moveFocus(".job-cell", 1) },
    { keys: "k", does: "Previous job", run: () => moveFocus(".job-cell", -1) },
  ]);
  const names = jobs === null ? [] : Object.keys(jobs.jobs);
  const chosen = wanted !== null && names.includes(wanted) ? wanted : null;
  return (
    <div class="page">
      <PageHead title="Jobs" sub={jobs?.entry && <code>{jobs.entry.path}</code>}>
        <a class="button" href="/runs">
          <Icon name="runs" /> Runs
        </a>
      </PageHead>
      {problem && <Trouble problem={problem} />}
      {jobs === null && problem === null && <Loading what="jobs" />}
      {jobs?.entry?.problems.map((sentence) => (
        <div class="trouble" role="status">
          <Icon name="warning" />
          <p>{sentence}</p>
        </div>
      ))}
      {jobs !== null && names.length === 0 && <NoJobs />}
      {jobs !== null && names.length > 0 && (
        <div class={`job-columns${chosen === null ? "" : " with-panel"}`}>
          <Grid jobs={jobs} chosen={chosen} choose={(name) => setChosen(name === chosen ? null : name)} />
          {chosen !== null && <StartPanel key={chosen} name={chosen} jobs={jobs} close={() => setChosen(null)} />}
        </div>
      )}
    </div>
  );
}

function NoJobs() {
  return (
    <Empty icon="jobs" title="No jobs yet">
      <p>
        A job is a tree of tasks for agents, written in a YAML file. Start with <code>hangar up --entry jobs.yaml</code>, or name the file in the settings.
      </p>
      <a class="button primary" href="/settings">
        Choose an entry file
      </a>
    </Empty>
  );
}

interface GridProps {
  readonly jobs: Jobs;
  readonly chosen: string | null;
  readonly choose: (name: string) => void;
}

function Grid({ jobs, chosen, choose }: GridProps) {
  const columns = Math.max(1, ...jobs.grid.map((row) => row.jobs.length));
  const inGrid = new Set(jobs.grid.flatMap((row) => row.jobs.flatMap((cell) => (cell === null ? [] : [cell.jobName]))));
  const others = Object.keys(jobs.jobs).filter((name) => !inGrid.has(name));
  const cell = (label: string, name: string) => (
    <button type="button" class="job-cell" data-job-name={name} aria-pressed={chosen === name} onClick={() => choose(name)}>
      {label}
    </button>
  );
  return (
    <div class="job-grid-box">
      {jobs.grid.length > 0 && (
        <table class="job-grid">
          <caption class="sr-only">Available jobs</caption>
          <tbody>
            {jobs.grid.map((row) => (
              <tr>
                <th scope="row">{row.keyword}</th>
                {Array.from({ length: columns }, (_, index) => {
                  const job = row.jobs[index];
                  return <td>{job ? cell(job.name, job.jobName) : null}</td>;
                })}
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {others.length > 0 && (
        <section class="other-jobs" aria-label="Jobs outside the grid">
          {jobs.grid.length > 0 && <h2>Also in this file</h2>}
          <div class="other-list">{others.map((name) => cell(name, name))}</div>
        </section>
      )}
    </div>
  );
}

function StartPanel({ name, jobs, close }: { name: string; jobs: Jobs; close: () => void }) {
  const [input, setInput] = useState("");
  const [agents, setAgents] = useState<readonly Runtime[]>([]);
  const [agent, setAgent] = useState("");
  useEffect(() => {
    // Without the list, the job runs on the default agent.
    api.runtimes(false).then((answer) => setAgents(answer.runtimes), () => undefined);
  }, []);
  const [folder, setFolder] = useState(() => search.peek().get("workspace") ?? meta.value?.workspace ?? meta.value?.repoRoot ?? "");
  const [problem, setProblem] = useState<Problem | null>(null);
  const needsInput = jobs.jobs[name]?.requireUserInput === true;
  const chart = jobs.chart[name];
  const ready = folder.trim() !== "" && (!needsInput || input.trim() !== "");
  const start = async () => {
    if (!ready) return;
    const run = await api.startRun({ job: name, workspace: folder.trim(), ...(needsInput ? { input } : {}), ...(agent !== "" && { agent }) });
    go(paths.run(run.id));
  };
  useShortcuts("Job", [
    { keys: "Ctrl+Enter", does: "Start the job", inFields: true, run: () => void start().catch((error: unknown) => setProblem(asProblem(error))) },
    { keys: "Escape", does: "Close the job", inFields: true, run: close },
  ]);
  return (
    <aside class="job-panel" aria-label={`Start ${name}`}>
      <header>
        <h2>{name}</h2>
        <button type="button" class="button icon-only" aria-label="Close" onClick={close}>
          <Icon name="cross" />
        </button>
      </header>
      <label class="form-field">
        <span>
          What it should do {needsInput ? <span class="required">required</span> : <span class="hint">this job asks for nothing</span>}
        </span>
        <textarea class="field" rows={4} disabled={!needsInput} value={input} onInput={(event) => setInput(event.currentTarget.value)} />
      </label>
      <label class="form-field">
        <span>Agent</span>
        <select class="field" value={agent} onChange={(event) => setAgent(event.currentTarget.value)}>
          <option value="">the default one</option>
          {agents.map((candidate) => (
            <option value={candidate.name}>{candidate.label}</option>
          ))}
        </select>
        <span class="hint">For tasks that name none.</span>
      </label>
      <label class="form-field">
        <span>Folder</span>
        <input class="field code" value={folder} onInput={(event) => setFolder(event.currentTarget.value)} />
      </label>
      {problem && <Trouble problem={problem} />}
      <div class="form-actions">
        <Action label={`Start job: ${name}`} icon="play" tone="primary" disabled={!ready} act={start} onFail={setProblem} />
        <Key keys="Ctrl+↵" />
      </div>
      {chart && <Chart chart={chart} works={[]} selected={null} />}
    </aside>
  );
}

// List of runs and their results.

import { useEffect, useState } from "preact/hooks";
import { api } from "../api/client";
import { type Problem, asProblem } from "../api/problem";
import type { Run } from "../api/resources";
import { between, shortPath, tokens } from "../format";
import { moveFocus, useShortcuts } from "../keyboard";
import { epoch, now, onChange } from "../live/store";
import { paths } from "../router";
import { Age, Empty, Loading, PageHead, StateMark, Trouble } from "../ui/parts";

export function RunsPage() {
  const [runs, setRuns] = useState<readonly Run[] | null>(null);
  const [next, setNext] = useState<string | undefined>();
  const [problem, setProblem] = useState<Problem | null>(null);
  const load = (cursor?: string) =>
    api.runs(cursor).then(
      (page) => {
        setRuns((known) => (cursor === undefined ? page.runs : [...(known ?? []), ...page.runs]));
        setNext(page.next);
        setProblem(null);
      },
      (error: unknown) => setProblem(asProblem(error)),
    );
  useEffect(() => void load(), [epoch.value]);
  useEffect(
    () =>
      onChange({
        run: (changed) =>
          setRuns((known) => {
            if (known === null) return known;
            return known.some((run) => run.id === changed.id) ? known.map((run) => (run.id === changed.id ? changed : run)) : [changed, ...known];
          }),
      }),
    [],
  );
  useShortcuts("Runs", [
    { keys: "j", does: "Next run", run: () => moveFocus(".run-row", 1) },
    { keys: "k", does: "Previous run", run: () => moveFocus(".run-row", -1) },
  ]);
  return (
    <div class="page">
      <PageHead title="Runs">
        <a class="button primary" href="/jobs">
          Start a job
        </a>
      </PageHead>
      {problem && <Trouble problem={problem} />}
      {runs === null && problem === null && <Loading what="runs" />}
      {runs !== null && runs.length === 0 && (
        <Empty icon="runs" title="Nothing was run yet">
          <p>A run is one execution of a job. It survives a crash of this server and can be gone on with.</p>
          <a class="button primary" href="/jobs">
            Choose a job
          </a>
        </Empty>
      )}
      {runs !== null && runs.length > 0 && (
        <ul class="rows" aria-label="Runs">
          {runs.map((run) => (
            <RunRow key={run.id} run={run} />
          ))}
        </ul>
      )}
      {next !== undefined && (
        <button type="button" class="button" onClick={() => void load(next)}>
          Show more
        </button>
      )}
    </div>
  );
}

function RunRow({ run }: { run: Run }) {
  const end = run.endedAt ?? (run.state === "running" ? Math.max(now.value, Date.parse(run.startedAt)) : undefined);
  const done = run.works.filter((work) => work.state === "succeeded").length;
  return (
    <li>
      <a class="run-row list-row" href={paths.run(run.id)}>
        <span class="cell-state">
          <StateMark state={run.state} />
        </span>
        <span class="cell-name">
          <span class="row-title">{run.job}</span>
          <span class="row-sub" title={run.workspace}>
            {run.input || shortPath(run.workspace)}
          </span>
        </span>
        <span class="cell-model">
          <span>
            {done} of {run.works.length} tasks
          </span>
          {end !== undefined && <span class="row-sub">{between(run.startedAt, end)}</span>}
        </span>
        <span class="cell-cost">{run.tokens ? `${tokens(run.tokens)} tok` : ""}</span>
        <span class="cell-age">
          <Age at={run.startedAt} />
        </span>
      </a>
    </li>
  );
}

// The agents of this machine, and why one is not ready.

import { useEffect, useState } from "preact/hooks";
import { api } from "../api/client";
import { type Problem, asProblem } from "../api/problem";
import type { Runtime } from "../api/resources";
import { ago, moment } from "../format";
import { moveFocus, useShortcuts } from "../keyboard";
import { now, onChange } from "../live/store";
import { Icon } from "../ui/icons";
import { Action, Loading, PageHead, Sentence, Trouble } from "../ui/parts";

export function RuntimesPage() {
  const [runtimes, setRuntimes] = useState<readonly Runtime[] | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const look = async (check: boolean) => setRuntimes((await api.runtimes(check)).runtimes);
  useEffect(() => {
    look(false).catch((error: unknown) => setProblem(asProblem(error)));
    return onChange({
      runtime: (changed) => setRuntimes((known) => known?.map((runtime) => (runtime.name === changed.name ? changed : runtime)) ?? null),
    });
  }, []);
  useShortcuts("Runtimes", [
    { keys: "j", does: "Next runtime", run: () => moveFocus(".runtime", 1) },
    { keys: "k", does: "Previous runtime", run: () => moveFocus(".runtime", -1) },
  ]);
  return (
    <div class="page">
      <PageHead title="Runtimes" sub="Agents that sessions and jobs can use.">
        <Action label="Look again" icon="retry" act={() => look(true)} onFail={setProblem} />
      </PageHead>
      {problem && <Trouble problem={problem} />}
      {runtimes === null && problem === null && <Loading what="runtimes" />}
      <ul class="cards">
        {runtimes?.map((runtime) => (
          <RuntimeCard key={runtime.name} runtime={runtime} />
        ))}
      </ul>
    </div>
  );
}

/** `{steering: true, effortLevels: ["low"], …}` as words: what is true by name, lists with what is in them. */
function capabilityWords(capabilities: Runtime["capabilities"]): string[] {
  return Object.entries(capabilities).flatMap(([name, what]) => {
    const words = name.replace(/([A-Z])/g, " $1").replaceAll("_", " ").toLowerCase();
    if (what === true) return [words];
    if (Array.isArray(what) && what.length > 0) return [`${words}: ${what.join(", ")}`];
    return [];
  });
}

function RuntimeCard({ runtime }: { runtime: Runtime }) {
  const look = runtime.preflight;
  const ready = look?.ready;
  const tone = ready === undefined ? "none" : ready ? "good" : "bad";
  const capabilities = capabilityWords(runtime.capabilities);
  return (
    <li class="card runtime" tabIndex={-1} data-runtime={runtime.name}>
      <header>
        <h2>{runtime.label || runtime.name}</h2>
        {runtime.default && <span class="chip">default</span>}
        <span class={`state tone-${tone}`}>
          <span class="dot" aria-hidden="true" />
          {ready === undefined ? "not looked at yet" : ready ? "ready" : "not ready"}
        </span>
      </header>
      <dl class="facts-list">
        <Fact name="Name" value={runtime.name} code />
        <Fact name="Program" value={look?.program} code />
        <Fact name="Version" value={look?.version} />
        <Fact name="Login" value={look?.auth.state === "unknown" ? undefined : look?.auth.state} />
      </dl>
      {look?.problems.map((words) => (
        <p class="card-line bad">
          <Icon name="cross" />
          <span>
            <Sentence text={words} />
          </span>
        </p>
      ))}
      {look?.warnings.map((words) => (
        <p class="card-line warn">
          <Icon name="warning" />
          <span>
            <Sentence text={words} />
          </span>
        </p>
      ))}
      {capabilities.length > 0 && (
        <details>
          <summary>What it can do</summary>
          <ul class="chips">
            {capabilities.map((words) => (
              <li class="chip">{words}</li>
            ))}
          </ul>
        </details>
      )}
      {runtime.checkedAt !== undefined && (
        <p class="card-foot" title={moment(runtime.checkedAt)}>
          Looked at {ago(runtime.checkedAt, now.value)}
        </p>
      )}
    </li>
  );
}

function Fact({ name, value, code }: { name: string; value: string | undefined; code?: boolean }) {
  if (value === undefined || value === "") return null;
  return (
    <div>
      <dt>{name}</dt>
      <dd>{code ? <code>{value}</code> : value}</dd>
    </div>
  );
}

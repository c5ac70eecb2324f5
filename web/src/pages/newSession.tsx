// A new session: who works, where, on what, and how much they may do without asking.

import { useEffect, useState } from "preact/hooks";
import { api } from "../api/client";
import { type Problem, asProblem } from "../api/problem";
import type { ModelList, Policy, Runtime } from "../api/resources";
import { sentence } from "../format";
import { fields, list } from "../json";
import { useShortcuts } from "../keyboard";
import { meta } from "../live/store";
import { go, paths, search } from "../router";
import { Action, Key, PageHead, Trouble } from "../ui/parts";

/** Effort levels offered for a runtime that does not list its own. */
const EFFORTS: readonly string[] = ["low", "medium", "high"];

function effortsOf(runtime: Runtime | undefined): readonly string[] {
  const levels = list(fields(runtime?.capabilities)["effortLevels"]).filter((level) => typeof level === "string");
  return levels.length > 0 ? levels : EFFORTS;
}

/** Whether the runtime can ask for permission; assumed if unknown. */
function asks(runtime: Runtime | undefined): boolean {
  return fields(runtime?.capabilities)["permissionCallbacks"] !== false;
}

const REMEMBERED = "hangar.newSession";

interface Choice {
  readonly runtime: string;
  readonly model: string;
  readonly effort: string;
  readonly policy: Policy;
}

/** Last choice, which is the default of the next session. */
function remembered(): Partial<Choice> {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(REMEMBERED) ?? "{}");
    return typeof value === "object" && value !== null ? (value as Partial<Choice>) : {};
  } catch {
    return {};
  }
}

function remember(choice: Choice): void {
  try {
    localStorage.setItem(REMEMBERED, JSON.stringify(choice));
  } catch {
    // Nothing is lost but a convenience.
  }
}

export function NewSessionPage() {
  const [before] = useState(remembered);
  const [runtimes, setRuntimes] = useState<readonly Runtime[]>([]);
  const [runtime, setRuntime] = useState(before.runtime ?? "");
  const [models, setModels] = useState<ModelList | null>(null);
  const [model, setModel] = useState(before.model ?? "");
  const [effort, setEffort] = useState(before.effort ?? "");
  const [policy, setPolicy] = useState<Policy>(before.policy === "allow-all" ? "allow-all" : "ask");
  // An address may say where to work.
  const [folder, setFolder] = useState(() => search.peek().get("workspace") ?? "");
  const [name, setName] = useState("");
  const [prompt, setPrompt] = useState("");
  const [queued, setQueued] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);

  useEffect(() => {
    api.runtimes(false).then(
      (answer) => {
        setRuntimes(answer.runtimes);
        setRuntime((chosen) => {
          if (answer.runtimes.some((candidate) => candidate.name === chosen)) return chosen;
          return (answer.runtimes.find((candidate) => candidate.default) ?? answer.runtimes[0])?.name ?? "";
        });
      },
      (error: unknown) => setProblem(asProblem(error)),
    );
  }, []);
  useEffect(() => {
    setModels(null);
    if (runtime === "") return;
    let stale = false;
    api.models(runtime).then(
      (answer) => {
        if (!stale) setModels(answer);
      },
      (error: unknown) => {
        if (!stale) setModels({ models: null, problem: asProblem(error).message });
      },
    );
    return () => {
      stale = true;
    };
  }, [runtime]);
  useEffect(() => {
    if (folder === "") setFolder(meta.value?.workspace ?? meta.value?.repoRoot ?? "");
  }, [meta.value]);

  const chosen = runtimes.find((candidate) => candidate.name === runtime);
  const canAsk = asks(chosen);
  const ready = folder.trim() !== "" && (!queued || prompt.trim() !== "");
  const start = async () => {
    if (!ready) return;
    remember({ runtime, model, effort, policy });
    if (queued) {
      const run = await api.startRun({
        prompt: prompt.trim(),
        workspace: folder.trim(),
        ...(runtime !== "" && { agent: runtime }),
        ...(model.trim() !== "" && { model: model.trim() }),
      });
      go(paths.run(run.id));
      return;
    }
    // In a fleet, work is on a git remote: that of a directory here, or the one that is named.
    const isRemote = meta.value?.fleet === true && !folder.trim().startsWith("/");
    const session = await api.createSession({
      ...(isRemote ? { remote: folder.trim() } : { workspace: folder.trim() }),
      policy: canAsk ? policy : "allow-all",
      ...(runtime !== "" && { runtime }),
      ...(model.trim() !== "" && { model: model.trim() }),
      ...(effort !== "" && { effort }),
      ...(name.trim() !== "" && { name: name.trim() }),
      ...(prompt.trim() !== "" && { prompt: prompt.trim() }),
    });
    go(paths.session(session.id));
  };
  useShortcuts("New session", [
    { keys: "Ctrl+Enter", does: "Start the session", inFields: true, run: () => void start().catch((error: unknown) => setProblem(asProblem(error))) },
  ]);
  // Model names differ between runtimes.
  const choose = (name: string) => {
    setRuntime(name);
    setModel(name === before.runtime ? (before.model ?? "") : "");
  };

  return (
    <div class="page narrow">
      <PageHead title="New session" />
      <div class="form">
        <label class="form-field">
          <span>What should be done?</span>
          <textarea
            class="field prompt"
            rows={5}
            autoFocus
            value={prompt}
            placeholder="Describe the task. You can also leave this empty and write in the session."
            onInput={(event) => setPrompt(event.currentTarget.value)}
          />
        </label>
        <label class="form-field">
          <span>Folder</span>
          <input class="field code" value={folder} spellcheck={false} placeholder="/path/to/project" onInput={(event) => setFolder(event.currentTarget.value)} />
          <span class="hint">An absolute path on the machine that Hangar runs on.</span>
        </label>
        <div class="form-pair">
          <label class="form-field">
            <span>Runtime</span>
            <select class="field" value={runtime} onChange={(event) => choose(event.currentTarget.value)}>
              {runtimes.map((candidate) => (
                <option value={candidate.name}>{candidate.label || candidate.name}</option>
              ))}
            </select>
            {chosen?.preflight?.ready === false && (
              <span class="hint warn">
                It is not ready. <a href="/runtimes">See what is missing</a>
              </span>
            )}
          </label>
          <ModelField models={models} value={model} set={setModel} />
        </div>
        <div class="form-pair">
          <label class="form-field">
            <span>Effort</span>
            <select class="field" value={effort} onChange={(event) => setEffort(event.currentTarget.value)}>
              <option value="">As the model has it</option>
              {effortsOf(chosen).map((level) => (
                <option value={level}>{level}</option>
              ))}
            </select>
          </label>
          <label class="form-field">
            <span>Name</span>
            <input class="field" value={name} placeholder="Made from the first message" onInput={(event) => setName(event.currentTarget.value)} />
          </label>
        </div>
        <fieldset class="form-field">
          <legend>When</legend>
          <label class="choice">
            <input type="radio" name="when" checked={!queued} onChange={() => setQueued(false)} />
            <span>
              <strong>Now</strong>
              <span class="hint">It starts at once, beside everything that runs.</span>
            </span>
          </label>
          <label class="choice">
            <input type="radio" name="when" checked={queued} onChange={() => setQueued(true)} />
            <span>
              <strong>In the queue</strong>
              <span class="hint">It becomes a run that waits for its slot, works without asking, and is continued after a restart.</span>
            </span>
          </label>
        </fieldset>
        <fieldset class="form-field" hidden={queued}>
          <legend>What it may do</legend>
          <label class="choice">
            <input type="radio" name="policy" disabled={!canAsk} checked={canAsk && policy === "ask"} onChange={() => setPolicy("ask")} />
            <span>
              <strong>Ask me</strong>
              <span class="hint">{canAsk ? "Commands and changes wait for your answer, here or in the inbox." : `${chosen?.label || runtime} cannot ask while it works.`}</span>
            </span>
          </label>
          <label class="choice">
            <input type="radio" name="policy" checked={!canAsk || policy === "allow-all"} onChange={() => setPolicy("allow-all")} />
            <span>
              <strong>Allow everything</strong>
              <span class="hint">It runs commands and changes files without asking. For work that you can throw away.</span>
            </span>
          </label>
        </fieldset>
        {problem && <Trouble problem={problem} />}
        <div class="form-actions">
          <Action label={queued ? "Put into the queue" : "Start session"} icon="play" tone="primary" disabled={!ready} act={start} onFail={setProblem} />
          <Key keys="Ctrl+↵" />
        </div>
      </div>
    </div>
  );
}

/** A text field with suggestions, because the list of models may be unknown. */
function ModelField({ models, value, set }: { models: ModelList | null; value: string; set: (model: string) => void }) {
  const known = models?.models ?? [];
  const hint =
    models === null
      ? "Asking which models there are…"
      : models.models === null
        ? sentence(models.problem ?? "which models there are cannot be known; any name that the runtime knows will do")
        : `${known.length} known. Leave it empty for the runtime's own choice.`;
  return (
    <label class="form-field">
      <span>Model</span>
      <input class="field code" list="models" value={value} spellcheck={false} placeholder="As the runtime has it" onInput={(event) => set(event.currentTarget.value)} />
      <datalist id="models">
        {known.map((model) => (
          <option value={model.id}>{model.name ?? model.id}</option>
        ))}
      </datalist>
      <span class="hint">{hint}</span>
    </label>
  );
}

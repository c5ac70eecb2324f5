// Forms for config.toml: agents, runtimes, providers, limits, budgets, schedules. They are made from the schema of the settings.

import { useEffect, useState } from "preact/hooks";
import { api } from "../api/client";
import { type Problem, asProblem } from "../api/problem";
import type { Schedules, Settings } from "../api/resources";
import { moment } from "../format";
import { type Fields, fields, list, text } from "../json";
import { loadMeta } from "../live/store";
import { paths } from "../router";
import { Action, Loading, Sentence, Trouble } from "../ui/parts";
import { type FieldShape, shapesAt, shown, typed } from "./schema";

/** How a secret that is in the file itself is shown. */
const HIDDEN = "(secret)";

type Save = (changes: { path: string[]; value: unknown }[]) => Promise<void>;

export function ConfigForms() {
  const [settings, setSettings] = useState<Settings | null>(null);
  const [schedules, setSchedules] = useState<Schedules | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const load = async () => {
    setSettings(await api.settings());
    setSchedules(await api.schedules());
  };
  useEffect(() => void load().catch((error: unknown) => setProblem(asProblem(error))), []);
  if (settings === null) return problem ? <Trouble problem={problem} /> : <Loading what="settings" />;
  const save: Save = async (changes) => {
    setSettings(await api.changeSettings(changes));
    setSchedules(await api.schedules());
    // The look of this page may have changed.
    await loadMeta();
  };
  const values = fields(settings.values);
  const table = { settings, values, save };
  return (
    <>
      <p class="hint settings-note">
        These are the settings in <code>{settings.path}</code>; <code>hangar config</code> changes them too. {settings.underWay}
      </p>
      {settings.problems.map((found) => (
        <div class="trouble" role="status">
          <p>
            <code>config.toml:{found.line}</code>: <Sentence text={found.message} />
          </p>
        </div>
      ))}
      <Named {...table} title="Agents" path="agents" add="Add an agent" hint="A runtime with a model and settings of its own." first={["runtime", "model", "effort", "description"]} />
      <Named {...table} title="Providers" path="providers" add="Add a provider" hint="Keys are references: a variable, a file, a command or the keychain." first={["type", "base_url", "api_key_env", "model"]} tests />
      <Named {...table} title="Runtimes" path="runtimes" add="Set a runtime up" hint="Settings of all sessions of a runtime." first={["program", "model", "effort"]} names={settings.runtimes} />
      <Plain {...table} title="Limits" path="limits" hint="Work that may run at once. Write “name = number”, one on a line." />
      <Plain {...table} title="Budgets" path="budgets" hint="US dollars that work of the queue may spend; at the limit it waits. Write “name = number”, one on a line." />
      <Plain {...table} title="Caps of a session" path="budget" hint="A session that reaches one is ended." />
      <Plain {...table} title="Retries" path="retry" hint="Delays before failed work is tried again, in seconds." />
      <Plain {...table} title="Appearance" path="appearance" hint="The look of the portal, for browsers that have chosen none, and of the terminal." />
      <ScheduleList {...table} schedules={schedules} />
    </>
  );
}

interface TableProps {
  readonly settings: Settings;
  readonly values: Fields;
  readonly save: Save;
}

/** A table with known settings. */
function Plain({ settings, values, save, title, path, hint }: TableProps & { title: string; path: string; hint: string }) {
  return (
    <section class="panel" aria-label={title}>
      <h2>{title}</h2>
      <p class="hint">{hint}</p>
      <TableForm path={[path]} shapes={shapesAt(settings.schema, [path])} value={fields(values[path])} save={save} first={null} />
    </section>
  );
}

interface NamedProps extends TableProps {
  readonly title: string;
  readonly path: string;
  readonly add: string;
  readonly hint: string;
  readonly first: readonly string[];
  readonly names?: readonly string[];
  readonly tests?: boolean;
}

/** Tables that the user names. */
function Named({ settings, values, save, title, path, add, hint, first, names, tests }: NamedProps) {
  const [name, setName] = useState("");
  const [problem, setProblem] = useState<Problem | null>(null);
  const [added, setAdded] = useState<string | null>(null);
  const shapes = shapesAt(settings.schema, [path, "*"]);
  const tables = Object.entries(fields(values[path])).filter(([, value]) => typeof value === "object" && value !== null && !Array.isArray(value));
  const known = new Set(tables.map(([key]) => key));
  const all = added !== null && !known.has(added) ? [...tables, [added, {}] as const] : tables;
  const own = shapesAt(settings.schema, [path]);
  return (
    <section class="panel" aria-label={title}>
      <h2>{title}</h2>
      <p class="hint">{hint}</p>
      {own.length > 0 && (
        <details class="setting-table">
          <summary>For all</summary>
          <TableForm path={[path]} shapes={own} value={fields(values[path])} save={save} first={null} />
        </details>
      )}
      {all.map(([key, value]) => (
        <details class="setting-table" key={key} open={key === added}>
          <summary>
            <strong>{key}</strong> <span class="hint">{summary(fields(value), first)}</span>
          </summary>
          <TableForm path={[path, key]} shapes={shapes} value={fields(value)} save={save} first={first} />
          <div class="form-actions">
            {known.has(key) && <Action label="Remove" tone="danger" act={() => save([{ path: [path, key], value: null }])} onFail={setProblem} />}
            {tests && known.has(key) && <TestProvider name={key} />}
          </div>
        </details>
      ))}
      {problem && <Trouble problem={problem} />}
      <form
        class="form-actions"
        onSubmit={(event) => {
          event.preventDefault();
          if (name.trim() !== "") setAdded(name.trim());
          setName("");
        }}
      >
        <input class="field" aria-label={`${add}: name`} placeholder="name" value={name} list={names ? `${path}-names` : undefined} onInput={(event) => setName(event.currentTarget.value)} />
        {names && (
          <datalist id={`${path}-names`}>
            {names.map((one) => (
              <option value={one} />
            ))}
          </datalist>
        )}
        <button type="submit" class="button" disabled={name.trim() === ""}>
          {add}
        </button>
      </form>
    </section>
  );
}

function summary(value: Fields, keys: readonly string[]): string {
  return keys
    .map((key) => text(value[key]))
    .filter((word) => word !== "")
    .join(" · ");
}

function TestProvider({ name }: { name: string }) {
  const [said, setSaid] = useState<{ ok: boolean; says: string } | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  return (
    <>
      <Action label="Test" act={async () => setSaid(await api.testProvider(name))} onFail={setProblem} />
      <span role="status" class={said?.ok === false ? "bad" : "hint"}>
        {said && <Sentence text={said.says} />}
      </span>
      {problem && <Trouble problem={problem} />}
    </>
  );
}

interface FormProps {
  readonly path: readonly string[];
  readonly shapes: readonly FieldShape[];
  readonly value: Fields;
  readonly save: Save;
  /** Settings that are shown at once, the others on demand. `null` shows all. */
  readonly first: readonly string[] | null;
}

function TableForm({ path, shapes, value, save, first }: FormProps) {
  const [words, setWords] = useState<Readonly<Record<string, string>>>({});
  const [problem, setProblem] = useState<Problem | null>(null);
  const [saved, setSaved] = useState(false);
  const fit = shapes.filter((shape) => shape.kind !== "other");
  const others = shapes.filter((shape) => shape.kind === "other" && value[shape.key] !== undefined);
  const changed = fit.filter((shape) => words[shape.key] !== undefined && words[shape.key] !== shown(shape, value[shape.key]));
  const submit = async () => {
    setSaved(false);
    setProblem(null);
    await save(changed.map((shape) => ({ path: [...path, shape.key], value: typed(shape, words[shape.key] ?? "") })));
    setWords({});
    setSaved(true);
  };
  const field = (shape: FieldShape) => (
    <SettingField
      key={shape.key}
      shape={shape}
      words={words[shape.key] ?? shown(shape, value[shape.key])}
      set={(typedWords) => {
        setSaved(false);
        setWords({ ...words, [shape.key]: typedWords });
      }}
    />
  );
  const ahead = first === null ? fit : fit.filter((shape) => first.includes(shape.key) || value[shape.key] !== undefined);
  const behind = fit.filter((shape) => !ahead.includes(shape));
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        void submit().catch((error: unknown) => setProblem(asProblem(error)));
      }}
    >
      <div class="setting-fields">{ahead.map(field)}</div>
      {behind.length > 0 && (
        <details>
          <summary>More settings</summary>
          <div class="setting-fields">{behind.map(field)}</div>
        </details>
      )}
      {others.length > 0 && <p class="hint">Also set in the file: {others.map((shape) => shape.key).join(", ")}.</p>}
      {problem && <Trouble problem={problem} />}
      <div class="form-actions">
        <button type="submit" class="button primary" disabled={changed.length === 0}>
          Save
        </button>
        <span role="status" class="hint">
          {saved ? "Saved." : ""}
        </span>
      </div>
    </form>
  );
}

function SettingField({ shape, words, set }: { shape: FieldShape; words: string; set: (words: string) => void }) {
  const choices = shape.kind === "switch" ? ["true", "false"] : shape.choices;
  const secret = words === HIDDEN;
  return (
    <label class="form-field">
      <span>{shape.key}</span>
      {secret ? (
        <input class="field code" value="kept in the file, not shown" disabled />
      ) : shape.kind === "choice" || shape.kind === "switch" ? (
        <select class="field" value={words} onChange={(event) => set(event.currentTarget.value)}>
          <option value="">not set</option>
          {choices.map((choice) => (
            <option value={choice}>{shape.kind === "switch" ? (choice === "true" ? "yes" : "no") : choice}</option>
          ))}
        </select>
      ) : shape.kind === "numbers" ? (
        <textarea class="field code" rows={2} spellcheck={false} value={words} onInput={(event) => set(event.currentTarget.value)} />
      ) : (
        <input class="field" type="text" inputMode={shape.kind === "number" ? "decimal" : undefined} spellcheck={false} value={words} onInput={(event) => set(event.currentTarget.value)} />
      )}
      <span class="hint">{shape.hint}</span>
    </label>
  );
}

/** Schedules and hooks, with when they run. */
function ScheduleList({ settings, values, save, schedules }: TableProps & { schedules: Schedules | null }) {
  const [problem, setProblem] = useState<Problem | null>(null);
  const [adding, setAdding] = useState(false);
  const shapes = shapesAt(settings.schema, ["schedules", "*"]);
  const tables = list(values["schedules"]).map(fields);
  const first = ["name", "cron", "time_zone", "prompt", "job", "agent", "workspace"];
  return (
    <section class="panel" aria-label="Schedules">
      <h2>Schedules</h2>
      <p class="hint">Work that starts at fixed times, while the portal runs. Times that were missed are told and not made up for.</p>
      {tables.map((value, at) => {
        const known = schedules?.schedules.find((one) => one.name === text(value["name"]));
        return (
          <details class="setting-table">
            <summary>
              <strong>{text(value["name"])}</strong>{" "}
              <span class="hint">
                {text(value["cron"])} {known?.next !== undefined && `· next ${moment(known.next)}`}
                {known !== undefined && !known.enabled && "· disabled"}
              </span>
            </summary>
            {known?.error !== undefined && <p class="bad">The last run could not be started: {known.error}</p>}
            {known !== undefined && known.missed > 0 && (
              <p class="hint">
                {known.missed} missed: {known.missedReason}
              </p>
            )}
            {known?.run !== undefined && (
              <p>
                Last run: <a href={paths.run(known.run)}>{known.run}</a>
              </p>
            )}
            <TableForm path={["schedules", String(at)]} shapes={shapes} value={value} save={save} first={first} />
            <div class="form-actions">
              <Action label="Run now" act={() => api.runSchedule(text(value["name"])).then(() => undefined)} onFail={setProblem} />
              <Action label="Remove" tone="danger" act={() => save([{ path: ["schedules", String(at)], value: null }])} onFail={setProblem} />
            </div>
          </details>
        );
      })}
      {problem && <Trouble problem={problem} />}
      {adding ? (
        <TableForm
          path={["schedules", String(tables.length)]}
          shapes={shapes}
          value={{}}
          first={first}
          save={async (changes) => {
            await save(changes);
            setAdding(false);
          }}
        />
      ) : (
        <button type="button" class="button" onClick={() => setAdding(true)}>
          Add a schedule
        </button>
      )}
      {schedules !== null && schedules.hooks.length > 0 && (
        <>
          <h3>Hooks</h3>
          <ul>
            {schedules.hooks.map((hook) => (
              <li>
                <code>POST {hook.path}</code> <span class="hint">secret: {hook.secret}</span> {hook.run !== undefined && <a href={paths.run(hook.run)}>last run</a>}
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

// Preferences of this browser, the settings of the machine, and facts about the server.

import { useEffect, useState } from "preact/hooks";
import { api } from "../api/client";
import { type Problem, asProblem } from "../api/problem";
import type { Jobs } from "../api/resources";
import { helpOpen } from "../keyboard";
import { loadMeta, meta } from "../live/store";
import { ConfigForms } from "../settings/forms";
import { type Theme, theme } from "../theme";
import { Action, PageHead, Trouble } from "../ui/parts";

const THEMES: readonly [Theme, string][] = [
  ["configured", "As configured"],
  ["system", "As the system"],
  ["light", "Light"],
  ["dark", "Dark"],
];

export function SettingsPage() {
  const known = meta.value;
  return (
    <div class="page narrow">
      <PageHead title="Settings" />
      <section class="panel">
        <h2>This browser</h2>
        <div class="segments" role="radiogroup" aria-label="Theme">
          {THEMES.map(([value, label]) => (
            <label class={theme.value === value ? "chosen" : ""}>
              <input
                type="radio"
                name="theme"
                class="sr-only"
                checked={theme.value === value}
                onChange={() => {
                  theme.value = value;
                }}
              />
              {label}
            </label>
          ))}
        </div>
      </section>
      <EntryFile />
      <ConfigForms />
      <section class="panel">
        <h2>Access</h2>
        {known?.tokenRequired ? <Token /> : <p>This portal listens on this machine only and needs no token.</p>}
      </section>
      <section class="panel">
        <h2>Keyboard</h2>
        <p>Everything can be done without a mouse.</p>
        <button
          type="button"
          class="button"
          onClick={() => {
            helpOpen.value = true;
          }}
        >
          Show the keys
        </button>
      </section>
      <section class="panel">
        <h2>About</h2>
        <dl class="facts-list">
          <div>
            <dt>Version</dt>
            <dd>{known?.version ?? "unknown"}</dd>
          </div>
          {known?.home !== undefined && (
            <div>
              <dt>Home</dt>
              <dd>
                <code>{known.home}</code>
              </dd>
            </div>
          )}
          <div>
            <dt>API</dt>
            <dd>
              <a href="/api/v1/openapi.json" target="_blank" rel="noopener">
                OpenAPI description
              </a>
            </dd>
          </div>
        </dl>
      </section>
    </div>
  );
}

function Token() {
  const [problem, setProblem] = useState<Problem | null>(null);
  return (
    <>
      <p>This browser is logged in by a token, kept in a cookie that pages cannot read.</p>
      <Action
        label="Log out"
        icon="exit"
        act={async () => {
          await api.logout();
          await loadMeta();
        }}
        onFail={setProblem}
      />
      {problem && <Trouble problem={problem} />}
    </>
  );
}

function EntryFile() {
  const [jobs, setJobs] = useState<Jobs | null>(null);
  const [path, setPath] = useState("");
  const [problem, setProblem] = useState<Problem | null>(null);
  const [saved, setSaved] = useState(false);
  const load = async () => {
    const known = await api.jobs();
    setJobs(known);
    // An answer that comes late does not take away what was typed meanwhile.
    setPath((typed) => (typed === "" ? (known.entry?.path ?? "") : typed));
  };
  useEffect(() => void load().catch((error: unknown) => setProblem(asProblem(error))), []);
  const save = async () => {
    setSaved(false);
    await api.installEntry(path.trim());
    await load();
    setSaved(true);
  };
  return (
    <section class="panel">
      <h2>Jobs</h2>
      <label class="form-field">
        <span>Entry file</span>
        <input class="field code" value={path} spellcheck={false} placeholder="/path/to/jobs.yaml" onInput={(event) => setPath(event.currentTarget.value)} />
        <span class="hint">The YAML or JSON file that says which jobs there are. An absolute path on the machine that Hangar runs on.</span>
      </label>
      {problem && <Trouble problem={problem} />}
      <div class="form-actions">
        <Action label="Use this file" tone="primary" disabled={path.trim() === ""} act={save} onFail={setProblem} />
        <span role="status">{saved && jobs !== null ? `${Object.keys(jobs.jobs).length} jobs are ready.` : ""}</span>
      </div>
    </section>
  );
}

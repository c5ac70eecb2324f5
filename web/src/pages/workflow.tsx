// Editor of a workflow file: checked while it is written, with the prompt that a real issue would get.

import { useEffect, useRef, useState } from "preact/hooks";
import { api } from "../api/client";
import { Problem, asProblem } from "../api/problem";
import type { WorkflowCheck, WorkflowText } from "../api/resources";
import { useShortcuts } from "../keyboard";
import { Action, Loading, PageHead, Sentence, Trouble } from "../ui/parts";
import { useBoard } from "./issues";

const DEBOUNCE_MS = 400;

export function WorkflowPage({ id }: { id: string }) {
  const [file, setFile] = useState<WorkflowText | null>(null);
  const [text, setText] = useState("");
  const [check, setCheck] = useState<WorkflowCheck | null>(null);
  const [issue, setIssue] = useState("");
  const [problem, setProblem] = useState<Problem | null>(null);
  const { board } = useBoard(id);
  const field = useRef<HTMLTextAreaElement>(null);
  const load = async () => {
    const found = await api.workflow(id);
    setFile(found);
    setText(found.text);
    setCheck(found.check);
    setProblem(null);
  };
  useEffect(() => {
    load().catch((error: unknown) => setProblem(asProblem(error)));
  }, [id]);
  // Without a choice, the preview is of the first issue on the board.
  const shown = issue !== "" ? issue : (board?.issues[0]?.id ?? "");
  useEffect(() => {
    if (file === null) return;
    let ended = false;
    const timer = setTimeout(() => {
      api.checkWorkflow(id, { text, ...(shown !== "" && { issue: shown }) }).then(
        (found) => {
          if (!ended) setCheck(found);
        },
        (error: unknown) => {
          if (!ended) setProblem(asProblem(error));
        },
      );
    }, DEBOUNCE_MS);
    return () => {
      ended = true;
      clearTimeout(timer);
    };
  }, [id, text, shown, file?.revision]);
  const changed = file !== null && text !== file.text;
  const save = async () => {
    if (file === null) return;
    const saved = await api.saveWorkflow(id, { text, revision: file.revision });
    setFile(saved);
    setText(saved.text);
  };
  useShortcuts("Workflow", [
    {
      keys: "Ctrl+s",
      does: "Save",
      inFields: true,
      run: () => {
        if (changed) save().then(() => setProblem(null), (error: unknown) => setProblem(asProblem(error)));
      },
    },
  ]);
  if (file === null) return <div class="page">{problem === null ? <Loading what="the workflow" /> : <Trouble problem={problem} />}</div>;
  const goTo = (line: number) => {
    const start = text.split("\n").slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
    const end = text.indexOf("\n", start);
    field.current?.focus();
    field.current?.setSelectionRange(start, end === -1 ? text.length : end);
  };
  const errors = check?.problems.filter((known) => known.severity === "error").length ?? 0;
  return (
    <div class="page workflow-page">
      <PageHead title="Workflow" sub={<code>{file.path}</code>}>
        <a class="button" href={`/issues?workflow=${encodeURIComponent(id)}`}>
          Issues
        </a>
        {changed && <Action label="Discard" act={load} onFail={setProblem} />}
        <Action label="Save" tone="primary" disabled={!changed || errors > 0} act={save} onFail={setProblem} />
      </PageHead>
      {problem && <Trouble problem={problem} {...(problem.code === "changed_meanwhile" && { retry: () => void load() })} />}
      <div class="workflow-columns">
        <section class="workflow-source" aria-label="File">
          <textarea ref={field} class="field code wide" aria-label="Text of the workflow" spellcheck={false} value={text} onInput={(event) => setText(event.currentTarget.value)} />
          <ul class="workflow-problems" aria-label="Problems">
            {check?.problems.map((known, at) => (
              <li key={at} class={known.severity === "error" ? "hint bad" : "hint warn"}>
                <button type="button" class="link" onClick={() => goTo(known.line)}>
                  line {known.line}
                </button>{" "}
                <Sentence text={known.message} /> <code>{known.check}</code>
              </li>
            ))}
            {check !== null && check.problems.length === 0 && <li class="hint">The workflow is valid.</li>}
          </ul>
        </section>
        <section class="panel workflow-preview" aria-label="Preview">
          <h2>
            <label>
              Prompt for{" "}
              <select class="field" aria-label="Issue of the preview" value={shown} onChange={(event) => setIssue(event.currentTarget.value)}>
                {board?.issues.map((known) => (
                  <option value={known.id} key={known.id}>
                    {known.identifier} {known.title}
                  </option>
                ))}
              </select>
            </label>
          </h2>
          {board !== null && board.issues.length === 0 && <p class="hint">The board has no issue to render the prompt for.</p>}
          {check?.promptProblem !== undefined && <Trouble problem={new Problem(0, "prompt", check.promptProblem)} />}
          {check?.prompt !== undefined && <pre class="workflow-prompt">{check.prompt}</pre>}
        </section>
      </div>
    </div>
  );
}

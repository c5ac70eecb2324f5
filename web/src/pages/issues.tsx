// Issues of all workflows: as a board of the queue, as a board of states, and as a table. Every card says why it is where it is.

import { useEffect, useRef, useState } from "preact/hooks";
import { api } from "../api/client";
import { type Problem, asProblem } from "../api/problem";
import type { BoardColumn, Issue, IssueBoard, IssueOrder, Workflow } from "../api/resources";
import { dollars, tokens } from "../format";
import { moveFocus, useShortcuts } from "../keyboard";
import { onChange } from "../live/store";
import { go, paths, refine, search } from "../router";
import { Age, Dialog, Empty, Loading, PageHead, Sentence, Trouble } from "../ui/parts";

const AGAIN_MS = 2_000;

export const COLUMNS: readonly { readonly column: BoardColumn; readonly label: string }[] = [
  { column: "eligible", label: "Eligible" },
  { column: "held", label: "Held" },
  { column: "running", label: "Running" },
  { column: "retrying", label: "Retrying" },
  { column: "parked", label: "Parked" },
  { column: "waiting_ci", label: "Waiting for CI" },
  { column: "waiting_review", label: "Waiting for review" },
  { column: "done", label: "Done" },
];

const VIEWS = ["queue", "states", "table"] as const;
type View = (typeof VIEWS)[number];

const TONES: { readonly [column in BoardColumn]: string } = {
  eligible: "none",
  held: "none",
  running: "busy",
  retrying: "warn",
  parked: "warn",
  waiting_ci: "busy",
  waiting_review: "warn",
  done: "good",
};

export const labelOf = (column: BoardColumn): string => COLUMNS.find((known) => known.column === column)?.label ?? column;

/** The board, read again every two seconds and when a session changes. */
export function useBoard(workflow?: string) {
  const [board, setBoard] = useState<IssueBoard | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const look = useRef<() => void>(() => {});
  useEffect(() => {
    let timer = 0;
    let ended = false;
    const read = async () => {
      clearTimeout(timer);
      try {
        const found = await api.issues(workflow);
        if (!ended) {
          setBoard(found);
          setProblem(null);
        }
      } catch (error) {
        if (!ended) setProblem(asProblem(error));
      }
      clearTimeout(timer);
      if (!ended) timer = window.setTimeout(() => void read(), AGAIN_MS);
    };
    look.current = () => void read();
    void read();
    const stop = onChange({ session: () => void read() });
    return () => {
      ended = true;
      clearTimeout(timer);
      stop();
    };
  }, [workflow]);
  return { board, problem, setProblem, look: () => look.current() };
}

/** The order that a drop on a column of the queue stands for. */
function orderOf(issue: Issue, column: BoardColumn, workflow: Workflow | undefined): IssueOrder | null {
  const can = (action: Issue["actions"][number]) => issue.actions.includes(action);
  if (issue.column === column) return null;
  switch (column) {
    case "eligible":
    case "running":
      return can("start") ? { action: "start" } : can("retry") ? { action: "retry" } : null;
    case "parked":
      return can("park") ? { action: "park" } : can("stop") ? { action: "stop" } : null;
    case "done": {
      const state = workflow?.terminalStates[0];
      return state !== undefined && can("move") ? { action: "move", state } : null;
    }
    default:
      return null;
  }
}

const nameOf = (issue: Issue) => `${issue.workflow}/${issue.id}`;

export function IssuesPage() {
  const only = search.value.get("workflow") ?? "";
  const wanted = search.value.get("view") ?? "queue";
  const view: View = VIEWS.find((known) => known === wanted) ?? "queue";
  const words = (search.value.get("q") ?? "").toLowerCase();
  const { board, problem, setProblem, look } = useBoard(only === "" ? undefined : only);
  const [dragged, setDragged] = useState<Issue | null>(null);
  const [moving, setMoving] = useState<Issue | null>(null);

  const issues = (board?.issues ?? []).filter((issue) => words === "" || `${issue.identifier} ${issue.title} ${issue.labels.join(" ")} ${issue.agent ?? ""}`.toLowerCase().includes(words));
  const workflowOf = (issue: Issue) => board?.workflows.find((workflow) => workflow.key === issue.workflow);
  const act = async (issue: Issue, order: IssueOrder | null) => {
    if (order === null) return;
    try {
      await api.actOnIssue(issue.workflow, issue.id, order);
      setProblem(null);
    } catch (error) {
      setProblem(asProblem(error));
    }
    look();
  };
  const current = () => {
    const card = document.activeElement?.closest<HTMLElement>("[data-issue]");
    return issues.find((issue) => nameOf(issue) === card?.dataset.issue);
  };
  const press = (...actions: Issue["actions"]) => () => {
    const issue = current();
    const action = actions.find((known) => issue?.actions.includes(known));
    if (issue !== undefined && action !== undefined) void act(issue, { action });
  };
  useShortcuts("Issues", [
    { keys: "j", does: "Next issue", run: () => moveFocus("[data-issue]", 1) },
    { keys: "k", does: "Previous issue", run: () => moveFocus("[data-issue]", -1) },
    { keys: "l", does: "Next column", run: () => besides(1) },
    { keys: "h", does: "Previous column", run: () => besides(-1) },
    { keys: "s", does: "Start or retry", run: press("start", "retry") },
    { keys: "x", does: "Stop", run: press("stop") },
    { keys: "p", does: "Park", run: press("park") },
    { keys: "m", does: "Move to a state", run: () => setMoving(current() ?? null) },
    { keys: "v", does: "Next view", run: () => refine({ view: VIEWS[(VIEWS.indexOf(view) + 1) % VIEWS.length] ?? "queue" }) },
    {
      keys: "o",
      does: "Open the issue",
      run: () => {
        const issue = current();
        if (issue !== undefined) go(paths.issue(issue.workflow, issue.id));
      },
    },
  ]);
  if (board === null) return <div class="page">{problem === null ? <Loading what="issues" /> : <Trouble problem={problem} />}</div>;
  const count = board.counts.reduce((sum, { count }) => sum + count, 0);
  const running = board.counts.find(({ column }) => column === "running")?.count ?? 0;
  return (
    <div class="board-page">
      <PageHead title="Issues" sub={board.workflows.length === 0 ? undefined : `${count} on the board, ${running} running`}>
        <div class="filters">
          <label class="search-field">
            <input type="search" placeholder="Filter" aria-label="Filter issues" value={search.value.get("q") ?? ""} onInput={(event) => refine({ q: event.currentTarget.value })} />
          </label>
          {(board.workflows.length > 1 || only !== "") && (
            <select class="field" aria-label="Workflow" value={only} onChange={(event) => refine({ workflow: event.currentTarget.value })}>
              <option value="">All workflows</option>
              {board.workflows.map((workflow) => (
                <option value={workflow.key} key={workflow.key}>
                  {workflow.name}
                </option>
              ))}
            </select>
          )}
          <fieldset class="segments" aria-label="View">
            {VIEWS.map((known) => (
              <button type="button" class="button small" aria-pressed={known === view} key={known} onClick={() => refine({ view: known })}>
                {known === "queue" ? "Queue" : known === "states" ? "States" : "Table"}
              </button>
            ))}
          </fieldset>
        </div>
      </PageHead>
      {problem && <Trouble problem={problem} />}
      <Workflows workflows={board.workflows} />
      {board.workflows.length === 0 ? (
        <Empty icon="jobs" title="No workflow is configured">
          <p>
            Add <code>[[orchestrator]]</code> with <code>workflow = "/path/to/WORKFLOW.md"</code> to <code>config.toml</code>; its issues appear here.
          </p>
        </Empty>
      ) : view === "table" ? (
        <IssueTable issues={issues} workflowOf={workflowOf} />
      ) : (
        <div class="board" role="list" aria-label={view === "queue" ? "Issues by their place in the queue" : "Issues by state"}>
          {(view === "queue" ? queueColumns(board, issues) : stateColumns(board, issues)).map((column) => (
            <Column
              key={column.key}
              label={column.label}
              count={column.count}
              takes={dragged !== null && column.order(dragged, workflowOf(dragged)) !== null}
              onDrop={() => {
                if (dragged !== null) void act(dragged, column.order(dragged, workflowOf(dragged)));
                setDragged(null);
              }}
            >
              {column.issues.map((issue) => (
                <Card key={nameOf(issue)} issue={issue} project={board.workflows.length > 1 ? workflowOf(issue)?.name : undefined} onDrag={setDragged} />
              ))}
            </Column>
          ))}
        </div>
      )}
      {moving !== null && (
        <MoveDialog
          issue={moving}
          states={workflowOf(moving)?.states ?? []}
          onClose={() => setMoving(null)}
          onMove={(state) => {
            setMoving(null);
            void act(moving, { action: "move", state });
          }}
        />
      )}
    </div>
  );
}

/** Moves the focus to the first card of the next column that has one. */
function besides(by: 1 | -1): void {
  const columns = [...document.querySelectorAll<HTMLElement>(".board-column")].filter((column) => column.querySelector("[data-issue]") !== null);
  const at = columns.findIndex((column) => column.contains(document.activeElement));
  const next = columns[at === -1 ? 0 : Math.max(0, Math.min(columns.length - 1, at + by))];
  next?.querySelector<HTMLElement>("[data-issue]")?.focus();
}

interface BoardPart {
  readonly key: string;
  readonly label: string;
  readonly count: number;
  readonly issues: readonly Issue[];
  readonly order: (issue: Issue, workflow: Workflow | undefined) => IssueOrder | null;
}

function queueColumns(board: IssueBoard, issues: readonly Issue[]): BoardPart[] {
  return COLUMNS.map(({ column, label }) => ({
    key: column,
    label,
    count: board.counts.find((known) => known.column === column)?.count ?? 0,
    issues: issues.filter((issue) => issue.column === column),
    order: (issue, workflow) => orderOf(issue, column, workflow),
  }));
}

function stateColumns(board: IssueBoard, issues: readonly Issue[]): BoardPart[] {
  const states: string[] = [];
  for (const state of [...board.workflows.flatMap((workflow) => workflow.states), ...issues.map((issue) => issue.state)]) {
    if (!states.some((known) => known.toLowerCase() === state.toLowerCase())) states.push(state);
  }
  return states.map((state) => {
    const own = issues.filter((issue) => issue.state.toLowerCase() === state.toLowerCase());
    return {
      key: state,
      label: state,
      count: own.length,
      issues: own,
      order: (issue, workflow) => {
        const known = workflow?.states.find((name) => name.toLowerCase() === state.toLowerCase());
        return known === undefined || issue.state.toLowerCase() === state.toLowerCase() ? null : { action: "move", state: known };
      },
    };
  });
}

function Workflows({ workflows }: { workflows: readonly Workflow[] }) {
  return (
    <ul class="workflow-list" aria-label="Workflows">
      {workflows.map((workflow) => (
        <li key={workflow.key} class={workflow.problem === undefined ? "" : "trouble warn"}>
          <a href={paths.workflow(workflow.key)} title={workflow.path}>
            {workflow.name}
          </a>{" "}
          <span class={`state tone-${workflow.status === "running" ? "busy" : "warn"}`} data-workflow-status={workflow.status}>
            <span class="dot" aria-hidden="true" />
            <span class="word">{workflow.status}</span>
          </span>
          {workflow.problem !== undefined && (
            <p>
              <Sentence text={workflow.problem} />
            </p>
          )}
        </li>
      ))}
    </ul>
  );
}

function Column({ label, count, takes, onDrop, children }: { label: string; count: number; takes: boolean; onDrop: () => void; children: preact.ComponentChildren }) {
  const [over, setOver] = useState(false);
  return (
    <section
      role="listitem"
      class={`board-column${takes ? " takes" : ""}${takes && over ? " over" : ""}${count === 0 ? " is-empty" : ""}`}
      aria-label={`${label}: ${count}`}
      data-column={label}
      onDragOver={(event) => {
        if (!takes) return;
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        onDrop();
      }}
    >
      <h2>
        {label} <span class="column-count">{count}</span>
      </h2>
      <div class="board-cards">{children}</div>
    </section>
  );
}

function Card({ issue, project, onDrag }: { issue: Issue; project: string | undefined; onDrag: (issue: Issue | null) => void }) {
  return (
    <article
      class="issue-card"
      tabIndex={0}
      draggable
      data-issue={nameOf(issue)}
      data-identifier={issue.identifier}
      aria-label={`${issue.identifier} ${issue.title}`}
      onDragStart={(event) => {
        event.dataTransfer?.setData("text/plain", issue.identifier);
        onDrag(issue);
      }}
      onDragEnd={() => onDrag(null)}
      onKeyDown={(event) => {
        if (event.key === "Enter" && event.target === event.currentTarget) go(paths.issue(issue.workflow, issue.id));
      }}
    >
      <a class="issue-name" href={paths.issue(issue.workflow, issue.id)} draggable={false}>
        <span class="issue-id">{issue.identifier}</span> {issue.title}
      </a>
      <p class="issue-facts">
        {project !== undefined && <span>{project}</span>}
        <span>{issue.state}</span>
        {issue.agent !== undefined && <span>{issue.agent}</span>}
        {issue.turn > 0 && issue.maxTurns > 0 && (
          <span>
            turn {issue.turn}/{issue.maxTurns}
          </span>
        )}
        {issue.since !== undefined && <Age at={issue.since} />}
        <Usage issue={issue} />
        <PullMark issue={issue} />
      </p>
      {issue.column !== "running" && (
        <p class="issue-why">
          <Sentence text={issue.why} />
        </p>
      )}
    </article>
  );
}

export function Usage({ issue }: { issue: Issue }) {
  const used = issue.tokens.input + issue.tokens.output;
  return (
    <>
      {used > 0 && <span title={`${issue.tokens.input} in, ${issue.tokens.output} out, ${issue.tokens.cacheRead} from the cache`}>{tokens(used)} tokens</span>}
      {issue.cost !== undefined && <span>{dollars(issue.cost)}</span>}
    </>
  );
}

const CHECKS = { pending: ["busy", "checks pending"], passing: ["good", "checks pass"], failing: ["bad", "checks fail"] } as const;

export function PullMark({ issue: { pull } }: { issue: Issue }) {
  if (pull === undefined) return null;
  const [tone, words] = pull.merged ? (["good", "merged"] as const) : pull.checks === undefined ? (["none", "no checks"] as const) : CHECKS[pull.checks];
  return (
    <a href={pull.url} class={`state tone-${tone}`} target="_blank" rel="noreferrer" title={`Pull request${pull.number > 0 ? ` #${pull.number}` : ""}: ${words}`} draggable={false}>
      <span class="dot" aria-hidden="true" />
      <span class="word">
        {pull.number > 0 ? `#${pull.number}` : "Pull request"} {words}
        {pull.openThreads > 0 && `, ${pull.openThreads} open`}
      </span>
    </a>
  );
}

export function ColumnMark({ issue }: { issue: Issue }) {
  return (
    <span class={`state tone-${TONES[issue.column]}`} data-issue-column={issue.column}>
      <span class="dot" aria-hidden="true" />
      <span class="word">{labelOf(issue.column)}</span>
    </span>
  );
}

function IssueTable({ issues, workflowOf }: { issues: readonly Issue[]; workflowOf: (issue: Issue) => Workflow | undefined }) {
  return (
    <div class="table-box">
      <table class="issue-table">
        <thead>
          <tr>
            <th>Issue</th>
            <th>Queue</th>
            <th>State</th>
            <th>Why</th>
            <th>Agent</th>
            <th>Turn</th>
            <th>Age</th>
            <th>Usage</th>
            <th>Pull request</th>
            <th>Project</th>
          </tr>
        </thead>
        <tbody>
          {issues.map((issue) => (
            <tr key={nameOf(issue)} tabIndex={0} data-issue={nameOf(issue)} data-identifier={issue.identifier}>
              <td>
                <a href={paths.issue(issue.workflow, issue.id)}>
                  <span class="issue-id">{issue.identifier}</span> {issue.title}
                </a>
              </td>
              <td>
                <ColumnMark issue={issue} />
              </td>
              <td>{issue.state}</td>
              <td class="issue-why">
                <Sentence text={issue.why} />
              </td>
              <td>{issue.agent}</td>
              <td>{issue.turn > 0 ? issue.turn : ""}</td>
              <td>{issue.since !== undefined && <Age at={issue.since} />}</td>
              <td>
                <span class="issue-facts">
                  <Usage issue={issue} />
                </span>
              </td>
              <td>
                <PullMark issue={issue} />
              </td>
              <td>{workflowOf(issue)?.name}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function MoveDialog({ issue, states, onMove, onClose }: { issue: Issue; states: readonly string[]; onMove: (state: string) => void; onClose: () => void }) {
  return (
    <Dialog title={`Move ${issue.identifier}`} onClose={onClose}>
      <div class="move-states">
        {states.map((state, at) => (
          <button type="button" class="button wide" key={state} disabled={state.toLowerCase() === issue.state.toLowerCase()} autoFocus={at === 0} onClick={() => onMove(state)}>
            {state}
          </button>
        ))}
      </div>
      <div class="dialog-actions">
        <button type="button" class="button" onClick={onClose}>
          Cancel
        </button>
      </div>
    </Dialog>
  );
}

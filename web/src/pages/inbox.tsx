// What waits for a person: questions of agents, approvals, parked issues, and budgets that hold work.

import { useEffect, useState } from "preact/hooks";
import { api } from "../api/client";
import { type Problem, asProblem } from "../api/problem";
import type { Issue, Queue } from "../api/resources";
import { AskCard } from "../ask/card";
import { moveFocus, useShortcuts } from "../keyboard";
import { loadApprovals, openApprovals } from "../live/store";
import { paths } from "../router";
import { Action, Empty, Loading, PageHead, Sentence, Trouble } from "../ui/parts";
import { MoveDialog, useBoard } from "./issues";
import { Budgets } from "./queue";

const AGAIN_MS = 5_000;

export function InboxPage() {
  const { board, problem, setProblem, look } = useBoard();
  const [queue, setQueue] = useState<Queue | null>(null);
  useEffect(() => {
    void loadApprovals();
    const read = () => void api.queue(0).then(setQueue, (error: unknown) => setProblem(asProblem(error)));
    read();
    const timer = window.setInterval(read, AGAIN_MS);
    return () => clearInterval(timer);
  }, []);
  useShortcuts("Inbox", [
    { keys: "j", does: "Next", run: () => moveFocus(".inbox-item, .ask", 1) },
    { keys: "k", does: "Previous", run: () => moveFocus(".inbox-item, .ask", -1) },
  ]);
  if (board === null) return <div class="page narrow">{problem === null ? <Loading what="the inbox" /> : <Trouble problem={problem} />}</div>;
  const parked = board.issues.filter((issue) => issue.column === "parked");
  const questions = parked.filter((issue) => issue.question !== undefined);
  const others = parked.filter((issue) => issue.question === undefined);
  const approvals = openApprovals.value;
  const budgets = (queue?.budgets ?? []).filter((budget) => budget.held !== undefined);
  const held = queue?.held ?? [];
  const states = (issue: Issue) => board.workflows.find((workflow) => workflow.key === issue.workflow)?.states ?? [];
  const count = parked.length + approvals.length + budgets.length + held.length;
  return (
    <div class="page narrow">
      <PageHead title="Inbox" sub={count === 0 ? undefined : `${count} waiting for you`} />
      {problem && <Trouble problem={problem} />}
      {count === 0 && (
        <Empty icon="approvals" title="Nothing waits for you">
          <p>Questions of agents, approvals, parked issues and budgets that hold work show up here.</p>
        </Empty>
      )}
      {questions.length > 0 && (
        <section aria-label="Questions">
          <h2 class="inbox-title">Questions</h2>
          <ul class="inbox">
            {questions.map((issue) => (
              <QuestionItem key={issue.id} issue={issue} onDone={look} onFail={setProblem} />
            ))}
          </ul>
        </section>
      )}
      {approvals.length > 0 && (
        <section aria-label="Approvals">
          <h2 class="inbox-title">Approvals</h2>
          <ul class="inbox">
            {approvals.map((approval) => (
              <li key={approval.id}>
                <AskCard approval={approval} keys={false} />
              </li>
            ))}
          </ul>
        </section>
      )}
      {(budgets.length > 0 || held.length > 0) && (
        <section aria-label="Budgets">
          <h2 class="inbox-title">Budgets and accounts</h2>
          {held.map((account) => (
            <div class="trouble warn" key={account.account}>
              <p>
                <Sentence text={`account ${account.account} is held: ${account.reason}`} />
              </p>
            </div>
          ))}
          <Budgets budgets={budgets} onRaise={setQueue} onFail={setProblem} />
        </section>
      )}
      {others.length > 0 && (
        <section aria-label="Parked">
          <h2 class="inbox-title">Parked</h2>
          <ul class="inbox">
            {others.map((issue) => (
              <ParkedItem key={issue.id} issue={issue} states={states(issue)} onDone={look} onFail={setProblem} />
            ))}
          </ul>
        </section>
      )}
    </div>
  );
}

interface ItemProps {
  readonly issue: Issue;
  readonly onDone: () => void;
  readonly onFail: (problem: Problem | null) => void;
}

function Head({ issue }: { issue: Issue }) {
  return (
    <a class="issue-name" href={paths.issue(issue.workflow, issue.id)}>
      <span class="issue-id">{issue.identifier}</span> {issue.title}
    </a>
  );
}

export function QuestionItem({ issue, onDone, onFail }: ItemProps) {
  const [text, setText] = useState("");
  const send = async () => {
    await api.actOnIssue(issue.workflow, issue.id, { action: "answer", text });
    setText("");
    onDone();
  };
  return (
    <li class="panel inbox-item" tabIndex={0} data-identifier={issue.identifier}>
      <Head issue={issue} />
      <p class="issue-question">{issue.question}</p>
      <textarea class="field wide" rows={3} aria-label={`Answer to ${issue.identifier}`} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      <div class="form-actions">
        <Action label="Answer" tone="primary" disabled={text.trim() === ""} act={send} onFail={onFail} />
      </div>
    </li>
  );
}

function ParkedItem({ issue, states, onDone, onFail }: ItemProps & { states: readonly string[] }) {
  const [moving, setMoving] = useState(false);
  const order = (body: Parameters<typeof api.actOnIssue>[2]) => async () => {
    await api.actOnIssue(issue.workflow, issue.id, body);
    onDone();
  };
  return (
    <li class="panel inbox-item" tabIndex={0} data-identifier={issue.identifier}>
      <Head issue={issue} />
      <p>
        <Sentence text={issue.why} />
      </p>
      <div class="form-actions">
        {issue.actions.includes("promote") && (
          <a class="button primary" href={paths.issue(issue.workflow, issue.id)}>
            Compare candidates
          </a>
        )}
        <Action label="Try again" icon="retry" tone={issue.actions.includes("promote") ? "plain" : "primary"} act={order({ action: "retry" })} onFail={onFail} />
        <button type="button" class="button" onClick={() => setMoving(true)}>
          Move…
        </button>
      </div>
      {moving && (
        <MoveDialog
          issue={issue}
          states={states}
          onClose={() => setMoving(false)}
          onMove={(state) => {
            setMoving(false);
            order({ action: "move", state })().then(
              () => onFail(null),
              (error: unknown) => onFail(asProblem(error)),
            );
          }}
        />
      )}
    </li>
  );
}

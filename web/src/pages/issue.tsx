// One issue: why it is where it is, its text, its sessions, and its pull request with checks and threads.

import { useEffect, useRef, useState } from "preact/hooks";
import { api } from "../api/client";
import { type Problem, asProblem } from "../api/problem";
import type { IssueDetails, IssueOrder } from "../api/resources";
import { moment } from "../format";
import { useShortcuts } from "../keyboard";
import { onChange } from "../live/store";
import { paths } from "../router";
import { Markdown } from "../text/markdownView";
import { Action, Loading, PageHead, Sentence, Trouble } from "../ui/parts";
import { CandidatesPanel } from "./candidates";
import { QuestionItem } from "./inbox";
import { ColumnMark, MoveDialog, PullMark, Usage, useBoard } from "./issues";

const AGAIN_MS = 5_000;
const LABELS: { readonly [action in "start" | "stop" | "park" | "retry"]: string } = { start: "Start", stop: "Stop", park: "Park", retry: "Try again" };
const ICONS = { start: "play", stop: "stop", park: "pause", retry: "retry" } as const;

export function IssuePage({ workflow, id }: { workflow: string; id: string }) {
  const [details, setDetails] = useState<IssueDetails | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [moving, setMoving] = useState(false);
  const { board } = useBoard(workflow);
  const look = useRef<() => void>(() => {});
  useEffect(() => {
    let ended = false;
    let timer = 0;
    const read = async () => {
      clearTimeout(timer);
      try {
        const found = await api.issue(workflow, id);
        if (!ended) setDetails(found);
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
  }, [workflow, id]);
  const order = async (body: IssueOrder) => setDetails(await api.actOnIssue(workflow, id, body));
  const press = (action: keyof typeof LABELS) => () => {
    if (details?.card.actions.includes(action)) order({ action }).then(() => setProblem(null), (error: unknown) => setProblem(asProblem(error)));
  };
  useShortcuts("Issue", [
    { keys: "s", does: "Start or retry", run: () => (details?.card.actions.includes("start") ? press("start")() : press("retry")()) },
    { keys: "x", does: "Stop", run: press("stop") },
    { keys: "p", does: "Park", run: press("park") },
    { keys: "m", does: "Move to a state", run: () => setMoving(true) },
  ]);
  if (details === null) return <div class="page">{problem === null ? <Loading what="the issue" /> : <Trouble problem={problem} />}</div>;
  const { card } = details;
  const states = board?.workflows.find((known) => known.key === workflow)?.states ?? [];
  return (
    <div class="page">
      <PageHead title={`${card.identifier} ${card.title}`} sub={<a href={`/issues?workflow=${encodeURIComponent(workflow)}`}>All issues of the workflow</a>}>
        {(Object.keys(LABELS) as (keyof typeof LABELS)[])
          .filter((action) => card.actions.includes(action))
          .map((action) => (
            <Action key={action} label={LABELS[action]} icon={ICONS[action]} tone={action === "stop" ? "danger" : "plain"} act={() => order({ action })} onFail={setProblem} />
          ))}
        <button type="button" class="button" onClick={() => setMoving(true)}>
          Move…
        </button>
      </PageHead>
      {problem && <Trouble problem={problem} />}
      {card.question !== undefined && (
        <ul class="inbox">
          <QuestionItem issue={card} onDone={() => look.current()} onFail={setProblem} />
        </ul>
      )}
      <div class="issue-columns">
        <div class="issue-main">
          <section class="panel" aria-label="Description">
            {details.description.trim() === "" ? <p class="hint">It has no description.</p> : <Markdown text={details.description} />}
          </section>
          <CandidatesPanel details={details} order={order} onFail={setProblem} />
          <PullPanel details={details} />
          {details.comments.length > 0 && (
            <section class="panel" aria-label="Comments">
              <h2>Comments</h2>
              <Comments comments={details.comments} />
            </section>
          )}
        </div>
        <Facts details={details} />
      </div>
      {moving && (
        <MoveDialog
          issue={card}
          states={states}
          onClose={() => setMoving(false)}
          onMove={(state) => {
            setMoving(false);
            order({ action: "move", state }).then(() => setProblem(null), (error: unknown) => setProblem(asProblem(error)));
          }}
        />
      )}
    </div>
  );
}

function Facts({ details }: { details: IssueDetails }) {
  const { card } = details;
  const facts: [string, preact.ComponentChildren][] = [
    ["Queue", <ColumnMark issue={card} />],
    ["Why", <Sentence text={card.why} />],
    ["State", card.state],
  ];
  if (card.agent !== undefined) facts.push(["Agent", card.stage === undefined ? card.agent : `${card.agent}, stage ${card.stage}`]);
  if (card.turn > 0) facts.push(["Turn", card.maxTurns > 0 ? `${card.turn} of ${card.maxTurns}` : String(card.turn)]);
  if (card.sessions > 0) facts.push(["Sessions", String(card.sessions)]);
  if (card.attempt > 0) facts.push(["Failed attempts", String(card.attempt)]);
  if (card.due !== undefined) facts.push(["Next attempt", moment(card.due)]);
  if (card.since !== undefined) facts.push(["Since", moment(card.since)]);
  facts.push(["Usage", <span class="issue-facts"><Usage issue={card} /></span>]);
  if (card.priority !== undefined) facts.push(["Priority", String(card.priority)]);
  if (card.labels.length > 0) facts.push(["Labels", card.labels.join(", ")]);
  if (details.blockers.length > 0) facts.push(["Blocked by", details.blockers.map((blocker) => `${blocker.identifier} (${blocker.state || "unknown"})`).join(", ")]);
  if (details.branch !== undefined) facts.push(["Branch", <code>{details.branch}</code>]);
  if (details.workspace !== undefined) facts.push(["Workspace", <code>{details.workspace}</code>]);
  if (card.error !== undefined) facts.push(["Last error", card.error]);
  return (
    <aside class="panel issue-side" aria-label="Facts">
      <dl class="facts-list">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {card.url !== undefined && (
        <a class="button small" href={card.url} target="_blank" rel="noreferrer">
          Open in the tracker
        </a>
      )}
      {details.sessionIds.length > 0 && (
        <ul class="issue-sessions" aria-label="Sessions">
          {[...details.sessionIds].reverse().map((session) => (
            <li key={session}>
              <a href={paths.session(session)}>session {session.slice(0, 8)}</a>
            </li>
          ))}
        </ul>
      )}
    </aside>
  );
}

const RESULTS = { pending: "busy", passing: "good", failing: "bad" } as const;

function PullPanel({ details: { card, checks, logExcerpt, threads, reviews } }: { details: IssueDetails }) {
  if (card.pull === undefined) return null;
  return (
    <section class="panel" aria-label="Pull request">
      <h2>
        Pull request <PullMark issue={card} />
      </h2>
      {card.pull.mergeable === false && <p class="hint warn">It conflicts with its base.</p>}
      {checks.length > 0 && (
        <ul class="pull-checks" aria-label="Checks">
          {checks.map((check) => (
            <li key={check.name}>
              <span class={`state tone-${RESULTS[check.result]}`}>
                <span class="dot" aria-hidden="true" />
                <span class="word">{check.result}</span>
              </span>{" "}
              {check.url === "" ? check.name : <a href={check.url}>{check.name}</a>}
            </li>
          ))}
        </ul>
      )}
      {logExcerpt !== undefined && (
        <details>
          <summary>End of the log</summary>
          <pre class="check-output">{logExcerpt}</pre>
        </details>
      )}
      {reviews.length > 0 && (
        <ul class="pull-reviews" aria-label="Reviews">
          {reviews.map((review, at) => (
            <li key={at}>
              <strong>{review.author}</strong> {review.verdict}
              {review.body !== "" && <Markdown text={review.body} />}
            </li>
          ))}
        </ul>
      )}
      {threads.map((thread, at) => (
        <section class="pull-thread" key={at} aria-label={`Thread on ${thread.file}`}>
          <h3>
            <code>
              {thread.file}
              {thread.line !== undefined && `:${thread.line}`}
            </code>{" "}
            <span class="hint">{thread.resolved ? "resolved" : thread.outdated ? "outdated" : "open"}</span>
          </h3>
          <Comments comments={thread.comments} />
        </section>
      ))}
    </section>
  );
}

function Comments({ comments }: { comments: IssueDetails["comments"] }) {
  return (
    <ul class="issue-comments">
      {comments.map((comment, at) => (
        <li key={at} class={comment.ours ? "ours" : ""}>
          <p class="hint">
            {comment.author} {comment.at !== "" && moment(comment.at)}
          </p>
          <Markdown text={comment.body} />
        </li>
      ))}
    </ul>
  );
}


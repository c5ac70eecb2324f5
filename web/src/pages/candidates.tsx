// Candidates of an issue side by side: what each changed, whether it meets the criteria, and what it used.

import { useState } from "preact/hooks";
import { api } from "../api/client";
import { type Problem, asProblem } from "../api/problem";
import type { IssueCandidate, IssueDetails, IssueOrder } from "../api/resources";
import { dollars, tokens } from "../format";
import { paths } from "../router";
import { DiffView } from "../text/diffView";
import { Output } from "../text/output";
import { Action, Sentence } from "../ui/parts";

interface PanelProps {
  readonly details: IssueDetails;
  readonly order: (body: IssueOrder) => Promise<void>;
  readonly onFail: (problem: Problem | null) => void;
}

export function CandidatesPanel({ details: { card, candidates }, order, onFail }: PanelProps) {
  const [shown, setShown] = useState<{ readonly number: number; readonly diff: string; readonly complete: boolean } | null>(null);
  if (candidates.length === 0) return null;
  const canPromote = card.actions.includes("promote");
  const show = async (number: number) => {
    if (shown?.number === number) {
      setShown(null);
      return;
    }
    try {
      const found = await api.candidateDiff(card.workflow, card.id, number);
      setShown({ number, ...found });
      onFail(null);
    } catch (error) {
      onFail(asProblem(error));
    }
  };
  return (
    <section class="panel" aria-label="Candidates">
      <h2>Candidates</h2>
      <div class="table-box" tabIndex={0} role="region" aria-label="Candidates as a table">
        <table class="issue-table">
          <thead>
            <tr>
              <th>Candidate</th>
              <th>Changes</th>
              <th>Criteria</th>
              <th>Tokens</th>
              <th>Cost</th>
              <th>
                <span class="sr-only">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {candidates.map((candidate) => (
              <tr key={candidate.number}>
                <td>
                  {candidate.number}. {candidate.session === undefined ? candidate.agent : <a href={paths.session(candidate.session)}>{candidate.agent}</a>}
                  <p class="hint">
                    <Sentence text={candidate.why} />
                  </p>
                </td>
                <td>
                  {candidate.commit === undefined ? (
                    "none"
                  ) : (
                    <button type="button" class="button small" aria-expanded={shown?.number === candidate.number} onClick={() => void show(candidate.number)}>
                      {candidate.files} {candidate.files === 1 ? "file" : "files"} +{candidate.added} −{candidate.removed}
                    </button>
                  )}
                </td>
                <td>
                  <Criteria candidate={candidate} />
                </td>
                <td>{tokens(candidate.tokens.input + candidate.tokens.output)}</td>
                <td>{candidate.cost === undefined ? "unknown" : dollars(candidate.cost)}</td>
                <td>
                  {canPromote && candidate.promotable && (
                    <Action small label={`Promote ${candidate.number}`} tone="primary" act={() => order({ action: "promote", candidate: candidate.number })} onFail={onFail} />
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {shown !== null && (
        <div aria-label={`Changes of candidate ${shown.number}`} role="region">
          <DiffView diff={shown.diff} />
          {!shown.complete && <p class="hint">The diff is longer than what is shown.</p>}
        </div>
      )}
    </section>
  );
}

function Criteria({ candidate }: { candidate: IssueCandidate }) {
  if (!candidate.done) return <>not yet</>;
  return (
    <>
      <span class={`state tone-${candidate.meetsCriteria ? "good" : "bad"}`}>
        <span class="dot" aria-hidden="true" />
        <span class="word">{candidate.meetsCriteria ? "met" : "not met"}</span>
      </span>
      {candidate.score !== undefined && <> score {candidate.score}</>}
      {candidate.checks.map((check) => (
        <details key={check.command}>
          <summary>
            {check.passed ? "passed" : "failed"}: <code>{check.command}</code>
          </summary>
          <Output text={check.output} label={`Output of ${check.command}`} />
        </details>
      ))}
    </>
  );
}

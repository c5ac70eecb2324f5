// What all agents used and cost, by day, agent, model and project.

import { useEffect, useState } from "preact/hooks";
import { api } from "../api/client";
import { type Problem, asProblem } from "../api/problem";
import type { Budget, CostRow, Costs } from "../api/resources";
import { dollars, shortPath, tokens } from "../format";
import { refine, search } from "../router";
import { Empty, Loading, PageHead, Trouble } from "../ui/parts";
import { Budgets } from "./queue";

const KINDS = ["day", "agent", "model", "project", "run"] as const;
type Kind = (typeof KINDS)[number];

/** Bars of the chart; more are in the table. */
const BARS = 30;

/** A cost; unknown is not zero. */
function costOf(row: CostRow | Costs["total"]): string {
  if (row.unpriced > 0 && row.costUsd === 0) return "unknown";
  return row.unpriced > 0 ? `≥ ${dollars(row.costUsd)}` : dollars(row.costUsd);
}

export function CostsPage() {
  const wanted = search.value.get("by") ?? "day";
  const by: Kind = KINDS.find((kind) => kind === wanted) ?? "day";
  const [costs, setCosts] = useState<Costs | null>(null);
  const [budgets, setBudgets] = useState<readonly Budget[]>([]);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => {
    let ended = false;
    const fail = (error: unknown) => setProblem(asProblem(error));
    api.costs(by).then((found) => {
      if (!ended) setCosts(found);
    }, fail);
    api.queue(0).then((queue) => {
      if (!ended) setBudgets(queue.budgets);
    }, fail);
    return () => {
      ended = true;
    };
  }, [by]);
  return (
    <div class="page">
      <PageHead title="Costs" sub={costs === null ? undefined : `${costOf(costs.total)} for ${costs.total.calls} model calls`}>
        <label>
          By{" "}
          <select class="field" aria-label="Sum up by" value={by} onChange={(event) => refine({ by: event.currentTarget.value })}>
            {KINDS.map((kind) => (
              <option value={kind} key={kind}>
                {kind}
              </option>
            ))}
          </select>
        </label>
      </PageHead>
      {problem && <Trouble problem={problem} />}
      <Budgets budgets={budgets} onRaise={(queue) => setBudgets(queue.budgets)} onFail={setProblem} />
      {costs === null ? (
        <Loading what="costs" />
      ) : costs.rows.length === 0 ? (
        <Empty icon="info" title="No model calls are on record" />
      ) : (
        <>
          <CostChart rows={costs.by === "day" ? costs.rows.slice(-BARS) : costs.rows.slice(0, BARS)} by={costs.by} />
          <CostTable costs={costs} />
        </>
      )}
    </div>
  );
}

const WIDTH = 900;
const HEIGHT = 180;
/** A few bars are not drawn wider than if there were this many. */
const LEAST_SLOTS = 10;

/** Bars of the cost, or of the tokens where no cost is known. */
function CostChart({ rows, by }: { rows: readonly CostRow[]; by: string }) {
  const priced = rows.some((row) => row.costUsd > 0);
  const value = (row: CostRow) => (priced ? row.costUsd : row.inputTokens + row.outputTokens);
  const most = Math.max(...rows.map(value), Number.MIN_VALUE);
  const slot = WIDTH / Math.max(rows.length, LEAST_SLOTS);
  const bar = slot * 0.7;
  const words = (row: CostRow) => `${row.key}: ${costOf(row)}, ${tokens(row.inputTokens + row.outputTokens)} tokens`;
  return (
    <figure class="cost-chart">
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT + 1}`} role="img" aria-label={`${priced ? "Cost" : "Tokens"} by ${by}`}>
        <line x1="0" y1={HEIGHT} x2={WIDTH} y2={HEIGHT} class="chart-base" />
        {rows.map((row, at) => {
          const height = (value(row) / most) * (HEIGHT - 8);
          return (
            <rect class="chart-bar" key={row.key} x={at * slot + (slot - bar) / 2} y={HEIGHT - height} width={bar} height={height} rx="2">
              <title>{words(row)}</title>
            </rect>
          );
        })}
      </svg>
      <div class="chart-labels" style={{ width: `${Math.min(100, (rows.length * slot * 100) / WIDTH)}%`, minWidth: "max-content" }} aria-hidden="true">
        <span>{label(rows[0], by)}</span>
        {rows.length > 1 && <span>{label(rows[rows.length - 1], by)}</span>}
      </div>
      <figcaption class="hint">
        {priced ? `Highest: ${dollars(most)}` : `No cost is known; bars are tokens, at most ${tokens(most)}`}
      </figcaption>
    </figure>
  );
}

function label(row: CostRow | undefined, by: string): string {
  if (row === undefined) return "";
  return by === "project" ? shortPath(row.key) : row.key;
}

function CostTable({ costs }: { costs: Costs }) {
  return (
    <div class="table-box" tabIndex={0} role="region" aria-label="Costs as a table">
      <table class="cost-table">
        <thead>
          <tr>
            <th scope="col">{costs.by}</th>
            <th scope="col">calls</th>
            <th scope="col">input</th>
            <th scope="col" class="aside">
              cached
            </th>
            <th scope="col">output</th>
            <th scope="col">cost</th>
          </tr>
        </thead>
        <tbody>
          {costs.rows.map((row) => (
            <tr key={row.key}>
              <th scope="row" title={row.key}>
                {label(row, costs.by)}
              </th>
              <td>{row.calls}</td>
              <td>{tokens(row.inputTokens)}</td>
              <td class="aside">{tokens(row.cacheReadTokens)}</td>
              <td>{tokens(row.outputTokens)}</td>
              <td title={row.unpriced > 0 ? `${row.unpriced} calls of unknown cost` : undefined}>{costOf(row)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

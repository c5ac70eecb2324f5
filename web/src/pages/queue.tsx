// The queue: what runs, what waits and why, the limits and budgets, and the controls.

import { useEffect, useMemo, useState } from "preact/hooks";
import { api } from "../api/client";
import { type Problem, asProblem } from "../api/problem";
import type { Budget, Queue, QueueItem } from "../api/resources";
import { dollars, shortPath } from "../format";
import { VirtualList } from "../list/virtualList";
import { onChange } from "../live/store";
import { paths } from "../router";
import { Icon } from "../ui/icons";
import { Action, Age, Confirm, Empty, Loading, PageHead, Sentence, Trouble } from "../ui/parts";

const AGAIN_MS = 2_000;
/** Items that wait which are loaded at first; near their end, so many times as many are. */
const FIRST = 200;
const MORE = 4;
/** Height of a row until it is measured. */
const ROW = 44;
/** Letters of an id that tell sessions apart for people. */
const SHORT_ID = 8;
/** A click raises a budget by this part of it. */
const RAISE = 0.5;

interface QueueRow {
  readonly key: string;
  readonly guess: number;
  readonly item: QueueItem;
}

function useQueue(limit: number) {
  const [queue, setQueue] = useState<Queue | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => {
    let timer = 0;
    let ended = false;
    const look = async () => {
      clearTimeout(timer);
      try {
        const found = await api.queue(limit);
        if (!ended) {
          setQueue(found);
          setProblem(null);
        }
      } catch (error) {
        if (!ended) setProblem(asProblem(error));
      }
      if (!ended) timer = window.setTimeout(() => void look(), AGAIN_MS);
    };
    void look();
    const stop = onChange({ run: () => void look() });
    return () => {
      ended = true;
      clearTimeout(timer);
      stop();
    };
  }, [limit]);
  return { queue, problem, setQueue, setProblem };
}

export function QueuePage() {
  const [limit, setLimit] = useState(FIRST);
  const [asks, setAsks] = useState(false);
  const { queue, problem, setQueue, setProblem } = useQueue(limit);
  const rows = useMemo(() => (queue === null ? [] : [...queue.running, ...queue.waiting].map((item): QueueRow => ({ key: item.id, guess: ROW, item }))), [queue]);
  if (queue === null) return <div class="page">{problem === null ? <Loading what="the queue" /> : <Trouble problem={problem} />}</div>;
  const act = (work: () => Promise<Queue>) => async () => setQueue(await work());
  const stop = () => {
    setAsks(false);
    act(api.stopQueue)().catch((error: unknown) => setProblem(asProblem(error)));
  };
  return (
    <div class="queue-page">
      <PageHead title="Queue" sub={`${queue.slots.used} of ${queue.slots.limit} slots are taken, ${queue.waitingCount} waiting${queue.mode === "open" ? "" : `; ${queue.mode}`}`}>
        {queue.mode === "open" && <Action label="Pause" icon="pause" title="Start nothing new" act={act(api.pauseQueue)} onFail={setProblem} />}
        {queue.mode === "open" && <Action label="Drain" icon="down" title="Finish what runs, start nothing new" act={act(api.drainQueue)} onFail={setProblem} />}
        {(queue.mode !== "open" || queue.held.length > 0) && (
          <Action label="Resume" icon="play" tone="primary" title="Go on, and try held accounts again" act={act(api.resumeQueue)} onFail={setProblem} />
        )}
        <button type="button" class="button danger" title="Stop all that runs" disabled={queue.running.length === 0 && queue.waitingCount === 0} onClick={() => setAsks(true)}>
          <Icon name="stop" />
          <span class="label">Stop all</span>
        </button>
      </PageHead>
      {asks && (
        <Confirm title="Stop all?" action="Stop all" onClose={() => setAsks(false)} onConfirm={stop}>
          <p>Every run and every turn ends, in this portal and in all other processes of this home folder.</p>
        </Confirm>
      )}
      {problem && <Trouble problem={problem} />}
      {queue.held.map((held) => (
        <div class="trouble warn" role="status" key={held.account}>
          <p>
            <Sentence text={`account ${held.account} is held: ${held.reason}`} />
          </p>
        </div>
      ))}
      <Capacity queue={queue} />
      <Budgets budgets={queue.budgets} onRaise={setQueue} onFail={setProblem} />
      {rows.length === 0 ? (
        <Empty icon="runs" title="Nothing runs and nothing waits">
          <p>Tasks of jobs and scheduled work pass through here.</p>
        </Empty>
      ) : (
        <div class="queue-list">
          <VirtualList
            rows={rows}
            begins
            label="Queue"
            render={(row) => <ItemRow item={row.item} />}
            onEdge={(edge) => {
              if (edge === "last" && queue.waiting.length < queue.waitingCount) setLimit((most) => (queue.waiting.length < most ? most : most * MORE));
            }}
          />
        </div>
      )}
    </div>
  );
}

function Meter({ label, used, limit, text }: { label: string; used: number; limit: number; text: string }) {
  const share = limit === 0 ? 100 : Math.min(100, Math.round((used / limit) * 100));
  return (
    <li class={`capacity${share >= 100 ? " full" : ""}`}>
      <span class="capacity-name" title={label}>
        {label}
      </span>
      <span class="meter-bar" role="meter" aria-label={label} aria-valuemin={0} aria-valuemax={100} aria-valuenow={share}>
        <span style={{ width: `${share}%` }} />
      </span>
      <span class="nowrap">{text}</span>
    </li>
  );
}

function Capacity({ queue }: { queue: Queue }) {
  return (
    <ul class="capacities" aria-label="Capacity">
      <Meter label="all slots" used={queue.slots.used} limit={queue.slots.limit} text={`${queue.slots.used} of ${queue.slots.limit}`} />
      {queue.limits.map((limit) => (
        <Meter key={`${limit.kind} ${limit.name}`} label={`${limit.kind} ${limit.name}`} used={limit.used} limit={limit.limit} text={`${limit.used} of ${limit.limit}`} />
      ))}
    </ul>
  );
}

export function Budgets({ budgets, onRaise, onFail }: { budgets: readonly Budget[]; onRaise: (queue: Queue) => void; onFail: (problem: Problem | null) => void }) {
  // Those of runs are many, and of interest once something was spent.
  const shown = budgets.filter((budget) => budget.kind !== "run" || budget.held !== undefined || budget.spentUsd > 0);
  if (shown.length === 0) return null;
  return (
    <section aria-label="Budgets">
      <ul class="capacities">
        {shown.map((budget) => {
          const more = Math.max(0.01, Math.round(budget.limitUsd * RAISE * 100) / 100);
          const raise = async () => onRaise(await api.raiseBudget({ kind: budget.kind, name: budget.name, usd: more }));
          const reserved = budget.reservedUsd > 0 ? `, ${dollars(budget.reservedUsd)} reserved` : "";
          return (
            <li class="budget" key={`${budget.kind} ${budget.name}`}>
              <ul class="capacities">
                <Meter
                  label={budget.kind === "day" ? "budget of the day" : `budget of ${budget.kind} ${budget.name}`}
                  used={budget.spentUsd + budget.reservedUsd}
                  limit={budget.limitUsd}
                  text={`${dollars(budget.spentUsd)} of ${dollars(budget.limitUsd)}${reserved}`}
                />
              </ul>
              {budget.held !== undefined && (
                <p class="hint warn">
                  <Sentence text={budget.held} />
                </p>
              )}
              <Action small label={`Raise by ${dollars(more)}`} act={raise} onFail={onFail} />
            </li>
          );
        })}
      </ul>
    </section>
  );
}

function ItemRow({ item }: { item: QueueItem }) {
  const running = item.startedAt !== undefined;
  return (
    <div class="queue-row" data-item={item.id}>
      <span class={`state tone-${running ? "busy" : "none"}`}>
        <span class="dot" aria-hidden="true" />
        <span class="word">{running ? "running" : "waiting"}</span>
      </span>
      <span class="queue-name">
        {item.run === undefined ? (
          <a href={paths.session(item.id)} title={item.id}>
            session {item.id.slice(0, SHORT_ID)}
          </a>
        ) : (
          <a href={paths.run(item.run)} title={item.id}>
            {item.job ?? item.run}
          </a>
        )}
        <span class="row-sub">
          {item.run !== undefined && item.id.startsWith(`${item.run}/`) && `${item.id.slice(item.run.length + 1)} · `}
          {item.agent ?? item.runtime} · <span title={item.project}>{shortPath(item.project)}</span>
          {item.priority !== 0 && ` · priority ${item.priority}`}
          {item.attempt > 1 && ` · attempt ${item.attempt}`}
        </span>
      </span>
      <span class="queue-reason">
        {item.reason !== undefined && <Sentence text={item.reason} />}
        {item.note !== undefined && (
          <span class="warn">
            <Sentence text={item.note} />
          </span>
        )}
      </span>
      <Age at={item.startedAt ?? item.enqueuedAt} />
    </div>
  );
}

// The machines of a fleet: who works, how much they have to do, and who takes no more.

import { useEffect, useState } from "preact/hooks";
import { api } from "../api/client";
import { type Problem, asProblem } from "../api/problem";
import type { Fleet, FleetWorker } from "../api/resources";
import { Action, Age, Confirm, Empty, Loading, PageHead, Sentence, Trouble } from "../ui/parts";

/** Heartbeats come every few seconds. */
const LOOK_MS = 3000;

const TONES: { readonly [state: string]: string } = { ready: "good", cordoned: "warn", draining: "warn", lost: "bad", gone: "none" };

export function FleetPage() {
  const [fleet, setFleet] = useState<Fleet | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const look = () => api.fleet().then(
    (found) => {
      setFleet(found);
      setProblem(null);
    },
    (error: unknown) => setProblem(asProblem(error)),
  );
  useEffect(() => {
    void look();
    const timer = setInterval(() => void look(), LOOK_MS);
    return () => clearInterval(timer);
  }, []);
  return (
    <div class="page">
      <PageHead title="Fleet" sub={fleet === null ? undefined : summary(fleet)} />
      {problem && <Trouble problem={problem} />}
      {fleet === null && problem === null && <Loading what="workers" />}
      {fleet !== null && !fleet.connected && <p role="status">The servers do not answer. What is shown here may be old.</p>}
      {fleet !== null && fleet.workers.length === 0 && (
        <Empty icon="runtimes" title="There is no worker">
          <p>
            <code>hangar worker --fleet {fleet.servers}</code> starts one, on any machine.
          </p>
        </Empty>
      )}
      <ul class="cards">
        {fleet?.workers.map((worker) => (
          <WorkerCard key={worker.name} worker={worker} onDone={look} onFail={setProblem} />
        ))}
      </ul>
    </div>
  );
}

function summary(fleet: Fleet): string {
  const running = `${fleet.sessionsRunning} ${fleet.sessionsRunning === 1 ? "session" : "sessions"} at work`;
  const oldest = fleet.oldestOrderSeconds === undefined ? "" : `, the oldest for ${Math.round(fleet.oldestOrderSeconds)} s`;
  const waiting = `${fleet.ordersWaiting} waiting${oldest}`;
  const parked = fleet.sessionsParked > 0 ? `, ${fleet.sessionsParked} given up` : "";
  return `${running}, ${waiting}${parked}. NATS ${fleet.serverVersion} at ${fleet.servers}.`;
}

interface WorkerProps {
  readonly worker: FleetWorker;
  readonly onDone: () => Promise<void>;
  readonly onFail: (problem: Problem | null) => void;
}

function WorkerCard({ worker, onDone, onFail }: WorkerProps) {
  const [draining, setDraining] = useState(false);
  const tell = async (mode: "open" | "cordoned" | "draining") => {
    await api.setWorkerMode(worker.name, mode);
    await onDone();
  };
  const facts = [
    `${worker.busy} of ${worker.slots} slots`,
    ...(worker.load === undefined ? [] : [`load ${worker.load.toFixed(1)}`]),
    ...(worker.freeBytes === undefined ? [] : [`${Math.floor(worker.freeBytes / 2 ** 30)} GB free`]),
    ...(worker.appendMs === undefined ? [] : [`append ${worker.appendMs.toFixed(1)} ms`]),
    ...(worker.takeovers === 0 ? [] : [`${worker.takeovers} taken over`]),
    worker.version,
  ];
  const there = worker.state !== "gone" && worker.state !== "lost";
  return (
    <li class="card worker" data-worker={worker.name}>
      <header>
        <h2>{worker.name}</h2>
        <span class={`state tone-${TONES[worker.state] ?? "none"}`} data-state={worker.state}>
          <span class="dot" aria-hidden="true" />
          <span class="word">{worker.state}</span>
        </span>
      </header>
      <p>{facts.join(" · ")}</p>
      {worker.labels.length > 0 && <p>Labels: {worker.labels.join(", ")}</p>}
      <p>
        Heartbeat <Age at={worker.seenAt} />
      </p>
      {worker.trouble !== undefined && (
        <p>
          <Sentence text={worker.trouble} />
        </p>
      )}
      <div class="note-actions">
        {worker.state === "ready" && <Action label="Cordon" small title="It takes no more orders" act={() => tell("cordoned")} onFail={onFail} />}
        {(worker.state === "cordoned" || worker.state === "draining" || worker.state === "gone") && (
          <Action label="Uncordon" small title="It takes orders" act={() => tell("open")} onFail={onFail} />
        )}
        {there && worker.state !== "draining" && (
          <button type="button" class="button small" onClick={() => setDraining(true)}>
            Drain
          </button>
        )}
      </div>
      {draining && (
        <Confirm
          title={`Drain ${worker.name}?`}
          action="Drain"
          onClose={() => setDraining(false)}
          onConfirm={() => {
            setDraining(false);
            tell("draining").catch((error: unknown) => onFail(asProblem(error)));
          }}
        >
          <p>It takes no more orders, finishes those that it has, and ends.</p>
        </Confirm>
      )}
    </li>
  );
}

// The chart of a job: what comes after what, and how far a run is.

import { useEffect, useState } from "preact/hooks";
import type { ChartGraph, RunWork, WorkState } from "../api/resources";
import type { Layout, PlacedArrow, PlacedNode } from "./layout";
import { path } from "./line";

/** A chart that is too wide is drawn smaller, as long as its words can be read; then it scrolls. */
const SMALLEST = 0.78;

interface Props {
  readonly chart: ChartGraph;
  readonly works: readonly RunWork[];
  readonly selected: number | null;
  readonly onSelect?: (workId: number) => void;
  /** Size in parts of the natural one; without it the chart is as wide as fits. */
  readonly zoom?: number | null;
}

/** Laying out is most of the code for charts, and most pages have none: it is loaded with the first one. */
function useLayout(chart: ChartGraph): Layout | null {
  const [placed, setPlaced] = useState<Layout | null>(null);
  // A run that changes brings its chart anew, and it is the same one.
  const same = JSON.stringify(chart);
  useEffect(() => {
    let stale = false;
    void import("./layout").then(({ layout }) => {
      if (!stale) setPlaced(layout(chart));
    });
    return () => {
      stale = true;
    };
  }, [same]);
  return placed;
}

export function Chart({ chart, works, selected, onSelect, zoom = null }: Props) {
  const placed = useLayout(chart);
  if (placed === null) return <div class="chart" />;
  const work = (id: number | null) => works.find((candidate) => candidate.workId === id);
  return (
    <div class="chart" tabIndex={0} role="group" aria-label="Chart of the job">
      <svg
        viewBox={`0 0 ${placed.width} ${placed.height}`}
        style={zoom === null ? { "--chart-width": `${placed.width}px`, minWidth: `${placed.width * SMALLEST}px` } : { width: `${placed.width * zoom}px`, maxWidth: "none" }}
        role="group"
        aria-label="Tasks"
      >
        <defs>
          <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse">
            <path d="M0.5 0.5L7 4L0.5 7.5" class="arrow-head" />
          </marker>
        </defs>
        {placed.arrows.map((arrow) => (
          <Arrow arrow={arrow} />
        ))}
        {placed.nodes.map((node) => (
          <Node node={node} work={work(node.workId)} selected={node.workId !== null && node.workId === selected} {...(onSelect ? { onSelect } : {})} />
        ))}
      </svg>
    </div>
  );
}

function Arrow({ arrow }: { arrow: PlacedArrow }) {
  return (
    <g class={`arrow${arrow.loopBack ? " loop" : ""}`}>
      <path d={path(arrow.points)} marker-end="url(#arrow)" />
      {arrow.labelAt && (
        <text x={arrow.labelAt.x} y={arrow.labelAt.y} dy="0.32em" text-anchor="middle">
          {arrow.label}
        </text>
      )}
    </g>
  );
}

interface NodeProps {
  readonly node: PlacedNode;
  readonly work: RunWork | undefined;
  readonly selected: boolean;
  readonly onSelect?: (workId: number) => void;
}

function Node({ node, work, selected, onSelect }: NodeProps) {
  const { x, y, width, height, workId } = node;
  if (workId === null) return <Joint node={node} />;
  const state = work?.state ?? "waiting";
  const choose = () => onSelect?.(workId);
  const shape =
    node.shape === "task" ? (
      <rect x={x - width / 2} y={y - height / 2} width={width} height={height} rx="8" />
    ) : (
      <polygon points={hexagon(x, y, width, height)} />
    );
  const starts = work !== undefined && work.starts > 1 ? ` ×${work.starts}` : "";
  const limit = Math.floor((width - 58) / 7.1);
  const label = node.label.length > limit ? `${node.label.slice(0, limit - 1)}…` : node.label;
  const interactive = onSelect === undefined ? {} : { role: "button" as const, tabIndex: 0, "aria-pressed": selected };
  return (
    <g
      class={`node ${state}${selected ? " selected" : ""}${onSelect ? " clickable" : ""}`}
      data-work={workId}
      data-state={state}
      aria-label={`${node.label}, ${state === "waiting" ? "not started" : state}${starts}`}
      onClick={choose}
      onKeyDown={(event: KeyboardEvent) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        choose();
      }}
      {...interactive}
    >
      <title>{node.label}</title>
      {shape}
      <Mark state={state} x={x - width / 2 + (node.shape === "task" ? 18 : 22)} y={y} />
      <text x={x - width / 2 + (node.shape === "task" ? 34 : 38)} y={y} dy="0.34em">
        {label}
        {starts !== "" && <tspan class="node-starts">{starts}</tspan>}
      </text>
    </g>
  );
}

function Mark({ state, x, y }: { state: WorkState; x: number; y: number }) {
  return (
    <g class="node-mark" transform={`translate(${x},${y})`}>
      {state === "running" && <circle r="6" class="node-spinner" />}
      {state === "succeeded" && <path d="M-5 0.5L-1.5 4L5 -3.5" />}
      {state === "failed" && <path d="M-4 -4L4 4M4 -4L-4 4" />}
      {state === "stopped" && <path d="M-3.5 -3.5H3.5V3.5H-3.5Z" />}
      {state === "waiting" && <circle r="4.5" />}
    </g>
  );
}

function hexagon(x: number, y: number, width: number, height: number): string {
  const [left, right, top, bottom, cut] = [x - width / 2, x + width / 2, y - height / 2, y + height / 2, 14];
  return `${left},${y} ${left + cut},${top} ${right - cut},${top} ${right},${y} ${right - cut},${bottom} ${left + cut},${bottom}`;
}

/** Node at which branches split and join. */
function Joint({ node }: { node: PlacedNode }) {
  const { x, y, width, height } = node;
  return (
    <g class="joint" aria-hidden="true">
      {node.shape === "bar" && <rect x={x - width / 2} y={y - height / 2} width={width} height={height} rx="3" />}
      {node.shape === "diamond" && <polygon points={`${x},${y - 9} ${x + 9},${y} ${x},${y + 9} ${x - 9},${y}`} />}
      {node.shape === "circle" && <circle cx={x} cy={y} r={width / 2} />}
    </g>
  );
}

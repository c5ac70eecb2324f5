// Layout of the nodes and arrows of a job's chart. Pure; the drawing is in `chart.tsx`.

import { Graph, layout as arrange } from "@dagrejs/dagre";
import type { ChartGraph, ChartNode, Hint } from "../api/resources";

export type Shape = "task" | "condition" | "bar" | "diamond" | "circle";

export interface PlacedNode {
  readonly id: number;
  readonly shape: Shape;
  readonly label: string;
  readonly workId: number | null;
  /** The middle. */
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface PlacedArrow {
  readonly from: number;
  readonly to: number;
  readonly loopBack: boolean;
  readonly label: string;
  readonly points: readonly { readonly x: number; readonly y: number }[];
  readonly labelAt: { readonly x: number; readonly y: number } | null;
}

export interface Layout {
  readonly width: number;
  readonly height: number;
  readonly nodes: readonly PlacedNode[];
  readonly arrows: readonly PlacedArrow[];
}

const CHARACTER = 7.3;
const NARROWEST = 110;
const WIDEST = 260;
const TASK_HEIGHT = 40;
/** Room for the mark of a task's state, how often it was started, and around the text. */
const TASK_PADDING = 66;
const MARGIN = 24;

function workOf(hint: Hint): number | null {
  return typeof hint === "string" ? null : hint[1];
}

function shapeOf(hint: Hint): Shape {
  if (typeof hint !== "string") return hint[0] === "TaskNode" ? "task" : "condition";
  switch (hint) {
    case "ParBegin":
    case "ParEnd":
    case "AltEnd":
    case "CondBegin":
      return "bar";
    case "CondEnd":
      return "diamond";
    case "LoopEnd":
      return "circle";
  }
}

function sizeOf(node: ChartNode): { width: number; height: number } {
  switch (shapeOf(node.hint)) {
    case "task":
    case "condition": {
      const text = (node.label ?? "").length * CHARACTER + TASK_PADDING;
      return { width: Math.max(NARROWEST, Math.min(WIDEST, Math.round(text))), height: TASK_HEIGHT };
    }
    case "bar":
      return { width: 56, height: 6 };
    case "diamond":
      return { width: 18, height: 18 };
    case "circle":
      return { width: 14, height: 14 };
  }
}

export function layout(chart: ChartGraph): Layout {
  const graph = new Graph({ multigraph: true });
  graph.setGraph({ rankdir: "TB", nodesep: 36, ranksep: 34, edgesep: 18, marginx: MARGIN, marginy: MARGIN });
  graph.setDefaultEdgeLabel(() => ({}));
  const known = new Set(chart.nodes.map((node) => node.id));
  for (const node of chart.nodes) graph.setNode(String(node.id), sizeOf(node));
  const arrows = chart.nodes.flatMap((node) => (node.arrows ?? []).map((arrow, index) => ({ ...arrow, from: node.id, index })));
  for (const arrow of arrows.filter((arrow) => known.has(arrow.to))) {
    const label = { width: arrow.label === undefined ? 0 : arrow.label.length * CHARACTER + 8, height: arrow.label === undefined ? 0 : 16, labelpos: "c" };
    // An arrow back up is laid out as one down, so that a loop's end stays below its beginning.
    const [start, end] = arrow.loopBack ? [arrow.to, arrow.from] : [arrow.from, arrow.to];
    graph.setEdge(String(start), String(end), label, `${arrow.from}-${arrow.index}`);
  }
  arrange(graph);
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  return {
    width: Math.ceil(width),
    height: Math.ceil(height),
    nodes: chart.nodes.map((node) => {
      const { x, y, width, height } = graph.node(String(node.id)) as { x: number; y: number; width: number; height: number };
      return { id: node.id, shape: shapeOf(node.hint), label: node.label ?? "", workId: workOf(node.hint), x, y, width, height };
    }),
    arrows: arrows
      .filter((arrow) => known.has(arrow.to))
      .map((arrow) => {
        const [start, end] = arrow.loopBack ? [arrow.to, arrow.from] : [arrow.from, arrow.to];
        const edge = graph.edge(String(start), String(end), `${arrow.from}-${arrow.index}`) as {
          points: { x: number; y: number }[];
          x?: number;
          y?: number;
        };
        const points = arrow.loopBack ? [...edge.points].reverse() : edge.points;
        const labelAt = arrow.label !== undefined && edge.x !== undefined && edge.y !== undefined ? { x: edge.x, y: edge.y } : null;
        return { from: arrow.from, to: arrow.to, loopBack: arrow.loopBack, label: arrow.label ?? "", points, labelAt };
      }),
  };
}

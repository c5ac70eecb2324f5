import { expect, test } from "vitest";
import type { ChartGraph } from "../api/resources";
import { layout } from "./layout";

/** A loop around a parallel pair, with a condition before and after it. */
const LOOP: ChartGraph = {
  nodes: [
    { id: 0, hint: ["CondNode", 0], label: "ready", arrows: [{ to: 1, loopBack: false, label: "true" }, { to: 5, loopBack: false, label: "false" }] },
    { id: 1, hint: "ParBegin", arrows: [{ to: 2, loopBack: false }, { to: 3, loopBack: false }] },
    { id: 2, hint: ["TaskNode", 1], label: "left", arrows: [{ to: 4, loopBack: false }] },
    { id: 3, hint: ["TaskNode", 2], label: "right", arrows: [{ to: 4, loopBack: false }] },
    { id: 4, hint: "ParEnd", arrows: [{ to: 0, loopBack: true, label: "again" }, { to: 5, loopBack: false }] },
    { id: 5, hint: "LoopEnd" },
  ],
};

test("what comes later is lower, and what is parallel is side by side", () => {
  const { nodes } = layout(LOOP);
  const y = (id: number) => nodes[id]?.y ?? 0;
  expect(y(0)).toBeLessThan(y(1));
  expect(y(1)).toBeLessThan(y(2));
  expect(y(2)).toBe(y(3));
  expect(nodes[2]?.x).not.toBe(nodes[3]?.x);
  expect(y(4)).toBeLessThan(y(5));
});

test("an arrow back goes up", () => {
  const back = layout(LOOP).arrows.find((arrow) => arrow.loopBack);
  expect(back?.points.at(0)?.y).toBeGreaterThan(back?.points.at(-1)?.y ?? 0);
  expect(back?.labelAt).not.toBeNull();
});

test("all is within the drawing", () => {
  const { nodes, arrows, width, height } = layout(LOOP);
  for (const node of nodes) {
    expect(node.x - node.width / 2).toBeGreaterThanOrEqual(0);
    expect(node.x + node.width / 2).toBeLessThanOrEqual(width);
    expect(node.y + node.height / 2).toBeLessThanOrEqual(height);
  }
  for (const point of arrows.flatMap((arrow) => arrow.points)) expect(point.x).toBeGreaterThanOrEqual(0);
});

test("an arrow to nowhere is left out", () => {
  expect(layout({ nodes: [{ id: 0, hint: ["TaskNode", 0], arrows: [{ to: 9, loopBack: false }] }] }).arrows).toEqual([]);
});

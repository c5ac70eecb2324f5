import { expect, test } from "vitest";
import { Geometry } from "./geometry";

function rows(from: number, to: number, guess = 10) {
  return Array.from({ length: to - from }, (_, at) => ({ key: String(from + at), guess }));
}

test("only what is near the view is in the window", () => {
  const geometry = new Geometry();
  geometry.setRows(rows(0, 50_000));
  expect(geometry.total).toBe(500_000);
  expect(geometry.window(1_000, 100, 20)).toEqual({ from: 98, to: 113 });
  expect(geometry.window(0, 100, 20)).toEqual({ from: 0, to: 13 });
  expect(geometry.window(499_900, 100, 20)).toEqual({ from: 49_988, to: 50_000 });
});

test("rows that come before leave the anchor where it is", () => {
  const geometry = new Geometry();
  geometry.setRows(rows(100, 200));
  const anchor = geometry.anchor(57);
  expect(anchor).toEqual({ key: "105", below: 7 });
  geometry.setRows(rows(0, 200));
  expect(anchor && geometry.scrollTo(anchor)).toBe(1_057);
});

test("a row that is measured moves what is below it, and not its anchor", () => {
  const geometry = new Geometry();
  geometry.setRows(rows(0, 10));
  const anchor = geometry.anchor(50);
  expect(geometry.measure([["2", 40]])).toBe(true);
  expect(geometry.measure([["2", 40.2]])).toBe(false);
  expect(anchor && geometry.scrollTo(anchor)).toBe(80);
  expect(geometry.rowAt(25)).toBe(2);
});

test("an empty list has no window and no anchor", () => {
  const geometry = new Geometry();
  expect(geometry.window(0, 100, 20)).toEqual({ from: 0, to: 0 });
  expect(geometry.anchor(0)).toBeNull();
});

test("an anchor whose row is gone is nowhere", () => {
  const geometry = new Geometry();
  geometry.setRows(rows(0, 3));
  expect(geometry.scrollTo({ key: "9", below: 0 })).toBeNull();
});

// Lines of a chart as paths of SVG.

/** A line through points with round corners. */
export function path(points: readonly { readonly x: number; readonly y: number }[]): string {
  const [first, ...rest] = points;
  if (first === undefined) return "";
  let text = `M${first.x.toFixed(1)},${first.y.toFixed(1)}`;
  // The corners of the line; a curve begins and ends halfway between two of them.
  const corners = rest.slice(0, -1);
  const last = rest.at(-1);
  corners.forEach((corner, index) => {
    const next = corners[index + 1];
    const end = next === undefined ? last : { x: (corner.x + next.x) / 2, y: (corner.y + next.y) / 2 };
    if (end !== undefined) text += `Q${corner.x.toFixed(1)},${corner.y.toFixed(1)} ${end.x.toFixed(1)},${end.y.toFixed(1)}`;
  });
  if (corners.length === 0 && last !== undefined) text += `L${last.x.toFixed(1)},${last.y.toFixed(1)}`;
  return text;
}

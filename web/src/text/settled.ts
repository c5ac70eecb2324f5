// Finds the part of a streaming Markdown text that will not change any more, so that it is rendered only once. Pure.

/** Offset of the last, incomplete paragraph. `from` is the result for an earlier prefix of the text. */
export function settledEnd(text: string, from: number): number {
  let end = from;
  let fence: string | null = null;
  let at = from;
  for (;;) {
    const next = text.indexOf("\n", at);
    if (next === -1) return end;
    const line = text.slice(at, next);
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1]?.charAt(0);
    if (mark !== undefined) {
      // Blank lines within code are code.
      if (fence === null) fence = mark;
      else if (fence === mark) fence = null;
    } else if (fence === null && line.trim() === "") {
      end = next + 1;
    }
    at = next + 1;
  }
}

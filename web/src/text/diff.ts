// Parses unified diffs. Tolerant: text that is not a diff yields no files, and a truncated diff yields what is there.

export interface DiffLine {
  readonly kind: "same" | "added" | "removed" | "note";
  readonly text: string;
  readonly before: number | null;
  readonly after: number | null;
  /** The part that differs from the line it replaces. */
  readonly changed: { readonly from: number; readonly to: number } | null;
}

export interface DiffHunk {
  readonly heading: string;
  readonly lines: DiffLine[];
}

export interface DiffFile {
  readonly path: string;
  readonly change: "changed" | "created" | "deleted" | "renamed";
  readonly hunks: DiffHunk[];
  readonly added: number;
  readonly removed: number;
}

const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)$/;

function stripped(path: string): string {
  const name = path.replace(/\t.*$/, "").replace(/^"(.*)"$/, "$1");
  return name.replace(/^[ab]\//, "");
}

interface Draft {
  before: string;
  after: string;
  renamed: boolean;
  hunks: DiffHunk[];
}

function finish(draft: Draft): DiffFile {
  let added = 0;
  let removed = 0;
  for (const hunk of draft.hunks) {
    for (const line of hunk.lines) {
      if (line.kind === "added") added += 1;
      if (line.kind === "removed") removed += 1;
    }
    markChanges(hunk.lines);
  }
  const created = draft.before === "/dev/null";
  const deleted = draft.after === "/dev/null";
  const change = created ? "created" : deleted ? "deleted" : draft.renamed ? "renamed" : "changed";
  return { path: stripped(deleted ? draft.before : draft.after), change, hunks: draft.hunks, added, removed };
}

export function parseDiff(text: string): DiffFile[] {
  const files: DiffFile[] = [];
  let draft: Draft | null = null;
  let hunk: DiffHunk | null = null;
  let before = 0;
  let after = 0;
  // The counts in a hunk's heading say where it ends: a removed line `-- x` looks like the heading of a file.
  let beforeLeft = 0;
  let afterLeft = 0;
  const lines = text.split("\n");
  for (let index = 0; index < lines.length; index += 1) {
    const line = lines[index] ?? "";
    if (hunk !== null && (beforeLeft > 0 || afterLeft > 0)) {
      const mark = line[0];
      if (mark === "+") {
        hunk.lines.push({ kind: "added", text: line.slice(1), before: null, after, changed: null });
        after += 1;
        afterLeft -= 1;
        continue;
      }
      if (mark === "-") {
        hunk.lines.push({ kind: "removed", text: line.slice(1), before, after: null, changed: null });
        before += 1;
        beforeLeft -= 1;
        continue;
      }
      if (mark === " " || line === "") {
        hunk.lines.push({ kind: "same", text: line.slice(1), before, after, changed: null });
        before += 1;
        after += 1;
        beforeLeft -= 1;
        afterLeft -= 1;
        continue;
      }
    }
    if (line.startsWith("\\") && hunk !== null) {
      hunk.lines.push({ kind: "note", text: line.slice(1).trim(), before: null, after: null, changed: null });
      continue;
    }
    const heading = HUNK.exec(line);
    if (heading !== null) {
      draft ??= { before: "", after: "", renamed: false, hunks: [] };
      before = Number(heading[1]);
      beforeLeft = Number(heading[2] ?? "1");
      after = Number(heading[3]);
      afterLeft = Number(heading[4] ?? "1");
      hunk = { heading: heading[5] ?? "", lines: [] };
      draft.hunks.push(hunk);
      continue;
    }
    const git = /^diff --git (.+) (.+)$/.exec(line);
    if (git !== null) {
      if (draft !== null) files.push(finish(draft));
      draft = { before: git[1] ?? "", after: git[2] ?? "", renamed: false, hunks: [] };
      hunk = null;
    } else if (line.startsWith("--- ") && (lines[index + 1] ?? "").startsWith("+++ ")) {
      if (draft !== null && draft.hunks.length > 0) {
        files.push(finish(draft));
        draft = null;
      }
      draft ??= { before: "", after: "", renamed: false, hunks: [] };
      draft.before = line.slice(4);
      draft.after = (lines[index + 1] ?? "").slice(4);
      hunk = null;
      index += 1;
    } else if (line.startsWith("rename to ") && draft !== null) {
      draft.renamed = true;
    }
  }
  if (draft !== null) files.push(finish(draft));
  return files;
}

/** Removed lines followed by as many added ones are pairs: what they share at both ends is no change. */
function markChanges(lines: DiffLine[]): void {
  let index = 0;
  while (index < lines.length) {
    let removedEnd = index;
    while (lines[removedEnd]?.kind === "removed") removedEnd += 1;
    let addedEnd = removedEnd;
    while (lines[addedEnd]?.kind === "added") addedEnd += 1;
    const pairs = removedEnd - index;
    if (pairs > 0 && pairs === addedEnd - removedEnd) {
      for (let pair = 0; pair < pairs; pair += 1) markPair(lines, index + pair, removedEnd + pair);
    }
    index = Math.max(addedEnd, index + 1);
  }
}

function markPair(lines: DiffLine[], removedAt: number, addedAt: number): void {
  const removed = lines[removedAt];
  const added = lines[addedAt];
  if (removed === undefined || added === undefined) return;
  const shorter = Math.min(removed.text.length, added.text.length);
  let head = 0;
  while (head < shorter && removed.text[head] === added.text[head]) head += 1;
  let tail = 0;
  while (tail < shorter - head && removed.text.at(-1 - tail) === added.text.at(-1 - tail)) tail += 1;
  // Lines with little in common are two lines, not one that was changed.
  if (head + tail < shorter / 3) return;
  lines[removedAt] = { ...removed, changed: { from: head, to: removed.text.length - tail } };
  lines[addedAt] = { ...added, changed: { from: head, to: added.text.length - tail } };
}

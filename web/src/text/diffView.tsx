// A unified diff, drawn: one file after the other, with numbers, and within a line what changed.

import { createContext } from "preact";
import { useContext, useState } from "preact/hooks";
import { type DiffFile, type DiffLine, parseDiff } from "./diff";

/** Paths are shown relative to this folder. */
export const Folder = createContext("");

/** Diffs of agents name files by their whole path, without the slash that it begins with. */
function within(folder: string, path: string): string {
  const start = `${folder.replace(/^\//, "")}/`;
  return folder !== "" && path.startsWith(start) ? path.slice(start.length) : path;
}

/** More lines than that are shown when asked for. */
const FIRST_LINES = 300;

const SIGNS = { same: " ", added: "+", removed: "−", note: " " } as const;

function Line({ line }: { line: DiffLine }) {
  const { changed, text } = line;
  return (
    <div class={`diff-line ${line.kind}`}>
      <span class="diff-number">{line.before ?? ""}</span>
      <span class="diff-number">{line.after ?? ""}</span>
      <span class="diff-sign">{SIGNS[line.kind]}</span>
      <code>
        {changed === null ? (
          text
        ) : (
          <>
            {text.slice(0, changed.from)}
            <mark>{text.slice(changed.from, changed.to)}</mark>
            {text.slice(changed.to)}
          </>
        )}
      </code>
    </div>
  );
}

function File({ file, limit }: { file: DiffFile; limit: number }) {
  const path = within(useContext(Folder), file.path);
  let left = limit;
  return (
    <section class="diff-file" aria-label={`Changes in ${path}`}>
      <header class="diff-head">
        <span class="diff-path" title={file.path}>
          {path}
        </span>
        {file.change !== "changed" && <span class="diff-change">{file.change}</span>}
        <span class="diff-count added">+{file.added}</span>
        <span class="diff-count removed">−{file.removed}</span>
      </header>
      <div class="diff-lines" tabIndex={0} role="group" aria-label={`Lines of ${path}`}>
        <div class="diff-table">
          {file.hunks.map((hunk, index) => {
            const shown = hunk.lines.slice(0, Math.max(0, left));
            left -= hunk.lines.length;
            if (shown.length === 0) return null;
            return (
              <div>
                {(index > 0 || hunk.heading !== "") && <div class="diff-hunk">⋯ {hunk.heading}</div>}
                {shown.map((line) => (
                  <Line line={line} />
                ))}
              </div>
            );
          })}
        </div>
      </div>
    </section>
  );
}

export function DiffView({ diff }: { diff: string }) {
  const [all, setAll] = useState(false);
  const files = parseDiff(diff);
  if (files.length === 0) return <pre class="output">{diff}</pre>;
  const total = files.reduce((sum, file) => sum + file.hunks.reduce((lines, hunk) => lines + hunk.lines.length, 0), 0);
  return (
    <div class="diff">
      {files.map((file) => (
        <File file={file} limit={all ? Number.POSITIVE_INFINITY : FIRST_LINES} />
      ))}
      {!all && total > FIRST_LINES && (
        <button type="button" class="button small" onClick={() => setAll(true)}>
          Show all {total} lines
        </button>
      )}
    </div>
  );
}

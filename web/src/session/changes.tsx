// Changes of files by a session: in all or by turn, with comments on lines that become the next message, and the way back.

import { useEffect, useRef, useState } from "preact/hooks";
import { api } from "../api/client";
import { type Problem, asProblem } from "../api/problem";
import { type ChangedFile, type Changes, type Session, isAtWork } from "../api/resources";
import { useShortcuts } from "../keyboard";
import { type Comment, draftOf, keepDraft, messageOf, placeOf, within } from "./comments";
import { type DiffFile, type DiffLine, parseDiff } from "../text/diff";
import { Action, Empty, Loading, Trouble } from "../ui/parts";

export function ChangesView({ session, onSent, brief = false }: { session: Session; onSent?: () => void; brief?: boolean }) {
  const [changes, setChanges] = useState<Changes | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [turn, setTurn] = useState<number | null>(null);
  const [comments, setComments] = useState(() => draftOf(session.id));
  const note = (comments: readonly Comment[]) => {
    keepDraft(session.id, comments);
    setComments(comments);
  };
  const box = useRef<HTMLDivElement>(null);
  const atWork = isAtWork(session.state);
  useEffect(() => {
    let ended = false;
    api.changes(session.id).then(
      (found) => {
        if (!ended) setChanges(found);
      },
      (error: unknown) => setProblem(asProblem(error)),
    );
    return () => {
      ended = true;
    };
  }, [session.id, session.events]);
  const move = (by: 1 | -1) => {
    const files = [...(box.current?.querySelectorAll<HTMLElement>(".changed-file") ?? [])];
    const now = files.findIndex((file) => file.contains(document.activeElement));
    const next = files[Math.max(0, Math.min(files.length - 1, now + by))];
    next?.focus();
    next?.scrollIntoView({ block: "nearest" });
  };
  useShortcuts("Changes", [
    { keys: "]", does: "Next file", run: () => move(1) },
    { keys: "[", does: "Previous file", run: () => move(-1) },
  ]);
  if (changes === null) return problem === null ? <Loading what="changes" /> : <Trouble problem={problem} />;
  if (brief && changes.files.length === 0) return <p class="hint">No file was changed.</p>;
  const files = turn === null ? changes.files : (changes.turns.find((found) => found.turn === turn)?.files ?? []);
  const revert = (path: string, hunk?: number) => async () => {
    setChanges(await api.revertChange(session.id, path, hunk));
  };
  const send = async () => {
    await api.send(session.id, messageOf(comments, session.workspace), "enqueue");
    note([]);
    onSent?.();
  };
  return (
    <div class="changes" ref={box}>
      {problem && <Trouble problem={problem} />}
      <div class="changes-head">
        <label>
          Turn{" "}
          <select class="field" value={turn ?? ""} onChange={(event) => setTurn(event.currentTarget.value === "" ? null : Number(event.currentTarget.value))}>
            <option value="">all</option>
            {changes.turns.map((found) => (
              <option value={found.turn} key={found.turn}>
                {found.turn}: {found.prompt}
              </option>
            ))}
          </select>
        </label>
        {!brief && comments.length === 0 && files.length > 0 && <span class="hint">Click a line number to comment on the line.</span>}
        {comments.length > 0 && <Action tone="primary" label={`Send ${comments.length} ${comments.length === 1 ? "comment" : "comments"}`} icon="send" act={send} onFail={setProblem} />}
      </div>
      {files.length === 0 ? (
        <Empty icon="file" title="No file was changed">
          <p>Hangar's own agent tells of the files that its tools write. With other agents, the git working tree is compared after each turn.</p>
        </Empty>
      ) : (
        files.map((file) => (
          <FileChanges
            key={file.path}
            file={file}
            folder={session.workspace}
            comments={comments.filter((comment) => comment.path === file.path)}
            onComment={(comment) => note([...comments, comment])}
            revert={turn === null && !atWork ? revert : null}
            onFail={setProblem}
          />
        ))
      )}
    </div>
  );
}

interface FileProps {
  readonly file: ChangedFile;
  readonly folder: string;
  readonly comments: readonly Comment[];
  readonly onComment: (comment: Comment) => void;
  /** Absent where nothing can be taken back. */
  readonly revert: ((path: string, hunk?: number) => () => Promise<void>) | null;
  readonly onFail: (problem: Problem | null) => void;
}

function FileChanges({ file, folder, comments, onComment, revert, onFail }: FileProps) {
  const parsed: DiffFile | undefined = file.diff === undefined ? undefined : parseDiff(file.diff)[0];
  const name = within(folder, file.path);
  return (
    <section class="diff-file changed-file" tabIndex={-1} aria-label={`Changes in ${name}`}>
      <header class="diff-head">
        <span class="diff-path" title={file.path}>
          {name}
        </span>
        <span class="diff-count added">+{parsed?.added ?? file.linesAdded}</span>
        <span class="diff-count removed">−{parsed?.removed ?? file.linesRemoved}</span>
        {revert && <Action small label="Revert file" act={revert(file.path)} onFail={onFail} />}
      </header>
      {parsed === undefined ? (
        <p class="hint">The contents are not known, or are too large to show.</p>
      ) : (
        <div class="diff-lines" tabIndex={0} role="group" aria-label={`Lines of ${name}`}>
          <div class="diff-table">
            {parsed.hunks.map((hunk, at) => (
              <div key={at}>
                <div class="diff-hunk">
                  ⋯ {hunk.heading} {revert && <Action small label="Revert hunk" act={revert(file.path, at)} onFail={onFail} />}
                </div>
                {hunk.lines.map((line) => {
                  const place = placeOf(line);
                  return (
                    <CommentedLine
                      line={line}
                      comments={comments.filter((comment) => comment.side === place?.side && comment.line === place.line)}
                      onComment={place && ((text) => onComment({ path: file.path, ...place, quote: line.text, text }))}
                    />
                  );
                })}
              </div>
            ))}
          </div>
        </div>
      )}
    </section>
  );
}

const SIGNS = { same: " ", added: "+", removed: "−", note: " " } as const;

interface LineProps {
  readonly line: DiffLine;
  readonly comments: readonly Comment[];
  /** Absent where a line has no number. */
  readonly onComment: ((text: string) => void) | null;
}

function CommentedLine({ line, comments, onComment }: LineProps) {
  const [writing, setWriting] = useState(false);
  const number = (at: number | null, isButton: boolean) => {
    if (at === null || !isButton || onComment === null) return <span class="diff-number">{at ?? ""}</span>;
    return (
      <button type="button" class="diff-number comment-on" aria-label={`Comment on ${line.after === null ? "removed " : ""}line ${at}`} onClick={() => setWriting(!writing)}>
        {at}
      </button>
    );
  };
  return (
    <>
      <div class={`diff-line ${line.kind}`}>
        {number(line.before, line.after === null)}
        {number(line.after, true)}
        <span class="diff-sign">{SIGNS[line.kind]}</span>
        <code>{line.text}</code>
      </div>
      {comments.map((comment) => (
        <p class="line-comment">{comment.text}</p>
      ))}
      {writing && (
        <form
          class="line-comment"
          onSubmit={(event) => {
            event.preventDefault();
            const text = new FormData(event.currentTarget).get("text");
            if (typeof text === "string" && text.trim() !== "") onComment?.(text);
            setWriting(false);
          }}
        >
          <textarea class="field wide" name="text" rows={2} aria-label="Comment" autoFocus />
          <button type="submit" class="button small primary">
            Add comment
          </button>
        </form>
      )}
    </>
  );
}

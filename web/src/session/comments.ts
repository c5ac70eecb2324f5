// Comments on lines of a diff, as the next message to the agent.

import type { DiffLine } from "../text/diff";

export interface Comment {
  readonly path: string;
  /** The file in which the line has its number: as it is now, or as it was for a removed line. */
  readonly side: "before" | "after";
  readonly line: number;
  readonly quote: string;
  readonly text: string;
}

/** The comments as one message to the agent. */
export function messageOf(comments: readonly Comment[], folder: string): string {
  const removed = (comment: Comment) => (comment.side === "before" ? " (removed)" : "");
  const place = (comment: Comment) => `${within(folder, comment.path)}:${comment.line}${removed(comment)}`;
  return comments.map((comment) => `${place(comment)}\n> ${comment.quote.trim()}\n${comment.text.trim()}`).join("\n\n");
}

/** Place of a line. A removed line and the one in its place often have the same number, on different sides. */
export function placeOf(line: DiffLine): Pick<Comment, "side" | "line"> | null {
  if (line.after !== null) return { side: "after", line: line.after };
  return line.before === null ? null : { side: "before", line: line.before };
}

/** Comments that are not sent yet, by session, so that another tab of the page does not lose them. */
const drafts = new Map<string, readonly Comment[]>();
/** Sessions whose comments are kept. */
const MOST_DRAFTS = 50;

export function draftOf(session: string): readonly Comment[] {
  return drafts.get(session) ?? [];
}

export function keepDraft(session: string, comments: readonly Comment[]): void {
  drafts.delete(session);
  if (comments.length > 0) drafts.set(session, comments);
  const [oldest] = drafts.keys();
  if (drafts.size > MOST_DRAFTS && oldest !== undefined) drafts.delete(oldest);
}

export function within(folder: string, path: string): string {
  return folder !== "" && path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : path;
}

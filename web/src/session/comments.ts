// Comments on lines of a diff, as the next message to the agent.

export interface Comment {
  readonly path: string;
  readonly line: number;
  readonly quote: string;
  readonly text: string;
}

/** The comments as one message to the agent. */
export function messageOf(comments: readonly Comment[], folder: string): string {
  const place = (comment: Comment) => `${within(folder, comment.path)}:${comment.line}`;
  return comments.map((comment) => `${place(comment)}\n> ${comment.quote.trim()}\n${comment.text.trim()}`).join("\n\n");
}

export function within(folder: string, path: string): string {
  return folder !== "" && path.startsWith(`${folder}/`) ? path.slice(folder.length + 1) : path;
}

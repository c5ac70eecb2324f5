// Reading server-sent events from text that arrives in pieces. Pure.

export interface ServerEvent {
  readonly type: string;
  readonly data: string;
  readonly id: string | null;
}

/** A longer line is not one of our events; the reader fails instead of growing without bound. */
const LINE_LIMIT = 64 * 1024 * 1024;

export class EventReader {
  private pieces: string[] = [];
  private held = 0;
  private data: string[] = [];
  private type = "";
  private id: string | null = null;

  /** The events that are complete with this piece of text. */
  feed(piece: string): ServerEvent[] {
    const events: ServerEvent[] = [];
    let start = 0;
    for (;;) {
      const end = piece.indexOf("\n", start);
      if (end === -1) break;
      this.pieces.push(piece.slice(start, end));
      this.line(this.pieces.join("").replace(/\r$/, ""), events);
      this.pieces = [];
      this.held = 0;
      start = end + 1;
    }
    if (start < piece.length) {
      this.pieces.push(piece.slice(start));
      this.held += piece.length - start;
      if (this.held > LINE_LIMIT) throw new Error("an event of the server is too large");
    }
    return events;
  }

  private line(line: string, events: ServerEvent[]): void {
    if (line === "") {
      if (this.data.length > 0) events.push({ type: this.type || "message", data: this.data.join("\n"), id: this.id });
      this.data = [];
      this.type = "";
      this.id = null;
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const name = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (name === "data") this.data.push(value);
    else if (name === "event") this.type = value;
    else if (name === "id") this.id = value;
  }
}

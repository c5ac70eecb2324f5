// Events that are not in the log and are still of use: the pieces of what is being written and done right now. They are
// kept so that a transcript that is folded anew shows them too; each goes when the log has what it was a piece of.

import { fields } from "../json";
import type { WireEvent } from "./wire";

/** A text in more pieces than that loses its beginning until its whole is there, and only if it is folded anew. */
const MOST = 20_000;

/** The call that a piece belongs to; pieces of texts belong to none. */
function callOf(event: WireEvent): unknown {
  return event.type.startsWith("tool.") ? fields(event.data)["toolCallId"] : undefined;
}

export class Passing {
  private events: WireEvent[] = [];

  take(event: WireEvent, passes: boolean): void {
    if (passes) {
      this.events.push(event);
      // Half at a time: taking away one by one would move all of them for each.
      if (this.events.length > MOST) this.events = this.events.slice(-MOST / 2);
      return;
    }
    const { type, agentId } = event;
    if (type === "assistant.message") this.drop((piece) => piece.agentId === agentId && callOf(piece) === undefined);
    else if (type === "tool.execution_complete") this.drop((piece) => callOf(piece) === callOf(event));
    else if (type === "assistant.turn_end") this.drop((piece) => piece.agentId === agentId);
  }

  clear(): void {
    this.events = [];
  }

  [Symbol.iterator](): Iterator<WireEvent> {
    return this.events[Symbol.iterator]();
  }

  private drop(isOver: (piece: WireEvent) => boolean): void {
    if (this.events.length > 0) this.events = this.events.filter((piece) => !isOver(piece));
  }
}

// Ephemeral events: pieces of the text or call that is in progress. They are kept so that a transcript that is folded again
// shows them too, and dropped when the log has the complete event.

import { fields } from "../json";
import type { WireEvent } from "./wire";

/** If a text has more pieces, the oldest are dropped. This shows only if the transcript is folded again before the text is complete. */
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
      // Half at a time: removing them one by one would be quadratic.
      if (this.events.length > MOST) this.events = this.events.slice(-MOST / 2);
      return;
    }
    const { type, agentId } = event;
    const ends = type === "assistant.message" || type === "hangar.answer_cut";
    if (ends) this.drop((piece) => piece.agentId === agentId && callOf(piece) === undefined);
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

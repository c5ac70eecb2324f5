// The events of a session on this page: the newest first, live events from the stream, and older ones when the reader scrolls
// up. No event is missed or duplicated: every event has a number, and the stream resumes after the last one received.
//
// The page keeps a window on the log of at most `Bounds.kept` events. It stays at the end of the log and moves with it, until
// the reader scrolls so far back that the end falls out of the window. Live events are then dropped, and loaded again when
// the reader returns to the end.

import { type Signal, signal } from "@preact/signals";
import { api, streams } from "../api/client";
import { type Problem, asProblem } from "../api/problem";
import { type EventPage, type LoggedEvent, type Session, isAtWork } from "../api/resources";
import { type StreamState, listen } from "../api/stream";
import { type Transcript, apply, breakOff, emptyTranscript, fold } from "./fold";
import { Passing } from "./passing";
import type { WireEvent } from "./wire";

/** Numbers of events. */
export interface Bounds {
  readonly page: number;
  /** Pages grow as the reader scrolls back: all of a long session takes some fifteen requests. */
  readonly largestPage: number;
  /** Bounds memory: a session of a month needs no more than one of an hour. */
  readonly kept: number;
  /** Events left when the window moves, so that it does not move with every event. */
  readonly keptAfterMove: number;
}

/** `public/first.js` asks for the first page, and has to know how large it is. */
const BOUNDS: Bounds = { page: 500, largestPage: 4_000, kept: 16_000, keptAfterMove: 12_000 };

/** Drawing takes as long as it takes; this many times as long is left for everything else, within bounds. */
const REST = 3;
const SHORTEST_REST_MS = 16;
const LONGEST_REST_MS = 500;
const AGAIN_MS = 2_000;

/** Whether there is more in the log on one side of the window. */
export type Beyond = "none" | "more" | "loading";

export class SessionFeed {
  readonly id: string;
  readonly session: Signal<Session | null> = signal(null);
  readonly version = signal(0);
  readonly problem: Signal<Problem | null> = signal(null);
  readonly connection: Signal<StreamState> = signal("connecting");
  readonly ready = signal(false);
  readonly deleted = signal(false);
  readonly older: Signal<Beyond> = signal("none");
  readonly newer: Signal<Beyond> = signal("none");
  /** Sent from here and not yet in the log. */
  readonly unsent: Signal<readonly { key: number; text: string }[]> = signal([]);

  transcript: Transcript = emptyTranscript();
  /** Whether the view is at the end, and not at rows that would leave the window when it moves. */
  followed = true;
  private readonly bounds: Bounds;
  private logged: LoggedEvent[] = [];
  private readonly passing = new Passing();
  /** The last event that the stream told of, whether it is kept or not. */
  private last = 0;
  private stop: (() => void) | null = null;
  private closed = false;
  private wasLost = false;
  private redraw: number | null = null;
  private rest = SHORTEST_REST_MS;
  private nextKey = 0;

  constructor(id: string, bounds: Bounds = BOUNDS) {
    this.id = id;
    this.bounds = bounds;
  }

  async start(): Promise<void> {
    this.problem.value = null;
    try {
      // One after the other: a server that does not know the session yet reads the whole log for either, and once is enough.
      const page = await api.events(this.id, { limit: this.bounds.page });
      const session = await api.session(this.id);
      if (this.closed) return;
      this.session.value = session;
      this.last = page.events.at(-1)?.seq ?? page.last;
      this.show(page.events);
      this.ready.value = true;
      this.follow();
    } catch (error) {
      if (!this.closed) this.problem.value = asProblem(error);
    }
  }

  close(): void {
    this.closed = true;
    this.stop?.();
    if (this.redraw !== null) clearTimeout(this.redraw);
  }

  loadOlder(): Promise<void> {
    return this.load(this.older, { before: this.firstSeq(), limit: this.nextPage() }, (page) => {
      // The reader is at the beginning of the window: what falls out of it is at the other end.
      this.show([...page.events, ...this.logged].slice(0, this.bounds.kept));
    });
  }

  loadNewer(): Promise<void> {
    return this.load(this.newer, { after: this.lastSeq(), limit: this.nextPage() }, (page) => {
      this.show([...this.logged, ...page.events].slice(-this.bounds.kept));
    });
  }

  /** Puts the window back to the end of the log, if it is elsewhere. */
  toEnd(): Promise<void> {
    return this.load(this.newer, { limit: this.bounds.page }, (page) => this.show(page.events));
  }

  /** Text that was sent and is not in the log yet. */
  expect(text: string): () => void {
    const key = (this.nextKey += 1);
    this.unsent.value = [...this.unsent.peek(), { key, text }];
    return () => {
      this.unsent.value = this.unsent.peek().filter((entry) => entry.key !== key);
    };
  }

  private nextPage(): number {
    return Math.min(this.bounds.largestPage, Math.max(this.bounds.page, this.logged.length));
  }

  private async load(side: Signal<Beyond>, range: { before?: number; after?: number; limit: number }, take: (page: EventPage) => void): Promise<void> {
    if (side.peek() !== "more") return;
    side.value = "loading";
    try {
      const page = await api.events(this.id, range);
      if (this.closed) return;
      take(page);
      this.problem.value = null;
    } catch (error) {
      this.problem.value = asProblem(error);
      // The list asks again while its edge is in view; pause between attempts while the server is unreachable.
      setTimeout(() => {
        side.value = "more";
      }, AGAIN_MS);
    }
  }

  /** Replaces the window with these events and folds them again, since earlier events may have started blocks in it. */
  private show(events: readonly LoggedEvent[]): void {
    this.logged = [...events];
    this.transcript = fold(events.map(({ event }) => event));
    const atEnd = this.lastSeq() >= this.last;
    if (atEnd) for (const event of this.passing) apply(this.transcript, event);
    this.older.value = this.firstSeq() > 1 ? "more" : "none";
    this.newer.value = atEnd ? "none" : "more";
    this.version.value += 1;
  }

  private async refresh(): Promise<void> {
    try {
      this.session.value = await api.session(this.id);
    } catch (error) {
      // Retried when the server is back.
      if (asProblem(error).status === 404) this.deleted.value = true;
    }
  }

  private firstSeq(): number {
    return this.logged[0]?.seq ?? 1;
  }

  private lastSeq(): number {
    return this.logged.at(-1)?.seq ?? this.last;
  }

  private follow(): void {
    this.stop = listen({
      url: () => streams.session(this.id, this.last),
      state: (state) => {
        if (state === "lost") {
          breakOff(this.transcript);
          this.passing.clear();
          this.changed();
        }
        // The stream sends changes only; load what changed while it was disconnected.
        if (state === "open" && this.wasLost) void this.refresh();
        if (state === "open" || state === "lost") this.wasLost = state === "lost";
        this.connection.value = state;
      },
      gone: () => {
        this.deleted.value = true;
      },
      event: (event) => {
        if (event.type === "session") {
          const session = JSON.parse(event.data) as Session;
          this.session.value = session;
          // Nothing is pending any more: the agent may have logged a message in other words than it was sent in.
          if (!isAtWork(session.state)) this.unsent.value = [];
        } else if (event.type === "end") {
          this.deleted.value = true;
          this.stop?.();
        } else if (event.type === "message") {
          this.take(event.id === null ? null : Number(event.id), JSON.parse(event.data) as WireEvent);
        }
      },
    });
  }

  private take(seq: number | null, event: WireEvent): void {
    this.passing.take(event, seq === null);
    const atEnd = this.newer.peek() === "none";
    if (seq !== null) {
      if (seq <= this.last) return;
      this.last = seq;
      if (atEnd) this.logged.push({ seq, event });
      if (event.type === "user.message") this.arrived(event);
    }
    if (!atEnd) return;
    apply(this.transcript, event);
    if (this.logged.length > this.bounds.kept) {
      if (this.followed) this.show(this.logged.slice(-this.bounds.keptAfterMove));
      else this.newer.value = "more";
    }
    this.changed();
  }

  private arrived(event: WireEvent): void {
    const data = event.data;
    const content = typeof data === "object" && data !== null && "content" in data ? data.content : null;
    const waiting = this.unsent.peek();
    const found = waiting.find((entry) => entry.text === content);
    if (found !== undefined) this.unsent.value = waiting.filter((entry) => entry !== found);
  }

  private changed(): void {
    if (this.redraw !== null) return;
    this.redraw = window.setTimeout(() => {
      this.redraw = null;
      const began = performance.now();
      this.version.value += 1;
      // Views draw before the next task begins.
      window.setTimeout(() => {
        this.rest = Math.min(LONGEST_REST_MS, Math.max(SHORTEST_REST_MS, REST * (performance.now() - began)));
      });
    }, this.rest);
  }
}

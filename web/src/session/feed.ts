// A session as it is known to this page: its newest events, then whatever happens, and older ones when somebody looks.
// Nothing is missed and nothing comes twice: every event has a number, and the stream goes on after the last one seen.

import { type Signal, signal } from "@preact/signals";
import { api, streams } from "../api/client";
import { type Problem, asProblem } from "../api/problem";
import type { LoggedEvent, Session } from "../api/resources";
import { type StreamState, listen } from "../api/stream";
import { type Transcript, apply, breakOff, emptyTranscript, fold } from "./fold";
import type { WireEvent } from "./wire";

const PAGE = 500;
/** Who reads far back gets larger and larger pages: the whole of a long session is some fifteen requests away. */
const LARGEST_PAGE = 4_000;
/** Redrawing a transcript of so many blocks for every piece of text would take all the time there is. */
const LARGE = 4_000;
const SLOW_REDRAW_MS = 120;
const QUICK_REDRAW_MS = 16;
const OLDER_AGAIN_MS = 2_000;

export class SessionFeed {
  readonly id: string;
  readonly session: Signal<Session | null> = signal(null);
  readonly version = signal(0);
  readonly problem: Signal<Problem | null> = signal(null);
  readonly connection: Signal<StreamState> = signal("connecting");
  readonly ready = signal(false);
  readonly deleted = signal(false);
  readonly older: Signal<"none" | "more" | "loading"> = signal("none");
  /** Sent from here and not yet in the log. */
  readonly unsent: Signal<readonly { key: number; text: string }[]> = signal([]);

  transcript: Transcript = emptyTranscript();
  /** What the log has, and the pieces of what is being written; those go when their turn is over. */
  private logged: LoggedEvent[] = [];
  private last = 0;
  private stop: (() => void) | null = null;
  private closed = false;
  private wasLost = false;
  private redraw: number | null = null;
  private nextKey = 0;

  constructor(id: string) {
    this.id = id;
  }

  async start(): Promise<void> {
    this.problem.value = null;
    try {
      const [session, page] = await Promise.all([api.session(this.id), api.events(this.id, { limit: PAGE })]);
      if (this.closed) return;
      this.session.value = session;
      this.logged = page.events;
      this.last = page.events.at(-1)?.seq ?? page.last;
      this.transcript = fold(page.events.map((logged) => logged.event));
      this.older.value = this.firstSeq() > 1 ? "more" : "none";
      this.version.value += 1;
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

  async loadOlder(): Promise<void> {
    if (this.older.peek() !== "more") return;
    this.older.value = "loading";
    try {
      const limit = Math.min(LARGEST_PAGE, Math.max(PAGE, this.logged.length));
      const page = await api.events(this.id, { before: this.firstSeq(), limit });
      if (this.closed) return;
      this.logged = [...page.events, ...this.logged];
      // What is older may be the beginning of calls and agents that are shown already: all is folded anew.
      this.transcript = fold(this.logged.map((logged) => logged.event));
      this.older.value = page.events.length > 0 && this.firstSeq() > 1 ? "more" : "none";
      this.version.value += 1;
      this.problem.value = null;
    } catch (error) {
      this.problem.value = asProblem(error);
      // The list asks again as long as its beginning is in view; a server that is away is not asked without a pause.
      setTimeout(() => {
        this.older.value = "more";
      }, OLDER_AGAIN_MS);
    }
  }

  /** Text that was handed in, shown until the log has it. */
  expect(text: string): () => void {
    const key = (this.nextKey += 1);
    this.unsent.value = [...this.unsent.peek(), { key, text }];
    return () => {
      this.unsent.value = this.unsent.peek().filter((entry) => entry.key !== key);
    };
  }

  private async refresh(): Promise<void> {
    try {
      this.session.value = await api.session(this.id);
    } catch (error) {
      // A server that went again is asked when it is back.
      if (asProblem(error).status === 404) this.deleted.value = true;
    }
  }

  private firstSeq(): number {
    return this.logged[0]?.seq ?? 1;
  }

  private follow(): void {
    this.stop = listen({
      url: () => streams.session(this.id, this.last),
      state: (state) => {
        if (state === "lost") {
          breakOff(this.transcript);
          this.changed();
        }
        // The stream tells of changes; what changed while nobody listened has to be asked for.
        if (state === "open" && this.wasLost) void this.refresh();
        if (state === "open" || state === "lost") this.wasLost = state === "lost";
        this.connection.value = state;
      },
      gone: () => {
        this.deleted.value = true;
      },
      event: (event) => {
        if (event.type === "session") {
          this.session.value = JSON.parse(event.data) as Session;
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
    if (seq !== null) {
      if (seq <= this.last) return;
      this.last = seq;
    }
    this.logged.push({ seq: this.last, event });
    if (event.type === "assistant.turn_end" && event.agentId === undefined) {
      this.logged = this.logged.filter((logged) => logged.event.ephemeral !== true);
    }
    apply(this.transcript, event);
    if (event.type === "user.message") this.arrived(event);
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
    const wait = this.transcript.main.blocks.length > LARGE ? SLOW_REDRAW_MS : QUICK_REDRAW_MS;
    this.redraw = window.setTimeout(() => {
      this.redraw = null;
      this.version.value += 1;
    }, wait);
  }
}

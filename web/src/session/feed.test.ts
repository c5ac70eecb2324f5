import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { SessionFeed } from "./feed";

/** A server with a log of prompts, which are numbered, and a stream that tells what is added. */
class Server {
  private prompts = 0;
  private tell: ((text: string) => void) | null = null;
  private heard = () => {};
  readonly listening = new Promise<void>((heard) => {
    this.heard = heard;
  });

  constructor(count: number) {
    this.prompts = count;
    vi.stubGlobal("fetch", (address: string) => Promise.resolve(this.answer(new URL(address, "http://portal"))));
  }

  private event(seq: number) {
    return { seq, event: { id: `e${seq}`, type: "user.message", timestamp: "2026-01-01T00:00:00Z", data: { content: String(seq) } } };
  }

  private answer(address: URL): Response {
    if (address.pathname.endsWith("/stream")) {
      const body = new ReadableStream<Uint8Array>({
        start: (controller) => {
          this.tell = (text) => controller.enqueue(new TextEncoder().encode(text));
          this.heard();
        },
      });
      return new Response(body);
    }
    if (!address.pathname.endsWith("/events")) return Response.json({ id: "s", state: "idle" });
    const number = (name: string) => (address.searchParams.has(name) ? Number(address.searchParams.get(name)) : null);
    const limit = number("limit") ?? 0;
    const after = number("after");
    const end = after === null ? (number("before") ?? this.prompts + 1) - 1 : Math.min(this.prompts, after + limit);
    const first = after === null ? Math.max(1, end - limit + 1) : after + 1;
    const events = Array.from({ length: Math.max(0, end - first + 1) }, (_, at) => this.event(first + at));
    return Response.json({ events, last: this.prompts });
  }

  add(count: number): void {
    let text = "";
    for (let at = 0; at < count; at += 1) {
      this.prompts += 1;
      const { seq, event } = this.event(this.prompts);
      text += `id: ${seq}\ndata: ${JSON.stringify(event)}\n\n`;
    }
    this.tell?.(text);
  }
}

let feed: SessionFeed;

async function open(count: number): Promise<Server> {
  const server = new Server(count);
  feed = new SessionFeed("s", { page: 5, largestPage: 10, kept: 40, keptAfterMove: 30 });
  await feed.start();
  await server.listening;
  return server;
}

/** The first and the last prompt of the window, and whether all of them are there, once. */
function window_(): [number, number] {
  const prompts = feed.transcript.main.blocks.map((block) => (block.kind === "user" ? Number(block.text) : Number.NaN));
  const [first, last] = [prompts[0] ?? 0, prompts.at(-1) ?? 0];
  expect(prompts).toEqual(Array.from({ length: last - first + 1 }, (_, at) => first + at));
  return [first, last];
}

async function until(last: number): Promise<void> {
  await vi.waitFor(() => expect(window_()[1]).toBe(last));
}

beforeEach(() => {
  const nobody = { addEventListener: () => {}, removeEventListener: () => {} };
  vi.stubGlobal("document", { ...nobody, visibilityState: "visible" });
  vi.stubGlobal("window", { ...nobody, setTimeout });
});

afterEach(() => {
  feed.close();
  vi.unstubAllGlobals();
});

test("a long session begins with its end, and what is older is loaded up to the first", async () => {
  await open(35);
  expect(window_()).toEqual([31, 35]);
  while (feed.older.value === "more") await feed.loadOlder();
  expect(window_()).toEqual([1, 35]);
});

test("what happens is added, and the window does not grow without end", async () => {
  const server = await open(1);
  for (let last = 11; last <= 201; last += 10) {
    server.add(10);
    await until(last);
    expect(last - window_()[0]).toBeLessThan(40);
  }
  expect(feed.older.value).toBe("more");
});

test("who reads far back loses the end, and finds it again by reading on", async () => {
  const server = await open(100);
  while (feed.older.value === "more") await feed.loadOlder();
  expect(window_()).toEqual([1, 40]);
  server.add(5);
  while (feed.newer.value === "more") await feed.loadNewer();
  await until(105);
  server.add(1);
  await until(106);
});

test("who reads far back is at the end by one step", async () => {
  const server = await open(100);
  while (feed.older.value === "more") await feed.loadOlder();
  await feed.toEnd();
  expect(window_()).toEqual([96, 100]);
  server.add(1);
  await until(101);
});

test("what is being read does not fall out of the window", async () => {
  const server = await open(100);
  while (window_()[0] > 70) await feed.loadOlder();
  const [first] = window_();
  feed.followed = false;
  server.add(30);
  await vi.waitFor(() => expect(feed.newer.value).toBe("more"));
  expect(window_()[0]).toBe(first);
});

// A small MCP server over standard input and output that can misbehave: `node odd.mjs [how] [file]`.
// `how`: fine, hang (never answers), flood (talks all the time), banner (prints what is no message), slow (answers when
// the file `<file>.go` is there), endless (has one more empty page of tools, always), mortal (dies at once if the file
// `<file>.died` is there), fickle (says that its tools are others now whenever they are asked for, and dies of the second
// time).
// `file` is written one line for every start: the process id; `<file>.lists` one for every question for the tools.
import { appendFileSync, existsSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";

/** A PNG image of one pixel. */
const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const [how = "fine", file] = process.argv.slice(2);
if (file) appendFileSync(file, `${process.pid}\n`);

if (how === "mortal" && existsSync(`${file}.died`)) {
  console.error("no will to live");
  process.exit(3);
}

const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
const text = (value) => ({ content: [{ type: "text", text: String(value) }] });
const tool = (name, more = {}) => ({ name, description: `Does ${name}`, inputSchema: { type: "object" }, ...more });

if (how === "banner") console.log("Welcome to the server!\n{not json}");
if (how === "flood") {
  const line = JSON.stringify({ jsonrpc: "2.0", method: "notifications/tools/list_changed" }) + "\n";
  const talk = () => {
    while (process.stdout.write(line.repeat(64)));
    process.stdout.once("drain", () => setImmediate(talk));
  };
  talk();
}

const calls = {
  echo: (id, args) => send({ id, result: text(args.text ?? "") }),
  env: (id, args) => send({ id, result: text(process.env[args.name] ?? "unset") }),
  picture: (id) =>
    send({ id, result: { content: [{ type: "image", mimeType: "image/png", data: PIXEL }] } }),
  large: (id, args) => send({ id, result: text("x".repeat(args.bytes)) }),
  write: (id, args) => {
    writeFileSync(args.path, "x");
    send({ id, result: text("written") });
  },
  sleep: () => {},
  // More than fits into a message.
  huge: () => process.stdout.write("x".repeat(17 << 20) + "\n"),
  // Asks the model more often than it may at once; says how often it was refused at once.
  storm: (id, args) => {
    let refused = 0;
    for (let n = 0; n < args.times; n++) {
      waiting.set(`q${n}`, (answer) => {
        if (answer.error && ++refused === args.times - 16) send({ id, result: text(`refused ${refused}: ${answer.error.message}`) });
      });
      const messages = [{ role: "user", content: { type: "text", text: "DELAY:60000" } }];
      send({ id: `q${n}`, method: "sampling/createMessage", params: { messages, maxTokens: 10 } });
    }
  },
  // Asks a person and takes the question back when the file `<file>.go` is there.
  waver: (id) => {
    const requestedSchema = { type: "object", properties: { name: { type: "string" } } };
    send({ id: "w1", method: "elicitation/create", params: { message: "Who?", requestedSchema } });
    const wait = setInterval(() => {
      if (!existsSync(`${file}.go`)) return;
      clearInterval(wait);
      send({ method: "notifications/cancelled", params: { requestId: "w1", reason: "never mind" } });
      send({ id, result: text("taken back") });
    }, 5);
  },
  // The first process dies in the middle of the call; the one after it does not.
  die: (id) => {
    if (existsSync(`${file}.died`)) return send({ id, result: text("alive again") });
    writeFileSync(`${file}.died`, "");
    process.exit(3);
  },
  grow: (id) => {
    grown = true;
    send({ method: "notifications/tools/list_changed" });
    send({ id, result: text("grown") });
  },
  sample: (id) => {
    waiting.set("s1", (answer) => send({ id, result: text(answer.result?.content?.text ?? answer.error.message) }));
    const messages = [{ role: "user", content: { type: "text", text: "SAY:sampled words" } }];
    send({ id: "s1", method: "sampling/createMessage", params: { messages, maxTokens: 10 } });
  },
  ask: (id) => {
    waiting.set("e1", (answer) => send({ id, result: text(JSON.stringify(answer.result)) }));
    const requestedSchema = { type: "object", properties: { name: { type: "string" } } };
    send({ id: "e1", method: "elicitation/create", params: { message: "Who?", requestedSchema } });
  },
};
let grown = false;
const waiting = new Map();

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params, ...answer } = JSON.parse(line);
  if (how === "hang") return;
  if (method === undefined) return waiting.get(id)?.(answer);
  if (id === undefined) return;
  if (method === "initialize") {
    const result = {
      protocolVersion: params.protocolVersion,
      capabilities: { tools: { listChanged: true } },
      serverInfo: { name: "odd", version: "1" },
      instructions: "Echo before anything else.",
    };
    if (how !== "slow") return send({ id, result });
    const wait = setInterval(() => {
      if (!existsSync(`${file}.go`)) return;
      clearInterval(wait);
      send({ id, result });
    }, 5);
    return;
  }
  if (method === "tools/list") {
    if (file) appendFileSync(`${file}.lists`, "asked\n");
    if (how === "endless" && params?.cursor) return send({ id, result: { tools: [], nextCursor: "more" } });
    const names = [...Object.keys(calls), ...(grown ? ["extra"] : [])];
    const tools = names.map((name) => tool(name, name === "echo" ? { annotations: { readOnlyHint: true } } : {}));
    if (how === "fickle") {
      const changed = JSON.stringify({ jsonrpc: "2.0", method: "notifications/tools/list_changed" }) + "\n";
      if (grown) return process.stdout.write(changed, () => process.exit(0));
      grown = true;
      send({ id, result: { tools } });
      return process.stdout.write(changed);
    }
    return send({ id, result: { tools, ...(how === "endless" ? { nextCursor: "more" } : {}) } });
  }
  if (method === "tools/call") {
    const token = params._meta?.progressToken;
    if (params.name === "echo") {
      send({ method: "notifications/progress", params: { progressToken: token, progress: 1, total: 2, message: "half" } });
    }
    return calls[params.name](id, params.arguments ?? {});
  }
  send({ id, error: { code: -32601, message: "Method not found" } });
});

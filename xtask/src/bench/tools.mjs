// An MCP server over standard input and output with ten tools that nobody calls. Their number and size stay as they
// are: what they cost is compared from one benchmark to the next.
import { createInterface } from "node:readline";

const property = (name) => ({ type: "string", description: `What ${name} is to be, in one or two words of yours.` });
const tools = Array.from({ length: 10 }, (_, number) => ({
  name: `tool_${number}`,
  description: `Does what number ${number} does, to the thing that it is given, and says what became of it.`,
  inputSchema: {
    type: "object",
    properties: { path: property("path"), query: property("query"), form: property("form") },
    required: ["path"],
  },
}));
const server = {
  initialize: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "ten", version: "1" } },
  "tools/list": { tools },
};

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method } = JSON.parse(line);
  if (id === undefined) return;
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result: server[method] ?? {} }) + "\n");
});

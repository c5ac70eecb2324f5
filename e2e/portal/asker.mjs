// A small MCP server over standard input and output. Its one tool, `ask`, asks the user what its arguments say, and answers
// with what the user said.

import { createInterface } from "node:readline";

const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
const waiting = new Map();

const methods = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "asker", version: "1" } }),
  "tools/list": () => ({ tools: [{ name: "ask", description: "Asks the user", inputSchema: { type: "object" } }] }),
};

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params, result, error } = JSON.parse(line);
  if (method === undefined) return waiting.get(id)?.(result ?? error);
  if (id === undefined) return;
  if (method === "tools/call") {
    waiting.set(`for-${id}`, (said) => send({ id, result: { content: [{ type: "text", text: JSON.stringify(said) }] } }));
    return send({ id: `for-${id}`, method: "elicitation/create", params: params.arguments });
  }
  const answer = methods[method];
  send(answer === undefined ? { id, error: { code: -32601, message: "no such method" } } : { id, result: answer(params ?? {}) });
});

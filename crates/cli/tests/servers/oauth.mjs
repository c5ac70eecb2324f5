// A remote MCP server that wants a login, and the authority that gives them out: `node oauth.mjs`. Prints its port, then
// one line of JSON for everything that is asked of the authority. The first token of a login is refused after its first
// call, so that it has to be renewed. With `race` it is refused at its first call; two of those are refused at the same
// moment, and a token is not renewed before somebody asks for `/go`. A refresh token is good for one use.
import { createServer } from "node:http";

const race = process.argv[2] === "race";
const held = [];
let go;
const gone = new Promise((resolve) => (go = resolve));
let refresh;
const say = (what) => console.log(JSON.stringify(what));
let base;
let issued = 0;
let good;
let calls = 0;
let challenge;

const body = (request) =>
  new Promise((resolve) => {
    let text = "";
    request.on("data", (piece) => (text += piece)).on("end", () => resolve(text));
  });

const grant = () => {
  good = `token-${++issued}`;
  refresh = `refresh-${issued}`;
  return { access_token: good, token_type: "Bearer", expires_in: 3600, refresh_token: refresh };
};

const rpc = (message) => {
  switch (message.method) {
    case "initialize":
      return {
        protocolVersion: message.params.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: "far", version: "1" },
      };
    case "tools/list":
      return { tools: [{ name: "whoami", description: "Says who asks", inputSchema: { type: "object" } }] };
    case "tools/call":
      calls++;
      return { content: [{ type: "text", text: `called with ${good}` }] };
    default:
      return {};
  }
};

const server = createServer(async (request, response) => {
  const url = new URL(request.url, base);
  const json = (value, status = 200, headers = {}) => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(JSON.stringify(value));
  };
  if (url.pathname.startsWith("/.well-known/oauth-protected-resource")) {
    return json({ resource: `${base}/mcp`, authorization_servers: [base], scopes_supported: ["read"] });
  }
  if (url.pathname.startsWith("/.well-known/")) {
    return json({
      issuer: base,
      authorization_endpoint: `${base}/authorize`,
      token_endpoint: `${base}/token`,
      registration_endpoint: `${base}/register`,
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      code_challenge_methods_supported: ["S256"],
      token_endpoint_auth_methods_supported: ["none"],
    });
  }
  if (url.pathname === "/register") {
    const asked = JSON.parse(await body(request));
    say({ register: asked.client_name });
    return json({ ...asked, client_id: "client-1" }, 201);
  }
  if (url.pathname === "/authorize") {
    challenge = url.searchParams.get("code_challenge");
    say({ authorize: url.searchParams.get("code_challenge_method") });
    const back = new URL(url.searchParams.get("redirect_uri"));
    back.searchParams.set("code", "code-1");
    back.searchParams.set("state", url.searchParams.get("state"));
    back.searchParams.set("iss", base);
    response.writeHead(302, { location: back.href });
    return response.end();
  }
  if (url.pathname === "/token") {
    const asked = new URLSearchParams(await body(request));
    say({ token: asked.get("grant_type"), verified: Boolean(asked.get("code_verifier") ?? challenge) });
    if (asked.get("grant_type") === "refresh_token") {
      if (asked.get("refresh_token") !== refresh) return json({ error: "invalid_grant" }, 400);
      refresh = undefined;
      if (race) await gone;
    }
    return json(grant());
  }
  if (url.pathname === "/go") {
    go();
    return json({});
  }
  if (url.pathname === "/mcp") {
    const text = await body(request);
    const called = text.includes('"tools/call"');
    const spent = good === "token-1" && (race ? called : calls > 0);
    if (race && spent) {
      await new Promise((resolve) => {
        held.push(resolve);
        if (held.length === 2) held.forEach((release) => release());
      });
    }
    if (request.headers.authorization !== `Bearer ${good}` || !good || spent) {
      const metadata = `${base}/.well-known/oauth-protected-resource`;
      return json({ error: "unauthorized" }, 401, { "www-authenticate": `Bearer resource_metadata="${metadata}"` });
    }
    if (request.method !== "POST") return json({}, 405);
    const message = JSON.parse(text);
    if (message.id === undefined) return json({}, 202);
    return json({ jsonrpc: "2.0", id: message.id, result: rpc(message) });
  }
  json({}, 404);
});
server.listen(0, "127.0.0.1", () => {
  base = `http://127.0.0.1:${server.address().port}`;
  say({ port: server.address().port });
});

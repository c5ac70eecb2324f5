// The part of `@github/copilot-sdk` that extensions need, for extensions that do not bring the package itself. It speaks the
// protocol of `docs/sdk.md` over standard input and output.
const HOOKS = {
    preToolUse: "onPreToolUse",
    preMcpToolCall: "onPreMcpToolCall",
    postToolUse: "onPostToolUse",
    postToolUseFailure: "onPostToolUseFailure",
    userPromptSubmitted: "onUserPromptSubmitted",
    userPromptTransformed: "onUserPromptTransformed",
    sessionStart: "onSessionStart",
    sessionEnd: "onSessionEnd",
    errorOccurred: "onErrorOccurred",
    agentStop: "onAgentStop",
};
const PROTOCOL = 3;
const LARGEST = 64 * 1024 * 1024;
const METHOD_NOT_FOUND = -32601;
const INTERNAL_ERROR = -32603;

class Connection {
    #next = 1;
    #pending = new Map();
    #buffer = Buffer.alloc(0);
    #handlers;

    constructor(handlers) {
        this.#handlers = handlers;
        process.stdin.on("data", (chunk) => this.#read(chunk));
        // Without the host there is nothing left to do.
        process.stdin.on("end", () => process.exit(0));
    }

    request(method, params) {
        const id = this.#next++;
        return new Promise((resolve, reject) => {
            this.#pending.set(id, { resolve, reject, method });
            this.#write({ jsonrpc: "2.0", id, method, params });
        });
    }

    #write(message) {
        const body = Buffer.from(JSON.stringify(message), "utf8");
        process.stdout.write(Buffer.concat([Buffer.from(`Content-Length: ${body.length}\r\n\r\n`), body]));
    }

    #read(chunk) {
        this.#buffer = Buffer.concat([this.#buffer, chunk]);
        for (;;) {
            const end = this.#buffer.indexOf("\r\n\r\n");
            if (end < 0) return;
            const length = Number(/Content-Length: *(\d+)/i.exec(this.#buffer.subarray(0, end).toString())?.[1]);
            if (!Number.isSafeInteger(length) || length > LARGEST) {
                console.error("the host sent a frame that cannot be read");
                process.exit(1);
            }
            const start = end + 4;
            if (this.#buffer.length < start + length) return;
            const body = this.#buffer.subarray(start, start + length).toString("utf8");
            this.#buffer = this.#buffer.subarray(start + length);
            const message = JSON.parse(body);
            // Code that waits for an answer goes on before the next message is taken, though both came in one piece.
            setImmediate(() => void this.#take(message));
        }
    }

    async #take(message) {
        if (message.method === undefined) {
            const waiting = this.#pending.get(message.id);
            this.#pending.delete(message.id);
            if (!waiting) return;
            if (!message.error) return waiting.resolve(message.result);
            const error = new Error(`Request ${waiting.method} failed with message: ${message.error.message}`);
            return waiting.reject(Object.assign(error, { code: message.error.code, data: message.error.data }));
        }
        const handler = this.#handlers[message.method];
        if (message.id === undefined) return handler?.(message.params);
        try {
            if (!handler) throw Object.assign(new Error(`Unhandled method ${message.method}`), { code: METHOD_NOT_FOUND });
            this.#write({ jsonrpc: "2.0", id: message.id, result: (await handler(message.params)) ?? null });
        } catch (error) {
            const code = typeof error?.code === "number" ? error.code : INTERNAL_ERROR;
            const data = typeof error?.code === "string" ? { code: error.code } : undefined;
            this.#write({ jsonrpc: "2.0", id: message.id, error: { code, message: text(error), data } });
        }
    }
}

function text(error) {
    return error instanceof Error ? error.message : String(error);
}

// Methods by their names: `rpc.mode.set({ mode })` calls `session.mode.set`.
function methods(connection, name, sessionId) {
    const call = (params) => connection.request(name, { sessionId, ...params });
    return new Proxy(call, {
        get: (_, member) => (typeof member === "string" && member !== "then" ? methods(connection, `${name}.${member}`, sessionId) : undefined),
        apply: (target, _, [params]) => target(params),
    });
}

export class CopilotSession {
    #connection;
    #config;
    #listeners = new Set();
    #running = new Map();

    constructor(sessionId, connection, config) {
        this.sessionId = sessionId;
        this.#connection = connection;
        this.#config = config;
        this.capabilities = {};
        this.rpc = new Proxy({}, { get: (_, member) => methods(connection, `session.${String(member)}`, sessionId) });
        if (config.onEvent) this.on(config.onEvent);
    }

    on(type, handler) {
        const listener = typeof type === "function" ? { handler: type } : { type, handler };
        this.#listeners.add(listener);
        return () => this.#listeners.delete(listener);
    }

    async send(message) {
        const params = typeof message === "string" ? { prompt: message } : message;
        return (await this.#call("send", params)).messageId;
    }

    // The last answer, once the session is idle.
    async sendAndWait(message, timeout = 60_000) {
        let last;
        let stop;
        const idle = new Promise((resolve, reject) => {
            const timer = setTimeout(() => reject(new Error(`Timeout after ${timeout}ms waiting for session.idle`)), timeout);
            const off = this.on((event) => {
                if (event.type === "assistant.message" && !event.agentId) last = event;
                if (event.type === "session.idle") resolve(last);
                if (event.type === "session.error") reject(new Error(event.data.message));
            });
            stop = () => (clearTimeout(timer), off());
        });
        idle.catch(() => {});
        try {
            await this.send(message);
            return await idle;
        } finally {
            stop();
        }
    }

    async getEvents() {
        return (await this.#call("getMessages")).events;
    }

    async getMessages() {
        return this.getEvents();
    }

    async abort() {
        await this.#call("abort");
    }

    async log(message, options) {
        await this.#call("log", { message, ...options });
    }

    async setModel(model, options) {
        await this.#call("model.switchTo", { modelId: model, ...options });
    }

    async disconnect() {
        await this.#call("destroy");
    }

    async [Symbol.asyncDispose]() {
        await this.disconnect();
    }

    #call(method, params) {
        return this.#connection.request(`session.${method}`, { sessionId: this.sessionId, ...params });
    }

    // An answer that comes too late is of no use to anyone.
    #answer(method, params) {
        return this.#call(method, params).catch((error) => console.error(text(error)));
    }

    _take(event) {
        const { type, data } = event;
        if (type === "external_tool.requested") void this.#runTool(data);
        if (type === "external_tool.completed") this.#running.get(data.requestId)?.abort();
        if (type === "command.execute") void this.#runCommand(data);
        if (type === "permission.requested" && !data.resolvedByHook) void this.#decide(data);
        if (type === "elicitation.requested") void this.#elicit(data);
        if (type === "capabilities.changed") this.capabilities = { ...this.capabilities, ...data };
        for (const listener of [...this.#listeners]) {
            if (listener.type !== undefined && listener.type !== type) continue;
            try {
                listener.handler(event);
            } catch (error) {
                console.error(error);
            }
        }
    }

    async #runTool({ requestId, toolName, toolCallId, arguments: args }) {
        const tool = this.#config.tools?.find((known) => known.name === toolName);
        if (!tool?.handler) return;
        const controller = new AbortController();
        this.#running.set(requestId, controller);
        const invocation = { sessionId: this.sessionId, toolCallId, toolName, arguments: args, signal: controller.signal };
        let answer;
        try {
            const result = await tool.handler(args, invocation);
            const plain = result === undefined || result === null ? "" : typeof result === "string" ? result : undefined;
            const structured = typeof result?.textResultForLlm === "string";
            if (structured) answer = { result: { resultType: "success", ...result } };
            else answer = { result: plain ?? JSON.stringify(result) };
        } catch (error) {
            answer = { error: text(error) };
        }
        this.#running.delete(requestId);
        if (!controller.signal.aborted) await this.#answer("tools.handlePendingToolCall", { requestId, ...answer });
    }

    async #runCommand({ requestId, commandName, command, args }) {
        const known = this.#config.commands?.find((each) => each.name === commandName);
        let error;
        try {
            if (!known) throw new Error(`Unknown command: ${commandName}`);
            await known.handler({ sessionId: this.sessionId, command, commandName, args });
        } catch (problem) {
            error = text(problem);
        }
        await this.#answer("commands.handlePendingCommand", { requestId, ...(error === undefined ? {} : { error }) });
    }

    async #decide({ requestId, permissionRequest }) {
        if (!this.#config.onPermissionRequest) return;
        let result;
        try {
            result = await this.#config.onPermissionRequest(permissionRequest, { sessionId: this.sessionId });
        } catch (error) {
            console.error(text(error));
            result = { kind: "user-not-available" };
        }
        if (result.kind === "no-result") return;
        await this.#answer("permissions.handlePendingPermissionRequest", { requestId, result });
    }

    async #elicit({ requestId, message, requestedSchema, mode, elicitationSource, url }) {
        if (!this.#config.onElicitationRequest) return;
        const asked = { sessionId: this.sessionId, message, requestedSchema, mode, elicitationSource, url };
        let result;
        try {
            result = await this.#config.onElicitationRequest(asked);
        } catch {
            result = { action: "cancel" };
        }
        await this.#answer("ui.handlePendingElicitation", { requestId, result });
    }

    async _hook({ hookType, input }) {
        const hook = this.#config.hooks?.[HOOKS[hookType]];
        if (!hook) return {};
        const { cwd, ...rest } = input;
        const timestamp = typeof input.timestamp === "number" ? new Date(input.timestamp) : input.timestamp;
        const given = { workingDirectory: cwd, ...rest, timestamp };
        const output = await hook(given, { sessionId: this.sessionId });
        return output === undefined ? {} : { output };
    }

    async _question({ question, choices, allowFreeform }) {
        if (!this.#config.onUserInputRequest) throw new Error("the extension answers no questions");
        const asked = { question, choices, allowFreeform };
        return this.#config.onUserInputRequest(asked, { sessionId: this.sessionId });
    }

    _canvas(canvasId) {
        const canvas = this.#config.canvases?.find((known) => known.declaration.id === canvasId);
        if (!canvas) throw new CanvasError("canvas_not_found", `the extension has no canvas ${canvasId}`);
        return canvas;
    }
}

export class CanvasError extends Error {
    constructor(code, message) {
        super(message);
        this.name = "CanvasError";
        this.code = code;
    }

    static noHandler() {
        return new CanvasError("canvas_action_no_handler", "No handler implemented for this canvas action");
    }
}

export class Canvas {
    constructor({ actions, open, onClose, ...declaration }) {
        this.actionHandlers = new Map(actions?.map((action) => [action.name, action.handler]));
        this.declaration = { ...declaration, actions: actions?.map(({ handler, ...action }) => action) };
        this.open = open;
        this.onClose = onClose;
    }
}

export const createCanvas = (options) => new Canvas(options);
export const defineTool = (name, tool) => ({ name, ...tool });
export const approveAll = () => ({ kind: "approve-once" });

const schema = (parameters) => (typeof parameters?.toJSONSchema === "function" ? parameters.toJSONSchema() : parameters);

// Joins the session that started this process.
export async function joinSession(config = {}) {
    const sessionId = process.env.SESSION_ID;
    if (!sessionId) throw new Error("joinSession() is for extensions, which an agent starts; SESSION_ID is not set.");
    let session;
    const connection = new Connection({
        "session.event": ({ event }) => session._take(event),
        "hooks.invoke": (params) => session._hook(params),
        "userInput.request": (params) => session._question(params),
        "canvas.open": (params) => session._canvas(params.canvasId).open(params),
        "canvas.close": (params) => session._canvas(params.canvasId).onClose?.(params),
        "canvas.action.invoke": (params) => {
            const handler = session._canvas(params.canvasId).actionHandlers.get(params.actionName);
            if (!handler) throw CanvasError.noHandler();
            return handler(params);
        },
    });
    session = new CopilotSession(sessionId, connection, config);
    const { protocolVersion } = await connection.request("connect", {});
    if (protocolVersion !== PROTOCOL) console.error(`the host speaks version ${protocolVersion} of the protocol`);
    const wanted = config.requestedEnvironmentVariables?.length ? config.requestedEnvironmentVariables : undefined;
    const joined = await connection.request("session.resume", {
        sessionId,
        tools: config.tools?.map(({ handler, parameters, ...tool }) => ({ ...tool, parameters: schema(parameters) })),
        commands: config.commands?.map(({ name, description }) => ({ name, description: description ?? "" })),
        canvases: config.canvases?.map((canvas) => canvas.declaration),
        hooks: Object.values(config.hooks ?? {}).some(Boolean),
        requestPermission: !!config.onPermissionRequest,
        requestUserInput: !!config.onUserInputRequest,
        requestElicitation: !!config.onElicitationRequest,
        disableResume: config.suppressResumeEvent ?? true,
        requestedEnvironmentVariables: wanted,
    });
    for (const [name, value] of Object.entries(joined.grantedEnvironmentVariables ?? {})) {
        if (wanted?.includes(name)) process.env[name] = value;
    }
    session.workspacePath = joined.workspacePath;
    session.capabilities = joined.capabilities ?? {};
    return session;
}

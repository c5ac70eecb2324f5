// A conversation: answers, pieces, tools of the client, permissions, hooks, questions, what the model is told.

import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, test } from "node:test";
import { approveAll, defineTool } from "@github/copilot-sdk";
import { answer, asked, call, client, closeAll, data, directory, modelUrl, run } from "./stage.mjs";

afterEach(closeAll);

test("a session answers, and its history says so", async () => {
    const session = await client().createSession({ onPermissionRequest: approveAll });
    assert.equal((await session.sendAndWait("SAY:hello there")).data.content, "hello there");
    const history = await session.getEvents();
    assert.equal(history[0].type, "session.start");
    assert.equal(answer(history), "hello there");
});

test("pieces come when they are wanted and make up the answer", async () => {
    const session = await client().createSession({ streaming: true, onPermissionRequest: approveAll });
    const events = await run(session, "STREAM:20");
    const pieces = data(events, "assistant.message_delta").map((piece) => piece.deltaContent);
    assert.ok(pieces.length > 1, `${pieces.length} pieces`);
    assert.equal(pieces.join(""), answer(events));
});

test("without streaming there are no pieces", async () => {
    const session = await client().createSession({ onPermissionRequest: approveAll });
    const events = await run(session, "STREAM:20");
    assert.equal(data(events, "assistant.message_delta").length, 0);
    assert.ok(answer(events).includes("tok"));
});

/** Lets the model call `lookup` and says how the call ended and what the model read. */
async function runTool(handler) {
    const mark = `mark-${Math.random()}`;
    const lookup = defineTool("lookup", {
        description: "Looks a key up.",
        parameters: { type: "object", properties: { key: { type: "string" } }, required: ["key"] },
        skipPermission: true,
        handler,
    });
    const session = await client().createSession({ tools: [lookup], onPermissionRequest: approveAll });
    const events = await run(session, `${mark}\n${call("lookup", { key: "a" })}\nSAY:done`);
    const [ended] = data(events, "tool.execution_complete");
    const told = asked(mark).at(-1).body.messages.filter((message) => message.role === "tool").at(-1);
    return { ended, told: JSON.stringify(told), said: answer(events) };
}

test("a tool of the client gets its arguments and its result reaches the model", async () => {
    const { ended, told, said } = await runTool(({ key }, invocation) => `${key} by ${invocation.toolName}`);
    assert.deepEqual([ended.success, said], [true, "done"]);
    assert.match(told, /a by lookup/);
});

test("a tool may give an object, which the model reads as JSON", async () => {
    const { told } = await runTool(() => ({ price: 12 }));
    assert.match(told, /price/);
});

test("a tool that throws fails and the model goes on", async () => {
    const { ended, told, said } = await runTool(() => {
        throw new Error("the shelf is empty");
    });
    assert.deepEqual([ended.success, said], [false, "done"]);
    assert.match(told, /lookup/);
});

for (const resultType of ["failure", "denied", "timeout"]) {
    test(`a tool that ends with ${resultType} has not succeeded`, async () => {
        const result = { textResultForLlm: `it was ${resultType}`, resultType };
        const { ended, told, said } = await runTool(() => result);
        assert.deepEqual([ended.success, said], [false, "done"]);
        assert.match(told, new RegExp(resultType));
    });
}

test("a tool that the user rejected ends the run", async () => {
    const result = { textResultForLlm: "the user said no", resultType: "rejected" };
    const { ended, said } = await runTool(() => result);
    assert.deepEqual([ended.success, said], [false, ""]);
});

/** Lets the model create a file and says what was asked and whether the file is there. */
async function runPermission(decision) {
    const path = join(directory(), "new.txt");
    const requests = [];
    const session = await client().createSession({
        onPermissionRequest: (request) => {
            requests.push(request);
            return decision;
        },
    });
    const events = await run(session, `${call("create", { path, file_text: "text\n" })}\nSAY:done`);
    return { path, request: requests.find((one) => one.kind === "write"), events, written: existsSync(path) };
}

test("a permission names the file and is granted", async () => {
    const { path, request, written, events } = await runPermission({ kind: "approve-once" });
    assert.equal(request.fileName, path);
    assert.ok(request.toolCallId && request.diff.includes("text"));
    assert.equal(written, true);
    assert.equal(answer(events), "done");
});

test("a permission is refused with feedback and the model goes on", async () => {
    const { written, events } = await runPermission({ kind: "reject", feedback: "not there" });
    assert.equal(written, false);
    assert.match(data(events, "tool.execution_complete")[0].error.message, /not there/);
    assert.equal(answer(events), "done");
});

test("without a handler nothing is permitted", async () => {
    const path = join(directory(), "new.txt");
    const session = await client().createSession({});
    const events = await run(session, `${call("create", { path, file_text: "x" })}\nSAY:done`);
    assert.equal(data(events, "tool.execution_complete")[0].success, false);
    assert.equal(existsSync(path), false);
});

test("hooks see the prompt, the tool and its result, and may change them", async () => {
    const seen = [];
    const session = await client().createSession({
        onPermissionRequest: approveAll,
        hooks: {
            onSessionStart: ({ source }) => void seen.push(`start ${source}`),
            onUserPromptSubmitted: () => (seen.push("prompt"), { additionalContext: "the hook says hello" }),
            onPreToolUse: ({ toolName }) => (seen.push(`pre ${toolName}`), { permissionDecision: "allow" }),
            onPostToolUse: ({ toolResult }) => (
                seen.push("post"), { modifiedResult: { ...toolResult, textResultForLlm: "changed by the hook" } }
            ),
            onAgentStop: () => void seen.push("stop"),
        },
    });
    const mark = `mark-${Math.random()}`;
    await run(session, `${mark}\n${call("bash", { command: "echo plain", description: "d" })}\nSAY:done`);
    assert.deepEqual(seen.filter((one) => !one.startsWith("start")), ["prompt", "pre bash", "post", "stop"]);
    const told = JSON.stringify(asked(mark).at(-1).body.messages);
    assert.match(told, /changed by the hook/);
    assert.match(told, /the hook says hello/);
});

test("a hook that denies keeps the tool from running", async () => {
    const path = join(directory(), "made");
    const session = await client().createSession({
        onPermissionRequest: approveAll,
        hooks: { onPreToolUse: () => ({ permissionDecision: "deny", permissionDecisionReason: "not today" }) },
    });
    const events = await run(session, `${call("bash", { command: `touch ${path}`, description: "d" })}\nSAY:done`);
    assert.equal(data(events, "tool.execution_complete")[0].success, false);
    assert.equal(existsSync(path), false);
});

test("a question reaches the client and its answer the model", async () => {
    const questions = [];
    const session = await client().createSession({
        onPermissionRequest: approveAll,
        onUserInputRequest: (request) => {
            questions.push(request);
            return { answer: request.choices[1], wasFreeform: false };
        },
    });
    const mark = `mark-${Math.random()}`;
    await run(session, `${mark}\n${call("ask_user", { question: "which?", choices: ["left", "right"] })}\nSAY:done`);
    assert.equal(questions[0].question, "which?");
    assert.match(JSON.stringify(asked(mark).at(-1).body.messages), /User selected: right/);
});

/** The system message that the model was given. */
async function systemMessage(systemMessage) {
    const session = await client().createSession({ systemMessage, onPermissionRequest: approveAll });
    const mark = `mark-${Math.random()}`;
    await run(session, `${mark}\nSAY:x`);
    return JSON.stringify(asked(mark).at(-1).body.messages[0].content);
}

test("the system message can be replaced, extended and changed by section", async () => {
    assert.equal(await systemMessage({ mode: "replace", content: "You are a teapot." }), '"You are a teapot."');
    const longer = await systemMessage({ mode: "append", content: "Speak softly." });
    assert.ok(longer.includes("Speak softly.") && longer.length > 500, longer);
    const sections = {
        tone: { action: "replace", content: "Answer in verse." },
        safety: { action: (text) => `${text} And mind the gap.` },
    };
    const changed = await systemMessage({ mode: "customize", sections });
    assert.ok(changed.includes("Answer in verse.") && changed.includes("And mind the gap."), changed);
});

test("a provider of the client is used with its key, model and headers", async () => {
    const session = await client({ env: { ...process.env, COPILOT_PROVIDER_BASE_URL: undefined } }).createSession({
        onPermissionRequest: approveAll,
        model: "their-model",
        provider: {
            type: "openai",
            baseUrl: `${modelUrl}/v1`,
            apiKey: "their-key",
            wireApi: "responses",
            headers: { "x-team": "blue" },
        },
    });
    const mark = `mark-${Math.random()}`;
    assert.equal(answer(await run(session, `${mark}\nSAY:from afar`)), "from afar");
    const request = asked(mark).at(-1);
    assert.match(request.path, /\/responses$/);
    assert.equal(request.headers["x-team"], "blue");
    assert.equal(request.body.model, "their-model");
});

test("attachments reach the model", async () => {
    const path = join(directory(), "notes.txt");
    writeFileSync(path, "attached words");
    const session = await client().createSession({ onPermissionRequest: approveAll });
    const mark = `mark-${Math.random()}`;
    const attachments = [
        { type: "file", path, displayName: "notes" },
        { type: "selection", filePath: path, displayName: "part", text: "selected words",
          selection: { start: { line: 0, character: 0 }, end: { line: 0, character: 8 } } },
    ];
    const events = await run(session, { prompt: `${mark}\nSAY:read`, attachments });
    assert.equal(data(events, "user.message")[0].attachments.length, 2);
    const told = JSON.stringify(asked(mark).at(-1).body.messages);
    assert.ok(told.includes("notes.txt") && told.includes("selected words"), told);
});

test("only the tools that are wanted are offered", async () => {
    const session = await client().createSession({ availableTools: ["view"], onPermissionRequest: approveAll });
    const mark = `mark-${Math.random()}`;
    await run(session, `${mark}\nSAY:x`);
    assert.deepEqual(asked(mark).at(-1).body.tools.map((tool) => tool.function.name), ["view"]);
});

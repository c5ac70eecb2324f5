// The life of sessions and servers: ends, restarts, many sessions, several clients, lists, and what goes wrong.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, test } from "node:test";
import { approveAll, defineTool, RuntimeConnection } from "@github/copilot-sdk";
import { answer, asked, call, client, closeAll, data, directory, next, program, run } from "./stage.mjs";

afterEach(closeAll);

test("an abort ends the run and the session goes on", async () => {
    const session = await client().createSession({ onPermissionRequest: approveAll });
    const begun = next(session, "assistant.turn_start");
    const idle = next(session, "session.idle");
    await session.send("DELAY:3600000\nSAY:never");
    await begun;
    await session.abort();
    assert.equal((await idle).data.aborted, true);
    assert.equal((await session.sendAndWait("SAY:still here")).data.content, "still here");
});

test("an abort tells the tool of the client that nobody waits for it", async () => {
    let called;
    const running = new Promise((resolve) => (called = resolve));
    const slow = defineTool("slow", {
        parameters: { type: "object" },
        skipPermission: true,
        handler: () => (called(), new Promise(() => {})),
    });
    const session = await client().createSession({ tools: [slow], onPermissionRequest: approveAll });
    const idle = next(session, "session.idle");
    await session.send(`${call("slow", {})}\nSAY:never`);
    await running;
    await session.abort();
    await idle;
    assert.equal((await session.sendAndWait("SAY:still here")).data.content, "still here");
});

test("a session outlives a server that is killed in the middle of a call", async () => {
    const pidFile = join(directory(), "pid");
    const first = client({ env: { ...process.env, HANGAR_E2E_PID_FILE: pidFile } });
    let called;
    const running = new Promise((resolve) => (called = resolve));
    const slow = defineTool("slow", {
        parameters: { type: "object" },
        skipPermission: true,
        handler: () => (called(), new Promise(() => {})),
    });
    const before = await first.createSession({ tools: [slow], onPermissionRequest: approveAll });
    const mark = `mark-${randomUUID()}`;
    await run(before, `${mark}\nSAY:noted`);
    await before.send(`${call("slow", {})}\nSAY:never`);
    await running;
    process.kill(Number(readFileSync(pidFile, "utf8")), "SIGKILL");

    const after = await client().resumeSession(before.sessionId, { onPermissionRequest: approveAll });
    const history = await after.getEvents();
    assert.ok(data(history, "user.message").some((message) => message.content.includes(mark)));
    assert.equal(answer(await run(after, "SAY:back again")), "back again");
    assert.match(JSON.stringify(asked(mark).at(-1).body.messages), /interrupted/);
});

test("many sessions work side by side and none is lost", async () => {
    const one = client();
    const ids = Array.from({ length: 30 }, () => randomUUID());
    const answers = await Promise.all(ids.map(async (sessionId, n) => {
        const number = defineTool("number", { parameters: { type: "object" }, skipPermission: true, handler: () => `${n}` });
        const session = await one.createSession({ sessionId, tools: [number], onPermissionRequest: approveAll });
        const events = await run(session, `${call("number", {})}\nSAY:answer ${n}`);
        assert.equal(data(events, "tool.execution_complete")[0].result.content, `${n}`);
        return answer(events);
    }));
    assert.deepEqual(answers, ids.map((_, n) => `answer ${n}`));
    const listed = new Set((await one.listSessions()).map((session) => session.sessionId));
    assert.ok(ids.every((id) => listed.has(id)));
});

test("two clients of one server share a session", async () => {
    const token = randomUUID();
    const owner = client({ connection: RuntimeConnection.forTcp({ path: program, connectionToken: token }) });
    await owner.start();
    const guest = client({
        connection: RuntimeConnection.forUri(`127.0.0.1:${owner.runtimePort}`, { connectionToken: token }),
    });
    const tool = (name) => defineTool(name, { parameters: { type: "object" }, skipPermission: true, handler: () => `by ${name}` });
    const theirs = await owner.createSession({ tools: [tool("hammer")], onPermissionRequest: approveAll });
    const ours = await guest.resumeSession(theirs.sessionId, { tools: [tool("chisel")], onPermissionRequest: approveAll });
    const watched = [];
    theirs.on((event) => watched.push(event));
    const events = await run(ours, `${call("hammer", {})}\n${call("chisel", {})}\nSAY:done`);
    const results = data(events, "tool.execution_complete").map((ended) => ended.result.content);
    assert.deepEqual(results, ["by hammer", "by chisel"]);
    const durable = (all) => all.filter((event) => !event.ephemeral).map((event) => event.id);
    const missed = durable(events).filter((id) => !watched.some((event) => event.id === id));
    assert.deepEqual(missed, []);
});

test("a wrong connection token is refused", async () => {
    const owner = client({ connection: RuntimeConnection.forTcp({ path: program, connectionToken: "right" }) });
    await owner.start();
    const url = `127.0.0.1:${owner.runtimePort}`;
    const stranger = client({ connection: RuntimeConnection.forUri(url, { connectionToken: "wrong" }) });
    await assert.rejects(stranger.start(), /AUTHENTICATION_FAILED/);
    await owner.createSession({ onPermissionRequest: approveAll });
});

test("a server that was started by hand is joined with the token that it prints", async () => {
    const { COPILOT_CONNECTION_TOKEN: _, ...env } = process.env;
    const server = spawn(program, ["--headless", "--port", "0"], { env, stdio: ["ignore", "pipe", "inherit"] });
    try {
        let said = "";
        for await (const piece of server.stdout) {
            said += piece;
            if (said.split("\n").length > 2) break;
        }
        const [, port] = said.match(/listening on port (\d+)/i);
        const [, token] = said.match(/Connection token: (\S+)/);
        await assert.rejects(client({ connection: RuntimeConnection.forUri(`127.0.0.1:${port}`) }).start(), /AUTHENTICATION_FAILED/);
        const guest = client({ connection: RuntimeConnection.forUri(`127.0.0.1:${port}`, { connectionToken: token }) });
        const session = await guest.createSession({ onPermissionRequest: approveAll });
        assert.equal((await session.sendAndWait("SAY:x")).data.content, "x");
    } finally {
        server.kill();
    }
});

test("sessions are listed, described, found last and deleted", async () => {
    const one = client();
    const created = [];
    one.onLifecycle((event) => created.push(`${event.type} ${event.sessionId}`));
    const session = await one.createSession({ onPermissionRequest: approveAll });
    const id = session.sessionId;
    await run(session, "SAY:x");
    assert.ok(created.includes(`session.created ${id}`), created.join());
    const metadata = await one.getSessionMetadata(id);
    assert.equal(metadata.context.workingDirectory, process.cwd());
    assert.ok(metadata.startTime instanceof Date && metadata.modifiedTime >= metadata.startTime);
    assert.equal(typeof (await one.getLastSessionId()), "string");
    await session.disconnect();
    await one.deleteSession(id);
    assert.equal(await one.getSessionMetadata(id), undefined);
    await assert.rejects(one.resumeSession(id, { onPermissionRequest: approveAll }), /not found/i);
});

test("the models of the server are listed with what they can do", async () => {
    const one = client();
    await one.start();
    const models = await one.listModels();
    assert.ok(models.length > 0);
    for (const model of models) {
        assert.ok(model.id && model.name, JSON.stringify(model));
        assert.equal(typeof model.capabilities.limits.max_context_window_tokens, "number");
    }
});

test("status says which protocol is spoken and that nobody is logged in", async () => {
    const one = client();
    await one.start();
    assert.equal((await one.getStatus()).protocolVersion, 3);
    assert.equal((await one.getAuthStatus()).isAuthenticated, false);
});

test("a session that is not there is named", async () => {
    const id = randomUUID();
    await assert.rejects(client().resumeSession(id, { onPermissionRequest: approveAll }), new RegExp(id));
});

test("a model that refuses the key ends the run with an error and leaves the session usable", async () => {
    const session = await client().createSession({ onPermissionRequest: approveAll });
    const events = await run(session, "FAIL:401");
    assert.equal(data(events, "session.error")[0].errorType, "authentication");
    assert.equal((await session.sendAndWait("SAY:better")).data.content, "better");
});

test("a program that is not there is a clear error", async () => {
    const lost = client({ connection: RuntimeConnection.forStdio({ path: "/nowhere/hangar" }) });
    await assert.rejects(lost.start());
});

test("a message that comes while the session works is answered after it", async () => {
    const session = await client().createSession({ onPermissionRequest: approveAll });
    const answers = [];
    session.on((event) => { if (event.type === "assistant.message") answers.push(event.data.content); });
    const idle = next(session, "session.idle");
    await session.send("DELAY:200\nSAY:first");
    await session.send({ prompt: "SAY:second", mode: "enqueue" });
    await idle;
    assert.deepEqual(answers, ["first", "second"]);
});

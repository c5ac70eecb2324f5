// What every test of the Node SDK stands on: a client on the program under test, and what the model was asked.
//
// The tests are started by `crates/cli/tests/it/clients.rs`, which names the program, the scripted model and the file
// that the model writes its requests to.

import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CopilotClient, RuntimeConnection } from "@github/copilot-sdk";

function required(name) {
    const value = process.env[name];
    if (!value) throw new Error(`${name} is not set: these tests are started by \`cargo xtask test\``);
    return value;
}

export const program = required("HANGAR_E2E_PROGRAM");
export const modelUrl = required("HANGAR_E2E_MODEL");
const requestLog = required("HANGAR_E2E_REQUESTS");

// Far above what anything needs on a loaded machine; reaching it is a failure, never a measurement.
export const PATIENCE = 60_000;

const open = new Set();

/** A client on a server of its own, stopped by `closeAll`. */
export function client(options = {}) {
    const made = new CopilotClient({
        connection: RuntimeConnection.forStdio({ path: program }),
        workingDirectory: process.cwd(),
        logLevel: "error",
        ...options,
    });
    open.add(made);
    return made;
}

export async function closeAll() {
    const clients = [...open];
    open.clear();
    await Promise.all(clients.map((one) => one.forceStop().catch(() => {})));
}

/** A directory that no other test knows. */
export function directory() {
    return mkdtempSync(join(tmpdir(), "sdk-node-"));
}

/** The requests that the model has answered and whose text holds `mark`. */
export function asked(mark) {
    const lines = readFileSync(requestLog, "utf8").split("\n").filter((line) => line.includes(mark));
    return lines.map((line) => JSON.parse(line));
}

/** The next event of a type, from now on. */
export function next(session, type) {
    return new Promise((resolve, reject) => {
        const late = setTimeout(() => reject(new Error(`no ${type}`)), PATIENCE);
        const stop = session.on((event) => {
            if (event.type !== type) return;
            clearTimeout(late);
            stop();
            resolve(event);
        });
    });
}

/** Sends a prompt and gives back all events until the session is idle again. */
export async function run(session, message) {
    const events = [];
    const stop = session.on((event) => events.push(event));
    const idle = next(session, "session.idle");
    await session.send(message);
    await idle;
    stop();
    return events;
}

/** The data of all events of a type. */
export function data(events, type) {
    return events.filter((event) => event.type === type).map((event) => event.data);
}

/** The text of the last answer. */
export function answer(events) {
    return data(events, "assistant.message").at(-1)?.content;
}

export const call = (tool, args) => `TOOL:${tool}:${JSON.stringify(args)}`;

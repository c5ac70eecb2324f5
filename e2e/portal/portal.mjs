// A portal of its own for a test: a home, a project and a server on the scripted model.

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const PROGRAM = process.env.HANGAR_E2E_PROGRAM;

export class Portal {
  constructor() {
    if (!PROGRAM) throw new Error("HANGAR_E2E_PROGRAM must name the program; run these tests by `cargo xtask test`");
    this.root = mkdtempSync(join(tmpdir(), "hangar-portal-"));
    this.home = join(this.root, "home");
    this.workspace = join(this.root, "project");
    /** Flags of `hangar up`, and variables around it. */
    this.args = [];
    this.env = {};
    this.port = 0;
    mkdirSync(this.home);
    mkdirSync(this.workspace);
  }

  file(name, text) {
    const path = join(this.root, name);
    writeFileSync(path, text);
    return path;
  }

  get #surroundings() {
    const { PATH, HOME, LANG, TMPDIR } = process.env;
    const env = { PATH, HOME: HOME ?? this.root, LANG, TMPDIR, HANGAR_HOME: this.home, COPILOT_MODEL: "scripted", ...this.env };
    return { cwd: this.workspace, env };
  }

  /** Starts the server; after the first time on the same port, as somebody would who starts it again. */
  async start() {
    const args = ["up", "--port", String(this.port), "-C", this.workspace, ...this.args];
    this.server = spawn(PROGRAM, args, { ...this.#surroundings, stdio: ["ignore", "pipe", "pipe"] });
    let said = "";
    const address = await new Promise((resolve, reject) => {
      const look = (line) => {
        said += `${line}\n`;
        const found = /http:\/\/[\w.]+:\d+/.exec(line);
        if (found) resolve(found[0]);
      };
      createInterface({ input: this.server.stdout }).on("line", look);
      createInterface({ input: this.server.stderr }).on("line", look);
      this.server.once("exit", (code) => reject(new Error(`the server ended with ${code}: ${said}`)));
    });
    this.url = address;
    this.port = Number(new URL(address).port);
    return this;
  }

  async stop(signal = "SIGTERM") {
    if (this.server === undefined || this.server.exitCode !== null || this.server.signalCode !== null) return;
    const ended = once(this.server, "exit");
    this.server.kill(signal);
    await ended;
  }

  async close() {
    await this.stop("SIGKILL");
    rmSync(this.root, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  }

  async api(method, path, body) {
    const request = { method, headers: {} };
    if (body !== undefined) {
      request.body = JSON.stringify(body);
      request.headers["content-type"] = "application/json";
    }
    const response = await fetch(`${this.url}/api/v1${path}`, request);
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text === "" ? null : JSON.parse(text);
  }

  /** Runs the program beside the server, as somebody would in a terminal. */
  command(...args) {
    const ended = spawnSync(PROGRAM, args, { ...this.#surroundings, encoding: "utf8" });
    if (ended.status !== 0) throw new Error(`hangar ${args.join(" ")} ended with ${ended.status}: ${ended.stderr}`);
    return ended.stdout;
  }

  /** A session on the scripted model, which does as the prompt says. */
  session(prompt, more = {}) {
    return this.api("POST", "/sessions", { workspace: this.workspace, model: "scripted", prompt, ...more });
  }

  /** A session whose log is written here, of any length. */
  write(id, events, name) {
    const folder = join(this.home, "session-state", id);
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "events.jsonl"), `${events.map((event) => JSON.stringify(event)).join("\n")}\n`);
    writeFileSync(join(folder, "workspace.yaml"), `id: ${id}\ncwd: ${this.workspace}\nname: ${name}\n`);
  }
}

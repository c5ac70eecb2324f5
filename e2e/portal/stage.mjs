// What every test of the pages needs: a portal of its own on the scripted model, and a browser that tells what went wrong.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

/** Generous: the machine may be busy with other tests. Nothing waits longer than it has to. */
export const PATIENCE = 60_000;

const PROGRAM = process.env.HANGAR_E2E_PROGRAM;
const CHROMIUM = process.env.HANGAR_E2E_CHROMIUM ?? "/usr/bin/chromium";

export class Portal {
  constructor(args = []) {
    if (!PROGRAM) throw new Error("HANGAR_E2E_PROGRAM must name the program; run these tests by `cargo xtask test`");
    this.root = mkdtempSync(join(tmpdir(), "hangar-portal-"));
    this.home = join(this.root, "home");
    this.workspace = join(this.root, "project");
    this.args = args;
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

  /** Starts the server; after the first time on the same port, as somebody would who starts it again. */
  async start() {
    const { PATH, HOME, LANG, TMPDIR } = process.env;
    const env = { PATH, HOME: HOME ?? this.root, LANG, TMPDIR, HANGAR_HOME: this.home, COPILOT_MODEL: "scripted", ...this.env };
    const args = ["up", "--port", String(this.port), "-C", this.workspace, ...this.args];
    this.server = spawn(PROGRAM, args, { cwd: this.workspace, env, stdio: ["ignore", "pipe", "pipe"] });
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

export async function openBrowser() {
  return chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
}

/** A page whose mistakes are kept: `page.mistakes` must be empty in the end. */
export async function openPage(browser, portal, options = {}) {
  const context = await browser.newContext({ baseURL: portal.url, viewport: { width: 1280, height: 800 }, ...options });
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  page.mistakes = [];
  page.on("pageerror", (error) => page.mistakes.push(`error: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error") page.mistakes.push(`console: ${message.text()}`);
  });
  return page;
}

/** Waits until a text is on the page. */
export async function see(page, text) {
  await page.getByText(text, { exact: false }).first().waitFor();
}

/** Waits until something is as it should be, whatever it takes. */
export async function until(what, ask) {
  const end = Date.now() + PATIENCE;
  for (;;) {
    const found = await ask();
    if (found) return found;
    if (Date.now() > end) throw new Error(`it never happened: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

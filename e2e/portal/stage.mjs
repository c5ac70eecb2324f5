// What a file of tests plays on: one browser, a portal, and pages whose complaints fail the test that opened them.

import assert from "node:assert/strict";
import { after, afterEach, before } from "node:test";
import { chromium } from "playwright-core";
import { Portal } from "./portal.mjs";

/** Generous: the machine may be busy with other tests. Nothing waits longer than it has to. */
export const PATIENCE = 60_000;

const CHROMIUM = process.env.HANGAR_E2E_CHROMIUM ?? "/usr/bin/chromium";

/** The browser notes refusals and lost connections by itself. Tests that are about them forgive it that. */
export const REFUSALS = /status of 4\d\d/;
export const OUTAGES = /ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY|ERR_FAILED|ERR_INTERNET_DISCONNECTED|ERR_NETWORK/;

class Stage {
  /** The portal of all tests of the file. */
  portal;
  browser;
  #pages = [];
  #portals = [];

  /**
   * A page in a browser profile of its own. It may not complain of anything, on its console or by an error, but of what
   * `forgives` matches.
   */
  async page({ portal = this.portal, forgives = null, ...options } = {}) {
    const context = await this.browser.newContext({ baseURL: portal.url, viewport: { width: 1280, height: 800 }, ...options });
    context.setDefaultTimeout(PATIENCE);
    const page = await context.newPage();
    const complaints = [];
    page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
    page.on("console", (message) => {
      if (message.type() === "error") complaints.push(`console: ${message.text()} ${message.location().url}`);
    });
    this.#pages.push({ context, complaints, forgives });
    return page;
  }

  /** A portal for one test alone. */
  async another(prepare = () => {}) {
    const portal = new Portal();
    this.#portals.push(portal);
    await prepare(portal);
    return portal.start();
  }

  async clear() {
    const [pages, portals] = [this.#pages, this.#portals];
    [this.#pages, this.#portals] = [[], []];
    // Pages first: what they say of a server that is ended under them is no complaint.
    await Promise.all(pages.map(({ context }) => context.close()));
    await Promise.all(portals.map((portal) => portal.close()));
    const complaints = pages.flatMap(({ complaints, forgives }) => complaints.filter((complaint) => forgives === null || !forgives.test(complaint)));
    assert.deepEqual(complaints, []);
  }
}

export function openBrowser() {
  return chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
}

/** `prepare` is given the portal before it starts; `null` for tests that each have one of their own. */
export function setStage(prepare = () => {}) {
  const stage = new Stage();
  before(async () => {
    stage.browser = await openBrowser();
    if (prepare === null) return;
    stage.portal = new Portal();
    await prepare(stage.portal);
    await stage.portal.start();
  });
  afterEach(() => stage.clear());
  after(async () => {
    await stage.browser?.close();
    await stage.portal?.close();
  });
  return stage;
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

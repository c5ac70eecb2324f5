// Canvases of a session's extensions, and the notes that agents keep: both on pages of the portal.

import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { findings } from "./accessible.mjs";
import { see, setStage, until } from "./stage.mjs";

const BOARD = `
import { createServer } from "node:http";
import { createCanvas, joinSession } from "@github/copilot-sdk/extension";
const page = createServer((request, response) => {
    response.setHeader("content-type", "text/html; charset=utf-8");
    response.end("<title>b</title><h1>Three cards</h1>");
});
await new Promise((listening) => page.listen(0, "127.0.0.1", listening));
const url = "http://127.0.0.1:" + page.address().port + "/";
const instance = { canvasId: "board", instanceId: "one" };
const tool = (name, handler) => ({ name, description: name, parameters: { type: "object", properties: {} }, handler });
const session = await joinSession({
    canvases: [createCanvas({ id: "board", displayName: "Board", description: "Cards", open: async () => ({ url, title: "The board" }) })],
    tools: [
        tool("show_board", async () => (await session.rpc.canvas.open(instance)) && "shown"),
        tool("hide_board", async () => ((await session.rpc.canvas.close({ instanceId: "one" })), "hidden")),
    ],
});
`;

const stage = setStage((portal) => {
  portal.env = { HANGAR_FEATURES: "extensions,memory" };
  const folder = join(portal.home, "extensions", "board");
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "extension.mjs"), BOARD);
});

test("an open canvas of an extension is shown beside the transcript until it is closed", async () => {
  const session = await stage.portal.session("TOOL:show_board:{}\nSAY:look", { policy: "allow-all" });
  const page = await stage.page();
  await page.goto(`/sessions/${session.id}`);
  const canvas = page.locator(".canvas", { hasText: "The board" });
  await canvas.waitFor();
  await page.frameLocator(".canvas iframe").getByText("Three cards").waitFor();
  assert.equal(await page.locator(".canvas iframe").getAttribute("sandbox"), "allow-scripts allow-forms");
  assert.deepEqual(await findings(page), []);
  // A reload shows it again, although its address is in no log.
  await page.reload();
  await page.frameLocator(".canvas iframe").getByText("Three cards").waitFor();
  await stage.portal.api("POST", `/sessions/${session.id}/messages`, { text: "TOOL:hide_board:{}\nSAY:gone" });
  await canvas.waitFor({ state: "detached" });
});

test("notes of agents are read, changed and deleted", async () => {
  const note = { subject: "tests", fact: "make check runs them", citations: "Makefile:3" };
  const session = await stage.portal.session(`TOOL:store_memory:${JSON.stringify(note)}\nSAY:kept`, { policy: "allow-all" });
  await until("it is idle", async () => (await stage.portal.api("GET", `/sessions/${session.id}`)).state === "idle");
  const page = await stage.page();
  await page.goto("/memory");
  await see(page, "make check runs them");
  await see(page, "1 note that agents keep");
  assert.deepEqual(await findings(page), []);
  await page.getByRole("button", { name: "Edit the note about tests" }).click();
  await page.getByLabel("Note about tests", { exact: true }).fill("make test runs them");
  await page.getByRole("button", { name: "Save" }).click();
  await see(page, "make test runs them");
  assert.match(stage.portal.command("memory", "list"), /make test runs them/);
  await page.getByRole("button", { name: "Delete the note about tests" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await see(page, "No notes are kept");
  assert.deepEqual((await stage.portal.api("GET", "/memory")).repositories, []);
});

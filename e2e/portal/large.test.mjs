// A session of 50,000 events opens like a short one, and all of it can be reached.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setStage, until } from "./stage.mjs";

const EVENTS = 50_000;
const ID = "3f0c9a52-0000-4000-8000-000000050000";

function log() {
  const events = [];
  const push = (type, data) => {
    const at = events.length;
    const id = `00000000-0000-4000-8000-${String(at).padStart(12, "0")}`;
    const parentId = at === 0 ? null : events[at - 1].id;
    events.push({ type, data, id, timestamp: new Date(1_790_000_000_000 + at * 1_000).toISOString(), parentId });
  };
  push("session.start", { sessionId: ID, version: 1, producer: "hangar", copilotVersion: "1.0.0", startTime: "2026-09-21T00:00:00.000Z", selectedModel: "scripted" });
  for (let turn = 0; events.length < EVENTS; turn += 1) {
    push("user.message", { content: `Prompt number ${turn}` });
    push("assistant.turn_start", { turnId: String(turn) });
    push("assistant.message", {
      messageId: `m${turn}`,
      content: `Answer number ${turn}\n\n${"Some words of an answer, of varying length. ".repeat(turn % 23)}`,
      reasoningText: turn % 2 === 0 ? `Thought number ${turn}` : undefined,
      toolRequests: [{ toolCallId: `c${turn}`, name: "bash", arguments: { command: `echo ${turn}` } }],
    });
    push("tool.execution_start", { toolCallId: `c${turn}`, toolName: "bash", arguments: { command: `echo ${turn}` } });
    push("tool.execution_complete", { toolCallId: `c${turn}`, success: true, result: { content: `${turn}\n` } });
    push("assistant.turn_end", { turnId: String(turn) });
  }
  return events.slice(0, EVENTS);
}

const stage = setStage((portal) => portal.write(ID, log(), "Fifty thousand"));

/** The prompt at the top of the view, and how many rows there are at all. */
function view(page) {
  return page.evaluate(() => {
    const list = document.querySelector(".vlist");
    const top = list.getBoundingClientRect().top;
    const rows = [...list.querySelectorAll("[data-row]")];
    const first = rows.find((row) => row.getBoundingClientRect().bottom > top + 40 && row.querySelector(".user-text"));
    return {
      rows: rows.length,
      prompt: first?.querySelector(".user-text").textContent ?? "",
      offset: first === undefined ? 0 : first.getBoundingClientRect().top - top,
      height: list.scrollHeight,
    };
  });
}

test("its end is on the screen at once, and only what is in view exists", async (context) => {
  const page = await stage.page();
  const started = performance.now();
  await page.goto(`/sessions/${ID}`);
  await page.getByText("Prompt number 8332").waitFor();
  context.diagnostic(`first screen after ${Math.round(performance.now() - started)} ms`);
  const { rows } = await view(page);
  assert.ok(rows < 120, `${rows} rows exist`);
  const below = await page.evaluate(() => {
    const list = document.querySelector(".vlist");
    return list.scrollHeight - list.scrollTop - list.clientHeight;
  });
  assert.ok(below < 60, `the end is ${below} px below the view`);
});

test("what is older comes when somebody scrolls up, and what is looked at stays where it is", async () => {
  const page = await stage.page();
  let held = null;
  let holding = true;
  await page.goto(`/sessions/${ID}`);
  await page.getByText("Prompt number 8332").waitFor();
  await page.route("**/events?before=*", async (route) => {
    if (holding) {
      await new Promise((resolve) => {
        held = resolve;
      });
    }
    await route.continue();
  });
  await page.locator(".vlist").hover();
  // Up to the beginning of what is loaded; the next page is held back, so that this is where it stays.
  await until("an older page is asked for", async () => {
    await page.mouse.wheel(0, -4_000);
    return held;
  });
  await until("the beginning is reached", async () => {
    await page.mouse.wheel(0, -4_000);
    return page.evaluate(() => document.querySelector(".vlist").scrollTop < 5);
  });
  await until("the view is still", async () => {
    const one = await view(page);
    const other = await view(page);
    return one.prompt !== "" && one.prompt === other.prompt && one.offset === other.offset;
  });
  const before = await view(page);
  holding = false;
  held();
  await until("the older page is there", async () => (await view(page)).height > before.height + 5_000);
  const after = await view(page);
  assert.equal(after.prompt, before.prompt);
  assert.ok(Math.abs(after.offset - before.offset) < 3, `it moved by ${after.offset - before.offset} px`);
});

test("the very first event can be reached", async () => {
  const page = await stage.page();
  await page.goto(`/sessions/${ID}`);
  await page.getByText("Prompt number 8332").waitFor();
  await until("the beginning is on the screen", async () => {
    await page.keyboard.press("g");
    await page.keyboard.press("g");
    return (await page.getByText("Prompt number 0", { exact: true }).count()) > 0;
  });
  const { rows } = await view(page);
  assert.ok(rows < 120, `${rows} rows exist`);
  await page.keyboard.press("Shift+G");
  await page.getByText("Prompt number 8332").waitFor();
});

test("words are found where they are, drawn or not", async () => {
  const page = await stage.page();
  await page.goto(`/sessions/${ID}`);
  await page.getByText("Prompt number 8332").waitFor();
  await page.keyboard.press("/");
  await page.getByLabel("Find in the transcript").fill("prompt number 8270");
  await page.keyboard.press("Enter");
  await page.locator(".found", { hasText: "Prompt number 8270" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByLabel("Find in the transcript").waitFor({ state: "detached" });
});

// What agents ask beyond permissions: questions, forms and plans, answered as somebody would.

import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { findings } from "./accessible.mjs";
import { see, setStage, until } from "./stage.mjs";

const ASKER = fileURLToPath(new URL("./asker.mjs", import.meta.url));

const stage = setStage((portal) => {
  portal.file("home/mcp-config.json", JSON.stringify({ mcpServers: { asker: { command: process.execPath, args: [ASKER] } } }));
});

/** The page of a session that has asked, and what its tool is told in the end. */
async function asking(prompt) {
  const session = await stage.portal.session(`${prompt}\nSAY:thanks`, { policy: "ask" });
  const page = await stage.page();
  await page.goto(`/sessions/${session.id}`);
  const told = async () => {
    await page.locator(".markdown", { hasText: "thanks" }).waitFor();
    return toldTo(session.id);
  };
  return { page, told };
}

async function toldTo(id) {
  const { events } = await stage.portal.api("GET", `/sessions/${id}/events`);
  const { data } = events.map(({ event }) => event).findLast((event) => event.type === "tool.execution_complete");
  return data.result?.content ?? data.error?.message;
}

test("a question is answered by a choice", async () => {
  const { page, told } = await asking('TOOL:ask_user:{"question":"Which **colour**?","choices":["Red","Blue"]}');
  await see(page, "Has a question");
  assert.equal(await page.locator(".ask strong").textContent(), "colour");
  await page.getByRole("button", { name: "Blue" }).click();
  assert.match(await told(), /Blue/);
});

test("a question with choices is answered in other words", async () => {
  const { page, told } = await asking('TOOL:ask_user:{"question":"Which colour?","choices":["Red","Blue"]}');
  const answer = page.getByLabel("Your answer");
  await answer.waitFor();
  assert.equal(await page.getByRole("button", { name: "Answer" }).isEnabled(), false);
  await answer.fill("something like teal");
  await page.keyboard.press("Enter");
  assert.match(await told(), /something like teal/);
});

test("a question without choices is answered in words", async () => {
  const { page, told } = await asking('TOOL:ask_user:{"question":"What is it called?"}');
  await page.getByLabel("Your answer").fill("Hangar");
  await page.getByRole("button", { name: "Answer" }).click();
  assert.match(await told(), /Hangar/);
});

const SCHEMA = {
  type: "object",
  properties: {
    name: { type: "string", title: "Your name", minLength: 2 },
    age: { type: "integer", title: "Age", minimum: 0, maximum: 150 },
    weight: { type: "number", title: "Weight" },
    news: { type: "boolean", title: "Send me news" },
    colour: { type: "string", title: "Colour", enum: ["r", "b"], enumNames: ["Red", "Blue"] },
    days: { type: "array", title: "Days", items: { type: "string", enum: ["monday", "tuesday", "friday"] } },
    note: { type: "string", title: "Note", description: "Whatever comes to mind" },
  },
  required: ["name", "age"],
};

/** A session whose tool asks for a form to be filled in, once it is allowed to run. */
async function form(more = {}) {
  const order = { message: "Who are you?", requestedSchema: SCHEMA, ...more };
  const { page, told } = await asking(`TOOL:asker-ask:${JSON.stringify(order)}`);
  await see(page, "Wants to use a tool of an MCP server");
  await page.getByRole("button", { name: /^Allow/ }).first().click();
  await see(page, "Who are you?");
  await page.locator('.tool[data-progress="asking"]').waitFor();
  return { page, card: page.locator(".ask"), told: async () => JSON.parse(await told()) };
}

test("a form is filled in and sent, in the types that were asked for", async () => {
  const { page, card, told } = await form();
  assert.deepEqual(await findings(page), []);
  await card.getByLabel("Your name").fill("Ada");
  await card.getByLabel("Age").fill("36");
  await card.getByLabel("Weight").fill("61.5");
  await card.getByLabel("Send me news").check();
  await card.getByLabel("Colour").selectOption("Blue");
  await card.getByLabel("monday").check();
  await card.getByLabel("friday").check();
  await page.getByRole("button", { name: "Send" }).click();
  assert.deepEqual(await told(), {
    action: "accept",
    content: { name: "Ada", age: 36, weight: 61.5, news: true, colour: "b", days: ["monday", "friday"] },
  });
});

test("a form that lacks something says what, and is not sent", async () => {
  const { page, card, told } = await form();
  await card.getByLabel("Age").fill("200");
  await page.getByRole("button", { name: "Send" }).click();
  await see(page, "This is needed.");
  await see(page, "At most 150.");
  assert.equal(await page.evaluate(() => document.activeElement.closest("[data-item]")?.dataset.item), "name");
  assert.deepEqual(await findings(page), []);
  await page.keyboard.type("Grace");
  await card.getByLabel("Age").fill("85");
  await page.keyboard.press("Enter");
  assert.deepEqual(await told(), { action: "accept", content: { name: "Grace", age: 85, news: false } });
});

for (const [button, action] of [["Decline", "decline"], ["Cancel", "cancel"]]) {
  test(`a form is answered by ${action}, and nothing that was written is told`, async () => {
    const { page, card, told } = await form();
    await card.getByLabel("Your name").fill("Somebody");
    await page.getByRole("button", { name: button }).click();
    const said = await told();
    assert.equal(said.action, action);
    assert.equal(said.content, undefined);
  });
}

/** A session that was begun in a terminal to plan, and hands its plan in. */
async function planned(name) {
  const { portal } = stage;
  portal.command("--plan", "--name", name, "--prompt", "SAY:I shall plan.");
  const { sessions } = await portal.api("GET", `/sessions?query=${encodeURIComponent(name)}`);
  const { id } = sessions[0];
  writeFileSync(join(portal.home, "session-state", id, "plan.md"), "# The plan\n\n1. Look\n2. **Mend**\n");
  await portal.api("POST", `/sessions/${id}/messages`, { text: 'TOOL:exit_plan_mode:{"summary":"Two steps"}\nSAY:now I know' });
  const page = await stage.page();
  await page.goto(`/sessions/${id}`);
  await see(page, "Hands in a plan");
  await see(page, "Two steps");
  assert.equal(await page.locator(".ask-plan strong").textContent(), "Mend");
  assert.deepEqual(await findings(page), []);
  return { id, page };
}

async function modeOf(id) {
  const { events } = await stage.portal.api("GET", `/sessions/${id}/events`);
  return events.map(({ event }) => event).findLast((event) => event.type === "session.mode_changed").data.newMode;
}

test("a plan is approved, and the work begins", async () => {
  const { id, page } = await planned("Plan that is good");
  await page.locator('.ask[data-readable="true"]').waitFor();
  await page.keyboard.press("a");
  await page.locator(".markdown", { hasText: "now I know" }).waitFor();
  assert.match(await toldTo(id), /approved/);
  assert.equal(await modeOf(id), "interactive");
});

test("a plan is sent back with what should be different", async () => {
  const { id, page } = await planned("Plan that is not");
  await page.getByLabel("What should be different about the plan").fill("smaller steps, please");
  await page.getByRole("button", { name: "Keep planning" }).click();
  await page.locator(".markdown", { hasText: "now I know" }).waitFor();
  assert.match(await toldTo(id), /smaller steps, please/);
  assert.equal(await modeOf(id), "plan");
});

test("questions, forms and plans stand in the inbox beside permissions", async () => {
  await stage.portal.session('TOOL:ask_user:{"question":"Which one?","choices":["This","That"]}\nSAY:thanks', { policy: "ask", name: "Undecided" });
  await stage.portal.session('TOOL:bash:{"command":"touch inbox.txt"}', { policy: "ask", name: "Eager" });
  const page = await stage.page();
  await page.goto("/approvals");
  await until("both are there", async () => (await page.locator(".ask").count()) === 2);
  assert.deepEqual(await findings(page), []);
  await page.getByRole("button", { name: "That" }).click();
  await until("one is left", async () => (await page.locator(".ask").count()) === 1);
  await page.getByRole("button", { name: /^Deny/ }).click();
  await see(page, "Nothing waits for you");
});

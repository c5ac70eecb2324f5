// Questions of agents, answered where they are asked, in the inbox, and by one of two people at once.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Portal, openBrowser, openPage, see, until } from "./stage.mjs";

let portal;
let browser;

before(async () => {
  portal = await new Portal().start();
  browser = await openBrowser();
});

after(async () => {
  await browser?.close();
  await portal?.close();
});

function asking(file, name) {
  return portal.session(`TOOL:bash:${JSON.stringify({ command: `touch ${file}`, description: "Make a file" })}\nSAY:went on`, { policy: "ask", name });
}

function made(file) {
  return existsSync(join(portal.workspace, file));
}

test("a permission is given in the session, by a key", async () => {
  const session = await asking("one.txt", "Asks in place");
  const page = await openPage(browser, portal);
  await page.goto(`/sessions/${session.id}`);
  await see(page, "Wants to run a command");
  await page.locator(".nav .count", { hasText: "1" }).waitFor();
  await until("the title tells", async () => (await page.title()).startsWith("(1) "));
  await page.locator('.ask[data-readable="true"]').waitFor();
  await page.keyboard.press("a");
  await page.locator(".markdown", { hasText: "went on" }).waitFor();
  await page.locator(".mark-allowed").waitFor();
  await page.locator(".nav .count").waitFor({ state: "detached" });
  assert.ok(made("one.txt"));
  assert.deepEqual(page.mistakes, []);
});

test("a permission is refused with a reason, and the question survives a reload", async () => {
  const session = await asking("two.txt", "Asks and is refused");
  const page = await openPage(browser, portal);
  await page.goto(`/sessions/${session.id}`);
  await see(page, "Wants to run a command");
  await page.reload();
  await see(page, "Wants to run a command");
  await page.getByLabel("What the agent should do instead").fill("use another name");
  await page.getByRole("button", { name: "Deny" }).click();
  await page.locator(".mark-denied").first().waitFor();
  await see(page, "use another name");
  assert.ok(!made("two.txt"));
  assert.deepEqual(page.mistakes, []);
});

test("the inbox holds the questions of all sessions", async () => {
  await asking("three.txt", "Third");
  await asking("four.txt", "Fourth");
  const page = await openPage(browser, portal);
  await page.goto("/approvals");
  await until("both are there", async () => (await page.locator(".ask").count()) === 2);
  await until("both can be read", async () => (await page.locator('.ask[data-readable="true"]').count()) === 2);
  await page.keyboard.press("j");
  await page.keyboard.press("a");
  await until("one is left", async () => (await page.locator(".ask").count()) === 1);
  await until("the first one was allowed", () => made("three.txt"));
  assert.ok(!made("four.txt"));
  await page.keyboard.press("d");
  await see(page, "Nothing waits for you");
  assert.deepEqual(page.mistakes, []);
});

test("of two browsers one answers, and the other hears of it", async () => {
  const session = await asking("five.txt", "Asks two");
  const one = await openPage(browser, portal);
  const other = await openPage(browser, portal);
  await one.goto("/approvals");
  await other.goto(`/sessions/${session.id}`);
  await see(one, "Wants to run a command");
  await see(other, "Wants to run a command");
  await one.getByRole("button", { name: /^Allow/ }).first().click();
  await see(one, "Nothing waits for you");
  await other.locator(".ask").waitFor({ state: "detached" });
  await other.locator(".markdown", { hasText: "went on" }).waitFor();
  assert.deepEqual([...one.mistakes, ...other.mistakes], []);
});

test("who comes too late is told so", async () => {
  await asking("six.txt", "Asks too late");
  const page = await openPage(browser, portal);
  await page.goto("/approvals");
  await see(page, "Wants to run a command");
  const { approvals } = await portal.api("GET", "/approvals");
  // The page does not hear of the answer: its stream is held back.
  await page.route("**/api/v1/stream", (route) => route.abort());
  await page.route(`**/api/v1/approvals/${approvals[0].id}`, async (route) => {
    await portal.api("POST", `/approvals/${approvals[0].id}`, { decision: "deny" }).catch(() => null);
    await route.continue();
  });
  await page.getByRole("button", { name: /^Allow/ }).first().click();
  await until("the question is gone", async () => (await page.locator(".ask").count()) === 0);
  assert.ok(!made("six.txt"));
});

test("a question is answered by a choice", async () => {
  const session = await portal.session('TOOL:ask_user:{"question":"Which **colour**?","choices":["Red","Blue"]}\nSAY:thanks', { policy: "ask" });
  const page = await openPage(browser, portal);
  await page.goto(`/sessions/${session.id}`);
  await see(page, "Has a question");
  assert.equal(await page.locator(".ask strong").textContent(), "colour");
  await page.getByRole("button", { name: "Blue" }).click();
  await page.locator(".markdown", { hasText: "thanks" }).waitFor();
  const { events } = await portal.api("GET", `/sessions/${session.id}/events`);
  const answer = events.find(({ event }) => event.type === "tool.execution_complete");
  assert.match(JSON.stringify(answer), /Blue/);
  assert.deepEqual(page.mistakes, []);
});

// Questions of agents, answered where they are asked, in the inbox, and by one of two people at once.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { see, setStage, until } from "./stage.mjs";

const stage = setStage();

/** Resolves when the question is there: of two sessions, the one that was begun first has then asked first. */
async function asking(file, name) {
  const command = JSON.stringify({ command: `touch ${file}`, description: "Make a file" });
  const session = await stage.portal.session(`TOOL:bash:${command}\nSAY:went on`, { policy: "ask", name });
  await until("it asks", async () => {
    const { approvals } = await stage.portal.api("GET", "/approvals");
    return approvals.some((approval) => approval.sessionId === session.id);
  });
  return session;
}

function made(file) {
  return existsSync(join(stage.portal.workspace, file));
}

test("a permission is given in the session, by a key", async () => {
  const session = await asking("one.txt", "Asks in place");
  const page = await stage.page();
  await page.goto(`/sessions/${session.id}`);
  await see(page, "Wants to run a command");
  await page.locator(".nav .count", { hasText: "1" }).waitFor();
  await until("the title tells", async () => (await page.title()).startsWith("(1) "));
  await page.locator('link[rel="icon"][href="/favicon-waiting.svg"]').waitFor({ state: "attached" });
  await page.locator('.ask[data-readable="true"]').waitFor();
  await page.keyboard.press("a");
  await page.locator(".markdown", { hasText: "went on" }).waitFor();
  await page.locator(".mark-allowed").waitFor();
  await page.locator(".nav .count").waitFor({ state: "detached" });
  await page.locator('link[rel="icon"][href="/favicon.svg"]').waitFor({ state: "attached" });
  assert.ok(made("one.txt"));
});

test("a permission is refused with a reason, and the question survives a reload", async () => {
  const session = await asking("two.txt", "Asks and is refused");
  const page = await stage.page();
  await page.goto(`/sessions/${session.id}`);
  await see(page, "Wants to run a command");
  await page.reload();
  await see(page, "Wants to run a command");
  await page.getByLabel("What the agent should do instead").fill("use another name");
  await page.getByRole("button", { name: "Deny" }).click();
  await page.locator(".mark-denied").first().waitFor();
  await see(page, "use another name");
  assert.ok(!made("two.txt"));
});

test("the inbox holds the questions of all sessions", async () => {
  await asking("three.txt", "Third");
  await asking("four.txt", "Fourth");
  const page = await stage.page();
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
});

test("of two browsers one answers, and the other hears of it", async () => {
  const session = await asking("five.txt", "Asks two");
  const one = await stage.page();
  const other = await stage.page();
  await one.goto("/approvals");
  await other.goto(`/sessions/${session.id}`);
  await see(one, "Wants to run a command");
  await see(other, "Wants to run a command");
  await one.getByRole("button", { name: /^Allow/ }).first().click();
  await see(one, "Nothing waits for you");
  await other.locator(".ask").waitFor({ state: "detached" });
  await other.locator(".markdown", { hasText: "went on" }).waitFor();
});

test("who comes too late is told so", async () => {
  await asking("six.txt", "Asks too late");
  const page = await stage.page({ forgives: /status of 409|ERR_FAILED/ });
  await page.goto("/approvals");
  await see(page, "Wants to run a command");
  const { approvals } = await stage.portal.api("GET", "/approvals");
  // The page does not hear of the answer: its stream is held back.
  await page.route("**/api/v1/stream", (route) => route.abort());
  await page.route(`**/api/v1/approvals/${approvals[0].id}`, async (route) => {
    await stage.portal.api("POST", `/approvals/${approvals[0].id}`, { decision: "deny" }).catch(() => null);
    await route.continue();
  });
  await page.getByRole("button", { name: /^Allow/ }).first().click();
  await until("the question is gone", async () => (await page.locator(".ask").count()) === 0);
  assert.ok(!made("six.txt"));
});

test("a permission that is given for the session is not asked for again", async () => {
  const command = (file) => `TOOL:bash:${JSON.stringify({ command: `touch ${file}`, description: "Make a file" })}`;
  const session = await stage.portal.session(`${command("seven.txt")}\n${command("eight.txt")}\nSAY:went on`, { policy: "ask" });
  const page = await stage.page();
  await page.goto(`/sessions/${session.id}`);
  await page.getByRole("button", { name: /^Allow for this session/ }).click();
  await page.locator(".markdown", { hasText: "went on" }).waitFor();
  assert.ok(made("seven.txt") && made("eight.txt"));
  const { events } = await stage.portal.api("GET", `/sessions/${session.id}/events`);
  assert.equal(events.filter(({ event }) => event.type === "permission.requested").length, 1);
});

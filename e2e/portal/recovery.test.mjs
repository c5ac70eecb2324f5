// What is open all day meets reloads, restarts and crashes. Nothing is missed and nothing is shown twice.

import assert from "node:assert/strict";
import { test } from "node:test";
import { OUTAGES, REFUSALS, see, setStage, until } from "./stage.mjs";

const stage = setStage(null);

/**
 * A step per tool call, each of which waits until it may go on. A command that outlasts its wait moves to the background, and its
 * end is a turn of its own: the wait is longer than the test.
 */
function steps(count) {
  return Array.from({ length: count }, (_, step) => `SAY:step ${step} of many\nTOOL:bash:{"command":"until [ -e go${step} ]; do sleep 0.05; done","initial_wait":300}`).join("\n");
}

function goOn(portal, step) {
  portal.file(`project/go${step}`, "");
}

/** Waits until the agent has said something: the prompt, which says the same, does not count. */
async function said(page, text) {
  await page.locator(".text .markdown", { hasText: text }).waitFor();
}

/** The texts of the agent in the order in which they stand on the page. */
function texts(page) {
  return page.evaluate(() => [...document.querySelectorAll(".text .markdown")].map((element) => element.textContent.trim()));
}

test("a reload in the middle of a turn loses nothing", async () => {
  const portal = await stage.another();
  const session = await portal.session(`${steps(3)}\nSAY:the end`, { policy: "allow-all" });
  const page = await stage.page({ portal });
  await page.goto(`/sessions/${session.id}`);
  await said(page, "step 0 of many");
  goOn(portal, 0);
  await said(page, "step 1 of many");
  await page.reload();
  await said(page, "step 1 of many");
  goOn(portal, 1);
  goOn(portal, 2);
  await said(page, "the end");
  assert.deepEqual(await texts(page), ["step 0 of many", "step 1 of many", "step 2 of many", "the end"]);
});

test("a page that was cut off goes on after the last event that it saw", async () => {
  const portal = await stage.another();
  const session = await portal.session(`${steps(3)}\nSAY:the end`, { policy: "allow-all" });
  const page = await stage.page({ portal, forgives: OUTAGES });
  const streams = [];
  page.on("request", (request) => {
    if (request.url().includes(`${session.id}/stream`)) streams.push(new URL(request.url()).searchParams.get("after"));
  });
  await page.goto(`/sessions/${session.id}`);
  await said(page, "step 0 of many");
  await page.context().setOffline(true);
  goOn(portal, 0);
  await until("the session goes on unseen", async () => JSON.stringify(await portal.api("GET", `/sessions/${session.id}/events`)).includes("step 1 of many"));
  await page.context().setOffline(false);
  goOn(portal, 1);
  goOn(portal, 2);
  await said(page, "the end");
  assert.deepEqual(await texts(page), ["step 0 of many", "step 1 of many", "step 2 of many", "the end"]);
  assert.ok(streams.every((after) => after !== null && Number(after) >= 0), "every stream says where it begins");
});

for (const signal of ["SIGTERM", "SIGKILL"]) {
  test(`a server that was ended by ${signal} and started again is picked up without a gap`, async () => {
    const portal = await stage.another();
    const session = await portal.session("SAY:before", { policy: "allow-all", name: "Survivor" });
    const page = await stage.page({ portal, forgives: OUTAGES });
    await page.goto(`/sessions/${session.id}`);
    await page.locator(".markdown", { hasText: "before" }).waitFor();
    await page.getByLabel("Message to the agent").fill(`${steps(2)}\nSAY:never said`);
    await page.keyboard.press("Control+Enter");
    await said(page, "step 0 of many");
    await page.locator('.tool[data-progress="busy"]').waitFor();
    await portal.stop(signal);
    await page.locator('[data-connection="lost"]').first().waitFor();
    await see(page, "Trying again");
    await portal.start();
    await page.locator('.session-page[data-connection="open"]').waitFor();
    // What was being done is interrupted; what was said is all there, once.
    await page.locator('.tool[data-progress="interrupted"], .tool[data-progress="failed"]').waitFor();
    await page.getByLabel("Message to the agent").fill("SAY:after");
    await page.keyboard.press("Control+Enter");
    await page.locator(".markdown", { hasText: "after" }).waitFor();
    const live = await texts(page);
    assert.deepEqual(live, ["before", "step 0 of many", "after"]);
    await page.reload();
    await page.locator(".markdown", { hasText: "after" }).waitFor();
    assert.deepEqual(await texts(page), live);
  });
}

const TOKEN = "a-token-that-nobody-would-guess";

test("a token is asked for, kept, and forgotten on demand", async () => {
  const portal = await stage.another((portal) => {
    portal.args = ["--token-env", "PORTAL_TOKEN"];
    portal.env = { PORTAL_TOKEN: TOKEN };
  });
  const page = await stage.page({ portal, forgives: REFUSALS });
  const refused = [];
  page.on("response", (response) => {
    if (response.status() === 401) refused.push(response.url());
  });
  await page.goto("/settings");
  await page.getByLabel("Token").waitFor();
  assert.deepEqual(refused, [], "nothing is asked for that will be refused");
  await page.getByLabel("Token").fill("wrong");
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("alert").waitFor();
  await page.getByLabel("Token").fill(TOKEN);
  await page.getByRole("button", { name: "Log in" }).click();
  await see(page, "Appearance");
  await page.locator('[data-connection="open"]').waitFor();
  await page.reload();
  await see(page, "Appearance");
  assert.equal(await page.evaluate(() => document.cookie), "");
  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByLabel("Token").waitFor();
});

test("who was sent to a session finds it behind the login", async () => {
  const portal = await stage.another((portal) => {
    portal.args = ["--token-env", "PORTAL_TOKEN"];
    portal.env = { PORTAL_TOKEN: TOKEN };
    portal.write("00000000-0000-4000-8000-000000000001", [
      { type: "user.message", data: { content: "said behind the login" }, id: "00000000-0000-4000-8000-000000000002", timestamp: "2026-01-01T00:00:00.000Z", parentId: null },
    ], "Behind");
  });
  const page = await stage.page({ portal, forgives: REFUSALS });
  await page.goto("/sessions/00000000-0000-4000-8000-000000000001");
  await page.getByLabel("Token").fill(TOKEN);
  await page.getByRole("button", { name: "Log in" }).click();
  await see(page, "said behind the login");
  const refused = [];
  page.on("response", (response) => {
    if (response.status() === 401) refused.push(response.url());
  });
  await page.reload();
  await see(page, "said behind the login");
  assert.deepEqual(refused, []);
});

test("tabs share one connection, and the next one takes over when the first is closed", async () => {
  const portal = await stage.another();
  const first = await stage.page({ portal });
  const second = await first.context().newPage();
  const streams = { first: 0, second: 0 };
  const counts = (page, name) =>
    page.on("request", (request) => {
      if (request.url().endsWith("/api/v1/stream")) streams[name] += 1;
    });
  counts(first, "first");
  counts(second, "second");
  await first.goto("/sessions");
  await first.locator('[data-connection="open"]').waitFor();
  await second.goto("/sessions");
  await second.locator('[data-connection="open"]').waitFor();
  await portal.session("SAY:one", { name: "Heard through the first" });
  await see(second, "Heard through the first");
  assert.deepEqual(streams, { first: 1, second: 0 });
  await first.close();
  await until("the second listens itself", () => streams.second === 1);
  await portal.session("SAY:two", { name: "Heard by the second" });
  await see(second, "Heard by the second");
});

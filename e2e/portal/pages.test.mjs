// Every page: it says what to do when there is nothing, works by keyboard, fits a phone and is accessible in both themes.

import assert from "node:assert/strict";
import { test } from "node:test";
import { findings } from "./accessible.mjs";
import { REFUSALS, see, setStage, until } from "./stage.mjs";

const ENTRY = `
models: { driving: scripted }
tasks:
  greet: { model: { category: driving }, prompt: "SAY:hello $user-input", requireUserInput: true }
  check: { model: { category: driving }, prompt: "SAY:fine", requireUserInput: false }
jobs:
  both: { work: { kind: Seq, works: [{ kind: Ref, taskId: greet }, { kind: Ref, taskId: check }] } }
  check: { work: { kind: Ref, taskId: check } }
grid:
  - { keyword: first, jobs: [{ name: both, jobName: both }, null, { name: check, jobName: check }] }
`;

const stage = setStage();

test("a portal with nothing in it says what to do next", async () => {
  const page = await stage.page({ forgives: REFUSALS });
  await page.goto("/");
  await see(page, "No sessions yet");
  await page.getByRole("link", { name: "Start the first one" }).click();
  await page.waitForURL("**/new");
  await page.goto("/jobs");
  await see(page, "No jobs yet");
  await page.goto("/runs");
  await see(page, "Nothing was run yet");
  await page.goto("/approvals");
  await see(page, "Nothing waits for you");
  await page.goto("/no/such/page");
  await see(page, "There is no such page");
  await page.goto("/sessions/no-such-session");
  await see(page, "There is no such session");
  await page.goto("/runs/no-such-run");
  await see(page, "There is no such run");
});

test("everything is reached by keys, and the help lists them", async () => {
  const page = await stage.page();
  await page.goto("/sessions");
  await see(page, "Connected");
  for (const [keys, path] of [["ga", "approvals"], ["gj", "jobs"], ["gr", "runs"], ["gt", "runtimes"], ["g,", "settings"], ["gs", "sessions"], ["c", "new"]]) {
    for (const key of keys) await page.keyboard.press(key);
    await page.waitForURL(`**/${path}`);
    await page.locator("body").click({ position: { x: 700, y: 790 } });
  }
  await page.keyboard.press("?");
  await page.getByRole("heading", { name: "Keys" }).waitFor();
  await see(page, "Change the theme");
  await page.keyboard.press("Escape");
  await page.getByRole("heading", { name: "Keys" }).waitFor({ state: "detached" });
});

test("the theme follows the system until somebody chooses", async () => {
  const page = await stage.page({ colorScheme: "dark" });
  await page.goto("/settings");
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const dark = await background();
  await page.getByText("Light", { exact: true }).click();
  await until("the page is light", async () => (await background()) !== dark);
  const light = await background();
  await page.reload();
  await see(page, "Appearance");
  assert.equal(await background(), light);
});

test("the look of the configuration applies to browsers that have chosen none", async () => {
  const portal = await stage.another();
  const page = await stage.page({ portal, colorScheme: "light" });
  await page.goto("/settings");
  const form = page.getByLabel("Appearance", { exact: true });
  await form.getByLabel("theme").selectOption("dark");
  await form.getByLabel("density").selectOption("compact");
  await form.getByRole("button", { name: "Save" }).click();
  const look = () => page.evaluate(() => ({ ...document.documentElement.dataset }));
  await until("the page is dark and compact", async () => (await look()).theme === "dark" && (await look()).density === "compact");
  // It is so from the first paint on.
  await page.reload({ waitUntil: "commit" });
  await until("it is dark again", async () => (await look()).theme === "dark");
  await page.getByText("Light", { exact: true }).click();
  await until("the choice of this browser wins", async () => (await look()).theme === "light");
});

test("an entry file is chosen in the settings, and a bad one is told", async () => {
  const page = await stage.page({ forgives: REFUSALS });
  await page.goto("/settings");
  await page.getByLabel("Entry file").fill("/no/such/file.yaml");
  await page.getByRole("button", { name: "Use this file" }).click();
  await page.getByRole("alert").waitFor();
  await page.getByLabel("Entry file").fill(stage.portal.file("jobs.yaml", ENTRY));
  await page.getByRole("button", { name: "Use this file" }).click();
  await see(page, "2 jobs are ready");
});

test("runtimes say whether they are ready", async () => {
  const page = await stage.page();
  await page.goto("/runtimes");
  await page.locator('[data-runtime="native"]').waitFor();
  await page.getByRole("button", { name: "Look again" }).click();
  await see(page, "Looked at");
});

for (const colorScheme of ["light", "dark"]) {
  test(`no page has a serious fault of accessibility, ${colorScheme}`, async () => {
    const prompt = 'THINK:so\nSAY:# Title\\n\\n`code` and [a link](https://example.org)\nTOOL:create:{"path":"a.txt","file_text":"one\\ntwo\\n"}\nSAY:done';
    const session = await stage.portal.session(prompt, { name: "Accessible", policy: "allow-all" });
    const asking = await stage.portal.session('TOOL:bash:{"command":"touch x"}', { name: "Asking" });
    const run = await stage.portal.api("POST", "/runs", { job: "check", workspace: stage.portal.workspace });
    const page = await stage.page({ colorScheme });
    const paths = ["/sessions", `/sessions/${session.id}`, `/sessions/${asking.id}`, "/new", "/jobs", "/runs", `/runs/${run.id}`, "/approvals", "/runtimes", "/settings"];
    await until("the first session is done", async () => (await stage.portal.api("GET", `/sessions/${session.id}`)).state === "idle");
    await until("the second one asks", async () => (await stage.portal.api("GET", "/approvals")).approvals.length > 0);
    for (const path of paths) {
      await page.goto(path);
      await page.locator("h1, h2").first().waitFor();
      if (path.endsWith(session.id)) await see(page, "done");
      if (path.endsWith(asking.id)) await see(page, "Wants to run a command");
      if (path === "/jobs") await page.locator('[data-job-name="both"]').click();
      assert.deepEqual(await findings(page), [], `${path} in ${colorScheme}`);
    }
    await page.keyboard.press("?");
    assert.deepEqual(await findings(page), [], `the help in ${colorScheme}`);
    await stage.portal.api("POST", `/sessions/${asking.id}/stop`);
  });
}

test("no page is wider than a phone", async () => {
  const page = await stage.page({ viewport: { width: 360, height: 740 } });
  const { sessions } = await stage.portal.api("GET", "/sessions");
  const asking = await stage.portal.session('TOOL:bash:{"command":"touch a-file-with-a-name-that-is-longer-than-a-phone-is-wide.txt"}', { policy: "ask" });
  await until("it asks", async () => (await stage.portal.api("GET", "/approvals")).approvals.length > 0);
  const { runs } = await stage.portal.api("GET", "/runs");
  for (const path of ["/sessions", `/sessions/${sessions[0].id}`, `/sessions/${asking.id}`, "/new", "/jobs", "/runs", `/runs/${runs[0].id}`, "/approvals", "/runtimes", "/settings"]) {
    await page.goto(path);
    await page.locator("h1, h2").first().waitFor();
    if (path === "/approvals" || path.endsWith(asking.id)) await page.locator(".ask").waitFor();
    // Parts that scroll up and down would also scroll sideways, unseen.
    const beyond = await page.evaluate(() =>
      Math.max(document.documentElement.scrollWidth - window.innerWidth, ...[...document.querySelectorAll("main, .session-foot, .vlist, .run-side")].map((part) => part.scrollWidth - part.clientWidth)),
    );
    assert.ok(beyond <= 0, `${path} is ${beyond} px too wide`);
  }
  await page.goto(`/sessions/${asking.id}`);
  await page.getByRole("button", { name: "Delete" }).click();
  const fits = await page.evaluate(() => [...document.querySelectorAll("dialog .button")].every((button) => button.scrollWidth <= button.clientWidth));
  assert.ok(fits, "the words on a button of a dialog are wider than the button");
  await stage.portal.api("POST", `/sessions/${asking.id}/stop`);
});

test("sessions are found by words and by state", async () => {
  const page = await stage.page();
  await page.goto("/sessions");
  await page.locator(".session-row").first().waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("Accessible");
  await until("others are gone", async () => (await page.getByText("Asking").count()) === 0);
  await page.reload();
  assert.equal(await page.getByLabel("Search sessions").inputValue(), "Accessible");
  await page.getByLabel("Search sessions").fill("no such words anywhere");
  await see(page, "No session matches");
  await page.getByRole("button", { name: "Show all" }).click();
  await page.locator(".session-row").first().waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.keyboard.press("k");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/sessions/*");
});

test("who comes back to a long list finds it where it was left", async () => {
  const portal = await stage.another((portal) => {
    for (let at = 0; at < 150; at += 1) {
      const id = `00000000-0000-4000-8000-${String(at).padStart(12, "0")}`;
      const start = { sessionId: id, version: 1, producer: "hangar", copilotVersion: "1.0.0", startTime: "2026-01-01T00:00:00.000Z" };
      portal.write(id, [{ type: "session.start", data: start, id, timestamp: "2026-01-01T00:00:00.000Z", parentId: null }], `Old session ${at}`);
    }
  });
  const page = await stage.page({ portal });
  await page.goto("/sessions");
  await page.getByRole("button", { name: "Show more" }).click();
  await until("all are there", async () => (await page.locator(".session-row").count()) === 150);
  const place = () => page.evaluate(() => document.getElementById("main").scrollTop);
  await page.locator(".session-row").nth(120).scrollIntoViewIfNeeded();
  const left = await place();
  assert.ok(left > 1_000, `${left} px down`);
  await page.locator(".session-row").nth(120).click();
  await page.waitForURL("**/sessions/*");
  await page.locator(".session-page").waitFor();
  await page.goBack();
  await until("it is where it was", async () => Math.abs((await place()) - left) < 2);
  assert.equal(await page.locator(".session-row").count(), 150);
  await page.keyboard.press("g");
  await page.keyboard.press("r");
  await until("another page begins at its top", async () => (await place()) === 0);
});

test("a session that is deleted elsewhere leaves the list", async () => {
  await stage.portal.session("SAY:a", { name: "It stays" });
  const { id } = await stage.portal.session("SAY:b", { name: "It goes" });
  const page = await stage.page();
  const streams = [];
  // The page hears of the deletion and of nothing else; a list that is loaded anew would not show the session in any case.
  await page.route("**/api/v1/stream", (route) => streams.push(route));
  await page.goto("/sessions");
  await see(page, "It goes");
  const [stream] = await until("the page listens", () => streams.length > 0 && streams);
  const body = `event: something-newer\ndata: {}\n\nevent: gone\ndata: ${JSON.stringify({ kind: "session", id })}\n\n`;
  await stream.fulfill({ contentType: "text/event-stream", body });
  await page.locator(".session-row", { hasText: "It goes" }).waitFor({ state: "detached" });
  await page.locator(".session-row", { hasText: "It stays" }).waitFor();
});

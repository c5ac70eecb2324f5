// One session from its form to its end, as somebody would use it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { REFUSALS, see, setStage, until } from "./stage.mjs";

const stage = setStage();

async function send(page, text) {
  await page.getByLabel("Message to the agent").fill(text);
  await page.keyboard.press("Control+Enter");
}

test("a session is started by its form, and answers", async () => {
  const page = await stage.page();
  await page.goto("/new");
  await page.getByLabel("What should be done?").fill(
    'Make a file.\nTHINK:A file it is.\nSAY:I make **one**.\nTOOL:create:{"path":"made.txt","file_text":"alpha\\nbeta\\n"}\nTOOL:bash:{"command":"echo shell says hello; exit 4"}\nSAY:It is made.',
  );
  await page.getByRole("combobox", { name: /^Model/ }).fill("scripted");
  assert.equal(await page.getByLabel("Folder").inputValue(), stage.portal.workspace);
  await page.getByText("Allow everything").click();
  await page.keyboard.press("Control+Enter");
  await page.waitForURL("**/sessions/*");
  await page.locator(".markdown").getByText("It is made.").waitFor();

  assert.equal(await page.locator(".markdown strong").first().textContent(), "one");
  // Reasoning is folded; a key opens everything that is.
  await see(page, "A file it is.");
  assert.equal(await page.locator(".reasoning-text").count(), 0);
  await page.getByRole("button", { name: /^Thought/ }).click();
  await page.locator(".reasoning-text").waitFor();
  // A small diff is open, with what was added.
  await page.locator(".diff-line.added", { hasText: "alpha" }).waitFor();
  // A command that failed says how, and shows its output when opened.
  const command = page.locator('.tool[data-progress="failed"]');
  await command.locator(".mark-denied", { hasText: "exit 4" }).waitFor();
  await command.locator(".fold").click();
  await command.getByLabel("Output").getByText("shell says hello").waitFor();

  await send(page, "SAY:And a second answer.");
  await page.locator(".markdown", { hasText: "And a second answer." }).waitFor();
  assert.equal(await page.getByLabel("Message to the agent").inputValue(), "");
});

test("text is shown while it is written", async () => {
  const session = await stage.portal.session("STREAM:400:25", { policy: "allow-all" });
  const page = await stage.page();
  await page.goto(`/sessions/${session.id}`);
  await page.locator(".writing").waitFor();
  const first = await page.locator(".writing").textContent();
  await until("there is more text", async () => (await page.locator(".text").textContent()).length > first.length);
  await page.getByRole("button", { name: "Abort" }).click();
  await see(page, "Aborted");
  await until("it is idle", async () => (await stage.portal.api("GET", `/sessions/${session.id}`)).state !== "working");
  assert.equal(await page.locator(".writing").count(), 0);
});

test("an agent at work is steered, and a queued message waits", async () => {
  const session = await stage.portal.session('TOOL:bash:{"command":"until [ -e go ]; do sleep 0.05; done","initial_wait":300}\nSAY:first is done', { policy: "allow-all" });
  const page = await stage.page();
  await page.goto(`/sessions/${session.id}`);
  await page.locator('.tool[data-progress="busy"]').waitFor();
  await page.getByLabel("Message to the agent").fill("SAY:queued answer");
  await page.getByRole("button", { name: "Queue" }).click();
  await page.locator(".unsent", { hasText: "queued answer" }).waitFor();
  await page.getByLabel("Message to the agent").fill("a word in between");
  await page.getByRole("button", { name: "Steer" }).click();
  stage.portal.file("project/go", "");
  await page.locator(".markdown", { hasText: "queued answer" }).waitFor();
  await page.locator(".user", { hasText: "a word in between" }).waitFor();
  await page.locator(".unsent").waitFor({ state: "detached" });
});

test("what an agent hands on is nested below its call", async () => {
  const prompt = 'TOOL:task:{"agent_type":"explore","description":"look around","prompt":"Look.\\nSAY:Seen by the other one."}\nSAY:Thank you.';
  const session = await stage.portal.session(prompt, { policy: "allow-all" });
  const page = await stage.page();
  await page.goto(`/sessions/${session.id}`);
  await page.locator(".markdown", { hasText: "Thank you." }).waitFor();
  const agent = page.locator(".fold", { hasText: "look around" });
  if ((await agent.getAttribute("aria-expanded")) === "false") await agent.click();
  await page.locator(".depth-1 .markdown", { hasText: "Seen by the other one." }).waitFor();
  await agent.click();
  await page.locator(".depth-1").first().waitFor({ state: "detached" });
});

test("code is copied as it was written, and scrolled by keys", async () => {
  const line = "x".repeat(400);
  const session = await stage.portal.session(`SAY:\`\`\`js\\nconst a = "<b>";\\n${line}\\n\`\`\``, { policy: "allow-all" });
  const page = await stage.page({ permissions: ["clipboard-read", "clipboard-write"] });
  await page.goto(`/sessions/${session.id}`);
  await page.locator(".markdown pre").hover();
  await page.getByRole("button", { name: "Copy" }).click();
  await page.getByRole("button", { name: "Copied" }).waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), `const a = "<b>";\n${line}\n`);
  await page.locator(".markdown pre").focus();
  await page.keyboard.press("ArrowRight");
  await until("it was scrolled", () => page.evaluate(() => document.querySelector(".markdown pre").scrollLeft > 0));
});

test("what a model writes is never a part of the page", async () => {
  const hostile = [
    "<img src=x onerror=\"window.broken=1\"><script>window.broken=2</script>",
    "[click](javascript:window.broken=3) ![see](https://tracker.invalid/pixel.png?secret)",
    "<a href=\"data:text/html,x\">a</a> <svg onload=\"window.broken=4\"></svg>",
    "[data](data:text/html;base64,PHNjcmlwdD4=) [vb](vbscript:x) <javascript:window.broken=5>",
    "```\"><script>window.broken=6</script>\\ncode\\n```",
    "&lt;img src=x onerror=window.broken=9&gt; &copy; &notit;",
    "<style>body{display:none}</style><iframe src=\"/\"></iframe><form action=\"https://tracker.invalid\"><input></form>",
  ];
  const prompt = `${hostile.map((line) => `SAY:${line}\\n\\n`).join("\n")}\nTOOL:bash:${JSON.stringify({ command: "echo '<img src=x onerror=window.broken=7>'", description: "<b>x</b>" })}\nSAY:The end.`;
  const session = await stage.portal.session(prompt, { policy: "allow-all", name: "<img src=x onerror=window.broken=8>" });
  const page = await stage.page();
  const asked = [];
  page.on("request", (request) => asked.push(request.url()));
  await page.goto(`/sessions/${session.id}`);
  await page.locator(".markdown", { hasText: "The end." }).waitFor();
  await page.locator(".tool .fold").click();
  await page.locator(".output").first().waitFor();
  await page.goto("/sessions");
  await page.locator(".session-row").first().waitFor();
  await page.goto(`/sessions/${session.id}`);
  await page.locator(".markdown", { hasText: "The end." }).waitFor();
  const found = await page.evaluate(() => ({
    broken: window.broken ?? null,
    elements: document.querySelectorAll(".transcript :is(script, iframe, style, form, img, object, embed)").length,
    links: [...document.querySelectorAll(".transcript a")].map((link) => link.getAttribute("href")).filter((address) => address !== null),
    handlers: [...document.querySelectorAll(".transcript *")].some((element) => element.getAttributeNames().some((name) => name.startsWith("on"))),
  }));
  assert.equal(found.broken, null);
  await see(page, "© &notit;");
  assert.equal(found.elements, 0);
  assert.equal(found.handlers, false);
  assert.deepEqual(found.links.filter((address) => !/^https?:/.test(address)), []);
  assert.deepEqual(asked.filter((url) => !url.startsWith(stage.portal.url)), []);
});

test("a session is renamed, stopped, gone on with and deleted", async () => {
  const session = await stage.portal.session("SAY:here I am", { policy: "allow-all" });
  const page = await stage.page();
  await page.goto(`/sessions/${session.id}`);
  await page.locator(".markdown", { hasText: "here I am" }).waitFor();
  await page.getByRole("button", { name: "Rename" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill("A better name");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "A better name" }).waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await page.locator(".session-head .state", { hasText: "closed" }).waitFor();
  await send(page, "SAY:and again");
  await page.locator(".markdown", { hasText: "and again" }).waitFor();
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.waitForURL("**/sessions");
  await until("it is gone", async () => (await page.getByText("A better name").count()) === 0);
});

test("an error of the model is told in the transcript, and the session goes on", async () => {
  const session = await stage.portal.session("FAIL:400", { policy: "allow-all" });
  const page = await stage.page();
  await page.goto(`/sessions/${session.id}`);
  await page.locator(".notice.error").waitFor();
  await page.locator(".session-head .state", { hasText: "failed" }).waitFor();
  await send(page, "SAY:better now");
  await page.locator(".markdown", { hasText: "better now" }).waitFor();
});

test("a refusal of the server is shown with what to do", async () => {
  const page = await stage.page({ forgives: REFUSALS });
  await page.goto("/new");
  await page.getByLabel("Folder").fill("not/absolute");
  await page.getByRole("button", { name: "Start session" }).click();
  const words = await page.getByRole("alert").textContent();
  assert.ok(words.length > 10, words);
  assert.ok(page.url().endsWith("/new"));
});

// Issues: the board with its reasons, moved by mouse and by keys, the inbox, one issue, and the editor of workflows.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { findings } from "./accessible.mjs";
import { see, setStage, until } from "./stage.mjs";

const issue = (identifier, more = {}) => ({ id: `id-${identifier}`, identifier, title: `Mend ${identifier}`, state: "To Do", ...more });

/** A portal with two workflows: one whose agent never ends, and one whose agent asks. */
function prepare(portal) {
  const project = (name, yaml, prompt, issues) => {
    const folder = join(portal.workspace, name);
    mkdirSync(folder);
    writeFileSync(join(folder, "issues.json"), JSON.stringify(issues));
    writeFileSync(
      join(folder, "WORKFLOW.md"),
      `---\ntracker:\n  kind: file\n  path: ${folder}/issues.json\n  active_states: [To Do, In Progress]\n  handoff_state: Review\n  terminal_states: [Done]\npolling: { interval_ms: 100 }\nworkspace: { root: ${folder}/ws }\n${yaml}---\n${prompt}\n`,
    );
    return `[[orchestrator]]\nworkflow = "${folder}/WORKFLOW.md"\n`;
  };
  const busy = project("busy", "agent: { kind: mock, max_concurrent_agents: 1 }\nmock: { turn_delay_ms: 600000 }\n", "Do {{ .issue.title }}.", [
    issue("A", { priority: 1 }),
    issue("B"),
    issue("C", { blocked_by: [{ id: "id-A", identifier: "A", state: "To Do" }] }),
  ]);
  const asks = project(
    "asks",
    "agent: { kind: native, max_turns: 1 }\nnative: { model: scripted }\n",
    '{{ if .run.is_continuation }}SAY:thanks{{ else }}TOOL:issue-ask_person:{"question":"Which colour?"}\nSAY:asked{{ end }}',
    [issue("Q", { description: "It needs a **colour**." })],
  );
  writeFileSync(join(portal.home, "config.toml"), busy + asks);
}

const tracker = (portal, project, identifier) => JSON.parse(readFileSync(join(portal.workspace, project, "issues.json"), "utf8")).find((known) => known.identifier === identifier);
const cardIn = (page, column, identifier) => page.locator(`[data-column="${column}"] [data-identifier="${identifier}"]`);

const stage = setStage(null);

test("the board has every issue in its column, and says why it does not run", async () => {
  const portal = await stage.another(prepare);
  const page = await stage.page({ portal });
  await page.goto("/issues");
  await cardIn(page, "Running", "A").waitFor();
  await cardIn(page, "Running", "A").getByText("turn 1/20").waitFor();
  await cardIn(page, "Running", "A").getByText("mock").waitFor();
  await cardIn(page, "Held", "B").getByText("1 of 1 slots of the workflow are taken").waitFor();
  await cardIn(page, "Held", "C").getByText("It is blocked by A").waitFor();
  await cardIn(page, "Parked", "Q").getByText("The agent asks: Which colour?").or(cardIn(page, "Parked", "Q").getByText("Which colour?")).first().waitFor();
  assert.deepEqual(await findings(page), []);
  await page.getByRole("button", { name: "Table" }).click();
  await page.locator("tr[data-identifier]").first().waitFor();
  assert.equal(await page.locator("tr[data-identifier]").count(), 4);
  assert.deepEqual(await findings(page), []);
  await page.getByLabel("Filter issues").fill("mend c");
  await until("one row is left", async () => (await page.locator("tr[data-identifier]").count()) === 1);
  await page.getByLabel("Filter issues").fill("");
  await page.getByLabel("Workflow", { exact: true }).selectOption({ label: "asks" });
  await until("only one workflow is shown", async () => (await page.locator("tr[data-identifier]").count()) === 1);
});

test("issues are dragged and moved by keys", async () => {
  const portal = await stage.another(prepare);
  const page = await stage.page({ portal });
  await page.goto("/issues?view=states");
  await cardIn(page, "To Do", "C").waitFor();
  await cardIn(page, "To Do", "C").dragTo(page.locator('[data-column="Done"]'));
  await until("the tracker has it", () => tracker(portal, "busy", "C").state === "Done");
  await page.goto("/issues");
  await cardIn(page, "Running", "A").dragTo(page.locator('[data-column="Parked"]'));
  await cardIn(page, "Parked", "A").waitFor();
  await cardIn(page, "Running", "B").waitFor();
  // The same without a mouse.
  await cardIn(page, "Running", "B").focus();
  await page.keyboard.press("m");
  await page.getByRole("button", { name: "Review" }).click();
  await until("the tracker has it", () => tracker(portal, "busy", "B").state === "Review");
  await cardIn(page, "Parked", "A").focus();
  await page.keyboard.press("s");
  await cardIn(page, "Running", "A").waitFor();
  await cardIn(page, "Running", "A").focus();
  await page.keyboard.press("x");
  await cardIn(page, "Parked", "A").waitFor();
  await page.keyboard.press("?");
  await see(page, "Move to a state");
});

test("a question is answered in the inbox, and the issue leads to its session", async () => {
  const portal = await stage.another(prepare);
  const page = await stage.page({ portal });
  await page.goto("/inbox");
  await see(page, "Which colour?");
  assert.deepEqual(await findings(page), []);
  await page.getByLabel("Answer to Q").fill("Blue, please.");
  await page.getByRole("button", { name: "Answer" }).click();
  await until("the issue is handed over", () => tracker(portal, "asks", "Q").state === "Review");
  await page.goto("/issues");
  await cardIn(page, "Waiting for review", "Q").locator("a").first().click();
  await page.waitForURL("**/issues/*/id-Q");
  await page.locator("strong", { hasText: "colour" }).waitFor();
  await see(page, "Blue, please.");
  assert.deepEqual(await findings(page), []);
  await page.locator(".issue-sessions a").first().click();
  await page.waitForURL("**/sessions/*");
  await see(page, "thanks");
});

/** A portal with an issue that two agents worked on, and a person chooses. */
function prepareCandidates(portal) {
  const folder = join(portal.workspace, "choice");
  const origin = join(folder, "origin");
  mkdirSync(origin, { recursive: true });
  const git = (...args) => execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@example.com", ...args], { cwd: origin });
  git("init", "-q", "-b", "main", ".");
  git("commit", "-q", "--allow-empty", "-m", "one");
  writeFileSync(join(folder, "issues.json"), JSON.stringify([issue("A")]));
  writeFileSync(
    join(folder, "WORKFLOW.md"),
    `---\ntracker:\n  kind: file\n  path: ${folder}/issues.json\n  active_states: [To Do]\n  handoff_state: Review\n  terminal_states: [Done]\npolling: { interval_ms: 100 }\nworkspace: { root: ${folder}/ws, repository: ${origin} }\nagent: { kind: native, max_turns: 1 }\nnative: { model: scripted }\ndispatch:\n  rules: [{ candidates: [native, native], judge: person }]\n  judge: { commands: [grep -q good work.txt] }\n---\n` +
      '{{ if eq .run.candidate 1 }}TOOL:bash:{"command":"echo good > work.txt"}{{ else }}TOOL:bash:{"command":"echo bad > work.txt"}{{ end }}\n',
  );
  writeFileSync(join(portal.home, "config.toml"), `[[orchestrator]]\nworkflow = "${folder}/WORKFLOW.md"\n`);
}

test("candidates are compared, and a person promotes one", async () => {
  const portal = await stage.another(prepareCandidates);
  const page = await stage.page({ portal });
  await page.goto("/inbox");
  await page.getByRole("link", { name: "Compare candidates" }).click();
  await page.waitForURL("**/issues/*/id-A");
  const panel = page.getByRole("region", { name: "Candidates", exact: true });
  await panel.getByText("not met").waitFor();
  assert.equal(await panel.locator("tbody tr").count(), 2);
  await panel.locator("tbody tr").first().getByRole("button", { name: "1 file" }).click();
  await page.getByRole("region", { name: "Changes of candidate 1" }).getByText("good").waitFor();
  assert.deepEqual(await findings(page), []);
  await page.getByRole("button", { name: "Promote 1" }).click();
  await until("the issue is handed over", () => tracker(portal, "choice", "A").state === "Review");
  await panel.waitFor({ state: "detached" });
  assert.equal(readFileSync(join(portal.workspace, "choice", "ws", "A", "work.txt"), "utf8"), "good\n");
});

test("a workflow is edited with its problems and the prompt of a real issue", async () => {
  const portal = await stage.another(prepare);
  const page = await stage.page({ portal });
  await page.goto("/issues");
  await page.locator(".workflow-list a", { hasText: "busy" }).click();
  await page.waitForURL("**/workflows/*");
  await page.getByLabel("Issue of the preview").selectOption({ label: "B Mend B" });
  await page.locator(".workflow-prompt", { hasText: "Do Mend B." }).waitFor();
  const field = page.getByLabel("Text of the workflow");
  const text = await field.inputValue();
  await field.fill(text.replace(".issue.title", ".issue.tilte"));
  await page.locator(".workflow-problems .warn", { hasText: "tilte" }).waitFor();
  await page.locator(".workflow-preview .trouble", { hasText: "tilte" }).waitFor();
  await field.fill(text.replace("{{ .issue.title }}", "{{ if }}"));
  await page.locator(".workflow-problems .bad").first().waitFor();
  assert.equal(await page.getByRole("button", { name: "Save" }).isEnabled(), false);
  await field.fill(text.replace("Do {{", "Please do {{"));
  await page.locator(".workflow-prompt", { hasText: "Please do Mend B." }).waitFor();
  assert.deepEqual(await findings(page), []);
  await page.getByRole("button", { name: "Save" }).click();
  await until("it is saved", () => readFileSync(join(portal.workspace, "busy", "WORKFLOW.md"), "utf8").includes("Please do"));
});

test("board, inbox, issue and editor fit a phone", async () => {
  const portal = await stage.another(prepare);
  const page = await stage.page({ portal, viewport: { width: 360, height: 740 } });
  await page.goto("/issues");
  await cardIn(page, "Running", "A").waitFor();
  const { key } = (await portal.api("GET", "/issues")).workflows.find(({ name }) => name === "busy");
  for (const [path, shows] of [
    ["/issues", "Mend A"],
    ["/issues?view=states", "Mend A"],
    ["/issues?view=table", "Mend A"],
    ["/inbox", "Which colour?"],
    [`/issues/${key}/id-A`, "Mend A"],
    [`/workflows/${key}`, "Prompt for"],
  ]) {
    await page.goto(path);
    await see(page, shows);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth > window.innerWidth || document.getElementById("main").scrollWidth > window.innerWidth);
    assert.equal(wide, false, `${path} is wider than the screen`);
    assert.deepEqual(await findings(page), [], path);
  }
});

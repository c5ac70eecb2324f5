// Queue, costs, changes, search, and sessions beside the chart of their run.

import assert from "node:assert/strict";
import { writeFileSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { REFUSALS, see, setStage, until } from "./stage.mjs";

const MANY = 10_000;

const ENTRY = `
models: { driving: scripted }
tasks:
  say: { model: { category: driving }, prompt: "SAY:hello there", requireUserInput: false }
jobs:
  say: { work: { kind: Ref, taskId: say } }
`;

const stage = setStage((portal) => {
  portal.args = ["--entry", portal.file("jobs.yaml", ENTRY)];
});

test("costs are shown as bars and as a table, and unknown is not zero", async () => {
  await stage.portal.session("SAY:hi");
  await until("the call is in the ledger", async () => (await stage.portal.api("GET", "/costs?by=model")).rows.length > 0);
  const page = await stage.page();
  await page.goto("/costs?by=model");
  await page.locator(".cost-table tbody tr", { hasText: "scripted" }).waitFor();
  assert.equal(await page.locator(".chart-bar").count(), 1);
  await page.getByLabel("Sum up by").selectOption("agent");
  await page.locator(".cost-table tbody tr", { hasText: "native" }).waitFor();
});

test("ten thousand items are a list of which few are drawn, and the queue is paused and resumed", async () => {
  const portal = await stage.another((portal) => {
    const at = "2026-01-01T00:00:00.000Z";
    const item = (index) => ({ id: `s${index}`, kind: "turn", project: "/p", runtime: "native", account: "a", host: "local", enqueued: at, attempt: 1 });
    const lines = Array.from({ length: MANY }, (_, index) => JSON.stringify({ at, type: "enqueued", owner: "gone", item: item(index) }));
    mkdirSync(join(portal.home, "queue"));
    writeFileSync(join(portal.home, "queue", "queue.jsonl"), `${[JSON.stringify({ at, type: "paused" }), ...lines].join("\n")}\n`);
  });
  const page = await stage.page({ portal });
  await page.goto("/queue");
  await see(page, `${MANY} waiting; paused`);
  await page.locator(".queue-row").first().waitFor();
  const drawn = await page.locator(".queue-row").count();
  assert.ok(drawn < 200, `${drawn} rows are drawn`);
  await see(page, "waits for its session to be opened again");
  // Rows that were not loaded at first are, on the way to them.
  await until("the last item is shown", async () => {
    await page.locator(".queue-list .vlist").evaluate((list) => list.scrollTo(0, list.scrollHeight));
    return (await page.locator('[data-item="s9999"]').count()) === 1;
  });
  await page.getByRole("button", { name: "Resume" }).click();
  await page.getByRole("button", { name: "Pause" }).click();
  await see(page, "paused");
  await page.getByRole("button", { name: "Stop all" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
});

test("what a session changed is shown by turn, commented on, and taken back", async () => {
  const path = join(stage.portal.workspace, "made.txt");
  const session = await stage.portal.session(`TOOL:create:${JSON.stringify({ path, file_text: "one\ntwo\n" })}`, { policy: "allow-all" });
  await until("it is idle", async () => (await stage.portal.api("GET", `/sessions/${session.id}`)).state === "idle");
  const page = await stage.page();
  await page.goto(`/sessions/${session.id}`);
  await page.getByRole("tab", { name: "Changes" }).click();
  await page.locator(".changed-file .diff-line.added", { hasText: "two" }).waitFor();
  await page.getByLabel("Comment on line 2").click();
  await page.getByLabel("Comment", { exact: true }).fill("SAY:three is better");
  await page.getByRole("button", { name: "Add comment" }).click();
  // Another tab does not lose it.
  await page.getByRole("tab", { name: "Transcript" }).click();
  await page.getByRole("tab", { name: "Changes" }).click();
  await page.getByRole("button", { name: "Send 1 comment" }).click();
  await see(page, "made.txt:2");
  await until("it is idle", async () => (await stage.portal.api("GET", `/sessions/${session.id}`)).state === "idle");
  await page.getByRole("tab", { name: "Changes" }).click();
  await page.getByRole("button", { name: "Revert file" }).click();
  await see(page, "No file was changed");
  await page.getByRole("tab", { name: "Raw" }).click();
  await page.getByLabel("Filter events").fill("tool.execution_start");
  await page.locator(".raw-events summary").first().click();
  await page.locator(".raw-json pre", { hasText: "made.txt" }).first().waitFor();
});

test("limits and budgets are set in forms, and a line that is no number is refused", async () => {
  const page = await stage.page({ forgives: REFUSALS });
  await page.goto("/settings");
  const limits = page.getByRole("region", { name: "Limits" });
  await limits.getByLabel(/^per_job/).fill("nightly 2");
  await limits.getByRole("button", { name: "Save" }).click();
  await see(limits, "it must be a table");
  await limits.getByLabel(/^per_job/).fill("nightly = 2");
  await limits.getByRole("button", { name: "Save" }).click();
  await see(limits, "Saved.");
  const agents = page.getByRole("region", { name: "Agents" });
  await agents.getByPlaceholder("name").fill("reviewer");
  await agents.getByRole("button", { name: "Add an agent" }).click();
  await agents.getByLabel(/^runtime/).fill("native");
  await agents.getByText("More settings").click();
  await agents.getByLabel(/^budget/).fill("day = 20");
  await agents.getByRole("button", { name: "Save" }).click();
  await see(agents, "Saved.");
  const { values } = await stage.portal.api("GET", "/settings");
  assert.deepEqual([values.limits.per_job, values.agents.reviewer.budget], [{ nightly: 2 }, { day: 20 }]);
});

test("transcripts are searched, and a run shows its sessions beside its chart and is deleted", async () => {
  const run = await stage.portal.api("POST", "/runs", { job: "say", workspace: stage.portal.workspace });
  await until("it is done", async () => (await stage.portal.api("GET", `/runs/${run.id}`)).state === "succeeded");
  const page = await stage.page();
  await page.goto("/search");
  await page.getByLabel("Search all transcripts").fill("HELLO THERE");
  await page.locator(".search-hit").first().waitFor();
  await page.goto(`/runs/${run.id}`);
  await page.locator(".node", { hasText: "say" }).click();
  await page.getByRole("button", { name: "Show here" }).first().click();
  await page.locator(".beside .markdown", { hasText: "hello there" }).waitFor();
  await page.getByRole("button", { name: "Larger" }).click();
  await see(page, "125 %");
  await page.getByRole("tab", { name: "Changes" }).click();
  await see(page, "No file was changed.");
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.waitForURL("**/runs");
  const gone = await fetch(`${stage.portal.url}/api/v1/runs/${run.id}`);
  assert.equal(gone.status, 404);
});

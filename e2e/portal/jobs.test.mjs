// Jobs: the grid, a run as it moves, its sessions and decisions, and what can be done with it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { OUTAGES, see, setStage, until } from "./stage.mjs";

const ENTRY = `
models: { driving: scripted }
tasks:
  greet: { model: { category: driving }, prompt: "SAY:hello $user-input", requireUserInput: true }
  left: { model: { category: driving }, prompt: "SAY:left", requireUserInput: false }
  right: { model: { category: driving }, prompt: "SAY:right", requireUserInput: false }
  waits: { model: { category: driving }, prompt: 'TOOL:bash:{"command":"until [ -e go ]; do sleep 0.05; done","initial_wait":300}', requireUserInput: false }
  fails:
    model: { category: driving }
    prompt: "SAY:done"
    requireUserInput: false
    criteria: { files: [gone.txt], failureAction: { retryTimes: 0 } }
jobs:
  tour:
    work:
      kind: Seq
      works:
        - { kind: Ref, taskId: greet }
        - { kind: Par, works: [{ kind: Ref, taskId: left }, { kind: Ref, taskId: right }] }
  waits: { work: { kind: Ref, taskId: waits } }
  fails: { work: { kind: Ref, taskId: fails } }
grid:
  - { keyword: show, jobs: [{ name: tour, jobName: tour }, null, { name: wait, jobName: waits }] }
  - { keyword: break, jobs: [{ name: fail, jobName: fails }] }
`;

const stage = setStage((portal) => {
  portal.args = ["--entry", portal.file("jobs.yaml", ENTRY)];
});

async function start(page, job, input) {
  await page.goto("/jobs");
  await page.locator(`[data-job-name="${job}"]`).click();
  if (input !== undefined) await page.getByLabel("What it should do").fill(input);
  await page.getByRole("button", { name: `Start job: ${job}` }).click();
  await page.waitForURL("**/runs/*");
}

test("the grid has the rows, the columns and the gaps of the file", async () => {
  const page = await stage.page();
  await page.goto("/jobs");
  await page.locator(".job-grid").waitFor();
  const cells = await page.evaluate(() =>
    [...document.querySelectorAll(".job-grid tr")].map((row) => [...row.children].map((cell) => cell.textContent)),
  );
  assert.deepEqual(cells, [["show", "tour", "", "wait"], ["break", "fail", "", ""]]);
  await page.locator('[data-job-name="tour"]').click();
  assert.equal(await page.getByRole("button", { name: "Start job: tour" }).isEnabled(), false);
  await page.getByLabel("What it should do").fill("you");
  assert.equal(await page.getByRole("button", { name: "Start job: tour" }).isEnabled(), true);
  await page.locator(".job-panel .node").first().waitFor();
  await page.locator('[data-job-name="waits"]').click();
  assert.equal(await page.getByRole("button", { name: "Start job: waits" }).isEnabled(), true);
  await page.keyboard.press("Escape");
  await page.locator(".job-panel").waitFor({ state: "detached" });
});

test("a run is followed on its chart, and its nodes lead to sessions", async () => {
  const page = await stage.page();
  await start(page, "tour", "everybody");
  await page.locator(".session-head .state", { hasText: "succeeded" }).waitFor();
  await until("all nodes are done", async () => (await page.locator('.node[data-state="succeeded"]').count()) === 3);
  await see(page, "task succeeded");
  await page.locator(".node", { hasText: "greet" }).click();
  await page.locator(".work-session").first().click();
  await page.waitForURL("**/sessions/*");
  await page.locator(".markdown", { hasText: "hello everybody" }).waitFor();
  await page.locator('a[href^="/runs/"]').first().click();
  await page.waitForURL("**/runs/*");
});

test("a run that is under way shows so, and is stopped", async () => {
  const page = await stage.page();
  await start(page, "waits");
  await page.locator('.node[data-state="running"]').waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await page.locator(".session-head .state", { hasText: "canceled" }).waitFor();
  await page.goto("/runs");
  await page.locator(".run-row", { hasText: "canceled" }).waitFor();
});

test("a run that failed says why, and is tried again", async () => {
  const page = await stage.page();
  await start(page, "fails");
  await page.locator('.node[data-state="failed"]').waitFor();
  await page.locator(".session-head .state", { hasText: "failed" }).waitFor();
  await see(page, "task failed");
  const first = page.url();
  await page.getByRole("button", { name: "Retry" }).click();
  await until("it is another run", () => page.url() !== first);
  await page.locator('.node[data-state="failed"]').waitFor();
});

test("a run outlives a crash of the server", async () => {
  const page = await stage.page({ forgives: OUTAGES });
  await start(page, "waits");
  await page.locator('.node[data-state="running"]').waitFor();
  await stage.portal.stop("SIGKILL");
  await page.locator('[data-connection="lost"]').first().waitFor();
  stage.portal.file("project/go", "");
  await stage.portal.start();
  await page.locator(".session-head .state", { hasText: "interrupted" }).waitFor();
  await page.locator('.node[data-state="stopped"]').waitFor();
  await page.getByRole("button", { name: "Resume" }).click();
  await page.locator(".session-head .state", { hasText: "succeeded" }).waitFor();
  await page.locator('.node[data-state="succeeded"]').waitFor();
});

test("the example has a job that is done at once and one that goes on", async () => {
  const portal = await stage.another((portal) => {
    portal.args = ["--entry", fileURLToPath(new URL("../../examples/demo.yaml", import.meta.url))];
  });
  const order = (job) => portal.api("POST", "/runs", { job, workspace: portal.workspace });
  const [fix, watch] = [await order("fix"), await order("watch")];
  const page = await stage.page({ portal });
  await page.goto(`/runs/${fix.id}`);
  await page.locator(".session-head .state", { hasText: "succeeded" }).waitFor();
  await page.goto(`/runs/${watch.id}`);
  await page.locator('.node[data-state="running"]', { hasText: "watch" }).click();
  await page.locator(".work-session").first().click();
  await page.locator('.tool[data-progress="ok"]').first().waitFor();
});

// Whether people who do not see a page, or see it badly, can use it: axe-core's serious findings.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Run as a file of the page's own would be: the page's policy forbids scripts from elsewhere. */
export async function findings(page) {
  await page.evaluate(AXE);
  const result = await page.evaluate(async () => {
    const { violations } = await globalThis.axe.run(document, { resultTypes: ["violations"] });
    return violations.map(({ id, impact, nodes }) => ({ id, impact, where: nodes.map((node) => `${node.target} ${node.failureSummary ?? ""}`) }));
  });
  return result.filter(({ impact }) => impact === "serious" || impact === "critical");
}

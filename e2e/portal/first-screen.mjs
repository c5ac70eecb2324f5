// How soon a page shows certain words: `node first-screen.mjs URL WORDS RUNS` prints the milliseconds of each visit, with a
// browser that has never seen the page (cold) and with one that has (warm). `cargo xtask bench portal` runs it.

import { PATIENCE, openBrowser } from "./stage.mjs";

const [url, words, runs] = process.argv.slice(2);

/** In the page: notes when the words are there and have been drawn. */
function watch(words) {
  const look = () => {
    if (!document.body?.textContent.includes(words)) {
      requestAnimationFrame(look);
      return;
    }
    // The frame with them is on the screen when the next one begins.
    requestAnimationFrame(() => {
      window.shownAfter = performance.now();
    });
  };
  requestAnimationFrame(look);
}

async function visit(context) {
  const page = await context.newPage();
  await page.addInitScript(watch, words);
  await page.goto(url, { waitUntil: "commit" });
  try {
    await page.waitForFunction(() => window.shownAfter !== undefined, null, { timeout: PATIENCE });
  } catch {
    const instead = await page.evaluate(() => document.body.innerText.slice(0, 300));
    throw new Error(`"${words}" never came; the page says: ${instead}`);
  }
  const time = await page.evaluate(() => window.shownAfter);
  await page.close();
  return time;
}

const browser = await openBrowser();
const options = { viewport: { width: 1280, height: 800 } };
const cold = [];
for (let run = 0; run < Number(runs); run += 1) {
  const context = await browser.newContext(options);
  cold.push(await visit(context));
  await context.close();
}
const warm = [];
const context = await browser.newContext(options);
await visit(context);
for (let run = 0; run < Number(runs); run += 1) warm.push(await visit(context));
await browser.close();
console.log(JSON.stringify({ cold, warm }));

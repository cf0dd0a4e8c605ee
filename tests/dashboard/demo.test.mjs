// The demo in a browser: pictures of four moments, what the page says in each, and whether
// axe-core finds a serious violation, in both widths and both themes.

import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { after, before, test } from "node:test";
import { ended, launch, newPage, violations } from "./browser.mjs";
import { MockGateway } from "./mock.mjs";

const LIMIT = { timeout: 60_000 };
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PICTURES = path.resolve(process.env.PICTURES ?? "pictures");
const VIEWS = [
  { name: "1280-light", viewport: { width: 1280, height: 900 }, colorScheme: "light" },
  { name: "1280-dark", viewport: { width: 1280, height: 900 }, colorScheme: "dark" },
  { name: "390-light", viewport: { width: 390, height: 844 }, colorScheme: "light" },
  { name: "390-dark", viewport: { width: 390, height: 844 }, colorScheme: "dark" },
];

/** What must be readable, per question, at each moment of the recording. */
const MOMENTS = [
  { name: "healthy", at: 90, headline: "All is well",
    says: ["No client: 0 of", "Nothing: every backend is in use", "every route uses its first tier",
      "Nothing has to.", "no reload, action or restart"] },
  { name: "provider-down", at: 190, headline: "Degraded, no client hurt",
    says: ["No client: 0 of", "anthropic/claude-sonnet is open since 14:02:01: 3 × 529 overloaded",
      "chat → openai/gpt-5", "next trial in 22 s; needs 3 trials in a row", "no reload"] },
  { name: "recovered", at: 340, headline: "All is well",
    says: ["No client: 0 of", "Nothing: every backend is in use", "every route uses its first tier"] },
  { name: "mcp-crashed", at: 404, headline: "Degraded, clients are hurt",
    says: ["4 MCP calls failed", "mcp:github is open since 14:06:26: 2 × connection refused",
      "mcp:github has no stand-in", "next trial in 13 s; needs 1 trial"] },
];

let browser;
let mock;
let url;
before(async () => {
  mkdirSync(PICTURES, { recursive: true });
  browser = await launch();
  mock = new MockGateway();
  url = await mock.listen();
});
after(async () => {
  await browser.close();
  await mock.stop();
});

const opened = async (options, query, hash = "") => {
  const page = await newPage(browser, options);
  await page.goto(`${url}/?demo&${query}${hash}`);
  await page.locator(".lane").first().waitFor();
  return page;
};

for (const moment of MOMENTS) {
  for (const { name, ...options } of VIEWS) {
    test(`demo, ${moment.name}, ${name}: answers the questions, accessible`, LIMIT, async () => {
      const page = await opened(options, `at=${moment.at}&pause`);
      assert.equal(await page.locator("h1").innerText(), moment.headline);
      const said = (await page.locator(".answers").innerText()).replaceAll("\u200b", "");
      for (const part of moment.says) assert.ok(said.includes(part), `${part} in\n${said}`);
      const file = path.join(PICTURES, `${moment.name}-${name}.png`);
      await page.screenshot({ path: file, fullPage: true });
      assert.deepEqual(await violations(page, AXE), []);
      await ended(page);
    });
  }
}

test("demo: a drawer is accessible, in both widths", LIMIT, async () => {
  for (const { name, ...options } of VIEWS) {
    const page = await opened(options, "at=190&pause", "#/decision/req_demo_0023");
    await page.locator(".drawer h3").first().waitFor();
    await page.screenshot({ path: path.join(PICTURES, `drawer-${name}.png`) });
    assert.deepEqual(await violations(page, AXE), [], name);
    await ended(page);
  }
});

test("demo: it plays, pauses and jumps", LIMIT, async () => {
  const page = await opened({}, "at=115&speed=16");
  await page.locator("h1", { hasText: "Degraded" }).waitFor();
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByRole("button", { name: "recovered" }).click();
  await page.locator("h1", { hasText: "All is well" }).waitFor();
  assert.equal(mock.asked.length, 0, "the demo asks the gateway for nothing but files");
  await ended(page);
});

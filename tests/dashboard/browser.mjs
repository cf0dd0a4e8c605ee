// A browser for the tests, and pages that tolerate no error: a message in the console, an uncaught
// exception or something that the content security policy refused fails the test.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { chromium } from "playwright-core";

const PROGRAMS = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser"];

/** Debian's Chromium; root, as in a container, has no sandbox. */
export function launch() {
  const executablePath = PROGRAMS.find((it) => it && existsSync(it));
  assert.ok(executablePath, "install Chromium (Debian: `apt install chromium`)");
  const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  return chromium.launch({ executablePath, args });
}

/** A page of its own, whose errors are collected in `page.troubles`. */
export async function newPage(browser, options = {}) {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 900 }, timezoneId: "UTC", ...options,
  });
  const page = await context.newPage();
  page.troubles = [];
  page.on("pageerror", (error) => page.troubles.push(`uncaught: ${error.message}`));
  page.on("console", (message) => {
    // The browser reports every answer that is no success; tests look at those themselves.
    const isAnswer = message.text().startsWith("Failed to load resource");
    if (message.type() === "error" && !isAnswer) page.troubles.push(message.text());
  });
  return page;
}

export async function ended(page) {
  assert.deepEqual(page.troubles, []);
  await page.context().close();
}

/** What axe-core calls serious or critical. */
export async function violations(page, axeSource) {
  await page.evaluate(axeSource);
  const { violations: found } = await page.evaluate(() => globalThis.axe.run());
  return found.filter((it) => ["serious", "critical"].includes(it.impact))
    .map((it) => `${it.id}: ${it.nodes.map((node) => node.html).slice(0, 3).join(" | ")}`);
}

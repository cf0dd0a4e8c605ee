// The running demo (`tidegate serve --demo`) under traffic, for one round of its outage: what the
// page says and looks like while all is well, while a provider is down, while an MCP server has
// crashed and after both have recovered; then the same minutes as a recording that replays exactly.
//
// It takes about four minutes, because the demo's round does.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";
import { after, before, test } from "node:test";
import { ended, launch, newPage, violations } from "./browser.mjs";
import { callTool, openSession } from "./mcp_client.mjs";

const LIMIT = { timeout: 420_000 };
const PICTURES = path.resolve(process.env.PICTURES ?? "pictures");
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const VIEWS = [
  { name: "1280-light", viewport: { width: 1280, height: 900 }, colorScheme: "light" },
  { name: "1280-dark", viewport: { width: 1280, height: 900 }, colorScheme: "dark" },
  { name: "390-light", viewport: { width: 390, height: 844 }, colorScheme: "light" },
  { name: "390-dark", viewport: { width: 390, height: 844 }, colorScheme: "dark" },
];
const WORKERS = 6;

/** Seconds after the start, and what the page must answer to the five questions then. */
const MOMENTS = [
  { name: "healthy", at: 30, says: [/No client: 0 of/, /Nothing: every backend is in use/,
    /every route uses its first tier/, /Nothing has to/, /the gateway started/] },
  { name: "provider-down", at: 76, says: [/No client: 0 of/,
    /ebb\/tide-small is open since .*529 overloaded/, /demo → flow\/tide-small/,
    /ebb\/tide-small next trial in|ebb\/tide-small .*trial/, /the gateway started/] },
  { name: "mcp-crashed", at: 97, says: [/mcp:harbour \d+ MCP calls? failed/,
    /mcp:harbour is open since/, /mcp:harbour has no stand-in/, /mcp:harbour .*trial/] },
  { name: "recovered", at: 176, says: [/Nothing: every backend is in use/,
    /every route uses its first tier/, /Nothing has to/] },
];

let browser;
let folder;
let child;
let started;
const addresses = {};
const answered = new Map();
let isOver = false;
let workers = [];

before(async () => {
  mkdirSync(PICTURES, { recursive: true });
  folder = mkdtempSync(path.join(os.tmpdir(), "tidegate-running-"));
  browser = await launch();
  const args = ["serve", "--demo", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"];
  child = spawn(process.env.TIDEGATE_BINARY, args,
    { cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
  started = Date.now();
  let said = "";
  await new Promise((done, failed) => {
    child.on("exit", () => failed(new Error(`the demo ended:\n${said}`)));
    child.stderr.on("data", (part) => {
      said += part;
      if (/^serving$/m.test(said)) done();
    });
  });
  for (const [, row, url] of said.matchAll(/^ {2}(api|admin) +(http:\/\/[^\s/]+)/gm)) {
    addresses[row] = url;
  }
  workers = Array.from({ length: WORKERS }, (_, n) => traffic(n));
  workers.push(calls());
});
after(async () => {
  isOver = true;
  child?.removeAllListeners("exit");
  child?.kill("SIGKILL");
  await Promise.allSettled(workers);
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const count = (what) => answered.set(what, (answered.get(what) ?? 0) + 1);

/** A client that asks again and again, in sessions and without, plain and with streams. */
async function traffic(n) {
  for (let turn = 0; !isOver; turn += 1) {
    const session = turn % 5 === 0 ? {} : { "x-session-id": `s${(turn * WORKERS + n) % 24}` };
    const answer = await fetch(`${addresses.api}/v1/chat/completions`, {
      method: "POST", headers: { "content-type": "application/json", ...session },
      body: JSON.stringify({ model: "demo", stream: turn % 3 === 0,
        messages: [{ role: "user", content: "hello" }] }),
    });
    await answer.text();
    count(answer.status);
    await pause(200);
  }
}

/** An MCP client that calls a tool of each server. */
async function calls() {
  const session = await openSession(addresses.api);
  for (let id = 2; !isOver; id += 2) {
    await callTool(addresses.api, session, id, "tides_next_tide", { place: "Brest" });
    await callTool(addresses.api, session, id + 1, "harbour_list_ships", {});
    await pause(500);
  }
}

const command = (...args) => execFileSync(process.env.TIDEGATE_BINARY, args,
  { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });

test("the running demo: the page alone answers the five questions", LIMIT, async () => {
  const pages = [];
  for (const { name, ...options } of VIEWS) {
    const page = await newPage(browser, options);
    await page.goto(addresses.admin);
    pages.push([name, page]);
  }
  for (const moment of MOMENTS) {
    await pause(started + moment.at * 1000 - Date.now());
    for (const says of moment.says) {
      const answers = pages[0][1].locator(".answers");
      await answers.filter({ hasText: says }).waitFor({ timeout: 8_000 }).catch(async () => {
        const said = (await answers.innerText()).replaceAll("\u200b", "");
        assert.match(said, says, `${moment.name}, second ${(Date.now() - started) / 1000}`);
      });
    }
    for (const [name, page] of pages) {
      const file = path.join(PICTURES, `running-${moment.name}-${name}.png`);
      await page.screenshot({ path: file, fullPage: true });
    }
    assert.deepEqual(await violations(pages[1][1], AXE), [], moment.name);
  }
  for (const [, page] of pages) await ended(page);
  assert.deepEqual([...answered.keys()], [200], "every LLM request was answered");
});

test("the running demo: its recording replays exactly, and shows a better config", LIMIT, () => {
  command("sim", "--from-live", "15m", "-o", "incident.yaml", "--admin", addresses.admin);
  const first = command("sim", "--replay", "incident.yaml");
  assert.match(first, /the recording replays exactly: all \d+ requests are decided as recorded/);
  assert.equal(command("sim", "--replay", "incident.yaml"), first, "byte for byte");
  const requests = Number(/exactly: all (\d+)/.exec(first)?.[1]);
  console.log(`# replay: ${requests} requests of the running demo, decided alike`);
  assert.ok(requests > 500, first);
  // The demo tries an overloaded provider every eight seconds; this candidate waits for longer.
  writeFileSync(path.join(folder, "candidate.yaml"), `
health: { open_for: 45s, promotion_hold: 10s, probe: { every: 10s } }
providers: { ebb: { api: fake }, flow: { api: fake }, slack: { api: fake } }
routes: { demo: { tiers: [[ebb/tide-small, flow/tide-small], [slack/tide-small]] } }
default_route: demo
`);
  const diff = JSON.parse(
    command("sim", "--replay", "incident.yaml", "-c", "candidate.yaml", "--json"));
  const failed = diff.figures.find((it) => it.name === "failed attempts");
  assert.equal(failed.verdict, "better", JSON.stringify(diff.figures));
  assert.ok(failed.after < failed.before, JSON.stringify(failed));
});

// The page against a running gateway: an outage from its first failed request to its end, a
// restart, and actions with and without the token.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { ended, launch, newPage } from "./browser.mjs";
import { Gateway, McpServer, Provider, TOKEN } from "./gateway.mjs";
import { callTool, openSession } from "./mcp_client.mjs";

const LIMIT = { timeout: 120_000 };
const PICTURES = path.resolve(process.env.PICTURES ?? "pictures");
const SLOWLY = { timeout: 20_000 };
let browser;
let providers;
let harbour;
let gateway;
before(async () => {
  mkdirSync(PICTURES, { recursive: true });
  browser = await launch();
  providers = [new Provider(), new Provider()];
  harbour = new McpServer();
  gateway = await Gateway.make(providers, harbour);
});
after(async () => {
  await gateway?.stop();
  await Promise.all(providers.map((it) => it.stop()));
  await browser.close();
});

const requests = async (count) => {
  for (let n = 0; n < count; n += 1) assert.equal(await gateway.request(`s${n % 4}`), 200);
};

const opened = async (hash = "") => {
  const page = await newPage(browser);
  await page.goto(`${gateway.admin}/${hash}`);
  await page.locator('[data-phase="live"]').waitFor(SLOWLY);
  return page;
};

test("gateway: an outage is seen, explained and over, on one page", LIMIT, async () => {
  const [ebb] = providers;
  const page = await opened();
  await requests(8);
  await page.locator('.lane-row', { hasText: "ebb" }).first().waitFor(SLOWLY);
  await page.screenshot({ path: path.join(PICTURES, "gateway-healthy.png"), fullPage: true });
  ebb.status = 529;
  await requests(8);
  const row = page.locator('[data-backend="ebb/small"]');
  await row.locator(".sign", { hasText: "open" }).waitFor(SLOWLY);
  const answers = page.locator(".answers");
  await answers.getByText(/No client: 0 of/).waitFor(SLOWLY);
  await answers.getByText(/is open since .*529/).waitFor(SLOWLY);
  await answers.getByText(/→ flow\/large/).waitFor(SLOWLY);
  await answers.getByText(/next trial in/).first().waitFor(SLOWLY);
  await page.locator("#changes", { hasText: "closed → open" }).waitFor(SLOWLY);
  await page.locator(".failovers li").first().waitFor(SLOWLY);
  await page.screenshot({ path: path.join(PICTURES, "gateway-down.png"), fullPage: true });
  await page.locator(".failovers a.row", { hasText: "→" }).first().click();
  const drawer = page.locator(".drawer");
  await drawer.getByText("Answered by flow/large after 2 attempts.").waitFor(SLOWLY);
  await drawer.getByText("Why attempt 2 went to flow/large").waitFor(SLOWLY);
  await page.screenshot({ path: path.join(PICTURES, "gateway-decision.png") });
  // The link that somebody pastes into a channel shows the same to the next reader.
  const other = await newPage(browser);
  await other.goto(page.url());
  await other.locator(".drawer", { hasText: "Why attempt 2 went to flow/large" }).waitFor(SLOWLY);
  await ended(other);
  await ended(page);
});

test("gateway: an MCP server that is gone is seen, and the page goes on", LIMIT, async () => {
  const page = await opened();
  const session = await openSession(gateway.url);
  assert.match(await callTool(gateway.url, session, 2, "harbour_list_ships", {}), /Ebb, Flow/);
  await harbour.stop();
  for (let id = 3; id < 8; id += 1) {
    const said = await callTool(gateway.url, session, id, "harbour_list_ships", {});
    assert.match(said, /backend_unavailable|result_unknown/);
  }
  const row = page.locator(".failovers li", { hasText: "mcp:harbour" }).first();
  await row.waitFor(SLOWLY);
  await row.getByText("circuit open").waitFor(SLOWLY);
  await page.locator(".answers").getByText(/mcp:harbour.* MCP call/).waitFor(SLOWLY);
  await row.locator("a.row").click();
  await page.locator(".drawer").getByText(/The client got/).waitFor(SLOWLY);
  await page.screenshot({ path: path.join(PICTURES, "gateway-mcp-down.png"), fullPage: true });
  await ended(page);
});

test("gateway: nothing is changed without the token", LIMIT, async () => {
  const page = await opened("#/backend/flow/large");
  await page.locator(".drawer").getByText("Read-only until you log in.").waitFor(SLOWLY);
  const status = await page.evaluate(async () => {
    const headers = { "content-type": "application/json", "x-tidegate-csrf": "1" };
    const answer = await fetch("api/backends/flow%2Flarge/drain",
      { method: "POST", headers, body: "{}" });
    return answer.status;
  });
  assert.equal(status, 401);
  await ended(page);
});

test("gateway: an operator logs in, drains a backend and resumes it", LIMIT, async () => {
  const page = await opened("#/backend/flow/large");
  const drawer = page.locator(".drawer");
  await drawer.getByRole("button", { name: "Log in" }).click(SLOWLY);
  const dialog = page.getByRole("dialog", { name: "Log in" });
  await dialog.getByLabel("Admin token").fill("not-the-token");
  await dialog.getByRole("button", { name: "Log in" }).click();
  await dialog.locator(".problem").waitFor(SLOWLY);
  await dialog.getByLabel("Admin token").fill(TOKEN);
  await dialog.getByRole("button", { name: "Log in" }).click();
  await drawer.getByRole("button", { name: "Drain", exact: true }).click(SLOWLY);
  await drawer.getByLabel("Reason").fill("maintenance");
  await drawer.getByRole("button", { name: "Drain flow/large" }).click();
  await drawer.getByText("Done: drain until").waitFor(SLOWLY);
  await page.locator('[data-backend="flow/large"] .sign', { hasText: "drained" }).waitFor(SLOWLY);
  await page.locator("#changes", { hasText: "drain by an operator" }).waitFor(SLOWLY);
  await page.screenshot({ path: path.join(PICTURES, "gateway-drained.png") });
  // A cookie alone, as a foreign page would send it, changes nothing.
  const status = await page.evaluate(async () => {
    const headers = { "content-type": "application/json" };
    const answer = await fetch("api/backends/flow%2Flarge/reset",
      { method: "POST", headers, body: "{}" });
    return answer.status;
  });
  assert.equal(status, 403);
  await drawer.getByRole("button", { name: "Resume", exact: true }).click(SLOWLY);
  await drawer.getByRole("button", { name: "Resume flow/large" }).click();
  await drawer.getByText("Done: resume").waitFor(SLOWLY);
  await page.locator('[data-backend="flow/large"] .sign', { hasText: "closed" }).waitFor(SLOWLY);
  await ended(page);
});

test("gateway: every command that the page copies works in a shell", LIMIT, async () => {
  const cli = await import(pathToFileURL(path.join(process.env.TIDEGATE_WEB_DIR, "lib/cli.js")).href);
  const { decisions } = await (await fetch(`${gateway.admin}/api/decisions?limit=1`)).json();
  const lease = { reason: "it's only a test", ttl: "10m" };
  for (const command of [
    cli.snapshotCommand(gateway.admin), cli.readCommand(gateway.admin, "api/timeline"),
    cli.readCommand(gateway.admin, "api/decisions?notable=true&since=15m"),
    cli.decisionCommand(gateway.admin, decisions[0].id),
    cli.backendCommand(gateway.admin, "flow/large"), cli.routeCommand(gateway.admin, "fast"),
    cli.actionCommand(gateway.admin, "drain", "flow/large", lease),
    cli.actionCommand(gateway.admin, "resume", "flow/large", {}),
  ]) {
    const env = { ...process.env, TIDEGATE_ADMIN_TOKEN: TOKEN };
    const said = execFileSync("sh", ["-c", command], { env, encoding: "utf8" });
    assert.equal(JSON.parse(said).error, undefined, `${command}: ${said}`);
  }
});

test("gateway: no secret reaches the page", LIMIT, async () => {
  const page = await opened();
  await page.locator(".lane").first().waitFor(SLOWLY);
  const seen = await page.evaluate(async () => {
    const texts = [document.documentElement.outerHTML];
    for (const url of ["api/snapshot", "api/decisions", "api/timeline", "api/session"]) {
      texts.push(await (await fetch(url)).text());
    }
    return texts.join("\n");
  });
  assert.ok(!seen.includes("canary") && !seen.includes(TOKEN));
  await ended(page);
});

test("gateway: the page reconnects after a restart", LIMIT, async () => {
  const page = await opened();
  await gateway.kill();
  await page.locator(".banner", { hasText: "Stale since" }).waitFor(SLOWLY);
  await gateway.start();
  await page.locator('[data-phase="live"]').waitFor(SLOWLY);
  await page.locator("#changes", { hasText: "the gateway was restarted" }).waitFor(SLOWLY);
  await ended(page);
});

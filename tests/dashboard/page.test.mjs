// The live page in a browser, against the mock of the operator API.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ended, launch, newPage } from "./browser.mjs";
import { MockGateway } from "./mock.mjs";
import { NOW, backend, decision, filled, snapshot } from "./sample.mjs";

const LIMIT = { timeout: 60_000 };
const DECISION = "req_1f00aa11bb22cc33";
let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

/** Runs `work` with a page of a mock that is filled with the sample. */
async function onPage(work, { hash = "", prepare = () => {}, withClock, ...options } = {}) {
  const mock = filled(new MockGateway());
  prepare(mock);
  const url = await mock.listen();
  const page = await newPage(browser, options);
  if (withClock) await page.clock.install();
  try {
    await page.goto(`${url}/${hash}`);
    await page.waitForSelector("#verdict, .wall");
    await work(page, mock, url);
    await ended(page);
  } finally {
    await mock.stop();
  }
}

const text = (page, selector) => page.locator(selector).innerText();

test("the page answers the five questions", LIMIT, () => onPage(async (page) => {
  assert.equal(await text(page, "h1"), "Degraded, no client hurt");
  assert.equal(await page.title(), "Degraded, no client hurt · tidegate");
  const said = await text(page, ".answers");
  for (const part of ["Who is hurt?", "0 of 12", "What broke, and why?", "3 × 529 overloaded",
    "Where did the traffic go?", "openai/", "41 sessions moved", "When does it heal?",
    "next trial in", "What changed?", "routes.fast"]) {
    assert.ok(said.includes(part), `${part} in ${said}`);
  }
}));

test("events change the page as they come", LIMIT, () => onPage(async (page, mock) => {
  mock.snapshot = snapshot({ backends: [backend("openai/gpt"), backend("anthropic/claude"),
    backend("mcp:github")] });
  mock.emit("transition", { seq: 2, at_unix_ms: NOW, backend: "anthropic/claude",
    scope: "backend", from: "half_open", to: "closed", reason: "trials_passed",
    detail: "3 trials passed", until_unix_ms: null, weight: "news" });
  await page.locator('[data-backend="anthropic/claude"] .sign.good').waitFor();
  await page.locator("#changes", { hasText: "half-open → closed: 3 trials passed" }).waitFor();
  mock.emit("decision", decision("req_new", { at_unix_ms: NOW }));
  await page.locator('.failovers a[href="#/decision/req_new"]').waitFor();
}));

test("records that cannot be written are told", LIMIT, () => onPage(async (page, mock) => {
  const ok = { to: null, status: "off", why: null, dropped: 0 };
  const full = { to: "tidegate.db", status: "failed", why: "database or disk is full", dropped: 7 };
  mock.emit("snapshot", { ...mock.snapshot,
    journal: { history: full, audit: ok, telemetry: ok } });
  const banner = page.locator(".banner", { hasText: "The history file does not work" });
  await banner.getByText("database or disk is full").waitFor();
  assert.match(await banner.innerText(), /7 records are lost/);
}));

test("an attempt that was never made says why, and the page goes on", LIMIT,
  () => onPage(async (page, mock) => {
    const attempt = { backend: "mcp:github", target: "mcp:github", tier: null, key: null,
      outcome: null, status: null, ms: 0, detail: "circuit open", by: null, trial: false,
      last_resort: false, started_ms: 0, first_content_ms: null, converted: null };
    mock.emit("decision", { ...decision("req_never", { at_unix_ms: NOW }), kind: "mcp",
      result: "failed", hops: 0, attempts: [attempt] });
    const row = page.locator('.failovers a[href="#/decision/req_never"]');
    await row.getByText("circuit open").waitFor();
    mock.emit("decision", decision("req_after", { at_unix_ms: NOW }));
    await page.locator('.failovers a[href="#/decision/req_after"]').waitFor();
  }));

test("a failover opens in full, and closes with Escape", LIMIT, () => onPage(async (page) => {
  const row = page.locator(`.failovers a[href="#/decision/${DECISION}"]`);
  await row.focus();
  await page.keyboard.press("Enter");
  const drawer = page.locator(".drawer");
  await drawer.getByText("Answered by openai/gpt after 2 attempts.").waitFor();
  const said = await drawer.innerText();
  for (const part of ["529 overloaded", "118 ms", "Why attempt 2 went to openai/gpt",
    "tried before", "has an open breaker", "200 in, 100 out"]) {
    assert.ok(said.includes(part), `${part} in ${said}`);
  }
  assert.ok(page.url().endsWith(`#/decision/${DECISION}`));
  assert.equal(await drawer.evaluate((it) => it === document.activeElement), true);
  await page.keyboard.press("Escape");
  await drawer.waitFor({ state: "detached" });
  assert.equal(await row.evaluate((it) => it === document.activeElement), true);
}));

test("a deep link opens a backend at a moment", LIMIT, () => onPage(async (page) => {
  await page.locator(".drawer h2", { hasText: "anthropic/claude" }).waitFor();
  await page.locator(".drawer", { hasText: "3 × 529 overloaded in a row" }).waitFor();
  await page.locator(".readout", { hasText: "14:02:30" }).waitFor();
}, { hash: "#/backend/anthropic/claude@2026-01-31T14:02:30Z" }));

test("a link to something that is gone says so", LIMIT, () => onPage(async (page) => {
  await page.locator(".drawer .problem", { hasText: "no decision has this id" }).waitFor();
}, { hash: "#/decision/req_gone" }));

test("the page resumes after a restart and says that there was one", LIMIT, async () => {
  const first = filled(new MockGateway());
  const url = await first.listen();
  const page = await newPage(browser);
  await page.goto(url);
  await page.locator('[data-phase="live"]').waitFor();
  await first.stop();
  await page.locator(".banner", { hasText: "Stale since" }).waitFor();
  await page.locator('[data-phase="lost"]').waitFor();
  const second = filled(new MockGateway(), { instance: "two", started_unix_ms: NOW });
  try {
    await second.listen(first.port);
    await page.locator('[data-phase="live"]').waitFor({ timeout: 20_000 });
    assert.equal(await page.locator(".banner").count(), 0);
    await page.locator("#changes", { hasText: "the gateway was restarted" }).waitFor();
    const asked = second.asked.find((it) => it.path === "/api/events");
    assert.match(asked.headers["last-event-id"], /^one-/);
    await ended(page);
  } finally {
    await second.stop();
  }
});

test("a gateway that falls silent makes the page stale, heartbeats keep it live", LIMIT, () =>
  onPage(async (page, mock) => {
    await page.locator('[data-phase="live"]').waitFor();
    mock.isSilent = true;
    mock.stream = () => {};
    await page.clock.runFor(11_000);
    await page.locator(".banner", { hasText: "Stale since" }).waitFor();
  }, { withClock: true }));

test("without a token the page is read-only", LIMIT, () => onPage(async (page) => {
  await page.locator(".drawer", { hasText: "Set admin.token in the config" }).waitFor();
  assert.equal(await page.locator(".deeds button").count(), 0);
  assert.equal(await page.getByRole("button", { name: "Log in" }).count(), 0);
}, { hash: "#/backend/openai/gpt" }));

test("an operator logs in and drains a backend with a reason and an end", LIMIT, () =>
  onPage(async (page, mock) => {
    const drawer = page.locator(".drawer");
    await drawer.getByText("Read-only until you log in.").waitFor();
    await drawer.getByRole("button", { name: "Log in" }).click();
    const dialog = page.getByRole("dialog", { name: "Log in" });
    await dialog.getByLabel("Admin token").fill("wrong");
    await dialog.getByRole("button", { name: "Log in" }).click();
    await dialog.getByText("this is not the admin token").waitFor();
    await dialog.getByLabel("Admin token").fill("secret-token");
    await dialog.getByRole("button", { name: "Log in" }).click();
    await drawer.getByRole("button", { name: "Drain" }).click();
    await drawer.getByLabel("Reason").fill("maintenance");
    await drawer.getByLabel("Ends after").selectOption("30m");
    await drawer.getByRole("button", { name: "Drain openai/gpt" }).click();
    await drawer.getByText("Done: drain until").waitFor();
    const asked = mock.asked.find((it) => it.path.endsWith("/drain"));
    assert.equal(asked.path, "/api/backends/openai%2Fgpt/drain");
    assert.deepEqual(asked.body, { reason: "maintenance", ttl: "30m" });
    assert.equal(asked.headers["x-tidegate-csrf"], "1");
    assert.equal(asked.headers.authorization, undefined);
    const stored = await page.evaluate(() => JSON.stringify([{ ...localStorage },
      { ...sessionStorage }, document.cookie, document.documentElement.outerHTML]));
    assert.ok(!stored.includes("secret-token"), "the token is kept nowhere in the page");
    await page.getByRole("button", { name: "Log out" }).click();
    await drawer.getByText("Read-only until you log in.").waitFor();
  }, { hash: "#/backend/openai/gpt", prepare: (mock) => { mock.token = "secret-token"; } }));

test("an action that is refused says why", LIMIT, () => onPage(async (page, mock) => {
  mock.sessions.clear();
  const drawer = page.locator(".drawer");
  await drawer.getByRole("button", { name: "Probe now" }).click();
  await drawer.getByRole("button", { name: "Probe now openai/gpt" }).click();
  await drawer.getByText("Read-only until you log in.").waitFor();
}, { hash: "#/backend/openai/gpt", prepare: (mock) => {
  mock.token = "secret-token";
  const { reply } = mock;
  mock.reply = function answer(ask, url, body, isLoggedIn) {
    const isFirst = url.pathname === "/api/session" && !this.wasAsked;
    this.wasAsked ||= isFirst;
    return reply.call(this, ask, url, body, isLoggedIn || isFirst);
  };
} }));

test("names are shown as text, whatever they hold", LIMIT, () => onPage(async (page) => {
  await page.locator("[data-backend]", { hasText: "<img src=x" }).waitFor();
  assert.equal(await page.locator("img").count(), 0);
}, { prepare: (mock) => {
  const id = "<img src=x onerror=alert(1)>/\"'";
  mock.snapshot = snapshot({ backends: [backend(id)], routes: [] });
} }));

test("every panel can be copied as a command and as JSON", LIMIT, () => onPage(async (page) => {
  const panels = await page.locator("section.panel").all();
  assert.equal(panels.length, 8);
  for (const panel of panels) {
    await panel.getByRole("button", { name: "copy as CLI" }).click();
    const command = await page.evaluate(() => navigator.clipboard.readText());
    assert.match(command, /^curl -s /);
    await panel.getByRole("button", { name: "JSON" }).click();
    JSON.parse(await page.evaluate(() => navigator.clipboard.readText()));
  }
}, { permissions: ["clipboard-read", "clipboard-write"] }));

test("panels, help and theme can be reached by keys", LIMIT, () => onPage(async (page) => {
  await page.keyboard.press("4");
  await page.waitForFunction(() => document.activeElement?.id === "timeline");
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Reading this page" }).waitFor();
  await page.keyboard.press("Escape");
  await page.keyboard.press("t");
  await page.waitForFunction(() => document.documentElement.dataset.theme === "light");
  await page.keyboard.press("t");
  await page.waitForFunction(() => document.documentElement.dataset.theme === "dark");
  await page.getByRole("slider", { name: "Moment" }).focus();
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("Enter");
  await page.waitForURL(/#\/time\//);
}));

test("where reading needs the token, the page asks for it", LIMIT, () => onPage(async (page) => {
  await page.getByRole("heading", { name: "Log in to see this gateway" }).waitFor();
}, { prepare: (mock) => {
  mock.stream = (_, answer) => answer.writeHead(401).end();
} }));

test("nothing scrolls sideways on a phone", LIMIT, () => onPage(async (page) => {
  const [inner, content] = await page.evaluate(() =>
    [innerWidth, document.documentElement.scrollWidth]);
  assert.equal(content, inner);
}, { viewport: { width: 390, height: 844 } }));

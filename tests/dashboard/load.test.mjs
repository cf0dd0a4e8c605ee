// A page under load: 200 backends, 1 000 sessions, a gateway that serves 500 requests per second
// (20 notable ones per second, and a tick that changes everything). What it costs is printed; what
// is asserted is what keeps it cheap: bounded lists, and one frame however many events arrive.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ended, launch, newPage } from "./browser.mjs";
import { MockGateway } from "./mock.mjs";
import { NOW, backend, decision, filled, open, snapshot, timeline } from "./sample.mjs";

const LIMIT = { timeout: 60_000 };
let browser;
before(async () => { browser = await launch(); });
after(() => browser.close());

const IDS = Array.from({ length: 200 }, (_, n) => `provider-${n % 20}/model-${n}`);

/** Seconds of the page's thread that were busy in `seconds` of time. */
async function busy(page, seconds, work) {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Performance.enable");
  const read = async () => {
    const { metrics } = await devtools.send("Performance.getMetrics");
    return metrics.find((it) => it.name === "TaskDuration").value;
  };
  const start = await read();
  await work(seconds);
  return (await read()) - start;
}

test("200 backends and 500 requests per second stay within bounds", LIMIT, async () => {
  const mock = filled(new MockGateway());
  const backends = IDS.map((id, n) => (n % 40 === 0 ? open(id) : backend(id)));
  mock.snapshot = snapshot({ backends, sessions: 1000 });
  mock.timeline = timeline(IDS);
  const page = await newPage(browser);
  try {
    await page.goto(await mock.listen());
    await page.locator(".lane").first().waitFor();
    await page.evaluate(() => {
      globalThis.mutations = 0;
      new MutationObserver(() => { globalThis.mutations += 1; })
        .observe(document.body, { subtree: true, childList: true, characterData: true });
    });
    const events = async (seconds) => {
      for (let n = 0; n < seconds * 20; n += 1) {
        mock.emit("decision", decision(`req_load_${n}`, { at_unix_ms: NOW + n * 50 }));
        if (n % 20 === 0) {
          mock.emit("tick", { ...mock.snapshot, at_unix_ms: NOW + n * 50, routes: [],
            backends: IDS.map((id) => ({ id, in_flight: n })) });
        }
        await new Promise((done) => setTimeout(done, 50));
      }
    };
    const cost = await busy(page, 5, events);
    console.log(`# load: ${(cost * 20).toFixed(1)} % of one core over 5 s of 500 requests/s`);
    await page.locator('.failovers a[href="#/decision/req_load_99"]').waitFor();
    const counts = await page.evaluate(() => ({
      nodes: document.querySelectorAll("*").length,
      rows: document.querySelectorAll("[data-backend]").length,
      lanes: document.querySelectorAll("svg.lane").length,
      failovers: document.querySelectorAll(".failovers li").length,
    }));
    assert.ok(counts.nodes < 1500, JSON.stringify(counts));
    assert.deepEqual([counts.rows, counts.lanes, counts.failovers], [12, 14, 12]);
    // A burst within one task is drawn in one frame.
    const frames = await page.evaluate(() => globalThis.mutations);
    for (let n = 0; n < 500; n += 1) {
      mock.emit("tick", { at_unix_ms: NOW, backends: [{ id: IDS[0], in_flight: n }], routes: [] });
    }
    await page.locator(`[data-backend="${IDS[0]}"]`, { hasText: "499" }).waitFor();
    const drawn = (await page.evaluate(() => globalThis.mutations)) - frames;
    assert.ok(drawn < 60, `${drawn} changes of the document for 500 events`);
    await page.getByRole("button", { name: "Show 188 more backends" }).click();
    await page.locator("[data-backend]").nth(199).waitFor();
    await page.getByLabel("Filter backends by name").fill("model-19");
    await page.waitForFunction(() => document.querySelectorAll("[data-backend]").length === 11);
    await ended(page);
  } finally {
    await mock.stop();
  }
});

test("an idle page is not drawn", LIMIT, async () => {
  const mock = filled(new MockGateway());
  mock.snapshot = snapshot({ backends: IDS.map((id) => backend(id)) });
  mock.timeline = timeline(IDS);
  const page = await newPage(browser);
  try {
    await page.goto(await mock.listen());
    await page.locator(".lane").first().waitFor();
    await page.waitForTimeout(1500);
    await page.evaluate(() => {
      globalThis.mutations = [];
      new MutationObserver((list) => globalThis.mutations.push(...list.map((it) => it.type)))
        .observe(document.body, { subtree: true, childList: true, characterData: true,
          attributes: true });
    });
    const cost = await busy(page, 5, (seconds) => page.waitForTimeout(seconds * 1000));
    console.log(`# idle: ${(cost * 20).toFixed(2)} % of one core over 5 s with heartbeats`);
    assert.deepEqual(await page.evaluate(() => globalThis.mutations), []);
    await ended(page);
  } finally {
    await mock.stop();
  }
});

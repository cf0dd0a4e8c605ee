// What a client notices of a server that is killed and comes back, and of its key.

import assert from "node:assert/strict";
import { NARROW_KEY, OFFERED, atOnce, remote, tools, until } from "./scene.mjs";
import { said, textOf, toolNames } from "./steps.mjs";

const DOWN = "everything-http";
const ALL = Object.keys(OFFERED);
const OTHERS = ALL.filter((server) => server !== DOWN);
const UNAVAILABLE = new RegExp(`backend "${DOWN}" unavailable: `);

export const OUTAGE = {
  async "keeps its session while a server is down and back"(open, openAnother) {
    assert.equal(await said(open, `${DOWN}_echo`, { message: "before" }), "Echo: before");
    await remote.kill();
    try {
      await failsFastAndNamesTheServer(open);
      await goesOnWithTheOthers(open);
      // A session that opens now goes without it.
      const other = await openAnother();
      assert.deepEqual(await toolNames(other), tools(OTHERS, { asking: true }));
      await goesOnWithTheOthers(other);
      await other.close();
    } finally {
      await remote.start();
    }
    let result;
    await until(async () => {
      result = await open.call(`${DOWN}_echo`, { message: "after" });
      return !result.isError;
    });
    assert.equal(textOf(result), "Echo: after");
    const later = await openAnother();
    assert.deepEqual(await toolNames(later), tools(ALL, { asking: true }));
    await later.close();
  },
};

async function failsFastAndNamesTheServer(open) {
  const echo = await atOnce(open.call(`${DOWN}_echo`, { message: "anybody?" }));
  assert.ok(echo.isError);
  assert.match(textOf(echo), UNAVAILABLE);
  assert.equal(echo.structuredContent.code, "backend_unavailable");
  assert.equal(echo.structuredContent.backend, DOWN);
  // A tool with an output schema too, against which clients check what they get.
  const chicago = { location: "Chicago" };
  const weather = await atOnce(open.call(`${DOWN}_get-structured-content`, chicago));
  assert.ok(weather.isError);
  assert.match(textOf(weather), UNAVAILABLE);
  const prompt = open.client.getPrompt({ name: `${DOWN}_simple-prompt` });
  await atOnce(assert.rejects(prompt, UNAVAILABLE));
  // A session keeps what it saw; without one, each list shows what there is.
  const there = open.isStateless ? OTHERS : ALL;
  assert.deepEqual(await toolNames(open), tools(there, { asking: true }));
}

async function goesOnWithTheOthers(open) {
  assert.equal(await said(open, "everything_echo", { message: "still" }), "Echo: still");
  assert.match(await said(open, "time_get_current_time", { timezone: "UTC" }), /UTC/);
}

export const KEYS = {
  async "that cannot be asked is offered fewer tools"(openAnother) {
    const open = await openAnother({ isAble: false });
    assert.deepEqual(await toolNames(open), tools(ALL, { asking: false }));
    await open.close();
  },

  async "with a narrow key sees its servers only"(openAnother) {
    const open = await openAnother({ key: NARROW_KEY });
    assert.deepEqual(await toolNames(open), tools(["memory", "time"], { asking: true }));
    const call = open.call("everything_echo", { message: "?" });
    await assert.rejects(call, /unknown tool: `everything_echo`/);
    await open.close();
  },

  async "with a wrong key is refused and told so"(openAnother) {
    // One of them says it in words of its own.
    const refused = /the key that was sent is not known here|requires authorization \(HTTP 401\)/;
    await assert.rejects(openAnother({ key: "tg-wrong" }), refused);
  },
};

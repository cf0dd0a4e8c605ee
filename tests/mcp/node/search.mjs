// `tools: search` over three real servers: every client finds and calls, and one server dies and
// returns. What the Python program shows with all servers down is not shown again.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { CLIENTS } from "./clients.mjs";
import { FILES, LIMIT_MS, atOnce, remote, until } from "./scene.mjs";
import { textOf, toolNames } from "./steps.mjs";

const LIMIT = { timeout: 2 * LIMIT_MS };

// What is looked for, the name that has to be found, arguments for it, and what it then says.
const WISHES = {
  everything: ["echo a message back to me", "everything_echo", { message: "ahoy" }, /ahoy/],
  files: [
    "read the contents of a text file", "files_read_text_file",
    { path: `${FILES}/tide.txt` }, /high water at noon/,
  ],
  time: ["what time is it now in a timezone", "time_get_current_time", { timezone: "UTC" }, /UTC/],
};

async function found(open, server) {
  const [words, name] = WISHES[server];
  const result = await open.call("find_tool", { tool_description: words, limit: 5 });
  assert.ok(!result.isError, textOf(result));
  assert.deepEqual(JSON.parse(textOf(result)), result.structuredContent);
  return result.structuredContent.tools.find((it) => it.name === name);
}

function called(open, server) {
  const [, name, parameters] = WISHES[server];
  return open.call("call_tool", { tool_name: name, parameters });
}

function foundAgain(openAnother, server) {
  return until(async () => {
    const later = await openAnother();
    const tool = await found(later, server);
    await later.close();
    return tool?.available;
  });
}

before(() => remote.start(), LIMIT);
after(() => remote.kill(), LIMIT);

for (const [name, openAnother] of Object.entries(CLIENTS)) {
  describe(name, () => {
    let open;
    before(async () => {
      // The gateway was there first, and has found one of its servers missing.
      for (const server of Object.keys(WISHES)) await foundAgain(openAnother, server);
      open = await openAnother();
    }, LIMIT);
    after(async () => { await open?.close(); }, LIMIT);

    test(`${name} sees two tools`, LIMIT, async () => {
      assert.deepEqual(await toolNames(open), ["call_tool", "find_tool"]);
    });

    test(`${name} finds and calls tools of all servers`, LIMIT, async () => {
      for (const [server, [, , , says]] of Object.entries(WISHES)) {
        const tool = await found(open, server);
        assert.equal(tool?.available, true, server);
        assert.equal(tool.server, server);
        assert.match(textOf(await called(open, server)), says);
      }
    });

    test(`${name} sees a dead server marked, and later sessions without it`, LIMIT, async () => {
      await remote.kill();
      try {
        const result = await atOnce(called(open, "everything"));
        assert.match(textOf(result), /backend "everything" unavailable: /);
        // Without sessions every request is as a session that opens now.
        const hasSession = open.version() < "2026";
        const tool = await found(open, "everything");
        assert.equal(tool?.available, hasSession ? false : undefined);
        const other = await openAnother();
        assert.equal(await found(other, "everything"), undefined);
        await other.close();
      } finally {
        await remote.start();
      }
      await foundAgain(openAnother, "everything");
    });
  });
}

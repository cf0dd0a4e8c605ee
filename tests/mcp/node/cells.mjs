// What a client does with a server for each column of the matrix, and how the outcome is judged.
//
// A server that has nothing made for a column is asked its plain tool, and found to have none. So
// no list says who can do what: it is tried.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";

// Something that a server is made for may take this long on a busy machine.
export const LONG_MS = 20_000;
// What would come with the answer of a plain tool comes at once, if at all.
const SHORT_MS = 300;

async function until(what, limitMs, otherwise) {
  const end = Date.now() + limitMs;
  while (!what()) {
    assert.ok(Date.now() < end, `${otherwise} is told`);
    await sleep(20);
  }
}

// The columns for one open client at one server, whose tools have this prefix.
export function columns(open, does, prefix) {
  const [plainName, plainArgs, plainSays] = does.call;
  // The tool of a column, its arguments, and how long it may take until something comes.
  const tool = (column) =>
    does[column] ? [...does[column].slice(0, 2), LONG_MS] : [plainName, plainArgs, SHORT_MS];
  const call = async (name, args, options) => {
    const result = await open.call(prefix + name, args, options);
    const text = result.content.map((it) => it.text ?? "").join("\n");
    assert.ok(!result.isError, text);
    return text;
  };
  const plain = async () => {
    const text = await call(plainName, plainArgs);
    assert.ok(text.includes(plainSays), text);
  };
  // Leaves a server as it was found.
  const after = async (column) => {
    if (does[`after_${column}`]) await call(...does[`after_${column}`]);
  };

  return {
    async list() {
      const names = (await open.client.listTools()).tools.map((it) => it.name);
      assert.ok(names.includes(prefix + plainName), names.join());
    },

    call: plain,

    async progress() {
      const heard = [];
      const [name, args] = tool("progress");
      await call(name, args, { onprogress: (it) => heard.push([it.progress, it.total]) });
      // What has no total is the client's own: it counts the rounds of being asked. The last word
      // may be missing: the client drops what comes together with the answer.
      const steps = heard.filter(([, total]) => total === 3).map(([step]) => step);
      assert.ok(steps.length > 0, "no progress is reported");
      assert.deepEqual(steps, steps.toSorted((one, other) => one - other));
    },

    async cancel() {
      const giveUp = new AbortController();
      const [name, args, limitMs] = tool("cancel");
      let ended;
      let isStarted = false;
      const running = call(name, args, {
        signal: giveUp.signal, onprogress: () => { isStarted = true; },
      }).then(() => { ended = "by itself"; }, (error) => { ended = String(error); });
      await until(() => isStarted || ended, limitMs, "no progress");
      assert.equal(ended, undefined, "it ends by itself");
      giveUp.abort("enough");
      await until(() => ended, LONG_MS, "no end");
      await running;
      assert.match(ended, /enough/);
      await plain();
    },

    async list_changed() {
      const [name, args, limitMs] = tool("list_changed");
      await open.hearing(undefined, async () => {
        // What a server says while it is being met is none of it.
        await plain();
        open.heard.changed = 0;
        await call(name, args);
        try {
          await until(() => open.heard.changed > 0, limitMs, "no change of a list");
        } finally {
          await after("list_changed");
        }
      });
    },

    async asking() {
      for (const [name, args, says, kind] of does.asking ?? [[...does.call, "?"]]) {
        open.heard.asked.length = 0;
        const text = await call(name, args);
        assert.ok(text.includes(says), text);
        const asked = open.heard.asked.map((it) => it.method);
        assert.ok(asked.some((it) => it.startsWith(`${kind}/`)), `nothing is asked: ${asked}`);
      }
    },

    async subscription() {
      const [name, args, limitMs] = tool("subscription");
      const uri = does.uri ?? "none://at/all";
      await open.hearing(uri, async () => {
        open.heard.updated.length = 0;
        await call(name, args);
        try {
          await until(() => open.heard.updated.length > 0, limitMs, "no update of a resource");
        } finally {
          await after("subscription");
        }
        assert.deepEqual([...new Set(open.heard.updated)], [uri]);
      });
    },
  };
}

export const COLUMNS = Object.keys(columns(undefined, { call: [] }, ""));

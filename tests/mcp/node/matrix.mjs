// The TypeScript clients' part of the matrix: each at every server, without a gateway and through
// one. Writes one line of JSON for each cell; whether that is good is judged where all parts are
// known.

import assert from "node:assert/strict";
import { appendFileSync, readFileSync } from "node:fs";
import { COLUMNS, LONG_MS, columns } from "./cells.mjs";
import { CLIENTS, STATELESS } from "./clients.mjs";
import { ENDPOINT } from "./scene.mjs";

const NAMES = {
  "ts v1": "TypeScript v1",
  "ts v2": "TypeScript v2, sessions",
  "ts v2, auto": "TypeScript v2",
};
const SCENE = JSON.parse(readFileSync(process.env.MATRIX, "utf8"));

const words = (error) => String(error?.message ?? error).slice(0, 300);

// Settles in time, whatever it is.
function within(promise, limitMs) {
  let late;
  const limit = new Promise((_, fail) => {
    late = setTimeout(() => fail(new Error(`not within ${limitMs} ms`)), limitMs);
  });
  return Promise.race([promise, limit]).finally(() => clearTimeout(late));
}

// One client at one server; a record for each column.
async function tried({ way, client, server, openAt, at, key, prefix }) {
  const about = SCENE.servers[server];
  const does = { ...SCENE.does[about.does], ...about.but };
  const failed = {};
  try {
    const open = await within(openAt({ key, at }), LONG_MS);
    const isOwn = (open.version() >= STATELESS) === open.isStateless;
    assert.ok(way === "direct" || isOwn, open.version());
    for (const [column, work] of Object.entries(columns(open, does, prefix))) {
      failed[column] = await within(work(), LONG_MS + 10_000).then(() => null, words);
    }
    await within(open.close(), LONG_MS).catch(() => {});
  } catch (error) {
    // Whatever was not reached cannot be done either.
    for (const column of COLUMNS) failed[column] ??= `not met: ${words(error)}`;
  }
  return COLUMNS.map((column) => ({ way, client, server, column, failed: failed[column] }));
}

for (const [name, openAt] of Object.entries(CLIENTS)) {
  const client = NAMES[name];
  const servers = Object.entries(SCENE.servers);
  const direct = servers.map(([server, at]) => ({
    way: "direct", client, server, openAt, at, prefix: "",
  }));
  const through = servers.map(([server, { key }]) => ({
    way: "gateway", client, server, openAt, at: { http: ENDPOINT }, key, prefix: `${server}_`,
  }));
  // One way after the other: what one client does to a server others could hear.
  for (const way of [direct, through]) {
    const records = (await Promise.all(way.map(tried))).flat();
    const lines = records.map((record) => `${JSON.stringify(record)}\n`);
    appendFileSync(process.env.CELLS, lines.join(""));
  }
}
process.exit(0);

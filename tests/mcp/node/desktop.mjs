// What a desktop client notices: it starts `tidegate mcp` and talks to it over pipes.
//
// Every client is shown the same claims twice: with a gateway that runs already, and with one that
// `tidegate mcp` runs itself by the same config.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as PipesV1 } from "@modelcontextprotocol/sdk/client/stdio.js";
import { Client as ClientV2 } from "@modelcontextprotocol/client";
import { StdioClientTransport as PipesV2 } from "@modelcontextprotocol/client/stdio";
import { KEY, LIMIT_MS, NARROW_KEY, tools, until } from "./scene.mjs";
import { said, toolNames } from "./steps.mjs";

const LIMIT = { timeout: 2 * LIMIT_MS };
const INFO = { name: "tidegate-desktop-tests", version: "1" };
const { TIDEGATE_BINARY, TIDEGATE_CONFIG, TIDEGATE_URL, PATH } = process.env;

// As a desktop client's config has it.
const PLACES = {
  "a gateway": { args: ["mcp", "--url", TIDEGATE_URL], env: { PATH, TIDEGATE_KEY: KEY } },
  // A gateway of its own resolves the secrets of the config.
  "its own": {
    args: ["mcp", "--config", TIDEGATE_CONFIG],
    env: {
      PATH, TIDEGATE_KEY: KEY, TIDEGATE_MCP_KEY: KEY, TIDEGATE_MCP_NARROW_KEY: NARROW_KEY,
    },
  },
};

const CLIENTS = {
  "ts v1": {
    Client: ClientV1, Pipes: PipesV1, options: {}, version: undefined,
    call: (client, params, options) => client.callTool(params, undefined, options),
  },
  "ts v2": {
    Client: ClientV2, Pipes: PipesV2, options: {}, version: "2025-11-25",
    call: (client, params, options) => client.callTool(params, options),
  },
  "ts v2, auto": {
    Client: ClientV2, Pipes: PipesV2, version: "2026-07-28",
    options: { versionNegotiation: { mode: "auto" } },
    call: (client, params, options) => client.callTool(params, options),
  },
};

async function opened({ Client, Pipes, options, call }, place) {
  const client = new Client(INFO, { ...options, capabilities: {} });
  await client.connect(new Pipes({ command: TIDEGATE_BINARY, ...PLACES[place], stderr: "ignore" }));
  return {
    client,
    call: (name, args, options) => call(client, { name, arguments: args }, options),
  };
}

const STEPS = {
  async "speaks its version"(open, parts) {
    // Version 1 knows one era only and does not tell.
    if (parts.version !== undefined) {
      assert.equal(open.client.getNegotiatedProtocolVersion(), parts.version);
    }
    assert.equal(open.client.getServerVersion().name, "tidegate");
  },

  async "is offered the tools of all servers"(open) {
    const expected = tools(["everything", "time"], { asking: false }).join();
    // Without sessions nobody waits for servers that are still starting.
    await until(async () => (await toolNames(open)).join() === expected);
  },

  async "calls a tool of each server"(open) {
    assert.equal(await said(open, "everything_echo", { message: "ahoy ⚓" }), "Echo: ahoy ⚓");
    assert.match(await said(open, "time_get_current_time", { timezone: "UTC" }), /UTC/);
  },

  async "follows progress in order"(open) {
    const heard = [];
    await open.call(
      "everything_trigger-long-running-operation", { duration: 0.5, steps: 5 },
      { onprogress: (it) => { heard.push(it.progress); } },
    );
    // Over pipes these clients drop progress that arrives in one piece with the answer, from a
    // server of their own too.
    assert.deepEqual(heard.filter((it) => it < 5), [1, 2, 3, 4]);
  },

  async "gives a call up and goes on"(open) {
    const giveUp = new AbortController();
    const call = open.call(
      "everything_trigger-long-running-operation", { duration: 60, steps: 600 },
      { signal: giveUp.signal, onprogress: () => giveUp.abort("enough") },
    );
    await assert.rejects(call, /enough/);
    assert.equal(await said(open, "everything_echo", { message: "next" }), "Echo: next");
  },

  async "makes many calls at once"(open) {
    await Promise.all(Array.from({ length: 20 }, async (_, number) => {
      const message = String(number);
      assert.equal(await said(open, "everything_echo", { message }), `Echo: ${message}`);
    }));
  },

  async "is told what is wrong"(open) {
    await assert.rejects(open.call("everything_eco", {}), /did you mean `everything_echo`/);
  },
};

for (const place of Object.keys(PLACES)) {
  for (const [name, parts] of Object.entries(CLIENTS)) {
    describe(`${name} over pipes to ${place}`, () => {
      let open;
      before(async () => { open = await opened(parts, place); }, LIMIT);
      after(async () => { await open?.client.close(); }, LIMIT);
      for (const [claim, show] of Object.entries(STEPS)) {
        test(`${name} over pipes to ${place} ${claim}`, LIMIT, () => show(open, parts));
      }
    });
  }
}

// Any client, any provider: what an SDK makes of an answer does not depend on who gave it.
//
// The same as `python/test_dialects.py` with the SDKs from npm: each exchange of `tests/dialects` is
// asked for plain and by the streaming helper, first of a provider of the SDK's own dialect, then of
// each other one, and the objects must be equal. How refusals differ is compared in Python.

import { strict as assert } from "node:assert";
import { test } from "node:test";
import { CLIENTS, MODELS, ask } from "./dialects.mjs";
import { anthropicClient, openaiClient } from "./scene.mjs";

const SAMPLES = ["text", "tool-call", "parallel-tools", "thinking", "json-schema", "stop", "length"];

// What a client sees, or the kind of error that its helper raises.
async function seen(client, vendor, sample, isStream) {
  try {
    return await CLIENTS[client](vendor, sample, isStream);
  } catch (error) {
    if (error instanceof assert.AssertionError) throw error;
    return `${error.constructor.name} ${error.status ?? ""}`;
  }
}

// Nobody but Anthropic tells that a stop sequence was met.
function expected(client, sample, native) {
  if (client !== "messages" || sample !== "stop") return native;
  const { stop_sequence, ...rest } = native;
  return { ...rest, stop_reason: "end_turn" };
}

for (const client of Object.keys(CLIENTS)) {
  for (const sample of SAMPLES) {
    test(`${client}: ${sample} is the same from every vendor`, async () => {
      for (const isStream of [false, true]) {
        const native = await seen(client, client, sample, isStream);
        if (sample !== "length") assert.equal(typeof native, "object", `${native}`);
        for (const vendor of Object.keys(MODELS).filter((it) => it !== client)) {
          const wanted = expected(client, sample, native);
          const what = `${vendor}, stream: ${isStream}`;
          assert.deepEqual(await seen(client, vendor, sample, isStream), wanted, what);
        }
      }
    });
  }
}

test("a tool is run by the loop of the openai SDK", async () => {
  for (const model of Object.values(MODELS)) {
    const asked = [];
    const run = openaiClient().chat.completions.runTools({
      model,
      messages: [{ role: "user", content: ask("tool-call") }],
      tools: [
        {
          type: "function",
          function: {
            name: "get_tide",
            description: "High and low water",
            parse: JSON.parse,
            parameters: { type: "object", properties: { place: { type: "string" } } },
            function: (given) => {
              asked.push(given);
              return "06:12 [[text]]";
            },
          },
        },
      ],
    });
    assert.match(await run.finalContent(), /06:12/, model);
    assert.deepEqual(asked, [{ place: "Kiel", options: { unit: "metre", days: [1, 2] } }], model);
  }
});

test("a stream that turns into an error raises one", async () => {
  for (const client of Object.keys(CLIENTS)) {
    for (const vendor of Object.keys(MODELS)) {
      await assert.rejects(CLIENTS[client](vendor, "broken", true), `${client} at ${vendor}`);
    }
  }
});

test("too many requests are a RateLimitError", async () => {
  const once = { maxRetries: 0 };
  for (const model of Object.values(MODELS)) {
    const says = [{ role: "user", content: ask("limited") }];
    const asks = [
      () => openaiClient().chat.completions.create({ model, messages: says }, once),
      () => openaiClient().responses.create({ model, input: says }, once),
      () => anthropicClient().messages.create({ model, max_tokens: 9, messages: says }, once),
    ];
    for (const it of asks) {
      await assert.rejects(it, (error) => {
        assert.equal(error.constructor.name, "RateLimitError", model);
        assert.equal(error.status, 429);
        return true;
      });
    }
  }
});

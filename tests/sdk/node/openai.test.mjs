// The official `openai` SDK for JavaScript against the gateway.

import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";
import {
  BREAKS, FAULTS, KEY, PIXEL, TIMEOUT_MS, calls, callsByProvider, marked, openaiClient, says,
} from "./scene.mjs";

const client = openaiClient();
const LIMIT = { timeout: 3 * TIMEOUT_MS };

const TOOL = {
  type: "function",
  function: {
    name: "tide_table",
    parameters: { type: "object", properties: { harbour: { type: "string" } } },
  },
};

async function gathered(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks;
}

const textOf = (chunks) => chunks.map((it) => it.choices[0]?.delta?.content ?? "").join("");

test("openai: an answer arrives with text and usage", LIMIT, async () => {
  const answer = await client.chat.completions.create({
    model: "openai", messages: says("good morning"),
  });
  assert.equal(answer.choices[0].message.content, "ebb as steady heard: good morning");
  assert.equal(answer.usage.completion_tokens, 6);
});

test("openai: who answered is told in the headers", LIMIT, async () => {
  const { data, response } = await client.chat.completions
    .create({ model: "openai", messages: says("hi") })
    .withResponse();
  assert.equal(response.headers.get("x-tidegate-resolved"), "ebb/steady");
  assert.equal(response.headers.get("x-tidegate-attempts"), "1");
  assert.equal(data.model, "steady");
});

test("openai: the caller's key stays here", LIMIT, async () => {
  const mark = marked();
  await client.chat.completions.create({ model: "openai", messages: says(mark) });
  const [call] = await calls("ebb", mark);
  assert.ok(!JSON.stringify(call).includes(KEY));
});

test("openai: a stream gives the same text in pieces, and usage when asked", LIMIT, async () => {
  const chunks = await gathered(await client.chat.completions.create({
    model: "openai",
    messages: says("good morning"),
    stream: true,
    stream_options: { include_usage: true },
  }));
  assert.equal(textOf(chunks), "ebb as steady heard: good morning");
  assert.equal(chunks.at(-1).usage.completion_tokens, 6);
});

test("openai: a tool is called and its result is taken, streamed too", LIMIT, async () => {
  const messages = says("please use the tool");
  const ask = { model: "openai", messages, tools: [TOOL] };
  const first = await client.chat.completions.create(ask);
  const { message, finish_reason } = first.choices[0];
  assert.equal(finish_reason, "tool_calls");
  assert.deepEqual(JSON.parse(message.tool_calls[0].function.arguments), { harbour: "high tide" });
  const streamed = await client.chat.completions.stream(ask).finalChatCompletion();
  assert.equal(streamed.choices[0].message.tool_calls[0].function.name, "tide_table");
  const result = { role: "tool", tool_call_id: message.tool_calls[0].id, content: "at noon" };
  const second = await client.chat.completions.create({
    ...ask, messages: [...messages, message, result],
  });
  assert.equal(second.choices[0].message.content, "ebb as steady heard: at noon");
});

test("openai: an image is seen", LIMIT, async () => {
  const url = `data:image/png;base64,${PIXEL}`;
  const answer = await client.chat.completions.create({
    model: "openai",
    messages: says([{ type: "text", text: "?" }, { type: "image_url", image_url: { url } }]),
  });
  assert.match(answer.choices[0].message.content, /saw 1 image/);
});

test("openai: responses are answered and streamed", LIMIT, async () => {
  const answer = await client.responses.create({ model: "openai", input: "hi" });
  assert.equal(answer.output_text, "ebb as steady heard: hi");
  const events = await gathered(
    await client.responses.create({ model: "openai", input: "hi", stream: true }),
  );
  assert.equal(events.at(-1).type, "response.completed");
  assert.equal(events.at(-1).response.output[0].content[0].text, "ebb as steady heard: hi");
});

test("openai: embeddings, models and older completions are answered", LIMIT, async () => {
  const embedded = await client.embeddings.create({ model: "openai", input: ["one", "two"] });
  assert.deepEqual(embedded.data.map((row) => row.embedding), Array(2).fill([0.5, -0.25, 0.125, 1]));
  const names = (await gathered(await client.models.list())).map((model) => model.id);
  assert.ok(names.includes("openai") && names.includes("ebb/steady"), names);
  for (const name of ["openai", "ebb/steady", "ebb/tokens-9+stall-after-3"]) {
    assert.equal((await client.models.retrieve(name)).id, name);
  }
  const older = await client.completions.create({ model: "openai", prompt: "hi" });
  assert.equal(older.choices[0].text, "ebb as steady heard: hi");
});

for (const fault of FAULTS) {
  test(`openai: a provider's ${fault} is invisible`, LIMIT, async () => {
    for (const stream of [false, true]) {
      const mark = marked();
      const { data, response } = await client.chat.completions
        .create({ model: `openai-${fault}`, messages: says(mark), stream })
        .withResponse();
      const text = stream ? textOf(await gathered(data)) : data.choices[0].message.content;
      assert.equal(text, `flow as steady heard: ${mark}`);
      assert.equal(response.headers.get("x-tidegate-attempts"), "2");
      const expected = { ebb: fault === "refused" ? 0 : 1, flow: 1 };
      assert.deepEqual(await callsByProvider(mark), expected);
    }
  });
}

for (const fault of BREAKS) {
  test(`openai: a stream's ${fault} raises and has no finish reason`, LIMIT, async () => {
    const mark = marked();
    const chunks = [];
    const stream = await client.chat.completions.create({
      model: `ebb/tokens-9+${fault}`, messages: says(mark), stream: true,
    });
    await assert.rejects(async () => {
      for await (const chunk of stream) chunks.push(chunk);
    }, OpenAI.APIError);
    assert.equal(chunks.filter((it) => it.choices[0].delta.content).length, 3);
    assert.ok(chunks.every((it) => it.choices[0].finish_reason === null));
    assert.deepEqual(await callsByProvider(mark), { ebb: 1, flow: 0 });
  });
}

test("openai: each error is raised as its type", LIMIT, async () => {
  const ask = (model, from = client) => from.chat.completions.create({ model, messages: says("x") });
  await assert.rejects(ask("openai", openaiClient("tg-wrong-key")), OpenAI.AuthenticationError);
  await assert.rejects(ask("nobody/knows"), OpenAI.NotFoundError);
  await assert.rejects(ask("ebb/status-400-context-length"), OpenAI.BadRequestError);
});

test("openai: exhausted attempts are told and not retried", LIMIT, async () => {
  for (const [route, type, status] of [
    ["openai-all-limited", OpenAI.RateLimitError, 429],
    ["openai-all-overloaded", OpenAI.InternalServerError, 503],
    ["openai-all-gone", OpenAI.InternalServerError, 503],
  ]) {
    const mark = marked();
    const asked = client.chat.completions.create({ model: route, messages: says(mark) });
    await assert.rejects(asked, (error) => {
      assert.ok(error instanceof type, `${route}: ${error}`);
      assert.equal(error.status, status);
      assert.equal(error.headers.get("x-should-retry"), "false");
      if (route === "openai-all-gone") assert.equal(error.error.attempts.length, 2);
      return true;
    });
    assert.deepEqual(await callsByProvider(mark), { ebb: 1, flow: 1 });
  }
});

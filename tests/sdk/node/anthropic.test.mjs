// The official `@anthropic-ai/sdk` for JavaScript against the gateway.

import assert from "node:assert/strict";
import { test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import {
  BREAKS, FAULTS, KEY, PIXEL, TIMEOUT_MS, anthropicClient, calls, callsByProvider, marked, says,
} from "./scene.mjs";

const client = anthropicClient();
const LIMIT = { timeout: 3 * TIMEOUT_MS };
const ASK = { model: "claude", max_tokens: 100 };
const TOOL = {
  name: "tide_table",
  input_schema: { type: "object", properties: { harbour: { type: "string" } } },
};

test("anthropic: an answer arrives, and who gave it", LIMIT, async () => {
  const { data, response } = await client.messages
    .create({ ...ASK, messages: says("good morning") })
    .withResponse();
  assert.equal(data.content[0].text, "ebb as steady heard: good morning");
  assert.equal(data.stop_reason, "end_turn");
  assert.equal(response.headers.get("x-tidegate-resolved"), "ebb-claude/steady");
});

test("anthropic: the caller's key stays here", LIMIT, async () => {
  const mark = marked();
  await client.messages.create({ ...ASK, messages: says(mark) });
  const [call] = await calls("ebb", mark);
  assert.ok(!JSON.stringify(call).includes(KEY));
});

test("anthropic: a stream gives text and the final message", LIMIT, async () => {
  const stream = client.messages.stream({ ...ASK, messages: says("good morning") });
  let text = "";
  stream.on("text", (piece) => { text += piece; });
  const message = await stream.finalMessage();
  assert.equal(text, "ebb as steady heard: good morning");
  assert.equal(message.content[0].text, text);
});

test("anthropic: a tool is called and its result is taken, streamed too", LIMIT, async () => {
  const messages = says("please use the tool");
  const ask = { ...ASK, messages, tools: [TOOL] };
  const first = await client.messages.create(ask);
  const streamed = await client.messages.stream(ask).finalMessage();
  for (const message of [first, streamed]) {
    assert.equal(message.stop_reason, "tool_use");
    assert.deepEqual(message.content[0].input, { harbour: "high tide" });
  }
  const result = { type: "tool_result", tool_use_id: first.content[0].id, content: "at noon" };
  const second = await client.messages.create({
    ...ask,
    messages: [...messages, { role: "assistant", content: first.content }, ...says([result])],
  });
  assert.equal(second.content[0].text, "ebb as steady heard: at noon");
});

test("anthropic: images, token counts and models work", LIMIT, async () => {
  const source = { type: "base64", media_type: "image/png", data: PIXEL };
  const seen = await client.messages.create({ ...ASK, messages: says([{ type: "image", source }]) });
  assert.match(seen.content[0].text, /saw 1 image/);
  const count = await client.messages.countTokens({ model: "claude", messages: says("hi") });
  assert.ok(count.input_tokens > 0);
  const names = [];
  for await (const model of client.models.list()) names.push(model.id);
  assert.ok(names.includes("claude"), names);
  assert.equal((await client.models.retrieve("ebb-claude/steady")).id, "ebb-claude/steady");
});

for (const fault of FAULTS) {
  test(`anthropic: a provider's ${fault} is invisible`, LIMIT, async () => {
    const [plain, streamed] = [marked(), marked()];
    const ask = { ...ASK, model: `claude-${fault}` };
    const first = await client.messages.create({ ...ask, messages: says(plain) });
    const second = await client.messages.stream({ ...ask, messages: says(streamed) }).finalMessage();
    for (const [message, mark] of [[first, plain], [second, streamed]]) {
      assert.equal(message.content[0].text, `flow as steady heard: ${mark}`);
      const expected = { ebb: fault === "refused" ? 0 : 1, flow: 1 };
      assert.deepEqual(await callsByProvider(mark), expected);
    }
  });
}

for (const fault of BREAKS) {
  test(`anthropic: a stream's ${fault} raises and never stops`, LIMIT, async () => {
    const mark = marked();
    const kinds = [];
    const stream = await client.messages.create({
      ...ASK, model: `ebb-claude/tokens-9+${fault}`, messages: says(mark), stream: true,
    });
    await assert.rejects(async () => {
      for await (const event of stream) kinds.push(event.type);
    }, Anthropic.APIError);
    assert.equal(kinds.filter((kind) => kind === "content_block_delta").length, 3);
    assert.ok(!kinds.includes("message_stop"));
    assert.deepEqual(await callsByProvider(mark), { ebb: 1, flow: 0 });
  });
}

test("anthropic: each error is raised as its type, and exhausted attempts once", LIMIT, async () => {
  const ask = (model, text, from = client) =>
    from.messages.create({ ...ASK, model, messages: says(text) });
  const stranger = anthropicClient("tg-wrong-key");
  await assert.rejects(ask("claude", "x", stranger), Anthropic.AuthenticationError);
  await assert.rejects(ask("nobody/knows", "x"), Anthropic.NotFoundError);
  await assert.rejects(
    ask("ebb-claude/status-400-context-length", "x"), Anthropic.BadRequestError,
  );
  for (const [route, type] of [
    ["claude-all-limited", Anthropic.RateLimitError],
    ["claude-all-overloaded", Anthropic.InternalServerError],
    ["claude-all-gone", Anthropic.InternalServerError],
  ]) {
    const mark = marked();
    await assert.rejects(ask(route, mark), type);
    assert.deepEqual(await callsByProvider(mark), { ebb: 1, flow: 1 });
  }
});

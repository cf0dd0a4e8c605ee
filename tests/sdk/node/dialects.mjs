// What each SDK makes of one exchange, plain and by its streaming helper.
//
// Every function asks a vendor behind the gateway for a sample of `tests/dialects`, with a request
// as a user of that SDK writes it, and returns the SDK's own object without what no two answers
// share: ids (replaced by their place), dates, names of models and tiers, and what a vendor seals
// for itself. What a vendor may leave out or send empty counts as absent.

import { strict as assert } from "node:assert";
import { anthropicClient, openaiClient } from "./scene.mjs";

export const MODELS = {
  chat: "vendor-chat/gpt-5.1",
  responses: "vendor-responses/gpt-5.1",
  messages: "vendor-messages/claude-sonnet-4-5",
  gemini: "vendor-gemini/gemini-2.5-flash",
};
const TOOLS = ["get_tide", "get_wind"];
const SCHEMA = {
  type: "object",
  properties: { place: { type: "string" }, options: { type: "object" } },
  required: ["place"],
};
const openai = openaiClient();
const anthropic = anthropicClient();

export function ask(sample) {
  return `When is high water in Kiel? [[${sample}]]`;
}

// Without what is absent, and without these keys, at any depth.
function pruned(value, quiet = []) {
  if (Array.isArray(value)) {
    return value.map((it) => pruned(it, quiet));
  }
  if (value === null || typeof value !== "object") {
    return value;
  }
  const kept = Object.entries(value)
    .filter(([key]) => !quiet.includes(key))
    .map(([key, it]) => [key, pruned(it, quiet)])
    .filter(([, it]) => it !== null && it !== undefined)
    .filter(([, it]) => typeof it !== "object" || Object.keys(it).length > 0);
  return Object.fromEntries(kept);
}

// Counts that are not zero; a vendor that does not count something says nothing of it.
function withoutZeros(usage) {
  const shown = Object.entries(usage)
    .map(([key, it]) => [key, it && typeof it === "object" ? withoutZeros(it) : it])
    .filter(([, it]) => it && (typeof it !== "object" || Object.keys(it).length > 0));
  return Object.fromEntries(shown);
}

// Each must be an id, and no two the same.
function checkIds(ids) {
  assert.ok(ids.every((it) => typeof it === "string" && it.length > 0), `${ids}`);
  assert.equal(new Set(ids).size, ids.length, `${ids}`);
}

async function chat(vendor, sample, isStream) {
  const request = {
    model: MODELS[vendor],
    messages: [
      { role: "developer", content: "Be brief." },
      { role: "user", content: ask(sample) },
    ],
    max_completion_tokens: 4096,
  };
  if (sample.includes("tool")) {
    const functions = TOOLS.map((name) => ({ name, description: "d", parameters: SCHEMA }));
    request.tools = functions.map((it) => ({ type: "function", function: it }));
  }
  if (sample === "thinking") request.reasoning_effort = "low";
  if (sample === "stop") request.stop = ["three"];
  let answer;
  if (isStream) {
    const stream = openai.chat.completions.stream({
      ...request,
      stream_options: { include_usage: true },
    });
    answer = await stream.finalChatCompletion();
  } else {
    answer = await openai.chat.completions.create(request);
  }
  const shown = structuredClone(JSON.parse(JSON.stringify(answer)));
  for (const { message } of shown.choices) {
    checkIds((message.tool_calls ?? []).map((it) => it.id));
    for (const call of message.tool_calls ?? []) {
      call.function.arguments = JSON.parse(call.function.arguments);
    }
  }
  shown.usage = withoutZeros(shown.usage);
  const quiet = ["id", "created", "model", "system_fingerprint", "service_tier", "index"];
  return pruned(shown, [...quiet, "parsed", "parsed_arguments", "extra_content"]);
}

async function responses(vendor, sample, isStream) {
  const request = {
    model: MODELS[vendor],
    instructions: "Be brief.",
    input: ask(sample),
    max_output_tokens: 4096,
    store: false,
  };
  if (sample.includes("tool")) {
    request.tools = TOOLS.map((name) => ({
      type: "function",
      name,
      parameters: SCHEMA,
      strict: false,
    }));
  }
  if (sample === "thinking") request.reasoning = { effort: "low", summary: "auto" };
  const answer = isStream
    ? await openai.responses.stream(request).finalResponse()
    : await openai.responses.create(request);
  // What the request set is repeated by a response; the samples do not know the request.
  const { object, status, error, incomplete_details, output, output_text, usage } = JSON.parse(
    JSON.stringify(answer),
  );
  checkIds(output.map((it) => it.id));
  const calls = output.filter((it) => it.type === "function_call");
  checkIds(calls.map((it) => it.call_id));
  for (const call of calls) call.arguments = JSON.parse(call.arguments);
  const isSealed = (it) => it.type === "reasoning" && it.summary.length === 0;
  const shown = {
    object,
    status,
    error,
    incomplete_details,
    output_text,
    output: output.filter((it) => !isSealed(it)),
    usage: withoutZeros(usage),
  };
  const quiet = ["id", "call_id", "encrypted_content", "parsed", "parsed_arguments"];
  return pruned(shown, quiet);
}

async function messages(vendor, sample, isStream) {
  const request = {
    model: MODELS[vendor],
    system: "Be brief.",
    max_tokens: 4096,
    messages: [{ role: "user", content: ask(sample) }],
  };
  if (sample.includes("tool")) {
    request.tools = TOOLS.map((name) => ({ name, input_schema: SCHEMA }));
  }
  if (sample === "thinking") request.thinking = { type: "enabled", budget_tokens: 1024 };
  if (sample === "stop") request.stop_sequences = ["three"];
  const answer = isStream
    ? await anthropic.messages.stream(request).finalMessage()
    : await anthropic.messages.create(request);
  const shown = JSON.parse(JSON.stringify(answer));
  checkIds(shown.content.filter((it) => it.type === "tool_use").map((it) => it.id));
  const isSealed = (it) => it.type === "redacted_thinking" || it.thinking === "";
  shown.content = shown.content.filter((it) => !isSealed(it));
  const { service_tier, cache_creation, ...usage } = shown.usage;
  shown.usage = withoutZeros(usage);
  const quiet = ["id", "model", "signature", "parsed_output", "caller", "container"];
  return pruned(shown, quiet);
}

export const CLIENTS = { chat, responses, messages };

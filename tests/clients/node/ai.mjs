// The Vercel AI SDK in a tool loop, as an application runs it.
//
// Usage: ai.mjs DIALECT URL MODEL PROMPT MODE, the key in OPENAI_API_KEY; `generateText` in the mode
// `plain`, `streamText` in the mode `stream`. Prints what the application sees, without what differs
// from run to run: every step with its calls, results, text, reason and usage.

import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";

const [dialect, url, name, prompt, mode] = process.argv.slice(2);
const apiKey = process.env.OPENAI_API_KEY;

const model = {
  chat: () => createOpenAI({ baseURL: `${url}/v1`, apiKey }).chat(name),
  responses: () => createOpenAI({ baseURL: `${url}/v1`, apiKey }).responses(name),
  messages: () => createAnthropic({ baseURL: `${url}/v1`, apiKey })(name),
  gemini: () => createGoogleGenerativeAI({ baseURL: `${url}/v1beta`, apiKey })(name),
}[dialect]();

const echo_text = tool({
  description: "Echo a text.",
  inputSchema: jsonSchema({
    type: "object",
    properties: { text: { type: "string" } },
    required: ["text"],
    additionalProperties: false,
  }),
  execute: async ({ text }) => text,
});

// Retries stay at the SDK's default: what it notices is part of what is tested.
const ask = { model, prompt, tools: { echo_text }, stopWhen: stepCountIs(6), maxOutputTokens: 4000 };

function seen(steps) {
  return steps.map((step) => ({
    text: step.text,
    calls: step.toolCalls.map((call) => [call.toolName, call.input]),
    results: step.toolResults.map((result) => result.output),
    reason: step.finishReason,
    usage: [step.usage.inputTokens, step.usage.outputTokens, step.usage.cachedInputTokens],
  }));
}

if (mode === "plain") {
  const whole = await generateText(ask);
  console.log(JSON.stringify({ steps: seen(whole.steps) }));
} else {
  // An error of a stream is told by a callback and by a part; both would be noticed.
  const problems = [];
  const stream = streamText({ ...ask, onError: ({ error }) => problems.push(String(error)) });
  const kinds = new Set();
  for await (const part of stream.fullStream) kinds.add(part.type);
  const told = [...kinds].filter((kind) => kind === "error" || kind === "abort");
  console.log(JSON.stringify({ steps: seen(await stream.steps), problems, told }));
}

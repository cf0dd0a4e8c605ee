// The scene as the tests see it: clients, and what the fake providers received.
//
// Clients are made as a user makes them: a base url and a key. Only the timeout is set too, so that
// a hanging gateway fails a test instead of stopping the run. Retries stay at the SDKs' default,
// because whether an SDK retries is part of what is tested.

import { randomUUID } from "node:crypto";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

const URL = process.env.TIDEGATE_URL;
const PROVIDERS = { ebb: process.env.EBB_URL, flow: process.env.FLOW_URL };

export const KEY = process.env.TIDEGATE_KEY;
export const TIMEOUT_MS = 20_000;

// One pixel, as small as a PNG gets.
export const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII=";

export function openaiClient(apiKey = KEY) {
  return new OpenAI({ baseURL: `${URL}/v1`, apiKey, timeout: TIMEOUT_MS });
}

export function anthropicClient(apiKey = KEY) {
  return new Anthropic({ baseURL: URL, apiKey, timeout: TIMEOUT_MS });
}

// A text that no other request of any run contains, to find its calls by.
export function marked(text = "good morning") {
  return `${text} ${randomUUID()}`;
}

// The messages of a chat, in both dialects.
export function says(content) {
  return [{ role: "user", content }];
}

// The calls that a fake provider received with this text in their body.
export async function calls(provider, mark) {
  const answer = await fetch(`${PROVIDERS[provider]}/__calls`);
  return (await answer.json()).calls.filter((call) => call.body.includes(mark));
}

export async function callsByProvider(mark) {
  return { ebb: (await calls("ebb", mark)).length, flow: (await calls("flow", mark)).length };
}

// Ways to fail before any content, streaming or not; `gateway.yaml` has a route for each.
export const FAULTS = [
  "refused",
  "status-500",
  "status-529",
  "status-429",
  "status-401",
  "not-http",
  "hang",
  "silence",
  "error-first",
  "cut-after-0",
  "stall-after-0",
];

// Ways to break after three of nine tokens. (An event whose JSON is broken passes as it came, and
// the SDKs' own parser complains of it: that is tested in Python.)
export const BREAKS = [
  "cut-after-3",
  "truncate-after-3",
  "error-after-3",
  "stall-after-3",
];

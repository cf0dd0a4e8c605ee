// The tools that need nothing of their client: every kind of content, notifications, errors.
//
// Names, arguments and texts are the conformance suite's contract.

import { setTimeout as sleep } from "node:timers/promises";
import { fromJsonSchema } from "@modelcontextprotocol/server";

// A red pixel, and a millisecond of silence.
export const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ"
  + "/pLvAAAAAElFTkSuQmCC";
const WAV = "UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQgAAACAgICAgICAgA==";

// Between two notifications: long enough for a client to see them one by one.
const STEP_MS = 50;

const text = (words) => ({ type: "text", text: words });
const image = { type: "image", data: PNG, mimeType: "image/png" };
const embedded = (uri, mimeType, words) =>
  ({ type: "resource", resource: { uri, mimeType, text: words } });

// A result that holds these words only.
export const saying = (words) => ({ content: [text(words)] });

// By the tool's name: a server is made for every request, and reading schemas is dear.
const read = new Map();

// Registers a tool; `schema` is JSON Schema, of an object.
export function tool(server, name, description, schema, answer) {
  if (!read.has(name)) read.set(name, fromJsonSchema({ type: "object", ...schema }));
  const inputSchema = read.get(name);
  return server.registerTool(name, { description, inputSchema }, answer);
}

const CONTENTS = {
  test_simple_text: ["Answers with text", [text("This is a simple text response for testing.")]],
  test_image_content: ["Answers with an image", [image]],
  test_audio_content: [
    "Answers with sound", [{ type: "audio", data: WAV, mimeType: "audio/wav" }],
  ],
  test_embedded_resource: ["Answers with a resource", [
    embedded("test://embedded-resource", "text/plain", "This is an embedded resource content."),
  ]],
  test_multiple_content_types: ["Answers with content of three kinds", [
    text("Multiple content types test:"),
    image,
    embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
  ]],
};

async function logging(ctx) {
  await ctx.mcpReq.log("info", "Tool execution started");
  await sleep(STEP_MS);
  await ctx.mcpReq.log("info", "Tool processing data");
  await sleep(STEP_MS);
  await ctx.mcpReq.log("info", "Tool execution completed");
  return saying("Three log lines were sent, to whoever wants them.");
}

async function progressing(ctx) {
  const progressToken = ctx.mcpReq._meta?.progressToken;
  for (const progress of [0, 50, 100]) {
    if (progress > 0) await sleep(STEP_MS);
    if (progressToken === undefined) continue;
    const params = { progressToken, progress, total: 100, message: `${progress} of 100` };
    await ctx.mcpReq.notify({ method: "notifications/progress", params });
  }
  return saying("All steps are done.");
}

// Ends the stream of the answer while the call goes on; the client has to come back for the rest.
async function reconnecting(ctx) {
  await sleep(STEP_MS);
  ctx.http?.closeSSE?.();
  await sleep(2 * STEP_MS);
  return saying("Reconnection test completed successfully");
}

// Keywords of JSON Schema 2020-12 that a typed copy of a schema would lose.
const SCHEMA_2020_12 = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  $defs: {
    address: {
      $anchor: "addressDef",
      type: "object",
      properties: { street: { type: "string" }, city: { type: "string" } },
    },
  },
  properties: {
    name: { type: "string" },
    address: { $ref: "#/$defs/address" },
    contactMethod: { type: "string", enum: ["phone", "email"] },
    phone: { type: "string" },
    email: { type: "string" },
  },
  allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
  if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
  then: { required: ["phone"] },
  else: { required: ["email"] },
  additionalProperties: false,
};

const MIRRORED = {
  properties: { region: { type: "string", "x-mcp-header": "Region" } },
  required: ["region"],
};

// `changes` are what the last two tools do.
export function registerTools(server, changes) {
  for (const [name, [description, content]] of Object.entries(CONTENTS)) {
    tool(server, name, description, {}, async () => ({ content }));
  }
  tool(server, "test_tool_with_logging", "Sends log lines", {}, (_, ctx) => logging(ctx));
  tool(server, "test_logging_tool", "Sends log lines too", {}, (_, ctx) => logging(ctx));
  tool(server, "test_tool_with_progress", "Tells its progress", {}, (_, ctx) => progressing(ctx));
  tool(server, "test_error_handling", "Always fails", {}, async () => {
    throw new Error("This tool intentionally returns an error for testing");
  });
  tool(server, "test_reconnection", "Ends its stream", {}, (_, ctx) => reconnecting(ctx));
  tool(server, "json_schema_2020_12_tool", "Has a schema of many keywords", SCHEMA_2020_12,
    async (given) => saying(JSON.stringify(given)));
  tool(server, "test_x_mcp_header", "Has its argument in a header too", MIRRORED,
    async ({ region }) => saying(`The region is ${region}.`));
  for (const [name, change] of Object.entries(changes)) {
    tool(server, `test_trigger_${name}_change`, `Changes the list of ${name}s`, {}, async () => {
      change();
      return saying(`The list of ${name}s has changed.`);
    });
  }
}

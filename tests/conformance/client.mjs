// A client that uses everything its server has: lists, calls, reads and gets it all.
//
// The conformance suite starts it, with the address of a server of its own as last argument, and
// watches what reaches that server.
//
//     node client.mjs URL                   talks to the server itself
//     TIDEGATE=path node client.mjs URL     starts a gateway in between, and ends it afterwards

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? "";
const version = process.env.MCP_CONFORMANCE_PROTOCOL_VERSION ?? "2025-11-25";
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}");

// Less than the suite allows: whoever is killed from outside leaves its gateway behind.
const LIMIT_MS = 15_000;

// Starts a gateway before this server: its address, and how to end it.
async function gateway(binary, url) {
  const folder = mkdtempSync(join(tmpdir(), "tidegate-conformance-"));
  const config = join(folder, "tidegate.yaml");
  writeFileSync(config, [
    "listen: 127.0.0.1:0",
    "admin: { listen: 127.0.0.1:0 }",
    // A machine that does other things too is slow.
    "mcp:",
    "  connect_timeout: 10s",
    "  connect_wait: 10s",
    `  servers: { scenario: { url: "${url}" } }`,
  ].join("\n"));
  const process = spawn(binary, ["serve", "-c", config], { stdio: ["ignore", "inherit", "pipe"] });
  const ended = new Promise((done) => process.on("exit", done));
  const end = async () => {
    process.kill();
    await ended;
    rmSync(folder, { recursive: true });
  };
  const address = new Promise((found, fail) => {
    ended.then(() => fail(new Error("the gateway ended at once")));
    createInterface(process.stderr).on("line", (line) => {
      console.log(line);
      const named = /^ {2}mcp +(\S+)/.exec(line);
      if (named !== null) found(named[1]);
    });
  });
  return { url: await address, end };
}

// Something that fits a schema of an argument.
function some(schema = {}) {
  const values = {
    string: "text", number: 1, integer: 1, boolean: true, object: {}, array: [], null: null,
  };
  return schema.default ?? schema.enum?.[0] ?? values[schema.type ?? "string"];
}

// The calls that the scenario wants, or one to every tool.
function calls(tools) {
  if (context.toolCalls !== undefined) return context.toolCalls;
  const subject = tools.find(({ name }) => name === "json_schema_2020_12_tool");
  return tools.filter((tool) => tool !== subject).map(({ name, inputSchema }) => {
    if (name === "json_schema_echo") return { name, arguments: { schema: subject.inputSchema } };
    const given = Object.entries(inputSchema.properties ?? {});
    return { name, arguments: Object.fromEntries(given.map(([key, it]) => [key, some(it)])) };
  });
}

// What goes wrong is told and no reason to stop: the suite judges what was sent.
async function attempt(what, doing) {
  try {
    console.log(what, JSON.stringify(await doing()));
  } catch (error) {
    console.log(what, String(error));
  }
}

async function useEverything(client) {
  const offered = client.getServerCapabilities() ?? {};
  const { tools } = offered.tools ? await client.listTools() : { tools: [] };
  for (const call of calls(tools)) await attempt(call.name, () => client.callTool(call));
  const { resources } = offered.resources ? await client.listResources() : { resources: [] };
  for (const { uri } of resources) await attempt(uri, () => client.readResource({ uri }));
  const { prompts } = offered.prompts ? await client.listPrompts() : { prompts: [] };
  for (const { name } of prompts) await attempt(name, () => client.getPrompt({ name }));
}

// Only a client that is asked says that it can be.
const isAsked = scenario.startsWith("elicitation-") || scenario.startsWith("sep-2322-");
const elicitation = { form: { applyDefaults: true } };
const client = new Client({ name: "tidegate-conformance-tests", version: "1" }, {
  capabilities: isAsked ? { elicitation } : {},
  ...(version >= "2026-07-28" && { versionNegotiation: { mode: "auto" } }),
});
if (isAsked) {
  client.setRequestHandler("elicitation/create", async () => ({ action: "accept", content: {} }));
}

const server = process.argv.at(-1);
const between = process.env.TIDEGATE ? await gateway(process.env.TIDEGATE, server) : undefined;
const late = setTimeout(async () => {
  console.log("this takes too long");
  await between?.end();
  process.exit(1);
}, LIMIT_MS);
try {
  const transport = new StreamableHTTPClientTransport(new URL(between?.url ?? server));
  await client.connect(transport);
  console.log("connected", client.getNegotiatedProtocolVersion());
  await useEverything(client);
  await transport.terminateSession();
  await client.close();
} finally {
  clearTimeout(late);
  await between?.end();
}

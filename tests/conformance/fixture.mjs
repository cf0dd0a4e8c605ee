// An MCP server that has everything the conformance suite asks for, in both eras.
//
// It is a server like others are: made with the official SDK, serving sessions and the stateless
// era at one endpoint. What it offers is in tools.mjs, asking.mjs and reading.mjs.
//
//     node fixture.mjs [both | sessions | stateless]
//
// serves on a free port of localhost, and prints its address.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import {
  McpServer, WebStandardStreamableHTTPServerTransport, createMcpHandler,
  hostHeaderValidationResponse, isLegacyRequest, localhostAllowedHostnames,
  localhostAllowedOrigins, originValidationResponse,
} from "@modelcontextprotocol/server";
import { STATE, registerAsking } from "./asking.mjs";
import { registerReading } from "./reading.mjs";
import { registerTools, saying, tool } from "./tools.mjs";

// What a client is told to wait before it comes back for the rest of a stream.
const RETRY_MS = 200;
// Events of one session that can be had again; more than any scenario makes.
const KEPT_EVENTS = 1000;

// Whether the lists hold one entry more; the trigger tools change it.
const more = { tool: false, prompt: false };
// By its id: each session has a server of its own.
const sessions = new Map();

const changes = {
  tool: () => changed("tool", () => stateless.notify.toolsChanged()),
  prompt: () => changed("prompt", () => stateless.notify.promptsChanged()),
};

// A session's server tells of it by itself; the others are told here.
function changed(kind, tellSubscribers) {
  more[kind] = !more[kind];
  for (const { extra } of sessions.values()) {
    if (more[kind]) extra[kind].enable(); else extra[kind].disable();
  }
  tellSubscribers();
}

function makeServer() {
  const server = new McpServer({ name: "conformance-fixture", version: "1.0.0" }, {
    instructions: "Everything the conformance suite asks for.",
    capabilities: {
      tools: { listChanged: true }, prompts: { listChanged: true },
      resources: { subscribe: true, listChanged: true }, logging: {}, completions: {},
    },
    requestState: { verify: STATE.verify },
  });
  registerTools(server, changes);
  registerAsking(server);
  registerReading(server);
  const extra = {
    tool: tool(server, "test_extra_tool", "Is there now and then", {}, async () => saying("Here.")),
    prompt: server.registerPrompt("test_extra_prompt", { description: "Is there now and then" },
      async () => ({ messages: [{ role: "user", content: { type: "text", text: "Here." } }] })),
  };
  for (const kind of ["tool", "prompt"]) if (!more[kind]) extra[kind].disable();
  return { server, extra };
}

// Events of one session by their id, which begins with the stream they belong to.
class Events {
  kept = [];

  async storeEvent(stream, message) {
    const id = `${stream}/${randomUUID()}`;
    this.kept.push({ id, stream, message });
    if (this.kept.length > KEPT_EVENTS) this.kept.shift();
    return id;
  }

  async getStreamIdForEventId(id) {
    return id.slice(0, id.lastIndexOf("/"));
  }

  async replayEventsAfter(last, { send }) {
    const stream = await this.getStreamIdForEventId(last);
    const after = this.kept.slice(this.kept.findIndex(({ id }) => id === last) + 1);
    for (const event of after) {
      // A stream's first event holds no message: it is there to be named.
      const isMessage = Object.keys(event.message).length > 0;
      if (event.stream === stream && isMessage) await send(event.id, event.message);
    }
    return stream;
  }
}

const stateless = createMcpHandler(() => makeServer().server, { legacy: "reject" });

async function inSession(request) {
  const id = request.headers.get("mcp-session-id");
  if (id !== null) {
    const session = sessions.get(id);
    if (session === undefined) return refusal(404, -32001, "session not found");
    return session.transport.handleRequest(request);
  }
  const { server, extra } = makeServer();
  const transport = new WebStandardStreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    eventStore: new Events(),
    retryInterval: RETRY_MS,
    onsessioninitialized: (made) => { sessions.set(made, { extra, transport }); },
    onsessionclosed: (closed) => { sessions.delete(closed); },
  });
  await server.connect(transport);
  return transport.handleRequest(request);
}

const refusal = (status, code, message) =>
  Response.json({ jsonrpc: "2.0", id: null, error: { code, message } }, { status });

const ERAS = {
  both: async (request) =>
    (await isLegacyRequest(request)) ? inSession(request) : stateless.fetch(request),
  sessions: inSession,
  stateless: stateless.fetch,
};
const serve = ERAS[process.argv[2] ?? "both"];
if (serve === undefined) throw new Error(`one of ${Object.keys(ERAS).join(", ")}`);

// Bridges Node's HTTP to the Request and Response of the web.
const http = createServer(async (req, res) => {
  const gone = new AbortController();
  res.on("close", () => gone.abort());
  const request = new Request(`http://${req.headers.host}${req.url}`, {
    method: req.method,
    headers: Object.entries(req.headers).map(([name, value]) => [name, String(value)]),
    ...(req.method === "POST" && { body: Readable.toWeb(req), duplex: "half" }),
    signal: gone.signal,
  });
  try {
    const response = hostHeaderValidationResponse(request, localhostAllowedHostnames())
      ?? originValidationResponse(request, localhostAllowedOrigins())
      ?? await serve(request);
    res.writeHead(response.status, Object.fromEntries(response.headers));
    res.flushHeaders();
    if (response.body === null) res.end();
    else await pipeline(Readable.fromWeb(response.body), res);
  } catch (error) {
    // A client that went away is no news.
    if (gone.signal.aborted) return;
    console.error(error);
    if (!res.headersSent) res.writeHead(500);
    res.end();
  }
});
http.listen(Number(process.env.PORT ?? 0), "127.0.0.1", () => {
  console.log(`http://localhost:${http.address().port}/mcp`);
});

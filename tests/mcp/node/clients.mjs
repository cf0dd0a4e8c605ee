// Both official TypeScript clients behind one face, so that each is asked the same.
//
// Each is opened as a user opens it: a url and a key. A client that can be asked things (sampling,
// elicitation, roots) answers them at once and remembers that it was asked.

import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import {
  StreamableHTTPClientTransport as TransportV1,
} from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import * as v1 from "@modelcontextprotocol/sdk/types.js";
import { Client as ClientV2, StreamableHTTPClientTransport as TransportV2 }
  from "@modelcontextprotocol/client";
import { ENDPOINT, KEY } from "./scene.mjs";

export const ROOT = "file:///harbour";
export const SAMPLE = "the tide is high";
export const ELICITED = { name: "Ada", check: true };

const INFO = { name: "tidegate-mcp-tests", version: "1" };
const ABLE = { sampling: {}, elicitation: { form: {}, url: {} }, roots: { listChanged: true } };

// What a client heard that it did not ask for, and its answers to what it is asked.
function ears() {
  const heard = { logs: [], updated: [], asked: [], changed: 0 };
  return {
    heard,
    notifications: {
      "notifications/message": (it) => { heard.logs.push(it.params); },
      "notifications/resources/updated": (it) => { heard.updated.push(it.params.uri); },
      "notifications/tools/list_changed": () => { heard.changed += 1; },
    },
    requests: {
      "sampling/createMessage": (it) => {
        heard.asked.push(it);
        return { role: "assistant", content: { type: "text", text: SAMPLE }, model: "tide-1" };
      },
      "elicitation/create": (it) => {
        heard.asked.push(it);
        return { action: "accept", content: ELICITED };
      },
      "roots/list": (it) => {
        heard.asked.push(it);
        return { roots: [{ uri: ROOT, name: "harbour" }] };
      },
    },
  };
}

// Version 1 wants schemas where version 2 wants names.
const SCHEMAS = {
  "notifications/message": v1.LoggingMessageNotificationSchema,
  "notifications/resources/updated": v1.ResourceUpdatedNotificationSchema,
  "notifications/tools/list_changed": v1.ToolListChangedNotificationSchema,
  "sampling/createMessage": v1.CreateMessageRequestSchema,
  "elicitation/create": v1.ElicitRequestSchema,
  "roots/list": v1.ListRootsRequestSchema,
};

async function opened(parts, { key = KEY, isAble = true } = {}) {
  const { Client, Transport, options, keyOf, call, version } = parts;
  const client = new Client(INFO, { ...options, capabilities: isAble ? ABLE : {} });
  const { heard, notifications, requests } = ears();
  for (const [name, hear] of Object.entries(notifications)) {
    client.setNotificationHandler(keyOf(name), hear);
  }
  for (const [name, answer] of isAble ? Object.entries(requests) : []) {
    client.setRequestHandler(keyOf(name), answer);
  }
  const headers = { authorization: `Bearer ${key}` };
  const transport = new Transport(ENDPOINT, { requestInit: { headers } });
  await client.connect(transport);
  return {
    client,
    heard,
    version: () => version(client, transport),
    call: (name, args, options) => call(client, { name, arguments: args }, options),
    async close() {
      await transport.terminateSession();
      await client.close();
    },
  };
}

const V1 = {
  Client: ClientV1,
  Transport: TransportV1,
  options: {},
  keyOf: (name) => SCHEMAS[name],
  call: (client, params, options) => client.callTool(params, undefined, options),
  version: (_client, transport) => transport.protocolVersion,
};

const V2 = {
  Client: ClientV2,
  Transport: TransportV2,
  options: {},
  keyOf: (name) => name,
  call: (client, params, options) => client.callTool(params, options),
  version: (client) => client.getNegotiatedProtocolVersion(),
};

// Tries the stateless era first and has to fall back by itself.
const V2_AUTO = { ...V2, options: { versionNegotiation: { mode: "auto" } } };

export const CLIENTS = {
  "ts v1": (how) => opened(V1, how),
  "ts v2": (how) => opened(V2, how),
  "ts v2, auto": (how) => opened(V2_AUTO, how),
};

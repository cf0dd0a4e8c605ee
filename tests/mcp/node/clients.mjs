// Both official TypeScript clients behind one face, so that each is asked the same.
//
// Each is opened as a user opens it: a url and a key, the gateway's unless another place is named.
// A client that can be asked things (sampling, elicitation, roots) answers them at once and
// remembers that it was asked.

import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport as SseV1 } from "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport as StdioV1 } from "@modelcontextprotocol/sdk/client/stdio.js";
import {
  StreamableHTTPClientTransport as HttpV1,
} from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import * as v1 from "@modelcontextprotocol/sdk/types.js";
import {
  Client as ClientV2, SSEClientTransport as SseV2, StreamableHTTPClientTransport as HttpV2,
} from "@modelcontextprotocol/client";
import { StdioClientTransport as StdioV2 } from "@modelcontextprotocol/client/stdio";
import { ENDPOINT, KEY } from "./scene.mjs";

// Revisions are dates; from this one on there are no sessions.
export const STATELESS = "2026-07-28";
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
      "notifications/resources/list_changed": () => { heard.changed += 1; },
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
  "notifications/resources/list_changed": v1.ResourceListChangedNotificationSchema,
  "sampling/createMessage": v1.CreateMessageRequestSchema,
  "elicitation/create": v1.ElicitRequestSchema,
  "roots/list": v1.ListRootsRequestSchema,
};

// The way to a place: one of a url, an old url, a program.
function way({ Http, Sse, Stdio }, { http, sse, command }, key) {
  if (command !== undefined) {
    return new Stdio({ command: command[0], args: command.slice(1), stderr: "ignore" });
  }
  if (sse !== undefined) return new Sse(new URL(sse));
  const headers = { authorization: `Bearer ${key}` };
  return new Http(new URL(http), { requestInit: { headers } });
}

async function opened(parts, { key = KEY, isAble = true, at = { http: ENDPOINT } } = {}) {
  const { Client, options, keyOf, call, version, isStateless } = parts;
  const client = new Client(INFO, { ...options, capabilities: isAble ? ABLE : {} });
  const { heard, notifications, requests } = ears();
  for (const [name, hear] of Object.entries(notifications)) {
    client.setNotificationHandler(keyOf(name), hear);
  }
  for (const [name, answer] of isAble ? Object.entries(requests) : []) {
    client.setRequestHandler(keyOf(name), answer);
  }
  const transport = way(parts, at, key);
  await client.connect(transport);
  return {
    client,
    heard,
    isStateless,
    version: () => version(client, transport),
    call: (name, args, options) => call(client, { name, arguments: args }, options),
    // While `work` lasts, changes of lists and of this resource are told.
    async hearing(uri, work) {
      if ((version(client, transport) ?? "") >= STATELESS) {
        const filter = { toolsListChanged: true, resourcesListChanged: true };
        if (uri !== undefined) filter.resourceSubscriptions = [uri];
        const subscription = await client.listen(filter);
        try { await work(); } finally { await subscription.close(); }
        return;
      }
      if (uri !== undefined) await client.subscribeResource({ uri });
      await work();
      if (uri !== undefined) await client.unsubscribeResource({ uri });
    },
    async close() {
      await transport.terminateSession?.();
      await client.close();
    },
  };
}

const V1 = {
  Client: ClientV1,
  Http: HttpV1,
  Sse: SseV1,
  Stdio: StdioV1,
  options: {},
  keyOf: (name) => SCHEMAS[name],
  call: (client, params, options) => client.callTool(params, undefined, options),
  version: (_client, transport) => transport.protocolVersion,
  isStateless: false,
};

const V2 = {
  Client: ClientV2,
  Http: HttpV2,
  Sse: SseV2,
  Stdio: StdioV2,
  options: {},
  keyOf: (name) => name,
  call: (client, params, options) => client.callTool(params, options),
  version: (client) => client.getNegotiatedProtocolVersion(),
  isStateless: false,
};

// Tries the stateless era first. The gateway speaks both, so it stays there.
const V2_AUTO = {
  ...V2, options: { versionNegotiation: { mode: "auto" } }, isStateless: true,
};

const opener = (parts) =>
  Object.assign((how) => opened(parts, how), { isStateless: parts.isStateless });

export const CLIENTS = {
  "ts v1": opener(V1),
  "ts v2": opener(V2),
  "ts v2, auto": opener(V2_AUTO),
};

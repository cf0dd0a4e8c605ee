// What every client is shown, each claim a function that takes an open client.
//
// The claims are made in one session, in this order, and none needs another one's outcome.

import assert from "node:assert/strict";
import { ELICITED, ROOT, SAMPLE, STATELESS } from "./clients.mjs";
import { FILES, OFFERED, REPOSITORY, atOnce, tools, until } from "./scene.mjs";

const TEXT = "demo://resource/dynamic/text/1";
const BOTH = ["everything", "everything-http"];

export const textOf = (result) =>
  result.content.filter((it) => it.type === "text").map((it) => it.text).join("\n");

// The text of a call that has to succeed.
export async function said(open, name, args) {
  const result = await open.call(name, args);
  assert.ok(!result.isError, textOf(result));
  return textOf(result);
}

// The names of all tools, over all pages.
export async function toolNames(open) {
  const names = [];
  let cursor;
  do {
    const page = await open.client.listTools(cursor === undefined ? undefined : { cursor });
    names.push(...page.tools.map((it) => it.name));
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return names.sort();
}

export const STEPS = {
  async "learns whom it talks to and in which version"(open) {
    assert.equal(open.version(), open.isStateless ? STATELESS : "2025-11-25");
    assert.equal(open.client.getServerVersion().name, "tidegate");
    assert.match(open.client.getInstructions(), /^# everything\n/m);
  },

  async "is offered exactly the tools of all servers"(open) {
    assert.deepEqual(await toolNames(open), tools(Object.keys(OFFERED), { asking: true }));
    const { tools: listed } = await open.client.listTools();
    const sum = listed.find((it) => it.name === "everything_get-sum");
    assert.deepEqual(sum.inputSchema.required, ["a", "b"]);
    assert.equal(sum.annotations.readOnlyHint, true);
    if (open.isStateless) return; // The field below is none of this era's.
    const query = listed.find((it) => it.name === "everything_simulate-research-query");
    assert.equal(query.execution.taskSupport, "required");
  },

  async "calls a tool of each server"(open) {
    for (const server of BOTH) {
      assert.equal(await said(open, `${server}_echo`, { message: "ahoy" }), "Echo: ahoy");
      assert.match(await said(open, `${server}_get-sum`, { a: 2, b: 3 }), /5/);
    }
    const read = await said(open, "filesystem_read_text_file", { path: `${FILES}/tide.txt` });
    assert.equal(read.trim(), "high water at noon");
    const pier = { name: "Pier", entityType: "place", observations: ["it is long"] };
    await said(open, "memory_create_entities", { entities: [pier] });
    assert.match(await said(open, "memory_open_nodes", { names: ["Pier"] }), /it is long/);
    const now = JSON.parse(await said(open, "time_get_current_time", { timezone: "UTC" }));
    assert.equal(now.timezone, "UTC");
    const log = await said(open, "git_git_log", { repo_path: REPOSITORY });
    assert.match(log, /first light/);
  },

  async "gets every kind of content"(open) {
    for (const server of BOTH) {
      const chicago = { location: "Chicago" };
      const weather = await open.call(`${server}_get-structured-content`, chicago);
      assert.equal(weather.structuredContent.humidity, 82);
      const image = await open.call(`${server}_get-tiny-image`, {});
      const { data } = image.content.find((it) => it.type === "image");
      assert.equal(Buffer.from(data, "base64").subarray(1, 4).toString(), "PNG");
      const links = await open.call(`${server}_get-resource-links`, { count: 2 });
      const kinds = ["text", "resource_link", "resource_link"];
      assert.deepEqual(links.content.map((it) => it.type), kinds);
      const noted = await open.call(`${server}_get-annotated-message`, { messageType: "error" });
      assert.equal(noted.content[0].annotations.priority, 1);
    }
  },

  async "follows the progress of a call in order"(open) {
    for (const server of BOTH) {
      const heard = [];
      const result = await open.call(
        `${server}_trigger-long-running-operation`, { duration: 0.5, steps: 5 },
        { onprogress: ({ progress, total }) => heard.push([progress, total]) },
      );
      assert.match(textOf(result), /completed/);
      assert.deepEqual(heard, [1, 2, 3, 4, 5].map((step) => [step, 5]));
    }
  },

  async "hears the log at the level it asked for"(open) {
    const mentioned = () =>
      open.heard.logs.filter((it) => /Received Subscribe Resource request/.test(it.data));
    open.heard.logs.length = 0;
    await open.client.setLoggingLevel("debug");
    await open.client.subscribeResource({ uri: TEXT });
    await until(() => mentioned().length > 0);
    assert.equal(mentioned()[0].level, "info");
    await open.client.setLoggingLevel("error");
    open.heard.logs.length = 0;
    await open.client.subscribeResource({ uri: TEXT });
    await said(open, "everything_echo", { message: "later" });
    assert.deepEqual(mentioned(), []);
    await open.client.setLoggingLevel("debug");
    await open.client.unsubscribeResource({ uri: TEXT });
  },

  async "lists and reads resources"(open) {
    const uris = (await open.client.listResources()).resources.map((it) => it.uri);
    assert.ok(uris.includes("demo://resource/static/document/features.md"), uris.join());
    assert.ok(uris.includes("memory://knowledge-graph"), uris.join());
    const { resourceTemplates } = await open.client.listResourceTemplates();
    const expected = ["blob", "text"].map((it) => `demo://resource/dynamic/${it}/{resourceId}`);
    assert.deepEqual(resourceTemplates.map((it) => it.uriTemplate).sort(), expected);
    const read = async (uri) => (await open.client.readResource({ uri })).contents[0];
    const document = await read("demo://resource/static/document/features.md");
    assert.match(document.text, /Everything/);
    assert.match((await read("demo://resource/dynamic/text/7")).text, /^Resource 7: /);
    const { blob } = await read("demo://resource/dynamic/blob/7");
    assert.match(Buffer.from(blob, "base64").toString(), /^Resource 7: /);
    const graph = JSON.parse((await read("memory://knowledge-graph")).text);
    assert.ok(Array.isArray(graph.entities));
  },

  async "hears of updates of what it subscribed to"(open) {
    open.heard.updated.length = 0;
    await open.hearing(TEXT, async () => {
      assert.match(await said(open, "everything_toggle-subscriber-updates", {}), /^Started/);
      await until(() => open.heard.updated.length > 0);
      assert.equal(open.heard.updated[0], TEXT);
      await said(open, "everything_toggle-subscriber-updates", {});
    });
  },

  async "lists and gets prompts"(open) {
    const names = (await open.client.listPrompts()).prompts.map((it) => it.name).sort();
    const prompts = (server) => OFFERED[server].prompts.map((it) => `${server}_${it}`);
    assert.deepEqual(names, BOTH.flatMap(prompts).sort());
    for (const server of BOTH) {
      const get = async (name, args) =>
        (await open.client.getPrompt({ name: `${server}_${name}`, arguments: args })).messages;
      const [plain] = await get("simple-prompt");
      assert.equal(plain.content.text, "This is a simple prompt without arguments.");
      const [asked] = await get("args-prompt", { city: "Brest" });
      assert.equal(asked.content.text, "What's weather in Brest?");
      const [, embedded] = await get("resource-prompt", { resourceType: "Text", resourceId: "2" });
      assert.equal(embedded.content.resource.uri, "demo://resource/dynamic/text/2");
    }
  },

  async "completes arguments of prompts and templates"(open) {
    const complete = async (ref, name, value, context) =>
      (await open.client.complete({ ref, argument: { name, value }, context })).completion.values;
    for (const server of BOTH) {
      const ref = { type: "ref/prompt", name: `${server}_completable-prompt` };
      assert.deepEqual(await complete(ref, "department", "S"), ["Sales", "Support"]);
      const context = { arguments: { department: "Sales" } };
      assert.deepEqual(await complete(ref, "name", "E", context), ["Eve"]);
    }
    const ref = { type: "ref/resource", uri: "demo://resource/dynamic/text/{resourceId}" };
    assert.deepEqual(await complete(ref, "resourceId", "4"), ["4"]);
  },

  async "is asked for a sample by a tool"(open) {
    for (const server of BOTH) {
      open.heard.asked.length = 0;
      const prompt = { prompt: "the tide?" };
      const answer = await said(open, `${server}_trigger-sampling-request`, prompt);
      assert.ok(answer.includes(SAMPLE), answer);
      const [asked] = open.heard.asked.filter((it) => it.method === "sampling/createMessage");
      assert.match(JSON.stringify(asked.params.messages), /the tide\?/);
    }
  },

  async "is asked for an elicitation by a tool"(open) {
    for (const server of BOTH) {
      open.heard.asked.length = 0;
      const answer = await said(open, `${server}_trigger-elicitation-request`, {});
      assert.ok(answer.includes(`Name: ${ELICITED.name}`), answer);
      const [asked] = open.heard.asked.filter((it) => it.method === "elicitation/create");
      assert.deepEqual(asked.params.requestedSchema.required, ["name"]);
    }
  },

  async "is asked for its roots, and again when they change"(open) {
    for (const server of BOTH) {
      assert.ok((await said(open, `${server}_get-roots-list`, {})).includes(ROOT));
    }
    if (open.isStateless) return; // Whoever wants them asks again.
    open.heard.asked.length = 0;
    await open.client.sendRootsListChanged();
    const asked = () => open.heard.asked.filter((it) => it.method === "roots/list").length;
    await until(() => asked() >= BOTH.length);
  },

  async "gives a call up and goes on"(open) {
    for (const server of BOTH) {
      const giveUp = new AbortController();
      const call = open.call(
        `${server}_trigger-long-running-operation`, { duration: 60, steps: 600 },
        { signal: giveUp.signal, onprogress: () => giveUp.abort("enough") },
      );
      await assert.rejects(call, /enough/);
      assert.equal(await said(open, `${server}_echo`, { message: "next" }), "Echo: next");
    }
  },

  async "makes many calls at once and gets each its own answer"(open) {
    const one = async (server, number) => {
      const message = `${server} ${number}`;
      assert.equal(await said(open, `${server}_echo`, { message }), `Echo: ${message}`);
    };
    const numbers = Array.from({ length: 20 }, (_, number) => number);
    await Promise.all(BOTH.flatMap((server) => numbers.map((number) => one(server, number))));
  },

  async "is answered a ping"(open) {
    await open.client.ping();
  },

  async "is told what is wrong with a request"(open) {
    const unknown = "unknown tool: `everything_eco`; did you mean `everything_echo`?";
    const refused = (words) => (error) => {
      assert.ok(error.message.includes(words), error.message);
      return true;
    };
    const call = open.call("everything_eco", { message: "?" });
    await atOnce(assert.rejects(call, refused(unknown)));
    const prompt = open.client.getPrompt({ name: "everything_no-prompt" });
    await atOnce(assert.rejects(prompt, refused("unknown prompt: `everything_no-prompt`")));
    const read = open.client.readResource({ uri: "nowhere://at/all" });
    await atOnce(assert.rejects(read, refused("resource not found: `nowhere://at/all`")));
    // What a server says of its arguments is the server's own.
    for (const server of BOTH) {
      const result = await open.call(`${server}_get-sum`, { a: "two", b: 3 });
      assert.ok(result.isError && /Input validation error/.test(textOf(result)));
    }
    const missing = { path: `${FILES}/missing.txt` };
    const result = await open.call("filesystem_read_text_file", missing);
    assert.ok(result.isError && /ENOENT/.test(textOf(result)));
  },
};

// The stateless era has no such requests.
export const SESSIONS_ONLY = ["hears the log at the level it asked for", "is answered a ping"];

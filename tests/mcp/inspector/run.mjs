// The MCP inspector's command line against the gateway: one session per command, as a user's.
//
// It can be asked for roots, and for nothing else.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, test } from "node:test";
import {
  ENDPOINT, FILES, KEY, LIMIT_MS, OFFERED, REPOSITORY, remote, tools,
} from "../node/scene.mjs";

const LIMIT = { timeout: 2 * LIMIT_MS };
const ROOTS_ONLY = /_trigger-(?!long-running)/;
const expected = (servers) => tools(servers, { asking: true }).filter((it) => !ROOTS_ONLY.test(it));

// Runs it with a method; its exit code, its result, and what it says of errors.
function inspector(method, words = [], key = KEY) {
  const args = [
    process.env.INSPECTOR, "--cli", ENDPOINT.href, "--transport", "http", "--format", "json",
    "--quiet", "--header", `Authorization: Bearer ${key}`, "--method", method, ...words,
  ];
  return new Promise((done) => {
    execFile(process.env.INSPECTOR_NODE, args, { timeout: LIMIT_MS }, (error, stdout, stderr) => {
      done({ code: error?.code ?? 0, result: stdout && JSON.parse(stdout).result, stderr });
    });
  });
}

const call = (name, args) =>
  inspector("tools/call", ["--tool-name", name, "--tool-args-json", JSON.stringify(args)]);

const names = (it) => it.result.tools.map((tool) => tool.name).sort();

before(() => remote.start(), LIMIT);
after(() => remote.kill(), LIMIT);

test("inspector lists exactly the tools of all servers", LIMIT, async () => {
  for (const era of ["legacy", "auto"]) {
    const listed = await inspector("tools/list", ["--protocol-era", era]);
    assert.equal(listed.code, 0, listed.stderr);
    assert.deepEqual(names(listed), expected(Object.keys(OFFERED)));
  }
});

test("inspector calls a tool of each server", LIMIT, async () => {
  const calls = [
    ["everything_echo", { message: "ahoy" }, /Echo: ahoy/],
    ["everything-http_echo", { message: "ahoy" }, /Echo: ahoy/],
    ["filesystem_read_text_file", { path: `${FILES}/tide.txt` }, /high water at noon/],
    ["memory_read_graph", {}, /entities/],
    ["time_get_current_time", { timezone: "UTC" }, /UTC/],
    ["git_git_log", { repo_path: REPOSITORY }, /first light/],
  ];
  for (const [name, args, said] of calls) {
    const called = await call(name, args);
    assert.equal(called.code, 0, called.stderr);
    assert.match(called.result.content[0].text, said);
  }
});

test("inspector reads resources and gets prompts", LIMIT, async () => {
  const read = await inspector("resources/read", ["--uri", "demo://resource/dynamic/text/7"]);
  assert.match(read.result.contents[0].text, /^Resource 7: /);
  const words = ["--prompt-name", "everything-http_args-prompt", "--prompt-args", "city=Brest"];
  const prompt = await inspector("prompts/get", words);
  assert.equal(prompt.result.messages[0].content.text, "What's weather in Brest?");
});

test("inspector is told of a tool's error and of a wrong key", LIMIT, async () => {
  const missing = await call("filesystem_read_text_file", { path: `${FILES}/missing.txt` });
  assert.equal(missing.code, 5, missing.stderr);
  assert.match(missing.result.content[0].text, /ENOENT/);
  const wrong = await inspector("tools/list", [], "tg-wrong");
  assert.notEqual(wrong.code, 0);
  assert.match(wrong.stderr, /auth_required/);
});

test("inspector goes without a server that is down", LIMIT, async () => {
  await remote.kill();
  try {
    const listed = await inspector("tools/list");
    const others = Object.keys(OFFERED).filter((server) => server !== "everything-http");
    assert.deepEqual(names(listed), expected(others));
    const called = await call("everything_echo", { message: "still" });
    assert.match(called.result.content[0].text, /Echo: still/);
  } finally {
    await remote.start();
  }
});

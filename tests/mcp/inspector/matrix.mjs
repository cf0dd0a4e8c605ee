// The inspector's part of the matrix: one process per cell, as a user's command.
//
// Without a gateway it lists, and tries what its command line may not have, at one server of its
// era; a call it tries at every server.

import { execFile } from "node:child_process";
import { appendFileSync, readFileSync } from "node:fs";
import { ENDPOINT, LIMIT_MS } from "../node/scene.mjs";

const ERAS = { "inspector, sessions": "legacy", inspector: "modern" };
const HOMES = { legacy: "own-stdio", modern: "own-stateless" };
// As many commands as keep a small machine busy.
const AT_ONCE = 4;
const SCENE = JSON.parse(readFileSync(process.env.MATRIX, "utf8"));

// How the inspector is led to a server by itself, and through the gateway.
function target({ http, sse, command, key }, way) {
  if (way === "gateway") {
    return [ENDPOINT.href, "--transport", "http", "--header", `Authorization: Bearer ${key}`];
  }
  if (http) return [http, "--transport", "http"];
  return sse ? [sse, "--transport", "sse"] : command;
}

// Runs it with a method; an error if it does not say what is looked for.
function inspector(era, where, words, says) {
  const patience = ["--connect-timeout", String(LIMIT_MS)];
  const options = ["--protocol-era", era, "--format", "json", "--quiet", ...patience, ...words];
  // The words of a server's program must not be taken for options.
  const isProgram = !where[0].startsWith("http");
  const args = isProgram ? [...options, "--", ...where] : [...where, ...options];
  const env = { ...process.env, MCP_CATALOG_PATH: `${process.env.CELLS}.catalog` };
  const limits = { timeout: LIMIT_MS, env };
  return new Promise((done) => {
    const all = [process.env.INSPECTOR, "--cli", ...args];
    execFile(process.env.INSPECTOR_NODE, all, limits, (error, stdout, stderr) => {
      if (!error && says.test(stdout)) done(null);
      else done(`${stderr}${stdout}`.trim().slice(0, 300) || String(error));
    });
  });
}

const quoted = (text) => new RegExp(text.replace(/[^\w ]/g, "\\$&"));
const call = ([name, args, says], prefix) => [
  ["--method", "tools/call", "--tool-name", prefix + name,
    "--tool-args-json", JSON.stringify(args)],
  quoted(says),
];

// The words and the outcome of each column.
function columns(does, prefix) {
  const asking = does.asking?.[0] ?? does.call;
  return {
    list: [["--method", "tools/list"], quoted(`"${prefix}${does.call[0]}"`)],
    call: call(does.call, prefix),
    progress: call([...(does.progress ?? does.call).slice(0, 2), '"progress"'], prefix),
    cancel: [["--method", "notifications/cancelled"], /./],
    list_changed: [["--method", "subscriptions/listen"], /./],
    asking: call(asking, prefix),
    subscription: [["--method", "resources/subscribe", "--uri", does.uri ?? "none://"], /./],
  };
}

// Every cell that is tried.
function* cells() {
  for (const [client, era] of Object.entries(ERAS)) {
    for (const [server, about] of Object.entries(SCENE.servers)) {
      for (const way of ["direct", "gateway"]) {
        const prefix = way === "gateway" ? `${server}_` : "";
        const all = columns({ ...SCENE.does[about.does], ...about.but }, prefix);
        const isHome = way === "direct" && server === HOMES[era];
        const names = isHome ? Object.keys(all) : way === "direct" ? ["call"] : ["list", "call"];
        for (const column of names) {
          const [words, says] = all[column];
          const work = () => inspector(era, target(about, way), words, says);
          yield [{ way, client, server, column }, work];
        }
      }
    }
  }
}

const left = [...cells()];
async function worker() {
  while (left.length > 0) {
    const [cell, work] = left.shift();
    const record = { ...cell, failed: await work() };
    appendFileSync(process.env.CELLS, `${JSON.stringify(record)}\n`);
  }
}
await Promise.all(Array.from({ length: AT_ONCE }, worker));

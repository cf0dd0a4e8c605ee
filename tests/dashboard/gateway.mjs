// A gateway with two providers that a test can break, for the tests of the page against the real
// thing. The providers answer Chat Completions, or the status that they are told to give.

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import net from "node:net";
import os from "node:os";
import path from "node:path";

export const TOKEN = "dashboard-test-token";

/** A provider; `status` is what it answers. */
export class Provider {
  constructor() {
    this.status = 200;
    this.server = http.createServer((ask, answer) => {
      ask.resume();
      ask.on("end", () => this.answer(answer));
    });
  }

  async listen() {
    await new Promise((done) => this.server.listen(0, "127.0.0.1", done));
    return `http://127.0.0.1:${this.server.address().port}/v1`;
  }

  answer(answer) {
    const isOk = this.status === 200;
    answer.writeHead(this.status, { "content-type": "application/json" });
    answer.end(JSON.stringify(isOk ? {
      id: "c1", object: "chat.completion", created: 1, model: "m",
      choices: [{ index: 0, finish_reason: "stop",
        message: { role: "assistant", content: "good morning" } }],
      usage: { prompt_tokens: 2, completion_tokens: 2, total_tokens: 4 },
    } : { error: { message: "overloaded", type: "overloaded_error" } }));
  }

  stop() {
    this.server.closeAllConnections();
    return new Promise((done) => this.server.close(done));
  }
}

/** An MCP server with one tool, over streamable HTTP with plain answers. */
export class McpServer {
  constructor() {
    this.server = http.createServer(async (ask, answer) => {
      let text = "";
      for await (const part of ask) text += part;
      const { id, method } = text ? JSON.parse(text) : {};
      const result = {
        initialize: { protocolVersion: "2025-06-18", capabilities: { tools: {} },
          serverInfo: { name: "harbour", version: "1" } },
        "tools/list": { tools: [{ name: "list_ships", inputSchema: { type: "object" } }] },
        "tools/call": { content: [{ type: "text", text: "Ebb, Flow" }] },
        ping: {},
      }[method];
      const isAnswer = ask.method === "POST" && id != null && result;
      const unknown = { code: -32601, message: "there is no such method" };
      answer.writeHead(isAnswer || id != null ? 200 : ask.method === "POST" ? 202 : 405,
        { "content-type": "application/json" });
      answer.end(id == null ? "" : JSON.stringify({ jsonrpc: "2.0", id,
        ...(isAnswer ? { result } : { error: unknown }) }));
    });
  }

  async listen() {
    await new Promise((done) => this.server.listen(0, "127.0.0.1", done));
    return `http://127.0.0.1:${this.server.address().port}/mcp`;
  }

  stop() {
    this.server.closeAllConnections();
    return new Promise((done) => this.server.close(done));
  }
}

/** A port that was free a moment ago. */
async function freePort() {
  const server = net.createServer();
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address();
  await new Promise((done) => server.close(done));
  return port;
}

/** A gateway in a folder of its own, on the same ports at every start. */
export class Gateway {
  static async make(providers, mcp, { token = TOKEN } = {}) {
    const gateway = new Gateway();
    gateway.folder = mkdtempSync(path.join(os.tmpdir(), "tidegate-dashboard-"));
    [gateway.port, gateway.adminPort] = [await freePort(), await freePort()];
    gateway.url = `http://127.0.0.1:${gateway.port}`;
    gateway.admin = `http://127.0.0.1:${gateway.adminPort}`;
    gateway.token = token;
    const [ebb, flow, harbour] = await Promise.all([...providers, mcp].map((it) => it.listen()));
    writeFileSync(path.join(gateway.folder, "tidegate.yaml"), `
listen: 127.0.0.1:${gateway.port}
admin: { listen: "127.0.0.1:${gateway.adminPort}"${token ? ", token: env:ADMIN_TOKEN" : ""} }
providers:
  ebb: { api: openai, url: "${ebb}", key: env:PROVIDER_KEY }
  flow: { api: openai, url: "${flow}", key: env:PROVIDER_KEY }
routes:
  fast: { tiers: [[ebb/small], [flow/large]] }
default_route: fast
mcp: { servers: { tides: { fake: steady }, harbour: { url: "${harbour}" } } }
`);
    await gateway.start();
    return gateway;
  }

  async start() {
    this.child = spawn(process.env.TIDEGATE_BINARY, ["serve", "-c", "tidegate.yaml"], {
      cwd: this.folder, stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, TIDEGATE_WEB_DIR: "", ADMIN_TOKEN: this.token ?? "",
        PROVIDER_KEY: "sk-canary-of-the-dashboard" },
    });
    let said = "";
    this.child.stdout.on("data", (part) => { said += part; });
    this.child.stderr.on("data", (part) => { said += part; });
    for (let tries = 0; tries < 200; tries += 1) {
      if (this.child.exitCode != null) throw new Error(`the gateway ended:\n${said}`);
      const isUp = await fetch(`${this.admin}/api/session`).then((it) => it.ok, () => false);
      if (isUp) return;
      await new Promise((done) => setTimeout(done, 100));
    }
    throw new Error(`the gateway does not serve:\n${said}`);
  }

  /** Ends the process without a chance to say goodbye. */
  async kill() {
    const ended = new Promise((done) => this.child.once("exit", done));
    this.child.kill("SIGKILL");
    await ended;
  }

  async stop() {
    if (this.child.exitCode == null && this.child.signalCode == null) await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** One request of a client; its status. */
  async request(session) {
    const answer = await fetch(`${this.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-session-id": session },
      body: JSON.stringify({ model: "fast", messages: [{ role: "user", content: "hello" }] }),
    });
    await answer.text();
    return answer.status;
  }
}

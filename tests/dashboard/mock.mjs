// A stand-in for a gateway's admin listener, for tests of the page alone: it serves `web/` from
// disk with the headers of the gateway, and answers the operator API from values that a test sets.
//
// Run by hand: `node tests/dashboard/mock.mjs 8901`, then open http://127.0.0.1:8901/?demo

import { readFile } from "node:fs/promises";
import http from "node:http";
import path from "node:path";
import { fileURLToPath } from "node:url";

const WEB = process.env.TIDEGATE_WEB_DIR
  ?? path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../../web");
const TYPES = {
  ".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8",
  ".mjs": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml", ".json": "application/json",
};
export const CSP = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
  + "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
  + "require-trusted-types-for 'script'; trusted-types 'none'";

export class MockGateway {
  /** @param {any} snapshot */
  constructor(snapshot = null) {
    this.snapshot = snapshot;
    this.timeline = null;
    this.decisions = [];
    this.token = null;
    this.sessions = new Set();
    this.streams = new Set();
    this.seq = 0;
    this.isSilent = false;
    /** What the page asked for, beside files. */
    this.asked = [];
    this.server = http.createServer((ask, answer) => this.answer(ask, answer));
    this.heartbeat = setInterval(() => !this.isSilent && this.write(": ping\n\n"), 1000);
  }

  async listen(port = 0) {
    await new Promise((done) => this.server.listen(port, "127.0.0.1", done));
    this.port = this.server.address().port;
    return `http://127.0.0.1:${this.port}`;
  }

  /** Ends every connection at once, as a process that is killed does. */
  async stop() {
    clearInterval(this.heartbeat);
    for (const stream of this.streams) stream.destroy();
    this.server.closeAllConnections();
    await new Promise((done) => this.server.close(done));
  }

  write(text) {
    for (const stream of this.streams) stream.write(text);
  }

  /** Sends an event to every page. */
  emit(name, data) {
    this.seq += 1;
    const id = name === "tick" ? "" : `id: ${this.snapshot.instance}-${this.seq}\n`;
    this.write(`${id}event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  async answer(ask, answer) {
    const url = new URL(ask.url, "http://localhost");
    if (!url.pathname.startsWith("/api/")) return this.file(url.pathname, answer);
    let text = "";
    for await (const part of ask) text += part;
    const body = text ? JSON.parse(text) : null;
    this.asked.push({ method: ask.method, path: url.pathname, query: url.search, body,
      headers: ask.headers });
    const cookie = /tidegate_admin=(\w+)/.exec(ask.headers.cookie ?? "")?.[1];
    const isLoggedIn = this.sessions.has(cookie);
    if (url.pathname === "/api/events") return this.stream(ask, answer);
    const [status, value, headers] = this.reply(ask, url, body, isLoggedIn);
    answer.writeHead(status, { "content-type": "application/json", ...headers });
    answer.end(JSON.stringify(value));
  }

  reply(ask, url, body, isLoggedIn) {
    const refuse = (status, message) => [status, { error: { message } }];
    const [, , what, ...rest] = url.pathname.split("/").map(decodeURIComponent);
    if (what === "snapshot") return [200, this.snapshot];
    if (what === "timeline") return [200, this.timeline];
    if (what === "session") {
      return [200, { logged_in: isLoggedIn, token_configured: this.token != null,
        read_only: this.token == null }];
    }
    if (what === "decisions" && rest.length === 0) {
      return [200, { decisions: this.decisions, next_cursor: null, from: "ring" }];
    }
    if (what === "decisions") {
      const found = this.decisions.find((it) => it.id === rest[0]);
      return found ? [200, found] : refuse(404, "no decision has this id");
    }
    if (what === "explain") {
      const backend = this.snapshot.backends.find((it) => it.id === body.backend);
      if (body.backend && !backend) return refuse(404, "no backend has this name");
      return [200, backend ? { backend, transitions: [], actions: [], recent: [], sentence: null }
        : { explanation: { candidates: [] } }];
    }
    if (what === "login") {
      if (body.token !== this.token) return refuse(401, "this is not the admin token");
      const id = `s${this.sessions.size + 1}`;
      this.sessions.add(id);
      const cookie = `tidegate_admin=${id}; HttpOnly; SameSite=Strict; Path=/; Max-Age=43200`;
      return [200, { ok: true, expires_unix_ms: Date.now() + 43_200_000 }, { "set-cookie": cookie }];
    }
    if (what === "logout") {
      this.sessions.clear();
      return [200, { ok: true }];
    }
    if (what === "backends") {
      if (!isLoggedIn) return refuse(401, "send the admin token");
      if (ask.headers["x-tidegate-csrf"] !== "1") return refuse(403, "the CSRF header is missing");
      return [200, { backend: rest[0], done: rest[1], until_unix_ms: Date.now() + 600_000 }];
    }
    return refuse(404, "there is nothing at this path");
  }

  stream(ask, answer) {
    answer.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    const id = `${this.snapshot.instance}-${this.seq}`;
    answer.write(`retry: 2000\n\nid: ${id}\nevent: snapshot\n`
      + `data: ${JSON.stringify(this.snapshot)}\n\n`);
    const last = ask.headers["last-event-id"];
    if (last && !last.startsWith(`${this.snapshot.instance}-`)) {
      answer.write(`event: gap\ndata: ${JSON.stringify({ reason: "other_instance" })}\n\n`);
    }
    this.streams.add(answer);
    ask.on("close", () => this.streams.delete(answer));
  }

  async file(name, answer) {
    const found = name === "/" ? "index.html" : name.replace(/^\/web\//, "");
    try {
      const bytes = await readFile(path.join(WEB, path.normalize(`/${found}`)));
      answer.writeHead(200, {
        "content-type": TYPES[path.extname(found)] ?? "application/octet-stream",
        "content-security-policy": CSP, "x-content-type-options": "nosniff",
      });
      answer.end(bytes);
    } catch {
      answer.writeHead(404).end();
    }
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  console.log(await new MockGateway().listen(Number(process.argv[2] ?? 0)));
}

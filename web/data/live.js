// A running gateway as the source of the page: one stream that resumes, and the calls beside it.
//
// - The stream is read by `fetch`. After it ends, the page connects again with the id of the last
//   event, so nothing is missed while the gateway still has it.
// - The gateway sends a heartbeat every 5 s. After 10 s without a byte the connection counts as
//   dead and is made anew, and the page says since when it is stale.
// - Changing something needs the cookie of a login and the CSRF header that only our page can send.

import { SseParser } from "./sse.js";

/** @typedef {import("./types.js").StreamEvent} StreamEvent */
/** @typedef {"connecting" | "live" | "lost" | "login"} Phase */
/**
 * @typedef {{
 *   event: (event: StreamEvent) => void,
 *   phase: (phase: Phase) => void,
 * }} Listener
 */

/** Two heartbeats. */
const SILENCE_MAX_MS = 10_000;
const RETRY_MS = [500, 1000, 2000, 5000];

/** An answer that is not what was asked for, with its status. */
export class Refused extends Error {
  /**
   * @param {number} status
   * @param {string} message
   */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export class LiveSource {
  constructor() {
    this.isDemo = false;
    this.parser = new SseParser();
    this.tries = 0;
    /** @type {AbortController | null} */
    this.stream = null;
  }

  /** @param {Listener} listener */
  async open(listener) {
    for (;;) {
      try {
        await this.read(listener);
      } catch (error) {
        if (error instanceof Refused && error.status === 401) {
          listener.phase("login");
          return;
        }
      }
      listener.phase("lost");
      const wait = RETRY_MS[Math.min(this.tries, RETRY_MS.length - 1)];
      this.tries += 1;
      await new Promise((done) => setTimeout(done, wait));
    }
  }

  /**
   * One connection, to its end.
   * @param {Listener} listener
   */
  async read(listener) {
    const { lastId } = this.parser;
    this.parser = new SseParser();
    this.parser.lastId = lastId;
    const stream = new AbortController();
    this.stream = stream;
    let timer = setTimeout(() => stream.abort(), SILENCE_MAX_MS);
    try {
      const headers = { accept: "text/event-stream", ...(lastId && { "last-event-id": lastId }) };
      const answer = await fetch("api/events", { headers, signal: stream.signal });
      if (!answer.ok || !answer.body) throw new Refused(answer.status, "no stream");
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        clearTimeout(timer);
        timer = setTimeout(() => stream.abort(), SILENCE_MAX_MS);
        this.tries = 0;
        listener.phase("live");
        this.parser.push(value).forEach(listener.event);
      }
    } finally {
      clearTimeout(timer);
    }
  }

  snapshot() {
    return ask("api/snapshot");
  }

  /** @param {number} spanMs */
  timeline(spanMs) {
    return ask(`api/timeline?since=${Math.round(spanMs / 1000)}s&buckets=90`);
  }

  /** The latest requests that hopped or failed. */
  decisions() {
    return ask("api/decisions?notable=true&since=15m&limit=500");
  }

  /** @param {string} id */
  decision(id) {
    return ask(`api/decisions/${encodeURIComponent(id)}`);
  }

  /**
   * Where the next request would go (`model`), or the story of a backend (`backend`).
   * @param {{ model?: string, backend?: string }} question
   */
  async explain(question) {
    try {
      return await ask("api/explain", question);
    } catch (error) {
      const isOlder = error instanceof Refused && error.status === 400 && question.backend;
      if (!isOlder) throw error;
      // A gateway that explains routes only still has the requests.
      const { backend: id } = question;
      const [{ backends }, { decisions }] = await Promise.all([
        this.snapshot(), ask(`api/decisions?backend=${encodeURIComponent(id ?? "")}&limit=10`)]);
      const backend = backends.find((/** @type {any} */ it) => it.id === id);
      if (!backend) throw new Refused(404, "no backend has this name");
      return { backend, transitions: [], recent: decisions, sentence: null };
    }
  }

  session() {
    return ask("api/session");
  }

  /** @param {string} token */
  login(token) {
    return ask("api/login", { token });
  }

  logout() {
    return ask("api/logout", {});
  }

  /**
   * @param {string} deed
   * @param {string} backend
   * @param {{ reason?: string, ttl?: string }} lease
   */
  act(deed, backend, lease) {
    return ask(`api/backends/${encodeURIComponent(backend)}/${deed}`, lease);
  }
}

/**
 * Asks for JSON: with a body it is a POST.
 * @param {string} path
 * @param {object} [body]
 * @returns {Promise<any>}
 */
async function ask(path, body) {
  const headers = { "content-type": "application/json", "x-tidegate-csrf": "1" };
  const options = body ? { method: "POST", headers, body: JSON.stringify(body) } : {};
  const answer = await fetch(path, options);
  const value = await answer.json().catch(() => null);
  if (!answer.ok) {
    throw new Refused(answer.status, value?.error?.message ?? `the answer was ${answer.status}`);
  }
  return value;
}

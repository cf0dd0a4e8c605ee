// The lists beside the failovers: MCP servers and sessions, callers, and everything that changed.

import { readCommand, snapshotCommand } from "../lib/cli.js";
import { clock, span } from "../lib/format.js";
import { hashOf } from "../lib/hash.js";
import { html } from "../lib/html.js";
import { counted, grouped, signOf, signOfBackend } from "../lib/words.js";
import { BackendLink, More, Panel, StateSign } from "./parts.js";

/** @typedef {import("../data/store.js").State} State */

const SERVERS_MAX = 8;
const CALLERS_MAX = 6;
const CHANGES_SHOWN = 10;

/** @param {{ app: any, state: State }} props */
export function Mcp({ app, state }) {
  const snapshot = state.known.snapshot;
  if (!snapshot) return null;
  const { mcp, backends } = snapshot;
  const isOpen = state.expanded.mcp ?? false;
  const byId = new Map(backends.map((it) => [it.id, it]));
  const sign = (/** @type {import("../data/types.js").McpServer} */ it) => {
    const backend = byId.get(it.backend);
    return backend ? signOfBackend(backend) : signOf(it.state);
  };
  const isBad = (/** @type {any} */ it) => sign(it).tone !== "good";
  const ordered = [...mcp.servers.filter(isBad), ...mcp.servers.filter((it) => !isBad(it))];
  const shown = isOpen ? ordered : ordered.slice(0, SERVERS_MAX);
  const note = `${counted(mcp.servers.length, "server")}, ${counted(mcp.sessions, "session")}`;
  return html`
    <${Panel} app=${app} name="mcp" title="MCP servers" note=${note}
      cli=${snapshotCommand(app.origin)} json=${() => mcp}>
      ${mcp.servers.length === 0 ? html`<p class="empty">The config has no MCP servers.</p>` : html`
      <table class="rows">
        <caption class="unseen">MCP servers</caption>
        <thead><tr>
          <th scope="col">server</th><th scope="col">state</th>
          <th scope="col" class="num">tools</th><th scope="col" class="num">calls</th>
          <th scope="col" class="num">failed</th><th scope="col" class="num">p95</th>
        </tr></thead>
        <tbody>${shown.map((it) => html`
          <tr key=${it.name} data-server=${it.name}>
            <th scope="row"><a class="id" href=${hashOf("backend", it.backend)}>${it.name}</a>${" "}
              <small class="quiet">${it.transport ?? ""}</small></th>
            <td><${StateSign} sign=${sign(it)} /></td>
            <td class="num">${it.tools ?? "–"}</td>
            <td class="num">${grouped(it.calls)}</td>
            <td class="num ${it.failures > 0 ? "hurt" : ""}">${grouped(it.failures)}</td>
            <td class="num">${span(it.p95_ms)}</td>
          </tr>`)}
        </tbody>
      </table>`}
      ${mcp.groups.map((it) => html`<p class="small">
        group <span class="id">${it.name}</span>: ${it.members.join(", ")}</p>`)}
      <${More} app=${app} name="mcp" hidden=${ordered.length - shown.length} isOpen=${isOpen}
        what="servers" />
    </${Panel}>`;
}

/** @param {{ app: any, state: State }} props */
export function Sessions({ app, state }) {
  const snapshot = state.known.snapshot;
  if (!snapshot) return null;
  const { moved = 0, expired = 0, declined = 0 } = snapshot.session_moves ?? {};
  return html`
    <${Panel} app=${app} name="sessions" title="Sessions" note="last 15 min"
      cli=${readCommand(app.origin, "api/snapshot")}
      json=${() => ({ sessions: snapshot.sessions, moves: snapshot.session_moves })}>
      <dl class="tally">
        <div><dd>${grouped(snapshot.sessions)}</dd><dt>pinned to a target</dt></div>
        <div><dd>${grouped(moved)}</dd><dt>moved to another</dt></div>
        <div><dd>${grouped(declined)}</dd><dt>served elsewhere once</dt></div>
        <div><dd>${grouped(expired)}</dd><dt>expired</dt></div>
      </dl>
    </${Panel}>`;
}

/** @param {{ app: any, state: State }} props */
export function Callers({ app, state }) {
  const snapshot = state.known.snapshot;
  if (!snapshot) return null;
  const { callers } = snapshot;
  const isOpen = state.expanded.callers ?? false;
  const shown = isOpen ? callers : callers.slice(0, CALLERS_MAX);
  return html`
    <${Panel} app=${app} name="callers" title="Callers" note="last 15 min"
      cli=${readCommand(app.origin, "api/snapshot")} json=${() => callers}>
      ${callers.length === 0 ? html`<p class="empty">Nobody has asked in 15 min.</p>` : html`
      <table class="rows">
        <caption class="unseen">Callers, the busiest first</caption>
        <thead><tr>
          <th scope="col">caller</th><th scope="col" class="num">requests</th>
          <th scope="col" class="num">failed</th><th scope="col" class="num">MCP calls</th>
          <th scope="col" class="num">refused</th><th scope="col" class="num">last</th>
        </tr></thead>
        <tbody>${shown.map((it) => html`
          <tr key=${it.name}>
            <th scope="row">${it.name ? html`<span class="id">${it.name}</span>`
              : html`<span class="quiet">without a key</span>`}</th>
            <td class="num">${grouped(it.requests)}</td>
            <td class="num ${it.failed > 0 ? "hurt" : ""}">${grouped(it.failed)}</td>
            <td class="num">${grouped(it.mcp_calls)}</td>
            <td class="num">${grouped(it.refused)}</td>
            <td class="num"><time>${clock(it.last_unix_ms)}</time></td>
          </tr>`)}
        </tbody>
      </table>`}
      <${More} app=${app} name="callers" hidden=${callers.length - shown.length} isOpen=${isOpen}
        what="callers" />
    </${Panel}>`;
}

const KIND_GLYPHS = /** @type {Record<string, string>} */ ({
  reload: "↻", action: "✎", moved: "→", security: "!", restart: "↻",
});
const TONE_GLYPHS = /** @type {Record<string, string>} */ ({
  good: "●", trial: "◐", open: "○", off: "✕",
});

/** @param {{ app: any, state: State }} props */
export function Changes({ app, state }) {
  const { changes } = state.known;
  const isOpen = state.expanded.changes ?? false;
  const shown = isOpen ? changes : changes.slice(0, CHANGES_SHOWN);
  return html`
    <${Panel} app=${app} name="changes" title="Changes"
      note="of states, config and by operators" cli=${readCommand(app.origin, "api/timeline")}
      json=${() => changes}>
      ${changes.length === 0 && html`<p class="empty">Nothing has changed in 15 min.</p>`}
      <ol class="changes">${shown.map((it) => html`
        <li key="${it.at}${it.kind}${it.id}">
          <a href=${hashOf("time", "", it.at)}><time>${clock(it.at)}</time></a>
          <span class="glyph ${it.tone}" aria-hidden="true">
            ${KIND_GLYPHS[it.kind] ?? TONE_GLYPHS[it.tone] ?? "·"}</span>
          <span>${it.id && html`<${BackendLink} id=${it.id} at=${it.at} /> `}${it.text}</span>
        </li>`)}
      </ol>
      <${More} app=${app} name="changes" hidden=${changes.length - shown.length} isOpen=${isOpen}
        what="changes" />
    </${Panel}>`;
}

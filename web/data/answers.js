// The five questions of an incident, answered from one snapshot: who is hurt, what broke and why,
// where the traffic went, when it heals, what changed. Pure functions from data to words; the
// gateway has made every decision that is told here.

import { clock, moment, seconds, share, span } from "../lib/format.js";
import { counted, grouped, isTroubled, signOfBackend } from "../lib/words.js";

/** @typedef {import("./types.js").Snapshot} Snapshot */
/** @typedef {import("./types.js").Backend} Backend */
/** @typedef {import("./fold.js").Change} Change */
/** @typedef {{ text: string, backend?: string, route?: string, tone?: string }} Line */
/** @typedef {{ question: string, lines: Line[] }} Answer */

/** More lines than this are summed up in a last one. */
const LINES_MAX = 3;

/**
 * @param {Snapshot} snapshot
 * @param {Change[]} changes
 * @param {number} now
 * @returns {Answer[]}
 */
export function answers(snapshot, changes, now) {
  const broken = snapshot.backends.filter(isTroubled);
  return [
    { question: "Who is hurt?", lines: hurt(snapshot) },
    {
      question: "What broke, and why?",
      lines: bounded(broken.map((it) => brokenLine(it, now)), NOTHING_BROKE),
    },
    { question: "Where did the traffic go?", lines: bounded(traffic(snapshot), NOTHING_MOVED) },
    {
      question: "When does it heal?",
      lines: bounded(broken.map((it) => healLine(it, now)), NOTHING_BROKE_NOTHING_HEALS),
    },
    { question: "What changed?", lines: bounded(changed(snapshot, changes, now), NO_CHANGE) },
  ];
}

const NOTHING_BROKE = "Nothing: every backend is in use.";
const NOTHING_MOVED = "Nowhere: every route uses its first tier.";
const NOTHING_BROKE_NOTHING_HEALS = "Nothing has to.";
const NO_CHANGE = "Nothing: no reload, action or restart in 15 min.";

/**
 * @param {Line[]} lines
 * @param {string} none
 * @returns {Line[]}
 */
function bounded(lines, none) {
  if (lines.length === 0) return [{ text: none, tone: "quiet" }];
  if (lines.length <= LINES_MAX) return lines;
  const more = lines.length - LINES_MAX;
  return [...lines.slice(0, LINES_MAX), { text: `and ${more} more`, tone: "quiet" }];
}

/**
 * @param {Snapshot} snapshot
 * @returns {Line[]}
 */
function hurt({ verdict, totals, routes, mcp, callers }) {
  // Failures count MCP calls, so the whole does too.
  const requests = counted(verdict.requests + totals.mcp_calls, "request");
  /** @type {Line[]} */
  const lines = [];
  if (verdict.client_failures > 0) {
    const names = callers.filter((it) => it.failed > 0 && it.name).map((it) => it.name);
    const who = names.length > 0 ? `, of ${names.slice(0, 3).join(", ")}` : "";
    const failed = `${grouped(verdict.client_failures)} of ${requests} failed${who}.`;
    lines.push({ text: failed, tone: "hurt" });
    for (const route of routes.filter((it) => (it.stats?.failed ?? 0) > 0)) {
      const text = `${route.name}: ${grouped(route.stats?.failed ?? 0)} failed`;
      lines.push({ text, route: route.name });
    }
    for (const server of mcp.servers.filter((it) => it.failures > 0)) {
      const text = `${counted(server.failures, "MCP call")} failed`;
      lines.push({ text, backend: server.backend, tone: "hurt" });
    }
  } else {
    lines.push({ text: `No client: 0 of ${requests} failed in 15 min.` });
  }
  return lines.slice(0, LINES_MAX + 1);
}

/**
 * @param {Backend} it
 * @param {number} now
 * @returns {Line}
 */
function brokenLine(it, now) {
  const { word, tone } = signOfBackend(it);
  const why = it.why ?? it.standing_reason ?? it.action?.reason ?? "";
  const since = it.since_unix_ms ? ` since ${moment(it.since_unix_ms, now)}` : "";
  return { backend: it.id, tone, text: `is ${word}${since}${why ? `: ${why}` : ""}` };
}

/**
 * @param {Snapshot} snapshot
 * @returns {Line[]}
 */
function traffic({ routes, backends, mcp, session_moves: moves }) {
  const byId = new Map(backends.map((it) => [it.id, it]));
  /** @type {Line[]} */
  const lines = [];
  for (const route of routes) {
    const first = new Set((route.tiers[0] ?? []).map((it) => it.target));
    const isAway = route.tiers.flat().some((it) => {
      const backend = byId.get(it.target);
      return backend && isTroubled(backend);
    }) || route.resolves_to.some((it) => !first.has(it));
    if (!isAway) continue;
    const used = route.resolves_to.map((id) => coping(id, byId.get(id))).join(", ");
    lines.push({ route: route.name, text: used ? `→ ${used}` : "→ nothing can answer" });
  }
  if (lines.length > 0 && moves?.moved > 0) {
    lines.push({ text: `${counted(moves.moved, "session")} moved.` });
  }
  for (const server of backends.filter((it) => it.kind === "server" && isTroubled(it))) {
    lines.push({ backend: server.id, text: calls(server.id, mcp, byId) });
  }
  return lines;
}

/**
 * Where the calls to an MCP server go that is in trouble: to the others of its group, if any.
 * @param {string} id
 * @param {Snapshot["mcp"]} mcp
 * @param {Map<string, Backend>} byId
 */
function calls(id, mcp, byId) {
  const group = mcp.groups.find((it) => it.members.some((name) => `mcp:${name}` === id));
  const others = (group?.members ?? []).filter((name) => {
    const other = byId.get(`mcp:${name}`);
    return other && other.id !== id && !isTroubled(other);
  });
  if (others.length > 0) return `→ ${others.join(", ")}, of the same group`;
  return "has no stand-in: calls to it fail at once, those to others do not";
}

/**
 * A target that carries traffic, and whether it copes.
 * @param {string} id
 * @param {Backend | undefined} backend
 */
function coping(id, backend) {
  const stats = backend?.stats;
  if (!stats || stats.attempts === 0) return id;
  const p95 = stats.p95_ms == null ? "" : `, p95 ${span(stats.p95_ms)}`;
  return `${id} (ok ${share(stats.ok_percent)}${p95})`;
}

/**
 * @param {Backend} it
 * @param {number} now
 * @returns {Line}
 */
function healLine(it, now) {
  if (it.standing === "drained" || it.standing === "held") {
    const until = it.standing_until_unix_ms ?? it.action?.until_unix_ms ?? null;
    return { backend: it.id, text: until ? `is back at ${moment(until, now)}` : "when it is resumed" };
  }
  if (it.standing === "unconfigured") return { backend: it.id, text: "when its key is set" };
  const needs = it.needs ? `; needs ${it.needs}` : "";
  const next = it.re_entry_unix_ms;
  if (it.state === "half_open") return { backend: it.id, text: `is being tried now${needs}` };
  if (next == null) return { backend: it.id, text: it.needs ? `needs ${it.needs}` : "no time" };
  const wait = next - now;
  const text = wait > 0 ? `next trial in ${seconds(wait)}${needs}` : `trial due now${needs}`;
  return { backend: it.id, text };
}

/**
 * What people did, as far as it lies within the window.
 * @param {Snapshot} snapshot
 * @param {Change[]} changes
 * @param {number} now
 * @returns {Line[]}
 */
function changed(snapshot, changes, now) {
  const from = now - (snapshot.window_ms ?? 900_000);
  /** @type {{ at: number, line: Line }[]} */
  const found = changes
    .filter((it) => it.at >= from && (it.kind === "reload" || it.kind === "action"))
    .filter((it) => it.kind !== "reload" || it.at !== snapshot.last_reload?.at_unix_ms)
    .map((it) => ({
      at: it.at,
      line: it.id ? { backend: it.id, text: `${it.text}, at ${clock(it.at)}` }
        : { text: `${clock(it.at)} ${it.text}` },
    }));
  const reload = snapshot.last_reload;
  if (reload && reload.at_unix_ms >= from) {
    const what = reload.changed?.length ? `: ${reload.changed.join(", ")}` : "";
    const text = `${clock(reload.at_unix_ms)} config ${reload.ok ? "" : "not "}reloaded${what}`;
    found.push({ at: reload.at_unix_ms, line: { text } });
  }
  if (snapshot.started_unix_ms >= from) {
    const text = `${clock(snapshot.started_unix_ms)} the gateway started`;
    found.push({ at: snapshot.started_unix_ms, line: { text } });
  }
  return found.sort((a, b) => b.at - a.at).map((it) => it.line);
}

// A snapshot of any moment of the recording, in the form of the operator API.
//
// Counters stand in the recording for every 20 s and are interpolated between; states follow from
// the transitions. The window of 15 min is longer than the recording, so counts begin at its start.

import { clock, seconds } from "../lib/format.js";
import { counted } from "../lib/words.js";
import { BASE } from "./transitions.js";

/** @typedef {import("../data/types.js").Snapshot} Snapshot */
/** @typedef {import("../data/types.js").Backend} Backend */
/** @typedef {import("../data/types.js").Transition} Transition */

/** What the simulated config asks of a breaker (its defaults). */
const NEEDS = "3 trials in a row";

/**
 * @param {any} recording
 * @param {Transition[]} transitions
 * @param {number} at
 * @returns {Snapshot}
 */
export function snapshotAt(recording, transitions, at) {
  const frame = frameAt(recording, at);
  const servers = serversAt(recording.mcp, at);
  const rps = sumOf(recording, at, 10) / 10;
  const whole = frame.backends.reduce((/** @type {number} */ sum, /** @type {any} */ it) =>
    sum + it[1], 0);
  const targets = recording.backends.map((/** @type {any} */ it, /** @type {number} */ index) => {
    const [attempts, answered, failed] = frame.backends[index];
    const stats = statsOf(attempts, failed, (100 * answered) / Math.max(1, whole));
    const [provider = "", model = ""] = it.id.split("/");
    return backendAt(it.id, transitions, at, { kind: "target", provider, model }, stats);
  });
  const mcpBackends = servers.map((it) => backendAt(it.backend, transitions, at,
    { kind: "server", provider: null, model: null, needs: "1 trial" },
    { ...statsOf(it.calls, it.failures, null), p95_ms: it.p95_ms }));
  const backends = [...targets, ...mcpBackends];
  const route = routeAt(recording, targets, frame, rps);
  const failedCalls = servers.reduce((sum, it) => sum + it.failures, 0);
  const totals = {
    requests: frame.requests, ok: frame.answered, client_faults: 0, failed: frame.failures,
    cancelled: 0, refused: 0, hops: frame.hops,
    mcp_calls: servers.reduce((sum, it) => sum + it.calls, 0), rps,
    p50_ms: frame.wait_ms.p50, p95_ms: frame.wait_ms.p95,
  };
  return {
    at_unix_ms: BASE + at, seq: at, version: "demo", instance: "demo", started_unix_ms: 0,
    window_ms: 900_000, status: "ok", config: { sha: "demo", file: "recording" },
    last_reload: null, totals, sessions: 120,
    session_moves: { moved: frame.moved, expired: 0, declined: 0 },
    backends, routes: [route],
    mcp: { sessions: at > 0 ? 3 : 0, servers, groups: [] },
    callers: [{
      name: "demo", requests: frame.requests, failed: frame.failures,
      mcp_calls: totals.mcp_calls, refused: 0, last_unix_ms: BASE + at,
    }],
    verdict: verdictOf(backends, route, totals, failedCalls, frame.moved, at),
  };
}

/**
 * Counters at a moment, between the frames before and after it.
 * @param {any} recording
 * @param {number} at
 */
function frameAt(recording, at) {
  const none = {
    at: 0, requests: 0, answered: 0, failures: 0, hops: 0, moved: 0,
    wait_ms: { p50: null, p95: null },
    backends: recording.backends.map(() => [0, 0, 0]),
  };
  const frames = [none, ...recording.frames];
  const next = frames.findIndex((it) => it.at >= at);
  const [b, a] = next < 0 ? [frames.at(-1), frames.at(-1)]
    : [frames[next], frames[Math.max(0, next - 1)]];
  const part = b.at === a.at ? 0 : (at - a.at) / (b.at - a.at);
  const mix = (/** @type {number} */ from, /** @type {number} */ to) =>
    Math.round(from + (to - from) * part);
  return {
    requests: mix(a.requests, b.requests), answered: mix(a.answered, b.answered),
    failures: mix(a.failures, b.failures), hops: mix(a.hops, b.hops), moved: mix(a.moved, b.moved),
    wait_ms: b.wait_ms,
    backends: a.backends.map((/** @type {number[]} */ one, /** @type {number} */ index) =>
      one.map((it, place) => mix(it, b.backends[index][place]))),
  };
}

/**
 * Attempts of all backends in the last seconds.
 * @param {any} recording
 * @param {number} at
 * @param {number} last
 */
function sumOf(recording, at, last) {
  const end = Math.floor(at / 1000);
  const slices = /** @type {number[][]} */ (Object.values(recording.slices));
  return slices.reduce((sum, it) =>
    it.slice(Math.max(0, end - last), end).reduce((part, count) => part + count, sum), 0);
}

/**
 * @param {number} attempts
 * @param {number} failures
 * @param {number | null} share
 */
const statsOf = (attempts, failures, share) => ({
  attempts, failures, ok_percent: attempts > 0 ? (100 * (attempts - failures)) / attempts : null,
  rps: 0, p50_ms: null, p95_ms: null, first_content_p50_ms: null, first_content_p95_ms: null,
  share_percent: share,
});

/**
 * @param {string} id
 * @param {Transition[]} transitions
 * @param {number} at
 * @param {any} facts
 * @param {any} stats
 * @returns {Backend}
 */
function backendAt(id, transitions, at, facts, stats) {
  const past = transitions.filter((it) => it.backend === id && it.at_unix_ms <= BASE + at);
  const last = past.at(-1);
  const isOpen = last?.to === "open";
  const isDue = isOpen && last.until_unix_ms != null && last.until_unix_ms <= BASE + at;
  // The first of the openings in a row says what broke; a failed trial only prolongs it.
  let first = last;
  for (const it of [...past].reverse()) {
    if (it.to !== "open") break;
    first = it;
  }
  return {
    id, state: isDue ? "half_open" : isOpen ? "open" : "closed", healthy: !isOpen,
    rank: isOpen ? 2 : 0, consecutive_failures: 0, in_flight: 0,
    standing: "active", standing_reason: null, standing_until_unix_ms: null,
    why: isOpen ? first?.detail ?? null : null, why_code: isOpen ? last.reason : null,
    since_unix_ms: first?.at_unix_ms ?? BASE, re_entry_unix_ms: isOpen ? last.until_unix_ms : null,
    needs: isOpen ? facts.needs ?? NEEDS : null, action: null, last_error: null, stats,
    kind: facts.kind, provider: facts.provider, model: facts.model,
  };
}

/**
 * @param {any} recording
 * @param {Backend[]} targets
 * @param {any} frame
 * @param {number} rps
 * @returns {import("../data/types.js").Route}
 */
function routeAt(recording, targets, frame, rps) {
  /** @type {any[][]} */
  const tiers = [];
  recording.backends.forEach((/** @type {any} */ it, /** @type {number} */ index) => {
    const target = /** @type {Backend} */ (targets[index]);
    (tiers[it.tier] ??= []).push({
      target: it.id, state: target.state, healthy: target.healthy, standing: "active",
      share_percent: target.stats?.share_percent ?? 0, attempts: target.stats?.attempts ?? 0,
      failures: target.stats?.failures ?? 0, rps: 0,
    });
  });
  const used = targets.find((it) => it.healthy);
  return {
    name: "chat", about: recording.about, pick: "random", is_default: true, rank: 0, tiers,
    resolves_to: used ? [used.id] : [],
    stats: {
      requests: frame.requests, ok: frame.answered, failed: frame.failures, client_faults: 0,
      cancelled: 0, hops: frame.hops, relaxed: 0, rps, p50_ms: frame.wait_ms.p50,
      p95_ms: frame.wait_ms.p95, sessions: 120, moved: frame.moved,
    },
  };
}

/**
 * @param {any} trace
 * @param {number} at
 * @returns {import("../data/types.js").McpServer[]}
 */
function serversAt(trace, at) {
  const steps = trace.steps.filter((/** @type {any} */ it) => it.at_ms <= at);
  const tools = trace.steps.find((/** @type {any} */ it) => it.tools)?.tools ?? [];
  return trace.servers.map((/** @type {string} */ name) => {
    const calls = steps.flatMap((/** @type {any} */ it) =>
      it.calls.filter((/** @type {any} */ one) => one.server === name));
    const state = steps.at(-1)?.breaker_after[name] ?? "closed";
    const times = calls.filter((/** @type {any} */ it) => !it.error)
      .map((/** @type {any} */ it) => it.took_ms).sort((/** @type {number} */ a,
        /** @type {number} */ b) => a - b);
    return {
      name, backend: `mcp:${name}`, state, healthy: state !== "open", transport: "stdio",
      tools: tools.filter((/** @type {string} */ it) => it.startsWith(`${name}_`)).length,
      calls: calls.length, failures: calls.filter((/** @type {any} */ it) => it.error).length,
      p50_ms: times[Math.floor(times.length / 2)] ?? null,
      p95_ms: times[Math.floor(times.length * 0.95)] ?? null, in_flight: 0,
    };
  });
}

/**
 * @param {Backend[]} backends
 * @param {import("../data/types.js").Route} route
 * @param {any} totals
 * @param {number} failedCalls
 * @param {number} moved
 * @param {number} at
 * @returns {import("../data/types.js").Verdict}
 */
function verdictOf(backends, route, totals, failedCalls, moved, at) {
  const broken = backends.filter((it) => !it.healthy);
  const numbers = {
    client_failures: totals.failed + failedCalls, requests: totals.requests,
    rps: totals.rps, p50_ms: totals.p50_ms, p95_ms: totals.p95_ms,
    broken: broken.map((it) => it.id), sessions_moved: moved,
    next_re_entry_unix_ms: broken[0]?.re_entry_unix_ms ?? null,
  };
  const isHurt = numbers.client_failures > 0;
  if (broken.length === 0) {
    const hurt = { level: /** @type {const} */ ("hurt"), headline: "Recovered; clients were hurt" };
    const fine = { level: /** @type {const} */ ("ok"), headline: "All is well" };
    const sentence = isHurt
      ? `Every backend is in use again. ${counted(numbers.client_failures, "call")} failed.`
      : `Every backend is in use${moved > 0 ? " again" : ""}, and no client has seen an error.`;
    return { ...numbers, ...(isHurt ? hurt : fine), sentence };
  }
  const words = broken.map((it) => `${it.id} is ${it.state.replace("_", "-")} `
    + `since ${clock(it.since_unix_ms)} (${it.why}).`);
  const target = broken.find((it) => it.kind === "target");
  if (target) {
    words.push(`${counted(moved, "session")} moved; `
      + `requests go to ${route.resolves_to.join(", ") || "nobody"}.`);
  }
  const next = numbers.next_re_entry_unix_ms;
  const wait = next == null ? 0 : next - BASE - at;
  words.push(wait > 0 ? `Next trial in ${seconds(wait)}.` : "A trial is due.");
  return {
    ...numbers, level: isHurt ? "hurt" : "degraded",
    headline: isHurt ? "Degraded, clients are hurt" : "Degraded, no client hurt",
    sentence: words.join(" "),
  };
}

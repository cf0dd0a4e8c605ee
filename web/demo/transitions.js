// The recording's transitions and requests in the form of the operator API.
//
// LLM backends: the simulator's trace has every transition. MCP servers: their trace has the state
// after each step, so a transition is where it differs from the one before.

/** @typedef {import("../data/types.js").Transition} Transition */
/** @typedef {import("../data/types.js").Decision} Decision */

/** The recording's first moment by its own clock. */
export const BASE = Date.UTC(2026, 0, 15, 14, 0, 0);

/**
 * All transitions in the order of time.
 * @param {any} recording
 * @returns {Transition[]}
 */
export function transitionsOf(recording) {
  const ofTargets = recording.entries.flatMap((/** @type {any} */ it) =>
    (it.transition?.change.breaker ? [ofBreaker(it.transition)] : []));
  return [...ofTargets, ...ofServers(recording.mcp)].sort((a, b) => a.at_unix_ms - b.at_unix_ms);
}

/**
 * @param {any} it
 * @returns {Transition}
 */
function ofBreaker(it) {
  const { breaker, status, evidence } = it.change.breaker;
  const change = breaker.opened ?? breaker.closed;
  const what = status ? `${status} ${evidence ?? ""}`.trim() : evidence ?? "probe";
  return {
    at_unix_ms: BASE + it.at, backend: it.backend, scope: it.scope,
    from: change.from, to: breaker.opened ? "open" : "closed",
    reason: typeof change.cause === "string" ? change.cause : Object.keys(change.cause)[0] ?? null,
    detail: detailOf(change.cause, what),
    until_unix_ms: change.until == null ? null : BASE + change.until, weight: "news",
  };
}

/**
 * @param {any} cause
 * @param {string} what
 */
function detailOf(cause, what) {
  if (cause.consecutive_failures) return `${cause.consecutive_failures} × ${what} in a row`;
  if (cause.trials_passed) return `${cause.trials_passed} trials passed`;
  if (cause === "trial_failed") return `a trial failed: ${what}`;
  return String(typeof cause === "string" ? cause : Object.keys(cause)[0]).replaceAll("_", " ");
}

/**
 * @param {any} trace
 * @returns {Transition[]}
 */
function ofServers(trace) {
  /** @type {Transition[]} */
  const found = [];
  const states = new Map(trace.servers.map((/** @type {string} */ it) => [it, "closed"]));
  for (const step of trace.steps) {
    for (const [server, state] of Object.entries(step.breaker_after)) {
      const from = String(states.get(server));
      states.set(server, state);
      if (from === state || state === "half_open") continue;
      const failed = step.calls.find((/** @type {any} */ it) => it.error);
      const until = failed?.retry_after_ms ? BASE + step.at_ms + failed.retry_after_ms : null;
      found.push({
        at_unix_ms: BASE + step.at_ms, backend: `mcp:${server}`, scope: "backend", from,
        to: String(state), reason: null, until_unix_ms: until, weight: "news",
        detail: failed ? `2 × ${failed.cause} in a row` : "a trial passed",
      });
    }
  }
  return found;
}

/**
 * All requests that hopped, and MCP calls that failed, in the order of time.
 * @param {any} recording
 * @returns {Decision[]}
 */
export function decisionsOf(recording) {
  const requests = recording.entries.flatMap((/** @type {any} */ it) =>
    (it.request ? [it.request] : []));
  const tiers = new Map(recording.backends.map((/** @type {any} */ it) => [it.id, it.tier]));
  const llm = requests.map((/** @type {any} */ it, /** @type {number} */ index) =>
    request(it, index, tiers));
  return [...llm, ...calls(recording.mcp)].sort((a, b) => a.at_unix_ms - b.at_unix_ms);
}

const PLAIN = {
  model: null, path: null, method: null, tool: null, caller: "demo", stream: false,
  client_failure: null, relaxed: false, pin: null, first_content_ms: null, tokens: null,
};

/**
 * @param {any} it
 * @param {number} index
 * @param {Map<string, number>} tiers
 * @returns {Decision}
 */
function request(it, index, tiers) {
  const last = it.attempts.at(-1);
  const isOk = it.end === "answered";
  return {
    ...PLAIN, id: `req_demo_${String(index + 1).padStart(4, "0")}`, kind: "llm",
    at_unix_ms: BASE + it.at, took_ms: it.at - it.began, route: "chat",
    path: "/v1/chat/completions", session: it.session, result: isOk ? "ok" : "failed",
    status: it.status, end: it.end, answered_by: isOk ? last.backend : null,
    hops: it.attempts.length - 1,
    attempts: it.attempts.map((/** @type {any} */ one) => ({
      backend: one.backend, target: one.backend, tier: tiers.get(one.backend) ?? null, key: null,
      outcome: one.outcome, status: one.status, ms: one.ms, detail: null, by: null,
      trial: one.is_trial, last_resort: one.is_last_resort, started_ms: one.at - it.began,
      first_content_ms: null, converted: null,
    })),
  };
}

/**
 * @param {any} trace
 * @returns {Decision[]}
 */
function calls(trace) {
  return trace.steps.flatMap((/** @type {any} */ step, /** @type {number} */ index) => {
    const [session, tool] = step.what.split(" ");
    return step.calls.filter((/** @type {any} */ it) => it.error).map((/** @type {any} */ it) => ({
      ...PLAIN, id: `req_demo_mcp_${index}`, kind: "mcp", at_unix_ms: BASE + step.at_ms,
      took_ms: it.took_ms, route: `mcp:${it.server}`, method: "tools/call", tool, session,
      result: "failed", status: null, end: it.error, answered_by: null, hops: 0,
      cause: it.cause, error_code: it.error,
      attempts: [{
        backend: `mcp:${it.server}`, target: `mcp:${it.server}`, tier: 0, key: null,
        outcome: it.cause, status: null, ms: it.took_ms, detail: null, by: null, trial: false,
        last_resort: false, started_ms: 0, first_content_ms: null, converted: null,
      }],
    }));
  });
}

// The timeline of the recording up to a moment, in the form of the operator API.

import { BASE } from "./transitions.js";

/** @typedef {import("../data/types.js").Timeline} Timeline */
/** @typedef {import("../data/types.js").Transition} Transition */
/** @typedef {import("../data/types.js").Decision} Decision */

const BUCKETS = 90;

/**
 * @param {any} recording
 * @param {Transition[]} transitions
 * @param {Decision[]} decisions
 * @param {number} at
 * @param {number} spanMs
 * @returns {Timeline}
 */
export function timelineAt(recording, transitions, decisions, at, spanMs) {
  const from = Math.max(0, at - spanMs);
  const bucket = Math.max(1000, Math.ceil((at - from) / BUCKETS / 1000) * 1000);
  const count = Math.max(1, Math.ceil((at - from) / bucket));
  const zeros = () => Array.from({ length: count }, () => 0);
  const add = (/** @type {number[]} */ to, /** @type {number} */ moment, /** @type {number} */ n) => {
    const index = Math.floor((moment - from) / bucket);
    if (moment >= from && moment <= at && index < count) to[index] = (to[index] ?? 0) + n;
  };
  const past = decisions.filter((it) => it.at_unix_ms <= BASE + at);
  const [requests, hops, failures] = [zeros(), zeros(), zeros()];
  for (const it of past) {
    add(hops, it.at_unix_ms - BASE, it.hops);
    if (it.result === "failed") add(failures, it.at_unix_ms - BASE, 1);
  }
  const lane = (/** @type {string} */ id, /** @type {"target" | "server"} */ kind,
    /** @type {[number, number][]} */ attempts) => {
    const [tried, failed] = [zeros(), zeros()];
    for (const [moment, n] of attempts) add(tried, moment, n);
    for (const it of past) {
      for (const one of it.attempts) {
        const began = it.at_unix_ms - BASE - it.took_ms + one.started_ms;
        if (one.backend === id && one.outcome !== "success") add(failed, began, 1);
      }
    }
    return { id, kind, states: statesOf(id, transitions, at), attempts: tried, failures: failed };
  };
  const targets = recording.backends.map((/** @type {any} */ it) =>
    lane(it.id, "target", recording.slices[it.id].map((/** @type {number} */ n,
      /** @type {number} */ second) => [second * 1000, n])));
  const servers = recording.mcp.servers.map((/** @type {string} */ name) =>
    lane(`mcp:${name}`, "server", recording.mcp.steps.flatMap((/** @type {any} */ step) =>
      step.calls.filter((/** @type {any} */ it) => it.server === name)
        .map(() => [step.at_ms, 1]))));
  for (const it of targets) {
    it.attempts.forEach((/** @type {number} */ n, /** @type {number} */ index) => {
      requests[index] = (requests[index] ?? 0) + n;
    });
  }
  return {
    from_unix_ms: BASE + from, to_unix_ms: BASE + at, bucket_ms: bucket,
    lanes: [...targets, ...servers], client_failures: failures,
    requests: requests.map((it, index) => Math.max(0, it - (hops[index] ?? 0))), hops, marks: [],
  };
}

/**
 * @param {string} id
 * @param {Transition[]} transitions
 * @param {number} at
 * @returns {import("../data/types.js").Interval[]}
 */
function statesOf(id, transitions, at) {
  /** @type {import("../data/types.js").Interval[]} */
  const states = [];
  const end = BASE + at;
  const put = (/** @type {string} */ state, /** @type {number} */ start,
    /** @type {Transition | null} */ why) => {
    const before = states.at(-1);
    if (before) before.to_unix_ms = start;
    states.push({ state, from_unix_ms: start, to_unix_ms: end, reason: why?.reason ?? null,
      detail: why?.detail ?? null });
  };
  put("closed", BASE, null);
  for (const it of transitions.filter((one) => one.backend === id && one.at_unix_ms <= end)) {
    const before = states.at(-1);
    const was = transitions.filter((one) => one.backend === id && one.at_unix_ms < it.at_unix_ms)
      .at(-1);
    if (before?.state === "open" && was?.until_unix_ms && was.until_unix_ms < it.at_unix_ms) {
      put("half_open", was.until_unix_ms, null);
    }
    put(it.to, it.at_unix_ms, it);
  }
  const last = transitions.filter((one) => one.backend === id && one.at_unix_ms <= end).at(-1);
  if (last?.to === "open" && last.until_unix_ms && last.until_unix_ms < end) {
    put("half_open", last.until_unix_ms, null);
  }
  return states;
}

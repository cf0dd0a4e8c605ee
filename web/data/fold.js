// One event applied to what the page knows: a pure function from state and event to the next state.
//
// Objects that an event does not touch stay the same objects, so that their rows are not drawn
// again. Every list has a bound. Ticks carry only what changed; everything else a tick cannot tell
// comes with the next snapshot, which the page asks for after each change (`main.js`).

/** @typedef {import("./types.js").Snapshot} Snapshot */
/** @typedef {import("./types.js").Decision} Decision */
/** @typedef {import("./types.js").StreamEvent} StreamEvent */
/** @typedef {import("./types.js").Timeline} Timeline */
/** @typedef {{ at: number, kind: string, id: string, text: string, tone: string }} Change */
/**
 * @typedef {{
 *   snapshot: Snapshot | null, failovers: Decision[], changes: Change[],
 *   timeline: Timeline | null, pulses: Record<string, number>,
 * }} Known
 */

export const FAILOVERS_MAX = 200;
export const CHANGES_MAX = 300;

/** @type {Known} */
export const NOTHING = {
  snapshot: null, failovers: [], changes: [], timeline: null, pulses: {},
};

/**
 * @param {Known} known
 * @param {StreamEvent} event
 * @returns {Known}
 */
export function fold(known, event) {
  const { name, data } = event;
  switch (name) {
    case "snapshot":
      return { ...known, snapshot: data };
    case "tick":
      return known.snapshot ? { ...known, snapshot: ticked(known.snapshot, data) } : known;
    case "decision":
      return withDecisions(known, [data]);
    case "transition":
      return withTransition(known, data);
    case "action":
      return withChange(known, {
        at: data.at_unix_ms, kind: "action", id: data.backend, tone: "off",
        text: actionText(data),
      });
    case "reload":
      return withChange(known, {
        at: data.at_unix_ms, kind: "reload", id: "", tone: data.ok ? "good" : "open",
        text: reloadText(data),
      });
    case "moved":
      return withChange(known, {
        at: data.at_unix_ms, kind: "moved", id: "", tone: "quiet",
        text: `route ${data.route} moved from ${data.from.join(", ") || "nothing"} `
          + `to ${data.to.join(", ") || "nothing"}`,
      });
    case "security":
      return withChange(known, {
        at: data.at_unix_ms, kind: "security", id: "", tone: "open",
        text: securityText(data),
      });
    default:
      return known;
  }
}

/**
 * @param {Snapshot} snapshot
 * @param {any} tick
 * @returns {Snapshot}
 */
function ticked(snapshot, tick) {
  const by = (/** @type {any[]} */ list, /** @type {string} */ key) =>
    new Map((list ?? []).map((it) => [it[key], it]));
  const [backends, routes] = [by(tick.backends, "id"), by(tick.routes, "name")];
  return {
    ...snapshot,
    at_unix_ms: tick.at_unix_ms,
    status: tick.status ?? snapshot.status,
    verdict: tick.verdict ?? snapshot.verdict,
    totals: tick.totals ?? snapshot.totals,
    sessions: tick.sessions ?? snapshot.sessions,
    session_moves: tick.session_moves ?? snapshot.session_moves,
    mcp: { ...snapshot.mcp, ...tick.mcp },
    backends: snapshot.backends.map((it) => (
      backends.has(it.id) ? { ...it, ...backends.get(it.id) } : it)),
    routes: snapshot.routes.map((it) => (
      routes.has(it.name) ? tickedRoute(it, routes.get(it.name)) : it)),
  };
}

/**
 * @param {import("./types.js").Route} route
 * @param {any} tick
 */
function tickedRoute(route, tick) {
  const tiers = route.tiers.map((tier, rank) => tier.map((target) => {
    const changed = tick.tiers?.[rank]?.find((/** @type {any} */ it) =>
      it.target === target.target);
    return changed ? { ...target, ...changed } : target;
  }));
  return { ...route, ...tick, tiers };
}

/**
 * Whether a request belongs into the list: one whose session merely moved is counted elsewhere.
 * @param {Decision} it
 */
const isFailover = (it) => it.hops > 0 || it.result !== "ok" || it.relaxed;

/**
 * @param {Known} known
 * @param {Decision[]} decisions newest first
 * @returns {Known}
 */
export function withDecisions(known, decisions) {
  const fresh = decisions.filter((it) =>
    isFailover(it) && !known.failovers.some((had) => had.id === it.id));
  if (fresh.length === 0) return known;
  const failovers = [...fresh, ...known.failovers]
    .sort((a, b) => b.at_unix_ms - a.at_unix_ms).slice(0, FAILOVERS_MAX);
  return { ...known, failovers };
}

/**
 * @param {Known} known
 * @param {import("./types.js").Transition} it
 * @returns {Known}
 */
function withTransition(known, it) {
  const change = {
    at: it.at_unix_ms, kind: "transition", id: it.backend, tone: toneOf(it.to),
    text: transitionText(it),
  };
  const next = it.weight === "detail" ? known : withChange(known, change);
  if (it.scope !== "backend" || !next.snapshot) return next;
  const isBreaker = ["closed", "open", "half_open"].includes(it.to);
  const backends = next.snapshot.backends.map((backend) => (backend.id !== it.backend ? backend : {
    ...backend,
    ...(isBreaker ? { state: it.to, healthy: it.to === "closed" } : {}),
    since_unix_ms: it.at_unix_ms,
    why: it.to === "closed" || it.to === "usable" ? null : it.detail,
    re_entry_unix_ms: it.until_unix_ms,
  }));
  return {
    ...next,
    snapshot: { ...next.snapshot, backends },
    pulses: { ...next.pulses, [it.backend]: it.at_unix_ms },
  };
}

/**
 * @param {Known} known
 * @param {Change} change
 * @returns {Known}
 */
export function withChange(known, change) {
  const isKnown = known.changes.some((it) =>
    it.at === change.at && it.id === change.id && it.kind === change.kind);
  if (isKnown) return known;
  const changes = [change, ...known.changes].sort((a, b) => b.at - a.at).slice(0, CHANGES_MAX);
  return { ...known, changes };
}

/**
 * What a timeline tells of the time before the page was opened.
 * @param {Known} known
 * @param {Timeline} timeline
 * @returns {Known}
 */
export function withTimeline(known, timeline) {
  /** @type {Change[]} */
  const changes = [];
  for (const lane of timeline.lanes) {
    lane.states.forEach((it, index) => {
      const before = lane.states[index - 1];
      // Half-open is a matter of reading: nothing happens when a breaker becomes half-open.
      if (!before || it.state === "half_open") return;
      changes.push({
        at: it.from_unix_ms, kind: "transition", id: lane.id, tone: toneOf(it.state),
        text: transitionText({ ...it, from: before.state, to: it.state }),
      });
    });
  }
  for (const mark of timeline.marks) {
    changes.push({
      at: mark.at_unix_ms, kind: mark.kind, id: "", tone: mark.ok ? "quiet" : "open",
      text: mark.text,
    });
  }
  /** @type {Known} */
  let next = { ...known, timeline };
  for (const change of changes) next = withChange(next, change);
  return next;
}

const WORDS = /** @type {Record<string, string>} */ ({ half_open: "half-open", window: "limited" });

/** @param {string} state */
const word = (state) => WORDS[state] ?? state;

/** @param {string} state */
const toneOf = (state) =>
  ({ closed: "good", usable: "good", half_open: "trial", off: "off" })[state] ?? "open";

/** @param {{ from: string, to: string, detail: string | null }} it */
const transitionText = (it) =>
  `${word(it.from)} → ${word(it.to)}${it.detail ? `: ${it.detail}` : ""}`;

/** @param {any} it */
function actionText(it) {
  const result = it.result ? `, ${it.result}` : "";
  const reason = it.reason ? `: ${it.reason}` : "";
  return `${it.deed} by an operator${result}${reason}`;
}

/** @param {any} it */
function reloadText(it) {
  if (!it.ok) return `config not reloaded: ${(it.problems ?? []).length} problems`;
  const changed = (it.changed ?? []).join(", ");
  return `config reloaded${it.sha ? ` (${it.sha})` : ""}${changed ? `: ${changed}` : ""}`;
}

/** @param {any} it */
function securityText(it) {
  const more = it.repeated > 0 ? ` and ${it.repeated} more` : "";
  const caller = it.caller ? ` by ${it.caller}` : "";
  return `refused: ${String(it.event).replaceAll("_", " ")}${caller}${more}`;
}

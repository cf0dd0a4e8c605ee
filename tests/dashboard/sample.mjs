// Values of the operator API for the mock: a gateway of two providers, one of which is open.

export const NOW = Date.UTC(2026, 0, 31, 14, 4, 25);

const stats = (attempts, failures, share) => ({
  attempts, failures, ok_percent: attempts ? (100 * (attempts - failures)) / attempts : null,
  rps: attempts / 900, p50_ms: 410, p95_ms: 1900, first_content_p50_ms: 300,
  first_content_p95_ms: 900, share_percent: share,
});

export const backend = (id, part = {}) => ({
  id, state: "closed", healthy: true, rank: 0, consecutive_failures: 0, last_error: null,
  reason: null, generation: 1, in_flight: 2, kind: id.startsWith("mcp:") ? "server" : "target",
  provider: id.split("/")[0], model: id.split("/")[1] ?? null, standing: "active",
  standing_reason: null, standing_until_unix_ms: null, why: null, why_code: null,
  since_unix_ms: NOW - 900_000, re_entry_unix_ms: null, needs: null, action: null,
  stats: stats(400, 0, 50), ...part,
});

export const open = (id) => backend(id, {
  state: "open", healthy: false, rank: 2, why: "3 × 529 overloaded in a row",
  why_code: "consecutive_failures", since_unix_ms: NOW - 134_000, re_entry_unix_ms: NOW + 6000,
  needs: "3 trials in a row", stats: stats(400, 352, 0),
});

const target = (id, share) => ({
  target: id, state: "closed", healthy: true, reason: null, standing: "active",
  share_percent: share, attempts: 100, failures: 0, rps: 1,
});

export function snapshot(part = {}) {
  return {
    at: 812_345, at_unix_ms: NOW, seq: 1, version: "0.1.0", instance: "one",
    started_unix_ms: NOW - 3_600_000, window_ms: 900_000, status: "degraded",
    config: { sha: "7c1e", file: "tidegate.yaml" },
    last_reload: { at_unix_ms: NOW - 160_000, by: "file", ok: true, sha: "7c1e",
      changed: ["routes.fast"], problems: [] },
    verdict: {
      level: "degraded", headline: "Degraded, no client hurt",
      sentence: "anthropic/claude is open (3 × 529 overloaded in a row).",
      client_failures: 0, requests: 12_000, rps: 38, p50_ms: 410, p95_ms: 1900,
      broken: ["anthropic/claude"], sessions_moved: 41, next_re_entry_unix_ms: NOW + 6000,
    },
    totals: { requests: 12_000, ok: 11_990, client_faults: 8, failed: 0, cancelled: 2, refused: 0,
      hops: 611, mcp_calls: 300, rps: 38, p50_ms: 410, p95_ms: 1900 },
    sessions: 212, session_moves: { moved: 41, expired: 3, declined: 38 },
    backends: [backend("openai/gpt"), open("anthropic/claude"), backend("mcp:github")],
    endpoints: [], keys: [],
    routes: [{
      name: "fast", about: "quick answers", match: [], pick: "random", is_default: true,
      resolves_to: ["openai/gpt"], rank: 0,
      tiers: [[target("anthropic/claude", 0), target("openai/gpt", 86)]],
      stats: { requests: 12_000, ok: 11_990, failed: 0, client_faults: 8, cancelled: 2, hops: 611,
        relaxed: 0, rps: 38, p50_ms: 410, p95_ms: 1900, sessions: 212, moved: 41 },
    }],
    mcp: { sessions: 3, groups: [{ name: "search", members: ["search-a", "search-b"] }],
      servers: [{ name: "github", backend: "mcp:github", state: "closed", healthy: true,
        transport: "http", tools: 7, calls: 120, failures: 0, p50_ms: 80, p95_ms: 300,
        in_flight: 0 }] },
    callers: [{ name: "ci", requests: 800, failed: 0, mcp_calls: 10, refused: 0,
      last_unix_ms: NOW }],
    journal: { decisions: 5120, bytes: 1_900_000, dropped: 0 },
    ...part,
  };
}

const attempt = (id, outcome, status, ms, part = {}) => ({
  backend: id, target: id, tier: 0, key: 1, outcome, status, ms, detail: "", by: "tactic",
  rank: 0, trial: false, last_resort: false, started_ms: 0, first_content_ms: null,
  committed: null, resent: false, converted: null, ...part,
});

export function decision(id = "req_1f00aa11bb22cc33", part = {}) {
  return {
    id, n: 5120, kind: "llm", at: 812_000, at_unix_ms: NOW - 23_000, took_ms: 1520,
    route: "fast", model: "gpt-4o-mini", path: "/v1/chat/completions", method: null, tool: null,
    caller: "ci", session: "a81f33c02b1d9e07", stream: true, result: "ok", status: 200,
    client_failure: null, end: "answered", answered_by: "openai/gpt", hops: 1, relaxed: false,
    notable: true, pin: "declined", first_content_ms: 420,
    attempts: [attempt("anthropic/claude", "overloaded", 529, 118),
      attempt("openai/gpt", "success", 200, 1400, { started_ms: 120 })],
    tokens: { input: 200, output: 100, cached: 0 },
    config_sha: "7c1e", plan: null, released: null, conversion: [], answer: null,
    choices: [{ by: "tactic", pin: null, chosen: "anthropic/claude", candidates: [
      { backend: "anthropic/claude", tier: 0, verdict: "chosen", state: "closed", obstacles: [] },
      { backend: "openai/gpt", tier: 0, verdict: "held", state: "closed", obstacles: [] }] },
    { by: "tactic", pin: null, chosen: "openai/gpt", candidates: [
      { backend: "anthropic/claude", tier: 0, verdict: "tried", state: "open", obstacles: [
        { kind: "breaker", reason: "open", phrase: "has an open breaker",
          until_unix_ms: NOW + 6000 }] },
      { backend: "openai/gpt", tier: 0, verdict: "chosen", state: "closed", obstacles: [] }] }],
    ...part,
  };
}

export function timeline(ids = ["openai/gpt", "anthropic/claude", "mcp:github"]) {
  const from = NOW - 900_000;
  const counts = (value) => Array.from({ length: 90 }, () => value);
  return {
    from_unix_ms: from, to_unix_ms: NOW, bucket_ms: 10_000,
    lanes: ids.map((id, index) => ({
      id, kind: id.startsWith("mcp:") ? "server" : "target",
      states: index === 1 ? [
        { state: "closed", from_unix_ms: from, to_unix_ms: NOW - 134_000, reason: null,
          detail: null },
        { state: "open", from_unix_ms: NOW - 134_000, to_unix_ms: NOW,
          reason: "consecutive_failures", detail: "3 × 529 overloaded in a row" }]
        : [{ state: "closed", from_unix_ms: from, to_unix_ms: NOW, reason: null, detail: null }],
      attempts: counts(12), failures: counts(0),
    })),
    client_failures: counts(0), requests: counts(380), hops: counts(1),
    marks: [{ at_unix_ms: NOW - 160_000, kind: "reload", text: "config reloaded (sha 7c1e)",
      ok: true }],
  };
}

/** A mock with all of it. */
export function filled(mock, part = {}) {
  mock.snapshot = snapshot(part);
  mock.timeline = timeline();
  mock.decisions = [decision()];
  return mock;
}

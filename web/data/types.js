// The shapes of the operator API (docs/dashboard.md), as far as the page reads them. Only types:
// this file holds no code. Unknown fields are ignored, and a field that is missing is treated as
// null, so a page can meet a gateway that is a little older or newer.

/**
 * @typedef {{
 *   attempts: number, failures: number, ok_percent: number | null, rps: number,
 *   p50_ms: number | null, p95_ms: number | null,
 *   first_content_p50_ms: number | null, first_content_p95_ms: number | null,
 *   share_percent: number | null,
 * }} BackendStats
 *
 * @typedef {{
 *   deed: string, reason: string | null, until_unix_ms: number | null, at_unix_ms: number | null,
 * }} Lease
 *
 * @typedef {{
 *   id: string, state: string, healthy: boolean, rank: number, consecutive_failures: number,
 *   in_flight: number, kind: "target" | "server",
 *   provider: string | null, model: string | null,
 *   standing: string | null, standing_reason: string | null,
 *   standing_until_unix_ms: number | null,
 *   why: string | null, why_code: string | null, since_unix_ms: number | null,
 *   re_entry_unix_ms: number | null, needs: string | null, action: Lease | null,
 *   last_error: { outcome: string, status: number | null, at_unix_ms: number | null } | null,
 *   stats: BackendStats | null,
 * }} Backend
 *
 * @typedef {{
 *   target: string, state: string, healthy: boolean, standing: string | null,
 *   share_percent: number | null, attempts: number, failures: number, rps: number,
 * }} RouteTarget
 *
 * @typedef {{
 *   requests: number, ok: number, failed: number, client_faults: number, cancelled: number,
 *   hops: number, relaxed: number, rps: number, p50_ms: number | null, p95_ms: number | null,
 *   sessions: number, moved: number,
 * }} RouteStats
 *
 * @typedef {{
 *   name: string, about: string | null, pick: string | null, is_default: boolean,
 *   resolves_to: string[], rank: number | null, tiers: RouteTarget[][], stats: RouteStats | null,
 * }} Route
 *
 * @typedef {{
 *   level: "ok" | "degraded" | "hurt" | "down", headline: string, sentence: string,
 *   client_failures: number, requests: number, rps: number,
 *   p50_ms: number | null, p95_ms: number | null,
 *   broken: string[], sessions_moved: number, next_re_entry_unix_ms: number | null,
 * }} Verdict
 *
 * @typedef {{
 *   name: string, backend: string, state: string, healthy: boolean, transport: string | null,
 *   tools: number | null, calls: number, failures: number,
 *   p50_ms: number | null, p95_ms: number | null, in_flight: number,
 * }} McpServer
 *
 * @typedef {{
 *   sessions: number, servers: McpServer[], groups: { name: string, members: string[] }[],
 * }} Mcp
 *
 * @typedef {{
 *   name: string, requests: number, failed: number, mcp_calls: number, refused: number,
 *   last_unix_ms: number | null,
 * }} Caller
 *
 * @typedef {{
 *   at_unix_ms: number, by: string, ok: boolean, sha: string, changed: string[],
 *   problems: unknown[],
 * }} Reload
 *
 * @typedef {{
 *   requests: number, ok: number, client_faults: number, failed: number, cancelled: number,
 *   refused: number, hops: number, mcp_calls: number, rps: number,
 *   p50_ms: number | null, p95_ms: number | null,
 * }} Totals
 *
 * @typedef {{ moved: number, expired: number, declined: number }} SessionMoves
 *
 * @typedef {{
 *   at_unix_ms: number, seq: number, version: string, instance: string,
 *   started_unix_ms: number, window_ms: number, status: string,
 *   config: { sha: string, file: string | null }, last_reload: Reload | null,
 *   verdict: Verdict, totals: Totals, sessions: number, session_moves: SessionMoves,
 *   backends: Backend[], routes: Route[], mcp: Mcp, callers: Caller[],
 *   journal?: { history: Store, audit: Store, telemetry: Store },
 * }} Snapshot
 *
 * @typedef {{ to: string | null, status: string, why: string | null, dropped: number }} Store
 *
 * @typedef {{
 *   backend: string, target: string, tier: number | null, key: number | null,
 *   outcome: string | null, status: number | null, ms: number, detail: string | null,
 *   by: string | null, trial: boolean,
 *   last_resort: boolean, started_ms: number, first_content_ms: number | null,
 *   converted: string | null,
 * }} Attempt
 *
 * @typedef {{
 *   id: string, kind: "llm" | "mcp", at_unix_ms: number, took_ms: number, route: string,
 *   model: string | null, path: string | null, method: string | null, tool: string | null,
 *   caller: string, session: string | null, stream: boolean, result: string,
 *   status: number | null, client_failure: string | null, end: string,
 *   answered_by: string | null, hops: number, relaxed: boolean, pin: string | null,
 *   first_content_ms: number | null, attempts: Attempt[],
 *   cause?: string | null, error_code?: string | null,
 *   tokens: { input: number, output: number, cached: number } | null,
 * }} Decision
 *
 * @typedef {{
 *   kind: string, reason: string | null, phrase: string, until_unix_ms: number | null,
 * }} Obstacle
 *
 * @typedef {{
 *   backend: string, tier: number, verdict: string, state: string | null, in_flight: number | null,
 *   obstacles: Obstacle[],
 * }} Candidate
 *
 * @typedef {{ by: string | null, pin: string | null, chosen: string | null,
 *   candidates: Candidate[] }} Choice
 *
 * @typedef {Decision & {
 *   config_sha: string | null,
 *   plan: { tactic: string, deadline_ms: number | null, max_hops: number | null,
 *     needs: Record<string, unknown> | null } | null,
 *   choices: Choice[] | null,
 *   released: { what: string, attempt: number | null, status: number | null,
 *     cause: string | null, at_ms: number | null } | null,
 *   conversion: { attempt: number, pair: string,
 *     notes: { change: string, field: string, why: string }[] }[] | null,
 *   answer: { status: number, type: string | null, message: string | null,
 *     retry_after_ms: number | null } | null,
 * }} DecisionFull
 *
 * @typedef {{
 *   state: string, from_unix_ms: number, to_unix_ms: number, reason: string | null,
 *   detail: string | null,
 * }} Interval
 *
 * @typedef {{
 *   id: string, kind: "target" | "server" | "endpoint", states: Interval[],
 *   attempts: number[], failures: number[],
 * }} Lane
 *
 * @typedef {{ at_unix_ms: number, kind: string, text: string, ok: boolean }} Mark
 *
 * @typedef {{
 *   from_unix_ms: number, to_unix_ms: number, bucket_ms: number, lanes: Lane[],
 *   client_failures: number[], requests: number[], hops: number[], marks: Mark[],
 * }} Timeline
 *
 * @typedef {{
 *   at_unix_ms: number, backend: string, scope: string, from: string, to: string,
 *   reason: string | null, detail: string | null, until_unix_ms: number | null, weight: string,
 * }} Transition
 *
 * @typedef {{ logged_in: boolean, token_configured: boolean, read_only: boolean }} Login
 *
 * @typedef {{
 *   backend: Backend, transitions: Transition[], recent: Decision[], sentence: string | null,
 * }} BackendStory
 *
 * @typedef {{ name: string, data: any, id: string | null }} StreamEvent
 */

export {};

// The page's pure parts, without a browser: the parser of events, the fold, links, words.

import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { NOW, backend, decision, open, snapshot, timeline } from "./sample.mjs";

const web = (name) => import(pathToFileURL(path.join(process.env.TIDEGATE_WEB_DIR, name)).href);

const { SseParser } = await web("data/sse.js");
const fold = await web("data/fold.js");
const { hashOf, placeOf } = await web("lib/hash.js");
const format = await web("lib/format.js");
const { answers } = await web("data/answers.js");
const cli = await web("lib/cli.js");

test("events are the same wherever the stream is cut", () => {
  const text = "retry: 2000\n\n: ping\n\nid: a-7\nevent: tick\ndata: {\"a\":1}\n\n"
    + "id: a-8\r\nevent: gap\r\ndata: {\ndata: }\r\n\r\n";
  const whole = new SseParser();
  const expected = whole.push(text);
  assert.deepEqual(expected, [
    { name: "tick", data: { a: 1 }, id: "a-7" }, { name: "gap", data: {}, id: "a-8" }]);
  assert.equal(whole.lastId, "a-8");
  for (let cut = 1; cut < text.length; cut += 1) {
    const parser = new SseParser();
    const events = [...parser.push(text.slice(0, cut)), ...parser.push(text.slice(cut))];
    assert.deepEqual(events, expected, `cut at ${cut}`);
  }
});

test("a tick changes what it names and keeps every other object", () => {
  const before = fold.fold(fold.NOTHING, { name: "snapshot", data: snapshot(), id: null });
  const after = fold.fold(before, { name: "tick", id: null, data: {
    at_unix_ms: NOW + 1000, backends: [{ id: "openai/gpt", in_flight: 9 }], routes: [],
  } });
  const [gpt, claude] = after.snapshot.backends;
  assert.equal(gpt.in_flight, 9);
  assert.equal(gpt.state, "closed");
  assert.equal(claude, before.snapshot.backends[1]);
  assert.equal(after.snapshot.routes[0], before.snapshot.routes[0]);
  assert.equal(after.snapshot.verdict, before.snapshot.verdict);
});

test("a transition shows at once, and is listed once however it is learnt", () => {
  const at = NOW - 134_000;
  let known = fold.fold(fold.NOTHING, { name: "snapshot", data: snapshot(), id: null });
  const data = { at_unix_ms: at, backend: "anthropic/claude", scope: "backend", from: "closed",
    to: "open", detail: "3 × 529 overloaded in a row", until_unix_ms: NOW, weight: "degraded" };
  known = fold.fold(known, { name: "transition", data, id: null });
  assert.equal(known.snapshot.backends[1].state, "open");
  assert.equal(known.pulses["anthropic/claude"], at);
  known = fold.withTimeline(known, timeline());
  const listed = known.changes.filter((it) => it.id === "anthropic/claude");
  assert.equal(listed.length, 1);
  assert.equal(listed[0].text, "closed → open: 3 × 529 overloaded in a row");
});

test("lists of the page keep their bounds, newest first, without doubles", () => {
  let known = fold.NOTHING;
  for (let n = 0; n < 500; n += 1) {
    const data = decision(`req_${n}`, { at_unix_ms: NOW + n });
    known = fold.fold(known, { name: "decision", data, id: null });
    known = fold.fold(known, { name: "decision", data, id: null });
    known = fold.fold(known, { name: "reload", id: null,
      data: { at_unix_ms: NOW + n, ok: true, sha: "a", changed: [] } });
  }
  assert.equal(known.failovers.length, fold.FAILOVERS_MAX);
  assert.equal(known.failovers[0].id, "req_499");
  assert.equal(known.changes.length, fold.CHANGES_MAX);
});

test("a request whose session merely moved is no failover", () => {
  const data = decision("req_moved", { hops: 0, pin: "declined" });
  assert.deepEqual(fold.fold(fold.NOTHING, { name: "decision", data, id: null }).failovers, []);
});

test("an event of a kind that is not known yet changes nothing", () => {
  assert.equal(fold.fold(fold.NOTHING, { name: "weather", data: {}, id: null }), fold.NOTHING);
});

test("a deep link survives the way into an address and back", () => {
  for (const id of ["anthropic/claude", "mcp:github", "ünï cödé@v2", "a%b", "p/m#1?x"]) {
    for (const at of [null, NOW]) {
      const { pathname, hash } = new URL(hashOf("backend", id, at), "http://localhost/");
      assert.equal(pathname, "/");
      assert.deepEqual(placeOf(hash, NOW), { kind: "backend", id, at });
    }
  }
  assert.deepEqual(placeOf(hashOf("time", "", NOW), NOW), { kind: "time", id: "", at: NOW });
  for (const hash of ["", "#", "#main", "#/nothing/x", "#/time/soon", "#/backend/"]) {
    assert.equal(placeOf(hash, NOW), null, hash);
  }
});

test("a time of day in a link is the latest such moment", () => {
  const { at } = placeOf("#/backend/a/b@14:02", NOW);
  assert.ok(at <= NOW && NOW - at < 86_400_000);
  assert.equal(new Date(at).getMinutes(), 2);
});

test("numbers and spans are written as people read them", () => {
  assert.deepEqual([0, 118, 1400, 14_400, 134_000, 11_100_000].map(format.span),
    ["0 ms", "118 ms", "1.4 s", "14 s", "2 m 14 s", "3 h 5 m"]);
  assert.deepEqual([null, 0, 0.4, 12, 99.97, 100].map(format.share),
    ["–", "0 %", "< 1 %", "12 %", "99.9 %", "100 %"]);
  assert.equal(format.span(null), "–");
});

test("the five questions have an answer in health and in an outage", () => {
  const words = (value) => answers(value, [], NOW).map((it) =>
    it.lines.map((line) => `${line.backend ?? line.route ?? ""} ${line.text}`.trim()).join(" / "));
  const [hurt, broke, went, heals, changed] = words(snapshot());
  assert.match(hurt, /^No client: 0 of 12.300 requests failed/);
  assert.match(broke, /anthropic\/claude is open since .*: 3 × 529 overloaded in a row/);
  assert.match(went, /fast → openai\/gpt \(ok 100 %, p95 1.9 s\) \/ 41 sessions moved/);
  assert.match(heals, /anthropic\/claude next trial in 6 s; needs 3 trials in a row/);
  assert.match(changed, /config reloaded: routes.fast/);
  const well = snapshot({ backends: [backend("openai/gpt"), backend("anthropic/claude")],
    last_reload: null });
  assert.deepEqual(words(well).map((it) => it.split(":")[0]),
    ["No client", "Nothing", "Nowhere", "Nothing has to.", "Nothing"]);
  const failing = snapshot({ verdict: { ...snapshot().verdict, client_failures: 41 } });
  assert.match(words(failing)[0], /^41 of 12.300 requests failed/);
});

test("an MCP server in trouble is said to have a stand-in, or none", () => {
  const went = (groups) => answers(snapshot({
    backends: [open("mcp:search-a"), backend("mcp:search-b")], routes: [],
    mcp: { sessions: 1, servers: [], groups },
  }), [], NOW)[2].lines.map((it) => it.text).join();
  assert.match(went([{ name: "search", members: ["search-a", "search-b"] }]), /→ search-b/);
  assert.match(went([]), /no stand-in/);
});

test("a copied command survives a shell", () => {
  assert.equal(cli.decisionCommand("http://127.0.0.1:8701", "req_1"),
    "curl -s http://127.0.0.1:8701/api/decisions/req_1");
  const command = cli.actionCommand("http://h", "drain", "it's $HOME", { reason: "it's $HOME" });
  assert.ok(command.includes("-d '{\"reason\":\"it'\\''s $HOME\"}'"), command);
  assert.ok(command.includes("http://h/api/backends/it'\\''s%20%24HOME/drain"), command);
});

test("a moment of another day is told with its date", () => {
  const noon = new Date(2026, 10, 18, 12, 0, 0).getTime();
  assert.equal(format.moment(noon + 60_000, noon), "12:01:00");
  assert.equal(format.moment(noon + 43_200_000, noon), "2026-11-19 00:00:00");
  assert.equal(format.moment(noon - 86_400_000, noon), "2026-11-17 12:00:00");
  assert.equal(format.moment(null, noon), format.NONE);
});

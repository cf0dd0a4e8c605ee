//! What a running gateway did, as a scenario: it replays to the same decisions, and shows what
//! another config would have done.
//!
//! The gateway serves real sockets in the test's own process; the commands are the real program.
//! Where a replay must be exact the gateway has one thread: with several, two requests within
//! nanoseconds may be recorded the other way round (`moments.rs` of the journal), which a replay
//! shows as a difference.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use support::{Run, folder, program, run};
use tidegate_fakes::fake::{FakeServer, Script, Step};
use tidegate_testkit::gate::{Gate, chat};

/// Clients at the same time.
const CLIENTS: usize = 4;
/// Requests of each.
const EACH: usize = 60;

/// The first provider fails for a while, in three ways; the second always answers.
fn providers() -> [FakeServer; 2] {
    let script = Script::steps(vec![
        Step::ok().times(40),
        Step::status(529).times(12),
        Step::ok().times(10),
        Step::status(500).times(9),
        Step::status(429).with_retry_after("1").times(3),
        Step::ok(),
    ]);
    [FakeServer::start(script), FakeServer::start(Script::default())]
}

fn config(fakes: &[FakeServer; 2], route: &str) -> String {
    format!(
        "listen: 127.0.0.1:0\nadmin: {{listen: '127.0.0.1:0'}}\n\
         health: {{failure_threshold: 3, open_for: 5ms, open_jitter: 0.5, \
         probe: {{every: 1s, timeout: 1s}}}}\n\
         providers:\n  alpha: {{api: openai, url: '{}/v1', key: canary-key}}\n  \
         beta: {{api: openai, url: '{}/v1'}}\n\
         routes:\n  r: {{tiers: [[alpha/m], [beta/m]], {route}}}\n",
        fakes[0].url(),
        fakes[1].url()
    )
}

/// Several clients ask at the same time, plain and with streams, with sessions and without.
fn traffic(gate: &Gate) {
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            scope.spawn(move || {
                for number in 0..EACH {
                    let session = format!("x-session-id: s{}\r\n", (client * EACH + number) % 7);
                    let session = if number % 3 == 0 { String::new() } else { session };
                    let body = chat(if number % 11 == 0 { "beta/m" } else { "r" }, number % 2 == 0);
                    gate.post_with("/v1/chat/completions", &session, &body);
                }
            });
        }
    });
}

fn record(gate: &Gate, here: &Path) -> (PathBuf, Run) {
    let file = here.join("incident.yaml");
    let url = format!("http://{}", gate.server.admin_address());
    let mut command = program(here);
    command.args(["sim", "--from-live", "15m", "-o", "incident.yaml", "--admin", &url]);
    (file, run(&mut command))
}

fn sim(here: &Path, args: &[&str]) -> Run {
    let mut command: Command = program(here);
    run(command.arg("sim").args(args))
}

#[test]
fn an_incident_replays_to_the_same_decisions_and_a_better_config_shows_the_improvement() {
    let fakes = providers();
    let gate = Gate::start_on_one_thread(&config(&fakes, "max_hops: 0"));
    traffic(&gate);
    let here = folder("replay-incident");
    let (file, recorded) = record(&gate, &here);
    assert_eq!((recorded.code, recorded.stdout.as_str()), (Some(0), ""), "{recorded:?}");
    let text = fs::read_to_string(file).expect("it was written");
    assert!(!text.contains("canary"), "no secrets: {text}");
    let transitions = gate.admin("/api/incident?last=15m").json()["transitions"].clone();
    let transitions = transitions.as_array().map_or(0, Vec::len);
    assert!(transitions > 3, "the outage was one: {transitions}");

    let url = format!("http://{}", gate.server.admin_address());
    let told = sim(&here, &["--from-live", "15m", "--json", "--admin", &url]);
    let told: serde_json::Value = serde_json::from_str(&told.stdout).expect("one JSON document");
    assert_eq!(told["requests"], CLIENTS * EACH, "{told}");
    assert!(told["scenario"].as_str().is_some_and(|it| it.contains("arrivals: recorded")));

    let again = sim(&here, &["--replay", "incident.yaml"]);
    let exactly = format!("the recording replays exactly: all {} requests", CLIENTS * EACH);
    assert!(again.stdout.contains(&exactly), "{again:?}");
    assert_eq!(again.code, Some(0));
    assert_eq!(sim(&here, &["--replay", "incident.yaml"]).stdout, again.stdout, "the same bytes");

    // The gateway was not allowed to go on to the second tier; this config is.
    fs::write(here.join("better.yaml"), config(&fakes, "max_hops: 4")).expect("a file");
    let told = sim(&here, &["--replay", "incident.yaml", "-c", "better.yaml"]);
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(told.stdout.contains("client failures"), "{told:?}");
    let told = sim(&here, &["--replay", "incident.yaml", "-c", "better.yaml", "--json"]);
    let told: Value = serde_json::from_str(&told.stdout).expect("one document");
    let figure = |name: &str| {
        let list = told["figures"].as_array().expect("a list");
        list.iter().find(|it| it["name"] == name).expect("a figure").clone()
    };
    let failures = figure("client failures");
    assert_eq!(failures["verdict"], "better", "{told:#}");
    assert_eq!(failures["after"], 0, "{told:#}");
    assert!(failures["before"].as_u64() > Some(5), "{told:#}");
    assert_eq!(figure("hops")["before"], 0, "{told:#}");
    assert!(figure("hops")["after"].as_u64() > Some(0), "{told:#}");
}

#[test]
fn failover_as_it_happened_replays_exactly_too() {
    let fakes = providers();
    let gate = Gate::start_on_one_thread(&config(&fakes, "affinity: {ttl: 30m}"));
    traffic(&gate);
    let here = folder("replay-failover");
    assert_eq!(record(&gate, &here).1.code, Some(0));
    let again = sim(&here, &["--replay", "incident.yaml", "--json"]);
    let told: Value = serde_json::from_str(&again.stdout).expect("one document");
    let replayed = &told["replayed"];
    assert_eq!(replayed["same"], replayed["requests"], "{replayed:#}");
    // A recording is a scenario like any other.
    let run = sim(&here, &["--file", "incident.yaml"]);
    assert!(run.stdout.contains("alpha/m"), "{run:?}");
}

/// Two requests of a session in one millisecond, listed as they ended: the second one was chosen
/// for first, and pinned the session.
const ONE_MILLISECOND: &str = r#"scenario: one-millisecond
for: 20ms
traffic: { rate: 100/s, arrivals: recorded }
config: |
  providers: { alpha: { api: openai, url: "http://host.invalid/v1" } }
  routes: { r: { tiers: [[alpha/m]] } }
backends: { "alpha/m": [{ at: 0s, do: ok, latency: 1ms, tokens: 40, token_gap: 0s }] }
recording:
  version: 1
  jitter_seed: "70144cd83659f7e8"
  start: []
  actions: []
  probes: []
  arrivals:
    - {"id":"req_b","at":4,"route":"r","session":"s","deadline":600000,
       "needs":{"context":20,"protocol":"open_ai","kind":"chat","converts_to":14},
       "attempts":[{"backend":"alpha/m","key":1,"at":4,"n":2,"draw":"7e1c8c7e3476699f",
       "by":"pin","pin":"honoured",
       "head":5,"head_n":3,"released":5,"released_n":4,"committed":"complete","ended":5,"ended_n":5,
       "outcome":"success","status":200}],"end":"answered","status":200}
    - {"id":"req_a","at":4,"route":"r","session":"s","deadline":600000,
       "needs":{"context":20,"protocol":"open_ai","kind":"chat","converts_to":14},
       "attempts":[{"backend":"alpha/m","key":1,"at":4,"n":1,"draw":"75aab6e440a2f9d6",
       "by":"tactic","pin":"none",
       "head":6,"head_n":6,"released":6,"released_n":7,"committed":"complete","ended":6,"ended_n":8,
       "outcome":"success","status":200}],"end":"answered","status":200}
"#;

#[test]
fn requests_of_one_millisecond_replay_in_the_order_of_their_choices() {
    let here = folder("replay-millisecond");
    fs::write(here.join("incident.yaml"), ONE_MILLISECOND).expect("a file");
    let again = sim(&here, &["--replay", "incident.yaml"]);
    assert!(again.stdout.contains("the recording replays exactly: all 2 requests"), "{again:?}");
}

#[test]
fn what_is_no_recording_is_told_so() {
    let here = folder("replay-bad");
    let cases = [
        ("plain.yaml", "scenario: x\nfor: 1s\ntraffic: {rate: 1/s}\nbackends: {a/b: []}\n", 2),
        ("other.yaml", "a: 1\n", 3),
        ("broken.yaml", ": :\n -", 3),
        (
            "newer.yaml",
            "for: 1s\ntraffic: {rate: 1/s, arrivals: recorded}\nbackends: {a/b: []}\n\
             recording: {version: 9, arrivals: []}\n",
            3,
        ),
        (
            "none.yaml",
            "for: 1s\ntraffic: {rate: 1/s, arrivals: recorded}\nbackends: {a/b: []}\n",
            3,
        ),
    ];
    for (name, text, code) in cases {
        fs::write(here.join(name), text).expect("a file");
        let said = sim(&here, &["--replay", name]);
        assert_eq!(said.code, Some(code), "{name}: {said:?}");
    }
    let newer = sim(&here, &["--replay", "newer.yaml"]).stderr;
    assert!(newer.contains("TG156") && newer.contains("version 9"), "{newer}");
    assert_eq!(sim(&here, &["--replay", "missing.yaml"]).code, Some(3));
}

#[test]
fn a_history_file_is_a_source_too_and_another_file_is_told_from_one() {
    let here = folder("replay-history");
    let fakes = providers();
    let base = config(&fakes, "affinity: {ttl: 30m}");
    let yaml = format!("{base}history: {{file: '{}', keep: 1h}}\n", here.join("h.db").display());
    fs::write(here.join("tidegate.yaml"), &yaml).expect("a file");
    let gate = Gate::start(&yaml, &[]);
    traffic(&gate);
    // A question for older ones waits for the file.
    gate.admin("/api/decisions?cursor=h9223372036854775807");
    drop(gate);
    let said = sim(&here, &["--from-history", "h.db", "-o", "incident.yaml"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.contains("a history has no probes"), "{said:?}");
    let again = sim(&here, &["--replay", "incident.yaml", "--json"]);
    let told: Value = serde_json::from_str(&again.stdout).expect("one document");
    assert!(told["replayed"]["requests"].as_u64() > Some(100), "{told:#}");
    let none = sim(&here, &["--from-history", "h.db", "--from", "2000-01-01T00:00Z"]);
    assert!(none.stderr.contains("no request of this time"), "{none:?}");

    fs::write(here.join("foreign.db"), "this is a text").expect("a file");
    fs::write(here.join("empty.db"), "").expect("a file");
    // All but the header: how much of a history is in this file and how much beside it varies.
    let mut corrupt = fs::read(here.join("h.db")).expect("it is there");
    corrupt[100..].fill(0xaa);
    fs::write(here.join("corrupt.db"), corrupt).expect("a file");
    for (name, words) in [
        ("foreign.db", "not a history of tidegate"),
        ("empty.db", "no such file, or it is empty"),
        ("missing.db", "no such file"),
        ("corrupt.db", "malformed"),
    ] {
        let said = sim(&here, &["--from-history", name]);
        assert_eq!(said.code, Some(3), "{name}: {said:?}");
        assert!(said.stderr.contains(words), "{name}: {said:?}");
    }
}

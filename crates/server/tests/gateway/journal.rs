//! The record of what was decided, as an operator asks for it.

use std::fs;
use std::path::PathBuf;

use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tidegate_fakes::fake::{Act, Step};
use tidegate_journal::api::{
    decision::{DecisionFull, DecisionList},
    incident::IncidentView,
    snapshot::SnapshotView,
    timeline::TimelineView,
};
use tidegate_testkit::{
    gate::{Gate, chat},
    http::Client,
    time::eventually,
};

use crate::{
    bed::{Setup, always, good},
    collector::Collector,
};

const CHAT: &str = "/v1/chat/completions";

fn decisions(gate: &Gate, query: &str) -> Vec<Value> {
    let list = gate.admin(&format!("/api/decisions{query}")).json();
    list["decisions"].as_array().unwrap_or_else(|| panic!("{list}")).clone()
}

/// A folder that is gone with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tidegate-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("the folder for temporary files can be written");
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

#[test]
fn every_kind_of_request_leaves_exactly_one_decision() {
    let failing = always(Step::status(500));
    let working = good();
    let setup = Setup {
        health: "failure_threshold: 100, failure_ratio: 0",
        route: "affinity: {ttl: 0s}",
        top: "keys: [{name: ci, key: 'env:CI'}, {name: few, key: 'env:FEW', routes: []}]",
        variables: &[("CI", "ci-key"), ("FEW", "few-key")],
        ..Setup::of(&[&failing, &working])
    };
    let gate = setup.start();
    let ask =
        |key: &str, body: &str| gate.post_with(CHAT, &format!("x-api-key: {key}\r\n"), body).status;
    let mut seen = 0;
    let mut check = |what: &str, status: u16, expected: u16, told: (&str, &str, usize)| {
        assert_eq!(status, expected, "{what}");
        seen += 1;
        let all = decisions(&gate, "?limit=1000");
        assert_eq!(all.len(), seen, "{what}: {all:?}");
        let (result, end, attempts) = told;
        let last = &all[0];
        assert_eq!(last["result"], result, "{what}: {last}");
        assert_eq!(last["end"], end, "{what}: {last}");
        assert_eq!(last["attempts"].as_array().map(Vec::len), Some(attempts), "{what}: {last}");
        assert_eq!(last["status"], expected, "{what}: {last}");
    };
    check("hop", ask("ci-key", &chat("r", false)), 200, ("ok", "answered", 2));
    check("stream", ask("ci-key", &chat("r", true)), 200, ("ok", "answered", 2));
    check("direct", ask("ci-key", &chat("b/m", false)), 200, ("ok", "answered", 1));
    check("failed", ask("ci-key", &chat("a/m", false)), 500, ("failed", "nothing_left", 1));
    check("missing", ask("ci-key", &chat("no/such", false)), 404, ("refused", "refused", 0));
    check("bad JSON", ask("ci-key", "{"), 400, ("refused", "refused", 0));
    check("forbidden", ask("few-key", &chat("r", false)), 403, ("refused", "refused", 0));
    // Nobody is known to have asked: no decision, but an event of security.
    assert_eq!(ask("wrong", &chat("r", false)), 401);
    assert_eq!(decisions(&gate, "?limit=1000").len(), seen);
    assert_eq!(decisions(&gate, "?caller=few").len(), 1);
    assert_eq!(decisions(&gate, "?backend=a%2Fm&outcome=server_error").len(), 3);
    assert_eq!(decisions(&gate, "?result=refused").len(), 3);
    assert_eq!(decisions(&gate, "?since=1h&limit=2").len(), 2);
    assert_eq!(gate.admin("/api/decisions?rout=r").status, 400);
    for (query, choice) in
        [("outcome=slow", "`overloaded`"), ("result=bad", "`failed`"), ("kind=x", "`mcp`")]
    {
        let refused = gate.admin(&format!("/api/decisions?{query}"));
        assert_eq!(refused.status, 400, "{query}");
        let told = refused.json()["error"]["message"].to_string();
        assert!(told.contains(choice), "{query}: {told}");
    }
}

#[test]
fn a_client_that_leaves_leaves_a_decision() {
    let silent = always(Step::of(Act::Hang));
    let gate = Setup::of(&[&silent]).start();
    let mut client = Client::connect(gate.address());
    client.send("POST", CHAT, "", chat("r", true).as_bytes());
    eventually("it is asked", || silent.counts().seen > 0);
    drop(client);
    eventually("the decision is there", || decisions(&gate, "").len() == 1);
    let decision = &decisions(&gate, "")[0];
    assert_eq!((&decision["result"], &decision["status"]), (&"cancelled".into(), &499.into()));
}

#[test]
fn a_decision_tells_every_verdict_attempt_and_what_was_released() {
    let failing = always(Step::status(529));
    let working = good();
    let gate =
        Setup { health: "failure_threshold: 1, open_for: 60s", ..Setup::of(&[&failing, &working]) }
            .start();
    let first = gate.post(CHAT, &chat("r", false));
    let id = first.header("x-tidegate-request-id").expect("every answer has one").to_owned();
    let told = gate.admin(&format!("/api/decisions/{id}")).json();
    assert_eq!(told["answered_by"], "b/m");
    assert_eq!(told["attempts"][0]["outcome"], "overloaded");
    assert_eq!(told["attempts"][0]["status"], 529);
    assert_eq!(told["attempts"][0]["key"], 1);
    assert_eq!(told["choices"].as_array().map(Vec::len), Some(2));
    let verdicts = |choice: usize| -> Vec<&str> {
        let candidates = told["choices"][choice]["candidates"].as_array();
        candidates.into_iter().flatten().filter_map(|it| it["verdict"].as_str()).collect()
    };
    assert_eq!(verdicts(0), ["chosen", "held"]);
    assert_eq!(verdicts(1), ["tried", "chosen"]);
    assert_eq!(told["released"]["what"], "attempt");
    assert_eq!(told["released"]["attempt"], 1);
    assert_eq!(told["plan"]["route"], "r");
    // The breaker is open now: the next request goes straight on, and the record says why.
    let next = gate.post(CHAT, &chat("r", false));
    let id = next.header("x-tidegate-request-id").expect("every answer has one").to_owned();
    let told = gate.admin(&format!("/api/decisions/{id}")).json();
    let skipped = &told["choices"][0]["candidates"][0];
    assert_eq!((&skipped["verdict"], &skipped["rank"]), (&"skipped".into(), &2.into()));
    assert_eq!(skipped["obstacles"][0]["phrase"], "has an open breaker");
    assert!(skipped["obstacles"][0]["until_unix_ms"].is_u64(), "{skipped}");
    let snapshot = gate.admin("/api/snapshot").json();
    assert_eq!(snapshot["verdict"]["level"], "degraded", "{}", snapshot["verdict"]);
    assert_eq!(snapshot["backends"][0]["why"], "1 × 529 overloaded in a row");
    assert_eq!(snapshot["routes"][0]["stats"]["requests"], 2);
    assert_eq!(snapshot["routes"][0]["stats"]["hops"], 1);
    assert_eq!(snapshot["routes"][0]["tiers"][1][0]["share_percent"], 100.0);
}

#[test]
fn a_request_that_finds_nothing_says_so() {
    let failing = always(Step::of(Act::Reset));
    let gate = Setup {
        health: "failure_threshold: 1, open_for: 60s",
        route: "last_resort: {burst: 0, per_second: 0}",
        ..Setup::of(&[&failing])
    }
    .start();
    assert_eq!(gate.chat().status, 503);
    let answer = gate.chat();
    assert_eq!(answer.status, 503);
    let id = answer.header("x-tidegate-request-id").expect("every answer has one");
    let told = gate.admin(&format!("/api/decisions/{id}")).json();
    assert_eq!(told["end"], "last_resort_limit", "{told}");
    assert_eq!(told["released"]["what"], "own_error");
    assert_eq!(told["answer"]["type"], "no_healthy_backend");
    assert!(told["answer"]["message"].as_str().is_some_and(|it| it.contains("a/m")), "{told}");
    assert_eq!(told["choices"][0]["chosen"], Value::Null);
    assert_eq!(told["choices"][0]["candidates"][0]["verdict"], "skipped");
}

/// What the API answers is what its types say, no more and no less: the schemas are made from them.
fn check<T: Serialize + DeserializeOwned>(gate: &Gate, path: &str) {
    let answer = gate.admin(path).json();
    let typed: T =
        serde_json::from_value(answer.clone()).unwrap_or_else(|it| panic!("{path}: {it}"));
    assert_eq!(serde_json::to_value(&typed).expect("it is JSON"), answer, "{path}");
}

#[test]
fn every_answer_is_what_its_schema_says() {
    let failing = always(Step::status(500));
    let working = good();
    let gate = Setup { health: "failure_threshold: 1", ..Setup::of(&[&failing, &working]) }.start();
    gate.chat();
    gate.stream();
    let id = decisions(&gate, "")[0]["id"].as_str().expect("it has one").to_owned();
    check::<SnapshotView>(&gate, "/api/snapshot");
    check::<DecisionList>(&gate, "/api/decisions");
    check::<DecisionFull>(&gate, &format!("/api/decisions/{id}"));
    check::<TimelineView>(&gate, "/api/timeline");
    check::<IncidentView>(&gate, "/api/incident?last=15m");
    let lanes = gate.admin("/api/timeline").json();
    assert_eq!(lanes["lanes"][0]["id"], "a/m");
    let states = lanes["lanes"][0]["states"].as_array().expect("states");
    assert_eq!(states.last().map(|it| &it["state"]), Some(&"open".into()), "{states:?}");
    let incident = gate.admin("/api/incident").json();
    assert_eq!(incident["arrivals"].as_array().map(Vec::len), Some(2));
    assert!(!incident["transitions"].as_array().expect("a list").is_empty());
}

const CANARIES: &[&str] = &[
    "canary-provider-11aa",
    "canary-header-22bb",
    "canary-caller-33cc",
    "canary-prompt-44dd",
    "canary-session-55ee",
    "canary-agent-66ff",
    "canary-error-77aa",
    "canary-admin-88bb",
];

#[test]
fn i13_no_secret_prompt_or_header_is_in_journal_history_audit_metrics_or_traces() {
    let [provider, header, caller, prompt, session, agent, error, admin] = CANARIES else {
        panic!("there are eight");
    };
    let folder = Folder::new("canaries");
    let failing = always(Step { text: Some((*error).to_owned()), ..Step::status(500) });
    let (working, collector) = (good(), Collector::start());
    let (history, audit) = (folder.file("tidegate.db"), folder.file("audit.jsonl"));
    let top = format!(
        "keys: [{{name: ci, key: 'env:CALLER'}}]\nlog: {{level: debug, access: true}}\n\
         history: {{file: '{history}'}}\naudit: {{file: '{audit}'}}\n\
         telemetry: {{otlp: 'http://{}'}}",
        collector.address()
    );
    let variables = [("KEY", *provider), ("HEADER", *header), ("CALLER", *caller)];
    let gate = Setup {
        provider: "key: 'env:KEY', headers: {x-extra: 'env:HEADER'}",
        top: &top,
        variables: &variables,
        ..Setup::of(&[&failing, &working])
    }
    .start();
    let headers =
        format!("x-api-key: {caller}\r\nx-tidegate-session: {session}\r\nuser-agent: {agent}\r\n");
    let mut ids = Vec::new();
    for (model, is_stream) in [("r", false), ("r", true), ("a/m", false), ("no/such", false)] {
        let body = chat(model, is_stream).replace("good morning", prompt);
        let answer = gate.post_with(CHAT, &headers, &body);
        ids.extend(answer.header("x-tidegate-request-id").map(str::to_owned));
    }
    gate.post_with(CHAT, &headers, &format!("{{\"{prompt}\": "));
    gate.post_with(CHAT, &format!("x-api-key: {admin}\r\n"), &chat("r", false));
    let mut paths = vec!["/api/snapshot".to_owned(), "/metrics".to_owned()];
    paths.extend(["/api/decisions", "/api/timeline", "/api/incident"].map(str::to_owned));
    paths.extend(ids.iter().map(|id| format!("/api/decisions/{id}")));
    let assert_clean = |text: &str, what: &str| {
        for canary in CANARIES {
            assert!(!text.contains(canary), "{what} tells {canary}");
        }
    };
    for path in &paths {
        let answer = gate.admin(path);
        assert_eq!(answer.status, 200, "{path}");
        assert_clean(&answer.text(), path);
    }
    assert_eq!(decisions(&gate, &format!("?session={session}")).len(), 3, "by its fingerprint");
    gate.server.stop();
    for name in fs::read_dir(&folder.0).expect("a folder").flatten() {
        // The write-ahead log goes when the writer has closed the file.
        let Ok(bytes) = fs::read(name.path()) else { continue };
        assert_clean(&String::from_utf8_lossy(&bytes), &format!("{name:?}"));
    }
    assert!(fs::metadata(&history).is_ok_and(|it| it.len() > 0));
    assert_eq!(collector.spans().iter().filter(|it| it.parent.is_empty()).count(), 5);
    assert!(!collector.metric_names().is_empty());
    assert_clean(&collector.text(), "the collector");
    let lines = fs::read_to_string(&audit).expect("the audit log is there");
    let lines: Vec<Value> =
        lines.lines().map(|it| serde_json::from_str(it).expect("a line is JSON")).collect();
    let uses: Vec<&Value> = lines.iter().filter(|it| it["event"] == "use").collect();
    assert_eq!(uses.len(), 5, "{lines:?}");
    assert!(uses.iter().all(|it| it["caller"] == "ci"), "{uses:?}");
    assert_eq!(lines.iter().filter(|it| it["event"] == "refused").count(), 1, "{lines:?}");
}

#[test]
fn decisions_of_a_former_process_come_from_the_history_file() {
    let folder = Folder::new("former");
    let working = good();
    let top = format!("history: {{file: '{}', keep: 1h}}", folder.file("tidegate.db"));
    let setup = Setup { top: &top, ..Setup::of(&[&working]) };
    let gate = setup.start();
    let first = gate.chat().header("x-tidegate-request-id").expect("an id").to_owned();
    gate.server.stop();
    let gate = setup.start();
    let second = gate.chat().header("x-tidegate-request-id").expect("an id").to_owned();
    let list = gate.admin("/api/decisions").json();
    let ids: Vec<&Value> =
        list["decisions"].as_array().into_iter().flatten().map(|it| &it["id"]).collect();
    assert_eq!(ids, [&json!(second), &json!(first)], "{list}");
    assert_eq!(list["from"], "both");
    assert_eq!(gate.admin(&format!("/api/decisions/{first}")).json()["id"], first);
    let mut cursor = String::new();
    let mut seen = Vec::new();
    loop {
        let page = gate.admin(&format!("/api/decisions?limit=1{cursor}")).json();
        seen.extend(page["decisions"].as_array().into_iter().flatten().map(|it| it["id"].clone()));
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(seen, [json!(second), json!(first)], "page by page, each once");
    let journal = gate.admin("/api/snapshot").json()["journal"].clone();
    assert_eq!(journal["history"]["status"], "ok", "{journal}");
}

#[test]
fn a_foreign_history_file_is_left_alone_and_serving_goes_on() {
    let folder = Folder::new("foreign");
    let file = folder.file("tidegate.db");
    fs::write(&file, "not a database").expect("it can be written");
    let working = good();
    let top = format!("history: {{file: '{file}'}}");
    let gate = Setup { top: &top, ..Setup::of(&[&working]) }.start();
    assert_eq!(gate.chat().status, 200);
    let history = gate.admin("/api/snapshot").json()["journal"]["history"].clone();
    assert_eq!(history["status"], "failed", "{history}");
    let why = history["why"].as_str().expect("it says why");
    assert!(why.contains("not a history of tidegate"), "{why}");
    assert_eq!(fs::read_to_string(&file).expect("it is there"), "not a database");
    assert_eq!(decisions(&gate, "").len(), 1, "memory answers");
}

#[test]
fn a_full_disk_fails_no_request_and_is_counted() {
    // Every write to this device says that the disk is full.
    let working = good();
    let gate = Setup { top: "audit: {file: /dev/full}", ..Setup::of(&[&working]) }.start();
    for _ in 0..3 {
        assert_eq!(gate.chat().status, 200);
    }
    gate.admin("/api/snapshot");
    let dropped = r#"tidegate_records_dropped_total{store="audit"}"#;
    eventually("what was lost is counted", || gate.metric(dropped) >= 3.0);
    let audit = gate.admin("/api/snapshot").json()["journal"]["audit"].clone();
    assert_eq!(audit["status"], "failed", "{audit}");
}

//! Sessions stay with their target, whichever way they are named.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::bed::{Setup, good};

/// Sixteen requests of one session, named like this, meet one target; without a name, both.
fn targets_met(headers: &str, field: Option<(&str, Value)>) -> BTreeSet<String> {
    let fakes = [good(), good()];
    let gate = Setup { tiers: "[[a/m, b/m]]", ..Setup::of(&fakes.each_ref()) }.start();
    let mut body = json!({"model": "r", "messages": []});
    if let Some((name, value)) = field {
        body[name] = value;
    }
    let ask = |_| {
        let answer = gate.post_with("/v1/chat/completions", headers, &body.to_string());
        answer.header("x-tidegate-resolved").unwrap_or_default().to_owned()
    };
    (0..16).map(ask).collect()
}

#[test]
fn a_session_named_by_any_header_is_pinned() {
    for name in [
        "x-tidegate-session",
        "x-claude-code-session-id",
        "x-session-id",
        "x-session-affinity",
        "session-id",
        "thread-id",
    ] {
        assert_eq!(targets_met(&format!("{name}: s1\r\n"), None).len(), 1, "{name}");
    }
}

#[test]
fn a_session_named_in_the_body_is_pinned() {
    for (name, value) in [
        ("prompt_cache_key", json!("s1")),
        ("user", json!("s1")),
        ("metadata", json!({"user_id": "s1"})),
    ] {
        assert_eq!(targets_met("", Some((name, value))).len(), 1, "{name}");
    }
}

#[test]
fn without_a_name_there_is_no_session() {
    assert_eq!(targets_met("", None).len(), 2, "sixteen random picks of two meet both");
    assert_eq!(targets_met("x-session-id: \r\n", None).len(), 2, "an empty name is none");
}

#[test]
fn an_earlier_header_wins_over_a_later_one_and_over_the_body() {
    let fakes = [good(), good()];
    let gate = Setup { tiers: "[[a/m, b/m]]", ..Setup::of(&fakes.each_ref()) }.start();
    let met: BTreeSet<String> = (0..16)
        .map(|number| {
            let body = json!({"model": "r", "user": format!("u{number}"), "messages": []});
            let headers = format!("x-session-id: s{number}\r\nx-tidegate-session: same\r\n");
            let answer = gate.post_with("/v1/chat/completions", &headers, &body.to_string());
            answer.header("x-tidegate-resolved").unwrap_or_default().to_owned()
        })
        .collect();
    assert_eq!(met.len(), 1);
}

#[test]
fn affinity_never_blocks_failover() {
    let fakes = [good(), good()];
    let gate = Setup { tiers: "[[a/m, b/m]]", ..Setup::of(&fakes.each_ref()) }.start();
    let ask = || {
        let headers = "x-session-id: s\r\n";
        let body = tidegate_testkit::gate::chat("r", false);
        gate.post_with("/v1/chat/completions", headers, &body)
    };
    let first = ask().header("x-tidegate-resolved").map(str::to_owned);
    let [a, b] = fakes;
    let (pinned, other) = if first.as_deref() == Some("a/m") { (a, b) } else { (b, a) };
    pinned.stop();
    for _ in 0..6 {
        assert_eq!(ask().status, 200);
    }
    drop(other);
}

#[test]
fn sessions_are_counted_by_route() {
    let fake = good();
    let url = fake.url();
    let yaml = format!(
        "listen: 127.0.0.1:0\nadmin: {{listen: '127.0.0.1:0'}}\nhealth: {{probe: {{every: 0s}}}}\n\
         providers: {{a: {{api: openai, url: '{url}/v1'}}}}\n\
         routes: {{r: {{tiers: [[a/m]]}}, s: {{tiers: [[a/m]]}}}}\n"
    );
    let gate = tidegate_testkit::gate::Gate::start(&yaml, &[]);
    for (model, session) in [("r", "1"), ("r", "2"), ("r", "1"), ("s", "1"), ("a/m", "1")] {
        let headers = format!("x-tidegate-session: {session}\r\n");
        let body = tidegate_testkit::gate::chat(model, false);
        assert_eq!(gate.post_with("/v1/chat/completions", &headers, &body).status, 200);
    }
    let metrics = gate.admin("/metrics").text();
    let counts: Vec<&str> =
        metrics.lines().filter(|line| line.starts_with("tidegate_sessions{")).collect();
    let expected = ["tidegate_sessions{route=\"r\"} 2", "tidegate_sessions{route=\"s\"} 1"];
    assert_eq!(counts, expected);
}

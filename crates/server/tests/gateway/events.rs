//! The event stream of the admin listener, and signing in.

use std::collections::BTreeSet;

use serde_json::Value;
use tidegate_fakes::fake::Step;
use tidegate_testkit::{
    exchange::{Ask, Event, Exchange},
    gate::{Gate, chat},
};

use crate::bed::{Setup, always, good};

fn listen(gate: &Gate, last: Option<&str>) -> Exchange {
    let last = last.map(|id| format!("last-event-id: {id}\r\n")).unwrap_or_default();
    let ask = Ask { verb: "GET", path: "/api/events", headers: last, body: b"" };
    let mut events = Exchange::begin(gate.server.admin_address(), &ask).expect("an answer comes");
    events.must_be(200, "the stream");
    assert!(events.is_stream());
    events
}

/// The next event that has a number, figures aside.
fn next(events: &mut Exchange) -> Event {
    loop {
        let event = events.event().expect("the stream goes on");
        if event.id.is_some() {
            return event;
        }
    }
}

fn seq(event: &Event) -> u64 {
    let id = event.id.as_deref().expect("it has a number");
    id.rsplit_once('-').and_then(|(_, seq)| seq.parse().ok()).expect("a number")
}

fn failing_gate() -> (Gate, impl Sized) {
    let (failing, working) = (always(Step::status(500)), good());
    let gate = Setup {
        health: "failure_threshold: 100, failure_ratio: 0",
        top: "",
        ..Setup::of(&[&failing, &working])
    }
    .start();
    (gate, (failing, working))
}

#[test]
fn the_first_event_is_a_snapshot_and_what_happens_follows() {
    let (gate, _fakes) = failing_gate();
    let mut events = listen(&gate, None);
    let first = next(&mut events);
    assert_eq!(first.json()["status"], "healthy");
    assert_eq!(first.json()["seq"], seq(&first));
    gate.chat();
    let decision = next(&mut events);
    assert_eq!(decision.json()["attempts"][0]["outcome"], "server_error");
    assert_eq!(seq(&decision), seq(&first) + 1);
}

#[test]
fn a_resumed_stream_misses_nothing_and_repeats_nothing() {
    let (gate, _fakes) = failing_gate();
    let mut events = listen(&gate, None);
    let first = next(&mut events);
    gate.chat();
    let seen = next(&mut events);
    drop(events);
    // Three more while nobody listens.
    let ids: BTreeSet<String> = (0..3)
        .map(|_| {
            let answer = gate.post("/v1/chat/completions", &chat("r", false));
            answer.header("x-tidegate-request-id").expect("an id").to_owned()
        })
        .collect();
    let mut resumed = listen(&gate, seen.id.as_deref());
    let snapshot = next(&mut resumed);
    assert_eq!(snapshot.id, seen.id, "what the client knows is not told as known before it is");
    assert_eq!(snapshot.json()["seq"], seq(&first) + 4);
    let missed: BTreeSet<String> = (1..=3)
        .map(|number| {
            let event = next(&mut resumed);
            assert_eq!(seq(&event), seq(&seen) + number);
            event.json()["id"].as_str().expect("a decision").to_owned()
        })
        .collect();
    assert_eq!(missed, ids);
    gate.chat();
    assert_eq!(seq(&next(&mut resumed)), seq(&first) + 5);
}

#[test]
fn a_stream_of_another_process_begins_anew_and_says_so() {
    let (gate, _fakes) = failing_gate();
    for id in ["0123456789abcdef-7", "nonsense", "-"] {
        let mut events = listen(&gate, Some(id));
        assert_eq!(next(&mut events).json()["status"], "healthy");
        assert_eq!(next(&mut events).json()["reason"], "other_instance", "{id}");
    }
    let current = next(&mut listen(&gate, None)).id.expect("it has a number");
    let ahead = format!("{}99", current);
    let mut events = listen(&gate, Some(&ahead));
    next(&mut events);
    assert_eq!(next(&mut events).json()["reason"], "too_old");
}

fn post(gate: &Gate, path: &str, headers: &str, body: &str) -> (u16, String, Value) {
    let json = "content-type: application/json\r\n";
    let headers = format!("{json}{headers}");
    let ask = Ask { verb: "POST", path, headers, body: body.as_bytes() };
    let mut said = Exchange::begin(gate.server.admin_address(), &ask).expect("an answer comes");
    let cookie = said.header("set-cookie").unwrap_or_default().to_owned();
    (said.status, cookie, said.json())
}

#[test]
fn s35_a_cookie_opens_changes_only_with_the_header_that_no_other_site_can_send() {
    let working = good();
    let yaml = Setup { variables: &[("ADMIN", "canary-admin")], ..Setup::of(&[&working]) }.yaml();
    let yaml = yaml.replace(
        "admin: {listen: '127.0.0.1:0'}",
        "admin: {listen: '127.0.0.1:0', token: 'env:ADMIN'}",
    );
    let gate = Gate::start(&yaml, &[("ADMIN", "canary-admin")]);
    let (status, _, said) = post(&gate, "/api/login", "", r#"{"token": "wrong"}"#);
    assert_eq!(status, 401, "{said}");
    let (status, cookie, said) = post(&gate, "/api/login", "", r#"{"token": "canary-admin"}"#);
    assert_eq!((status, &said["ok"]), (200, &true.into()), "{said}");
    assert!(cookie.contains("HttpOnly; SameSite=Strict; Path=/"), "{cookie}");
    assert!(!cookie.contains("canary"), "{cookie}");
    let cookie = format!("cookie: other=1; {}\r\n", cookie.split(';').next().unwrap_or_default());
    let drain = "/api/backends/a%2Fm/drain";
    assert_eq!(post(&gate, drain, "", "{}").0, 401);
    assert_eq!(post(&gate, drain, &cookie, "{}").0, 403);
    let safe = format!("{cookie}x-tidegate-csrf: 1\r\n");
    let foreign = format!("{safe}origin: http://evil.test\r\n");
    assert_eq!(post(&gate, drain, &foreign, "{}").0, 403);
    let body = r#"{"reason": "maintenance", "ttl": "5m"}"#;
    let (status, _, said) = post(&gate, drain, &safe, body);
    assert_eq!(status, 200, "{said}");
    let backend = gate.admin("/api/snapshot").json()["backends"][0].clone();
    assert_eq!(
        (&backend["standing"], &backend["action"]["reason"]),
        (&"drained".into(), &"maintenance".into())
    );
    assert_eq!(backend["action"]["by"], "cookie");
    assert_eq!(post(&gate, "/api/backends/a%2Fm/resume", &safe, "{}").0, 200);
    let backend = gate.admin("/api/snapshot").json()["backends"][0].clone();
    assert_eq!(backend["standing"], "active", "{backend}");
    assert_eq!(post(&gate, "/api/logout", &safe, "").0, 200);
    assert_eq!(post(&gate, drain, &safe, "{}").0, 401, "the cookie opens nothing any more");
    for _ in 0..4 {
        post(&gate, "/api/login", "", r#"{"token": "wrong"}"#);
    }
    let (status, _, said) = post(&gate, "/api/login", "", r#"{"token": "canary-admin"}"#);
    assert_eq!(status, 429, "guessing is slow: {said}");
    let events = gate.admin("/api/snapshot").text();
    assert!(!events.contains("canary-admin"));
}

#[test]
fn streams_that_nobody_reads_hold_up_nobody_and_one_too_many_is_told_so() {
    use std::io::{Read, Write};
    let (gate, _fakes) = failing_gate();
    let address = gate.server.admin_address();
    let mut mute = Vec::new();
    // As many as there may be; each reads that it is one, and then nothing any more.
    for _ in 0..64 {
        let mut stream = std::net::TcpStream::connect(address).expect("it listens");
        let ask = "GET /api/events HTTP/1.1\r\nhost: localhost\r\n\r\n";
        stream.write_all(ask.as_bytes()).expect("it reads");
        let mut head = [0; 12];
        stream.read_exact(&mut head).expect("it answers");
        assert_eq!(&head, b"HTTP/1.1 200");
        mute.push(stream);
    }
    let refused = gate.admin("/api/events");
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("5")));
    assert!(refused.text().contains("close a dashboard"), "{}", refused.text());
    for _ in 0..200 {
        assert_eq!(gate.chat().status, 200);
    }
    assert_eq!(gate.admin("/api/snapshot").json()["totals"]["ok"], 200);
    drop(mute);
    tidegate_testkit::time::eventually("there is room again", || {
        let ask = Ask { verb: "GET", path: "/api/events", headers: String::new(), body: b"" };
        Exchange::begin(address, &ask).is_ok_and(|it| it.status == 200)
    });
}

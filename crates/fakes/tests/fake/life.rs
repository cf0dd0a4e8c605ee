//! Connections, records and the end of a fake.

use std::time::{Duration, Instant};

use tidegate_fakes::fake::{Act, FakeServer, Script, Step};

use crate::client::{Client, End, SILENCE, chat, post};

const CHAT: &str = "/v1/chat/completions";
const PATIENCE: Duration = Duration::from_secs(10);

/// Waits for something that another thread is about to do.
#[expect(clippy::disallowed_methods, reason = "a test of real sockets watches a real clock")]
fn eventually(is_so: impl Fn() -> bool, what: &str) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        std::thread::yield_now();
    }
}

#[test]
fn one_connection_carries_many_calls() {
    let server = FakeServer::start(Script::default());
    let mut client = Client::connect(server.address());
    for is_stream in [true, false, true] {
        client.send("POST", CHAT, "", &chat("m1", is_stream));
        assert_eq!(client.answer(PATIENCE).expect("an answer").end, End::Whole);
    }
    let connections: Vec<u64> = server.calls().iter().map(|call| call.connection).collect();
    assert_eq!(connections, [0, 0, 0]);
    assert_eq!(server.counts().abandoned, 0);
}

#[test]
fn every_call_is_recorded_as_it_came() {
    let server = FakeServer::start(Script::default());
    let mut client = Client::connect(server.address());
    let body = r#"{ "model":"m1",  "zebra": 1.50e0 }"#;
    client.send("POST", "/v1/chat/completions?a=b", "Authorization: Bearer sk-1\r\n", body);
    client.answer(PATIENCE).expect("an answer");
    let calls = server.calls();
    assert_eq!(calls.len(), 1);
    assert_eq!(
        (calls[0].method.as_str(), calls[0].path.as_str()),
        ("POST", "/v1/chat/completions?a=b")
    );
    assert_eq!(calls[0].header("authorization"), Some("Bearer sk-1"));
    assert_eq!(calls[0].body, body.as_bytes());
    server.forget_calls();
    assert!(server.calls().is_empty());
}

#[test]
fn steps_count_calls_and_a_new_script_begins_anew() {
    let server = FakeServer::start(Script::steps(vec![Step::status(500).times(2)]));
    let statuses = || -> Vec<u16> {
        let ask = |_| post(server.address(), CHAT, &chat("m1", false)).expect("an answer").status;
        (0..3).map(ask).collect()
    };
    assert_eq!(statuses(), [500, 500, 200]);
    server.set_script(Script::steps(vec![Step::status(429)]));
    assert_eq!(statuses(), [429, 200, 200]);
}

#[test]
fn two_hundred_streams_at_once_lose_nothing() {
    let step = Step::ok().with_tokens(20, Duration::from_millis(2));
    let server = FakeServer::start(Script::always(step));
    let mut clients: Vec<Client> = (0..200).map(|_| Client::connect(server.address())).collect();
    for client in &mut clients {
        client.send("POST", CHAT, "", &chat("m1", true));
    }
    for client in &mut clients {
        let answer = client.answer(PATIENCE).expect("an answer");
        assert_eq!((answer.end, answer.events().len()), (End::Whole, 23));
    }
    assert_eq!(server.counts().seen, 200);
}

#[test]
fn a_client_that_leaves_is_noticed() {
    for step in [Step::of(Act::Hang), Step::after(Act::Stall, 2), Step::of(Act::Silence)] {
        let server = FakeServer::start(Script::always(step));
        let mut client = Client::connect(server.address());
        client.send("POST", CHAT, "", &chat("m1", true));
        eventually(|| server.counts().under_way == 1, "the call is under way");
        drop(client);
        eventually(|| server.counts().abandoned == 1, "the client's leaving is counted");
        eventually(|| server.counts().connections == 0, "the connection is gone");
        assert_eq!(server.counts().under_way, 0);
    }
}

#[test]
fn stopping_ends_connections_thread_and_listener() {
    let server = FakeServer::start(Script::always(Step::after(Act::Stall, 2)));
    let address = server.address();
    let mut idle = Client::connect(address);
    let mut busy = Client::connect(address);
    busy.send("POST", CHAT, "", &chat("m1", true));
    assert_eq!(busy.answer(SILENCE).expect("a head").end, End::Silent);
    server.stop();
    assert!(matches!(busy.answer(PATIENCE), Err(End::Closed | End::Reset)));
    assert!(matches!(idle.answer(PATIENCE), Err(End::Closed | End::Reset)));
    assert!(std::net::TcpStream::connect(address).is_err(), "nobody listens");
    let again = FakeServer::start_at(address, Script::default()).expect("the port is free again");
    assert_eq!(post(again.address(), CHAT, &chat("m1", false)).expect("an answer").status, 200);
}

#[test]
fn a_stopped_fake_leaves_no_descriptor_behind() {
    let own = std::process::Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "life::descriptors_return_to_the_baseline", "--nocapture"])
        .env("TIDEGATE_TEST_ALONE", "1")
        .output()
        .expect("this program runs again");
    assert!(own.status.success(), "{}", String::from_utf8_lossy(&own.stderr));
}

/// Only tells something in a process of its own, where no other test opens descriptors.
#[test]
fn descriptors_return_to_the_baseline() {
    let count = |what: &str| std::fs::read_dir(what).map_or(0, Iterator::count);
    let left = || (count("/proc/self/fd"), count("/proc/self/task"));
    let live_and_die = || {
        let server = FakeServer::start(Script::always(Step::of(Act::Hang)));
        let mut client = Client::connect(server.address());
        client.send("POST", CHAT, "", &chat("m1", true));
        eventually(|| server.counts().under_way == 1, "the call is under way");
    };
    // The first runtime of a process opens what all later ones share.
    live_and_die();
    if std::env::var_os("TIDEGATE_TEST_ALONE").is_none() {
        return;
    }
    let before = left();
    for _ in 0..5 {
        live_and_die();
    }
    // The kernel lists a thread for a moment after it was joined.
    eventually(|| left() == before, "descriptors and threads are back at the baseline");
}

#[test]
fn a_plain_fake_answers_the_same_bytes_and_records_nothing() {
    let server = FakeServer::start(Script::plain());
    let mut client = Client::connect(server.address());
    let mut answers = Vec::new();
    for _ in 0..2 {
        client.send("POST", CHAT, "", &chat("m1", true));
        answers.push(client.answer(PATIENCE).expect("an answer").body);
    }
    assert_eq!(answers[0], answers[1]);
    assert!(answers[0].contains("\"content\":\"m1 \"") && answers[0].ends_with("data: [DONE]\n\n"));
    assert_eq!((server.calls().len(), server.counts().seen), (0, 2));
    client.send("POST", CHAT, "", "not json");
    assert_eq!(client.answer(PATIENCE).expect("an answer").status, 200);
}

//! Providers that speak HTTP/2, which they say while TLS is set up.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tidegate_testkit::{
    gate::{Gate, chat},
    http::{Client, End},
};
use tokio::sync::Barrier;

use crate::bed::{Setup, good, hits};
use crate::failover::assert_served;
use crate::secure::{Act, Authority, Secure, TOKENS};
use crate::tls::{LATE, gate_to, outcome};

/// A provider that prefers HTTP/2, and a gateway of one thread before it.
fn start() -> (Secure, Gate) {
    let authority = Authority::new();
    let secure = Secure::start(authority.sign("127.0.0.1", LATE), &["h2", "http/1.1"]);
    let gate = gate_to(&secure.url(), &authority, "");
    (secure, gate)
}

/// The same, with a second target that is well.
fn start_with_spare() -> (Secure, tidegate_fakes::fake::FakeServer, Gate) {
    let authority = Authority::new();
    let secure = Secure::start(authority.sign("127.0.0.1", LATE), &["h2"]);
    let spare = good();
    let provider = "ca: 'file:/ca.pem'";
    let mut setup = Setup { provider, ..Setup::of(&[&spare, &spare]) };
    setup.urls[0] = secure.url();
    let gate = Gate::start_with_file(&setup.yaml(), ("/ca.pem", &authority.pem));
    (secure, spare, gate)
}

fn requests(secure: &Secure) -> u64 {
    secure.seen.requests.load(Ordering::Relaxed)
}

#[test]
fn requests_and_streams_go_over_h2_where_it_is_offered() {
    let (secure, gate) = start();
    for _ in 0..10 {
        assert_served(&gate.chat(), false, "over h2");
        let stream = gate.stream();
        assert_served(&stream, true, "over h2");
        assert_eq!(stream.tokens(), TOKENS);
    }
    assert_eq!(secure.seen.h2_requests.load(Ordering::Relaxed), 20);
    assert_eq!(secure.seen.connections.load(Ordering::Relaxed), 1);
}

#[test]
fn many_streams_share_a_connection_and_none_waits_for_another() {
    let (secure, gate) = start();
    assert_served(&gate.chat(), false, "the connection is there");
    // More than a connection carries. None of them ends before all of them have begun.
    let count = 250;
    let barrier = Arc::new(Barrier::new(count));
    secure.next(std::iter::repeat_n(Act::Together(barrier), count));
    let mut clients: Vec<Client> = (0..count).map(|_| gate.client()).collect();
    for client in &mut clients {
        client.send("POST", "/v1/chat/completions", "", chat("r", true).as_bytes());
        client.read_until("200 OK").expect("its head comes");
    }
    for mut client in clients {
        let answer = client.answer().expect("an answer comes");
        assert_served(&answer, true, "one of many");
        assert_eq!(answer.tokens(), TOKENS);
    }
    assert_eq!(secure.seen.connections.load(Ordering::Relaxed), 3);
}

#[test]
fn a_connection_that_takes_no_more_costs_no_request() {
    let (secure, gate) = start();
    for round in 1..=5 {
        secure.next([Act::Leave]);
        assert_served(&gate.stream(), true, "the last of its connection");
        assert_served(&gate.chat(), false, "the first of the next");
        assert!(requests(&secure) >= 2 * round);
    }
    assert!(secure.seen.connections.load(Ordering::Relaxed) >= 5);
    assert_eq!(gate.health("a/m")["consecutive_failures"], 0);
}

#[test]
fn a_stream_that_is_reset_before_its_head_is_a_transport_failure() {
    let (secure, gate) = start();
    secure.next([Act::Break]);
    let found = outcome(&gate.chat());
    assert_eq!(found, ("transport".to_owned(), "connection lost".to_owned()));
    assert_eq!(requests(&secure), 1);
}

#[test]
fn a_reset_before_the_head_falls_over() {
    let (secure, spare, gate) = start_with_spare();
    secure.next([Act::Break]);
    let answer = gate.stream();
    assert_served(&answer, true, "by the other target");
    assert_eq!(answer.header("x-tidegate-resolved"), Some("b/m"));
    assert_eq!((requests(&secure), hits(&spare)), (1, 1));
}

#[test]
fn a_reset_of_a_kept_connections_stream_is_tried_once_more_on_a_fresh_one() {
    let (secure, gate) = start();
    assert_served(&gate.chat(), false, "the connection is kept");
    secure.next([Act::Break]);
    assert_served(&gate.chat(), false, "within the same attempt");
    assert_eq!((requests(&secure), secure.seen.connections.load(Ordering::Relaxed)), (3, 2));
}

#[test]
fn a_reset_after_content_is_an_explicit_error_and_spares_the_other_streams() {
    let (secure, spare, gate) = start_with_spare();
    let barrier = Arc::new(Barrier::new(2));
    secure.next([Act::Together(Arc::clone(&barrier)), Act::BreakAfterThree]);
    let mut other = gate.client();
    other.send("POST", "/v1/chat/completions", "", chat("r", true).as_bytes());
    other.read_until("delta").expect("it has begun");
    let broken = gate.stream();
    assert_eq!((broken.status, broken.tokens(), broken.end), (200, 3, End::Whole));
    assert!(broken.has_error_event() && !broken.text().contains("[DONE]"), "{}", broken.text());
    assert_eq!(gate.health("a/m")["consecutive_failures"], 1);
    // Lets the other one go on.
    secure.next([Act::Together(barrier)]);
    assert_served(&gate.stream(), true, "on the same connection");
    assert_served(&other.answer().expect("an answer comes"), true, "the other one");
    assert_eq!((hits(&spare), secure.seen.connections.load(Ordering::Relaxed)), (0, 1));
}

#[test]
fn a_killed_provider_ends_its_streams_with_an_error_and_the_next_go_elsewhere() {
    let (secure, spare, gate) = start_with_spare();
    secure.next(std::iter::repeat_n(Act::Stall, 20));
    let mut clients: Vec<Client> = (0..20).map(|_| gate.client()).collect();
    for client in &mut clients {
        client.send("POST", "/v1/chat/completions", "", chat("r", true).as_bytes());
        client.read_until("delta").expect("it has begun");
    }
    secure.kill();
    for mut client in clients {
        let answer = client.answer().expect("an answer comes");
        assert_eq!((answer.tokens(), answer.end), (3, End::Whole), "{}", answer.text());
        assert!(answer.has_error_event() && !answer.text().contains("[DONE]"));
    }
    for _ in 0..10 {
        assert_served(&gate.chat(), false, "by the other target");
    }
    assert_eq!(hits(&spare), 10);
}

//! Limits on waiting, and clients that go away or stop reading.

use std::time::Duration;

use tidegate_fakes::fake::{Act, Step};
use tidegate_testkit::{
    gate::chat,
    time::{eventually, now, pause},
};

use crate::bed::{Setup, always, good, hits};
use crate::failover::assert_served;

/// Short limits: what takes minutes in earnest takes a second here.
const LIMITS: &str = "timeouts: {connect: 5s, first_content: 1s, answer: 1s, idle: 1s}";
/// Five times the limit: a busy machine may take its time.
const SLACK: Duration = Duration::from_secs(5);

/// One request meets the fault: it waits for the limit once and is served by the spare.
fn check(fault: Step, is_stream: bool) {
    let (bad, spare) = (always(fault.clone()), good());
    let gate = Setup { provider: LIMITS, ..Setup::of(&[&bad, &spare]) }.start();
    let began = now();
    let answer = if is_stream { gate.stream() } else { gate.chat() };
    let took = began.elapsed();
    assert_served(&answer, is_stream, &format!("{fault:?}"));
    assert_eq!(answer.header("x-tidegate-resolved"), Some("b/m"), "{fault:?}");
    assert!(took >= Duration::from_secs(1) && took < SLACK, "{took:?} of {fault:?}");
    eventually("the upstream is let go", || bad.counts().under_way == 0);
    let error = gate.health("a/m")["last_error"].clone();
    assert!(error.as_str().is_some_and(|it| it.starts_with("timeout")), "{fault:?}: {error}");
}

#[test]
fn a_target_that_takes_the_request_and_hangs_is_left_at_the_limit() {
    check(Step::of(Act::Hang), true);
    check(Step::of(Act::Hang), false);
}

#[test]
fn headers_and_then_silence_is_no_first_content() {
    check(Step::of(Act::Silence), true);
    check(Step::of(Act::Silence), false);
}

#[test]
fn comments_and_pings_are_no_first_content() {
    let gap = Duration::from_millis(50);
    check(Step { token_gap: gap, ..Step::of(Act::CommentsOnly) }, true);
    check(Step { token_gap: gap, ..Step::of(Act::PingsOnly) }, true);
}

#[test]
fn a_first_token_after_the_limit_comes_too_late() {
    check(Step { first_token: Duration::from_secs(20), ..Step::ok() }, true);
    check(Step::ok().with_latency(Duration::from_secs(20)), false);
}

#[test]
fn a_listener_that_accepts_and_never_answers_is_left_at_the_limit() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let spare = good();
    let mut setup = Setup { provider: LIMITS, ..Setup::of(&[&spare, &spare]) };
    setup.urls[0] = format!("http://{}", listener.local_addr().expect("it is bound"));
    let gate = setup.start();
    let began = now();
    assert_served(&gate.stream(), true, "accepts only");
    assert!(began.elapsed() < SLACK);
    drop(listener);
}

#[test]
fn comments_do_not_feed_the_idle_limit_after_content() {
    // Three tokens, then comments more often than the limit: silence all the same.
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    let token = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}\n\n";
    let mut pieces = vec![head.as_bytes().to_vec(), token.repeat(3).into_bytes()];
    pieces.extend(vec![b": keep-alive\n\n".to_vec(); 300]);
    let raw = crate::upstream::Raw::start(pieces);
    let spare = good();
    let mut setup = Setup { provider: LIMITS, ..Setup::of(&[&spare]) };
    setup.urls[0] = raw.url();
    let gate = setup.start();
    let began = now();
    let answer = gate.stream();
    assert!(began.elapsed() < SLACK, "{:?}", began.elapsed());
    assert!(answer.has_error_event(), "{}", answer.text());
    assert_eq!(answer.tokens(), 3);
}

#[test]
fn a_hanging_provider_is_waited_for_until_it_trips_and_not_after() {
    let (bad, spare) = (always(Step::of(Act::Hang)), good());
    let gate = Setup { provider: LIMITS, ..Setup::of(&[&bad, &spare]) }.start();
    for number in 0..3 {
        let began = now();
        assert_served(&gate.stream(), true, "before the trip");
        assert!(began.elapsed() < SLACK, "client {number} waited {:?}", began.elapsed());
    }
    for _ in 0..10 {
        assert_served(&gate.stream(), true, "after the trip");
    }
    assert_eq!(hits(&bad), 3, "nobody waited for it again");
}

#[test]
fn a_client_that_cancels_while_the_provider_is_slow_harms_nobody() {
    let slow = Step { first_token: Duration::from_secs(60), ..Step::ok() };
    for (step, is_stream) in [
        (Step::ok().with_latency(Duration::from_secs(60)), false),
        (slow, true),
        (Step::of(Act::Hang), true),
    ] {
        let fake = always(step);
        let gate = Setup::of(&[&fake]).start();
        for round in 1..=5 {
            let mut client = gate.client();
            client.send("POST", "/v1/chat/completions", "", chat("r", is_stream).as_bytes());
            eventually("the call arrives", || hits(&fake) == round);
            let began = now();
            drop(client);
            eventually("the upstream is cancelled", || fake.counts().under_way == 0);
            assert!(began.elapsed() < SLACK, "{:?}", began.elapsed());
        }
        let health = gate.health("a/m");
        assert_eq!(
            (&health["healthy"], &health["consecutive_failures"]),
            (&true.into(), &0.into())
        );
    }
}

#[test]
fn a_client_that_leaves_in_mid_stream_cancels_the_upstream_and_charges_nobody() {
    let fake = always(Step::ok().with_tokens(20_000, Duration::from_millis(5)));
    let gate = Setup::of(&[&fake]).start();
    for _ in 0..5 {
        let mut client = gate.client();
        client.send("POST", "/v1/chat/completions", "", chat("r", true).as_bytes());
        client.read_until("\"content\"").expect("tokens come");
        drop(client);
        eventually("the upstream is cancelled", || fake.counts().under_way == 0);
    }
    eventually("its connections are closed", || fake.counts().connections == 0);
    assert_eq!(gate.health("a/m")["consecutive_failures"], 0);
    assert_eq!(gate.health("a/m")["healthy"], true);
}

#[test]
fn s52_a_client_that_never_reads_holds_the_upstream_back_in_bounded_memory() {
    // Two gibibytes in all, if anybody took them.
    let huge = Step { size: Some(100 << 20), ..Step::after(Act::HugeEvent, 1) };
    let fake = always(huge.with_tokens(2, Duration::ZERO));
    let gate = Setup::of(&[&fake]).start();
    let mut clients: Vec<_> = (0..20).map(|_| gate.client()).collect();
    let before = tidegate_testkit::machine::resident_kib();
    for client in &mut clients {
        client.send("POST", "/v1/chat/completions", "", chat("r", true).as_bytes());
    }
    eventually("all calls arrive", || hits(&fake) == 20);
    pause(Duration::from_secs(1));
    assert_eq!(fake.counts().under_way, 20, "the upstream is held back");
    let grown = tidegate_testkit::machine::resident_kib().saturating_sub(before);
    assert!(grown < 200 * 1024, "{grown} KiB more, with other tests' share in it");
    drop(clients);
    eventually("the upstream is cancelled", || fake.counts().under_way == 0);
    assert_eq!(gate.health("a/m")["healthy"], true, "it is the client's doing");
}

#[test]
fn s52_a_client_that_never_reads_is_let_go_after_a_minute() {
    if !tidegate_testkit::machine::is_long() {
        return; // The limit itself is tested with a paused clock, beside the code.
    }
    let huge = Step { size: Some(100 << 20), ..Step::after(Act::HugeEvent, 1) };
    let fake = always(huge.with_tokens(2, Duration::ZERO));
    let gate = Setup::of(&[&fake]).start();
    let mut client = gate.client();
    client.send("POST", "/v1/chat/completions", "", chat("r", true).as_bytes());
    eventually("the call arrives", || hits(&fake) == 1);
    pause(Duration::from_secs(50));
    assert_eq!(fake.counts().under_way, 1);
    eventually("the upstream is cancelled", || fake.counts().under_way == 0);
    assert_eq!(gate.health("a/m")["healthy"], true, "it is the client's doing");
}

#[test]
fn odd_timeouts_in_headers_are_no_trouble() {
    let fake = good();
    let gate = Setup::of(&[&fake]).start();
    for text in ["inf", "nan", "1e400", "-1", "0", "", "x", "99999999999999999999"] {
        let headers = format!("x-stainless-timeout: {text}\r\n");
        let answer = gate.post_with("/v1/chat/completions", &headers, &chat("r", false));
        assert_eq!(answer.status, 200, "{text}: {}", answer.text());
    }
}

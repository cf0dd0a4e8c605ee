//! Routes that hold a stream back beyond its first content: what goes wrong meanwhile is a failover
//! that nobody sees, and nothing is held for longer than the route says.

use std::time::Duration;

use tidegate_fakes::fake::{Act, Step};
use tidegate_testkit::{
    gate::{Gate, chat},
    http::End,
    time::now,
};

use crate::bed::{Setup, always, good, hits};
use crate::failover::assert_served;

const SHORT: &str = "timeouts: {idle: 500ms}";
/// What a client may wait for something that is due at once, on a busy machine too.
const SOON: Duration = Duration::from_secs(5);

/// A stream that goes wrong after three tokens, of a provider that is asked before a good one.
fn check_failover(step: Step, hold: &str) {
    let (bad, spare) = (always(step.clone()), good());
    let gate = Setup { provider: SHORT, route: hold, ..Setup::of(&[&bad, &spare]) }.start();
    let answer = gate.stream();
    assert_served(&answer, true, &format!("{step:?} {hold}"));
    assert_eq!(answer.header("x-tidegate-resolved"), Some("b/m"), "{step:?}");
    let alone = Setup::of(&[&spare]).start().stream();
    assert_eq!(answer.tokens(), alone.tokens(), "nothing of the first is spliced in: {step:?}");
    assert_eq!(gate.health("a/m")["consecutive_failures"], 1, "{step:?}");
}

#[test]
fn a_stream_that_breaks_while_it_is_held_is_a_failover() {
    for act in [Act::Cut, Act::Truncate, Act::ErrorEvent, Act::Malformed, Act::Stall] {
        check_failover(Step::after(act, 3).with_tokens(60, Duration::ZERO), "hold: {tokens: 5}");
    }
    check_failover(
        Step::after(Act::Cut, 3).with_tokens(60, Duration::from_millis(10)),
        "hold: {time: 20s}",
    );
}

#[test]
fn a_stream_that_breaks_when_enough_has_come_is_not_tried_elsewhere() {
    for hold in ["hold: {tokens: 3}", "hold: {tokens: 3, time: 20s}", "hold: {}"] {
        let bad = always(Step::after(Act::Cut, 3).with_tokens(60, Duration::ZERO));
        let spare = good();
        let gate = Setup { route: hold, ..Setup::of(&[&bad, &spare]) }.start();
        let answer = gate.stream();
        assert_eq!((answer.tokens(), hits(&spare)), (3, 0), "{hold}: {}", answer.text());
        assert!(answer.has_error_event() && answer.end == End::Whole, "{hold}");
    }
}

#[test]
fn a_stream_shorter_than_the_hold_is_released_whole_at_its_end() {
    let fake = always(Step::ok().with_tokens(4, Duration::ZERO));
    let hold = "hold: {tokens: 1000, time: 1h}";
    let gate = Setup { route: hold, ..Setup::of(&[&fake]) }.start();
    let began = now();
    let answer = gate.stream();
    assert!(answer.is_whole_stream(), "{}", answer.text());
    assert_eq!(answer.tokens(), 4);
    assert!(began.elapsed() < SOON);
    let expected = Setup::of(&[&fake]).start().stream();
    assert_eq!(answer.events().len(), expected.events().len());
    let metrics = gate.admin("/metrics").text();
    assert!(metrics.contains("tidegate_first_token_seconds_count{target=\"a/m\"} 1"), "{metrics}");
}

/// How long the first bytes of a stream took to come.
fn first_bytes(gate: &Gate) -> Duration {
    let began = now();
    let mut client = gate.client();
    client.send("POST", "/v1/chat/completions", "", chat("r", true).as_bytes());
    client.read_until("\"content\"").expect("tokens come");
    began.elapsed()
}

#[test]
fn a_hold_ends_with_its_time_whatever_has_come() {
    // A minute of tokens in all.
    let fake = always(Step::ok().with_tokens(1200, Duration::from_millis(50)));
    for hold in ["hold: {time: 400ms}", "hold: {tokens: 1000, time: 400ms}"] {
        let took = first_bytes(&Setup { route: hold, ..Setup::of(&[&fake]) }.start());
        assert!(took >= Duration::from_millis(400) && took < SOON, "{hold}: {took:?}");
    }
    let silent = always(Step::after(Act::Stall, 2).with_tokens(9, Duration::ZERO));
    let hold = "hold: {tokens: 5, time: 400ms}";
    let gate =
        Setup { route: hold, provider: "timeouts: {idle: 20s}", ..Setup::of(&[&silent]) }.start();
    let took = first_bytes(&gate);
    assert!(took >= Duration::from_millis(400) && took < SOON, "silence: {took:?}");
}

#[test]
fn a_hold_ends_with_its_tokens_before_its_time() {
    let fake = always(Step::ok().with_tokens(1200, Duration::from_millis(50)));
    let hold = "hold: {tokens: 10, time: 1h}";
    let took = first_bytes(&Setup { route: hold, ..Setup::of(&[&fake]) }.start());
    assert!(took >= Duration::from_millis(450) && took < SOON, "{took:?}");
}

#[test]
fn a_hold_never_holds_more_than_the_limit() {
    let fake = always(Step::ok().with_tokens(1200, Duration::from_millis(20)));
    let setup = Setup {
        route: "hold: {tokens: 100000}",
        top: "limits: {hold: 4KiB}",
        ..Setup::of(&[&fake])
    };
    let gate = setup.start();
    assert!(first_bytes(&gate) < SOON);
    let metrics = gate.admin("/metrics").text();
    assert!(metrics.contains("tidegate_hold_overflow_total{target=\"a/m\"} 1"), "{metrics}");
    assert!(metrics.contains("tidegate_first_token_seconds_count{target=\"a/m\"} 1"), "{metrics}");
}

#[test]
fn streams_that_break_while_held_open_the_breaker_as_failures_before_content() {
    // Told at their first content, each would have ended the streak of the one before.
    let bad = always(Step::after(Act::Cut, 3).with_tokens(60, Duration::ZERO));
    let spare = good();
    let gate = Setup { route: "hold: {tokens: 5}", ..Setup::of(&[&bad, &spare]) }.start();
    for _ in 0..5 {
        assert_served(&gate.stream(), true, "while it breaks");
    }
    assert_eq!(hits(&bad), 3);
    assert_eq!(gate.health("a/m")["state"], "open");
}

#[test]
fn a_route_without_hold_and_direct_requests_are_released_at_their_first_content() {
    let fake = always(Step::ok().with_tokens(1200, Duration::from_millis(50)));
    let gate = Setup { route: "hold: {tokens: 1000}", ..Setup::of(&[&fake]) }.start();
    let began = now();
    let mut client = gate.client();
    client.send("POST", "/v1/chat/completions", "", chat("a/m", true).as_bytes());
    client.read_until("\"content\"").expect("tokens come");
    assert!(began.elapsed() < SOON);
}

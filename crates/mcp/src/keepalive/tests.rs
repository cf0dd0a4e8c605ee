//! The schedule of one connection, moment by moment.

use super::*;
use tidegate_core::draw::mix;

/// The draw in the middle: no jitter.
const EVEN: u64 = 1 << 63;
const EVERY: u64 = 300_000;
const READY: LinkState = LinkState::Ready;

fn keepalive() -> Keepalive {
    Keepalive::new(KeepaliveSettings::default(), Now(0), EVEN)
}

/// Lets the next one fall due and fail; gives the moment and how it ended.
fn fail(keepalive: &mut Keepalive, reason: Reason) -> (Now, Ended) {
    let now = keepalive.next_wakeup().expect("one falls due");
    assert!(matches!(keepalive.tick(now, EVEN, READY, false), Due::Send(_)));
    (now, keepalive.ended(now, EVEN, Err(reason)))
}

#[test]
fn one_is_due_after_an_idle_interval_and_has_a_deadline() {
    let mut keepalive = keepalive();
    assert_eq!(keepalive.tick(Now(EVERY - 1), EVEN, READY, false), Due::Nothing);
    assert_eq!(keepalive.tick(Now(EVERY), EVEN, READY, false), Due::Send(Now(EVERY + 5000)));
    assert_eq!(keepalive.next_wakeup(), None, "one at a time");
    assert_eq!(keepalive.ended(Now(EVERY + 7), EVEN, Ok(())), Ended::Success(Millis(7)));
    assert_eq!(keepalive.next_wakeup(), Some(Now(2 * EVERY + 7)));
}

#[test]
fn intervals_are_jittered_evenly_around_the_set_one() {
    let mut draw = 1;
    let spans: Vec<u64> = (0..1000)
        .map(|_| {
            draw = mix(draw);
            let keepalive = Keepalive::new(KeepaliveSettings::default(), Now(0), draw);
            keepalive.next_wakeup().expect("it is on").0
        })
        .collect();
    assert!(spans.iter().all(|span| (240_000..=360_000).contains(span)));
    assert!(spans.iter().any(|span| *span < 250_000) && spans.iter().any(|it| *it > 350_000));
}

#[test]
fn real_traffic_postpones_it() {
    let mut keepalive = keepalive();
    keepalive.sent(Now(100_000), EVEN);
    assert_eq!(keepalive.tick(Now(EVERY), EVEN, READY, false), Due::Nothing);
    assert_eq!(keepalive.next_wakeup(), Some(Now(100_000 + EVERY)));
}

#[test]
fn three_failures_in_a_row_disable_it_and_charge_once() {
    let mut keepalive = keepalive();
    assert_eq!(fail(&mut keepalive, Reason::Timeout).1, Ended::Failure(Reason::Timeout));
    assert_eq!(fail(&mut keepalive, Reason::Error).1, Ended::Failure(Reason::Error));
    let (now, ended) = fail(&mut keepalive, Reason::Timeout);
    assert_eq!(ended, Ended::Disabled { reason: Reason::Timeout, is_charged: true });
    assert!(keepalive.is_disabled());
    assert_eq!(keepalive.next_wakeup(), Some(now.after(Millis::minutes(30))));
    keepalive.heard(now, EVEN);
    assert!(keepalive.is_disabled(), "traffic does not enable it");
}

#[test]
fn an_answer_to_traffic_ends_a_row_of_failures() {
    let mut keepalive = keepalive();
    for _ in 0..10 {
        let (now, ended) = fail(&mut keepalive, Reason::Timeout);
        assert_eq!(ended, Ended::Failure(Reason::Timeout));
        keepalive.heard(now, EVEN);
    }
}

#[test]
fn one_trial_after_the_window_enables_it_or_disables_it_again() {
    let mut keepalive = keepalive();
    for _ in 0..3 {
        fail(&mut keepalive, Reason::Timeout);
    }
    let (now, ended) = fail(&mut keepalive, Reason::Error);
    assert_eq!(ended, Ended::Disabled { reason: Reason::Error, is_charged: true });
    let trial = now.after(Millis::minutes(30));
    assert!(matches!(keepalive.tick(trial, EVEN, READY, false), Due::Send(_)));
    assert_eq!(keepalive.ended(trial, EVEN, Ok(())), Ended::Success(Millis(0)));
    assert_eq!(fail(&mut keepalive, Reason::Error).1, Ended::Failure(Reason::Error));
}

#[test]
fn a_trial_that_is_put_off_by_an_open_breaker_stays_a_trial() {
    let mut keepalive = keepalive();
    for _ in 0..3 {
        fail(&mut keepalive, Reason::Timeout);
    }
    let due = keepalive.next_wakeup().expect("a trial");
    assert_eq!(keepalive.tick(due, EVEN, LinkState::Down, true), Due::Refused);
    let due = keepalive.next_wakeup().expect("a trial");
    keepalive.tick(due, EVEN, LinkState::Down, false);
    let ended = keepalive.ended(due, EVEN, Err(Reason::Lost));
    assert_eq!(ended, Ended::Disabled { reason: Reason::Lost, is_charged: false });
}

#[test]
fn a_failed_reconnect_counts_and_its_permit_has_charged_it() {
    let mut keepalive = keepalive();
    let mut ends = Vec::new();
    for _ in 0..3 {
        let now = keepalive.next_wakeup().expect("one falls due");
        assert_eq!(keepalive.tick(now, EVEN, LinkState::Down, false), Due::Reconnect);
        ends.push(keepalive.ended(now, EVEN, Err(Reason::Lost)));
    }
    assert_eq!(ends[1], Ended::Failure(Reason::Lost));
    assert_eq!(ends[2], Ended::Disabled { reason: Reason::Lost, is_charged: false });
}

#[test]
fn an_open_breaker_counts_towards_nothing() {
    let mut keepalive = keepalive();
    for _ in 0..10 {
        let now = keepalive.next_wakeup().expect("one falls due");
        assert_eq!(keepalive.tick(now, EVEN, LinkState::Down, true), Due::Refused);
    }
    assert_eq!(fail(&mut keepalive, Reason::Timeout).1, Ended::Failure(Reason::Timeout));
}

#[test]
fn nothing_is_sent_while_the_connection_is_being_made() {
    let mut keepalive = keepalive();
    assert_eq!(keepalive.tick(Now(EVERY), EVEN, LinkState::Connecting, false), Due::Nothing);
    assert_eq!(keepalive.next_wakeup(), Some(Now(2 * EVERY)));
}

#[test]
fn stopping_ends_it_at_once_even_with_one_under_way() {
    let mut keepalive = keepalive();
    keepalive.tick(Now(EVERY), EVEN, READY, false);
    keepalive.stop();
    assert_eq!(keepalive.ended(Now(EVERY), EVEN, Err(Reason::Timeout)), Ended::Nothing);
    assert_eq!(keepalive.next_wakeup(), None);
    keepalive.heard(Now(EVERY), EVEN);
    assert_eq!(keepalive.next_wakeup(), None);
}

#[test]
fn method_none_never_sends() {
    let settings = KeepaliveSettings { method: Method::None, ..KeepaliveSettings::default() };
    let mut keepalive = Keepalive::new(settings, Now(0), EVEN);
    assert_eq!(keepalive.next_wakeup(), None);
    assert_eq!(keepalive.tick(Now(u64::MAX), EVEN, READY, false), Due::Nothing);
}

#[test]
fn after_the_window_a_connection_is_made_again_and_then_one_trial_decides() {
    let mut keepalive = keepalive();
    (0..3).for_each(|_| _ = fail(&mut keepalive, Reason::Timeout));
    let now = keepalive.next_wakeup().expect("a trial");
    assert!(!keepalive.is_counted());
    assert_eq!(keepalive.tick(now, EVEN, LinkState::Down, false), Due::Reconnect);
    assert_eq!(keepalive.ended(now, EVEN, Ok(())), Ended::Nothing);
    keepalive.heard(now, EVEN);
    assert!(keepalive.is_disabled(), "a new connection proves nothing about its keepalive");
    assert!(keepalive.is_counted(), "connection and trial are one attempt");
    let trial = keepalive.next_wakeup().expect("a trial");
    assert!(matches!(keepalive.tick(trial, EVEN, READY, false), Due::Send(_)));
    assert!(!keepalive.is_counted());
    let ended = keepalive.ended(trial, EVEN, Err(Reason::Timeout));
    assert_eq!(ended, Ended::Disabled { reason: Reason::Timeout, is_charged: true });
}

#[test]
fn every_answer_but_one_about_the_session_is_a_sign_of_life() {
    assert_eq!(sign_of(Ok(None)), Sign::Alive);
    for code in [-32601, -32603, -32000, -32602, 1] {
        assert_eq!(sign_of(Ok(Some((code, "no")))), Sign::Alive, "{code}");
    }
    for error in [(-32001, "no"), (-32000, "unknown session"), (-32600, "Session not found")] {
        assert_eq!(sign_of(Ok(Some(error))), Sign::Lost, "{error:?}");
    }
    assert_eq!(sign_of(Err(&Failure::session_lost())), Sign::Lost);
    let broken = Failure::of(Cause::ConnectionBroken, OutcomeKind::Transport);
    assert_eq!(sign_of(Err(&broken)), Sign::Lost);
    let silent = Failure::of(Cause::TimedOut(Millis(5000)), OutcomeKind::Timeout);
    assert_eq!(sign_of(Err(&silent)), Sign::Failed(Reason::Timeout));
    for (status, outcome) in [(500, OutcomeKind::ServerError), (408, OutcomeKind::Timeout)] {
        let refused = Failure::of(Cause::Status(status), outcome);
        assert_eq!(sign_of(Err(&refused)), Sign::Failed(Reason::Error), "{status}");
        let spoken = Failure { is_spoken: true, ..refused };
        assert_eq!(sign_of(Err(&spoken)), Sign::Alive, "{status} with a message");
    }
    let lost = Failure { is_spoken: true, ..Failure::session_lost() };
    assert_eq!(sign_of(Err(&lost)), Sign::Lost);
}

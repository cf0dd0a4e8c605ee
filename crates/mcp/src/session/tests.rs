//! Who takes part in a session, who waits for whom, and what the client is told.

use super::*;

const OPEN: Standing = Standing::Unhealthy(Cause::CircuitOpen, Some(Millis(1000)));
const KNOWN: Known = Known { contact: Contact::Reached, has_catalogue: true };
const UNKNOWN: Known = Known { contact: Contact::Untried, has_catalogue: false };

const fn arrival(standing: Standing) -> Arrival {
    Arrival { standing, is_own_child: false }
}

fn open(visibility: Visibility, standings: &[Standing]) -> Session {
    let arrivals: Vec<Arrival> = standings.iter().map(|it| arrival(*it)).collect();
    Session::open(visibility, Waits::default(), &arrivals)
}

fn entry(session: &Session, now: u64, server: usize) -> Entry {
    session.entry(Now(now), Now(now), server, KNOWN)
}

/// A session of one server that has joined and been shown.
fn joined(visibility: Visibility) -> Session {
    let mut session = open(visibility, &[Standing::Healthy]);
    session.connected(Now(0), 0);
    session.look(Now(0));
    session.shown();
    session
}

#[test]
fn an_unhealthy_server_is_excluded_for_the_life_of_the_session() {
    let mut session = open(Visibility::Session, &[OPEN, Standing::Healthy]);
    assert_eq!(session.connecting().collect::<Vec<_>>(), [1]);
    assert_eq!(session.follow(Now(9), 0, Standing::Healthy), News::Nothing);
    assert_eq!(session.connected(Now(9), 0), News::Nothing);
    assert!(!session.sees(0));
    assert_eq!(entry(&session, 9, 0), Entry::Refused(Cause::ExcludedAtOpen));
}

#[test]
fn a_server_that_cannot_be_connected_to_at_open_is_excluded() {
    let mut session = open(Visibility::Session, &[Standing::Healthy]);
    session.connect_failed(Now(1), 0, Cause::ConnectionRefused);
    assert_eq!(session.seat(0), Seat::Excluded(Cause::ConnectionRefused));
    assert_eq!(entry(&session, 0, 0), Entry::Refused(Cause::ExcludedAtOpen));
}

#[test]
fn a_child_of_the_sessions_own_is_shown_while_it_starts_and_missed_if_it_does_not() {
    let arrival = Arrival { standing: Standing::Healthy, is_own_child: true };
    let mut session = Session::open(Visibility::Session, Waits::default(), &[arrival]);
    assert!(session.sees(0), "its calls wait for it");
    session.look(Now(0));
    session.shown();
    assert_eq!(session.connect_failed(Now(5), 0, Cause::CannotStart), News::Changed);
    assert!(!session.sees(0));
}

#[test]
fn a_server_that_fails_later_stays_listed_and_its_calls_go_to_the_core() {
    let mut session = joined(Visibility::Session);
    session.connect_failed(Now(1), 0, Cause::ConnectionRefused);
    assert_eq!(session.follow(Now(9), 0, OPEN), News::Nothing);
    assert!(session.sees(0));
    assert_eq!(entry(&session, 9, 0), Entry::Go);
}

#[test]
fn a_server_whose_trial_is_under_way_joins_when_it_has_succeeded() {
    let mut session = open(Visibility::Session, &[Standing::SlotTaken]);
    session.look(Now(0));
    session.shown();
    assert_eq!(session.seat(0), Seat::Late);
    assert_eq!(entry(&session, 0, 0), Entry::Refused(Cause::CircuitOpen));
    assert_eq!(session.follow(Now(5), 0, Standing::SlotTaken), News::Nothing);
    assert_eq!(session.follow(Now(5), 0, Standing::Healthy), News::Connect);
    assert_eq!(session.connected(Now(6), 0), News::Changed);
    assert!(session.sees(0));
}

#[test]
fn a_server_whose_trial_fails_is_excluded() {
    let mut session = open(Visibility::Session, &[Standing::SlotTaken]);
    session.follow(Now(5), 0, OPEN);
    assert_eq!(session.follow(Now(9), 0, Standing::Healthy), News::Nothing);
    assert_eq!(entry(&session, 9, 0), Entry::Refused(Cause::ExcludedAtOpen));
}

#[test]
fn who_joins_before_the_first_answer_needs_no_list_changed() {
    let mut session = open(Visibility::Session, &[Standing::Healthy, Standing::Healthy]);
    session.look(Now(0));
    assert_eq!(session.connected(Now(10), 0), News::Nothing);
    session.shown();
    assert_eq!(session.connected(Now(20), 1), News::Changed);
    assert_eq!(session.list_changed_at(), Some(Now(120)));
}

#[test]
fn changes_that_come_together_are_told_once() {
    let mut session = open(Visibility::Session, &[Standing::Healthy, Standing::Healthy]);
    session.shown();
    session.connected(Now(0), 0);
    session.connected(Now(60), 1);
    assert!(!session.tell_list_changed(Now(99)));
    assert!(session.tell_list_changed(Now(100)));
    assert!(!session.tell_list_changed(Now(200)));
}

#[test]
fn the_first_look_waits_half_a_second_for_a_known_server() {
    let mut session = open(Visibility::Session, &[Standing::Healthy]);
    session.look(Now(100));
    assert_eq!(session.may_wait(Now(100), 0, KNOWN), Some(Now(600)));
    session.look(Now(300));
    assert_eq!(session.may_wait(Now(300), 0, KNOWN), Some(Now(600)), "one wait per session");
    assert_eq!(session.may_wait(Now(600), 0, KNOWN), None);
    session.shown();
    assert_eq!(session.may_wait(Now(400), 0, KNOWN), None);
}

#[test]
fn an_unknown_server_is_waited_for_until_its_first_attempt_has_ended() {
    let mut session = open(Visibility::Session, &[Standing::Healthy]);
    session.look(Now(0));
    assert_eq!(session.may_wait(Now(0), 0, UNKNOWN), Some(Now(5000)));
    let reached = Known { contact: Contact::Reached, ..UNKNOWN };
    assert_eq!(session.may_wait(Now(0), 0, reached), None);
}

#[test]
fn after_a_failed_attempt_nobody_waits() {
    let mut session = open(Visibility::Session, &[Standing::Healthy]);
    session.look(Now(0));
    for has_catalogue in [false, true] {
        let known = Known { contact: Contact::Failed, has_catalogue };
        assert_eq!(session.may_wait(Now(0), 0, known), None);
        let entry = session.entry(Now(0), Now(0), 0, known);
        assert_eq!(entry, Entry::Refused(Cause::TimedOut(Millis(500))));
    }
}

#[test]
fn a_call_waits_for_a_child_of_its_own_up_to_the_call_timeout() {
    let own = Arrival { standing: Standing::Healthy, is_own_child: true };
    let mut session = Session::open(Visibility::Session, Waits::default(), &[own]);
    session.look(Now(0));
    session.shown();
    let at = |now| session.entry(Now(now), Now(1000), 0, KNOWN);
    assert_eq!(at(1000), Entry::Wait(Now(61_000)));
    assert_eq!(at(61_000), Entry::Refused(Cause::TimedOut(Millis::seconds(60))));
}

#[test]
fn live_sessions_follow_health_both_ways() {
    let mut session = joined(Visibility::Live);
    assert_eq!(session.follow(Now(1), 0, OPEN), News::Changed);
    assert!(!session.sees(0));
    assert_eq!(session.follow(Now(2), 0, OPEN), News::Nothing);
    assert_eq!(session.follow(Now(3), 0, Standing::HalfOpenFree), News::Changed);
    assert!(session.sees(0));
}

#[test]
fn a_live_session_takes_in_a_server_that_was_unhealthy_at_open() {
    let mut session = open(Visibility::Live, &[OPEN]);
    session.shown();
    assert_eq!(entry(&session, 0, 0), Entry::Refused(Cause::CircuitOpen));
    assert_eq!(session.follow(Now(1), 0, Standing::Healthy), News::Connect);
    assert_eq!(session.connected(Now(2), 0), News::Changed);
    assert!(session.sees(0));
}

#[test]
fn a_reload_keeps_seats_and_tells_of_servers_that_left() {
    let mut session = open(Visibility::Session, &[Standing::Healthy, OPEN]);
    session.connected(Now(0), 0);
    session.shown();
    let new = Carried::Added(arrival(Standing::Healthy));
    let all = [Carried::Kept(1), new, Carried::Kept(0)];
    assert_eq!(session.reload(Now(1), &all), News::Nothing);
    assert_eq!(session.seat(0), Seat::Excluded(Cause::CircuitOpen));
    assert_eq!((session.seat(1), session.seat(2)), (Seat::Connecting, Seat::Joined));
    assert_eq!(session.connected(Now(2), 1), News::Changed);
    session.tell_list_changed(Now(1000));
    assert_eq!(session.reload(Now(2000), &[Carried::Kept(1)]), News::Changed);
    assert_eq!(entry(&session, 2000, 1), Entry::Refused(Cause::Closing));
}

#[test]
fn a_closed_session_sees_nothing_and_calls_nobody() {
    let mut session = joined(Visibility::Session);
    session.close();
    assert!(!session.sees(0));
    assert_eq!(entry(&session, 0, 0), Entry::Refused(Cause::Closing));
}

#[test]
fn only_those_who_see_a_server_hear_that_its_tools_have_changed() {
    let mut session = joined(Visibility::Session);
    assert_eq!(session.offers_changed(Now(5), 0), News::Changed);
    let mut without = open(Visibility::Session, &[OPEN]);
    without.shown();
    assert_eq!(without.offers_changed(Now(5), 0), News::Nothing);
}

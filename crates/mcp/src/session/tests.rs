//! Who takes part in a session, who waits for whom, and what the client is told.

use super::*;

const OPEN: Standing = Standing::Unhealthy(Cause::CircuitOpen, Some(Millis(1000)));
const KNOWN: Known = Known { contact: Contact::Reached, has_catalogue: true };
const UNKNOWN: Known = Known { contact: Contact::Untried, has_catalogue: false };

const fn arrival(standing: Standing) -> Arrival {
    Arrival { standing, connect_within: Millis::seconds(5), is_own_child: false }
}

fn open(visibility: Visibility, standings: &[Standing]) -> Session {
    let arrivals: Vec<Arrival> = standings.iter().map(|it| arrival(*it)).collect();
    Session::open(visibility, Waits::default(), &arrivals)
}

fn entry(session: &Session, now: u64, server: usize) -> Entry {
    session.entry(Now(now), Caller { began: Now(now), has_waited: false }, server)
}

/// The same of a call that came at `began` and was told to wait.
fn waited(session: &Session, now: u64, began: u64) -> Entry {
    session.entry(Now(now), Caller { began: Now(began), has_waited: true }, 0)
}

/// A known server is still connecting when the first list has waited for it.
fn slow(visibility: Visibility) -> Session {
    let mut session = open(visibility, &[Standing::Healthy]);
    session.look(Now(0));
    session.shown(|_| true);
    session
}

/// A session of one server that has joined and been shown.
fn joined(visibility: Visibility) -> Session {
    let mut session = open(visibility, &[Standing::Healthy]);
    session.connected(Now(0), 0);
    session.look(Now(0));
    session.shown(|_| false);
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
    let own = Arrival { is_own_child: true, ..arrival(Standing::Healthy) };
    let mut session = Session::open(Visibility::Session, Waits::default(), &[own]);
    assert!(session.sees(0), "its calls wait for it");
    session.look(Now(0));
    session.shown(|_| false);
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
    session.shown(|_| false);
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
    session.shown(|_| false);
    assert_eq!(session.connected(Now(20), 1), News::Changed);
    assert_eq!(session.list_changed_at(), Some(Now(120)));
}

#[test]
fn changes_that_come_together_are_told_once() {
    let mut session = open(Visibility::Session, &[Standing::Healthy, Standing::Healthy]);
    session.shown(|_| false);
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
    session.shown(|_| false);
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
fn after_a_failed_attempt_nobody_waits_for_a_server_whose_tools_are_unknown() {
    let mut session = open(Visibility::Session, &[Standing::Healthy]);
    session.look(Now(0));
    let failed = Known { contact: Contact::Failed, has_catalogue: false };
    assert_eq!(session.may_wait(Now(0), 0, failed), None);
    let known = Known { has_catalogue: true, ..failed };
    assert_eq!(session.may_wait(Now(0), 0, known), Some(Now(500)), "it may be there again");
}

#[test]
fn a_known_server_that_is_slow_to_connect_is_listed_and_its_calls_wait_for_it() {
    let mut session = slow(Visibility::Session);
    assert_eq!((session.seat(0), session.sees(0)), (Seat::Slow, true));
    assert_eq!(entry(&session, 600, 0), Entry::Wait(Now(5600)));
    assert_eq!(waited(&session, 5600, 600), Entry::Refused(Cause::TimedOut(Millis::seconds(5))));
    assert_eq!(session.connected(Now(800), 0), News::Nothing, "it was listed all the time");
    assert_eq!(waited(&session, 800, 600), Entry::Go);
    assert!(session.sees(0));
}

#[test]
fn a_slow_server_that_fails_in_the_end_costs_the_calls_that_waited_and_stays_listed() {
    let mut session = slow(Visibility::Session);
    assert_eq!(session.connect_failed(Now(900), 0, Cause::ConnectionBroken), News::Nothing);
    assert_eq!(waited(&session, 900, 600), Entry::Refused(Cause::ConnectionBroken));
    assert!(session.sees(0), "as after a crash in mid-session");
    assert_eq!(entry(&session, 900, 0), Entry::Go, "a later call may succeed");
}

#[test]
fn a_server_that_fails_within_the_wait_is_excluded() {
    let mut session = open(Visibility::Session, &[Standing::Healthy]);
    session.look(Now(0));
    session.connect_failed(Now(400), 0, Cause::ConnectionRefused);
    session.shown(|_| true);
    assert!(!session.sees(0));
    assert_eq!(waited(&session, 400, 0), Entry::Refused(Cause::ExcludedAtOpen));
}

#[test]
fn an_unknown_server_that_is_slow_joins_with_list_changed() {
    let mut session = open(Visibility::Session, &[Standing::Healthy]);
    session.look(Now(0));
    session.shown(|_| false);
    assert_eq!((session.seat(0), session.sees(0)), (Seat::Connecting, false));
    assert_eq!(session.connected(Now(9000), 0), News::Changed);
}

#[test]
fn every_list_of_a_client_without_a_session_waits_anew() {
    let mut session = open(Visibility::Request, &[OPEN]);
    session.look(Now(0));
    session.shown(|_| true);
    assert_eq!(session.follow(Now(9000), 0, Standing::Healthy), News::Connect);
    session.look(Now(9000));
    assert_eq!(session.may_wait(Now(9000), 0, KNOWN), Some(Now(9500)));
    session.shown(|_| true);
    assert_eq!(session.seat(0), Seat::Slow);
    assert_eq!(session.may_wait(Now(9600), 0, KNOWN), None, "it is known to be slow");
}

#[test]
fn a_call_waits_for_a_child_of_its_own_up_to_the_call_timeout() {
    let own = Arrival { is_own_child: true, ..arrival(Standing::Healthy) };
    let mut session = Session::open(Visibility::Session, Waits::default(), &[own]);
    session.look(Now(0));
    session.shown(|_| false);
    let at = |now| waited(&session, now, 1000);
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
    session.shown(|_| false);
    assert_eq!(entry(&session, 0, 0), Entry::Refused(Cause::CircuitOpen));
    assert_eq!(session.follow(Now(1), 0, Standing::Healthy), News::Connect);
    assert_eq!(session.connected(Now(2), 0), News::Changed);
    assert!(session.sees(0));
}

#[test]
fn a_reload_keeps_seats_and_tells_of_servers_that_left() {
    let mut session = open(Visibility::Session, &[Standing::Healthy, OPEN]);
    session.connected(Now(0), 0);
    session.shown(|_| false);
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
    without.shown(|_| false);
    assert_eq!(without.offers_changed(Now(5), 0), News::Nothing);
}

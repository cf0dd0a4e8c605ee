//! The door to the core: what opens it, what does not, what each ending leaves behind. The small
//! core built here serves the tests of the other machines too.

use super::*;
use tidegate_core::settings::{Abilities, BackendSettings, HealthSettings, Settings};

/// The group of all servers of [`core_of`].
pub(crate) const GROUP: &str = "all";
/// How a keepalive that gave up has ended.
pub(crate) const TIMED_OUT: Outcome = Outcome::unanswered(OutcomeKind::Timeout);

/// A core of these servers: two failures open a breaker for 30 s, one trial closes it.
pub(crate) fn core_of(servers: &[&str]) -> Core {
    let health =
        HealthSettings { failure_threshold: 2, recovery_threshold: 1, ..HealthSettings::default() };
    let backends = servers.iter().map(|server| BackendSettings {
        id: backend_id(server),
        identity: (*server).to_owned(),
        endpoint: None,
        keys: Vec::new(),
        health: health.clone(),
        first_content_within: Millis::seconds(65),
        answer_within: Millis::seconds(65),
        abilities: Abilities::default(),
        fleet_names: Vec::new(),
    });
    let alone = servers.iter().enumerate().map(|(index, server)| route(server, &[index]));
    let members: Vec<usize> = (0..servers.len()).collect();
    let routes = alone.chain([route(GROUP, &members)]);
    let settings =
        Settings { backends: backends.collect(), routes: routes.collect(), ..Settings::default() };
    Core::new(&settings, 0)
}

pub(crate) fn permit(core: &Core, now: u64) -> CallPermit {
    match admit(core, "a", Now(now), 0, Millis::seconds(60), &mut Notes::default()) {
        Admission::Go(permit) => permit,
        Admission::Refused { cause, .. } => panic!("refused: {cause}"),
    }
}

fn refused(core: &Core, now: u64) -> (Cause, Option<Millis>) {
    match admit(core, "a", Now(now), 0, Millis::seconds(60), &mut Notes::default()) {
        Admission::Go(_) => panic!("admitted"),
        Admission::Refused { cause, retry_after } => (cause, retry_after),
    }
}

fn report(core: &Core, now: u64, kind: OutcomeKind) -> Option<Millis> {
    let outcome = Outcome::unanswered(kind);
    let plan = permit(core, now).report(Now(now), &outcome, &mut Notes::default());
    plan.re_entry(Now(now))
}

/// A core whose server `a` is open from 0 to 30 s.
pub(crate) fn open_core() -> Core {
    let core = core_of(&["a"]);
    report(&core, 0, OutcomeKind::Transport);
    report(&core, 0, OutcomeKind::Timeout);
    core
}

#[test]
fn an_open_server_is_refused_with_its_re_entry_and_never_a_last_resort() {
    let core = open_core();
    assert_eq!(refused(&core, 1000), (Cause::CircuitOpen, Some(Millis(29_000))));
    assert_eq!(
        standing(&core, "a", Now(1000)),
        Standing::Unhealthy(Cause::CircuitOpen, Some(Millis(29_000)))
    );
}

#[test]
fn the_report_that_opens_the_breaker_says_when_to_come_back() {
    let core = core_of(&["a"]);
    assert_eq!(report(&core, 0, OutcomeKind::Transport), None);
    assert_eq!(report(&core, 0, OutcomeKind::Transport), Some(Millis::seconds(30)));
}

#[test]
fn a_half_open_server_has_one_slot_and_a_dropped_ticket_gives_it_back() {
    let core = open_core();
    assert_eq!(standing(&core, "a", Now(30_000)), Standing::HalfOpenFree);
    let trial = permit(&core, 30_000);
    assert!(trial.is_trial());
    assert_eq!(standing(&core, "a", Now(30_000)), Standing::SlotTaken);
    assert_eq!(refused(&core, 30_000).0, Cause::CircuitOpen);
    drop(trial);
    assert_eq!(standing(&core, "a", Now(30_000)), Standing::HalfOpenFree);
    report(&core, 30_000, OutcomeKind::Success);
    assert_eq!(standing(&core, "a", Now(30_000)), Standing::Healthy);
}

#[test]
fn refused_credentials_keep_a_session_from_opening_but_not_a_call_from_trying() {
    let core = core_of(&["a"]);
    report(&core, 0, OutcomeKind::AuthRejected);
    let unhealthy = Standing::Unhealthy(Cause::AuthRejected, Some(Millis::seconds(30)));
    assert_eq!(standing(&core, "a", Now(0)), unhealthy);
    report(&core, 0, OutcomeKind::Success);
    assert_eq!(standing(&core, "a", Now(0)), Standing::Healthy);
}

#[test]
fn a_server_that_asks_for_patience_is_unhealthy_for_new_sessions() {
    let core = core_of(&["a"]);
    let outcome = Outcome { retry_after: Some(Millis(5000)), ..Outcome::answered(429) };
    permit(&core, 0).report(Now(0), &outcome, &mut Notes::default());
    let unhealthy = Standing::Unhealthy(Cause::RateLimited, Some(Millis(5000)));
    assert_eq!(standing(&core, "a", Now(0)), unhealthy);
}

#[test]
fn a_server_that_was_switched_off_is_not_asked() {
    let core = core_of(&["a"]);
    core.switch_off(Now(0), "mcp:a", Some(Now::NEVER), &mut Notes::default());
    assert_eq!(refused(&core, 0), (Cause::SwitchedOff, None));
    assert_eq!(standing(&core, "a", Now(0)), Standing::Unhealthy(Cause::SwitchedOff, None));
}

#[test]
fn a_server_the_core_does_not_know_is_closing() {
    let core = core_of(&["b"]);
    assert_eq!(refused(&core, 0), (Cause::Closing, None));
    assert_eq!(standing(&core, "a", Now(0)), Standing::Unhealthy(Cause::Closing, None));
}

#[test]
fn a_group_is_as_well_as_its_best_member() {
    let core = core_of(&["a", "b"]);
    let charge =
        |server: &str, now: u64| charge(&core, server, Now(now), &TIMED_OUT, &mut Notes::default());
    assert_eq!(standing(&core, GROUP, Now(0)), Standing::Healthy);
    (0..2).for_each(|_| charge("a", 0));
    assert_eq!(standing(&core, GROUP, Now(0)), Standing::Healthy);
    (0..2).for_each(|_| charge("b", 5000));
    let first_back = Standing::Unhealthy(Cause::CircuitOpen, Some(Millis(24_000)));
    assert_eq!(standing(&core, GROUP, Now(6000)), first_back);
    assert_eq!(standing(&core, GROUP, Now(30_000)), Standing::HalfOpenFree);
}

#[test]
fn a_charge_is_one_failure() {
    let core = core_of(&["a"]);
    charge(&core, "a", Now(0), &TIMED_OUT, &mut Notes::default());
    assert_eq!(standing(&core, "a", Now(0)), Standing::Healthy);
    charge(&core, "a", Now(0), &TIMED_OUT, &mut Notes::default());
    assert!(matches!(standing(&core, "a", Now(0)), Standing::Unhealthy(Cause::CircuitOpen, _)));
}

#[test]
fn answers_have_the_class_of_the_table() {
    use OutcomeKind::{ClientFault, ServerError, Success};
    let rows = [
        (None, Reply::Ended(Success)),
        (Some((-32603, "boom")), Reply::Ended(ServerError)),
        (Some((-32602, "no such tool")), Reply::Ended(ClientFault)),
        (Some((-32601, "method not found")), Reply::Ended(ClientFault)),
        (Some((-32002, "resource not found")), Reply::Ended(ClientFault)),
        (Some((-32001, "gone")), Reply::SessionLost),
        (Some((-32000, "Bad Request: No valid Session ID")), Reply::SessionLost),
        (Some((-32600, "session terminated")), Reply::SessionLost),
        (Some((-32000, "not today")), Reply::Ended(ClientFault)),
        (Some((-32600, "bad request")), Reply::Ended(ClientFault)),
        (Some((42, "session")), Reply::Ended(ClientFault)),
    ];
    for (error, reply) in rows {
        assert_eq!(of_answer(error), reply, "{error:?}");
    }
}

//! Records of MCP sessions: any replica finds one, one owns it, and "I do not know" is not "none".

use std::time::Duration;

use tidegate_core::time::Millis;
use tidegate_fleet::{
    identity::Identity,
    sessions::{
        Absence, AwayReason, Claim, Liveness, Lookup, Owner, SessionEvent, SessionHeard,
        SessionRecord,
    },
};
use tidegate_testkit::time::{eventually, pause};

use crate::bare::{BareReplica, VersionEars, wait_for};
use crate::store::Store;

fn start(store: &Store, name: &str) -> BareReplica {
    BareReplica::start(store, name, VersionEars::default())
}

/// The record of a session of this replica's.
fn record(of: &BareReplica, epoch: u64, state: &str) -> SessionRecord {
    let Identity { instance, replica, .. } = of.fleet.identity().clone();
    let owner = Some(Owner { instance, peer_url: Some("http://x:1".into()), replica });
    SessionRecord { owner, epoch, state: state.as_bytes().to_vec() }
}

/// What is known of a session without a record.
fn absence(found: Lookup) -> Absence {
    match found {
        Lookup::Absent(absence) => absence,
        Lookup::Found(_) | Lookup::Away(_) => panic!("{found:?}"),
    }
}

#[test]
fn a_record_is_found_by_others_taken_over_once_and_never_overwritten_by_an_older_epoch() {
    let store = Store::start();
    let (one, two) = (start(&store, "one"), start(&store, "two"));
    let (first, second) = (one.fleet.sessions(), two.fleet.sessions());
    wait_for(async {
        // The store has just begun: what is not there may be written again soon.
        assert!(absence(second.load("s").await).lost_ago.is_some());
        assert!(first.create("s", &record(&one, 1, "hello")).await);
        assert_eq!(second.load("s").await, Lookup::Found(record(&one, 1, "hello")));
        let mut heard = first.events();
        assert_eq!(second.claim("s", 1, record(&two, 2, "taken")).await, Claim::Won);
        assert_eq!(
            first.claim("s", 1, record(&one, 2, "late")).await,
            Claim::Lost(record(&two, 2, "taken"))
        );
        let event = tokio::time::timeout(Duration::from_secs(20), heard.recv()).await;
        let (name, by) = (first.name_of("s"), two.fleet.identity().instance);
        assert_eq!(
            event.expect("in time").ok(),
            Some(SessionHeard::Event(SessionEvent::Claimed { name, epoch: 2, by }))
        );
        // The former owner does not know yet, and writes what it has: it hears whose it is.
        first.put("s", record(&one, 1, "old"));
        let event = tokio::time::timeout(Duration::from_secs(20), heard.recv()).await;
        let (name, by) = (first.name_of("s"), two.fleet.identity().instance);
        assert_eq!(
            event.expect("in time").ok(),
            Some(SessionHeard::Event(SessionEvent::Claimed { name, epoch: 2, by }))
        );
        assert_eq!(first.load("s").await, Lookup::Found(record(&two, 2, "taken")));
        let released = SessionRecord { owner: None, ..record(&two, 2, "free") };
        second.put("s", released.clone());
        let event = tokio::time::timeout(Duration::from_secs(20), heard.recv()).await;
        assert!(
            matches!(event, Ok(Ok(SessionHeard::Event(SessionEvent::Released { epoch: 2, .. })))),
            "{event:?}"
        );
        assert_eq!(first.load("s").await, Lookup::Found(released));
        first.delete("s", 1);
        assert!(first.create("other", &record(&one, 1, "x")).await);
        assert!(
            matches!(first.load("s").await, Lookup::Found(_)),
            "an older epoch deletes nothing"
        );
        second.delete("s", 2);
    });
    eventually("it is deleted", || {
        wait_for(first.load("s")) != Lookup::Found(record(&two, 2, "")) && {
            !matches!(wait_for(first.load("s")), Lookup::Found(_))
        }
    });
}

#[test]
fn a_store_that_cannot_say_is_never_one_without_the_record() {
    let mut store = Store::start();
    let one = start(&store, "one");
    let sessions = one.fleet.sessions();
    assert!(wait_for(sessions.create("s", &record(&one, 1, "x"))));
    let key = store.keys().into_iter().find(|key| key.contains(":x:")).expect("a record");
    store.ask(&[b"HSET", key.as_bytes(), b"e", b"7"]);
    assert!(absence(wait_for(sessions.load("s"))).is_sealed, "the epoch is bound in");
    store.kill();
    eventually("it is known to be away", || {
        matches!(wait_for(sessions.load("s")), Lookup::Away(AwayReason::KnownAway))
    });
    assert!(!wait_for(sessions.create("new", &record(&one, 1, "queued"))));
    store.run();
    eventually("what could not be written is written now", || {
        wait_for(sessions.load("new")) == Lookup::Found(record(&one, 1, "queued"))
    });
    let lost_ago = absence(wait_for(sessions.load("s"))).lost_ago;
    assert!(lost_ago.is_some_and(|it| it < Millis::seconds(30)), "{lost_ago:?}");
}

/// A store that is emptied breaks no connection: a record that is gone with everything else is no
/// session that has ended, and a heartbeat that is gone no replica.
#[test]
fn what_is_missing_in_a_store_that_was_emptied_says_nothing() {
    let store = Store::start();
    let (one, two) = (start(&store, "one"), start(&store, "two"));
    let sessions = one.fleet.sessions();
    // Until then a store that has just begun is the reason.
    pause(Duration::from_millis(10_500));
    assert!(wait_for(sessions.create("s", &record(&one, 1, "x"))));
    let lost_ago = |it: Absence| it.lost_ago.is_some_and(|ago| ago < Millis::seconds(10));
    assert!(!lost_ago(absence(wait_for(sessions.load("other")))), "it has all its data");
    let instance = two.fleet.identity().instance;
    let is_steady = |it: Liveness| it.store_up_for.is_some_and(|up| up >= Millis::seconds(10));
    assert!(is_steady(wait_for(sessions.liveness(instance)).expect("an answer")));
    store.ask(&[b"FLUSHALL"]);
    assert!(lost_ago(absence(wait_for(sessions.load("s")))), "it was lost a moment ago");
    assert!(!is_steady(wait_for(sessions.liveness(instance)).expect("an answer")));
}

#[test]
fn a_replica_that_left_is_silent_only_once_the_store_has_been_steady() {
    let store = Store::start();
    let (one, two) = (start(&store, "one"), start(&store, "two"));
    let instance = two.fleet.identity().instance;
    let sessions = one.fleet.sessions();
    let look = || wait_for(sessions.liveness(instance)).expect("an answer");
    let Liveness { has_heartbeat, store_up_for } = look();
    assert!(has_heartbeat, "it lives");
    drop(two);
    eventually("its heartbeat has gone", || !look().has_heartbeat);
    let since = |it: &Liveness| it.store_up_for.unwrap_or_default();
    eventually("the store has been up", || since(&look()) >= Millis::seconds(10));
    assert!(store_up_for < look().store_up_for, "time went by");
}

/// The answer to `initialize` waits for the record no longer than `state.timeout`. Where the store
/// was only slow, another replica that is asked meanwhile must not say that there is no session.
#[test]
fn a_record_that_is_not_written_yet_is_not_a_session_that_has_ended() {
    let store = Store::start();
    let (one, two) = (start(&store, "one"), start(&store, "two"));
    let (first, second) = (one.fleet.sessions(), two.fleet.sessions());
    let old = first.new_id("00");
    // Until then a store that has just begun is the reason.
    pause(Duration::from_millis(10_500));
    let new = first.new_id("01");
    assert!(one.fleet.secrets().knows_session(&new));
    let age = |id: &str| absence(wait_for(second.load(id))).opened_ago;
    assert!(age(&new).is_some_and(|it| it < Millis::seconds(5)), "{:?}", age(&new));
    assert!(age(&old).is_some_and(|it| it >= Millis::seconds(10)), "{:?}", age(&old));
    assert_eq!(age("02"), None, "its id says nothing");
    assert!(wait_for(first.create(&new, &record(&one, 1, "x"))));
    assert_eq!(wait_for(second.load(&new)), Lookup::Found(record(&one, 1, "x")));
    first.delete(&new, 1);
    let has_ended = || match wait_for(second.load(&new)) {
        Lookup::Absent(absence) => absence.is_ended,
        Lookup::Found(_) | Lookup::Away(_) => false,
    };
    eventually("it has ended", has_ended);
    assert!(!wait_for(first.create(&new, &record(&one, 1, "late"))), "nothing late comes back");
    assert!(has_ended());
}

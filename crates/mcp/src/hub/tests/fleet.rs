//! Several Hubs, and sessions that go from one to another.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use tidegate_core::time::Millis;

use super::bed::{Bed, Manner};
use super::world::Handed;
use crate::hub::{Adoption, Event, HttpMethod, RequestToken, ServerAccess, SessionRecord};

/// What the store knows of a session.
#[derive(Clone)]
pub(super) struct Stored {
    pub(super) owner: Option<usize>,
    pub(super) epoch: u64,
    pub(super) state: Bytes,
}

/// Hubs of one config, and the store.
pub(super) struct Fleet {
    pub(super) beds: Vec<Bed>,
    pub(super) store: BTreeMap<String, Stored>,
    /// The epoch under which a Hub has a session.
    owned: BTreeMap<(usize, String), u64>,
}

impl Fleet {
    pub(super) fn new(count: usize, bed: impl Fn() -> Bed) -> Self {
        let mut beds: Vec<Bed> = (0..count).map(|_| bed()).collect();
        let world = Rc::clone(&beds[0].world);
        for (number, bed) in beds.iter_mut().enumerate() {
            (bed.number, bed.world) = (number, Rc::clone(&world));
            bed.random.0 += 1000 * number as u64;
            bed.hub.share_sessions();
            bed.reload();
        }
        Self { beds, store: BTreeMap::new(), owned: BTreeMap::new() }
    }

    /// The store hears what Hubs told. An owner of an earlier epoch is not listened to.
    pub(super) fn sync(&mut self) {
        for at in 0..self.beds.len() {
            for handed in std::mem::take(&mut self.beds[at].handed) {
                let (session, state, owner) = match handed {
                    Handed::Record(session, state) => (session, state, Some(at)),
                    Handed::Released(session, state) => (session, state, None),
                    Handed::Ended(session) => {
                        let epoch = self.owned.remove(&(at, session.to_string()));
                        if self.store.get(&*session).is_some_and(|it| Some(it.epoch) == epoch) {
                            self.store.remove(&*session);
                        }
                        continue;
                    }
                };
                let key = (at, session.to_string());
                let epoch = *self.owned.entry(key.clone()).or_insert(1);
                if owner.is_none() {
                    self.owned.remove(&key);
                }
                let known = self.store.get(&*session).map_or(0, |it| it.epoch);
                if known <= epoch {
                    self.store.insert(session.to_string(), Stored { owner, epoch, state });
                }
            }
        }
    }

    /// A Hub takes a session over; whether it has it.
    pub(super) fn take_over(&mut self, at: usize, session: &str) -> bool {
        self.sync();
        let Some(stored) = self.store.get_mut(session) else { return false };
        (stored.owner, stored.epoch) = (Some(at), stored.epoch + 1);
        let record = SessionRecord::read(&stored.state).expect("a record");
        let epoch = stored.epoch;
        self.owned.insert((at, session.to_owned()), epoch);
        let adoption = Adoption { session: session.into(), epoch, record };
        self.beds[at].tell(Event::Adopt(Box::new(adoption)));
        self.sync();
        self.beds[at].hub.holds(session)
    }

    /// Every Hub with an earlier epoch hears of the owner.
    pub(super) fn tell_owners(&mut self, session: &str) {
        let newest = self.store.get(session).map_or(u64::MAX, |it| it.epoch);
        for at in 0..self.beds.len() {
            let key = (at, session.to_owned());
            if self.owned.get(&key).is_some_and(|epoch| *epoch < newest) {
                self.owned.remove(&key);
                self.beds[at].tell(Event::LetGo { session: session.into() });
                assert!(!self.beds[at].hub.holds(session), "the lower epoch lets go");
            }
        }
        self.sync();
    }
}

fn fleet(names: &'static [&'static str]) -> Fleet {
    Fleet::new(2, || Bed::new(names))
}

fn echo(bed: &mut Bed, session: &str, id: u64) -> Value {
    let token = bed.call(session, id, "echo");
    bed.settle();
    bed.last(token)
}

fn is_told_new(answer: &Value) -> bool {
    answer["result"]["_meta"]["tidegate/session"] == "new"
}

#[test]
fn a_session_goes_on_in_the_servers_own_session() {
    let mut fleet = fleet(&["a"]);
    let session = fleet.beds[0].open_with(json!({"roots": {}}));
    assert!(echo(&mut fleet.beds[0], &session, 1)["result"].is_object());
    let begun = fleet.beds[0].world.borrow().begun();
    assert!(fleet.take_over(1, &session));
    fleet.tell_owners(&session);
    let answer = echo(&mut fleet.beds[1], &session, 2);
    assert!(answer["result"].is_object() && !is_told_new(&answer), "{answer}");
    let world = Rc::clone(&fleet.beds[0].world);
    assert_eq!(world.borrow().begun(), begun, "nobody greeted the server again");
    assert!(world.borrow().deleted.is_empty(), "nothing was deleted");
    let epochs: Vec<u64> = world.borrow().used(begun).iter().map(|it| it >> 22).collect();
    assert!(epochs.contains(&0) && epochs.contains(&1), "{epochs:?}");
    let gone = fleet.beds[0].post(&session, &json!({"jsonrpc": "2.0", "id": 3, "method": "ping"}));
    assert_eq!(fleet.beds[0].answers[&gone].status, 404, "the shell forwards what is not here");
}

#[test]
fn streams_begin_anew_with_one_change_per_list() {
    let mut fleet = fleet(&["a"]);
    let session = fleet.beds[0].open();
    assert!(fleet.take_over(1, &session));
    for last in [None, Some("0-7"), Some("3-0"), Some("9.0-1"), Some("nonsense")] {
        let token = fleet.beds[1].send(HttpMethod::Get, &session, last);
        let bed = &fleet.beds[1];
        assert_eq!(bed.answers[&token].status, 200, "{last:?}");
        let told = bed.messages(token);
        let expected = if last.is_none() { 3 } else { 0 };
        assert_eq!(told.len(), expected, "{last:?}: {told:?}");
    }
    // Events of this owner can be asked for again.
    let first = fleet.beds[1].streams.values().flatten().next().expect("an event").clone();
    let id = first.lines().find_map(|it| it.strip_prefix("id: ")).expect("an id").to_owned();
    assert!(id.starts_with("2.0-"), "{id}");
    let token = fleet.beds[1].send(HttpMethod::Get, &session, Some(&id));
    assert_eq!(fleet.beds[1].messages(token).len(), 2);
}

#[test]
fn the_state_of_a_program_is_reported_as_lost() {
    let mut fleet = Fleet::new(2, || {
        let mut bed = Bed::new(&["a", "b"]);
        bed.settings.servers[0].access = ServerAccess::Child { is_shared: false };
        bed
    });
    let session = fleet.beds[0].open();
    let call = |bed: &mut Bed, id: u64, tool: &str| {
        let token = bed.call(&session, id, tool);
        bed.settle();
        bed.last(token)
    };
    assert!(!is_told_new(&call(&mut fleet.beds[0], 1, "a_echo")));
    assert!(fleet.take_over(1, &session));
    fleet.tell_owners(&session);
    let bed = &mut fleet.beds[1];
    assert!(is_told_new(&call(bed, 2, "a_echo")), "its program was started again");
    assert!(!is_told_new(&call(bed, 3, "a_echo")), "told once");
    assert!(!is_told_new(&call(bed, 4, "b_echo")), "the other server goes on");
}

#[test]
fn a_server_at_another_place_is_greeted_anew() {
    let mut fleet = fleet(&["a"]);
    let session = fleet.beds[0].open();
    fleet.beds[1].settings.servers[0].place = "elsewhere".into();
    fleet.beds[1].reload();
    fleet.beds[1].pass(Millis::seconds(2));
    let begun = fleet.beds[0].world.borrow().begun();
    assert!(fleet.take_over(1, &session));
    let answer = echo(&mut fleet.beds[1], &session, 1);
    assert!(is_told_new(&answer), "{answer}");
    assert!(fleet.beds[0].world.borrow().begun() > begun);
}

#[test]
fn a_session_that_the_server_forgot_is_made_again() {
    let mut fleet = fleet(&["a"]);
    let session = fleet.beds[0].open();
    assert!(fleet.take_over(1, &session));
    fleet.beds[1].servers[0].manner = Manner::Forgetful;
    let answer = echo(&mut fleet.beds[1], &session, 1);
    assert!(is_told_new(&answer), "{answer}");
}

#[test]
fn calls_under_way_end_by_name_when_a_session_is_let_go() {
    let mut fleet = fleet(&["a"]);
    let session = fleet.beds[0].open();
    let token = fleet.beds[0].call(&session, 5, "wait");
    assert!(fleet.take_over(1, &session));
    fleet.tell_owners(&session);
    let answer = fleet.beds[0].last(token);
    let told = &answer["result"]["structuredContent"];
    assert_eq!(told["code"], "result_unknown", "{answer}");
    assert_eq!(told["backend"], "a", "{answer}");
    assert!(answer.to_string().contains("the session moved to another replica"), "{answer}");
    assert!(fleet.beds[0].over.contains(&fleet.beds[0].reader(token)), "its stream is over");
    let world = fleet.beds[0].world.borrow();
    assert!(world.deleted.is_empty(), "{:?}", world.deleted);
    assert_eq!(fleet.beds[0].servers[0].count("notifications/cancelled"), 0);
    let own = |bed: &Bed| bed.hub.sizes().clients;
    assert_eq!((own(&fleet.beds[0]), own(&fleet.beds[1])), (0, 1));
}

#[test]
fn at_the_end_a_session_goes_as_soon_as_nothing_is_under_way() {
    let mut fleet = fleet(&["a"]);
    let (idle, busy) = (fleet.beds[0].open(), fleet.beds[0].open());
    let token = fleet.beds[0].call(&busy, 5, "wait");
    fleet.beds[0].tell(Event::Release);
    assert!(!fleet.beds[0].hub.holds(&idle) && fleet.beds[0].hub.holds(&busy));
    fleet.sync();
    assert_eq!(fleet.store[&idle].owner, None);
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}});
    let refused = fleet.beds[0].post("", &hello);
    let refused = &fleet.beds[0].answers[&refused];
    assert_eq!((refused.status, refused.retry_after.is_some()), (503, true));
    let (connection, call) = fleet.beds[0].servers[0].held[0];
    fleet.beds[0].reply(connection, call, Ok(json!({"content": []})));
    fleet.beds[0].settle();
    assert!(fleet.beds[0].last(token)["result"].is_object(), "it was answered first");
    assert_eq!(fleet.beds[0].hub.held(), 0);
    fleet.beds[0].tell(Event::Close);
    assert!(fleet.beds[0].is_closed);
    for session in [&idle, &busy] {
        assert!(fleet.take_over(1, session));
        assert!(!is_told_new(&echo(&mut fleet.beds[1], session, 9)));
    }
}

#[test]
fn what_is_left_when_everything_ends_is_released_too() {
    let mut fleet = fleet(&["a"]);
    let session = fleet.beds[0].open();
    let token = fleet.beds[0].call(&session, 5, "wait");
    fleet.beds[0].tell(Event::Release);
    fleet.beds[0].tell(Event::Close);
    assert_eq!(fleet.beds[0].last(token)["result"]["structuredContent"]["code"], "result_unknown");
    fleet.sync();
    assert_eq!(fleet.store[&session].owner, None);
    assert!(fleet.take_over(1, &session));
    assert!(!is_told_new(&echo(&mut fleet.beds[1], &session, 9)));
}

#[test]
fn who_was_out_stays_out_and_who_had_joined_stays_listed() {
    let mut fleet = fleet(&["a", "b", "c"]);
    fleet.beds[0].servers[1].manner = Manner::Dead;
    let session = fleet.beds[0].open();
    fleet.beds[0].pass(Millis::seconds(6));
    let before = fleet.beds[0].tools(&session);
    assert!(before.iter().all(|it| !it.starts_with("b_")), "{before:?}");
    fleet.beds[1].pass(Millis::seconds(6));
    fleet.beds[1].break_connections(2);
    fleet.beds[1].servers[2].manner = Manner::Dead;
    assert!(fleet.take_over(1, &session));
    let after = fleet.beds[1].tools(&session);
    assert_eq!(before, after);
}

#[test]
fn a_record_is_told_when_it_changes_and_not_per_call() {
    let mut fleet = fleet(&["a"]);
    let session = fleet.beds[0].open();
    fleet.beds[0].tools(&session);
    fleet.sync();
    for id in 0..5 {
        echo(&mut fleet.beds[0], &session, id);
    }
    assert_eq!(fleet.beds[0].handed, []);
    let level = json!({"jsonrpc": "2.0", "id": 9, "method": "logging/setLevel",
        "params": {"level": "error"}});
    fleet.beds[0].post(&session, &level);
    assert_eq!(fleet.beds[0].handed.len(), 1);
    let end = fleet.beds[0].send(HttpMethod::Delete, &session, None);
    assert_eq!(fleet.beds[0].answers[&end].status, 200);
    assert_eq!(fleet.beds[0].handed[1..], [Handed::Ended(Arc::from(&*session))]);
}

#[test]
fn a_caller_without_rights_or_room_does_not_get_a_session() {
    let mut fleet = fleet(&["a"]);
    let session = fleet.beds[0].open();
    fleet.beds[1].settings.sessions_max = 1;
    fleet.beds[1].reload();
    let other = fleet.beds[1].open();
    fleet.beds[1].call(&other, 1, "wait");
    assert!(!fleet.take_over(1, &session));
    fleet.beds[1].settings.sessions_max = 16;
    fleet.beds[1].settings.callers =
        BTreeMap::from([("x".into(), crate::hub::CallerRights { share: 1.0, servers: None })]);
    fleet.beds[1].reload();
    assert!(!fleet.take_over(1, &session));
}

#[test]
fn a_hub_alone_tells_of_no_record() {
    let mut bed = Bed::new(&["a"]).start();
    let session = bed.open();
    let token: RequestToken = bed.send(HttpMethod::Delete, &session, None);
    assert_eq!((bed.answers[&token].status, bed.handed.len()), (200, 0));
}

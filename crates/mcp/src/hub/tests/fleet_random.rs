//! Random programs over several Hubs and one store: sessions move, owners die, hear late of each
//! other, or leave.
//!
//! Rules that are checked (I24):
//! - No request of a client is given to servers twice, whoever owns its session, but for those that
//!   are harmless to repeat.
//! - No number of a request is used twice in a session with a server (by
//!   [`World`](super::world::World)).
//! - Of two owners the one with the lower epoch lets go when it hears of the other.
//!
//! `TIDEGATE_SEEDS=100000 cargo test -p tidegate-mcp random_fleets` runs more of them.

use serde_json::json;
use tidegate_core::time::Millis;

use super::bed::{Bed, Manner, Seeded};
use super::fleet::Fleet;
use crate::hub::{Event, Random as _, ServerAccess};

const STEPS: usize = 80;
const HUBS: usize = 3;

fn below(dice: &mut Seeded, bound: usize) -> usize {
    usize::try_from(dice.draw() % bound as u64).expect("it is below a small number")
}

fn bed(seed: u64) -> Bed {
    let mut dice = Seeded(seed);
    let mut bed = Bed::new(&["a", "b"]);
    for at in 0..2 {
        bed.servers[at].is_stateless = below(&mut dice, 4) == 0;
        if !bed.servers[at].is_stateless && below(&mut dice, 4) == 0 {
            bed.settings.servers[at].access = ServerAccess::Child { is_shared: false };
        }
    }
    bed.settings.children_max = 64;
    bed.settings.call_timeout = Millis::seconds(10);
    bed
}

/// Who may send a request of a session: the owner that the store names, or one that has not heard
/// that it is no owner any more.
fn place(fleet: &mut Fleet, dice: &mut Seeded, dead: &[bool], session: &str) -> Option<usize> {
    fleet.sync();
    let asked = below(dice, HUBS);
    if dead[asked] {
        return None;
    }
    if fleet.beds[asked].hub.holds(session) {
        return Some(asked);
    }
    let owner = fleet.store.get(session)?.owner;
    match owner.filter(|it| !dead[*it]) {
        Some(owner) => fleet.beds[owner].hub.holds(session).then_some(owner),
        None => fleet.take_over(asked, session).then_some(asked),
    }
}

fn run(seed: u64) {
    let mut dice = Seeded(seed);
    let mut fleet = Fleet::new(HUBS, || bed(seed));
    let mut dead = [false; HUBS];
    let mut sessions: Vec<String> = Vec::new();
    let (mut next, mut reads) = (0, Vec::new());
    for _ in 0..STEPS {
        match below(&mut dice, 12) {
            0 | 1 if sessions.len() < 5 => {
                let at = below(&mut dice, HUBS);
                if !dead[at] && !fleet.beds[at].is_closed {
                    let session = fleet.beds[at].open();
                    sessions.push(session);
                }
            }
            2..=5 if !sessions.is_empty() => {
                let session = sessions[below(&mut dice, sessions.len())].clone();
                let tool = ["echo", "read", "wait"][below(&mut dice, 3)];
                let server = ["a", "b"][below(&mut dice, 2)];
                let Some(at) = place(&mut fleet, &mut dice, &dead, &session) else { continue };
                next += 1;
                if tool == "read" {
                    reads.push(next);
                }
                let params = json!({"name": format!("{server}_{tool}"), "arguments": {"n": next}});
                let message = json!({"jsonrpc": "2.0", "id": next, "method": "tools/call",
                    "params": params});
                fleet.beds[at].post(&session, &message);
            }
            6 if !sessions.is_empty() => {
                // Taken over from an owner that lives, but cannot be reached.
                let session = sessions[below(&mut dice, sessions.len())].clone();
                let at = below(&mut dice, HUBS);
                if !dead[at] && !fleet.beds[at].hub.holds(&session) {
                    fleet.take_over(at, &session);
                }
            }
            7 if !sessions.is_empty() => {
                let session = sessions[below(&mut dice, sessions.len())].clone();
                fleet.tell_owners(&session);
            }
            8 => {
                let at = below(&mut dice, HUBS);
                let server = below(&mut dice, 2);
                let manners = [Manner::Works, Manner::Works, Manner::Dead, Manner::Forgetful];
                fleet.beds[at].servers[server].manner = manners[below(&mut dice, 4)];
            }
            9 => {
                let span = Millis([10, 200, 1000, 6000][below(&mut dice, 4)]);
                for (bed, _) in fleet.beds.iter_mut().zip(dead).filter(|(_, dead)| !dead) {
                    bed.pass(span);
                }
            }
            10 => {
                let at = below(&mut dice, HUBS);
                for (connection, call) in std::mem::take(&mut fleet.beds[at].servers[0].held) {
                    if !dead[at] && fleet.beds[at].connections.contains_key(&connection) {
                        fleet.beds[at].reply(connection, call, Ok(json!({"content": []})));
                    }
                }
                if !dead[at] {
                    fleet.beds[at].settle();
                }
            }
            _ => {
                let at = below(&mut dice, HUBS);
                if dead.iter().filter(|it| !**it).count() > 1 && !dead[at] {
                    dead[at] = true;
                    // Killed, or stopped in good order.
                    if below(&mut dice, 2) == 0 {
                        fleet.beds[at].tell(Event::Release);
                        fleet.beds[at].tell(Event::Close);
                        fleet.sync();
                    }
                }
            }
        }
    }
    let world = fleet.beds[0].world.borrow();
    for (number, times) in &world.given {
        let is_harmless = reads.contains(number);
        assert!(*times <= 1 || is_harmless, "call {number} was given {times} times");
    }
    drop(world);
    for session in &sessions {
        fleet.tell_owners(session);
        let owners = (0..HUBS).filter(|at| !dead[*at] && fleet.beds[*at].hub.holds(session));
        assert!(owners.count() <= 1, "{session} has two owners that know of each other");
    }
}

#[test]
#[expect(clippy::print_stderr, reason = "whoever sees it fail wants the seed")]
fn random_fleets_send_nothing_twice() {
    let number = |name: &str| std::env::var(name).ok().and_then(|it| it.parse::<u64>().ok());
    if let Some(seed) = number("TIDEGATE_SEED") {
        return run(seed);
    }
    for seed in 0..number("TIDEGATE_SEEDS").unwrap_or(300) {
        if let Err(panic) = std::panic::catch_unwind(|| run(seed)) {
            eprintln!("again: TIDEGATE_SEED={seed} cargo test -p tidegate-mcp random_fleets");
            std::panic::resume_unwind(panic);
        }
    }
}

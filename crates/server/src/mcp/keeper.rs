//! Keeping an eye on one server: the gateway's own connection to it, its lists, its probes.
//!
//! Rules kept here:
//! - A probe is a `ping` (`server/discover` in the stateless era, which has none) over the
//!   connection that is there; it makes one where there is none, and never a second one. A
//!   program that every session has for itself is probed over a session's connection, and not at
//!   all without one; for its lists it is started once, at the beginning.
//! - A probe needs no permit: it goes on while the breaker is open, and heals it.
//! - A shared program that ended is started again, when its supervisor allows.

use std::rc::Rc;
use std::time::Duration;

use tidegate_config::file::ProbeFile;
use tidegate_core::{
    probe::{ProbeClock, ProbeSettings, Tick},
    time::{Millis, Now},
};
use tidegate_mcp::{
    health::backend_id,
    link::{LinkState, Want},
    message::Params,
    session::Contact,
};

use super::{
    conversation::{Reply, Voice},
    ground::Ground,
    link::Link,
    server::Server,
};
use crate::{metrics::ProbeResult, rng};

/// How late a change may be noticed.
const LOOK_EVERY: Millis = Millis(250);

/// Keeps an eye on a server until it is dropped.
pub(crate) async fn run(server: Rc<Server>, ground: Rc<Ground>, home: Rc<Link>) {
    if !server.is_usable() {
        return;
    }
    let mut clock = ProbeClock::new(settings(&server, &ground), rng::draw(), ground.now());
    let is_probed = clock.next_due().is_some();
    if is_probed {
        // The first look is the first probe.
        clock.tick(ground.now(), Default::default());
    }
    let is_there = first_look(&server, &ground, &home).await;
    if is_probed {
        learn(&server, &ground, is_there);
        clock.ended();
    }
    home.keep_alive();
    if server.is_own_child() {
        home.close().await;
        server.home.borrow_mut().take();
    }
    loop {
        wait(&server, &ground, &home, &clock).await;
        if server.is_shared_child() && home.machine.borrow().state() == LinkState::Down {
            // What became of it shows in the link's state.
            let _ = revive(&server, &home).await;
        }
        let now = ground.now();
        let contact = ground.live().core.contact(&backend_id(&server.name));
        if clock.tick(now, contact) == Tick::Probe {
            // Without a session there may be nothing to probe over.
            let _ = probe(&server, &ground).await;
            clock.ended();
        }
    }
}

/// Probes a server now; `None` if there is no connection that it could go over.
pub(crate) async fn probe(server: &Rc<Server>, ground: &Rc<Ground>) -> Option<bool> {
    let link = link_to_probe(server, ground)?;
    let within = Duration::from_millis(settings(server, ground).timeout.0);
    let passed = tokio::time::timeout(within, probe_over(server, &link)).await == Ok(true);
    learn(server, ground, passed);
    Some(passed)
}

fn settings(server: &Server, ground: &Ground) -> ProbeSettings {
    let live = ground.live();
    let layers = [live.file.health.probe.as_ref(), server.file().health.probe.as_ref()];
    let layers: Vec<&ProbeFile> = layers.into_iter().flatten().collect();
    ProbeFile::resolve(&layers)
}

/// The first connection, and the lists it brings.
async fn first_look(server: &Rc<Server>, ground: &Rc<Ground>, home: &Rc<Link>) -> bool {
    let is_there = revive(server, home).await;
    if is_there {
        server.lists_known(home, &home.hello).await;
    }
    server.contact.set(if is_there { Contact::Reached } else { Contact::Failed });
    if let Some(hub) = ground.hub() {
        hub.wake();
    }
    is_there
}

/// Makes the connection if it is not there, without asking the core.
async fn revive(server: &Rc<Server>, link: &Rc<Link>) -> bool {
    let want = link.machine.borrow_mut().want();
    let generation = match want {
        Want::Use(_) => return true,
        Want::Closed => return false,
        Want::Wait(generation) => generation,
        Want::Connect(generation) => {
            link.connect(generation);
            generation
        }
    };
    let within = Duration::from_millis(server.initialize_within().0);
    let settled = tokio::time::timeout(within, link.settled(generation)).await;
    matches!(settled, Ok(None)) && link.machine.borrow().state() == LinkState::Ready
}

/// The connection that a probe goes over.
fn link_to_probe(server: &Rc<Server>, ground: &Rc<Ground>) -> Option<Rc<Link>> {
    if !server.is_own_child() {
        return server.home.borrow().clone();
    }
    let clients = ground.hub()?.clients();
    let links = clients.iter().filter_map(|it| it.link_to(server));
    links.into_iter().find(|link| link.conversation().is_some())
}

async fn probe_over(server: &Rc<Server>, link: &Rc<Link>) -> bool {
    if link.conversation().is_none() && !revive(server, link).await {
        return false;
    }
    let Some(talk) = link.conversation() else { return false };
    let limit = server.call_timeout;
    let (method, voice) = (link.ping(), Voice::of(&link.hello));
    match talk.ask(method, Params::default(), voice, limit).await {
        Reply::Answer(Ok(_)) => true,
        Reply::Answer(Err(_)) => {
            // It may speak another era than it did.
            let Some(generation) = link.generation_of(&talk) else { return false };
            link.lost(generation);
            revive(server, link).await
        }
        Reply::Failed(failure) => {
            if failure.ends_conversation()
                && let Some(generation) = link.generation_of(&talk)
            {
                link.lost(generation);
                // A session that the server forgot, or a connection it closed, is no fault yet.
                return failure.is_session_loss && revive(server, link).await;
            }
            false
        }
    }
}

fn learn(server: &Server, ground: &Ground, passed: bool) {
    let live = ground.live();
    let id = backend_id(&server.name);
    let now = ground.now();
    ground.with_notes(|notes| live.core.server_probed(now, &id, passed, notes));
    let result = if passed { ProbeResult::Passed } else { ProbeResult::Failed };
    ground.gateway().metrics.probed(&id, result);
    server.contact.set(if passed { Contact::Reached } else { Contact::Failed });
}

/// Waits for the next probe, or for a shared program to be started again.
async fn wait(server: &Server, ground: &Ground, home: &Link, clock: &ProbeClock) {
    let now = ground.now();
    let is_down = server.is_shared_child() && home.machine.borrow().state() == LinkState::Down;
    let restart = is_down.then(|| server.may_start_at(now));
    let due = [clock.next_due(), restart].into_iter().flatten().min();
    let span = due.map_or(LOOK_EVERY, |due: Now| due.since(now).min(LOOK_EVERY)).0.max(1);
    tokio::time::sleep(Duration::from_millis(span)).await;
}

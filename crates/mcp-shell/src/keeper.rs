//! Keeping an eye on one server: the gateway's own connection to it, its lists, its probes.
//!
//! Rules kept here:
//! - A probe is a `ping` (`server/discover` in the stateless era, which has none) over the
//!   connection that is there; it makes one where there is none, and never a second one. A
//!   program that every session has for itself is probed over a session's connection, and not at
//!   all without one; for its lists it is started once, at the beginning.
//! - What a probe finds is told to the core as it is: rejected credentials, a 429 with its time, a
//!   timeout, a refused connection.
//! - A probe needs no permit: it goes on while the breaker is open, and heals it.
//! - A shared program that ended is started again, when its supervisor allows.

use std::rc::Rc;
use std::time::Duration;

use tidegate_config::file::ProbeFile;
use tidegate_core::{
    outcome::{Outcome, OutcomeKind},
    probe::{ProbeClock, ProbeSettings, Tick},
    time::{Millis, Now},
};
use tidegate_gateway::metrics::ProbeResult;
use tidegate_mcp::{
    cause::Cause,
    health::{self, backend_id},
    link::{LinkState, Want},
    message::{METHOD_NOT_FOUND, Params},
    session::Contact,
};
use tidegate_runtime::rng;

use super::{
    conversation::{Reply, Voice},
    ground::Ground,
    link::{Link, read_error},
    server::Server,
    transport::Failure,
};

/// How late a change may be noticed.
const LOOK_EVERY: Millis = Millis(250);

/// What a probe found: nothing wrong, or this.
type Found = Result<(), Failure>;

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
    let found = first_look(&server, &ground, &home).await;
    let mut was_reached = found.is_ok();
    if is_probed {
        learn(&server, &ground, found);
        end(&mut clock, &ground, was_reached);
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
            let passed = probe(&server, &ground).await;
            was_reached |= passed != Some(false);
            end(&mut clock, &ground, was_reached);
        }
    }
}

/// Probes a server now; `None` if there is no connection that it could go over.
pub(crate) async fn probe(server: &Rc<Server>, ground: &Rc<Ground>) -> Option<bool> {
    let link = link_to_probe(server, ground)?;
    let limit = settings(server, ground).timeout;
    let within = Duration::from_millis(limit.0);
    let found = match tokio::time::timeout(within, probe_over(server, &link)).await {
        Ok(found) => found,
        Err(_) => Err(Failure::of(Cause::TimedOut(limit), OutcomeKind::Timeout)),
    };
    let passed = found.is_ok();
    learn(server, ground, found);
    Some(passed)
}

/// A probe has ended. A server that none has reached since the start is asked again soon.
fn end(clock: &mut ProbeClock, ground: &Ground, was_reached: bool) {
    match was_reached {
        true => clock.ended(),
        false => clock.ended_unreached(ground.now()),
    }
}

fn settings(server: &Server, ground: &Ground) -> ProbeSettings {
    let live = ground.live();
    let layers = [live.file.health.probe.as_ref(), server.file().health.probe.as_ref()];
    let layers: Vec<&ProbeFile> = layers.into_iter().flatten().collect();
    ProbeFile::resolve(&layers)
}

/// The first connection, and the lists it brings.
async fn first_look(server: &Rc<Server>, ground: &Rc<Ground>, home: &Rc<Link>) -> Found {
    let found = revive(server, home).await;
    if found.is_ok() {
        server.lists_known(home, &home.hello).await;
    }
    server.contact.set(if found.is_ok() { Contact::Reached } else { Contact::Failed });
    if let Some(hub) = ground.hub() {
        hub.wake();
    }
    found
}

/// Makes the connection if it is not there, without asking the core.
async fn revive(server: &Rc<Server>, link: &Rc<Link>) -> Found {
    let closed = Failure::of(Cause::Closing, OutcomeKind::Cancelled);
    let want = link.machine.borrow_mut().want();
    let generation = match want {
        Want::Use(_) => return Ok(()),
        Want::Closed => return Err(closed),
        Want::Wait(generation) => generation,
        Want::Connect(generation) => {
            link.connect(generation);
            generation
        }
    };
    let limit = server.initialize_within();
    let within = Duration::from_millis(limit.0);
    match tokio::time::timeout(within, link.settled(generation)).await {
        Ok(None) if link.machine.borrow().state() == LinkState::Ready => Ok(()),
        Ok(None) => Err(closed),
        Ok(Some(failure)) => Err(failure),
        Err(_) => Err(Failure::of(Cause::TimedOut(limit), OutcomeKind::Timeout)),
    }
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

async fn probe_over(server: &Rc<Server>, link: &Rc<Link>) -> Found {
    if link.conversation().is_none() {
        revive(server, link).await?;
    }
    let broken = Failure::of(Cause::ConnectionBroken, OutcomeKind::Transport);
    let Some(talk) = link.conversation() else { return Err(broken) };
    let limit = server.call_timeout;
    let (method, voice) = (link.ping(), Voice::of(&link.hello));
    let reply = talk.ask(method, Params::default(), voice, limit).await;
    let failure = match link.doubted(reply, talk.era()) {
        Reply::Answer(Ok(_)) => return Ok(()),
        Reply::Answer(Err(error)) if talk.is_stateless() || is_session_lost(&error) => {
            Failure::session_lost()
        }
        // A server with sessions need not know `ping`.
        Reply::Answer(Err(error)) if is_unknown(&error) => return Ok(()),
        Reply::Answer(Err(_)) => {
            return Err(Failure::of(Cause::Malformed, OutcomeKind::ServerError));
        }
        Reply::Failed(failure) => failure,
    };
    if failure.ends_conversation()
        && let Some(generation) = link.generation_of(&talk)
    {
        link.lost(generation);
        if failure.is_session_loss {
            // A session that the server forgot is no fault by itself.
            return revive(server, link).await;
        }
    }
    Err(failure)
}

fn is_session_lost(error: &[u8]) -> bool {
    let error = read_error(error);
    let meaning = health::of_answer(error.as_ref().map(|it| (it.code, it.message.as_str())));
    meaning == health::Reply::SessionLost
}

fn is_unknown(error: &[u8]) -> bool {
    read_error(error).is_some_and(|error| error.code == METHOD_NOT_FOUND)
}

/// What the core is told of a probe. A program that is not started again for a while has failed,
/// although nobody was asked; what we lack ourselves says nothing about a server.
fn outcome_of(found: &Found) -> Outcome {
    match found {
        Ok(()) => Outcome::unanswered(OutcomeKind::Success),
        Err(Failure {
            cause: Cause::ProcessExited | Cause::CannotStart | Cause::CrashLoop,
            ..
        }) => Outcome::unanswered(OutcomeKind::Transport),
        Err(failure) => failure.told(),
    }
}

fn learn(server: &Server, ground: &Ground, found: Found) {
    let live = ground.live();
    let id = backend_id(&server.name);
    let now = ground.now();
    let (passed, outcome) = (found.is_ok(), outcome_of(&found));
    // The next probe has ended by then, whichever phase it is in.
    let ProbeSettings { every, timeout, .. } = settings(server, ground);
    let next_in = Millis(every.0.saturating_add(timeout.0).saturating_add(LOOK_EVERY.0));
    ground.with_notes(|notes| live.core.server_probed(now, &id, &outcome, next_in, notes));
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

//! Probes: the requests the gateway makes by itself to learn whether a provider can be reached.
//!
//! ```text
//!   schedule.rs  who is due?        (pure; the core's ProbeClock per provider)
//!   this file    one loop per gateway: follow the config, start what is due, hear what ended
//!   ask.rs       one probe          (a GET; any HTTP answer counts)
//! ```
//!
//! Rules kept here:
//! - Every probe is a task of its own. One that hangs, fails or panics delays nothing and ends
//!   nothing; what a panic would have found out stays unknown.
//! - A reload is followed within `LOOK_EVERY`: an unchanged provider keeps its phase, a new or
//!   changed one is probed at once, and what is under way for one that is gone is called off, so
//!   that no result reaches an endpoint it is not about.
//! - Starting twice and stopping twice are harmless. After `stop` nothing more is started, and
//!   what is under way is called off.
//!
//! Left to others: what a result means (the core), probes of MCP servers.

use tidegate_gateway::{metrics::ProbeResult, provider::Target, worker::Worker};
use tidegate_runtime::{rng, task};

mod ask;
mod schedule;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{
    probe::ProbeOutcome,
    time::{Millis, Now},
};
use tokio::sync::oneshot;
use tokio::task::{Id, JoinError, JoinSet};

use self::schedule::Schedule;

pub use self::ask::{ProbeReply, Silence, ask, status_of};

/// How late a reload may be noticed.
const LOOK_EVERY: Millis = Millis(500);

/// The background probes of one gateway.
#[derive(Debug)]
pub(crate) struct Probes {
    worker: Rc<Worker>,
    /// Dropping it stops the loop.
    running: RefCell<Option<oneshot::Sender<()>>>,
}

impl Probes {
    /// Probes that are under way from now on.
    pub(crate) fn start(worker: &Rc<Worker>) -> Self {
        let probes = Self { worker: Rc::clone(worker), running: RefCell::default() };
        probes.resume();
        probes
    }

    /// Starts again after a stop; without one, nothing happens.
    pub(crate) fn resume(&self) {
        let mut running = self.running.borrow_mut();
        if running.is_some() {
            return;
        }
        let (sender, stopped) = oneshot::channel::<()>();
        *running = Some(sender);
        let worker = Rc::clone(&self.worker);
        task::spawn("probes", async move {
            let clock = worker.gateway.clock;
            tokio::select! {
                // First, so that nothing is started between the stop and its being noticed.
                biased;
                _ = stopped => {}
                () = run(&worker, move || clock.now(), ask) => {}
            }
        });
    }

    /// Ends the loop and calls off what is under way.
    pub(crate) fn stop(&self) {
        self.running.borrow_mut().take();
    }
}

/// Probes whatever is due, for ever. The time and the asking are arguments, for tests.
async fn run<F>(
    worker: &Rc<Worker>,
    now: impl Fn() -> Now,
    ask: impl Fn(Rc<Worker>, Arc<Target>) -> F,
) where
    F: Future<Output = ProbeReply> + 'static,
{
    let mut schedule = Schedule::default();
    let mut under_way = JoinSet::new();
    loop {
        let live = worker.gateway.live.load_full();
        schedule.follow(&live, now(), rng::draw);
        for target in schedule.due(now(), |provider| live.core.contact(provider)) {
            let within = Duration::from_millis(target.provider.probe.timeout.0);
            let asking = ask(Rc::clone(worker), Arc::clone(&target));
            let handle = under_way.spawn_local(async move {
                tokio::time::timeout(within, asking).await.unwrap_or(ProbeReply::Nothing)
            });
            schedule.started(&target.provider.name, handle);
        }
        let wait = schedule.next_due().map_or(LOOK_EVERY, |due| due.since(now()).min(LOOK_EVERY));
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(wait.0.max(1))) => {}
            Some(ended) = under_way.join_next_with_id() => {
                hear(worker, now(), &mut schedule, ended);
            }
        }
    }
}

/// A probe ended: the core learns of it, unless it is not known what it found.
fn hear(
    worker: &Worker,
    now: Now,
    schedule: &mut Schedule,
    ended: Result<(Id, ProbeReply), JoinError>,
) {
    let (id, reply) = match ended {
        Ok((id, reply)) => (id, Some(reply)),
        Err(error) => {
            if error.is_panic() {
                tracing::error!("a probe panicked");
            }
            (error.id(), None)
        }
    };
    // A probe that was called off is nobody's any more.
    let Some(target) = schedule.ended(id) else { return };
    if let Some(reply) = reply {
        learn(worker, now, &target, reply);
    }
}

/// Hands a probe's result to the core and counts it.
pub(crate) fn learn(worker: &Worker, now: Now, target: &Target, reply: ProbeReply) {
    let provider = &target.provider;
    let (result, outcome) = match reply {
        ProbeReply::Answer(status) => {
            (ProbeResult::Passed, ProbeOutcome::Answered(status.as_u16()))
        }
        ProbeReply::Nothing => (ProbeResult::Failed, ProbeOutcome::Unanswered),
        // It never got as far as the provider.
        ProbeReply::OwnShortage => return,
    };
    worker.gateway.metrics.probed(&provider.name, result);
    let live = worker.gateway.live.load();
    let (name, heals) = (&provider.name, provider.probe.heals);
    worker.with_notes(|notes| live.core.endpoint_probed(now, name, outcome, heals, notes));
    let status = match outcome {
        ProbeOutcome::Answered(status) => Some(status),
        ProbeOutcome::Unanswered => None,
    };
    worker.gateway.journal.probed(now, name, status);
}

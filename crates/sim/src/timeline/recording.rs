//! A recording: the requests of a gateway with all that an exact replay needs, in the world of a
//! config.
//!
//! What makes a replay exact: the moments at which the core was asked and told, their order, the
//! draws, the outcomes, and the seed of the jitter. With them the core goes through the same states
//! and makes the same choices. Under another config a request may be sent where it was not sent
//! before; what would have happened there is taken from what the backend did to the same request,
//! else from the script that was made from all its attempts.

mod read;

use tidegate_core::{
    commit::CommitCause,
    outcome::Outcome,
    route::Needs,
    settings::{MemberSettings, Membership, RouteSettings},
    time::{Millis, Now},
};

use super::plot::TimelineWorld;

pub(super) use read::read;

/// What a gateway recorded.
#[derive(Clone, Debug)]
pub(super) struct Recording {
    pub(super) jitter_seed: Option<u64>,
    pub(super) start: Vec<StartState>,
    pub(super) arrivals: Vec<RecordedRequest>,
    /// `None`: probes are simulated.
    pub(super) probes: Option<Vec<RecordedProbe>>,
    pub(super) actions: Vec<RecordedAction>,
    /// Sessions of all routes: the caller and the name.
    pub(super) sessions: Vec<(String, String)>,
    /// What the reader should know of it.
    pub(super) notes: Vec<String>,
}

/// A state at the beginning.
#[derive(Clone, Debug)]
pub(super) struct StartState {
    pub(super) backend: String,
    pub(super) state: String,
    pub(super) until: Option<Now>,
}

/// A request.
#[derive(Clone, Debug)]
pub(super) struct RecordedRequest {
    pub(super) id: String,
    pub(super) at: Now,
    /// Its route, as it was recorded.
    pub(super) route_name: String,
    /// Its route in this world.
    pub(super) route: usize,
    /// The index of its session; `u32::MAX` = none.
    pub(super) session: u32,
    pub(super) is_stream: bool,
    pub(super) patience: Option<Millis>,
    pub(super) deadline: Option<Millis>,
    pub(super) needs: Needs,
    pub(super) attempts: Vec<RecordedAttempt>,
    pub(super) end: String,
    pub(super) status: u16,
    pub(super) tokens: Option<u64>,
}

/// A moment, and its place among those of the same millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment {
    pub(super) at: Now,
    pub(super) n: u64,
}

/// One attempt.
#[derive(Clone, Debug)]
pub(super) struct RecordedAttempt {
    pub(super) backend: String,
    pub(super) chosen: Moment,
    pub(super) draw: u64,
    pub(super) head: Option<Moment>,
    pub(super) released: Option<Moment>,
    pub(super) committed: Option<CommitCause>,
    pub(super) first_content: Option<Millis>,
    pub(super) ended: Moment,
    pub(super) outcome: Outcome,
    pub(super) is_left: bool,
    /// How it was chosen, as a line of the decision.
    pub(super) line: String,
}

/// A probe that ended.
#[derive(Clone, Debug)]
pub(super) struct RecordedProbe {
    pub(super) at: Moment,
    pub(super) provider: String,
    pub(super) status: Option<u16>,
}

/// What an operator did.
#[derive(Clone, Debug)]
pub(super) struct RecordedAction {
    pub(super) at: Now,
    pub(super) deed: String,
    pub(super) backend: String,
    pub(super) until: Option<Now>,
}

/// What the name of a route begins with where a client named a target.
pub(super) const DIRECT: &str = "direct:";

impl Recording {
    /// The same recording in another world: each request finds its route there, by name. A route
    /// for each target that clients named is added.
    pub(super) fn resolved(&self, world: &mut TimelineWorld) -> Self {
        let mut recording = self.clone();
        recording.notes.clear();
        for request in &mut recording.arrivals {
            let name = &request.route_name;
            let found = world.settings.routes.iter().position(|it| it.name == *name);
            let found = found.or_else(|| add_direct(world, name));
            request.route = found.unwrap_or_else(|| {
                let note =
                    format!("route {name} is not in this config: its requests go to the default");
                if !recording.notes.contains(&note) {
                    recording.notes.push(note);
                }
                world.route
            });
            if request.route != world.route && !world.more_routes.contains(&request.route) {
                world.more_routes.push(request.route);
            }
        }
        // The first route that is asked for is the one that is shown first.
        if let Some(first) = recording.arrivals.first().map(|it| it.route)
            && !recording.arrivals.iter().any(|it| it.route == world.route)
        {
            world.route = first;
            world.more_routes.retain(|it| *it != first);
        }
        recording
    }

    /// Tokens of requests that were answered, as far as answers told.
    pub(super) fn has_tokens(&self) -> bool {
        self.arrivals.iter().any(|it| it.tokens.is_some())
    }
}

/// The route of one target, as the gateway makes it.
fn add_direct(world: &mut TimelineWorld, name: &str) -> Option<usize> {
    let id = name.strip_prefix(DIRECT)?;
    let backend = world.settings.backends.iter().position(|it| it.id == id)?;
    let member = MemberSettings { backend, weight: 1, membership: Membership::Active };
    world.settings.routes.push(RouteSettings {
        name: name.to_owned(),
        tiers: vec![vec![member]],
        affinity_ttl: Millis::ZERO,
        ..RouteSettings::default()
    });
    Some(world.settings.routes.len() - 1)
}

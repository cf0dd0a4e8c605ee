//! A plot: a timeline that was found sound, with everything a run needs and nothing left open.

use std::sync::Arc;

use tidegate_config::file::Timeouts;
use tidegate_core::{
    probe::ProbeSettings,
    route::Needs,
    settings::Settings,
    time::{Millis, Now},
};

use super::{recording::Recording, script::Script};
use crate::form::Origin;

/// Everything a run needs.
#[derive(Clone, Debug)]
pub(super) struct Plot {
    pub(super) name: String,
    pub(super) about: String,
    pub(super) origin: Origin,
    /// The config file of `-c`, for the replay line.
    pub(super) config: Option<String>,
    /// What the reader should know about who plays whom.
    pub(super) casting: Vec<String>,
    pub(super) lasts: Millis,
    pub(super) traffic: Traffic,
    /// `None`: one gateway alone.
    pub(super) fleet: Option<Fleet>,
    pub(super) world: TimelineWorld,
    pub(super) wants: Vec<Want>,
    /// The requests, where they were recorded.
    pub(super) recording: Option<Arc<Recording>>,
}

/// Who asks, and how often.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Traffic {
    /// Requests per millisecond.
    pub(super) rate: f64,
    pub(super) is_even: bool,
    pub(super) sessions: u32,
    pub(super) stream: f64,
    pub(super) clients_retry: u8,
    /// How long a client waits for the first byte; absent: it does not say.
    pub(super) patience: Option<Millis>,
    /// What each request needs of a target.
    pub(super) needs: Needs,
}

/// Several replicas of the gateway, and what lies between them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fleet {
    pub(super) replicas: u32,
    /// Whether all requests of a session reach the same replica.
    pub(super) is_by_session: bool,
    pub(super) delay: Millis,
    pub(super) loss: f64,
    pub(super) cuts: Vec<Cut>,
}

/// A replica, counted from 0, is cut off from a moment (included) to a moment (excluded).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) replica: u32,
    pub(super) from: Now,
    pub(super) to: Now,
}

/// The core's settings, and what stands behind each backend.
#[derive(Clone, Debug)]
pub(super) struct TimelineWorld {
    pub(super) settings: Settings,
    /// The index of the route that all requests ask for.
    pub(super) route: usize,
    /// Further routes, that recorded requests ask for.
    pub(super) more_routes: Vec<usize>,
    /// By backend.
    pub(super) scripts: Vec<Script>,
    /// By backend.
    pub(super) timeouts: Vec<Timeouts>,
    /// By endpoint.
    pub(super) probes: Vec<ProbeSettings>,
}

impl TimelineWorld {
    /// The backends of the routes in tier order, each with its tier, each once.
    pub(super) fn cast(&self) -> Vec<(usize, usize)> {
        let mut cast: Vec<(usize, usize)> = self.members(self.route);
        for (backend, tier) in self.more_routes.iter().flat_map(|&it| self.members(it)) {
            if !cast.iter().any(|(known, _)| *known == backend) {
                cast.push((backend, tier));
            }
        }
        cast
    }

    /// The backends of a route in tier order, each with its tier.
    pub(super) fn members(&self, route: usize) -> Vec<(usize, usize)> {
        let tiers = self.settings.routes[route].tiers.iter().enumerate();
        tiers.flat_map(|(tier, members)| members.iter().map(move |it| (it.backend, tier))).collect()
    }

    /// The backends of an endpoint.
    pub(super) fn behind(&self, endpoint: usize) -> impl Iterator<Item = usize> + Clone + '_ {
        let backends = self.settings.backends.iter().enumerate();
        backends.filter(move |(_, it)| it.endpoint == Some(endpoint)).map(|(index, _)| index)
    }
}

/// What is wanted. Backends are indices into the settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Want {
    ClientFailures { max: u64 },
    Opens { backend: usize, span: Span },
    OpensAtMost { backend: usize, max: u64 },
    Closes { backend: usize, span: Span },
    Amplification { max: f64 },
    Share { backend: usize, between: Shares },
    FirstShare { backend: usize, between: Shares },
    Hops { max: u64 },
    LastResorts { max: u64 },
    SessionsMoved { max: u64 },
    WaitP95 { max: Millis },
    WaitMax { max: Millis },
    Hits { backend: usize, span: Span, min: u64, max: u64 },
    HealthyAtEnd { backend: usize },
}

/// From a moment (included) to a moment (excluded).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) after: Now,
    pub(super) before: Now,
}

impl Span {
    pub(super) fn has(self, at: Now) -> bool {
        (self.after..self.before).contains(&at)
    }
}

/// Bounds of a share, both included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Shares {
    pub(super) min: f64,
    pub(super) max: f64,
}

impl Want {
    /// The backend it is about.
    pub(super) const fn backend(&self) -> Option<usize> {
        match *self {
            Self::Opens { backend, .. }
            | Self::OpensAtMost { backend, .. }
            | Self::Closes { backend, .. }
            | Self::Share { backend, .. }
            | Self::FirstShare { backend, .. }
            | Self::Hits { backend, .. }
            | Self::HealthyAtEnd { backend } => Some(backend),
            Self::ClientFailures { .. }
            | Self::Amplification { .. }
            | Self::Hops { .. }
            | Self::LastResorts { .. }
            | Self::SessionsMoved { .. }
            | Self::WaitP95 { .. }
            | Self::WaitMax { .. } => None,
        }
    }

    /// The same about another backend.
    pub(super) fn about(mut self, other: usize) -> Self {
        match &mut self {
            Self::Opens { backend, .. }
            | Self::OpensAtMost { backend, .. }
            | Self::Closes { backend, .. }
            | Self::Share { backend, .. }
            | Self::FirstShare { backend, .. }
            | Self::Hits { backend, .. }
            | Self::HealthyAtEnd { backend } => *backend = other,
            Self::ClientFailures { .. }
            | Self::Amplification { .. }
            | Self::Hops { .. }
            | Self::LastResorts { .. }
            | Self::SessionsMoved { .. }
            | Self::WaitP95 { .. }
            | Self::WaitMax { .. } => {}
        }
        self
    }
}

impl Plot {
    /// How many replicas of the gateway there are.
    pub(super) fn replicas(&self) -> usize {
        self.fleet.as_ref().map_or(1, |it| it.replicas as usize)
    }

    /// The same story in the world of a config: the first script is played by the first target of
    /// its route, in tier order, and so on. Who has no counterpart is left out.
    pub(super) fn recast(&self, config: &str, mut world: TimelineWorld) -> Self {
        if let Some(recording) = &self.recording {
            return self.recast_recorded(recording, config, world);
        }
        let new_cast = world.cast();
        let part = |backend: usize| new_cast.get(backend).map(|(backend, _)| *backend);
        let mut casting = Vec::new();
        for (role, script) in self.world.scripts.iter().enumerate() {
            let name = &self.world.settings.backends[role].id;
            match part(role) {
                Some(backend) => {
                    let player = &world.settings.backends[backend].id;
                    casting.push(format!("{player} plays {name}"));
                    world.scripts[backend] = script.clone();
                }
                None => casting.push(format!("nobody plays {name}")),
            }
        }
        let recast = |want: &Want| match want.backend() {
            None => Some(*want),
            Some(role) => part(role).map(|backend| want.about(backend)),
        };
        let wants = self.wants.iter().filter_map(recast).collect();
        Self { config: Some(config.to_owned()), casting, world, wants, ..self.clone() }
    }

    /// A recording in the world of a config: backends and routes are those of the same name.
    fn recast_recorded(
        &self,
        recording: &Recording,
        config: &str,
        mut world: TimelineWorld,
    ) -> Self {
        let mut casting = Vec::new();
        let mut known = vec![false; world.settings.backends.len()];
        for (old, script) in self.world.scripts.iter().enumerate() {
            let id = &self.world.settings.backends[old].id;
            match world.settings.backends.iter().position(|it| it.id == *id) {
                Some(new) => {
                    world.scripts[new] = script.clone();
                    known[new] = true;
                }
                None => casting.push(format!("{id} is not in this config")),
            }
        }
        let recording = recording.resolved(&mut world);
        for (backend, _) in world.cast().into_iter().filter(|(backend, _)| !known[*backend]) {
            let id = &world.settings.backends[backend].id;
            casting.push(format!("{id} was not in the record: it is taken to answer well"));
        }
        casting.extend(recording.notes.iter().cloned());
        let recording = Some(Arc::new(recording));
        let config = Some(config.to_owned());
        Self { config, casting, world, wants: Vec::new(), recording, ..self.clone() }
    }
}

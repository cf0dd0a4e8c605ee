//! A plot: a timeline that was found sound, with everything a run needs and nothing left open.

use tidegate_config::file::Timeouts;
use tidegate_core::{
    probe::ProbeSettings,
    settings::Settings,
    time::{Millis, Now},
};

use super::script::Script;
use crate::scenario::Origin;

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
    pub(super) world: TimelineWorld,
    pub(super) wants: Vec<Want>,
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
}

/// The core's settings, and what stands behind each backend.
#[derive(Clone, Debug)]
pub(super) struct TimelineWorld {
    pub(super) settings: Settings,
    /// The index of the route that all requests ask for.
    pub(super) route: usize,
    /// By backend.
    pub(super) scripts: Vec<Script>,
    /// By backend.
    pub(super) timeouts: Vec<Timeouts>,
    /// By endpoint.
    pub(super) probes: Vec<ProbeSettings>,
}

impl TimelineWorld {
    /// The route's backends in tier order, each with its tier.
    pub(super) fn cast(&self) -> Vec<(usize, usize)> {
        let tiers = self.settings.routes[self.route].tiers.iter().enumerate();
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
    HealthyAtEnd { backend: usize },
}

/// From a moment (included) to a moment (excluded).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) after: Now,
    pub(super) before: Now,
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
    /// The same story in the world of a config: the first script is played by the first target of
    /// its route, in tier order, and so on. Who has no counterpart is left out.
    pub(super) fn recast(&self, config: &str, mut world: TimelineWorld) -> Self {
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
}

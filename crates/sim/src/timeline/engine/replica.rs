//! One replica of the gateway: a core of its own, and what is known of it from outside.

use std::sync::Arc;

use tidegate_core::{
    core::Core,
    names::{FleetSettings, HashKey, ReplicaId},
    probe::ProbeClock,
    route::Route,
    settings::Settings,
    time::Now,
};

use super::{IdleConnections, conversions};
use crate::{audit::Auditor, rng::Rng, timeline::plot::Plot};

pub(super) struct Replica {
    pub(super) core: Core,
    pub(super) route: Arc<Route>,
    /// The routes that requests ask for: that one, and further ones of a recording.
    pub(super) routes: Vec<Arc<Route>>,
    /// The phase that each backend is in, as this replica sees it.
    pub(super) phases: Vec<usize>,
    pub(super) connections: Vec<IdleConnections>,
    /// Deadlines of the breakers, those of the backends first; `None` = closed.
    pub(super) open_until: Vec<Option<Now>>,
    pub(super) probes: Vec<ProbeClock>,
    pub(super) auditor: Option<Auditor>,
}

/// All replicas of a simulated fleet have one secret.
const SECRET: HashKey = HashKey(*b"of one fleet all");

impl Replica {
    /// The replica of this number, from 0.
    pub(super) fn new(plot: &Plot, number: usize, streams: &mut Rng, audit: bool) -> Self {
        let world = &plot.world;
        let fleet = plot.fleet.is_some().then(|| FleetSettings {
            replica: ReplicaId(number as u128 + 1),
            hash_keys: vec![SECRET],
        });
        let mut settings = Settings { fleet, ..world.settings.clone() };
        conversions::fit(&mut settings, &plot.traffic.needs);
        let seed = streams.draw();
        let recorded = plot.recording.as_deref();
        let jitter = recorded.and_then(|it| it.jitter_seed).unwrap_or(seed);
        let core = Core::with_jitter(&settings, seed, jitter);
        let route = Arc::clone(&core.routes()[world.route]);
        let asked = [world.route].into_iter().chain(world.more_routes.iter().copied());
        let routes = asked.map(|it| Arc::clone(&core.routes()[it])).collect();
        // The auditor follows one route from the beginning of everything.
        let audit = audit && recorded.is_none();
        let (backends, endpoints) = (settings.backends.len(), settings.endpoints.len());
        let mut probe = |settings| ProbeClock::new(settings, streams.draw(), Now::ZERO);
        Self {
            core,
            route,
            routes,
            phases: vec![0; backends],
            connections: vec![IdleConnections::default(); backends],
            open_until: vec![None; backends + endpoints],
            probes: world.probes.iter().map(|it| probe(*it)).collect(),
            auditor: audit.then(|| Auditor::new(&settings, world.route)),
        }
    }
}

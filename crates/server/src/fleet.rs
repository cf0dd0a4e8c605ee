//! This gateway as one replica of its fleet: what it is started with, and its ears.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tidegate_core::{
    hint::{Fact, Heard, Hint},
    names::PinKey,
};
use tidegate_fleet::{
    fleet::{Ears, Fleet, FleetStart},
    identity::{Identity, host_name},
};
use tidegate_gateway::{fleet_names::shared_sha, gateway::Gateway, worker::Worker};

/// A session's record outlives its session by this, for an owner that renews it late.
const SESSION_MARGIN: Duration = Duration::from_secs(5 * 60);

/// Makes a gateway one of its fleet, if its config says so; others reach it at this port, if any.
pub(crate) fn join(gateway: &Gateway, peer_port: Option<u16>) -> Option<Arc<Fleet>> {
    let live = gateway.live.load();
    let state = live.file.state.as_ref()?;
    let (member, url) = live.member.as_ref().zip(live.store.as_ref())?;
    let replica = Some(&state.replica).filter(|name| !name.is_empty()).cloned();
    let idle = Duration::from_millis(live.file.mcp.session.idle.millis().0);
    let fleet = Fleet::new(FleetStart {
        url: url.clone(),
        secrets: Arc::clone(&member.secrets),
        fleet: state.fleet.clone(),
        identity: Identity {
            instance: member.instance,
            replica: replica.unwrap_or_else(host_name),
            peer_url: state.peer_url.clone().filter(|_| state.peer_listen.is_some()),
        },
        peer_port,
        timeout: Duration::from_millis(state.timeout.millis().0),
        session_ttl: idle.saturating_add(SESSION_MARGIN),
        clock: gateway.clock,
        version: env!("CARGO_PKG_VERSION"),
    });
    gateway.metrics.join(Arc::clone(&fleet));
    drop(gateway.fleet.set(Arc::clone(&fleet)));
    Some(fleet)
}

/// What goes between the fleet's thread and the core.
struct GatewayEars {
    worker: Worker,
    /// What the config is called among replicas, by what it is called here.
    shared_sha: RefCell<(String, String)>,
}

/// The ears of a gateway.
pub(crate) fn ears(gateway: Arc<Gateway>) -> Rc<dyn Ears> {
    Rc::new(GatewayEars { worker: Worker::new(gateway), shared_sha: RefCell::default() })
}

impl Ears for GatewayEars {
    fn hear(&self, hint: &Hint) -> Heard {
        let gateway = &self.worker.gateway;
        let (live, now) = (gateway.live.load(), gateway.now());
        let heard = self.worker.with_notes(|notes| live.core.hear(now, hint, notes));
        if heard == Heard::Taken && !matches!(hint.fact, Fact::Pin { .. }) {
            // A server's probe may come forward, or an operator's action ended.
            gateway.changed.notify_one();
        }
        heard
    }

    fn holdings(&self) -> Vec<Hint> {
        let gateway = &self.worker.gateway;
        gateway.live.load().core.holdings(gateway.now())
    }

    fn held_pins(&self, after: Option<PinKey>, max: usize) -> (Vec<Hint>, Option<PinKey>) {
        let gateway = &self.worker.gateway;
        gateway.live.load().core.held_pins(gateway.now(), after, max)
    }

    fn config_sha(&self) -> String {
        let live = self.worker.gateway.live.load();
        let mut known = self.shared_sha.borrow_mut();
        if known.0 != live.fingerprint {
            *known = (live.fingerprint.clone(), shared_sha(&live.file));
        }
        known.1.clone()
    }
}

//! The thread beside the data plane: admin listener, probes, and a sweep of old pins.

use std::net::TcpListener;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tidegate_config::secret::Environment;
use tidegate_gateway::{gateway::Gateway, worker::Worker};
use tidegate_runtime::{
    phase::{Phase, reached},
    task,
};
use tokio::sync::watch;

use crate::{
    admin::{self, Admin, ProbeServer},
    certificate_watch,
    probe::Probes,
};

/// Expired pins are dropped when they are met, and the others this often.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// Runs the thread until the gateway ends.
pub async fn run(
    gateway: Arc<Gateway>,
    listener: TcpListener,
    probe_server: ProbeServer,
    environment: Arc<dyn Environment + Send + Sync>,
    phase: watch::Receiver<Phase>,
) {
    let worker = Rc::new(Worker::new(Arc::clone(&gateway)));
    let probes = Probes::start(&worker);
    task::spawn("sweep", sweep(Arc::clone(&gateway)));
    let watched = certificate_watch::watch(Arc::clone(&gateway), Arc::clone(&environment));
    task::spawn("watch of certificates", watched);
    let probing = async {
        reached(phase.clone(), Phase::Draining).await;
        probes.stop();
    };
    let serving =
        admin::serve(Admin { worker, environment, probe_server }, listener, phase.clone());
    let ((), served) = tokio::join!(probing, serving);
    if let Err(error) = served {
        tracing::error!(%error, "the admin listener ended");
    }
}

async fn sweep(gateway: Arc<Gateway>) {
    loop {
        tokio::time::sleep(SWEEP_EVERY).await;
        gateway.live.load().core.sweep(gateway.now());
    }
}

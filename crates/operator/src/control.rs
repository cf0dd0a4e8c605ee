//! The thread beside the data plane: admin listener, probes, a sweep of old pins, and the regular
//! work for records.

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

/// Decisions wait no longer than this for the files and the collector they go to, so that little is
/// lost if the process is killed.
const COLLECT_EVERY: Duration = Duration::from_secs(1);

/// Metrics are exported this often, as Prometheus would ask for them.
const EXPORT_EVERY: u32 = 15;

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
    task::spawn("records", records(Arc::clone(&gateway)));
    let watched = certificate_watch::watch(Arc::clone(&gateway), Arc::clone(&environment));
    task::spawn("watch of certificates", watched);
    let probing = async {
        reached(phase.clone(), Phase::Draining).await;
        probes.stop();
    };
    let serving =
        admin::serve(Admin::new(worker, environment, probe_server, phase.clone()), listener);
    let ((), served) = tokio::join!(probing, serving);
    if let Err(error) = served {
        tracing::error!(%error, "the admin listener ended");
    }
}

async fn records(gateway: Arc<Gateway>) {
    loop {
        for _ in 0..EXPORT_EVERY {
            tokio::time::sleep(COLLECT_EVERY).await;
            gateway.journal.collect();
        }
        gateway.count_dropped();
        gateway.export_metrics();
    }
}

async fn sweep(gateway: Arc<Gateway>) {
    loop {
        tokio::time::sleep(SWEEP_EVERY).await;
        gateway.live.load().core.sweep(gateway.now());
    }
}

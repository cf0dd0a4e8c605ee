//! A replica without a gateway: the thread of its fleet only, and ears that a test gives it.

use std::future::Future;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate_config::store_url::StoreUrl;
use tidegate_core::{
    hint::{Fact, Heard, Hint},
    names::PinKey,
};
use tidegate_fleet::{
    connection,
    fleet::{Ears, Fleet, FleetStart},
    identity::{Identity, InstanceId},
    seal::FleetSecrets,
};
use tidegate_runtime::{clock::Clock, phase::Phase};
use tidegate_testkit::time::eventually;
use tokio::sync::watch;

use crate::bed::SECRET;
use crate::store::Store;

/// Ears that remember the versions of the pins that they hear of, and hold nothing.
#[derive(Clone, Default)]
pub(crate) struct VersionEars(Arc<Mutex<Vec<u64>>>);

impl VersionEars {
    pub(crate) fn heard(&self) -> Vec<u64> {
        self.0.lock().expect("not poisoned").clone()
    }
}

impl Ears for VersionEars {
    fn hear(&self, hint: &Hint) -> Heard {
        if let Fact::Pin { .. } = hint.fact {
            self.0.lock().expect("not poisoned").push(hint.stamp.version);
        }
        Heard::Taken
    }
    fn holdings(&self) -> Vec<Hint> {
        Vec::new()
    }
    fn held_pins(&self, _: Option<PinKey>, _: usize) -> (Vec<Hint>, Option<PinKey>) {
        (Vec::new(), None)
    }
    fn config_sha(&self) -> String {
        "test".to_owned()
    }
}

pub(crate) struct BareReplica {
    pub(crate) fleet: Arc<Fleet>,
    phase: watch::Sender<Phase>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl BareReplica {
    /// One that has reached the store.
    pub(crate) fn start(store: &Store, name: &str, ears: impl Ears + Send + 'static) -> Self {
        Self::start_at(&[&store.url()], name, ears)
    }

    /// One that has reached the store by these urls.
    pub(crate) fn start_at(urls: &[&str], name: &str, ears: impl Ears + Send + 'static) -> Self {
        let instance = InstanceId::draw().expect("random numbers");
        let fleet = Fleet::new(FleetStart {
            url: StoreUrl::parse(urls.iter().copied()).expect("a url"),
            secrets: Arc::new(FleetSecrets::new("prod", [SECRET]).expect("keys")),
            fleet: "prod".to_owned(),
            identity: Identity { instance, replica: name.to_owned(), peer_url: None },
            peer_port: None,
            timeout: Duration::from_secs(2),
            session_ttl: Duration::from_secs(60),
            clock: Clock::start(),
            version: "test",
        });
        let (phase, watched) = watch::channel(Phase::Serving);
        let shared = Arc::clone(&fleet);
        let thread = std::thread::spawn(move || {
            let run = connection::run(shared, Rc::new(ears), watched);
            wait_for(tokio::task::LocalSet::new().run_until(run));
        });
        eventually("the store is there", || fleet.stats().is_up());
        Self { fleet, phase, thread: Some(thread) }
    }
}

impl Drop for BareReplica {
    fn drop(&mut self) {
        self.phase.send_replace(Phase::Stopped);
        self.thread.take().map(std::thread::JoinHandle::join);
    }
}

/// Runs a future to its end, on a runtime of its own.
pub(crate) fn wait_for<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

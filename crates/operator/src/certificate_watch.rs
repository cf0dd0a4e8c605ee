//! Certificates of the listeners, read again when their files change.
//!
//! Rules kept here:
//! - A change is taken when the files have stood still for one look, so that a certificate and a
//!   key that are replaced one after the other are not taken for a pair.
//! - Connections that stand are not touched. A certificate that cannot be used leaves the old one
//!   in place, and the log says why, once.

use std::sync::Arc;
use std::time::Duration;

use tidegate_config::secret::Environment;
use tidegate_gateway::{certificates::sections, gateway::Gateway, live::Live};
use tidegate_net::connection::{Certificates, TlsProblem, TlsTexts};

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Looks at the files of both listeners for as long as the gateway lives.
pub async fn watch(gateway: Arc<Gateway>, environment: Arc<dyn Environment + Send + Sync>) {
    let mut seen: [Seen; 2] = Default::default();
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let live = gateway.live.load_full();
        if live.file.tls.is_none() && live.file.admin.tls.is_none() {
            continue;
        }
        let (known, files) = (Arc::clone(&live), Arc::clone(&environment));
        let looked = tokio::task::spawn_blocking(move || look(&known, &*files)).await;
        let Ok(looked) = looked else { continue };
        // A config that was swapped in meanwhile has brought its own.
        if !Arc::ptr_eq(&live, &gateway.live.load_full()) {
            continue;
        }
        let listeners = [("data", &gateway.tls.data), ("admin", &gateway.tls.admin)];
        for (((name, presented), seen), found) in listeners.into_iter().zip(&mut seen).zip(looked) {
            if let Some(found) = found {
                seen.take(name, presented, found);
            }
        }
    }
}

/// What the files of a section hold, as far as they can be read.
type ReadTexts = Result<TlsTexts, TlsProblem>;

fn look(live: &Live, environment: &dyn Environment) -> [Option<ReadTexts>; 2] {
    let read = |section| TlsTexts::read(section, &live.folder, environment);
    sections(&live.file).map(|(_, section)| section.map(read))
}

/// What was last seen of a section's files.
#[derive(Debug, Default)]
struct Seen {
    /// A change that has not stood still for a look yet.
    unsettled: Option<Result<[u8; 32], TlsProblem>>,
    /// What was refused, and is not to be told again.
    refused: Option<Result<[u8; 32], TlsProblem>>,
}

impl Seen {
    fn take(&mut self, listener: &'static str, presented: &Certificates, found: ReadTexts) {
        let state = found.as_ref().map(TlsTexts::digest).map_err(Clone::clone);
        let now = presented.get().map(|it| it.digest);
        if state.as_ref().ok() == now.as_ref() {
            *self = Self::default();
            return;
        }
        if self.refused.as_ref() == Some(&state) {
            return;
        }
        if self.unsettled.as_ref() != Some(&state) {
            self.unsettled = Some(state);
            return;
        }
        self.unsettled = None;
        match found.and_then(|texts| texts.presented()) {
            Ok(fresh) => {
                self.refused = None;
                presented.set(Some(fresh));
                tracing::info!(listener, "the certificate was read again");
            }
            Err(TlsProblem { key, reason }) => {
                self.refused = Some(state);
                let why = "a changed certificate cannot be used, and the old one stays";
                tracing::warn!(listener, key, reason, "{why}");
            }
        }
    }
}

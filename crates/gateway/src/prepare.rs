//! From a config's text to what can serve by it, at a start and at a reload.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tidegate_config::{
    Loaded, Overrides, diagnostic::Diagnostic, load_with, secret::Environment, source::Source,
};
use tidegate_core::time::Now;
use tidegate_runtime::rng;

use crate::{certificates, live::Live, private::Private, provider::ProviderError};

/// Why a gateway did not start, or did not take a new config.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The config has errors.
    #[error("the config has errors")]
    Config(Vec<Diagnostic>),
    /// A provider cannot be used as configured.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// An address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        #[source]
        cause: std::io::Error,
    },
    /// A thread cannot be started.
    #[error("cannot start a thread")]
    Thread(#[source] std::io::Error),
}

/// Reads a config and checks it whole.
pub fn prepare(
    source: &Source,
    path: Option<PathBuf>,
    environment: &dyn Environment,
    before: Option<(&Live, Now)>,
) -> Result<(Live, Vec<Diagnostic>), StartError> {
    prepare_for(Asked::default(), source, path, environment, before)
}

/// What stands above the config: the command line, and the client of a private gateway.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked<'a> {
    pub private: Option<&'a Private>,
    pub overrides: Overrides,
}

/// The first bytes of a config's SHA-256: what the banner, the metrics and the API call it by.
#[must_use]
pub fn fingerprint(source: &Source) -> String {
    let digest = Sha256::digest(source.text().as_bytes());
    digest[..4].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The same for a gateway that was asked for something besides its config.
pub fn prepare_for(
    asked: Asked<'_>,
    source: &Source,
    path: Option<PathBuf>,
    environment: &dyn Environment,
    before: Option<(&Live, Now)>,
) -> Result<(Live, Vec<Diagnostic>), StartError> {
    let loaded = load_with(source, environment, asked.overrides);
    let Loaded { config, diagnostics, .. } = loaded;
    let Some(mut config) = config else { return Err(StartError::Config(diagnostics)) };
    if let Some(private) = asked.private {
        private.apply(&mut config.file);
    }
    let fingerprint = fingerprint(source);
    let folder: &Path = source.folder();
    let tls = certificates::read(source, &config.file, environment).map_err(StartError::Config)?;
    let live = Live::new(config, (path, folder), fingerprint, environment, before, rng::seed())?;
    Ok((Live { tls, ..live }, diagnostics))
}

//! The settings that only a start can change.

use tidegate_config::{
    address::Address,
    bytes::ByteSize,
    duration::Duration,
    file::{ConfigFile, StateFile},
};

/// What is decided once, when the gateway starts.
#[derive(Clone, Debug)]
pub struct Fixed {
    listen: Address,
    admin_listen: Address,
    connections: u32,
    headers: ByteSize,
    drain: Duration,
    state: Option<StateFile>,
}

impl Fixed {
    #[must_use]
    pub fn of(file: &ConfigFile) -> Self {
        Self {
            listen: file.listen,
            admin_listen: file.admin.listen,
            connections: file.limits.connections,
            headers: file.limits.headers,
            drain: file.shutdown.drain.clone(),
            state: file.state.clone(),
        }
    }

    /// The keys of a file whose value is not the one in use.
    #[must_use]
    pub fn differing(&self, file: &ConfigFile) -> Vec<&'static str> {
        let differs = [
            ("listen", self.listen != file.listen),
            ("admin.listen", self.admin_listen != file.admin.listen),
            ("limits.connections", self.connections != file.limits.connections),
            ("limits.headers", self.headers.0 != file.limits.headers.0),
            ("shutdown.drain", self.drain != file.shutdown.drain),
            ("state", self.state != file.state),
        ];
        differs.into_iter().filter(|(_, differs)| *differs).map(|(key, _)| key).collect()
    }
}

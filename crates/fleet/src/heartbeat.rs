//! Heartbeats: who is there, with which version and config, and how it is reached.
//!
//! A replica writes its own every three seconds under a key that lives for ten, and reads those of
//! all others for the operator's view. Nothing is decided by them but whether an owner of a session
//! may be gone, which the MCP side asks for.

use serde::{Deserialize, Serialize};
use tidegate_core::time::Now;

use crate::identity::InstanceId;

/// How long a heartbeat stands.
pub(crate) const LIVES_MS: u64 = 10_000;
/// How often it is renewed.
pub(crate) const EVERY_MS: u64 = 3_000;
/// The longest text in one that is shown.
const TEXT_MAX: usize = 256;
/// Replicas that are looked at, at most.
pub(crate) const REPLICAS_MAX: usize = 512;

/// What a replica says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// Its name.
    pub replica: String,
    /// The version of the program.
    pub version: String,
    /// The start of a hash of its config.
    pub config_sha: String,
    /// How other replicas reach it.
    pub peer_url: Option<String>,
    /// When it started, by the store's clock.
    pub started_ms: u64,
    /// When it wrote this, by the store's clock.
    pub told_at_ms: u64,
    /// How long the last entry of the stream took to it.
    pub lag_ms: u64,
    /// How much waits there to be told.
    pub queued: u64,
}

impl Heartbeat {
    pub(crate) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Texts of another replica are cut and cleaned: they are shown in a terminal.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut beat: Self = serde_json::from_slice(bytes).ok()?;
        let clean = |text: &mut String| {
            *text = text.chars().filter(|it| !it.is_control()).take(TEXT_MAX).collect();
        };
        clean(&mut beat.replica);
        clean(&mut beat.version);
        clean(&mut beat.config_sha);
        beat.peer_url.as_mut().map(clean);
        Some(beat)
    }
}

/// The replicas as they were last seen.
#[derive(Clone, Debug, Default)]
pub struct Roster {
    /// Those whose heartbeat opens, by instance.
    pub replicas: Vec<(InstanceId, Heartbeat)>,
    /// How many there are whose heartbeat does not: of another secret, or another version.
    pub foreign: usize,
    /// When this was read; `None` = never.
    pub read_at: Option<Now>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_replica_calls_itself_cannot_write_to_a_terminal() {
        let beat = Heartbeat {
            replica: format!("a\u{1b}[2Jb{}", "x".repeat(1000)),
            version: "1\n2".into(),
            config_sha: "ab".into(),
            peer_url: Some("http://x\r\n".into()),
            started_ms: 1,
            told_at_ms: 2,
            lag_ms: 3,
            queued: 4,
        };
        let read = Heartbeat::decode(&beat.encode()).expect("a heartbeat");
        assert!(read.replica.starts_with("a[2Jb") && read.replica.len() == 256);
        assert_eq!((read.version.as_str(), read.peer_url.as_deref()), ("12", Some("http://x")));
        assert_eq!(Heartbeat::decode(b"{}"), None);
    }
}

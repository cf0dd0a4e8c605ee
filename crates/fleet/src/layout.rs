//! Where things are in the store.
//!
//! | key | what it holds | lives |
//! |---|---|---|
//! | `{tidegate:FLEET}:s:NAME` | the stream of changes, bounded | a day after the last one |
//! | `{tidegate:FLEET}:v:NAME` | one window, exclusion, action or pin | as long as it matters |
//! | `{tidegate:FLEET}:i:NAME`, `:j:NAME` | which of those there are; of pins, `:j:` | a day |
//! | `{tidegate:FLEET}:m:NAME` | the marker: a store without it has lost its data | a day |
//! | `{tidegate:FLEET}:r` | which replicas there are, by when they were last heard | a day |
//! | `{tidegate:FLEET}:b:INSTANCE` | a replica's heartbeat | 10 s |
//! | `tidegate:FLEET:x:NAME` | an MCP session's record | as long as its session |
//!
//! NAME is an HMAC by the fleet's secret. What stands in braces is a Cluster's hash tag: everything
//! but the records of sessions is in one slot.

use std::sync::Arc;

use tidegate_core::hint::{BreakerOf, Excluded, Fact, Lasts, OperatorAction, Subject};

use crate::{
    identity::InstanceId,
    seal::{FleetSecrets, SealedName},
};

/// How long something is kept that no time ends.
pub(crate) const DAY_MS: u64 = 24 * 60 * 60 * 1000;
/// How much longer than its own time a value is kept, for readers whose clock is a little behind.
const MARGIN_MS: u64 = 60_000;

/// The longest that a pin is kept: more than any conversation.
const PIN_MAX_MS: u64 = 30 * DAY_MS;

/// The names of one fleet's keys.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    tag: String,
    sessions: String,
    secrets: Arc<FleetSecrets>,
}

/// The keys of everything there is one of, as one of the fleet's secrets names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoreKeys {
    pub(crate) stream: String,
    pub(crate) index: String,
    pub(crate) pin_index: String,
    pub(crate) marker: String,
}

impl Layout {
    pub(crate) fn new(fleet: &str, secrets: &Arc<FleetSecrets>) -> Self {
        Self {
            tag: format!("{{tidegate:{fleet}}}"),
            sessions: format!("tidegate:{fleet}:x"),
            secrets: Arc::clone(secrets),
        }
    }

    /// One set per secret; the first one is written to, all are read.
    pub(crate) fn store_keys(&self) -> Vec<StoreKeys> {
        let names = |kind| self.secrets.names(kind, &[]);
        let tag = &self.tag;
        names("stream")
            .zip(names("index"))
            .zip(names("pins").zip(names("marker")))
            .map(|((stream, index), (pins, marker))| StoreKeys {
                stream: format!("{tag}:s:{}", stream.0),
                index: format!("{tag}:i:{}", index.0),
                pin_index: format!("{tag}:j:{}", pins.0),
                marker: format!("{tag}:m:{}", marker.0),
            })
            .collect()
    }

    /// The name of what is known of a subject.
    pub(crate) fn value_name(&self, subject: &Subject) -> SealedName {
        self.secrets.name("value", &[&subject_bytes(subject)])
    }

    /// The key of what is known under a name.
    pub(crate) fn value_key(&self, name: &str) -> String {
        format!("{}:v:{name}", self.tag)
    }

    pub(crate) fn replicas(&self) -> String {
        format!("{}:r", self.tag)
    }

    pub(crate) fn heartbeat(&self, instance: InstanceId) -> String {
        format!("{}:b:{instance}", self.tag)
    }

    pub(crate) fn session_key(&self, name: &SealedName) -> String {
        format!("{}:{}", self.sessions, name.0)
    }
}

/// How long a fact is kept.
pub(crate) fn lives_ms(fact: &Fact) -> u64 {
    let span = match fact {
        // Not a moment longer, nor shorter: what has ended must not stand in the way of the next
        // lock, whose version may begin anew.
        Fact::Pin { remaining, .. } => return remaining.0.clamp(1, PIN_MAX_MS),
        Fact::Window { remaining, .. } | Fact::Exclusion { remaining: Some(remaining), .. } => {
            remaining.0
        }
        Fact::Action { lasts: Lasts::For(span), .. } => span.0,
        // An end is kept so that what it ended cannot come back.
        Fact::Exclusion { remaining: None, .. }
        | Fact::Action { lasts: Lasts::UntilEnded | Lasts::Ended, .. } => DAY_MS,
        Fact::Reset { .. } | Fact::Opened { .. } => 0,
    };
    span.min(DAY_MS) + MARGIN_MS
}

/// A subject as bytes that no other subject has.
fn subject_bytes(subject: &Subject) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(40);
    let mut put = |code: u8, parts: &[&[u8]]| {
        bytes.push(code);
        parts.iter().for_each(|part| bytes.extend_from_slice(part));
    };
    match subject {
        Subject::Window { backend, key } => put(1, &[&backend.0, &key.0]),
        Subject::Exclusion(Excluded::Key(key)) => put(2, &[&key.0]),
        Subject::Exclusion(Excluded::Pair { backend, key }) => put(3, &[&backend.0, &key.0]),
        Subject::Exclusion(Excluded::Model(backend)) => put(4, &[&backend.0]),
        Subject::Action(OperatorAction::Drain, backend) => put(5, &[&backend.0]),
        Subject::Action(OperatorAction::Hold, backend) => put(6, &[&backend.0]),
        Subject::Reset(backend) => put(7, &[&backend.0]),
        Subject::Opened(BreakerOf::Backend(name)) => put(8, &[&name.0]),
        Subject::Opened(BreakerOf::Endpoint(name)) => put(9, &[&name.0]),
        Subject::Pin(session) => put(10, &[&session.0.to_be_bytes()]),
    }
    bytes
}

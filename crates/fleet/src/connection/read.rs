//! The reader: what other replicas tell, as it comes.

use std::convert::Infallible;
use std::time::Duration;

use redis::{Cmd, Value};
use tidegate_core::{
    hint::{Heard, Hint},
    names::ReplicaId,
    time::Millis,
};

use super::Connection;
use crate::{
    codec::{CodecError, Entry, News},
    link::{Link, StoreError},
    reply,
    session_record::SessionHeard,
    stats::{FactKind, Rejected},
};

/// How long a read waits for something to come.
const WAIT_MS: u64 = 1_000;
/// Entries that are read at a time.
const ENTRIES_MAX: u64 = 256;
/// Writers whose numbers are remembered, at most.
const WRITERS_MAX: usize = 1024;
/// The keys are not loaded more often than this, whatever is missing on the stream.
const LOAD_EVERY: Millis = Millis::seconds(2);

/// Where the reading of each stream goes on.
pub(super) type Places = Vec<(String, String)>;

impl Connection<'_> {
    /// Reads on from a place, for ever.
    pub(super) async fn read_loop(
        &self,
        mut listen: Link,
        mut places: Places,
    ) -> Result<Infallible, StoreError> {
        let mut loaded_at = self.fleet.now();
        let mut is_gap = false;
        loop {
            let mut command = Cmd::new();
            command.arg("XREAD").arg("COUNT").arg(ENTRIES_MAX).arg("BLOCK").arg(WAIT_MS);
            command.arg("STREAMS");
            for (stream, _) in &places {
                command.arg(stream);
            }
            for (_, id) in &places {
                command.arg(id);
            }
            let answer: Value = listen.ask(&command).await?;
            let nonsense = || StoreError::Answer("not a stream's entries".to_owned());
            self.fleet.stats.answered(self.fleet.now());
            for (stream, entries) in reply::streams(answer).ok_or_else(nonsense)? {
                for entry in entries {
                    let value = entry.value.unwrap_or_default();
                    is_gap |= self.take_entry(&stream, &value);
                    if let Some((_, id)) = places.iter_mut().find(|(name, _)| *name == stream) {
                        *id = entry.id;
                    }
                }
            }
            let is_due = is_gap || self.memory.marker.is_doubted();
            if is_due && self.fleet.now().since(loaded_at) >= LOAD_EVERY {
                if std::mem::take(&mut is_gap) {
                    self.fleet.stats.gap();
                }
                places = self.sync().await?;
                self.fleet.sessions().hear(SessionHeard::Anew);
                loaded_at = self.fleet.now();
            }
            // A stream that never pauses must not keep the others of this thread waiting.
            tokio::task::yield_now().await;
        }
    }

    /// Hears one entry; whether something before it is missing.
    pub(super) fn take_entry(&self, stream: &str, sealed: &[u8]) -> bool {
        let Some(entry) = self.opened(stream.as_bytes(), sealed) else { return false };
        let own = self.fleet.start.identity.instance.replica();
        let now = self.fleet.now();
        let store_ms = self.fleet.stats.store_ms(now).unwrap_or_default();
        let age = Millis(store_ms.saturating_sub(entry.told_at_ms));
        self.fleet.stats.set_lag(age.0);
        if entry.writer == own {
            return false;
        }
        let is_gap = self.is_gap(entry.writer, entry.number);
        for news in &entry.news {
            match news {
                News::Hint(hint) => self.hear(entry.writer, hint, age),
                News::Session(event) => {
                    self.fleet.stats.heard(entry.writer, FactKind::Session, Heard::Taken, now);
                    self.fleet.sessions().hear(SessionHeard::Event(event.clone()));
                }
            }
        }
        is_gap
    }

    /// Hears one hint that was written so long ago.
    pub(super) fn hear(&self, from: ReplicaId, hint: &Hint, age: Millis) {
        let aged = Hint { age: Millis(age.0.saturating_add(hint.age.0)), ..*hint };
        self.fleet.outbox.was_told(hint);
        let heard = self.ears.hear(&aged);
        self.fleet.stats.heard(from, FactKind::of(&hint.fact), heard, self.fleet.now());
    }

    /// A value of the store that this fleet sealed under a name; anything else is counted.
    pub(super) fn opened(&self, name: &[u8], sealed: &[u8]) -> Option<Entry> {
        let rejected = match self.fleet.start.secrets.open(name, sealed) {
            Ok(bytes) => match Entry::decode(&bytes) {
                Ok(entry) => return Some(entry),
                Err(CodecError::Version) => Rejected::Version,
                Err(CodecError::Form) => Rejected::Form,
            },
            Err(_) => Rejected::Secret,
        };
        self.reject(rejected);
        None
    }

    /// Counts a value that was not taken, and says so once.
    pub(super) fn reject(&self, rejected: Rejected) {
        if !self.fleet.stats.reject(rejected) {
            return;
        }
        let (store, fleet) = (self.fleet.store(), self.fleet.name());
        let reason = match rejected {
            Rejected::Secret => "it was not sealed with a secret of this replica, or was changed",
            Rejected::Version => "another version of the program wrote it",
            Rejected::Form => "it is nothing that a replica writes",
        };
        tracing::warn!(store, fleet, reason, "a value in the fleet's store is ignored");
    }

    fn is_gap(&self, writer: ReplicaId, number: u64) -> bool {
        let mut numbers = self.memory.numbers.borrow_mut();
        if numbers.len() >= WRITERS_MAX && !numbers.contains_key(&writer) {
            numbers.clear();
        }
        let before = numbers.insert(writer, number);
        before.is_some_and(|before| number > before.saturating_add(1))
    }
}

/// How long a page of pins waits for the one before it to be written.
pub(super) const PAGE_PAUSE: Duration = Duration::from_millis(20);

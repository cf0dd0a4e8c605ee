//! What another replica needs to go on with a session, as data.
//!
//! Rules kept here:
//! - A record holds nothing that changes with every call: it is told when it is another one than
//!   before, and only if the Hub shares its sessions at all.
//! - Numbers of requests begin with the session's epoch, which is one more at each change of
//!   owner: no two owners ever use the same number in one session with a server.
//! - The names that servers give their sessions are secrets: they are written into the record,
//!   which whoever keeps it seals, and nowhere else.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Hub;
use super::effect::Effect;
use super::ids::{ClientId, LinkId};
use crate::{era::Era, session::KeptSeat};

/// The form of records that is written here. Another one is not read.
const FORM: u32 = 1;
/// A record is some kilobytes; nobody needs to read more than this.
const RECORD_MAX: usize = 1024 * 1024;
/// The epoch of a session whose first owner has it.
pub(super) const FIRST_EPOCH: u64 = 1;
/// As many numbers of an epoch fit into 32 bits together with the first thousand epochs: some
/// servers read no larger ones.
const SHORT_BITS: u32 = 22;
/// Where longer ones begin; each is exact as a double.
const LONG: u64 = 1 << 51;
const LONG_BITS: u32 = 31;

/// The name that a server gave a session of ours.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UpstreamSession(String);

impl UpstreamSession {
    /// A name.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(name.to_owned())
    }

    /// The name itself, for the header that it goes into.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for UpstreamSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UpstreamSession(…)")
    }
}

/// A session with a server, over HTTP, that somebody else began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResumedUpstream {
    /// Its name; a server need not give it one.
    pub session: Option<UpstreamSession>,
    /// The protocol version that was agreed on.
    pub version: String,
}

/// What another replica needs to go on with a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SessionRecord {
    form: u32,
    /// Whose it is.
    pub caller: String,
    /// The protocol version that was agreed on with the client.
    pub(super) version: String,
    /// What the client said of itself: the params of `initialize`.
    pub(super) params: Box<RawValue>,
    pub(super) level: Option<String>,
    /// Resources of shared servers that the client wants to hear of.
    pub(super) subscriptions: BTreeSet<String>,
    pub(super) servers: Vec<ServerRecord>,
}

/// What a session has of one server, or group of servers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ServerRecord {
    pub(super) name: String,
    pub(super) seat: KeptSeat,
    /// The member of a group that holds its state.
    pub(super) stays: Option<String>,
    pub(super) links: Vec<LinkRecord>,
}

/// A session's own connection to a server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct LinkRecord {
    pub(super) member: String,
    pub(super) place: String,
    /// The server's session, if another replica can go on with it.
    pub(super) upstream: Option<ResumedUpstream>,
    pub(super) capabilities: Option<Box<RawValue>>,
    pub(super) subscriptions: BTreeSet<String>,
}

/// A session that comes from another replica.
#[derive(Clone, Debug)]
pub struct Adoption {
    /// Its id.
    pub session: Arc<str>,
    /// How often it has had an owner, with this one.
    pub epoch: u64,
    /// Everything else.
    pub record: SessionRecord,
}

impl SessionRecord {
    /// Reads a record; none if it is not one, or of another form.
    #[must_use]
    pub fn read(state: &[u8]) -> Option<Self> {
        let record: Self =
            serde_json::from_slice(state.get(..RECORD_MAX.min(state.len()))?).ok()?;
        (record.form == FORM).then_some(record)
    }

    fn write(&self) -> Bytes {
        serde_json::to_vec(self).map(Bytes::from).unwrap_or_default()
    }
}

/// The records of sessions that others may go on with.
#[derive(Default)]
pub(super) struct Records {
    /// Those whose record may have changed.
    doubtful: BTreeSet<ClientId>,
    /// What was told last.
    told: BTreeMap<ClientId, Bytes>,
}

impl Hub {
    /// From here on records of sessions are told, so that other replicas can go on with them.
    pub fn share_sessions(&mut self) {
        self.records.get_or_insert_default();
    }

    /// Whether a session is here.
    #[must_use]
    pub fn holds(&self, session: &str) -> bool {
        self.sessions.contains_key(session)
    }

    /// How many sessions are here.
    #[must_use]
    pub fn held(&self) -> usize {
        self.sessions.len()
    }

    /// Something changed that a client's record may tell of.
    pub(super) fn note_record(&mut self, client: ClientId) {
        if let Some(records) = &mut self.records {
            records.doubtful.insert(client);
        }
    }

    /// The same, of whoever has a link.
    pub(super) fn note_record_of(&mut self, link: LinkId) {
        if self.records.is_some()
            && let Some(owner) = self.links.get(link).and_then(|it| it.owner)
        {
            self.note_record(owner);
        }
    }

    /// Tells the records that have changed.
    pub(super) fn tell_records(&mut self) {
        let Some(records) = &mut self.records else { return };
        for client in std::mem::take(&mut records.doubtful) {
            let Some((session, state)) = self.record_of(client) else { continue };
            let Some(records) = &mut self.records else { return };
            if records.told.get(&client) != Some(&state) {
                records.told.insert(client, state.clone());
                self.out.push(Effect::SessionRecord { session, state });
            }
        }
    }

    /// A client has no record any more.
    pub(super) fn drop_record(&mut self, client: ClientId) {
        if let Some(records) = &mut self.records {
            records.doubtful.remove(&client);
            records.told.remove(&client);
        }
    }

    /// A session as others need it; none of a client that has none, or has been ended.
    pub(super) fn record_of(&self, id: ClientId) -> Option<(Arc<str>, Bytes)> {
        let client = self.clients.get(id).filter(|it| !it.is_over && !it.id.is_empty())?;
        let slots = client.slots.iter().enumerate();
        let servers = slots.map(|(at, slot)| ServerRecord {
            name: slot.group.name.to_string(),
            seat: client.session.kept_seat(at),
            stays: slot.stays.map(|it| self.server_name(it).to_string()),
            links: slot.links.iter().flatten().filter_map(|it| self.link_record(*it)).collect(),
        });
        let record = SessionRecord {
            form: FORM,
            caller: client.caller.to_string(),
            version: client.version.to_string(),
            params: client.profile.params().to_owned(),
            level: client.level.clone(),
            subscriptions: client.subscriptions.clone(),
            servers: servers.collect(),
        };
        Some((Arc::clone(&client.id), record.write()))
    }

    /// A client's own link, if there was ever a connection.
    fn link_record(&self, id: LinkId) -> Option<LinkRecord> {
        let link = self.links.get(id).filter(|it| it.owner.is_some() && it.machine.was_made())?;
        let server = self.servers.get(link.server)?;
        let talk = self.ready_talk(id).and_then(|it| self.connections.get(it));
        let talk = talk.filter(|it| it.is_http && it.era == Era::Sessions);
        let upstream = talk.and_then(|it| {
            let version = it.version.clone()?;
            Some(ResumedUpstream { session: it.session.clone(), version })
        });
        Some(LinkRecord {
            member: server.name.to_string(),
            place: server.settings.place.to_string(),
            upstream,
            capabilities: link.info.as_ref().and_then(|it| it.capabilities.clone()),
            subscriptions: link.subscriptions.clone(),
        })
    }
}

/// The number that the request with this count has in a conversation of an owner of this epoch.
pub(super) const fn request_number(epoch: u64, count: u64) -> u64 {
    let before = epoch.saturating_sub(FIRST_EPOCH);
    if count < 1 << SHORT_BITS {
        (before << SHORT_BITS) + count
    } else {
        LONG + (before << LONG_BITS) + count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_owners_use_one_number() {
        assert_eq!((request_number(1, 1), request_number(1, 7)), (1, 7));
        let counts = [1, 2, (1 << 22) - 1, 1 << 22, (1 << 22) + 1, 1 << 30];
        let all = (1..=600).flat_map(|epoch| counts.map(|count| request_number(epoch, count)));
        let all: Vec<u64> = all.collect();
        let apart: BTreeSet<u64> = all.iter().copied().collect();
        assert_eq!(all.len(), apart.len());
        assert!(request_number(1000, 1000) <= u64::from(u32::MAX));
        assert!(all.iter().all(|it| *it < 1 << 53), "exact as a double");
    }

    #[test]
    fn the_name_of_a_servers_session_is_not_shown() {
        let shown = format!("{:?}", UpstreamSession::new("s3cret"));
        assert!(!shown.contains("s3cret"), "{shown}");
    }

    #[test]
    fn what_is_no_record_of_this_form_is_not_read() {
        assert!(SessionRecord::read(b"{}").is_none());
        assert!(SessionRecord::read(b"\xff").is_none());
        let other = br#"{"form":2,"caller":"","version":"2025-11-25","params":{},"level":null,
            "subscriptions":[],"servers":[]}"#;
        assert!(SessionRecord::read(other).is_none());
        let ours = String::from_utf8_lossy(other).replace("\"form\":2", "\"form\":1");
        assert!(SessionRecord::read(ours.as_bytes()).is_some());
    }
}

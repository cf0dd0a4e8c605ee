//! How the gateway introduces itself to a server on behalf of one client, or of itself.
//!
//! A server may offer other tools to a client that can be asked things (sampling, elicitation,
//! roots), so what a client declares is handed on as it stands, and lists are kept per
//! [`ProfileKey`]: clients that introduce themselves alike share one.
//!
//! Rules kept here:
//! - Nothing is declared that could not be delivered: a shared connection, and the gateway's own,
//!   declare nothing, since a server's question could reach nobody (S44).
//! - Tasks are not declared: their ids would have to be routed, and are not.

use std::sync::LazyLock;

use crate::{
    era::Era,
    message::Version,
    raw::{Fields, quoted, text_value},
    stateless::{self, Envelope},
};
use serde_json::value::RawValue;

/// Clients of one profile see the same lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ProfileKey(u64);

impl ProfileKey {
    /// The gateway's own: clients that declare nothing share it.
    pub(super) fn own() -> Self {
        static OWN: LazyLock<ProfileKey> = LazyLock::new(|| ClientProfile::own().key);
        *OWN
    }

    fn of(capabilities: &RawValue, version: &str) -> Self {
        Self(fnv(&[capabilities.get().as_bytes(), version.as_bytes()]))
    }
}

/// One introduction.
#[derive(Clone, Debug)]
pub(super) struct ClientProfile {
    pub(super) key: ProfileKey,
    /// The profile towards servers with sessions.
    bridged: ProfileKey,
    /// The era that is spoken with the client.
    pub(super) era: Era,
    /// The params of `initialize`.
    params: Box<RawValue>,
    /// What is declared to servers of the stateless era.
    pub(super) capabilities: Box<RawValue>,
    /// Which program asks.
    pub(super) info: Box<RawValue>,
    can: Askable,
}

/// What a client can be asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Askable {
    sampling: bool,
    elicitation: bool,
    roots: bool,
}

impl Askable {
    fn of(declared: &Fields<'_>) -> Self {
        let has = |name: &str| declared.get(name).is_some_and(|value| value.get().starts_with('{'));
        Self { sampling: has("sampling"), elicitation: has("elicitation"), roots: has("roots") }
    }

    /// Whether a server's request may be handed to the client.
    pub(super) fn be_asked(self, method: &str) -> bool {
        match method {
            "sampling/createMessage" => self.sampling,
            "elicitation/create" => self.elicitation,
            "roots/list" => self.roots,
            _ => false,
        }
    }
}

impl ClientProfile {
    /// The gateway speaks for itself.
    pub(super) fn own() -> Self {
        Self::new(Version::LATEST, Fields::default(), &own_info())
    }

    /// The gateway speaks for a client, whose `initialize` had these params.
    pub(super) fn of_client(params: &Fields<'_>, version: Version) -> Self {
        let declared = params.get("capabilities").map(|value| Fields::of(value, &[]));
        let declared = declared.and_then(Result::ok).unwrap_or_default();
        let info = params.get("clientInfo").map_or_else(own_info, |info| info.get().to_owned());
        Self::new(version, declared, &info)
    }

    /// The gateway speaks for a client that has no session.
    pub(super) fn of_envelope(envelope: &Envelope) -> Self {
        let mut declared = Fields::of(&envelope.capabilities, &[]).unwrap_or_default();
        drop(declared.edit("extensions", &[], |it| _ = it.remove(TASKS)));
        declared.remove("tasks");
        let info = envelope.info.as_deref().map_or_else(own_info, |info| info.get().to_owned());
        let (capabilities, can) = (json(declared.to_json()), Askable::of(&declared));
        let key = ProfileKey::of(&capabilities, stateless::VERSION);
        let bridge = Self::new(Version::LATEST, declared, &info);
        Self { key, era: Era::Stateless, capabilities, can, ..bridge }
    }

    fn new(version: Version, mut declared: Fields<'_>, info: &str) -> Self {
        declared.remove("tasks");
        let capabilities = json(declared.to_json());
        let key = ProfileKey::of(&capabilities, version.as_str());
        let mut params = Fields::default();
        params.set("protocolVersion", text_value(version.as_str()));
        params.set("capabilities", capabilities.clone());
        params.set("clientInfo", json(info.to_owned()));
        Self {
            key,
            bridged: key,
            era: Era::Sessions,
            params: json(params.to_json()),
            capabilities,
            info: json(info.to_owned()),
            can: Askable::of(&declared),
        }
    }

    /// Whether another introduction says the same.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.key == other.key
            && self.era == other.era
            && self.params.get() == other.params.get()
            && self.info.get() == other.info.get()
    }

    /// The params of `initialize`.
    pub(super) fn params(&self) -> &RawValue {
        &self.params
    }

    /// What the client can be asked for.
    pub(super) fn can(&self) -> Askable {
        self.can
    }

    /// Whether the client has no session.
    pub(super) fn is_stateless(&self) -> bool {
        self.era == Era::Stateless
    }

    /// The profile under which servers that speak an era know the client.
    pub(super) fn profile_in(&self, era: Era) -> ProfileKey {
        if era == Era::Sessions { self.bridged } else { self.key }
    }
}

/// The extension whose ids would have to be routed.
const TASKS: &str = "io.modelcontextprotocol/tasks";

/// Text that is JSON, as such; a client's own was read before.
fn json(text: String) -> Box<RawValue> {
    RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// The gateway's name and version, as clients and servers learn it.
#[must_use]
pub fn own_info() -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(r#"{{"name":"tidegate","title":"Tidegate","version":{}}}"#, quoted(version))
}

/// FNV-1a: the same in every run, which is all that is asked of it.
fn fnv(parts: &[&[u8]]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.iter().chain([&0]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(capabilities: &str) -> ClientProfile {
        let text = format!(r#"{{"capabilities":{capabilities},"clientInfo":{{"name":"x"}}}}"#);
        let fields = Fields::parse(&text, &[]).expect("an object");
        ClientProfile::of_client(&fields, Version::LATEST)
    }

    #[test]
    fn what_a_client_declares_is_handed_on_and_tells_profiles_apart() {
        let plain = profile("{}");
        let able = profile(r#"{"sampling":{},"roots":{"listChanged":true},"tasks":{}}"#);
        assert_eq!(plain.key, ClientProfile::own().key);
        assert_ne!(plain.key, able.key);
        let expected = concat!(
            r#"{"protocolVersion":"2025-11-25","#,
            r#""capabilities":{"sampling":{},"roots":{"listChanged":true}},"#,
            r#""clientInfo":{"name":"x"}}"#
        );
        assert_eq!(able.params().get(), expected);
        assert!(able.can().be_asked("roots/list") && able.can().be_asked("sampling/createMessage"));
        assert!(!able.can().be_asked("elicitation/create") && !able.can().be_asked("tools/call"));
    }
    #[test]
    fn a_client_without_a_session_is_known_to_servers_of_either_era() {
        let capabilities =
            r#"{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
        let capabilities = RawValue::from_string(capabilities.to_owned()).expect("json");
        let envelope = Envelope { info: None, capabilities, log_level: None };
        let profile = ClientProfile::of_envelope(&envelope);
        assert_eq!(profile.capabilities.get(), r#"{"elicitation":{}}"#);
        let declared = r#""capabilities":{"elicitation":{}}"#;
        assert!(profile.params().get().contains(declared), "{}", profile.params());
        assert!(profile.is_stateless() && profile.can().be_asked("elicitation/create"));
        assert_ne!(profile.profile_in(Era::Stateless), profile.profile_in(Era::Sessions));
        let capabilities = RawValue::from_string("{}".to_owned()).expect("json");
        let plain = ClientProfile::of_envelope(&Envelope { capabilities, ..envelope });
        assert_eq!(plain.profile_in(Era::Sessions), ProfileKey::own());
    }
}

//! How the gateway introduces itself to a server on behalf of one client, or of itself.
//!
//! A server may offer other tools to a client that can be asked things (sampling, elicitation,
//! roots), so what a client declares is handed on as it stands, and lists are kept per
//! [`Profile`]: clients that introduce themselves alike share one.
//!
//! Rules kept here:
//! - Nothing is declared that could not be delivered: a shared connection, and the gateway's own,
//!   declare nothing, since a server's question could reach nobody (S44).
//! - Tasks are not declared: their ids would have to be routed, and are not.

use std::sync::LazyLock;

use serde_json::value::RawValue;
use tidegate_mcp::{
    era::Era,
    message::Version,
    raw::{Fields, quoted, text_value},
    stateless::{self, Envelope},
};

/// Clients of one profile see the same lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Profile(u64);

impl Profile {
    /// The gateway's own: clients that declare nothing share it.
    pub(crate) fn own() -> Self {
        static OWN: LazyLock<Profile> = LazyLock::new(|| Hello::own().profile);
        *OWN
    }

    fn of(capabilities: &RawValue, version: &str) -> Self {
        Self(fnv(&[capabilities.get().as_bytes(), version.as_bytes()]))
    }
}

/// One introduction.
#[derive(Clone, Debug)]
pub(crate) struct Hello {
    pub(crate) profile: Profile,
    /// The profile towards servers with sessions.
    bridged: Profile,
    /// The era that is spoken with the client.
    pub(crate) era: Era,
    /// The params of `initialize`.
    params: Box<RawValue>,
    /// What is declared to servers of the stateless era.
    pub(crate) capabilities: Box<RawValue>,
    /// Which program asks.
    pub(crate) info: Box<RawValue>,
    can: Can,
}

/// What a client can be asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Can {
    sampling: bool,
    elicitation: bool,
    roots: bool,
}

impl Can {
    fn of(declared: &Fields<'_>) -> Self {
        let has = |name: &str| declared.get(name).is_some_and(|value| value.get().starts_with('{'));
        Self { sampling: has("sampling"), elicitation: has("elicitation"), roots: has("roots") }
    }

    /// Whether a server's request may be handed to the client.
    pub(crate) fn be_asked(self, method: &str) -> bool {
        match method {
            "sampling/createMessage" => self.sampling,
            "elicitation/create" => self.elicitation,
            "roots/list" => self.roots,
            _ => false,
        }
    }
}

impl Hello {
    /// The gateway speaks for itself.
    pub(crate) fn own() -> Self {
        Self::new(Version::LATEST, Fields::default(), &own_info())
    }

    /// The gateway speaks for a client, whose `initialize` had these params.
    pub(crate) fn of_client(params: &Fields<'_>, version: Version) -> Self {
        let declared = params.get("capabilities").map(|value| Fields::of(value, &[]));
        let declared = declared.and_then(Result::ok).unwrap_or_default();
        let info = params.get("clientInfo").map_or_else(own_info, |info| info.get().to_owned());
        Self::new(version, declared, &info)
    }

    /// The gateway speaks for a client that has no session.
    pub(crate) fn of_envelope(envelope: &Envelope) -> Self {
        let mut declared = Fields::of(&envelope.capabilities, &[]).unwrap_or_default();
        drop(declared.edit("extensions", &[], |it| _ = it.remove(TASKS)));
        declared.remove("tasks");
        let info = envelope.info.as_deref().map_or_else(own_info, |info| info.get().to_owned());
        let (capabilities, can) = (json(declared.to_json()), Can::of(&declared));
        let profile = Profile::of(&capabilities, stateless::VERSION);
        let bridge = Self::new(Version::LATEST, declared, &info);
        Self { profile, era: Era::Stateless, capabilities, can, ..bridge }
    }

    fn new(version: Version, mut declared: Fields<'_>, info: &str) -> Self {
        declared.remove("tasks");
        let capabilities = json(declared.to_json());
        let profile = Profile::of(&capabilities, version.as_str());
        let mut params = Fields::default();
        params.set("protocolVersion", text_value(version.as_str()));
        params.set("capabilities", capabilities.clone());
        params.set("clientInfo", json(info.to_owned()));
        Self {
            profile,
            bridged: profile,
            era: Era::Sessions,
            params: json(params.to_json()),
            capabilities,
            info: json(info.to_owned()),
            can: Can::of(&declared),
        }
    }

    /// The params of `initialize`.
    pub(crate) fn params(&self) -> &RawValue {
        &self.params
    }

    /// What the client can be asked for.
    pub(crate) fn can(&self) -> Can {
        self.can
    }

    /// Whether the client has no session.
    pub(crate) fn is_stateless(&self) -> bool {
        self.era == Era::Stateless
    }

    /// The profile under which servers that speak an era know the client.
    pub(crate) fn profile_in(&self, era: Era) -> Profile {
        if era == Era::Sessions { self.bridged } else { self.profile }
    }
}

/// The extension whose ids would have to be routed.
const TASKS: &str = "io.modelcontextprotocol/tasks";

/// Text that is JSON, as such; a client's own was read before.
fn json(text: String) -> Box<RawValue> {
    RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// The gateway's name and version, as clients and servers learn it.
pub(crate) fn own_info() -> String {
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

    fn hello(capabilities: &str) -> Hello {
        let text = format!(r#"{{"capabilities":{capabilities},"clientInfo":{{"name":"x"}}}}"#);
        let fields = Fields::parse(&text, &[]).expect("an object");
        Hello::of_client(&fields, Version::LATEST)
    }

    #[test]
    fn what_a_client_declares_is_handed_on_and_tells_profiles_apart() {
        let plain = hello("{}");
        let able = hello(r#"{"sampling":{},"roots":{"listChanged":true},"tasks":{}}"#);
        assert_eq!(plain.profile, Hello::own().profile);
        assert_ne!(plain.profile, able.profile);
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
        let hello = Hello::of_envelope(&envelope);
        assert_eq!(hello.capabilities.get(), r#"{"elicitation":{}}"#);
        let declared = r#""capabilities":{"elicitation":{}}"#;
        assert!(hello.params().get().contains(declared), "{}", hello.params());
        assert!(hello.is_stateless() && hello.can().be_asked("elicitation/create"));
        assert_ne!(hello.profile_in(Era::Stateless), hello.profile_in(Era::Sessions));
        let capabilities = RawValue::from_string("{}".to_owned()).expect("json");
        let plain = Hello::of_envelope(&Envelope { capabilities, ..envelope });
        assert_eq!(plain.profile_in(Era::Sessions), Profile::own());
    }
}

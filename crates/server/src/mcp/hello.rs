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
    message::Version,
    raw::{Fields, quoted, text_value},
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
}

/// One introduction.
#[derive(Clone, Debug)]
pub(crate) struct Hello {
    pub(crate) profile: Profile,
    /// The params of `initialize`.
    params: Box<RawValue>,
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
        Self::new(Version::LATEST, "{}".to_owned(), &own_info(), Can::default())
    }

    /// The gateway speaks for a client, whose `initialize` had these params.
    pub(crate) fn of_client(params: &Fields<'_>, version: Version) -> Self {
        let declared = params.get("capabilities").map(|value| Fields::of(value, &[]));
        let mut declared = declared.and_then(Result::ok).unwrap_or_default();
        declared.remove("tasks");
        let has = |name: &str| declared.get(name).is_some_and(|value| value.get().starts_with('{'));
        let can =
            Can { sampling: has("sampling"), elicitation: has("elicitation"), roots: has("roots") };
        let info = params.get("clientInfo").map_or_else(own_info, |info| info.get().to_owned());
        Self::new(version, declared.to_json(), &info, can)
    }

    fn new(version: Version, capabilities: String, info: &str, can: Can) -> Self {
        let profile = Profile(fnv(&[capabilities.as_bytes(), version.as_str().as_bytes()]));
        let mut params = Fields::default();
        params.set("protocolVersion", text_value(version.as_str()));
        let mut set = |name, json: String| {
            if let Ok(value) = RawValue::from_string(json) {
                params.set(name, value);
            }
        };
        set("capabilities", capabilities);
        set("clientInfo", info.to_owned());
        let params = RawValue::from_string(params.to_json()).expect("fields make an object");
        Self { profile, params, can }
    }

    /// The params of `initialize`.
    pub(crate) fn params(&self) -> &RawValue {
        &self.params
    }

    /// What the client can be asked for.
    pub(crate) fn can(&self) -> Can {
        self.can
    }
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
}

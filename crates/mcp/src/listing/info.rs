//! What a server said about itself when it was greeted.

use serde_json::value::RawValue;

use crate::{
    listing::Kind,
    message::Version,
    raw::{Fields, Flaw},
};

/// The answer to `initialize`, or to `server/discover`.
#[derive(Clone, Debug, Default)]
pub struct ServerInfo {
    /// The protocol version it speaks, as written.
    pub version: String,
    /// What it can do.
    pub capabilities: Option<Box<RawValue>>,
    /// Who it is.
    pub server_info: Option<Box<RawValue>>,
    /// How its tools are meant to be used.
    pub instructions: Option<String>,
}

impl ServerInfo {
    /// Reads the result of `initialize`.
    ///
    /// # Errors
    /// It is no clear object.
    pub fn read(result: &RawValue) -> Result<Self, Flaw> {
        let fields = Fields::of(result, &[])?;
        let owned = |name| fields.get(name).map(ToOwned::to_owned);
        Ok(Self {
            version: fields.text("protocolVersion").unwrap_or_default(),
            capabilities: owned("capabilities"),
            server_info: owned("serverInfo"),
            instructions: fields.text("instructions").filter(|text| !text.trim().is_empty()),
        })
    }

    /// Whether another greeting of the same server says the same: a server that was deployed anew
    /// often does not.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        let text = |value: &Option<Box<RawValue>>| value.as_ref().map(|it| it.get().to_owned());
        self.version == other.version
            && self.instructions == other.instructions
            && text(&self.capabilities) == text(&other.capabilities)
            && text(&self.server_info) == text(&other.server_info)
    }

    /// The revision it speaks, if that is of the session era.
    #[must_use]
    pub fn known_version(&self) -> Option<Version> {
        Version::parse(&self.version)
    }

    /// Whether it says that it has a kind of thing.
    #[must_use]
    pub fn offers(&self, kind: Kind) -> bool {
        self.can(kind.capability())
    }

    /// Whether it declares a capability: `completions`, `logging`.
    #[must_use]
    pub fn can(&self, capability: &str) -> bool {
        self.capability(&[capability]).is_some_and(|json| json != "null" && json != "false")
    }

    /// Whether it tells when the list of something changes.
    #[must_use]
    pub fn tells_changes(&self, capability: &str) -> bool {
        self.capability(&[capability, "listChanged"]).as_deref() == Some("true")
    }

    /// Whether it tells when a resource changes.
    #[must_use]
    pub fn can_subscribe(&self) -> bool {
        self.capability(&["resources", "subscribe"]).as_deref() == Some("true")
    }

    fn capability(&self, path: &[&str]) -> Option<String> {
        let mut json = self.capabilities.as_ref()?.get().to_owned();
        for name in path {
            json = Fields::parse(&json, &[]).ok()?.get(name)?.get().to_owned();
        }
        Some(json)
    }
}

//! The `params` of a call, and the few fields of them that a gateway owns.
//!
//! The name of a tool, the uri of a resource, the progress token and the protocol's own keys in
//! `_meta` are set on the way to a server and back; everything else passes as it came.

use serde_json::value::RawValue;

use super::reserved;
use crate::raw::{Fields, Flaw, number_value};

/// Fields that decide where a call goes or what it may do: no other key may resemble them.
const KNOWN: &[&str] =
    &["name", "uri", "arguments", "argument", "ref", "cursor", "level", "_meta", "requestId"];
/// The same in `ref`.
const KNOWN_REF: &[&str] = &["type", "name", "uri"];
/// The same in `_meta`.
const KNOWN_META: &[&str] = &["progressToken"];

/// Where a caller says which span of a trace it is in (W3C Trace Context).
const TRACE_PARENT: &str = "traceparent";
/// What begins with this in `_meta` belongs to the protocol.
const RESERVED: &str = "io.modelcontextprotocol/";
/// The one reserved key that sessions have too: it ties a message to a task.
const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// The params of one call.
#[derive(Clone, Debug, Default)]
pub struct Params<'a>(Fields<'a>);

impl<'a> Params<'a> {
    /// Takes params apart; none are an empty object.
    ///
    /// # Errors
    /// What is wrong with them: -32602 ([`super::Fault::params`]).
    pub fn parse(params: Option<&'a RawValue>) -> Result<Self, Flaw> {
        params.map_or_else(|| Ok(Self::default()), |params| Fields::of(params, KNOWN).map(Self))
    }

    /// Takes the text of params apart that was checked before.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn of_text(text: &'a str) -> Result<Self, Flaw> {
        Fields::of_text(text, KNOWN).map(Self)
    }

    /// Whether params may hold a `_meta`, by their text alone: most have none, and need not be
    /// taken apart to see that. A letter of a key can only be written in another way with `\u`.
    #[must_use]
    pub fn may_have_meta(text: &str) -> bool {
        text.contains("_meta") || text.contains("\\u")
    }

    /// Whether there is no field.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of a field.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&RawValue> {
        self.0.get(name)
    }

    /// The value of a field as it stands in the source; none if it was replaced.
    #[must_use]
    pub fn source(&self, name: &str) -> Option<&'a RawValue> {
        self.0.source(name)
    }

    /// The text a field holds.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<String> {
        self.0.text(name)
    }

    /// Replaces a field's value, in its place.
    pub fn set(&mut self, name: &str, value: Box<RawValue>) {
        self.0.set(name, value);
    }

    /// Replaces a field's value by a text: the `name` of a tool, the `uri` of a resource.
    pub fn set_text(&mut self, name: &str, text: &str) {
        self.0.set_text(name, text);
    }

    /// Takes a field out.
    pub fn remove(&mut self, name: &str) -> bool {
        self.0.remove(name)
    }

    /// What a completion is for: its `ref`.
    ///
    /// # Errors
    /// There is none, or a flawed one.
    pub fn reference(&self) -> Result<Fields<'_>, Flaw> {
        self.get("ref").map_or(Err(Flaw::NotAnObject), |value| Fields::of(value, KNOWN_REF))
    }

    /// Replaces a text inside `ref`.
    ///
    /// # Errors
    /// `ref` is flawed.
    pub fn set_reference(&mut self, name: &str, text: &str) -> Result<(), Flaw> {
        self.0.edit("ref", KNOWN_REF, |reference| reference.set_text(name, text))
    }

    /// A value of `_meta`, as text of JSON.
    #[must_use]
    pub fn meta(&self, name: &str) -> Option<Box<RawValue>> {
        let meta = Fields::of(self.get("_meta")?, &[]).ok()?;
        meta.get(name).map(ToOwned::to_owned)
    }

    /// The token under which the caller wants to hear of progress.
    #[must_use]
    pub fn progress_token(&self) -> Option<Box<RawValue>> {
        self.meta("progressToken")
    }

    /// Asks for progress under a token of our own, or for none.
    ///
    /// # Errors
    /// `_meta` is flawed.
    pub fn set_progress_token(&mut self, token: Option<u64>) -> Result<(), Flaw> {
        self.0.edit("_meta", KNOWN_META, |meta| match token {
            Some(token) => meta.set("progressToken", number_value(token)),
            None => _ = meta.remove("progressToken"),
        })
    }

    /// The caller's place in a trace.
    #[must_use]
    pub fn trace_parent(&self) -> Option<String> {
        // Most calls are no part of a trace.
        self.get("_meta").filter(|meta| meta.get().contains(TRACE_PARENT))?;
        serde_json::from_str(self.meta(TRACE_PARENT)?.get()).ok()
    }

    /// Names another place in the trace.
    ///
    /// # Errors
    /// `_meta` is flawed.
    pub fn set_trace_parent(&mut self, header: &str) -> Result<(), Flaw> {
        self.0.edit("_meta", KNOWN_META, |meta| meta.set_text(TRACE_PARENT, header))
    }

    /// Takes out of `_meta` what only the stateless era knows: a server with sessions may refuse
    /// it.
    ///
    /// # Errors
    /// `_meta` is flawed.
    pub fn strip_reserved(&mut self) -> Result<(), Flaw> {
        if self.get("_meta").is_none_or(|meta| !meta.get().contains("modelcontextprotocol")) {
            return Ok(());
        }
        self.0.edit("_meta", KNOWN_META, |meta| {
            meta.retain(|name| !name.starts_with(RESERVED) || name == RELATED_TASK);
        })
    }

    /// Writes whose request this is, as the stateless era does.
    ///
    /// # Errors
    /// `_meta` is flawed.
    pub fn stamp(
        &mut self,
        info: &RawValue,
        capabilities: &RawValue,
        log_level: Option<&str>,
    ) -> Result<(), Flaw> {
        self.0.edit("_meta", KNOWN_META, |meta| {
            meta.set_text(reserved::PROTOCOL_VERSION, reserved::STATELESS_VERSION);
            meta.set(reserved::CLIENT_INFO, info.to_owned());
            meta.set(reserved::CLIENT_CAPABILITIES, capabilities.to_owned());
            if let Some(level) = log_level {
                meta.set_text(reserved::LOG_LEVEL, level);
            }
        })
    }

    /// The params as text.
    #[must_use]
    pub fn to_json(&self) -> String {
        self.0.to_json()
    }
}

//! What a request of the stateless era says of its sender, checked in the order that tells a
//! client most: what is missing, what contradicts itself, what is not spoken here.

use serde_json::value::RawValue;

use super::{
    CLIENT_CAPABILITIES, CLIENT_INFO, HEADER_MISMATCH, LOG_LEVEL, PROTOCOL_VERSION,
    UNSUPPORTED_VERSION, VERSION, heading,
};
use crate::{
    message::{INVALID_PARAMS, Id, Params, Version, error},
    raw::{Fields, as_text, quoted},
};

/// What a request says of its sender.
#[derive(Clone, Debug)]
pub struct Envelope {
    /// Which program asks, if it says so.
    pub info: Option<Box<RawValue>>,
    /// What it can be asked: an object.
    pub capabilities: Box<RawValue>,
    /// From which level on it wants log lines; none without.
    pub log_level: Option<String>,
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    /// The code of JSON-RPC.
    pub code: i64,
    /// A lowercase fragment.
    pub message: String,
    /// More, as text of JSON.
    pub data: Option<String>,
}

impl Refused {
    /// A refusal without more to say.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The answer that tells the sender.
    #[must_use]
    pub fn to_answer(&self, id: Option<&Id>) -> String {
        error(id, self.code, &self.message, self.data.as_deref())
    }
}

/// Whether a request without a session belongs to the stateless era: it says so in `_meta` or in
/// its version header, or asks what only that era asks. The `initialize` of a session says which
/// version it would speak, and is none.
#[must_use]
pub fn belongs(method: &str, params: Option<&RawValue>, version_header: Option<&str>) -> bool {
    let params = Params::parse(params).unwrap_or_default();
    if method == "initialize" && params.get("protocolVersion").is_some() {
        return false;
    }
    let is_header = version_header.is_some_and(|it| Version::parse(it).is_none());
    let is_asked = matches!(method, "server/discover" | "subscriptions/listen");
    is_header || is_asked || params.meta(PROTOCOL_VERSION).is_some()
}

/// Whether a request says itself, in `_meta`, that it belongs to the stateless era.
#[must_use]
pub fn stands_alone(params: Option<&RawValue>) -> bool {
    let params = params.filter(|it| Params::may_have_meta(it.get()));
    let Some(params) = params else { return false };
    Params::parse(Some(params)).is_ok_and(|params| params.meta(PROTOCOL_VERSION).is_some())
}

impl Envelope {
    /// Reads what a request says of its sender. `heads` are its headers that begin with `mcp-`,
    /// by their names in lower case.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn read(
        method: &str,
        params: Option<&RawValue>,
        heads: &[(String, String)],
    ) -> Result<Self, Refused> {
        let missing = |what: &str| {
            let message = format!("params._meta needs `{what}`: every request carries it");
            Refused::new(INVALID_PARAMS, message)
        };
        let flawed = |flaw| Refused::new(INVALID_PARAMS, format!("params: {flaw}"));
        let params = Params::parse(params).map_err(flawed)?;
        let meta = params.get("_meta").ok_or_else(|| missing(PROTOCOL_VERSION))?;
        let meta = Fields::of(meta, &[]);
        let meta =
            meta.map_err(|it| Refused::new(INVALID_PARAMS, format!("params._meta: {it}")))?;
        let version = meta.get(PROTOCOL_VERSION).ok_or_else(|| missing(PROTOCOL_VERSION))?;
        let capabilities =
            meta.get(CLIENT_CAPABILITIES).ok_or_else(|| missing(CLIENT_CAPABILITIES))?;
        if !capabilities.get().starts_with('{') {
            let message = format!("params._meta: `{CLIENT_CAPABILITIES}` must be an object");
            return Err(Refused::new(INVALID_PARAMS, message));
        }
        let Some(version) = as_text(version) else {
            let message = format!("params._meta: `{PROTOCOL_VERSION}` must be a text");
            return Err(Refused::new(INVALID_PARAMS, message));
        };
        check_heads(method, &params, &version, heads)?;
        if version != VERSION {
            return Err(unsupported(&version));
        }
        Ok(Self {
            info: meta.get(CLIENT_INFO).map(ToOwned::to_owned),
            capabilities: capabilities.to_owned(),
            log_level: meta.text(LOG_LEVEL),
        })
    }
}

fn check_heads(
    method: &str,
    params: &Params<'_>,
    version: &str,
    heads: &[(String, String)],
) -> Result<(), Refused> {
    let mismatch = |message: String| Err(Refused::new(HEADER_MISMATCH, message));
    for (name, said) in [(heading::VERSION, version), (heading::METHOD, method)] {
        match heading::only(heads, name)? {
            Some(written) if written == said => {}
            Some(_) => return mismatch(format!("the header `{name}` and the body differ")),
            None => return mismatch(format!("the header `{name}` is missing")),
        }
    }
    let Some(named) = heading::name_of(method, params) else { return Ok(()) };
    match heading::only(heads, heading::NAME)? {
        Some(written) if heading::decode(written).as_deref() == Some(named.as_str()) => Ok(()),
        Some(_) => mismatch(format!("the header `{}` and the body differ", heading::NAME)),
        None => mismatch(format!("the header `{}` is missing", heading::NAME)),
    }
}

fn unsupported(requested: &str) -> Refused {
    let data = format!(r#"{{"supported":["{VERSION}"],"requested":{}}}"#, quoted(requested));
    let message = format!("protocol version not spoken here; `{VERSION}` is");
    Refused { code: UNSUPPORTED_VERSION, message, data: Some(data) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(method: &str, params: &str, heads: &[(&str, &str)]) -> Result<Envelope, Refused> {
        let params = RawValue::from_string(params.to_owned()).expect("json");
        let heads: Vec<_> =
            heads.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        Envelope::read(method, Some(&params), &heads)
    }

    fn meta(version: &str) -> String {
        let caps = format!(r#""{CLIENT_CAPABILITIES}":{{"roots":{{}}}}"#);
        format!(r#""_meta":{{"{PROTOCOL_VERSION}":"{version}",{caps},"{LOG_LEVEL}":"info"}}"#)
    }

    const HEADS: &[(&str, &str)] =
        &[("mcp-protocol-version", VERSION), ("mcp-method", "tools/call"), ("mcp-name", "grüße")];

    #[test]
    fn a_request_says_who_asks() {
        let params = format!(r#"{{"name":"add",{}}}"#, meta(VERSION));
        let heads = [HEADS[0], HEADS[1], ("mcp-name", "=?base64?YWRk?=")];
        let envelope = read("tools/call", &params, &heads).expect("a good request");
        assert_eq!(envelope.capabilities.get(), r#"{"roots":{}}"#);
        assert_eq!(envelope.log_level.as_deref(), Some("info"));
    }

    #[test]
    fn what_is_missing_is_told_before_what_contradicts_and_that_before_what_is_not_spoken() {
        let code = |params: &str, heads: &[(&str, &str)]| {
            read("tools/call", params, heads).expect_err("a bad request").code
        };
        assert_eq!(code(r#"{"name":"add"}"#, &[]), INVALID_PARAMS);
        assert_eq!(code(r#"{"name":"add","_meta":{}}"#, HEADS), INVALID_PARAMS);
        let only = format!(r#"{{"_meta":{{"{PROTOCOL_VERSION}":"{VERSION}"}}}}"#);
        assert_eq!(code(&only, HEADS), INVALID_PARAMS);
        let good = format!(r#"{{"name":"add",{}}}"#, meta(VERSION));
        assert_eq!(code(&good, HEADS), HEADER_MISMATCH);
        assert_eq!(code(&good, &HEADS[..2]), HEADER_MISMATCH);
        assert_eq!(code(&good, &[HEADS[0], HEADS[0], HEADS[1]]), HEADER_MISMATCH);
        let other = format!(r#"{{"name":"add",{}}}"#, meta("1900-01-01"));
        assert_eq!(code(&other, HEADS), HEADER_MISMATCH);
        let heads = [("mcp-protocol-version", "1900-01-01"), HEADS[1], ("mcp-name", "add")];
        let refused = read("tools/call", &other, &heads).expect_err("not spoken");
        assert_eq!(refused.code, UNSUPPORTED_VERSION);
        let data = r#"{"supported":["2026-07-28"],"requested":"1900-01-01"}"#;
        assert_eq!(refused.data.as_deref(), Some(data));
    }

    #[test]
    fn a_request_stands_alone_however_its_key_is_written() {
        let alone = |params: &str| {
            let params = RawValue::from_string(params.to_owned()).expect("json");
            stands_alone(Some(&params))
        };
        assert!(alone(&format!("{{{}}}", meta(VERSION))));
        let escaped = meta(VERSION).replacen("_meta", "\\u005fmeta", 1);
        assert!(alone(&format!("{{{escaped}}}")));
        assert!(!alone(r#"{"name":"add","arguments":{"text":"no such key"}}"#));
        assert!(!alone(r#"{"name":"add","_meta":{"progressToken":1}}"#));
        assert!(!stands_alone(None));
    }

    #[test]
    fn a_session_is_told_apart_by_its_own_words() {
        let belongs = |method: &str, params: &str, header: Option<&str>| {
            let params = RawValue::from_string(params.to_owned()).expect("json");
            belongs(method, Some(&params), header)
        };
        assert!(!belongs("initialize", r#"{"protocolVersion":"2025-11-25"}"#, None));
        assert!(!belongs("tools/list", "{}", Some("2025-11-25")) && !belongs("ping", "{}", None));
        assert!(
            belongs("tools/list", "{}", Some(VERSION)) && belongs("server/discover", "{}", None)
        );
        assert!(belongs("initialize", &format!("{{{}}}", meta(VERSION)), None));
    }
}

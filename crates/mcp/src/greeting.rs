//! What the answer to a greeting says of the era that a server speaks.
//!
//! Rules kept here:
//! - No single code decides: a server of the stateless era says so in words of that era; whatever
//!   else answers the question is of the other.
//! - What may be a trouble of the moment (an overload, a rejected credential, silence) decides
//!   nothing and is not remembered.
//!
//! Left to others: what is remembered ([`crate::era`]), which era to try first, and the asking.

use serde_json::value::RawValue;
use tidegate_core::outcome::OutcomeKind;

use crate::{
    cause::Cause,
    era::Era,
    health::Failure,
    listing::ServerInfo,
    message::{ErrorObject, INVALID_PARAMS},
    raw::Fields,
    stateless::{HEADER_MISMATCH, SERVER_INFO, UNSUPPORTED_VERSION, VERSION},
};

/// What an attempt to greet a server came to.
#[derive(Debug)]
pub enum Greeted {
    /// It speaks the era, and this is who it is.
    Speaks(ServerInfo),
    /// It speaks another.
    Other,
    /// It refused the version that it says it speaks: the same question once more may do.
    Again,
    /// Nobody knows; it is not remembered.
    Unclear(Failure),
    /// It cannot be reached at all: no other greeting would help.
    Unreachable(Failure),
}

/// What the answer to `server/discover` says.
#[must_use]
pub fn of_discover(answer: Result<&RawValue, &RawValue>) -> Greeted {
    match answer {
        Ok(result) => read_discover(result).map_or(Greeted::Other, Greeted::Speaks),
        Err(error) => {
            let error = ErrorObject::read(error);
            let supported = error.data.is_some_and(|data| data.get().contains(VERSION));
            if error.code == UNSUPPORTED_VERSION && supported {
                return Greeted::Again;
            }
            Greeted::Other
        }
    }
}

/// What the answer to `initialize` says.
#[must_use]
pub fn of_initialize(answer: Result<&RawValue, &RawValue>) -> Greeted {
    let info = answer.ok().and_then(|result| ServerInfo::read(result).ok());
    match info {
        Some(info) if info.known_version().is_some() => Greeted::Speaks(info),
        _ => Greeted::Other,
    }
}

/// What a greeting without an answer says.
#[must_use]
pub fn of_failure(failure: Failure) -> Greeted {
    match (failure.outcome, failure.cause) {
        // Refused for what it says, or answered with something that is no MCP.
        (OutcomeKind::ClientFault, _) | (_, Cause::Malformed) => Greeted::Other,
        _ if failure.ends_conversation() => Greeted::Unreachable(failure),
        _ => Greeted::Unclear(failure),
    }
}

/// Whether an `error` says that its request was written for another era than the server speaks:
/// it was refused unread, and the server is to be greeted anew.
#[must_use]
pub fn is_about_the_era(error: &ErrorObject<'_>) -> bool {
    match error.code {
        UNSUPPORTED_VERSION | HEADER_MISMATCH => true,
        // What a request without an envelope is told.
        INVALID_PARAMS => error.message.contains("_meta"),
        _ => false,
    }
}

/// The same of a request in an era that came to nothing: a server with sessions has no words for
/// one of the stateless era.
#[must_use]
pub const fn may_be_about_the_era(failure: &Failure, spoken: Era) -> bool {
    matches!(spoken, Era::Stateless)
        && matches!(failure.cause, Cause::Status(400 | 404 | 405 | 406))
}

/// What a server's answer says; none unless it speaks the stateless revision: some answer the
/// question and speak only what sessions speak.
fn read_discover(result: &RawValue) -> Option<ServerInfo> {
    let fields = Fields::of(result, &[]).ok()?;
    let versions: Vec<String> =
        serde_json::from_str(fields.get("supportedVersions")?.get()).ok()?;
    if !versions.iter().any(|version| version == VERSION) {
        return None;
    }
    let meta = fields.get("_meta").and_then(|meta| Fields::of(meta, &[]).ok());
    Some(ServerInfo {
        version: VERSION.to_owned(),
        capabilities: fields.get("capabilities").map(ToOwned::to_owned),
        server_info: meta.and_then(|meta| meta.get(SERVER_INFO).map(ToOwned::to_owned)),
        instructions: fields.text("instructions").filter(|text| !text.trim().is_empty()),
    })
}

#[cfg(test)]
mod tests {
    use tidegate_core::time::Millis;

    use super::*;
    use crate::stateless::discover;

    fn raw(json: &str) -> Box<RawValue> {
        RawValue::from_string(json.to_owned()).expect("json")
    }

    #[test]
    fn only_words_of_the_era_prove_it() {
        let good = raw(r#"{"supportedVersions":["2026-07-28"],"capabilities":{}}"#);
        assert!(matches!(of_discover(Ok(&good)), Greeted::Speaks(_)));
        let shim = raw(r#"{"supportedVersions":["2025-11-25"],"capabilities":{}}"#);
        assert!(matches!(of_discover(Ok(&shim)), Greeted::Other));
        for code in [-32601, -32600, -32000, -32602, -32022, 0] {
            let error = raw(&format!(r#"{{"code":{code},"message":"no"}}"#));
            assert!(matches!(of_discover(Err(&error)), Greeted::Other), "{code}");
        }
        let odd = raw(r#"{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}}"#);
        assert!(matches!(of_discover(Err(&odd)), Greeted::Again));
        let init = raw(r#"{"protocolVersion":"2025-06-18","capabilities":{}}"#);
        assert!(matches!(of_initialize(Ok(&init)), Greeted::Speaks(_)));
        let later = raw(r#"{"protocolVersion":"2099-01-01","capabilities":{}}"#);
        assert!(matches!(of_initialize(Ok(&later)), Greeted::Other));
    }

    #[test]
    fn a_request_for_another_era_is_told_from_a_bad_one() {
        let is_told = |json: &str| is_about_the_era(&ErrorObject::read(&raw(json)));
        assert!(is_told(r#"{"code":-32022,"message":"no"}"#));
        assert!(is_told(r#"{"code":-32020,"message":"mcp-method is missing"}"#));
        assert!(is_told(r#"{"code":-32602,"message":"params._meta must be an object"}"#));
        assert!(!is_told(r#"{"code":-32602,"message":"unknown tool"}"#));
        assert!(!is_told(r#"{"code":-32601,"message":"no such method"}"#));
        let refused = Failure::of(Cause::Status(404), OutcomeKind::ClientFault);
        assert!(may_be_about_the_era(&refused, Era::Stateless));
        assert!(!may_be_about_the_era(&refused, Era::Sessions));
        let overloaded = Failure::of(Cause::Status(503), OutcomeKind::Overloaded);
        assert!(!may_be_about_the_era(&overloaded, Era::Stateless));
    }

    #[test]
    fn a_trouble_of_the_moment_decides_nothing() {
        let of = |cause, outcome| of_failure(Failure::of(cause, outcome));
        let timeout = Cause::TimedOut(Millis(5));
        assert!(matches!(of(timeout, OutcomeKind::Timeout), Greeted::Unclear(_)));
        for (status, outcome) in [
            (503, OutcomeKind::Overloaded),
            (500, OutcomeKind::ServerError),
            (408, OutcomeKind::Timeout),
        ] {
            assert!(matches!(of(Cause::Status(status), outcome), Greeted::Unclear(_)), "{status}");
        }
        let auth = of(Cause::AuthRejected, OutcomeKind::AuthRejected);
        assert!(matches!(auth, Greeted::Unclear(_)));
        let refused = of(Cause::ConnectionRefused, OutcomeKind::Transport);
        assert!(matches!(refused, Greeted::Unreachable(_)));
        for status in [400, 404, 405, 406, 415] {
            let other = of(Cause::Status(status), OutcomeKind::ClientFault);
            assert!(matches!(other, Greeted::Other), "{status}");
        }
    }

    #[test]
    fn an_answer_counts_only_with_the_stateless_revision_in_it() {
        let info =
            |json: &str| read_discover(&RawValue::from_string(json.to_owned()).expect("json"));
        let own = info(&discover::answer(r#"{"tools":{}}"#, Some("be kind"))).expect("ours");
        assert!(own.can("tools") && own.instructions.as_deref() == Some("be kind"));
        assert!(info(r#"{"supportedVersions":["2025-11-25"],"capabilities":{}}"#).is_none());
        assert!(info(r#"{"capabilities":{}}"#).is_none() && info("[]").is_none());
    }
}

//! Which era of the protocol a server speaks: found out by asking, remembered while it holds.
//!
//! Rules kept here:
//! - No single code decides: a server of the stateless era says so in words of that era; whatever
//!   else answers the question is of the other.
//! - What may be a trouble of the moment (an overload, a rejected credential, silence) decides
//!   nothing and is not remembered.
//! - What was remembered is forgotten when it turns out wrong.
//!
//! Left to others: which era to try first, and the asking (the shell's link).

use serde_json::value::RawValue;
use tidegate_core::outcome::OutcomeKind;

use crate::{
    cause::Cause,
    health::Failure,
    listing::ServerInfo,
    message::{ErrorObject, INVALID_PARAMS},
    stateless::{HEADER_MISMATCH, UNSUPPORTED_VERSION, VERSION, discover},
};

/// An era of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Era {
    /// 2024-11-05 to 2025-11-25: `initialize`, then a session.
    Sessions,
    /// 2026-07-28: every request for itself.
    Stateless,
}

/// What is known of one server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Eras {
    sessions: Option<bool>,
    stateless: Option<bool>,
}

impl Eras {
    /// Whether it speaks an era, if that is known.
    #[must_use]
    pub const fn speaks(self, era: Era) -> Option<bool> {
        match era {
            Era::Sessions => self.sessions,
            Era::Stateless => self.stateless,
        }
    }

    /// It was found out.
    pub fn learn(&mut self, era: Era, speaks: bool) {
        match era {
            Era::Sessions => self.sessions = Some(speaks),
            Era::Stateless => self.stateless = Some(speaks),
        }
    }

    /// What was believed of an era turned out wrong.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// The eras to try, in the order of `wishes`; those that it is known not to speak come last, in
    /// case it has learned them since.
    #[must_use]
    pub fn in_order(self, wishes: &[Era]) -> Vec<Era> {
        let mut eras = wishes.to_vec();
        eras.sort_by_key(|era| self.speaks(*era) == Some(false));
        eras
    }
}

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
        Ok(result) => discover::read(result).map_or(Greeted::Other, Greeted::Speaks),
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

#[cfg(test)]
mod tests {
    use tidegate_core::time::Millis;

    use super::*;

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
    fn an_era_that_a_server_does_not_speak_is_tried_last() {
        let mut eras = Eras::default();
        let both = [Era::Stateless, Era::Sessions];
        assert_eq!(eras.in_order(&both), both);
        eras.learn(Era::Stateless, false);
        assert_eq!(eras.in_order(&both), [Era::Sessions, Era::Stateless]);
        assert_eq!(eras.in_order(&[Era::Stateless]), [Era::Stateless]);
        eras.forget();
        assert_eq!(eras.in_order(&both), both);
    }
}

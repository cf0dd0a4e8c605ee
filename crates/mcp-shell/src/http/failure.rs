//! What a refusal or a broken exchange means: whose fault, was anything carried out, is the
//! session gone.
//!
//! Rules kept here:
//! - A server that does not know the session says so in many ways (404, or 400, 401, 403, 500 and
//!   503 with words about the session). It counts only while we hold a session id: a new
//!   `initialize` is then worth a try, and the request was refused unread.
//! - What a status means for health is the core's table.
//! - A redirect is a fault of the server's and never followed: the address comes from the config
//!   only.
//! - A body is looked at for those words and for nothing else; none of it is shown to anybody.

use http::{HeaderMap, StatusCode};
use tidegate_core::{outcome::OutcomeKind, time::Millis};
use tidegate_mcp::cause::{Cause, Delivery};
use tidegate_net::upstream::ConnectError;
use tidegate_wire::retry_after;

use crate::transport::Failure;

/// How much of a refusal's body is looked at: the words about a session stand near its start.
const LOOKED_AT: usize = 4 * 1024;

/// What servers say of a session that they do not have, beside the word itself.
const GONE: &[&str] = &[
    "unknown",
    "invalid",
    "no valid",
    "not valid",
    "expired",
    "not found",
    "no longer",
    "does not exist",
    "doesn't exist",
    "terminated",
    "closed",
    "missing",
    "required",
    "stale",
    "no active",
    "not initialized",
    "unrecognized",
    "unrecognised",
];

/// A failure without an HTTP answer to go by.
pub(crate) const fn plain(cause: Cause, delivery: Delivery, outcome: OutcomeKind) -> Failure {
    Failure { delivery, ..Failure::of(cause, outcome) }
}

/// The connection broke with the request under way.
pub(crate) const fn broken() -> Failure {
    plain(Cause::ConnectionBroken, Delivery::Maybe, OutcomeKind::Transport)
}

/// What came is not MCP.
pub(crate) const fn malformed() -> Failure {
    plain(Cause::Malformed, Delivery::Maybe, OutcomeKind::Transport)
}

/// What came is larger than a message may be. That is a limit of the gateway's, which the caller
/// ran into: it says nothing about the server.
pub(super) const fn too_large() -> Failure {
    plain(Cause::TooLarge, Delivery::Maybe, OutcomeKind::ClientFault)
}

/// No connection within the limit.
pub(super) const fn connect_timed_out(limit: Millis) -> Failure {
    plain(Cause::TimedOut(limit), Delivery::Not, OutcomeKind::Transport)
}

/// No connection.
pub(super) const fn of_connect(error: ConnectError) -> Failure {
    let cause = match error {
        ConnectError::Dns => Cause::NameNotResolved,
        ConnectError::Private => Cause::PrivateAddress,
        ConnectError::Refused => Cause::ConnectionRefused,
        ConnectError::Failed => Cause::ConnectionFailed,
        ConnectError::Tls => Cause::TlsFailed,
        ConnectError::Shortage => {
            return plain(Cause::Shortage, Delivery::Not, OutcomeKind::Cancelled);
        }
    };
    plain(cause, Delivery::Not, OutcomeKind::Transport)
}

/// The session is gone, as this status says.
const fn session_lost(status: u16) -> Failure {
    let lost = plain(Cause::SessionLost, Delivery::Not, OutcomeKind::Transport);
    Failure { status: Some(status), is_session_loss: true, ..lost }
}

/// An answer that is no success.
pub(super) struct Refused<'a> {
    pub(super) status: StatusCode,
    pub(super) headers: &'a HeaderMap,
    /// Its body, or the beginning of it.
    pub(super) body: &'a [u8],
    /// Whether the request carried a session id.
    pub(super) had_session: bool,
}

impl Refused<'_> {
    /// What it means.
    pub(super) fn failure(&self, now_unix_ms: u64) -> Failure {
        let status = self.status.as_u16();
        if self.had_session && self.is_about_the_session() {
            return session_lost(status);
        }
        let outcome = OutcomeKind::from_status(status);
        let cause = match outcome {
            OutcomeKind::AuthRejected => Cause::AuthRejected,
            OutcomeKind::RateLimited => Cause::RateLimited,
            _ => Cause::Status(status),
        };
        let delivery = match status {
            // Proxies in front of a server that took too long, or that failed it.
            408 | 424 => Delivery::Maybe,
            300..=499 => Delivery::Not,
            _ => Delivery::Maybe,
        };
        let retry_after = retry_after::retry_after(self.headers, now_unix_ms);
        Failure { status: Some(status), retry_after, ..plain(cause, delivery, outcome) }
    }

    fn is_about_the_session(&self) -> bool {
        match self.status.as_u16() {
            404 => true,
            400 | 401 | 403 | 500 | 503 => speaks_of_a_lost_session(self.body),
            _ => false,
        }
    }
}

fn speaks_of_a_lost_session(body: &[u8]) -> bool {
    let looked_at = &body[..body.len().min(LOOKED_AT)];
    let text = String::from_utf8_lossy(looked_at).to_ascii_lowercase();
    text.contains("session") && GONE.iter().any(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(status: u16, body: &str, had_session: bool) -> Failure {
        let status = StatusCode::from_u16(status).expect("a status");
        let headers = HeaderMap::new();
        Refused { status, headers: &headers, body: body.as_bytes(), had_session }.failure(0)
    }

    #[test]
    fn a_lost_session_is_told_in_many_ways_while_one_is_held() {
        for (status, body) in [
            (404, ""),
            (400, r#"{"error":{"message":"Bad Request: No valid session ID provided"}}"#),
            (400, "Unknown Mcp-Session-Id"),
            (401, "Unauthorized: Session not found"),
            (500, r#"{"error":{"code":-32001,"message":"Session expired"}}"#),
            (503, "session does not exist"),
        ] {
            let failure = check(status, body, true);
            assert!(failure.is_session_loss, "{status} {body}");
            assert_eq!((failure.cause, failure.delivery), (Cause::SessionLost, Delivery::Not));
            assert!(!check(status, body, false).is_session_loss, "{status} {body}");
        }
        for (status, body) in [(400, "bad arguments"), (401, "token expired"), (500, "invalid")] {
            assert!(!check(status, body, true).is_session_loss, "{status} {body}");
        }
    }

    #[test]
    fn a_status_says_whose_fault_it_is_and_whether_the_request_was_carried_out() {
        for (status, delivery, outcome) in [
            (301, Delivery::Not, OutcomeKind::ServerError),
            (400, Delivery::Not, OutcomeKind::ClientFault),
            (401, Delivery::Not, OutcomeKind::AuthRejected),
            (403, Delivery::Not, OutcomeKind::AuthRejected),
            (402, Delivery::Not, OutcomeKind::Exhausted),
            (408, Delivery::Maybe, OutcomeKind::Timeout),
            (424, Delivery::Maybe, OutcomeKind::ServerError),
            (429, Delivery::Not, OutcomeKind::RateLimited),
            (500, Delivery::Maybe, OutcomeKind::ServerError),
            (501, Delivery::Maybe, OutcomeKind::ClientFault),
            (503, Delivery::Maybe, OutcomeKind::Overloaded),
            (504, Delivery::Maybe, OutcomeKind::ServerError),
            (529, Delivery::Maybe, OutcomeKind::Overloaded),
        ] {
            let failure = check(status, "", false);
            let told = (failure.status, failure.delivery, failure.outcome);
            assert_eq!(told, (Some(status), delivery, outcome));
        }
    }
}

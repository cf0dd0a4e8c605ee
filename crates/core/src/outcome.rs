//! How an attempt ended, as data, and what each ending means.
//!
//! Every attempt ends in exactly one [`Outcome`]. Its class decides four things, each on its own:
//! does the request go on to another backend, is the breaker charged, is a window or exclusion
//! set, and what the client sees. The first three are one row of [`OutcomeKind::policy`]: a table,
//! so that no other file branches on a class to decide them again.
//!
//! Whether a client may be shown the answer as an error is [`Outcome::error_status`], and the
//! constructors keep it right:
//! - [`Outcome::answered`]: a status line tells everything. Below 300 there is no error to show.
//! - [`Outcome::error`]: the answer says that it is an error, whatever its status line: an error
//!   inside a 200 is shown as a 502.
//! - [`Outcome::broken`]: a response head came, but no answer: the connection broke, a limit was
//!   reached, or a 2xx was nothing at all. There is no HTTP error to show.
//! - [`Outcome::unanswered`]: no response head came.
//!
//! Left to others: reading bodies and streams (the wire crate finds `exhausted`, `model_gone`,
//! `too_long` and errors inside a 200); [`OutcomeKind::from_status`] knows the status line only.

use serde::{Deserialize, Serialize};

use crate::time::Millis;

/// The class of an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeKind {
    /// A whole answer.
    Success,
    /// 429.
    RateLimited,
    /// Quota or credit of our key is used up.
    Exhausted,
    /// Our key was refused.
    AuthRejected,
    /// The model does not exist there.
    ModelGone,
    /// 503 or 529.
    Overloaded,
    /// Another fault of the upstream's own making.
    ServerError,
    /// A limit on waiting was reached.
    Timeout,
    /// The connection failed.
    Transport,
    /// The answer broke after content was released.
    Truncated,
    /// The request does not fit into the target's context.
    TooLong,
    /// The caller's request is at fault.
    ClientFault,
    /// Nobody wants the answer any more, or we never really asked.
    Cancelled,
}

/// Whether the request may go on to another backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoOn {
    /// It may, as long as no content was released (for these classes none can have been, or a
    /// release ends it).
    BeforeContent,
    /// It may, unless the route surfaces rejected keys.
    UnlessSurfaced,
    /// It may, but only to targets whose context is not known to be the same or smaller.
    ToLargerContext,
    /// This is the end of the request.
    No,
}

/// What the breaker learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charge {
    /// A success.
    Success,
    /// A failure.
    Failure,
    /// A failure, unless the answer says when to come back or another free key is left.
    FailureUnlessTimed,
    /// Nothing: the permit returns and that is all.
    Nothing,
}

/// What stands against the backend or key for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkRule {
    /// Nothing.
    None,
    /// A window on (target, key), with a default length when the answer does not say.
    Window,
    /// A window on (target, key), only if a 5xx answer says how long.
    WindowIfStated,
    /// The key is excluded for `exhausted_window`.
    KeyExhausted,
    /// For `auth_window` the key is excluded, or after a 403 only this (target, key).
    KeyRejected,
    /// The target is excluded for `model_gone_window`.
    ModelGone,
}

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Whether the request may go on.
    pub go_on: GoOn,
    /// What the breaker learns.
    pub charge: Charge,
    /// What stands against the backend or key afterwards.
    pub mark: MarkRule,
}

impl OutcomeKind {
    /// All classes, in the order of the table.
    pub const ALL: [Self; 13] = [
        Self::Success,
        Self::RateLimited,
        Self::Exhausted,
        Self::AuthRejected,
        Self::ModelGone,
        Self::Overloaded,
        Self::ServerError,
        Self::Timeout,
        Self::Transport,
        Self::Truncated,
        Self::TooLong,
        Self::ClientFault,
        Self::Cancelled,
    ];

    /// The table.
    #[must_use]
    pub const fn policy(self) -> Policy {
        let (go_on, charge, mark) = match self {
            Self::Success => (GoOn::No, Charge::Success, MarkRule::None),
            Self::RateLimited => {
                (GoOn::BeforeContent, Charge::FailureUnlessTimed, MarkRule::Window)
            }
            Self::Exhausted => (GoOn::BeforeContent, Charge::Nothing, MarkRule::KeyExhausted),
            Self::AuthRejected => (GoOn::UnlessSurfaced, Charge::Nothing, MarkRule::KeyRejected),
            Self::ModelGone => (GoOn::BeforeContent, Charge::Nothing, MarkRule::ModelGone),
            Self::Overloaded => (GoOn::BeforeContent, Charge::Failure, MarkRule::WindowIfStated),
            Self::ServerError => (GoOn::BeforeContent, Charge::Failure, MarkRule::WindowIfStated),
            Self::Timeout => (GoOn::BeforeContent, Charge::Failure, MarkRule::None),
            Self::Transport => (GoOn::BeforeContent, Charge::Failure, MarkRule::None),
            Self::Truncated => (GoOn::No, Charge::Failure, MarkRule::None),
            Self::TooLong => (GoOn::ToLargerContext, Charge::Nothing, MarkRule::None),
            Self::ClientFault => (GoOn::No, Charge::Nothing, MarkRule::None),
            Self::Cancelled => (GoOn::No, Charge::Nothing, MarkRule::None),
        };
        Policy { go_on, charge, mark }
    }

    /// The class a status line alone speaks for.
    #[must_use]
    pub const fn from_status(status: u16) -> Self {
        match status {
            200..=299 => Self::Success,
            401 | 403 => Self::AuthRejected,
            402 => Self::Exhausted,
            408 => Self::Timeout,
            429 => Self::RateLimited,
            424 | 300..=399 => Self::ServerError,
            503 | 529 => Self::Overloaded,
            501 | 505 => Self::ClientFault,
            400..=499 => Self::ClientFault,
            // Also what is no final status at all, such as 101 or 999.
            _ => Self::ServerError,
        }
    }

    /// Whether the trouble is one of our own keys: shown to a client only if there is no other.
    #[must_use]
    pub const fn is_key_trouble(self) -> bool {
        matches!(self, Self::AuthRejected | Self::Exhausted)
    }

    /// Whether another free key of the same target is worth a try.
    #[must_use]
    pub const fn asks_next_key(self) -> bool {
        matches!(self, Self::RateLimited | Self::AuthRejected | Self::Exhausted)
    }

    /// Whether it says that something is wrong over there (what `last_error` remembers).
    #[must_use]
    pub const fn is_error(self) -> bool {
        !matches!(self, Self::Success | Self::TooLong | Self::ClientFault | Self::Cancelled)
    }

    /// The word used in traces, metrics and JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::RateLimited => "rate_limited",
            Self::Exhausted => "exhausted",
            Self::AuthRejected => "auth_rejected",
            Self::ModelGone => "model_gone",
            Self::Overloaded => "overloaded",
            Self::ServerError => "server_error",
            Self::Timeout => "timeout",
            Self::Transport => "transport",
            Self::Truncated => "truncated",
            Self::TooLong => "too_long",
            Self::ClientFault => "client_fault",
            Self::Cancelled => "cancelled",
        }
    }
}

/// How one attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Its class.
    pub kind: OutcomeKind,
    /// The HTTP status, if a response head arrived.
    pub status: Option<u16>,
    /// The status under which a client may see the answer as an error; `None` if the upstream
    /// gave no HTTP error.
    pub error_status: Option<u16>,
    /// When the answer says to come back. Zero says nothing.
    pub retry_after: Option<Millis>,
}

/// A longer `Retry-After` is not believed: an hour covers every limit that is not a quota.
pub(crate) const RETRY_AFTER_MAX: Millis = Millis::minutes(60);

/// What a client sees in place of a status that is no error or no final status.
const BAD_GATEWAY: u16 = 502;

impl Outcome {
    /// An answer with this status, as the status line alone tells.
    #[must_use]
    pub const fn answered(status: u16) -> Self {
        let kind = OutcomeKind::from_status(status);
        match status {
            200..=299 => Self::broken(kind, Some(status)),
            _ => Self::error(kind, status),
        }
    }

    /// An answer that is an error, also where its status line says otherwise.
    #[must_use]
    pub const fn error(kind: OutcomeKind, status: u16) -> Self {
        let shown = if matches!(status, 400..=599) { status } else { BAD_GATEWAY };
        Self { kind, status: Some(status), error_status: Some(shown), retry_after: None }
    }

    /// An ending without an HTTP error to show: the answer broke after its head, if it had one, or
    /// was nothing.
    #[must_use]
    pub const fn broken(kind: OutcomeKind, status: Option<u16>) -> Self {
        Self { kind, status, error_status: None, retry_after: None }
    }

    /// An ending without an HTTP answer.
    #[must_use]
    pub const fn unanswered(kind: OutcomeKind) -> Self {
        Self::broken(kind, None)
    }

    /// The time to stay away that the answer states, if it states a believable one.
    #[must_use]
    pub fn stated_retry_after(&self) -> Option<Millis> {
        self.retry_after.filter(|&span| span > Millis::ZERO).map(|span| span.min(RETRY_AFTER_MAX))
    }

    /// Whether the status is a 5xx: only those may set a window by `Retry-After` besides a 429.
    #[must_use]
    pub const fn is_5xx(&self) -> bool {
        matches!(self.status, Some(500..=599))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_lines_have_the_class_of_the_table() {
        use OutcomeKind::*;
        let rows: [(&[u16], OutcomeKind); 9] = [
            (&[200, 201, 204, 299], Success),
            (&[429], RateLimited),
            (&[402], Exhausted),
            (&[401, 403], AuthRejected),
            (&[503, 529], Overloaded),
            (&[500, 502, 504, 520, 527, 599, 424, 300, 301, 302, 304, 307, 308], ServerError),
            (&[408], Timeout),
            (&[400, 404, 405, 409, 410, 413, 418, 422, 451, 499, 501, 505], ClientFault),
            (&[0, 100, 101, 199, 600, 999], ServerError),
        ];
        for (statuses, kind) in rows {
            for &status in statuses {
                assert_eq!(OutcomeKind::from_status(status), kind, "{status}");
            }
        }
    }

    #[test]
    fn only_an_answer_that_is_an_error_is_shown_as_one() {
        let shown = |outcome: Outcome| outcome.error_status;
        assert_eq!(shown(Outcome::answered(200)), None);
        assert_eq!(shown(Outcome::answered(503)), Some(503));
        for odd in [101, 302, 600, 999] {
            assert_eq!(shown(Outcome::answered(odd)), Some(502), "{odd}");
        }
        assert_eq!(shown(Outcome::error(OutcomeKind::Overloaded, 200)), Some(502));
        assert_eq!(shown(Outcome::error(OutcomeKind::TooLong, 413)), Some(413));
        assert_eq!(shown(Outcome::broken(OutcomeKind::Transport, Some(200))), None);
        assert_eq!(shown(Outcome::unanswered(OutcomeKind::Timeout)), None);
    }

    #[test]
    fn client_faults_and_cancellations_charge_nothing_and_end_the_request() {
        for kind in [OutcomeKind::ClientFault, OutcomeKind::Cancelled] {
            let policy = kind.policy();
            assert_eq!(
                policy,
                Policy { go_on: GoOn::No, charge: Charge::Nothing, mark: MarkRule::None }
            );
        }
    }

    #[test]
    fn key_trouble_never_charges_the_breaker() {
        for kind in OutcomeKind::ALL {
            if kind.is_key_trouble() {
                assert_eq!(kind.policy().charge, Charge::Nothing, "{}", kind.word());
            }
        }
    }

    #[test]
    fn a_stated_time_is_believed_up_to_an_hour_and_zero_says_nothing() {
        let stated =
            |span| Outcome { retry_after: span, ..Outcome::answered(429) }.stated_retry_after();
        assert_eq!(stated(None), None);
        assert_eq!(stated(Some(Millis::ZERO)), None);
        assert_eq!(stated(Some(Millis(1))), Some(Millis(1)));
        assert_eq!(stated(Some(Millis(u64::MAX))), Some(Millis::minutes(60)));
    }

    #[test]
    fn words_and_serde_agree() {
        for kind in OutcomeKind::ALL {
            let json =
                serde::de::value::StrDeserializer::<serde::de::value::Error>::new(kind.word());
            assert_eq!(OutcomeKind::deserialize(json).ok(), Some(kind));
        }
    }
}

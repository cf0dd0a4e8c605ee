//! Why a server could not answer, as fixed phrases.
//!
//! Rules kept here:
//! - A phrase is made of words and numbers of our own: never an address, a path or text of a
//!   server's (S61).
//! - Whether a request may have been carried out is told apart ([`Delivery`]): replaying depends
//!   on it and on nothing else about the cause.

use std::fmt;

use tidegate_core::time::Millis;

/// Why a server could not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Nobody listens there.
    ConnectionRefused,
    /// The host's name is unknown.
    NameNotResolved,
    /// A public name led to a private address.
    PrivateAddress,
    /// TLS could not be agreed on.
    TlsFailed,
    /// A connection could not be made, for another reason.
    ConnectionFailed,
    /// A connection broke.
    ConnectionBroken,
    /// A limit on waiting was reached.
    TimedOut(Millis),
    /// The server does not know its session any more, and no new one could be had.
    SessionLost,
    /// The breaker is open.
    CircuitOpen,
    /// An operator switched it off.
    SwitchedOff,
    /// Our credentials were refused.
    AuthRejected,
    /// It asks for patience.
    RateLimited,
    /// It answered with this HTTP status.
    Status(u16),
    /// What it sent is not MCP.
    Malformed,
    /// An answer was larger than the limit.
    TooLarge,
    /// Its program ended.
    ProcessExited,
    /// Its program cannot be started.
    CannotStart,
    /// Its program ended again and again and is left alone for a while.
    CrashLoop,
    /// The limit on child processes is reached.
    TooManyChildren,
    /// The limit on calls at once is reached.
    Busy,
    /// It is connected, and what it offers is not known.
    ListsUnknown,
    /// It was unhealthy when the session opened.
    ExcludedAtOpen,
    /// The gateway is on its way out, or the server left the config.
    Closing,
    /// The limit on descriptors or ports is reached: says nothing about the server.
    Shortage,
    /// The session went to another replica while the call was under way.
    Moved,
    /// The replica that had the session ended while the call was under way.
    OwnerGone,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let phrase = match self {
            Self::TimedOut(limit) if limit.0 % 1000 == 0 => {
                return write!(f, "timed out after {}s", limit.0 / 1000);
            }
            Self::TimedOut(limit) => return write!(f, "timed out after {}ms", limit.0),
            Self::Status(status) => return write!(f, "answered with status {status}"),
            Self::ConnectionRefused => "connection refused",
            Self::NameNotResolved => "name not resolved",
            Self::PrivateAddress => "private address refused",
            Self::TlsFailed => "tls failed",
            Self::ConnectionFailed => "connection failed",
            Self::ConnectionBroken => "connection broken",
            Self::SessionLost => "session lost",
            Self::CircuitOpen => "circuit open",
            Self::SwitchedOff => "switched off",
            Self::AuthRejected => "credentials rejected",
            Self::RateLimited => "rate limited",
            Self::Malformed => "malformed answer",
            Self::TooLarge => "answer too large",
            Self::ProcessExited => "process exited",
            Self::CannotStart => "process cannot be started",
            Self::CrashLoop => "process keeps crashing",
            Self::TooManyChildren => "too many child processes",
            Self::Busy => "too many calls at once",
            Self::ListsUnknown => "its lists are not known yet",
            Self::ExcludedAtOpen => "unhealthy when the session opened",
            Self::Closing => "closing",
            Self::Shortage => "out of local resources",
            Self::Moved => "the session moved to another replica",
            Self::OwnerGone => "the replica that had the session is gone",
        };
        f.write_str(phrase)
    }
}

/// What is known about a request that got no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// It was certainly not carried out: never sent, or refused unread (an unknown session).
    Not,
    /// It may have been carried out.
    Maybe,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_told_in_the_unit_it_was_written_in() {
        assert_eq!(Cause::TimedOut(Millis::seconds(5)).to_string(), "timed out after 5s");
        assert_eq!(Cause::TimedOut(Millis(1500)).to_string(), "timed out after 1500ms");
    }
}

//! The one resend: a request whose kept connection turned out to be dead is sent again.
//!
//! A server may close an idle connection at the moment it is used again. That says nothing about
//! the server's state, so the request goes out once more over a fresh connection, within the same
//! attempt: it is no hop, and nothing is charged.
//!
//! Rules kept here:
//! - Only a connection that had been used before is excused; a fresh one that breaks is a failure.
//! - Once per attempt, and only before the response head.
//! - An answer that cannot be read is the server's doing, whatever the age of the connection.

use crate::{
    outcome::{Outcome, OutcomeKind},
    permit::Permit,
};

/// Over what a request was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionAge {
    /// A connection made for it.
    Fresh,
    /// One that was kept after an earlier request.
    Reused,
}

/// Why no response head came over a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendFailure {
    /// The connection was closed before the request was sent.
    NotSent,
    /// The connection was closed or reset afterwards.
    Broken,
    /// What came is no HTTP.
    Malformed,
}

/// What becomes of a request whose connection failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendVerdict {
    /// It is sent once more, over a fresh connection.
    Resend,
    /// The attempt has ended like this.
    Failed(Outcome),
}

impl Permit {
    /// The connection failed before the response head.
    pub fn send_failed(&mut self, age: ConnectionAge, failure: SendFailure) -> SendVerdict {
        let is_excused = age == ConnectionAge::Reused && failure != SendFailure::Malformed;
        if is_excused && !self.is_resent && !self.has_head {
            self.is_resent = true;
            return SendVerdict::Resend;
        }
        SendVerdict::Failed(Outcome::unanswered(OutcomeKind::Transport))
    }

    /// Whether its request was sent a second time.
    #[must_use]
    pub fn is_resent(&self) -> bool {
        self.is_resent
    }
}

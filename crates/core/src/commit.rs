//! The commit rule: from when on an answer belongs to its client.
//!
//! Before the commit nothing of an answer has left, so whatever goes wrong is a failure of this
//! attempt only and the request can go elsewhere. After it nothing is retried (I8). The shell holds
//! the bytes; this file says for how long.
//!
//! | form of the answer | is committed |
//! |---|---|
//! | events | at the first content, or when its route's hold ends |
//! | whole, converted | when it is complete |
//! | as it comes | at its first bytes |
//!
//! Rules kept here:
//! - Of the two limits of a route's hold, events and time, the one that is reached first ends it.
//! - No more is held than the limits say: an answer that exceeds them is committed as it stands.
//!   One that is converted to another dialect cannot be, so the shell bounds it.
//! - The client's patience commits what has come (`plan/patience.rs`); the end of a complete answer
//!   commits it, too.
//! - Health learns of the content at the commit, because only that ends every chance of another
//!   attempt. The time to content is that of the first content itself.
//!
//! A permit carries what is held of its answer; `permit.rs` has the calls that the shell makes.
//! Left to others: which bytes are content (the wire crate), and waiting (the shell).

use serde::{Deserialize, Serialize};

use crate::{
    settings::{HoldLimits, HoldSettings},
    time::{Millis, Now},
};

/// How an answer arrives, as far as holding it is concerned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnswerForm {
    /// A stream of events, some of them with content.
    Events,
    /// A body that is judged when it is complete.
    #[default]
    Whole,
    /// A body that goes to the client in another form, which needs all of it.
    Converted,
    /// A body that nobody here reads, such as audio: its first bytes are its content.
    AsItComes,
}

/// Why an answer was committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommitCause {
    /// Its first content came.
    FirstContent,
    /// As many events with content came as its route holds.
    HeldEvents,
    /// The time of its route's hold is over.
    HeldTime,
    /// More came than may be held.
    HoldFull,
    /// The client will not wait any longer.
    Patience,
    /// It is complete.
    Complete,
}

impl CommitCause {
    /// All causes.
    pub const ALL: [Self; 6] = [
        Self::FirstContent,
        Self::HeldEvents,
        Self::HeldTime,
        Self::HoldFull,
        Self::Patience,
        Self::Complete,
    ];

    /// The word used in traces, metrics and JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::FirstContent => "first_content",
            Self::HeldEvents => "held_events",
            Self::HeldTime => "held_time",
            Self::HoldFull => "hold_full",
            Self::Patience => "patience",
            Self::Complete => "complete",
        }
    }
}

/// What is held of one answer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeldAnswer {
    pub(crate) settings: HoldSettings,
    pub(crate) limits: HoldLimits,
    form: AnswerForm,
    /// Events with content.
    events: u32,
    bytes: u64,
    first_content_at: Option<Now>,
    pub(crate) committed: Option<CommitCause>,
}

impl HeldAnswer {
    /// The answer arrives in this form; its last bytes so far, if any, came at `last_byte_at`.
    pub(crate) fn set_form(&mut self, form: AnswerForm, last_byte_at: Option<Now>) {
        self.form = form;
        if form == AnswerForm::AsItComes {
            self.first_content_at = last_byte_at;
        }
    }

    pub(crate) fn add_bytes(&mut self, now: Now, bytes: u64) {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.form == AnswerForm::AsItComes {
            self.first_content_at.get_or_insert(now);
        }
    }

    pub(crate) fn add_event(&mut self, now: Now) {
        self.events = self.events.saturating_add(1);
        self.first_content_at.get_or_insert(now);
    }

    /// When the hold's time is over, if it has a time and that has begun.
    pub(crate) fn ends_at(&self) -> Option<Now> {
        let first = self.first_content_at.filter(|_| self.settings.time > Millis::ZERO)?;
        Some(first.after(self.settings.time))
    }

    /// Why it is to be committed at `now`, if it is.
    pub(crate) fn due(&self, now: Now) -> Option<CommitCause> {
        let is_over = self.ends_at().is_some_and(|end| now.reached(end));
        let is_counted = self.settings.events > 0 && self.events >= self.settings.events;
        let limit = match self.form {
            AnswerForm::Events => self.limits.stream_bytes,
            AnswerForm::Whole | AnswerForm::AsItComes => self.limits.answer_bytes,
            // The shell bounds what it converts: a part of it cannot be committed.
            AnswerForm::Converted => u64::MAX,
        };
        match self.first_content_at {
            Some(_) if self.form == AnswerForm::AsItComes || !self.settings.is_on() => {
                Some(CommitCause::FirstContent)
            }
            Some(_) if is_counted => Some(CommitCause::HeldEvents),
            Some(_) if is_over => Some(CommitCause::HeldTime),
            _ => (self.bytes > limit).then_some(CommitCause::HoldFull),
        }
    }

    /// When the content of an answer that is committed now came, if it has any.
    pub(crate) fn content_at(&self, now: Now, cause: CommitCause) -> Option<Now> {
        match (self.form, cause) {
            // An answer that ends, or that is too long to hold, is content.
            (
                AnswerForm::Whole | AnswerForm::Converted,
                CommitCause::HoldFull | CommitCause::Complete,
            ) => Some(now),
            _ => self.first_content_at,
        }
    }
}

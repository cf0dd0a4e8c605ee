//! The record of a request's attempts, and what its client gets to see.
//!
//! The first attempt is kept inline and later ones on the heap, so that a request whose first
//! choice succeeds allocates nothing.

use serde::{Deserialize, Serialize};

use crate::{
    choice::{ChoiceInput, PinUse, SelectedBy},
    commit::CommitCause,
    outcome::{Outcome, OutcomeKind},
    rank::Rank,
    time::Now,
};

/// One attempt of a request: how it was chosen and how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// The candidate's number in the route.
    pub candidate: u16,
    /// The key's number in the target's list.
    pub key: u16,
    /// When it was chosen.
    pub at: Now,
    /// With the reads and the cursor: all that an exact replay of the choice needs.
    pub input: ChoiceInput,
    /// The cursor of the chosen tier, as read.
    pub cursor: u32,
    /// The rank at which it was chosen.
    pub rank: Rank,
    /// What decided.
    pub by: SelectedBy,
    /// What became of the session's pin.
    pub pin: PinUse,
    /// Whether a half-open breaker admitted it.
    pub is_trial: bool,
    /// Whether it went past a breaker because nothing was available.
    pub is_last_resort: bool,
    /// How it ended, once it has.
    pub outcome: Option<Outcome>,
    /// When it ended.
    pub ended_at: Option<Now>,
    /// Whether it got to its first content.
    pub has_content: bool,
    /// Why its answer was committed, if it was.
    pub committed: Option<CommitCause>,
    /// Whether its request was sent a second time, over a fresh connection.
    pub is_resent: bool,
}

impl Attempt {
    /// Whether an HTTP error ended it.
    fn has_error_status(&self) -> bool {
        self.outcome.is_some_and(|it| it.error_status.is_some())
    }
}

/// The attempts of a request, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AttemptLog {
    first: Option<Attempt>,
    rest: Vec<Attempt>,
}

impl AttemptLog {
    pub(crate) fn push(&mut self, attempt: Attempt) {
        match self.first {
            None => self.first = Some(attempt),
            Some(_) => self.rest.push(attempt),
        }
    }

    /// Forgets the last one.
    pub(crate) fn pop(&mut self) {
        if self.rest.pop().is_none() {
            self.first = None;
        }
    }

    pub(crate) fn last_mut(&mut self) -> Option<&mut Attempt> {
        self.rest.last_mut().or(self.first.as_mut())
    }

    pub(crate) fn get_mut(&mut self, number: usize) -> Option<&mut Attempt> {
        match number.checked_sub(1) {
            None => self.first.as_mut(),
            Some(number) => self.rest.get_mut(number),
        }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rest.len() + usize::from(self.first.is_some())
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Attempt> + Clone {
        self.first.iter().chain(&self.rest)
    }

    /// The attempt whose error the client sees: the first that found the request too long for its
    /// context, else the last that gave an HTTP error, but our own keys' trouble only if there is
    /// no other.
    pub(crate) fn to_relay(&self) -> Option<&Attempt> {
        let gave_error =
            |attempt: &&Attempt| attempt.outcome.is_some_and(|it| it.error_status.is_some());
        let is_ours =
            |attempt: &&Attempt| attempt.outcome.is_some_and(|it| it.kind.is_key_trouble());
        let latest = self.iter().rev().filter(gave_error);
        let of_others = || latest.clone().find(|attempt| !is_ours(attempt));
        self.too_long().find(gave_error).or_else(of_others).or_else(|| latest.clone().next())
    }

    /// The attempts that found the request too long for their target's context.
    pub(crate) fn too_long(&self) -> impl Iterator<Item = &Attempt> {
        let is_too_long =
            |it: &&Attempt| it.outcome.is_some_and(|it| it.kind == OutcomeKind::TooLong);
        self.iter().filter(is_too_long)
    }
}

/// Why a request is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// A success.
    Answered,
    /// The caller's request is at fault.
    ClientFault,
    /// The answer broke after its first content was released.
    Broken,
    /// The client went away, or the attempt was called off.
    Cancelled,
    /// A rejected key ends the request on this route.
    AuthSurfaced,
    /// The route allows no more hops.
    HopLimit,
    /// The route's budget of hops is spent.
    BudgetSpent,
    /// The request's time is over.
    Deadline,
    /// The client will not wait any longer.
    OutOfPatience,
    /// Every candidate that is left is over its limit of last resorts.
    LastResortLimit,
    /// No candidate is left, or there never was one.
    NothingLeft,
    /// No target of the route can do what the request needs.
    NothingAble,
}

/// What the client sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The answer of the attempt with this number, as it came or as far as it came.
    Attempt(usize),
    /// An error of our own: no backend gave an HTTP answer.
    NoHealthyBackend,
    /// An error of our own: the request needs what no target can do.
    NothingAble,
    /// An error of our own, which the vendor's clients know: the thread that the request continues
    /// is not there. They send the whole conversation then, which others can answer.
    ThreadGone,
    /// An error of our own: the request's or the client's time came before an answer.
    OutOfTime,
    /// Nobody is there to see it.
    Nobody,
}

/// The end of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finish {
    /// Why it is over.
    pub end: End,
    /// What the client sees.
    pub answer: Answer,
    /// The status the client sees.
    pub status: u16,
}

const NO_HEALTHY_BACKEND: u16 = 503;
const NOTHING_ABLE: u16 = 400;
const THREAD_GONE: u16 = 404;
const OUT_OF_TIME: u16 = 504;
/// No client sees it; it keeps cancelled requests apart in traces.
const CLIENT_CLOSED_REQUEST: u16 = 499;

impl AttemptLog {
    pub(crate) fn finish(&self, end: End) -> Finish {
        let last = self.len().saturating_sub(1);
        let status_of = |attempt: Option<&Attempt>| attempt?.outcome?.status;
        let (answer, status) = match end {
            End::Answered | End::Broken => {
                (Answer::Attempt(last), status_of(self.iter().last()).unwrap_or(200))
            }
            End::Cancelled => (Answer::Nobody, CLIENT_CLOSED_REQUEST),
            End::NothingAble => (Answer::NothingAble, NOTHING_ABLE),
            End::AuthSurfaced => self.relay(self.iter().last()),
            End::ClientFault if self.too_long().next().is_none() => self.relay(self.iter().last()),
            End::ClientFault
            | End::HopLimit
            | End::BudgetSpent
            | End::LastResortLimit
            | End::NothingLeft => self.relay(self.to_relay()),
            End::Deadline if self.to_relay().is_some() => self.relay(self.to_relay()),
            // An attempt that was not given up, but failed when no time was left for another.
            End::OutOfPatience if self.iter().last().is_some_and(Attempt::has_error_status) => {
                self.relay(self.to_relay())
            }
            End::Deadline | End::OutOfPatience => (Answer::OutOfTime, OUT_OF_TIME),
        };
        Finish { end, answer, status }
    }

    /// The end of a request that others could answer if it brought its thread along.
    pub(crate) fn finish_without_thread(&self, end: End) -> Finish {
        match end {
            End::NothingAble
            | End::NothingLeft
            | End::HopLimit
            | End::BudgetSpent
            | End::LastResortLimit => {
                Finish { end, answer: Answer::ThreadGone, status: THREAD_GONE }
            }
            _ => self.finish(end),
        }
    }

    fn relay(&self, attempt: Option<&Attempt>) -> (Answer, u16) {
        let outcome = attempt.and_then(|attempt| attempt.outcome);
        let Some((attempt, Outcome { error_status: Some(status), .. })) = attempt.zip(outcome)
        else {
            return (Answer::NoHealthyBackend, NO_HEALTHY_BACKEND);
        };
        let number = self.iter().position(|it| std::ptr::eq(it, attempt)).unwrap_or(0);
        (Answer::Attempt(number), status)
    }
}

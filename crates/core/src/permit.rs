//! A permit: the right to make one attempt.
//!
//! It ends exactly once (I3): reported, or dropped, which is the same as cancelled. Dropping needs
//! no clock: it gives back what the permit holds and says nothing about the backend.

use std::sync::Arc;

use crate::{
    backend::{Backend, Endpoint},
    breaker::Pass,
    commit::{AnswerForm, CommitCause, HeldAnswer},
    outcome::{Outcome, OutcomeKind},
    sync::Ordering,
    time::{Millis, Now},
    transition::Notes,
};

/// Added to every lease, so that an answer at the last moment is never stale.
const LEASE_GRACE: Millis = Millis::seconds(1);

/// The right to make one attempt of one backend with one key.
#[derive(Debug)]
pub struct Permit {
    pub(crate) backend: Arc<Backend>,
    pub(crate) key: usize,
    pub(crate) began: Now,
    /// `None` for a last resort: such an attempt reports to no breaker.
    pub(crate) own: Option<Pass>,
    /// The endpoint's part; it ends at the response head.
    pub(crate) endpoint: Option<Pass>,
    pub(crate) is_last_resort: bool,
    pub(crate) has_content: bool,
    /// Whether its request asks for a stream: which usual time it is compared with.
    pub(crate) is_stream: bool,
    pub(crate) sent_at: Option<Now>,
    pub(crate) last_byte_at: Option<Now>,
    pub(crate) has_head: bool,
    /// Whether its request was sent a second time (`resend.rs`).
    pub(crate) is_resent: bool,
    /// What is held of its answer (`commit.rs`).
    pub(crate) held: HeldAnswer,
    pub(crate) time_to_content: Option<Millis>,
    /// The moment at which leaving it was last considered (`plan/patience.rs`).
    pub(crate) considered: Option<Now>,
}

impl Backend {
    /// The passes of both breakers or of neither.
    pub(crate) fn take(self: &Arc<Self>, now: Now, key: usize, lease: Millis) -> Option<Permit> {
        let lease_end = now.after(lease).after(LEASE_GRACE);
        let own = self.health.cell.with(|guarded| guarded.breaker.take(now, lease_end))?;
        let endpoint = match &self.endpoint {
            None => None,
            Some(endpoint) => match take_endpoint(endpoint, now, lease_end) {
                Some(pass) => Some(pass),
                None => {
                    self.health.cell.with(|guarded| guarded.breaker.release(&own));
                    return None;
                }
            },
        };
        Some(Permit::new(Arc::clone(self), now, key, Some(own), endpoint))
    }

    /// An attempt past every breaker, because nothing is available.
    pub(crate) fn last_resort(self: &Arc<Self>, now: Now, key: usize) -> Permit {
        Permit::new(Arc::clone(self), now, key, None, None)
    }
}

/// A closed endpoint is passed without its lock: all targets of a provider share it.
fn take_endpoint(endpoint: &Endpoint, now: Now, lease_end: Now) -> Option<Pass> {
    let gate = endpoint.cell.gate();
    if gate.half_open_from.is_none() {
        return Some(Pass::ordinary(gate.generation, lease_end));
    }
    endpoint.cell.with(|guarded| guarded.breaker.take(now, lease_end))
}

impl Permit {
    fn new(
        backend: Arc<Backend>,
        began: Now,
        key: usize,
        own: Option<Pass>,
        endpoint: Option<Pass>,
    ) -> Self {
        backend.health.in_flight.fetch_add(1, Ordering::Relaxed);
        backend.contact().used(began);
        let is_last_resort = own.is_none();
        Self {
            backend,
            key,
            began,
            own,
            endpoint,
            is_last_resort,
            has_content: false,
            is_stream: false,
            sent_at: None,
            last_byte_at: None,
            has_head: false,
            is_resent: false,
            held: HeldAnswer::default(),
            time_to_content: None,
            considered: None,
        }
    }

    /// The backend to ask.
    #[must_use]
    pub fn backend(&self) -> &Arc<Backend> {
        &self.backend
    }

    /// The index of the key to use, in the backend's own list.
    #[must_use]
    pub fn key(&self) -> usize {
        self.key
    }

    /// When it was given.
    #[must_use]
    pub fn began(&self) -> Now {
        self.began
    }

    /// Whether a half-open breaker admitted it, the target's own or its endpoint's.
    #[must_use]
    pub fn is_trial(&self) -> bool {
        self.own.is_some_and(|pass| pass.is_trial())
            || self.endpoint.is_some_and(|pass| pass.is_trial())
    }

    /// Whether it was given because nothing is available.
    #[must_use]
    pub fn is_last_resort(&self) -> bool {
        self.is_last_resort
    }

    /// The request is being sent: from here on the backend is waited for.
    pub fn sent(&mut self, now: Now) {
        self.sent_at = Some(now);
    }

    /// Whether the client has got something of this attempt's answer.
    #[must_use]
    pub fn is_released(&self) -> bool {
        self.held.committed.is_some() || self.has_content
    }

    /// The attempt is over and only the report about its target is still to come: it has nothing
    /// more to say about the endpoint.
    pub(crate) fn without_endpoint(mut self) -> Self {
        if let (Some(pass), Some(endpoint)) = (self.endpoint.take(), &self.backend.endpoint) {
            endpoint.cell.with(|guarded| guarded.breaker.release(&pass));
        }
        self
    }

    /// How long its first content took since it had been sent, once it has come.
    #[must_use]
    pub fn time_to_content(&self) -> Option<Millis> {
        self.time_to_content
    }

    /// Whether its attempt has got to its first content.
    #[must_use]
    pub fn has_content(&self) -> bool {
        self.has_content
    }
}

/// What the shell tells of the answer, and what becomes of it by the commit rule.
impl Permit {
    /// The response head says in which form its answer arrives.
    pub fn answers_as(&mut self, form: AnswerForm) {
        self.held.set_form(form, self.last_byte_at);
    }

    /// So many bytes of the answer's body arrived, of whatever kind: pings, comments and white
    /// space are signs of life.
    pub fn body_bytes(&mut self, now: Now, bytes: u64) {
        self.last_byte_at = Some(now);
        self.held.add_bytes(now, bytes);
    }

    /// An event with content arrived.
    pub fn content_event(&mut self, now: Now) {
        self.held.add_event(now);
    }

    /// Why the answer is to be committed at `now`; `None` while it is held, and once it was.
    #[must_use]
    pub fn commit_due(&self, now: Now) -> Option<CommitCause> {
        if self.held.committed.is_some() { None } else { self.held.due(now) }
    }

    /// When the time of the hold ends, where the answer is held for a time.
    #[must_use]
    pub fn hold_ends_at(&self) -> Option<Now> {
        self.held.ends_at().filter(|_| self.held.committed.is_none())
    }

    /// What is held of the answer goes to the client, which ends every chance of another attempt;
    /// health learns of its content, if there is any yet.
    pub fn commit(&mut self, now: Now, cause: CommitCause, notes: &mut Notes) {
        self.held.committed.get_or_insert(cause);
        if let Some(content_at) = self.held.content_at(now, cause) {
            let took = content_at.since(self.sent_at.unwrap_or(self.began));
            self.content(now, took, notes);
        }
    }

    /// Why it was committed, once it was.
    #[must_use]
    pub fn committed(&self) -> Option<CommitCause> {
        self.held.committed
    }

    /// How an attempt ends whose answer breaks off, after a response head with this status or
    /// without one.
    #[must_use]
    pub fn broken(&self, status: Option<u16>) -> Outcome {
        let is_released = self.is_released();
        let kind = if is_released { OutcomeKind::Truncated } else { OutcomeKind::Transport };
        Outcome::broken(kind, status)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.backend.health.in_flight.fetch_sub(1, Ordering::Relaxed);
        if let Some(pass) = self.own.take().filter(Pass::is_trial) {
            self.backend.health.cell.with(|guarded| guarded.breaker.release(&pass));
        }
        if let (Some(pass), Some(endpoint)) =
            (self.endpoint.take().filter(Pass::is_trial), &self.backend.endpoint)
        {
            endpoint.cell.with(|guarded| guarded.breaker.release(&pass));
        }
    }
}

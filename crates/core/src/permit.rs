//! A permit: the right to make one attempt.
//!
//! It ends exactly once (I3): reported, or dropped, which is the same as cancelled. Dropping needs
//! no clock: it gives back what the permit holds and says nothing about the backend.

use std::sync::Arc;

use crate::{backend::Backend, breaker::Pass, sync::Ordering, time::Now};

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
    pub(crate) is_committed: bool,
    /// The moment at which leaving it was last considered (`plan/patience.rs`).
    pub(crate) considered: Option<Now>,
}

impl Permit {
    pub(crate) fn new(
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
            is_committed: false,
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

    /// Bytes of the answer's body arrived, of whatever kind: pings, comments and white space are
    /// signs of life.
    pub fn body_bytes(&mut self, now: Now) {
        self.last_byte_at = Some(now);
    }

    /// Bytes of the answer are released to the client, which ends every chance of another attempt
    /// though there may be no content yet.
    pub fn commit(&mut self) {
        self.is_committed = true;
    }

    /// Whether the client has got something of this attempt's answer.
    #[must_use]
    pub fn is_released(&self) -> bool {
        self.is_committed || self.has_content
    }

    /// The attempt is over and only the report about its target is still to come: it has nothing
    /// more to say about the endpoint.
    pub(crate) fn without_endpoint(mut self) -> Self {
        if let (Some(pass), Some(endpoint)) = (self.endpoint.take(), &self.backend.endpoint) {
            endpoint.cell.with(|guarded| guarded.breaker.release(&pass));
        }
        self
    }

    /// Whether its attempt has got to its first content.
    #[must_use]
    pub fn has_content(&self) -> bool {
        self.has_content
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

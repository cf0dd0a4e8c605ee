//! Telling: which changes other replicas of the fleet hear of.
//!
//! Hints go into the caller's [`Notes`], where the transitions of the same change are: no lock is
//! taken and nothing is kept. Of what has no name in the fleet nothing is told, so without a fleet
//! each function here ends at its first line.
//!
//! | told | when |
//! |---|---|
//! | a window | it was set or extended |
//! | an exclusion | it was set or extended; a success or an operator ended it |
//! | a breaker | it opened or re-opened on the replica's own evidence |
//! | a drain, a hold | it began, was extended, or ended before its time |
//! | a reset | it was made |
//! | a pin | it was set or moved; a first lock may wait ([`Haste`]) |
//!
//! What was heard is never told again: only evidence and operators of this replica lead here.

use crate::{
    backend::{Backend, Endpoint, TargetKey},
    breaker::BreakerChange,
    hint::{BreakerOf, Excluded, Fact, Haste, Hint, Lasts, OperatorAction, Stamp},
    mark::MarkReason,
    names::PinKey,
    pins::Pin,
    sync::lock,
    time::{Millis, Now},
    transition::{Change, Notes},
};

impl Notes {
    fn tell(&mut self, stamp: Stamp, fact: Fact) {
        self.hints.push(Hint { age: Millis::ZERO, stamp, fact, haste: Haste::AtOnce });
    }
}

/// What becomes of an exclusion.
pub(crate) struct ExclusionNews {
    pub(crate) version: u64,
    /// `None` = it was healed.
    pub(crate) until: Option<Now>,
    pub(crate) reason: MarkReason,
}

impl Backend {
    fn stamp(&self, version: u64) -> Stamp {
        Stamp { version, writer: self.fleet.replica }
    }

    pub(crate) fn tell_window(
        &self,
        now: Now,
        key: &TargetKey,
        until: Now,
        reason: MarkReason,
        notes: &mut Notes,
    ) {
        let (Some(backend), Some(key)) = (self.fleet.told(), key.key.fleet.told()) else { return };
        let remaining = until.since(now);
        notes.tell(self.stamp(0), Fact::Window { backend, key, remaining, reason });
    }

    /// How the exclusion of a key is called.
    pub(crate) fn key_excluded(&self, key: &TargetKey) -> Option<Excluded> {
        // A key is told of where its target is: what a sidecar does with it is its own affair.
        self.fleet.told().and(key.key.fleet.told()).map(Excluded::Key)
    }

    /// How the exclusion of a key at this target is called.
    pub(crate) fn pair_excluded(&self, key: &TargetKey) -> Option<Excluded> {
        let (backend, key) = self.fleet.told().zip(key.key.fleet.told())?;
        Some(Excluded::Pair { backend, key })
    }

    /// How the exclusion of this target is called.
    pub(crate) fn model_excluded(&self) -> Option<Excluded> {
        self.fleet.told().map(Excluded::Model)
    }

    pub(crate) fn tell_exclusion(
        &self,
        now: Now,
        of: Option<Excluded>,
        news: &ExclusionNews,
        notes: &mut Notes,
    ) {
        let Some(of) = of else { return };
        let remaining = news.until.map(|until| until.since(now));
        let fact = Fact::Exclusion { of, remaining, reason: news.reason };
        notes.tell(self.stamp(news.version), fact);
    }

    pub(crate) fn tell_opening(&self, now: Now, change: &Change, notes: &mut Notes) {
        let of = self.fleet.told().map(BreakerOf::Backend);
        if let Some((stamp, fact)) = of.and_then(|of| opening(now, of, change)) {
            notes.tell(Stamp { writer: self.fleet.replica, ..stamp }, fact);
        }
    }

    pub(crate) fn tell_action(
        &self,
        now: Now,
        action: OperatorAction,
        (stamp, until): (Stamp, Option<Now>),
        notes: &mut Notes,
    ) {
        let Some(backend) = self.fleet.told() else { return };
        let lasts = match until {
            Some(Now::NEVER) => Lasts::UntilEnded,
            Some(until) => Lasts::For(until.since(now)),
            None => Lasts::Ended,
        };
        notes.tell(stamp, Fact::Action { backend, action, lasts });
    }

    pub(crate) fn tell_reset(&self, stamp: Stamp, notes: &mut Notes) {
        let Some(backend) = self.fleet.told() else { return };
        notes.tell(stamp, Fact::Reset { backend });
    }

    pub(crate) fn tell_pin(
        &self,
        now: Now,
        session: PinKey,
        (pin, haste): (&Pin, Haste),
        notes: &mut Notes,
    ) {
        if let Some(fact) = self.pin_fact(now, session, pin) {
            // A move contradicts what others have heard.
            let haste = if pin.stamp.version > 1 { Haste::AtOnce } else { haste };
            notes.hints.push(Hint { age: Millis::ZERO, stamp: pin.stamp, fact, haste });
        }
    }

    /// A pin to this backend, as it is told.
    pub(crate) fn pin_fact(&self, now: Now, session: PinKey, pin: &Pin) -> Option<Fact> {
        let backend = self.fleet.told()?;
        let key = self.keys.iter().find(|it| Some(it.key.fingerprint) == pin.key)?;
        let key = key.key.fleet.told()?;
        let (remaining, stays) = (pin.until.since(now), pin.stays_until.since(now));
        Some(Fact::Pin { session, backend, key, remaining, stays })
    }
}

impl Endpoint {
    pub(crate) fn tell_opening(&self, now: Now, change: &Change, notes: &mut Notes) {
        let fleet = lock(&self.fleet);
        let of = fleet.told().map(BreakerOf::Endpoint);
        if let Some((stamp, fact)) = of.and_then(|of| opening(now, of, change)) {
            notes.tell(Stamp { writer: fleet.replica, ..stamp }, fact);
        }
    }
}

/// A breaker that opened, as it is told; its version is its generation.
fn opening(now: Now, of: BreakerOf, change: &Change) -> Option<(Stamp, Fact)> {
    let Change::Breaker { breaker: BreakerChange::Opened { until, cause, .. }, generation, .. } =
        change
    else {
        return None;
    };
    let fact = Fact::Opened { of, remaining: until.since(now), cause: *cause };
    Some((Stamp { version: *generation, ..Stamp::default() }, fact))
}

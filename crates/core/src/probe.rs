//! When to probe: a pure schedule. The shell makes the requests.
//!
//! Rules kept here:
//! - The first probe is due at once; the next ones every interval, each backend's in a phase of
//!   its own, so that a fleet does not probe in step.
//! - A backend that no probe has reached since the start is asked again soon: after 1 s, twice as
//!   long each time, up to the interval. So one that is dead from the start is known as such before
//!   long, and one that comes up late is found.
//! - A tick is skipped while a probe is under way, when traffic succeeded within the interval, and
//!   when nobody has used the backend for a while. It is never caught up on.
//!
//! Probing goes on while a breaker is open. What a result does to a breaker is the breaker's
//! business; [`ProbeOutcome`] says which breakers hear of it.

use serde::{Deserialize, Serialize};

use crate::{
    draw::{fraction, mix},
    sync::{AtomicU64, Ordering},
    time::{Millis, Now},
};

/// How a provider or server is probed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeSettings {
    /// The interval; zero = off.
    pub every: Millis,
    /// How long one probe may take.
    pub timeout: Millis,
    /// Whether the result of a provider's probe goes to its targets' breakers too.
    pub heals: bool,
    /// With nobody using the backend for this long, probing pauses.
    pub pause_after: Millis,
}

impl Default for ProbeSettings {
    fn default() -> Self {
        Self {
            every: Millis::seconds(30),
            timeout: Millis::seconds(3),
            heals: false,
            pause_after: Millis::minutes(60),
        }
    }
}

/// How a probe of a provider's endpoint ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeOutcome {
    /// An HTTP answer with this status.
    Answered(u16),
    /// No answer in time: no connection, a broken one, or silence.
    Unanswered,
}

impl ProbeOutcome {
    /// Whether the endpoint can be reached: any HTTP answer says so.
    #[must_use]
    pub const fn is_reached(self) -> bool {
        matches!(self, Self::Answered(_))
    }

    /// What a healing probe says about the provider's targets: only a 2xx is good news, and any
    /// other answer says nothing, since a provider may not have the probed path.
    #[must_use]
    pub const fn target_passed(self) -> Option<bool> {
        match self {
            Self::Answered(200..=299) => Some(true),
            Self::Answered(_) => None,
            Self::Unanswered => Some(false),
        }
    }
}

/// What a tick calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tick {
    /// Probe now, and say when it has ended.
    Probe,
    /// It is not time yet.
    NotDue,
    /// The previous probe has not ended.
    UnderWay,
    /// Traffic succeeded within the interval.
    TrafficSpoke,
    /// Nobody has used the backend for a long time.
    NobodyUsesIt,
}

/// When a backend was last used, and when it last worked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contact {
    /// The latest attempt.
    pub used_at: Option<Now>,
    /// The latest success of traffic (of an endpoint: the latest response head).
    pub succeeded_at: Option<Now>,
    /// When it is to be probed at the latest, because another replica found it broken.
    pub probe_at: Option<Now>,
}

/// The schedule of one backend's probes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeClock {
    settings: ProbeSettings,
    seed: u64,
    started: Now,
    next: Now,
    is_first: bool,
    is_under_way: bool,
    /// The latest wish of another replica that was heeded.
    hastened_at: Option<Now>,
    /// Probes since the start that did not reach the backend, none having reached it.
    unreached: u32,
}

/// The first pause after a probe that did not reach a backend nobody has reached yet.
const SOON: Millis = Millis::seconds(1);

impl ProbeClock {
    /// A schedule whose first probe is due at once.
    #[must_use]
    pub fn new(settings: ProbeSettings, seed: u64, now: Now) -> Self {
        let (is_first, is_under_way, unreached) = (true, false, 0);
        let (started, next, hastened_at) = (now, now, None);
        Self { settings, seed, started, next, is_first, is_under_way, hastened_at, unreached }
    }

    /// Its settings.
    #[must_use]
    pub fn settings(&self) -> &ProbeSettings {
        &self.settings
    }

    /// When it wants to be asked next; `None` = never.
    #[must_use]
    pub fn next_due(&self) -> Option<Now> {
        (self.settings.every > Millis::ZERO).then_some(self.next)
    }

    /// The same, where another replica may have found the backend broken.
    #[must_use]
    pub fn next_due_given(&self, contact: Contact) -> Option<Now> {
        let hastened = contact.probe_at.filter(|at| Some(*at) > self.hastened_at);
        self.next_due().map(|next| hastened.map_or(next, |at| at.min(next)))
    }

    /// What to do now.
    pub fn tick(&mut self, now: Now, contact: Contact) -> Tick {
        let every = self.settings.every;
        if self.next_due_given(contact).is_none_or(|due| !now.reached(due)) {
            return Tick::NotDue;
        }
        // What traffic did before another replica found it broken says nothing.
        let is_hastened = contact.probe_at.is_some_and(|at| now.reached(at))
            && contact.probe_at > self.hastened_at;
        if is_hastened {
            self.hastened_at = contact.probe_at;
        }
        let is_needed = self.is_first || is_hastened;
        self.move_on(now);
        let within =
            |moment: Option<Now>, span| moment.is_some_and(|moment| now.since(moment) < span);
        let used_at = contact.used_at.unwrap_or(self.started);
        if self.is_under_way {
            Tick::UnderWay
        } else if !is_needed && within(contact.succeeded_at, every) {
            Tick::TrafficSpoke
        } else if !within(Some(used_at), self.settings.pause_after) {
            Tick::NobodyUsesIt
        } else {
            self.is_under_way = true;
            Tick::Probe
        }
    }

    /// The probe has ended, one way or another.
    pub fn ended(&mut self) {
        self.is_under_way = false;
    }

    /// The same of a probe of a backend that none has reached since the start: it did not either.
    pub fn ended_unreached(&mut self, now: Now) {
        self.ended();
        let doubled = SOON.0.saturating_mul(1 << self.unreached.min(16));
        self.unreached = self.unreached.saturating_add(1);
        self.next = self.next.min(now.after(Millis(doubled)));
    }

    fn move_on(&mut self, now: Now) {
        let every = self.settings.every;
        if !now.reached(self.next) {
            // A probe that was brought forward takes the place of the next one.
            self.next = now.after(every);
        } else if self.is_first {
            self.is_first = false;
            // The second tick sets the phase: half an interval to a whole one after the first.
            let phase = every.scaled(0.5 + 0.5 * fraction(mix(self.seed)));
            self.next = now.after(Millis(phase.0.max(1)));
        } else {
            let late_by = now.since(self.next).0 % every.0;
            self.next = now.after(Millis(every.0 - late_by));
        }
    }
}

/// [`Contact`] as threads share it. Written at most fifty times a second: a backend's traffic would
/// otherwise fight for one cache line, and probe intervals are not that fine.
#[derive(Debug, Default)]
pub(crate) struct SharedContact {
    // Moments are stored one later, so that zero means "never".
    used: AtomicU64,
    succeeded: AtomicU64,
    probe_at: AtomicU64,
}

/// How far a moment may lag behind. It must be short beside any interval: traffic that succeeded
/// within one replaces the probe, also where that is a second.
const GRAIN_MS: u64 = 20;

impl SharedContact {
    pub(crate) fn used(&self, now: Now) {
        note(&self.used, now);
    }

    pub(crate) fn succeeded(&self, now: Now) {
        note(&self.succeeded, now);
    }

    /// It is to be probed at this moment, unless an earlier one is still to come.
    pub(crate) fn hasten(&self, now: Now, at: Now) {
        let due = self.probe_at.load(Ordering::Relaxed);
        if due <= now.0.saturating_add(1) {
            self.probe_at.store(at.0.saturating_add(1), Ordering::Relaxed);
        }
    }

    pub(crate) fn read(&self) -> Contact {
        let moment = |word: &AtomicU64| word.load(Ordering::Relaxed).checked_sub(1).map(Now);
        Contact {
            used_at: moment(&self.used),
            succeeded_at: moment(&self.succeeded),
            probe_at: moment(&self.probe_at),
        }
    }
}

fn note(word: &AtomicU64, now: Now) {
    let stored = word.load(Ordering::Relaxed);
    let moment = now.0.saturating_add(1);
    if stored == 0 || moment >= stored.saturating_add(GRAIN_MS) {
        word.store(moment, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn clock(every: u64) -> ProbeClock {
        let settings = ProbeSettings { every: Millis(every), ..ProbeSettings::default() };
        ProbeClock::new(settings, 7, Now(100))
    }

    #[test]
    fn the_first_probe_is_due_at_once_and_the_rest_every_interval() {
        let mut clock = clock(30_000);
        assert_eq!(clock.next_due(), Some(Now(100)));
        assert_eq!(clock.tick(Now(100), Contact::default()), Tick::Probe);
        clock.ended();
        let second = clock.next_due().expect("it is on");
        assert!((15_100..=30_100).contains(&second.0), "{second:?}");
        assert_eq!(clock.tick(second, Contact::default()), Tick::Probe);
        assert_eq!(clock.next_due(), Some(second.after(Millis(30_000))));
    }

    #[test]
    fn a_backend_that_was_never_reached_is_asked_again_soon() {
        let mut clock = clock(30_000);
        let mut moments = Vec::new();
        for _ in 0..7 {
            let now = clock.next_due().expect("it is on");
            assert_eq!(clock.tick(now, Contact::default()), Tick::Probe);
            clock.ended_unreached(now);
            moments.push(now.0 - 100);
        }
        assert_eq!(moments[..5], [0, 1000, 3000, 7000, 15_000]);
        assert!(moments[6] - moments[5] <= 30_000, "{moments:?}");
    }

    #[test]
    fn phases_differ_between_backends() {
        let second = |seed| {
            let mut clock = ProbeClock::new(ProbeSettings::default(), seed, Now(0));
            clock.tick(Now(0), Contact::default());
            clock.next_due()
        };
        assert_ne!(second(1), second(2));
    }

    #[test]
    fn a_tick_is_skipped_while_a_probe_is_under_way_and_never_caught_up() {
        let mut clock = clock(1000);
        clock.tick(Now(100), Contact::default());
        assert_eq!(clock.tick(Now(50_000), Contact::default()), Tick::UnderWay);
        clock.ended();
        assert_eq!(clock.tick(Now(50_000), Contact::default()), Tick::NotDue);
        let next = clock.next_due().expect("it is on");
        assert!(next > Now(50_000) && next <= Now(51_000));
    }

    #[test]
    fn traffic_that_succeeded_within_the_interval_replaces_the_probe() {
        let mut clock = clock(1000);
        clock.tick(Now(100), Contact::default());
        clock.ended();
        let due = Now(5000);
        let succeeded_at = Some(Now(due.0 - 999));
        let contact = Contact { used_at: Some(due), succeeded_at, probe_at: None };
        assert_eq!(clock.clone().tick(due, contact), Tick::TrafficSpoke);
        let older = Contact { succeeded_at: Some(Now(due.0 - 1000)), ..contact };
        assert_eq!(clock.tick(due, older), Tick::Probe);
    }

    #[test]
    fn probing_pauses_when_nobody_uses_the_backend_for_an_hour() {
        let mut clock = clock(30_000);
        clock.tick(Now(100), Contact::default());
        clock.ended();
        let hour = 3_600_000;
        assert_eq!(clock.tick(Now(100 + hour), Contact::default()), Tick::NobodyUsesIt);
        let used = Contact { used_at: Some(Now(200 + hour)), ..Contact::default() };
        assert_eq!(clock.tick(Now(60_000 + hour), used), Tick::Probe);
    }

    #[test]
    fn an_interval_of_zero_is_off() {
        let mut clock = clock(0);
        assert_eq!(clock.next_due(), None);
        assert_eq!(clock.tick(Now(100), Contact::default()), Tick::NotDue);
    }

    #[test]
    fn contact_is_written_at_most_once_in_a_grain() {
        let contact = SharedContact::default();
        for moment in [0, 10, GRAIN_MS - 1] {
            contact.used(Now(moment));
        }
        assert_eq!(contact.read().used_at, Some(Now(0)));
        contact.used(Now(GRAIN_MS));
        let used_at = Some(Now(GRAIN_MS));
        assert_eq!(contact.read(), Contact { used_at, ..Contact::default() });
    }

    /// Another replica's finding hastens one probe, at its moment and once.
    #[test]
    fn a_hastened_probe_comes_at_its_moment_and_once() {
        let mut clock = clock(30_000);
        clock.tick(Now(100), Contact::default());
        clock.ended();
        let due = clock.next_due().expect("it is on");
        let spoke = |probe_at| Contact {
            used_at: Some(due),
            succeeded_at: Some(due),
            probe_at: Some(probe_at),
        };
        let soon = due.after(Millis(500));
        assert_eq!(clock.tick(due, spoke(soon)), Tick::TrafficSpoke);
        assert_eq!(clock.tick(soon, spoke(soon)), Tick::Probe);
        clock.ended();
        assert_eq!(clock.next_due_given(spoke(soon)), clock.next_due());
        let next = clock.next_due().expect("it is on");
        let traffic = Contact { succeeded_at: Some(next), used_at: Some(next), ..spoke(soon) };
        assert_eq!(clock.tick(next, traffic), Tick::TrafficSpoke);
    }

    #[test]
    fn steady_traffic_replaces_every_probe_of_a_short_interval() {
        let contact = SharedContact::default();
        let mut clock = clock(500);
        assert_eq!(clock.tick(Now(100), Contact::default()), Tick::Probe);
        clock.ended();
        for moment in (110..10_000).step_by(50) {
            contact.succeeded(Now(moment));
            let tick = clock.tick(Now(moment), contact.read());
            assert!(matches!(tick, Tick::NotDue | Tick::TrafficSpoke), "{tick:?} at {moment}");
        }
    }
}

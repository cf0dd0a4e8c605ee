//! One breaker shared between threads: a short lock to change it, atomic words to read it.
//!
//! Choosing looks at every candidate but changes only the picked one, so reading must not lock.
//! The words form a sequence lock: a writer, inside the mutex, makes the version odd, stores the
//! words and makes it even again; a reader takes the words twice-framed by the same even version.
//! `tests/loom.rs` runs every interleaving of this file.
//!
//! Rules kept here:
//! - Readers never block a writer. After a bounded number of tries a reader takes the lock.
//! - Words are stored only when they differ, so a healthy backend's cache line stays shared.
//! - Where one word says it all, a reader loads that one and needs no version.

use crate::{
    breaker::{Breaker, Gate},
    latency::Latency,
    outcome::{Outcome, OutcomeKind},
    sync::{AtomicU64, Mutex, Ordering, fence, lock, pause},
    time::{Millis, Now},
    usual::UsualTimes,
};
use serde::{Deserialize, Serialize};

/// What went wrong last, until a success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastError {
    /// When.
    pub at: Now,
    /// How the attempt ended; `None` for a probe.
    pub outcome: Option<OutcomeKind>,
    /// The HTTP status, if there was one.
    pub status: Option<u16>,
}

impl LastError {
    /// Whether a probe met it.
    #[must_use]
    pub const fn is_of_probe(&self) -> bool {
        self.outcome.is_none()
    }
}

/// What the lock guards.
#[derive(Clone, Debug)]
pub(crate) struct Guarded {
    pub(crate) breaker: Breaker,
    pub(crate) latency: Latency,
    pub(crate) usual: UsualTimes,
    pub(crate) last_error: Option<LastError>,
    pub(crate) last_check: Option<Now>,
    /// The latest probe alone. One of a provider's host is news of each of its targets, while a
    /// call is news of the called one.
    pub(crate) last_probe: Option<Now>,
}

impl Guarded {
    /// Remembers how the latest call ended, whatever the breaker makes of it.
    pub(crate) fn note(&mut self, now: Now, outcome: &Outcome) {
        self.last_check = Some(now);
        if outcome.kind == OutcomeKind::Success {
            self.last_error = None;
        } else if outcome.kind.is_error() {
            let (outcome, status) = (Some(outcome.kind), outcome.status);
            self.last_error = Some(LastError { at: now, outcome, status });
        }
    }

    /// Remembers how the latest probe ended.
    pub(crate) fn note_probe(&mut self, now: Now, passed: bool) {
        self.last_check = Some(now);
        self.last_probe = Some(now);
        self.last_error = (!passed).then_some(LastError { at: now, outcome: None, status: None });
    }
}

/// What a reader gets without the lock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Words {
    pub(crate) gate: Gate,
    pub(crate) latency: Latency,
}

impl Words {
    fn of(guarded: &Guarded) -> Self {
        Self { gate: guarded.breaker.gate(), latency: guarded.latency }
    }
}

/// No moment: the word for "closed" and for "no sample".
const NONE: u64 = u64::MAX;
const WORDS: usize = 6;
/// The first word is the generation and, in its lowest bits, two claims about the rest.
const FLAG_BITS: u32 = 2;
const IS_SPOTLESS: u64 = 1;
/// The other words of the gate are those of [`plain_gate`].
const IS_PLAIN: u64 = 2;
/// A reader that meets this many writers in a row queues up for the lock instead.
const READ_TRIES: u32 = 64;

#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Cell {
    version: AtomicU64,
    words: [AtomicU64; WORDS],
    guarded: Mutex<Guarded>,
}

impl Cell {
    pub(crate) fn new(breaker: Breaker) -> Self {
        let guarded = Guarded {
            breaker,
            latency: Latency::default(),
            usual: UsualTimes::default(),
            last_error: None,
            last_check: None,
            last_probe: None,
        };
        let words = encode(&Words::of(&guarded)).map(AtomicU64::new);
        Self { version: AtomicU64::new(0), words, guarded: Mutex::new(guarded) }
    }

    /// Changes what the lock guards, and publishes what became of it.
    pub(crate) fn with<R>(&self, change: impl FnOnce(&mut Guarded) -> R) -> R {
        let mut guarded = lock(&self.guarded);
        let before = Words::of(&guarded);
        let result = change(&mut guarded);
        let after = Words::of(&guarded);
        if before != after {
            self.publish(&after);
        }
        result
    }

    /// The gate alone. That of a backend without a past is one word, and one load.
    pub(crate) fn gate(&self) -> Gate {
        let word = self.words[0].load(Ordering::Relaxed);
        if word & IS_PLAIN == 0 {
            return self.read().gate;
        }
        plain_gate(word >> FLAG_BITS, word & IS_SPOTLESS != 0)
    }

    /// How long such requests usually take; `None` without samples.
    pub(crate) fn usual_time(&self, is_stream: bool) -> Option<Millis> {
        lock(&self.guarded).usual.of(is_stream)
    }

    /// The words as one writer left them.
    pub(crate) fn read(&self) -> Words {
        for _ in 0..READ_TRIES {
            let version = self.version.load(Ordering::Acquire);
            if version.is_multiple_of(2) {
                let words = self.words.each_ref().map(|word| word.load(Ordering::Relaxed));
                fence(Ordering::Acquire);
                if self.version.load(Ordering::Relaxed) == version {
                    return decode(words);
                }
            }
            pause();
        }
        Words::of(&lock(&self.guarded))
    }

    /// Only ever called with the lock held.
    fn publish(&self, words: &Words) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        for (word, value) in self.words.iter().zip(encode(words)) {
            word.store(value, Ordering::Relaxed);
        }
        self.version.store(version.wrapping_add(2), Ordering::Release);
    }
}

fn encode(words: &Words) -> [u64; WORDS] {
    let Words { gate, latency } = words;
    // One short of "no moment": an opening without end is still an opening.
    let moment = |moment: Option<Now>| moment.map_or(NONE, |moment| moment.0.min(NONE - 1));
    let mut flags = if gate.is_spotless { IS_SPOTLESS } else { 0 };
    if *gate == plain_gate(gate.generation, gate.is_spotless) {
        flags |= IS_PLAIN;
    }
    [
        gate.generation << FLAG_BITS | flags,
        moment(gate.half_open_from),
        gate.free_from.0,
        gate.hold_until.0,
        latency.peak_ms.to_bits(),
        moment(latency.at),
    ]
}

/// Closed, and in no promotion hold.
fn plain_gate(generation: u64, is_spotless: bool) -> Gate {
    let (free_from, hold_until) = (Now::ZERO, Now::ZERO);
    Gate { generation, half_open_from: None, free_from, hold_until, is_spotless }
}

fn decode(words: [u64; WORDS]) -> Words {
    let moment = |word| if word == NONE { None } else { Some(Now(word)) };
    let gate = Gate {
        generation: words[0] >> FLAG_BITS,
        is_spotless: words[0] & IS_SPOTLESS != 0,
        half_open_from: moment(words[1]),
        free_from: Now(words[2]),
        hold_until: Now(words[3]),
    };
    Words { gate, latency: Latency { peak_ms: f64::from_bits(words[4]), at: moment(words[5]) } }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::settings::HealthSettings;

    #[test]
    fn a_reader_sees_what_the_lock_guards() {
        let cell = Cell::new(Breaker::new(HealthSettings::default(), 0));
        for _ in 0..3 {
            cell.with(|guarded| {
                let pass = guarded.breaker.take(Now(1), Now(9)).expect("closed");
                guarded.breaker.failure(Now(1), pass, false);
                guarded.latency.sample(Now(1), Millis(70));
            });
            assert_eq!(cell.read(), cell.with(|guarded| Words::of(guarded)));
        }
        assert_eq!(cell.read().gate.half_open_from, Some(Now(30_001)));
    }
}

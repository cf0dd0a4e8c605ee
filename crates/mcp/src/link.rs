//! One kept connection to a server: who may use it, who makes it, who hears that it is gone.
//!
//! ```text
//!            want                connected
//!   down ───────────▶ connecting ─────────▶ ready
//!     ▲                   │ failed            │ lost
//!     └───────────────────┴───────────────────┘        close: closed, for ever, from anywhere
//! ```
//! Rules kept here:
//! - Single flight: one caller is told to connect, every other one to wait for the same attempt.
//! - Every attempt has a [`Generation`]. Whoever speaks of an old one changes nothing, so that
//!   twenty calls that notice the same loss cause one new attempt.
//! - A failed attempt is charged at most once, by whoever [claims](Link::claim) it first.
//! - A server that keeps state has forgotten it after a re-initialise: the first result after it is
//!   to say so ([`Link::tell_new`]).
//! - A first connect is not a re-initialise; [`Link::reinitialised`] counts the successes after it.
//!
//! Left to others: deadlines (the caller's), when to stop trying (the breaker and
//! `supervisor.rs`), what to do with the requests that were under way (`call.rs`).

use crate::health::Failure;

/// The number of a connect attempt, and of the connection it led to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Generation(pub u64);

/// What a caller that needs the connection has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// Use it.
    Use(Generation),
    /// Wait until the attempt under way has ended.
    Wait(Generation),
    /// Connect, and say how it went.
    Connect(Generation),
    /// Give up: it was closed on purpose.
    Closed,
}

/// What a connection looks like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkState {
    /// Not there.
    #[default]
    Down,
    /// An attempt, or a new `initialize`, is under way.
    Connecting,
    /// There, and initialised.
    Ready,
    /// Closed on purpose.
    Closed,
}

/// One kept connection.
#[derive(Clone, Debug, Default)]
pub struct Link {
    state: LinkState,
    /// Of the latest attempt.
    generation: Generation,
    /// How the latest attempt failed, if it did.
    failure: Option<Failure>,
    /// The latest attempt whose failure somebody has charged.
    claimed: Generation,
    connects: u64,
    /// Another replica had it before.
    was_elsewhere: bool,
    /// It was made again, and no result has said so.
    is_new: bool,
}

impl Link {
    /// A connection that nobody has asked for yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks for the connection. Whoever is told to connect must see the attempt to its end.
    pub fn want(&mut self) -> Want {
        match self.state {
            LinkState::Ready => Want::Use(self.generation),
            LinkState::Connecting => Want::Wait(self.generation),
            LinkState::Closed => Want::Closed,
            LinkState::Down => {
                self.generation.0 += 1;
                self.state = LinkState::Connecting;
                self.failure = None;
                Want::Connect(self.generation)
            }
        }
    }

    /// The attempt led to a connection. Whether that changed anything.
    pub fn connected(&mut self, generation: Generation) -> bool {
        let is_news = self.is_at(generation, LinkState::Connecting);
        if is_news {
            self.state = LinkState::Ready;
            self.connects += 1;
            self.is_new = self.connects > 1 || self.was_elsewhere;
        }
        is_news
    }

    /// Somebody else had this connection before: the next one that is made is a new one, and its
    /// first result says so.
    pub fn regain(&mut self) {
        self.was_elsewhere = true;
    }

    /// Whether there was ever a connection.
    #[must_use]
    pub fn was_made(&self) -> bool {
        self.connects > 0 || self.was_elsewhere
    }

    /// The attempt failed. Whether that changed anything.
    pub fn failed(&mut self, generation: Generation, failure: Failure) -> bool {
        let is_news = self.is_at(generation, LinkState::Connecting);
        if is_news {
            self.state = LinkState::Down;
            self.failure = Some(failure);
        }
        is_news
    }

    /// The connection is gone. Whether that changed anything: it does for the first observer only.
    pub fn lost(&mut self, generation: Generation) -> bool {
        let is_news = self.is_at(generation, LinkState::Ready);
        if is_news {
            self.state = LinkState::Down;
        }
        is_news
    }

    /// Closes it for good.
    pub fn close(&mut self) {
        self.state = LinkState::Closed;
    }

    /// Whether the caller is the one that charges the failure of this attempt. True once.
    pub fn claim(&mut self, generation: Generation) -> bool {
        let is_first = generation > self.claimed;
        if is_first {
            self.claimed = generation;
        }
        is_first
    }

    /// How the attempt of this generation failed, if it is the latest and did.
    #[must_use]
    pub fn failure(&self, generation: Generation) -> Option<Failure> {
        self.failure.filter(|_| generation == self.generation)
    }

    /// Whether a result that goes to a client is to say that the server's session is a new one.
    /// True once after each re-initialise.
    pub fn tell_new(&mut self) -> bool {
        std::mem::take(&mut self.is_new)
    }

    /// Its state.
    #[must_use]
    pub fn state(&self) -> LinkState {
        self.state
    }

    /// The number of the latest attempt.
    #[must_use]
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// How often it was made again after the first time.
    #[must_use]
    pub fn reinitialised(&self) -> u64 {
        self.connects.saturating_sub(1)
    }

    fn is_at(&self, generation: Generation, state: LinkState) -> bool {
        self.generation == generation && self.state == state
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cause::Cause;
    use tidegate_core::outcome::OutcomeKind;

    const REFUSED: Failure = Failure::of(Cause::ConnectionRefused, OutcomeKind::Transport);

    fn ready() -> (Link, Generation) {
        let mut link = Link::new();
        let Want::Connect(first) = link.want() else { panic!("a new link connects") };
        assert!(link.connected(first));
        (link, first)
    }

    #[test]
    fn one_caller_connects_and_the_others_wait_for_it() {
        let mut link = Link::new();
        assert_eq!(link.want(), Want::Connect(Generation(1)));
        assert_eq!(link.want(), Want::Wait(Generation(1)));
        link.connected(Generation(1));
        assert_eq!(link.want(), Want::Use(Generation(1)));
        assert_eq!(link.reinitialised(), 0);
    }

    #[test]
    fn a_connection_was_made_once_it_stood_here_or_elsewhere() {
        let mut link = Link::new();
        assert!(!link.was_made());
        link.want();
        assert!(!link.was_made(), "it is only being tried");
        let (mut stood, first) = ready();
        stood.lost(first);
        assert!(stood.was_made());
        link.regain();
        assert!(link.was_made());
    }

    #[test]
    fn twenty_observers_of_one_loss_cause_one_new_attempt() {
        let (mut link, first) = ready();
        let news: Vec<bool> = (0..20).map(|_| link.lost(first)).collect();
        assert_eq!(news.iter().filter(|it| **it).count(), 1);
        let wants: Vec<Want> = (0..20).map(|_| link.want()).collect();
        let second = Generation(2);
        assert_eq!(wants[0], Want::Connect(second));
        assert!(wants[1..].iter().all(|it| *it == Want::Wait(second)));
        link.connected(second);
        assert!(!link.lost(first), "a late observer of the old connection");
        assert_eq!((link.state(), link.reinitialised()), (LinkState::Ready, 1));
    }

    #[test]
    fn a_regained_session_is_told_once_and_a_first_one_never() {
        let (mut link, first) = ready();
        assert!(!link.tell_new());
        link.lost(first);
        let Want::Connect(second) = link.want() else { panic!("it is down") };
        assert!(!link.tell_new());
        link.connected(second);
        assert_eq!((link.tell_new(), link.tell_new()), (true, false));
    }

    #[test]
    fn a_failed_attempt_is_told_to_its_own_waiters_and_claimed_once() {
        let (mut link, first) = ready();
        link.lost(first);
        let Want::Connect(second) = link.want() else { panic!("it is down") };
        assert!(link.failed(second, REFUSED));
        assert_eq!((link.failure(second), link.failure(first)), (Some(REFUSED), None));
        assert_eq!((link.claim(second), link.claim(second)), (true, false));
        assert_eq!(link.want(), Want::Connect(Generation(3)));
        assert_eq!(link.failure(second), None);
        assert_eq!(link.reinitialised(), 0);
    }

    #[test]
    fn nothing_reopens_a_closed_link() {
        let (mut link, first) = ready();
        link.lost(first);
        let Want::Connect(second) = link.want() else { panic!("it is down") };
        link.close();
        assert!(!link.connected(second) && !link.failed(second, REFUSED) && !link.lost(first));
        assert_eq!(link.want(), Want::Closed);
    }
}

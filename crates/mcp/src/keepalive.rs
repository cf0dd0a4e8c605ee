//! When an idle connection is asked whether it is still there: a pure schedule per connection.
//!
//! ```text
//!              due                 answered
//!   waiting ─────────▶ under way ───────────▶ waiting        stop: stopped, for ever
//!      ▲                   │ failed, `failures` in a row
//!      │ trial answered    ▼
//!      └─────────────── disabled for `quiet`, then one trial; if that fails, disabled again
//! ```
//! Rules kept here:
//! - Every interval is `every` ± `jitter`, drawn anew. Real traffic starts the interval again, and
//!   an answer to it ends a row of failures: the connection has proved itself.
//! - Never while the connection is being made; the new connection starts a new interval.
//! - On a lost connection it is made again instead, by the link's single flight and with a permit
//!   ([`Due::Reconnect`]); if that fails the reason is `lost`.
//! - While the breaker is open nothing is sent: counted with reason `open`, which counts towards
//!   nothing.
//! - Any JSON-RPC answer is a sign of life, an error too, whatever HTTP status it comes with: a
//!   server need not know `ping`. An answer that says that the session is lost means a lost
//!   connection, which is made again at once and is no failure by itself ([`sign_of`]).
//! - After the quiet window exactly one trial decides. If the connection has to be made again for
//!   it, that is not the trial: what is sent over the new connection is. Both count as one attempt
//!   ([`Keepalive::is_counted`]), which ends as the trial does.
//! - Single misses charge nobody. Disabling marks the connection lost and charges the server with
//!   one failure, unless that very miss was a failed reconnect, which its permit has charged.
//! - After [`Keepalive::stop`] nothing that is under way counts.
//!
//! Left to others: what is sent (`ping`, or the configured tool), timers, metrics: each [`Due`] and
//! [`Ended`] says what to count.

use tidegate_core::{
    draw::fraction,
    outcome::OutcomeKind,
    time::{Millis, Now},
};

use crate::{
    cause::Cause,
    health::{Failure, Reply, of_answer},
    link::LinkState,
};

/// What is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// What suits the server: a ping to one with sessions, nothing to one without, where nothing
    /// would be lost.
    #[default]
    Suitable,
    /// The protocol's ping.
    Ping,
    /// A tool call.
    Tool,
    /// Nothing, ever.
    None,
}

impl Method {
    /// Whether it sends anything to a server that is spoken to with or without a session.
    #[must_use]
    pub const fn is_sent(self, is_stateless: bool) -> bool {
        match self {
            Self::Suitable => !is_stateless,
            Self::Ping | Self::Tool => true,
            Self::None => false,
        }
    }
}

/// How an idle connection is kept alive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KeepaliveSettings {
    /// What is sent.
    pub method: Method,
    /// How long a connection is idle before it is sent.
    pub every: Millis,
    /// Up to this share of `every` is added or taken at random.
    pub jitter: f64,
    /// How long an answer may take.
    pub timeout: Millis,
    /// Failures in a row after which it disables itself.
    pub failures: u32,
    /// How long it is disabled then.
    pub quiet: Millis,
}

impl Default for KeepaliveSettings {
    fn default() -> Self {
        Self {
            method: Method::Suitable,
            every: Millis::minutes(5),
            jitter: 0.2,
            timeout: Millis::seconds(5),
            failures: 3,
            quiet: Millis::minutes(30),
        }
    }
}

/// Why a keepalive failed: the label `reason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// No answer in time.
    Timeout,
    /// An error for an answer.
    Error,
    /// The connection was lost, and could not be made again.
    Lost,
    /// The breaker is open: it was not sent.
    Open,
}

/// What came of one that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// The server is there.
    Alive,
    /// It is, or may be, but the connection is lost: make it again.
    Lost,
    /// It failed.
    Failed(Reason),
}

/// Reads the end of a keepalive: an answer, with the code and message of its error if it is one, or
/// what happened instead.
#[must_use]
pub fn sign_of(answer: Result<Option<(i64, &str)>, &Failure>) -> Sign {
    match answer {
        Ok(error) => match of_answer(error) {
            Reply::SessionLost => Sign::Lost,
            Reply::Ended(_) => Sign::Alive,
        },
        Err(failure) if failure.ends_conversation() => Sign::Lost,
        Err(Failure { is_spoken: true, .. }) => Sign::Alive,
        Err(Failure { cause: Cause::TimedOut(_), .. }) => Sign::Failed(Reason::Timeout),
        Err(_) => Sign::Failed(Reason::Error),
    }
}

impl Reason {
    /// What the core is told when it ends in disabling.
    #[must_use]
    pub const fn outcome(self) -> OutcomeKind {
        match self {
            Self::Timeout => OutcomeKind::Timeout,
            Self::Error => OutcomeKind::ServerError,
            Self::Lost | Self::Open => OutcomeKind::Transport,
        }
    }

    /// All of them.
    pub const ALL: [Self; 4] = [Self::Timeout, Self::Error, Self::Lost, Self::Open];

    /// The word used in traces and metrics.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Error => "error",
            Self::Lost => "lost",
            Self::Open => "open",
        }
    }
}

/// What a tick calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Nothing: ask again at [`Keepalive::next_wakeup`].
    Nothing,
    /// Send it, and say how it ended, at the latest at this moment. One attempt.
    Send(Now),
    /// Make the connection again, with a permit, and say how that ended. One attempt.
    Reconnect,
    /// The breaker is open: one failure with reason `open`, nothing to do.
    Refused,
}

/// How one that was sent ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was stopped meanwhile, none was under way, or the connection for a trial was made, which
    /// comes at once: nothing to count.
    Nothing,
    /// One success, after this long.
    Success(Millis),
    /// One failure.
    Failure(Reason),
    /// One failure, and it is disabled now: the connection is to be marked lost.
    Disabled {
        /// Why the last one failed.
        reason: Reason,
        /// Whether the server is to be charged with one failure.
        is_charged: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeepalivePhase {
    Waiting { until: Now },
    UnderWay { since: Now, is_reconnect: bool },
    Disabled { until: Now },
    Stopped,
}

/// The schedule of one connection.
#[derive(Clone, Debug)]
pub struct Keepalive {
    settings: KeepaliveSettings,
    phase: KeepalivePhase,
    /// Failures in a row.
    failures: u32,
    /// Whether the next one, or the one under way, decides about being disabled.
    is_trial: bool,
    /// The connection for a trial was made, and the trial has not been sent.
    is_counted: bool,
}

impl Keepalive {
    /// The schedule of a connection that is there, or being made, now.
    #[must_use]
    pub fn new(settings: KeepaliveSettings, now: Now, draw: u64) -> Self {
        let is_off = settings.method == Method::None || settings.every == Millis::ZERO;
        let (phase, failures) = (KeepalivePhase::Stopped, 0);
        let mut keepalive = Self { settings, phase, failures, is_trial: false, is_counted: false };
        if !is_off {
            keepalive.wait(now, draw);
        }
        keepalive
    }

    /// When it wants to be asked next; `None` = not before one that is under way has ended, or
    /// never.
    #[must_use]
    pub fn next_wakeup(&self) -> Option<Now> {
        match self.phase {
            KeepalivePhase::Waiting { until } | KeepalivePhase::Disabled { until } => Some(until),
            KeepalivePhase::UnderWay { .. } | KeepalivePhase::Stopped => None,
        }
    }

    /// What to do now.
    pub fn tick(&mut self, now: Now, draw: u64, link: LinkState, is_open: bool) -> Due {
        let is_due = self.next_wakeup().is_some_and(|until| now.reached(until));
        if !is_due || link == LinkState::Closed {
            return Due::Nothing;
        }
        self.is_trial |= matches!(self.phase, KeepalivePhase::Disabled { .. });
        if link == LinkState::Connecting {
            self.wait(now, draw);
            return Due::Nothing;
        }
        self.is_counted = false;
        if is_open {
            self.wait(now, draw);
            return Due::Refused;
        }
        let is_reconnect = link != LinkState::Ready;
        self.phase = KeepalivePhase::UnderWay { since: now, is_reconnect };
        match link {
            LinkState::Ready => Due::Send(now.after(self.settings.timeout)),
            LinkState::Down | LinkState::Connecting | LinkState::Closed => Due::Reconnect,
        }
    }

    /// The one that was sent ended.
    pub fn ended(&mut self, now: Now, draw: u64, result: Result<(), Reason>) -> Ended {
        let KeepalivePhase::UnderWay { since, is_reconnect } = self.phase else {
            return Ended::Nothing;
        };
        let Err(reason) = result else {
            self.failures = 0;
            if is_reconnect && self.is_trial {
                // The connection is there for the trial, which comes at once.
                self.phase = KeepalivePhase::Waiting { until: now };
                self.is_counted = true;
                return Ended::Nothing;
            }
            self.is_trial = false;
            self.wait(now, draw);
            return Ended::Success(now.since(since));
        };
        self.failures = self.failures.saturating_add(1);
        if !self.is_trial && self.failures < self.settings.failures {
            self.wait(now, draw);
            return Ended::Failure(reason);
        }
        self.failures = 0;
        self.is_trial = false;
        self.phase = KeepalivePhase::Disabled { until: now.after(self.settings.quiet) };
        Ended::Disabled { reason, is_charged: reason != Reason::Lost }
    }

    /// A message went out: the interval starts again.
    pub fn sent(&mut self, now: Now, draw: u64) {
        if matches!(self.phase, KeepalivePhase::Waiting { .. }) {
            self.wait(now, draw);
        }
    }

    /// A call was answered, or the connection was made again: the interval starts again, and a row
    /// of failures has ended. A disabled keepalive stays disabled until its trial.
    pub fn heard(&mut self, now: Now, draw: u64) {
        self.failures = 0;
        self.sent(now, draw);
    }

    /// Ends it at once, also one that is under way.
    pub fn stop(&mut self) {
        self.phase = KeepalivePhase::Stopped;
    }

    /// Whether it has disabled itself, and no trial has succeeded since.
    #[must_use]
    pub fn is_disabled(&self) -> bool {
        self.is_trial || matches!(self.phase, KeepalivePhase::Disabled { .. })
    }

    /// Whether what falls due next goes on with an attempt that has been counted.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        self.is_counted
    }

    /// Whether one is under way.
    #[must_use]
    pub fn is_under_way(&self) -> bool {
        matches!(self.phase, KeepalivePhase::UnderWay { .. })
    }

    fn wait(&mut self, now: Now, draw: u64) {
        // From 1 - jitter to 1 + jitter, evenly.
        let factor = 1.0 + self.settings.jitter * (2.0 * fraction(draw) - 1.0);
        let span = Millis(self.settings.every.scaled(factor).0.max(1));
        self.phase = KeepalivePhase::Waiting { until: now.after(span) };
    }
}

#[cfg(test)]
mod tests;

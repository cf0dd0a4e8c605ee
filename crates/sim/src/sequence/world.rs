//! The made-up world: what each service does when it is called.
//!
//! A [`CallScript`] per service decides how an attempt ends, and nothing else: who is called is the
//! core's decision.
//!
//! Rules kept here:
//! - Calls are counted, not expanded: a step that repeats a billion times costs nothing.
//! - A service without a script always answers 200.

use tidegate_core::{
    outcome::{Outcome, OutcomeKind},
    time::Millis,
};

use super::file::{FaultWord, OnExhaust};

/// What a service does at one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Behaviour {
    pub(super) ending: Ending,
    /// Time to first content.
    pub(super) latency: Millis,
}

/// How a call ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// With an HTTP status, and perhaps a time to stay away.
    Status { status: u16, retry_after: Option<Millis> },
    /// Without a usable answer.
    Error(FaultWord),
}

impl Behaviour {
    /// A plain answer.
    pub(super) const fn status(status: u16) -> Self {
        Self { ending: Ending::Status { status, retry_after: None }, latency: Millis::ZERO }
    }
}

/// What a service that has nothing left to say answers under `on_exhaust: fail`.
const GONE: u16 = 410;

/// What a service does, call by call.
#[derive(Clone, Debug)]
pub(super) struct CallScript {
    /// Never empty; each with the number of calls it lasts, at least one.
    steps: Vec<(Behaviour, u64)>,
    on_exhaust: OnExhaust,
    /// The step of the next call; past the last only under `fail`.
    position: usize,
    /// Calls that step has served.
    served: u64,
}

impl CallScript {
    /// A script of these steps; without any, 200 for ever.
    pub(super) fn new(mut steps: Vec<(Behaviour, u64)>, on_exhaust: OnExhaust) -> Self {
        if steps.is_empty() {
            steps.push((Behaviour::status(200), 1));
        }
        Self { steps, on_exhaust, position: 0, served: 0 }
    }

    /// What the next call meets.
    pub(super) fn call(&mut self) -> Behaviour {
        let Some(&(behaviour, calls)) = self.steps.get(self.position) else {
            return Behaviour::status(GONE);
        };
        self.served += 1;
        if self.served >= calls {
            self.served = 0;
            let is_last = self.position + 1 == self.steps.len();
            self.position = match self.on_exhaust {
                OnExhaust::Clamp if is_last => self.position,
                OnExhaust::Loop if is_last => 0,
                OnExhaust::Clamp | OnExhaust::Loop | OnExhaust::Fail => self.position + 1,
            };
        }
        behaviour
    }
}

/// How far an answer gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reach {
    /// Nothing comes.
    Nothing,
    /// A response head.
    Head,
    /// The first content of a stream.
    Content,
}

impl Behaviour {
    /// How far the answer gets before it ends.
    pub(super) fn reach(&self) -> Reach {
        match self.ending {
            Ending::Status { .. } if self.outcome().kind == OutcomeKind::Success => Reach::Content,
            Ending::Status { .. } => Reach::Head,
            Ending::Error(FaultWord::Truncate) => Reach::Content,
            Ending::Error(FaultWord::Connect | FaultWord::Reset | FaultWord::Timeout) => {
                Reach::Nothing
            }
        }
    }

    /// How the attempt ends, as the core is told.
    pub(super) fn outcome(&self) -> Outcome {
        match self.ending {
            Ending::Status { status, retry_after } => {
                Outcome { retry_after, ..Outcome::answered(status) }
            }
            Ending::Error(FaultWord::Connect | FaultWord::Reset) => {
                Outcome::unanswered(OutcomeKind::Transport)
            }
            Ending::Error(FaultWord::Timeout) => Outcome::unanswered(OutcomeKind::Timeout),
            Ending::Error(FaultWord::Truncate) => {
                Outcome { kind: OutcomeKind::Truncated, ..Outcome::answered(200) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statuses(on_exhaust: OnExhaust, steps: &[(u16, u64)], calls: usize) -> Vec<u16> {
        let steps = steps.iter().map(|&(status, calls)| (Behaviour::status(status), calls));
        let mut script = CallScript::new(steps.collect(), on_exhaust);
        let status = |behaviour: Behaviour| match behaviour.ending {
            Ending::Status { status, .. } => status,
            Ending::Error(_) => 0,
        };
        (0..calls).map(|_| status(script.call())).collect()
    }

    #[test]
    fn a_clamped_script_repeats_its_last_step() {
        let found = statuses(OnExhaust::Clamp, &[(500, 2), (200, 1), (429, 1)], 6);
        assert_eq!(found, [500, 500, 200, 429, 429, 429]);
    }

    #[test]
    fn a_looping_script_starts_again() {
        assert_eq!(
            statuses(OnExhaust::Loop, &[(500, 2), (200, 1)], 7),
            [500, 500, 200, 500, 500, 200, 500]
        );
        assert_eq!(statuses(OnExhaust::Loop, &[(503, 1)], 3), [503; 3]);
    }

    #[test]
    fn a_failing_script_ends_in_410_for_ever() {
        assert_eq!(statuses(OnExhaust::Fail, &[(200, 2)], 5), [200, 200, 410, 410, 410]);
    }

    #[test]
    fn no_script_is_200_for_ever() {
        assert_eq!(statuses(OnExhaust::Fail, &[], 1), [200]);
        assert_eq!(statuses(OnExhaust::Clamp, &[], 3), [200; 3]);
    }

    #[test]
    fn a_step_of_a_billion_calls_costs_nothing() {
        assert_eq!(statuses(OnExhaust::Clamp, &[(500, u64::MAX), (200, 1)], 2), [500, 500]);
    }
}

//! The course of one attempt: what comes over the wire, when, and which limit cuts it short.
//!
//! Here a script's phase and the limits on waiting become the moments that the core hears of:
//! response head, content, end. When an answer is committed, and what a break means, is decided in
//! the core. The limits on waiting are applied here as the data plane applies them to real sockets.
//!
//! Rules kept here:
//! - An answer that does not stream has its head when it is whole.
//! - Of several limits the earliest cuts; the request's own deadline counts like a limit.

use tidegate_core::{
    outcome::{Outcome, OutcomeKind},
    time::{Millis, Now},
};

use super::script::{Act, Pace, Phase};
use tidegate_config::file::Timeouts;

/// What an attempt comes to, counted from its start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Course {
    /// When the response head arrives, if it does.
    pub(super) head: Option<Millis>,
    /// When the first content arrives, if it does.
    pub(super) content: Option<Millis>,
    /// How many more events with content follow, and at which distance.
    pub(super) more: More,
    /// From when on bytes without content keep coming, if they do.
    pub(super) pings: Option<Millis>,
    /// When it ends.
    pub(super) end: Millis,
    /// How it ends; `None` if the request's deadline ends it.
    pub(super) outcome: Option<Outcome>,
}

/// The events with content of a stream after the first.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct More {
    pub(super) events: u32,
    pub(super) gap: Millis,
}

/// What a course depends on besides the phase.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conditions<'a> {
    pub(super) is_stream: bool,
    /// Attempts that the backend is busy with, this one included.
    pub(super) in_flight: u32,
    /// A fraction for the phase's share.
    pub(super) lot: f64,
    /// A fraction for the jitter.
    pub(super) wobble: f64,
    pub(super) timeouts: &'a Timeouts,
    /// What is left of the request's own time.
    pub(super) left: Millis,
}

/// The course of an attempt that meets a phase.
pub(super) fn course(phase: &Phase, it: &Conditions<'_>) -> Course {
    let act = if it.lot < phase.share { phase.act } else { Act::Answer { factor: 1.0 } };
    let wanted = unhindered(act, phase, it);
    by_deadline(by_timers(wanted, it), it)
}

/// What would happen if nobody lost patience. An end at [`Now::NEVER`] never comes.
fn unhindered(act: Act, phase: &Phase, it: &Conditions<'_>) -> Course {
    let never = Millis(u64::MAX);
    let ok = Outcome::answered(200);
    let broken = |kind| Outcome::broken(kind, Some(200));
    let error = |outcome| Course {
        head: Some(phase.error_after),
        content: None,
        more: More::default(),
        pings: None,
        end: phase.error_after,
        outcome: Some(outcome),
    };
    match act {
        Act::Answer { factor } => answer(&phase.pace, factor, phase.pace.tokens, ok, it),
        Act::Status { status, retry_after } => {
            error(Outcome { retry_after, ..Outcome::answered(status) })
        }
        Act::ErrorEvent => error(Outcome::error(OutcomeKind::ServerError, 200)),
        Act::Refuse => {
            let outcome = Outcome::unanswered(OutcomeKind::Transport);
            silent(phase.error_after, outcome)
        }
        Act::Hang => {
            let outcome = Outcome::unanswered(OutcomeKind::Timeout);
            silent(never, outcome)
        }
        Act::CommentsOnly | Act::Stall { tokens: 0 } => {
            let head = Some(paced(&phase.pace, 1.0, it));
            Course {
                head,
                content: None,
                more: More::default(),
                pings: head.filter(|_| act == Act::CommentsOnly && it.is_stream),
                end: never,
                outcome: Some(broken(OutcomeKind::Timeout)),
            }
        }
        Act::Stall { tokens } => {
            let mut course = answer(&phase.pace, 1.0, tokens, broken(OutcomeKind::Timeout), it);
            course.end = never;
            course
        }
        Act::Truncate { tokens } => {
            let broken = broken(OutcomeKind::Transport);
            let mut course = answer(&phase.pace, 1.0, tokens, broken, it);
            if tokens == 0 {
                course.content = None;
            }
            course
        }
    }
}

/// An attempt that never gets a response head.
fn silent(end: Millis, outcome: Outcome) -> Course {
    let (head, content, pings) = (None, None, None);
    Course { head, content, more: More::default(), pings, end, outcome: Some(outcome) }
}

fn answer(pace: &Pace, factor: f64, tokens: u32, outcome: Outcome, it: &Conditions<'_>) -> Course {
    let crowd = crowding(pace, it.in_flight);
    let first = paced(pace, factor, it);
    let gap =
        if factor * crowd == 1.0 { pace.token_gap } else { pace.token_gap.scaled(factor * crowd) };
    let rest = Millis(gap.0.saturating_mul(u64::from(tokens.saturating_sub(1))));
    let end = plus(first, rest);
    let more = More { events: tokens.saturating_sub(1), gap };
    let answer = |content: Option<Millis>, end: Millis, outcome: Outcome| Course {
        head: Some(content.unwrap_or(end)),
        content,
        more,
        pings: None,
        end,
        outcome: Some(outcome),
    };
    if !it.is_stream {
        return answer(None, end, outcome);
    }
    // A gap longer than the idle limit ends the stream after its first token.
    if gap > it.timeouts.idle && tokens > 1 {
        let outcome = Outcome { kind: OutcomeKind::Timeout, ..outcome };
        return answer(Some(first), plus(first, it.timeouts.idle), outcome);
    }
    answer(Some(first), end, outcome)
}

/// How long a first token takes at this pace now.
fn paced(pace: &Pace, factor: f64, it: &Conditions<'_>) -> Millis {
    let wobble = 1.0 + pace.jitter * (2.0 * it.wobble - 1.0);
    Millis(pace.latency.scaled(factor * wobble * crowding(pace, it.in_flight)).0.max(1))
}

fn crowding(pace: &Pace, in_flight: u32) -> f64 {
    match pace.capacity {
        Some(capacity) if in_flight > capacity => f64::from(in_flight) / f64::from(capacity.max(1)),
        _ => 1.0,
    }
}

/// The gateway's limits on waiting for one attempt.
fn by_timers(course: Course, it: &Conditions<'_>) -> Course {
    let timeouts = it.timeouts;
    // To the first content of a stream; without one to the head, and then from piece to piece.
    let limit = match (it.is_stream, course.head) {
        (true, _) => timeouts.first_content,
        (false, Some(head)) if head <= timeouts.answer => plus(head, timeouts.idle),
        (false, _) => timeouts.answer,
    };
    let course = match course.content {
        None => cut(course, limit, timed_out),
        Some(content) if content > limit => cut(course, limit, timed_out),
        // Silence after content: the idle timer runs from the last piece.
        Some(_) if course.end == Millis(u64::MAX) => {
            let last = course.content.unwrap_or_default();
            cut(course, plus(last, timeouts.idle), timed_out)
        }
        Some(_) => course,
    };
    cut(course, timeouts.total, timed_out)
}

fn by_deadline(course: Course, it: &Conditions<'_>) -> Course {
    cut(course, it.left, |_| None)
}

fn timed_out(status: Option<u16>) -> Option<Outcome> {
    Some(Outcome::broken(OutcomeKind::Timeout, status))
}

/// Ends a course at `limit` if it has not ended before.
fn cut(
    course: Course,
    limit: Millis,
    outcome: impl FnOnce(Option<u16>) -> Option<Outcome>,
) -> Course {
    if course.end <= limit {
        return course;
    }
    let head = course.head.filter(|head| *head < limit);
    let content = course.content.filter(|content| *content < limit);
    Course { head, content, end: limit, outcome: outcome(head.and(Some(200))), ..course }
}

fn plus(a: Millis, b: Millis) -> Millis {
    Millis(a.0.saturating_add(b.0))
}

/// What is left of a request's time at `now`.
pub(super) fn left(now: Now, deadline: Now) -> Millis {
    deadline.since(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(act: Act) -> Phase {
        Phase { act, error_after: Millis(50), ..Phase::fine(Now::ZERO, Pace::default()) }
    }

    fn check(act: Act, is_stream: bool) -> (Option<u64>, Option<u64>, u64, OutcomeKind) {
        let timeouts = Timeouts::default();
        let it = Conditions {
            is_stream,
            in_flight: 1,
            lot: 0.0,
            wobble: 0.5,
            timeouts: &timeouts,
            left: Millis::minutes(10),
        };
        let course = course(&phase(act), &it);
        let ms = |moment: Option<Millis>| moment.map(|it| it.0);
        let kind = course.outcome.expect("its deadline is far away").kind;
        (ms(course.head), ms(course.content), course.end.0, kind)
    }

    #[test]
    fn each_act_of_a_stream_comes_to_its_outcome() {
        use OutcomeKind::*;
        let rows = [
            (Act::Answer { factor: 1.0 }, (Some(300), Some(300), 1080, Success)),
            (Act::Answer { factor: 10.0 }, (Some(3000), Some(3000), 10_800, Success)),
            (Act::Status { status: 529, retry_after: None }, (Some(50), None, 50, Overloaded)),
            (Act::Refuse, (None, None, 50, Transport)),
            (Act::Hang, (None, None, 120_000, Timeout)),
            (Act::Stall { tokens: 10 }, (Some(300), Some(300), 60_300, Timeout)),
            (Act::Stall { tokens: 0 }, (Some(300), None, 120_000, Timeout)),
            (Act::Truncate { tokens: 11 }, (Some(300), Some(300), 500, Transport)),
            (Act::Truncate { tokens: 0 }, (Some(300), None, 300, Transport)),
            (Act::ErrorEvent, (Some(50), None, 50, ServerError)),
            (Act::CommentsOnly, (Some(300), None, 120_000, Timeout)),
        ];
        for (act, expected) in rows {
            assert_eq!(check(act, true), expected, "{act:?}");
        }
    }

    #[test]
    fn an_answer_that_does_not_stream_has_no_content_before_its_end() {
        use OutcomeKind::*;
        let rows = [
            (Act::Answer { factor: 1.0 }, (Some(1080), None, 1080, Success)),
            (Act::Stall { tokens: 11 }, (Some(500), None, 60_500, Timeout)),
            (Act::Truncate { tokens: 11 }, (Some(500), None, 500, Transport)),
            (Act::Hang, (None, None, 300_000, Timeout)),
            (Act::CommentsOnly, (Some(300), None, 60_300, Timeout)),
        ];
        for (act, expected) in rows {
            assert_eq!(check(act, false), expected, "{act:?}");
        }
    }

    #[test]
    fn a_crowd_above_the_capacity_slows_everybody_down() {
        let timeouts = Timeouts::default();
        let mut crowded = phase(Act::Answer { factor: 1.0 });
        crowded.pace.capacity = Some(10);
        let at = |in_flight| {
            let it = Conditions {
                is_stream: true,
                in_flight,
                lot: 0.0,
                wobble: 0.5,
                timeouts: &timeouts,
                left: Millis::minutes(10),
            };
            course(&crowded, &it).content
        };
        assert_eq!(at(10), Some(Millis(300)));
        assert_eq!(at(30), Some(Millis(900)));
    }

    #[test]
    fn the_requests_own_deadline_ends_what_is_left() {
        let timeouts = Timeouts::default();
        let it = Conditions {
            is_stream: true,
            in_flight: 1,
            lot: 0.0,
            wobble: 0.5,
            timeouts: &timeouts,
            left: Millis(400),
        };
        let course = course(&phase(Act::Answer { factor: 1.0 }), &it);
        assert_eq!((course.content, course.end), (Some(Millis(300)), Millis(400)));
        assert_eq!(course.outcome, None, "what it teaches is the core's to say");
    }
}

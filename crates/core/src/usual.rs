//! How long a target usually takes, and what the silence of an attempt says about it.
//!
//! An attempt that is ended before its content by its client's patience, by the request's deadline
//! or by a client that left has two possible causes: a hurried client or a target that hangs. The
//! usual time of the target tells them apart.
//!
//! Rules kept here:
//! - The usual time is the peak-EWMA of the time to first content (streams) or to the answer (other
//!   requests), as the last sample left it. The two figures are never mixed.
//! - A silent attempt that waited [`slow_after`] is a timeout. One that waited at least
//!   [`SILENCE_MIN`] and its target's usual time is a timeout if another target then answered the
//!   same request. A trial that waited [`SILENCE_MIN`] has failed. Any other says nothing.

use crate::{
    latency::Latency,
    time::{Millis, Now},
};

/// No silence that is shorter says anything about a target.
pub const SILENCE_MIN: Millis = Millis::seconds(2);
/// An attempt whose body has begun is silent after this long without another byte: the longest
/// interval between two pings that providers are known to have.
pub(crate) const BODY_SILENCE: Millis = Millis::seconds(15);
/// A silence is long after this many times the usual time.
const SLOW_FACTOR: f64 = 4.0;
/// A silence this long is long, unless the target usually takes more than half of it.
const SLOW_MAX: Millis = Millis::seconds(30);
/// When the silence of a target without samples is long.
const SLOW_WHEN_UNKNOWN: Millis = Millis::seconds(10);

/// The usual times of one target.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct UsualTimes {
    first_content: Latency,
    answer: Latency,
}

impl UsualTimes {
    pub(crate) fn sample(&mut self, is_stream: bool, now: Now, took: Millis) {
        let figure = if is_stream { &mut self.first_content } else { &mut self.answer };
        figure.sample(now, took);
    }

    /// The usual time of such requests; `None` without samples.
    pub(crate) fn of(&self, is_stream: bool) -> Option<Millis> {
        let figure = if is_stream { &self.first_content } else { &self.answer };
        figure.at.map(|_| Millis(figure.peak_ms.round() as u64))
    }
}

/// From when on the silence of a target with this usual time is a timeout.
#[must_use]
pub fn slow_after(usual: Option<Millis>) -> Millis {
    let Some(usual) = usual else { return SLOW_WHEN_UNKNOWN };
    let most = SLOW_MAX.max(usual.scaled(2.0));
    usual.scaled(SLOW_FACTOR).max(SILENCE_MIN).min(most)
}

/// What the silence of an attempt says about its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SilenceVerdict {
    /// The target hangs.
    Timeout,
    /// The target hangs if another one then answers the same request.
    TimeoutIfAnsweredElsewhere,
    /// Nothing.
    Nothing,
}

/// The silence of an attempt that `waited` so long for its content since it had been sent.
pub(crate) fn judge_silence(
    waited: Millis,
    usual: Option<Millis>,
    is_trial: bool,
) -> SilenceVerdict {
    let is_noticeable = waited >= SILENCE_MIN;
    if waited >= slow_after(usual) || (is_trial && is_noticeable) {
        SilenceVerdict::Timeout
    } else if is_noticeable && waited >= usual.unwrap_or_default() {
        SilenceVerdict::TimeoutIfAnsweredElsewhere
    } else {
        SilenceVerdict::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silence_is_long_after_four_times_the_usual_time_within_bounds() {
        let rows = [
            (None, 10_000),
            (Some(0), 2_000),
            (Some(499), 2_000),
            (Some(501), 2_004),
            (Some(5_000), 20_000),
            (Some(7_501), 30_000),
            (Some(15_000), 30_000),
            (Some(20_000), 40_000),
        ];
        for (usual, expected) in rows {
            assert_eq!(slow_after(usual.map(Millis)), Millis(expected), "{usual:?}");
        }
    }

    #[test]
    fn the_time_of_a_stream_and_the_time_of_an_answer_are_never_mixed() {
        let mut usual = UsualTimes::default();
        assert_eq!((usual.of(true), usual.of(false)), (None, None));
        usual.sample(true, Now(0), Millis(300));
        assert_eq!((usual.of(true), usual.of(false)), (Some(Millis(300)), None));
        usual.sample(false, Now(0), Millis(9_000));
        assert_eq!((usual.of(true), usual.of(false)), (Some(Millis(300)), Some(Millis(9_000))));
    }

    #[test]
    fn what_a_silence_says_depends_on_its_length_and_the_usual_time() {
        use SilenceVerdict::*;
        let judge = |waited, usual: Option<u64>, is_trial| {
            judge_silence(Millis(waited), usual.map(Millis), is_trial)
        };
        assert_eq!(judge(1_999, None, false), Nothing);
        assert_eq!(judge(2_000, None, false), TimeoutIfAnsweredElsewhere);
        assert_eq!(judge(10_000, None, false), Timeout);
        assert_eq!(judge(2_999, Some(3_000), false), Nothing);
        assert_eq!(judge(3_000, Some(3_000), false), TimeoutIfAnsweredElsewhere);
        assert_eq!(judge(12_000, Some(3_000), false), Timeout);
        assert_eq!((judge(1_999, None, true), judge(2_000, None, true)), (Nothing, Timeout));
    }
}

//! `--from` and `--to`: simulated time such as `2m30s`, or for a history a moment such as
//! `2026-11-17T14:02Z`.

use tidegate_config::duration::Duration;
use tidegate_console::words::parse_date;
use tidegate_core::time::Now;

/// What was written.
#[derive(Clone, Debug)]
pub(super) enum SimMoment {
    /// A span: from the beginning of a timeline, or before the end of a history.
    Span(Duration),
    /// A moment, in milliseconds since 1970.
    #[cfg_attr(
        not(feature = "history"),
        expect(dead_code, reason = "only a history has moments of the calendar")
    )]
    Unix(u64),
}

impl SimMoment {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        match parse_date(text) {
            Some(unix_ms) => Ok(Self::Unix(unix_ms)),
            None => Duration::parse(text).map(Self::Span),
        }
    }

    /// The moment of a timeline.
    pub(super) fn simulated(&self) -> Option<Now> {
        match self {
            Self::Span(span) => Some(Now::ZERO.after(span.millis())),
            Self::Unix(_) => None,
        }
    }
}

//! The label values that are not names of the config: closed sets, each an enum with its words.
//!
//! What a request's end means to the person who asked is decided in `tidegate_journal::result`.

use tidegate_core::choice::PinUse;

/// How a probe ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeResult {
    /// The endpoint answered.
    Passed,
    /// It did not.
    Failed,
}

impl ProbeResult {
    /// The word in metrics.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
        }
    }
}

/// Why a session has another pin than before; `None` if it has not moved.
pub(super) const fn moved(pin: PinUse) -> Option<&'static str> {
    match pin {
        PinUse::Expired => Some("expired"),
        PinUse::Declined => Some("declined"),
        PinUse::None | PinUse::Honoured | PinUse::KeptWhileFull | PinUse::KeptOverLimit => None,
    }
}

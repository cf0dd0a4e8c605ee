//! The words of metrics, traces and messages.

use std::collections::BTreeSet;

use serde_json::json;
use tidegate_core::{
    breaker::State, core::Core, hint::Heard, mark::MarkReason, settings::Settings,
};

/// SCENARIOS: a state has one word, in a trace, a metric and a snapshot.
#[test]
fn a_state_has_the_same_word_in_metrics_as_in_json() {
    for (state, word) in
        [(State::Closed, "closed"), (State::HalfOpen, "half_open"), (State::Open, "open")]
    {
        assert_eq!(state.word(), word);
        assert_eq!(json!(state), json!(word));
    }
}

#[test]
fn the_reason_of_a_mark_has_the_same_word_in_metrics_as_in_json() {
    for (reason, word) in [
        (MarkReason::RateLimited, "rate_limited"),
        (MarkReason::RetryAfter, "retry_after"),
        (MarkReason::AuthRejected, "auth_rejected"),
        (MarkReason::Exhausted, "exhausted"),
        (MarkReason::ModelGone, "model_gone"),
        (MarkReason::Manual, "manual"),
    ] {
        assert_eq!(reason.word(), word);
        assert_eq!(json!(reason), json!(word));
    }
}

#[test]
fn what_became_of_a_hint_has_a_word_of_its_own() {
    let words: BTreeSet<&str> = Heard::ALL.iter().map(|it| it.word()).collect();
    assert_eq!(words, BTreeSet::from(["taken", "known", "late", "unknown", "own"]));
}

#[test]
fn a_record_holds_the_seed_that_the_jitter_was_made_of() {
    let core = Core::with_jitter(&Settings::default(), 7, 99);
    assert_eq!(core.jitter_seed(), 99);
}

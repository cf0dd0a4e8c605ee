//! Behaviour asked for by the model name, so that a client in any language can choose it.
//!
//! The part of the name after its last `/` is read as words joined by `+`; if every one of them is
//! known, the call does that, whatever the script says. Any other name asks for nothing.
//!
//! | word | the call |
//! |---|---|
//! | `ok` | is answered |
//! | `slow-D`, `first-token-D`, `gap-D` | waits D (`250ms`, `2s`) before the head, before the first token, between tokens |
//! | `tokens-N` | gets exactly N tokens |
//! | `status-S` | gets status S |
//! | `status-S-retry-after-TEXT`, `status-S-retry-after-ms-TEXT` | … with that header, word for word |
//! | `status-S-WORD` | … with that body: `html`, `empty`, `gzip-garbage`, `half-json`, `quota`, `billing`, `model-gone`, `context-length`, `content-filter` |
//! | `cut-after-K`, `truncate-after-K`, `stall-after-K`, `error-after-K`, `malformed-after-K` | breaks that way after K tokens |
//! | `error-first`, `error-body` | gets an error as the first event; 200 with an error as the body |
//! | `huge-N` | gets one event of N bytes |
//! | `close`, `reset`, `not-http`, `hang`, `silence`, `comments-only`, `pings-only`, `no-terminator`, `duplicate-terminator`, `late-token`, `redirect`, `drip` | see [`Act`] |
//!
//! So `tokens-60+cut-after-40` is an answer of 60 tokens that breaks off at the fortieth.

use std::time::Duration;

use tidegate_config::duration::Duration as WrittenDuration;

use super::step::{Act, ErrorText, MAX_TOKENS, Step};

/// The step that a model name asks for.
pub(super) fn step_of(model: &str) -> Option<Step> {
    let name = model.rsplit('/').next().unwrap_or(model);
    let mut step = Step::default();
    for word in name.split('+') {
        read_word(word, &mut step)?;
    }
    step.complaint().is_none().then_some(step)
}

const BARE: [(&str, Act); 14] = [
    ("ok", Act::Ok),
    ("close", Act::Close),
    ("reset", Act::Reset),
    ("not-http", Act::NotHttp),
    ("hang", Act::Hang),
    ("silence", Act::Silence),
    ("comments-only", Act::CommentsOnly),
    ("pings-only", Act::PingsOnly),
    ("no-terminator", Act::NoTerminator),
    ("duplicate-terminator", Act::DuplicateTerminator),
    ("late-token", Act::LateToken),
    ("redirect", Act::Redirect),
    ("drip", Act::Drip),
    ("error-body", Act::ErrorBody),
];

const AFTER: [(&str, Act); 5] = [
    ("cut-after-", Act::Cut),
    ("truncate-after-", Act::Truncate),
    ("stall-after-", Act::Stall),
    ("error-after-", Act::ErrorEvent),
    ("malformed-after-", Act::Malformed),
];

const BODIES: [(&str, ErrorText); 9] = [
    ("html", ErrorText::Html),
    ("empty", ErrorText::Empty),
    ("gzip-garbage", ErrorText::GzipGarbage),
    ("half-json", ErrorText::HalfJson),
    ("quota", ErrorText::Quota),
    ("billing", ErrorText::Billing),
    ("model-gone", ErrorText::ModelGone),
    ("context-length", ErrorText::ContextLength),
    ("content-filter", ErrorText::ContentFilter),
];

fn read_word(word: &str, step: &mut Step) -> Option<()> {
    if let Some((_, act)) = BARE.iter().find(|(name, _)| *name == word) {
        step.act = *act;
        return Some(());
    }
    for (prefix, act) in AFTER {
        if let Some(rest) = word.strip_prefix(prefix) {
            step.act = act;
            step.after = Some(count(rest)?);
            return Some(());
        }
    }
    if word == "error-first" {
        step.act = Act::ErrorEvent;
    } else if let Some(rest) = word.strip_prefix("status-") {
        read_status(rest, step)?;
    } else if let Some(rest) = word.strip_prefix("slow-") {
        step.latency = duration(rest)?;
    } else if let Some(rest) = word.strip_prefix("first-token-") {
        step.first_token = duration(rest)?;
    } else if let Some(rest) = word.strip_prefix("gap-") {
        step.token_gap = duration(rest)?;
    } else if let Some(rest) = word.strip_prefix("tokens-") {
        step.tokens = Some(count(rest)?);
    } else {
        step.act = Act::HugeEvent;
        step.size = Some(word.strip_prefix("huge-")?.parse().ok()?);
    }
    Some(())
}

/// `503`, `429-retry-after-2`, `429-quota`.
fn read_status(text: &str, step: &mut Step) -> Option<()> {
    let (status, rest) = text.split_once('-').unwrap_or((text, ""));
    step.act = Act::Status;
    step.status = Some(status.parse().ok()?);
    if rest.is_empty() {
        return Some(());
    }
    if let Some(wait) = rest.strip_prefix("retry-after-ms-") {
        step.retry_after_ms = Some(wait.to_owned());
    } else if let Some(wait) = rest.strip_prefix("retry-after-") {
        step.retry_after = Some(wait.to_owned());
    } else {
        step.body = BODIES.iter().find(|(name, _)| *name == rest)?.1;
    }
    Some(())
}

fn count(text: &str) -> Option<u32> {
    text.parse().ok().filter(|count| *count <= MAX_TOKENS)
}

fn duration(text: &str) -> Option<Duration> {
    Some(Duration::from_millis(WrittenDuration::parse(text).ok()?.millis().0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_of_the_grammar_is_understood() {
        let with_wait = |step: Step, text: &str| step.with_retry_after(text);
        let ms = Duration::from_millis;
        let cases = [
            ("ok", Step::ok()),
            ("ebb/status-503", Step::status(503)),
            ("status-429-retry-after-2", with_wait(Step::status(429), "2")),
            ("status-429-retry-after--5", with_wait(Step::status(429), "-5")),
            ("status-429-retry-after-1e9", with_wait(Step::status(429), "1e9")),
            ("status-429-quota", Step { body: ErrorText::Quota, ..Step::status(429) }),
            ("cut-after-3", Step::after(Act::Cut, 3)),
            ("error-first", Step::of(Act::ErrorEvent)),
            ("error-after-0", Step::after(Act::ErrorEvent, 0)),
            ("hang", Step::of(Act::Hang)),
            ("slow-250ms", Step::ok().with_latency(ms(250))),
            ("slow-1s+status-500", Step::status(500).with_latency(ms(1000))),
            ("gap-20ms+tokens-60", Step::ok().with_tokens(60, ms(20))),
            ("huge-100", Step { size: Some(100), ..Step::of(Act::HugeEvent) }),
        ];
        for (name, step) in cases {
            assert_eq!(step_of(name), Some(step), "{name}");
        }
        let wait = step_of("status-429-retry-after-ms-1500").and_then(|step| step.retry_after_ms);
        assert_eq!(wait.as_deref(), Some("1500"));
    }

    #[test]
    fn any_other_name_asks_for_nothing() {
        for name in [
            "",
            "gpt-4o",
            "ok-computer",
            "status-",
            "status-99",
            "status-503-flowers",
            "cut-after-x",
            "cut-after-99999999",
            "slow-fast",
            "huge-",
            "ok+gpt-4o",
            "+",
        ] {
            assert_eq!(step_of(name), None, "{name}");
        }
    }
}

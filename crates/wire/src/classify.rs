//! The class of an answer: its status line, its headers, and what its body says.
//!
//! A status alone misleads: the same 429 is a full minute or an empty purse, a 400 may say that the
//! model is gone, a 200 may carry an error. What bodies say is a table of data
//! ([`table::ROWS`]); this file only looks things up in it, and a golden corpus holds an answer of
//! every provider for every row.
//!
//! Rules:
//! - The first row that matches decides; without one the status line does.
//! - A 2xx with an error inside is a `ServerError`, unless a row for 200 knows better, or the error
//!   carries a number that a status line would carry. It never becomes a `ClientFault` for lack of
//!   a row: the caller should not pay for a provider that cannot even say 400.
//! - A message counts only from its beginning, in the provider's own words. Providers echo what
//!   the caller sent, and one caller's request must never take a backend from the others.
//!
//! Left to others: finding that a 200 is an error ([`crate::body`], [`crate::dialect`]); outcomes
//! without an answer (the server).

pub mod table;

use http::HeaderMap;
use tidegate_core::outcome::{Outcome, OutcomeKind};

use crate::error_fields::ErrorFields;
use crate::error_key::is_error;
use crate::retry_after::retry_after;
use table::{Place, ROWS, Row};

/// The protocol a provider speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// OpenAI's, and the many that speak it.
    OpenAi,
    /// Anthropic's.
    Anthropic,
    /// Google's.
    Gemini,
}

/// An answer as far as it is needed here.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// The provider's protocol.
    pub api: Api,
    /// The status line's number.
    pub status: u16,
    /// All headers.
    pub headers: &'a HeaderMap,
    /// The body, or the data of an event, or the beginning of either.
    pub body: &'a [u8],
    /// The wall clock, for a `Retry-After` that is a date.
    pub now_unix_ms: u64,
}

/// The outcome of an answer. A 2xx is looked at for an error inside.
#[must_use]
pub fn classify(answer: &Answer<'_>) -> Outcome {
    if is_2xx(answer.status) && !is_error(answer.body) {
        return Outcome::answered(answer.status);
    }
    classify_error(answer)
}

/// The outcome of an answer that is known to be an error, such as an error event of a stream.
#[must_use]
pub fn classify_error(answer: &Answer<'_>) -> Outcome {
    let retry_after = retry_after(answer.headers, answer.now_unix_ms);
    Outcome { retry_after, ..Outcome::error(judge(answer).0, answer.status) }
}

/// The class, and the row that decided it.
fn judge(answer: &Answer<'_>) -> (OutcomeKind, Option<&'static Row>) {
    let fields = ErrorFields::read(answer.body);
    let is_hidden = is_2xx(answer.status);
    let number = fields.number.filter(|number| is_hidden && (400..600).contains(number));
    // AWS names the error in a header, with a link behind a colon.
    let header = answer.headers.get("x-amzn-errortype").and_then(|value| value.to_str().ok());
    let header = header.map(|text| text.split(':').next().unwrap_or_default());
    let matches = |row: &&Row| {
        row.api.is_none_or(|api| api == answer.api)
            && row.statuses.iter().any(|&status| {
                if is_hidden {
                    status == 200 || Some(status) == number
                } else {
                    status == answer.status
                }
            })
            && match row.place {
                Place::Word => {
                    let mut words = fields.words.iter().map(|word| &**word).chain(header);
                    words.any(|word| word.eq_ignore_ascii_case(row.text))
                }
                Place::Quota => fields.quotas.iter().any(|quota| quota.contains(row.text)),
                Place::Message => {
                    fields.message.as_deref().is_some_and(|said| opens_with(said, row.text))
                }
            }
    };
    if let Some(row) = ROWS.iter().find(matches) {
        return (row.kind, Some(row));
    }
    let kind = OutcomeKind::from_status(number.unwrap_or(answer.status));
    let is_no_error = matches!(kind, OutcomeKind::Success | OutcomeKind::ClientFault);
    (if is_hidden && is_no_error { OutcomeKind::ServerError } else { kind }, None)
}

const fn is_2xx(status: u16) -> bool {
    matches!(status, 200..=299)
}

/// Whether `text` begins as `pattern` says, letter case aside; `*` stands for a run without white
/// space, such as a model's name.
fn opens_with(text: &str, pattern: &str) -> bool {
    let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
    let Some(star) = memchr::memchr(b'*', pattern) else {
        return text.get(..pattern.len()).is_some_and(|head| head.eq_ignore_ascii_case(pattern));
    };
    let (before, after) = (&pattern[..star], &pattern[star + 1..]);
    if !text.get(..star).is_some_and(|head| head.eq_ignore_ascii_case(before)) {
        return false;
    }
    let rest = &text[star..];
    let run = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
    (0..=run).any(|skipped| {
        rest.get(skipped..skipped + after.len())
            .is_some_and(|tail| tail.eq_ignore_ascii_case(after))
    })
}

#[cfg(test)]
mod tests;

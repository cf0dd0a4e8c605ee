//! Parts of a text that look like a secret, so that nothing shown to a user repeats them.
//!
//! The file's schema says where secrets belong, and [`crate::shape`] hides what stands there. This
//! is the second line of defence, for keys that stand where no key belongs: in a misspelt key's
//! value, a comment, a query of a url, a line that is not YAML.
//!
//! Rules kept here:
//! - A word that starts like the keys of a known vendor is hidden, and so is what follows `Bearer`.
//! - A run of 24 or more letters and digits that mixes both is hidden: no name looks like that.
//! - Of a url the user name, the password and the query are hidden, and its host is shown.
//! - Hiding too much costs a user a look at the file. Hiding too little costs a key.

use std::ops::Range;

/// How the keys of well-known vendors start.
const PREFIXES: &[&str] = &[
    "sk-",
    "sk_",
    "pk-",
    "pk_",
    "rk_",
    "gsk_",
    "xai-",
    "pplx-",
    "nvapi-",
    "tgp_",
    "hf_",
    "r8_",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "AKIA",
    "ASIA",
    "AIza",
    "ya29",
    "eyJ",
];

/// A prefix alone is not a key: `sk-` in a sentence about keys may be shown.
const MIN_KEY_BYTES: usize = 8;

/// The shortest run of letters and digits that is taken for a key without a known prefix.
const MIN_RUN_BYTES: usize = 24;

/// Fewer letters are the unit of a long number.
const MIN_RUN_LETTERS: usize = 3;

/// The bytes of `text` that are not to be shown, in order.
pub(crate) fn secret_ranges(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut bearer_ends = None;
    for word in words(text) {
        let shown = &text[word.clone()];
        let between = bearer_ends.and_then(|end: usize| text.get(end..word.start));
        let follows_bearer = between.is_some_and(|it| !it.is_empty() && it.trim().is_empty());
        bearer_ends = shown.eq_ignore_ascii_case("bearer").then_some(word.end);
        let start = if follows_bearer { Some(0) } else { key_start(shown) };
        found.extend(start.map(|start| word.start + start..word.end));
    }
    found.extend(url_secrets(text));
    found
}

/// `text` with three stars in place of everything that looks like a secret.
pub(crate) fn masked(text: &str) -> String {
    let mut ranges = secret_ranges(text);
    if ranges.is_empty() {
        return text.to_owned();
    }
    ranges.sort_by_key(|range| range.start);
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for range in ranges {
        if range.start >= at {
            out.push_str(&text[at..range.start]);
            out.push_str("***");
        }
        at = at.max(range.end);
    }
    out.push_str(&text[at..]);
    out
}

/// Whether a key of a file is called like something that holds a secret.
pub(crate) fn names_a_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    ["key", "token", "secret", "password", "credential", "auth"].iter().any(|it| key.contains(it))
}

/// Runs of the characters that keys are made of.
fn words(text: &str) -> impl Iterator<Item = Range<usize>> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + text.get(at..)?.find(is_part)?;
        let rest = &text[start..];
        at = start + rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        Some(start..at)
    })
}

/// Where a key begins in a word, which may have parts joined by dots: those before it are shown.
fn key_start(word: &str) -> Option<usize> {
    let parts = std::iter::once(0).chain(word.match_indices('.').map(|(at, _)| at + 1));
    parts.into_iter().find(|start| {
        let rest = &word[*start..];
        let has_prefix = PREFIXES.iter().any(|prefix| rest.starts_with(prefix));
        let part = rest.split('.').next().unwrap_or_default();
        (has_prefix && rest.len() >= MIN_KEY_BYTES) || part.split(['-', '_']).any(is_random)
    })
}

fn is_random(run: &str) -> bool {
    run.len() >= MIN_RUN_BYTES
        && run.bytes().any(|byte| byte.is_ascii_digit())
        && run.bytes().filter(u8::is_ascii_alphabetic).count() >= MIN_RUN_LETTERS
}

/// User names, passwords and queries of the urls in a text.
fn url_secrets(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find("://") {
        let start = from + at + 3;
        let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | ',' | '}' | ']');
        let end = text[start..].find(ends).map_or(text.len(), |at| start + at);
        let url = &text[start..end];
        let authority = url.find(['/', '?', '#']).unwrap_or(url.len());
        if let Some(at) = url[..authority].rfind('@') {
            found.push(start..start + at);
        }
        if let Some(query) = url.find('?').filter(|query| query + 1 < url.len()) {
            found.push(start + query + 1..end);
        }
        from = end;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_key_is_hidden_wherever_it_stands() {
        for (text, expected) in [
            ("apikey: sk-live-abc123 # old", "apikey: *** # old"),
            ("gsk_0123456789", "***"),
            ("providers.a.sk-live-abc123", "providers.a.***"),
            ("Authorization: Bearer abc", "Authorization: Bearer ***"),
            ("x: 0123456789abcdef0123456789abcdef", "x: ***"),
            ("url: https://u:pw@example.com/mcp", "url: https://***@example.com/mcp"),
            ("{url: 'https://x/mcp?key=abc', a: b}", "{url: 'https://x/mcp?***', a: b}"),
        ] {
            assert_eq!(masked(text), expected);
        }
    }

    #[test]
    fn names_and_plain_words_are_shown() {
        for text in [
            "bedrock/anthropic.claude-3-5-sonnet-20241022-v2:0",
            "meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8",
            "env:ANTHROPIC_KEY_A, file:/run/secrets/key",
            "keys start with sk- or gsk_",
            "expected `bearer`, `x-api-key`",
            "http://127.0.0.1:11434/v1?",
        ] {
            assert_eq!(masked(text), text);
        }
    }
}

//! The golden corpus: answers of every provider, each with the class it must get.
//!
//! An entry has a name, the api, a status, optional headers, the body (JSON, or text, or
//! hexadecimal bytes) and the expected class. A row of the table that decides no entry fails.

use std::collections::{BTreeMap, BTreeSet};

use http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use tidegate_core::time::Millis;

use super::*;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    #[serde(default)]
    api: EntryApi,
    status: u16,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    body: Option<serde_json::Value>,
    text: Option<String>,
    hex: Option<String>,
    kind: OutcomeKind,
    retry_after_ms: Option<u64>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum EntryApi {
    #[default]
    Openai,
    Anthropic,
    Gemini,
}

impl Entry {
    fn bytes(&self) -> Vec<u8> {
        if let Some(hex) = &self.hex {
            let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal digits");
            return (0..hex.len()).step_by(2).map(byte).collect();
        }
        let body = self.body.as_ref().map(ToString::to_string);
        body.or_else(|| self.text.clone()).unwrap_or_default().into_bytes()
    }

    fn headers(&self) -> HeaderMap {
        let pair = |(name, value): (&String, &String)| {
            let name: HeaderName = name.parse().expect("a header name");
            (name, HeaderValue::from_str(value).expect("a header value"))
        };
        self.headers.iter().map(pair).collect()
    }
}

/// Every file of the corpus, by what it is about.
const CORPUS: &[(&str, &str)] = &[
    ("anthropic", include_str!("../../corpus/anthropic.json")),
    ("azure", include_str!("../../corpus/azure.json")),
    ("bedrock", include_str!("../../corpus/bedrock.json")),
    ("gemini", include_str!("../../corpus/gemini.json")),
    ("local", include_str!("../../corpus/local.json")),
    ("openai", include_str!("../../corpus/openai.json")),
    ("openrouter", include_str!("../../corpus/openrouter.json")),
    ("others", include_str!("../../corpus/others.json")),
    ("pages", include_str!("../../corpus/pages.json")),
];

fn corpus() -> impl Iterator<Item = (&'static str, Entry)> {
    CORPUS.iter().flat_map(|(file, text)| {
        let entries: Vec<Entry> =
            serde_json::from_str(text).unwrap_or_else(|error| panic!("`{file}.json`: {error}"));
        entries.into_iter().map(move |entry| (*file, entry))
    })
}

fn answer<'a>(entry: &Entry, headers: &'a HeaderMap, body: &'a [u8]) -> Answer<'a> {
    let api = match entry.api {
        EntryApi::Openai => Api::OpenAi,
        EntryApi::Anthropic => Api::Anthropic,
        EntryApi::Gemini => Api::Gemini,
    };
    Answer { api, status: entry.status, headers, body, now_unix_ms: 0 }
}

#[test]
fn every_answer_of_the_corpus_has_its_class() {
    let mut wrong = Vec::new();
    for (file, entry) in corpus() {
        let (headers, body) = (entry.headers(), entry.bytes());
        let outcome = classify(&answer(&entry, &headers, &body));
        let expected = Outcome {
            retry_after: entry.retry_after_ms.map(Millis),
            ..match entry.kind {
                OutcomeKind::Success => Outcome::answered(entry.status),
                kind => Outcome::error(kind, entry.status),
            }
        };
        if outcome != expected {
            wrong.push(format!("{file}: {}: {outcome:?}, not {expected:?}", entry.name));
        }
    }
    assert!(wrong.is_empty(), "\n{}\n", wrong.join("\n"));
}

#[test]
fn every_row_of_the_table_decides_an_answer() {
    let mut unused: BTreeSet<usize> = (0..ROWS.len()).collect();
    for (_, entry) in corpus() {
        let (headers, body) = (entry.headers(), entry.bytes());
        if let Some(row) = judge(&answer(&entry, &headers, &body)).1 {
            unused.retain(|&index| !std::ptr::eq(&raw const ROWS[index], row));
        }
    }
    let unused: Vec<_> = unused.into_iter().map(|index| ROWS[index].text).collect();
    assert_eq!(unused, Vec::<&str>::new());
}

#[test]
fn every_row_says_something_else_than_its_status_lines() {
    for row in ROWS {
        // Only this row is there to keep a wider one from deciding.
        let is_shield = row.text == "PerMinute";
        for &status in row.statuses.iter().filter(|&&status| status != 200 && !is_shield) {
            assert_ne!(OutcomeKind::from_status(status), row.kind, "`{}`, {status}", row.text);
        }
    }
}

#[test]
fn a_body_cut_anywhere_never_panics_and_never_turns_an_error_into_a_success() {
    for (_, entry) in corpus() {
        let (headers, body) = (entry.headers(), entry.bytes());
        for end in 0..body.len() {
            let outcome = classify(&answer(&entry, &headers, &body[..end]));
            let may_be_success = (200..300).contains(&entry.status);
            assert!(may_be_success || outcome.kind != OutcomeKind::Success, "{}", entry.name);
        }
    }
}

/// Invariant I16: one caller's requests never change what others get.
#[test]
fn a_caller_who_is_echoed_cannot_speak_for_the_provider() {
    let headers = HeaderMap::new();
    for row in ROWS.iter().filter(|row| row.place == Place::Message) {
        let words = row.text.replace('*', "x");
        for said in [format!("Invalid value: '{words}'"), format!("Bad role: {words}")] {
            let body = serde_json::json!({ "error": { "message": said } }).to_string();
            let answer = Answer {
                api: row.api.unwrap_or(Api::OpenAi),
                status: 400,
                headers: &headers,
                body: body.as_bytes(),
                now_unix_ms: 0,
            };
            assert_eq!(classify(&answer).kind, OutcomeKind::ClientFault, "{said}");
        }
    }
}

#[test]
fn a_pattern_matches_from_the_beginning_and_its_star_stops_at_white_space() {
    assert!(opens_with("The MODEL `a/b:c` does not exist, sorry", "the model `*` does not exist"));
    assert!(opens_with("abc", "abc") && opens_with("abc d", "ABC"));
    assert!(!opens_with("ab", "abc") && !opens_with("x abc", "abc"));
    assert!(!opens_with("model 'a b' not found", "model '*' not found"));
    assert!(!opens_with("é", "*x") && opens_with("éx", "*x"));
}

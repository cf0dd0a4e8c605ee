//! Tests of decoding: every structural problem, and what is understood without one.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::*;
use crate::{document::parse, duration::Duration, percent::Percent, source::Source};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Sample {
    name: String,
    #[serde(default)]
    count: u32,
    ratio: Option<f64>,
    wait: Option<Duration>,
    share: Option<Percent>,
    #[serde(default)]
    on: bool,
    word: Option<Word>,
    inner: Option<Inner>,
    #[serde(default)]
    names: Vec<String>,
    #[serde(default)]
    map: BTreeMap<String, Inner>,
    #[serde(default)]
    steps: Vec<Tagged>,
    after: Option<NumberOrDuration>,
    any: Option<Value>,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Word {
    /// The first.
    FirstWord,
    /// The second.
    Second,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Inner {
    needed: i32,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Tagged {
    Request(String),
    Advance(Duration),
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum NumberOrDuration {
    Number(u32),
    Duration(Duration),
}

fn decode_text(text: &str) -> (Option<Sample>, Vec<Diagnostic>) {
    let document = parse(&Source::new("t.yaml", text)).document.expect("the text is YAML");
    decode(&document)
}

/// `path code message` of each problem.
fn check(text: &str, expected: &[&str]) {
    let (_, problems) = decode_text(text);
    let found: Vec<String> = problems
        .iter()
        .map(|problem| format!("{} {} {}", problem.path, problem.code.id, problem.message))
        .collect();
    assert_eq!(found, expected, "{text}");
    assert!(problems.iter().all(|problem| problem.span.is_some()), "{problems:?}");
}

fn sound(text: &str) -> Sample {
    let (sample, problems) = decode_text(text);
    assert!(problems.is_empty(), "{problems:?}");
    sample.expect("a sound file has a value")
}

#[test]
fn the_schema_says_what_a_scalar_means() {
    let sample = sound(
        "name: 5.4\ninner: {needed: -7}\ncount: 0x10\nratio: 1\nwait: 1m30s\nshare: 20%\non: True\n\
         word: second\n\
         names: [true, 1e3, null-ish]\nany: {a: [1, true, x, '1']}\n",
    );
    assert_eq!(sample.name, "5.4");
    assert_eq!(sample.inner.map(|inner| inner.needed), Some(-7));
    assert_eq!(sample.count, 16);
    assert_eq!(sample.ratio, Some(1.0));
    assert_eq!(sample.wait.map(|wait| wait.millis().0), Some(90_000));
    assert_eq!(sample.share.map(Percent::fraction), Some(0.2));
    assert!(sample.on);
    assert_eq!(sample.word, Some(Word::Second));
    assert_eq!(sample.names, ["true", "1e3", "null-ish"]);
    assert_eq!(sample.any, Some(serde_json::json!({"a": [1, true, "x", "1"]})));
}

#[test]
fn a_key_without_a_value_counts_as_left_out() {
    let sample = sound("name: x\ncount:\nmap:\ninner: ~\n");
    assert_eq!(sample.count, 0);
    assert!(sample.map.is_empty() && sample.inner.is_none());
}

#[test]
fn tagged_steps_and_choices_of_scalars_are_decoded() {
    let sample = sound("name: x\nsteps: [{request: ''}, {advance: 31s}]\nafter: 5\n");
    let advance = Duration::parse("31s").expect("a duration");
    assert_eq!(sample.steps, [Tagged::Request(String::new()), Tagged::Advance(advance)]);
    assert!(matches!(sample.after, Some(NumberOrDuration::Number(5))));
    let sample = sound("name: x\nafter: 5s\n");
    let Some(NumberOrDuration::Duration(duration)) = sample.after else { panic!("a duration") };
    assert_eq!(duration.as_written(), "5s");
}

#[test]
fn all_problems_are_found_at_once_and_the_rest_is_kept() {
    let (sample, problems) = decode_text("name: x\nconut: 1\nratio: abc\nwait: 30\nnames: [a]\n");
    assert_eq!(problems.len(), 3, "{problems:?}");
    assert_eq!(problems[0].help, ["did you mean `count`?"]);
    let sample = sample.expect("bad optional values are left out");
    assert_eq!(sample.names, ["a"]);
    assert!(sample.wait.is_none());
}

#[test]
fn every_kind_of_mistake_has_a_path_and_its_own_words() {
    check("nmae: x\n", &["nmae TG010 unknown key `nmae`", " TG013 the file has no key `name`"]);
    check("name: [x]\n", &["name TG012 `name`: expected text, found a list"]);
    check("name:\n", &["name TG012 `name`: expected text, found nothing"]);
    check("name: x\ncount: -1\n", &["count TG015 `count`: `-1` is too small: the least is 0"]);
    check(
        "name: x\ncount: 4294967296\n",
        &["count TG015 `count`: `4294967296` is too large: the most is 4294967295"],
    );
    check("name: x\ncount: 1.5\n", &["count TG015 `count`: `1.5` is not a whole number"]);
    check(
        "name: x\ncount: '1'\n",
        &["count TG015 `count`: a whole number is written without quotes"],
    );
    check("name: x\nratio: .nan\n", &["ratio TG015 `ratio`: `.nan` is not a finite number"]);
    check("name: x\nratio: 1e400\n", &["ratio TG015 `ratio`: `1e400` is not a finite number"]);
    check("name: x\nratio: inf\n", &["ratio TG015 `ratio`: `inf` is not a number"]);
    check("name: x\non: yes\n", &["on TG012 `on`: expected `true` or `false`, found `yes`"]);
    check("name: x\nwait: -5s\n", &["wait TG016 `wait`: a duration cannot be negative: `-5s`"]);
    check(
        "name: x\nword: frist_word\n",
        &["word TG014 `word`: `frist_word` is not one of the choices"],
    );
    check(
        "name: x\nmap: {a: {}, b: {needed: x}}\n",
        &[
            "map.a TG013 `map.a` has no key `needed`",
            "map.b.needed TG015 `map.b.needed`: `x` is not a whole number",
        ],
    );
    check(
        "name: x\nsteps: [{reqest: a}, {request: a, advance: 1s}, {advance: 1}]\n",
        &[
            "steps[0].reqest TG010 unknown key `reqest`",
            "steps[1] TG012 `steps[1]`: expected exactly one of `request` or `advance`, \
             found a map",
            "steps[2].advance TG016 `steps[2].advance`: `1` has no unit: write `1s`",
        ],
    );
    check("name: x\nafter: -1\n", &["after TG016 `after`: a duration cannot be negative: `-1`"]);
    check(
        "name: x\nafter: [1]\n",
        &["after TG012 `after`: expected a whole number or a duration such as `30s`, found a list"],
    );
}

#[test]
fn a_file_that_is_no_map_is_refused() {
    for text in ["- a\n", "just text\n"] {
        let (sample, problems) = decode_text(text);
        assert!(sample.is_none());
        assert_eq!(problems[0].code.id, "TG012");
    }
}

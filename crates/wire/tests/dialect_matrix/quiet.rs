//! Nothing is lost silently: every field of a request is said to the provider, or noted, or it is
//! one of those that say nothing about what is asked.
//!
//! The samples `everything.request.json` have every field that their dialect is known to have and
//! that can be converted at all. Each is left out in turn: what the provider gets or what the notes
//! say must differ, because otherwise the field went nowhere and nobody was told.

use std::collections::BTreeSet;

use serde_json::Value;
use tidegate_wire::convert::pair::DialectPair;
use tidegate_wire::convert::target::TargetProfile;

use crate::spoken::{Spoken, parse};

/// Fields that ask for nothing, by the end of their path, and why.
const QUIET: [(&str, &str); 15] = [
    ("model", "the route's name; the target's own is sent"),
    ("type", "the kind that a field has anyway"),
    ("id", "an id of an item of an earlier answer; calls have one of their own"),
    ("status", "of an item of an earlier answer"),
    ("phase", "of an item of an earlier answer"),
    ("annotations", "of an earlier answer's text"),
    ("messages.1.content.2.citations", "of an earlier answer's text"),
    ("caller", "who called a tool in an earlier answer"),
    ("candidateCount", "one answer is what everybody gives"),
    ("responseModalities", "text is what everybody gives"),
    ("modalities", "text is what everybody gives"),
    ("role", "the user speaks where nobody is named"),
    ("reasoning.summary", "Chat Completions shows what it has; the others are told"),
    ("includeThoughts", "the same"),
    ("include.0", "`top_logprobs` says the same"),
];

/// Every place of a value that can be left out, as a JSON pointer; what stands inside of a schema,
/// of arguments or of a tool that is dropped as a whole is not looked at.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    const WHOLE: [&str; 14] = [
        "schema",
        "parameters",
        "input_schema",
        "parametersJsonSchema",
        "responseJsonSchema",
        "args",
        "arguments",
        "metadata",
        "logit_bias",
        "input",
        "labels",
        "response",
        "action",
        "safetySettings",
    ];
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                let place = format!("{at}/{key}");
                found.push(place.clone());
                let is_input_list = key == "input" && inner.is_array();
                if !WHOLE.contains(&key.as_str()) || is_input_list {
                    places(inner, &place, found);
                }
            }
        }
        Value::Array(values) => {
            for (index, inner) in values.iter().enumerate() {
                let place = format!("{at}/{index}");
                found.push(place.clone());
                places(inner, &place, found);
            }
        }
        _ => {}
    }
}

fn without(value: &Value, place: &str) -> Value {
    let mut value = value.clone();
    let (parent, last) = place.rsplit_once('/').expect("a place below the top");
    match value.pointer_mut(parent) {
        Some(Value::Object(map)) => {
            map.shift_remove(last);
        }
        Some(Value::Array(values)) => {
            values.remove(last.parse().expect("a number"));
        }
        _ => {}
    }
    value
}

/// The names under which a note may tell of a place: its own, those of what it stands in, and their
/// kinds.
fn names(whole: &Value, place: &str) -> Vec<String> {
    const LISTS: [&str; 10] = [
        "messages",
        "contents",
        "parts",
        "content",
        "input",
        "tools",
        "generationConfig",
        "system",
        "output",
        "toolConfig",
    ];
    let mut names = Vec::new();
    let mut rest = place;
    while let Some((parent, key)) = rest.rsplit_once('/') {
        if !LISTS.contains(&key) && key.parse::<usize>().is_err() {
            names.push(other_name(key).to_owned());
        }
        let value = whole.pointer(rest).unwrap_or(&Value::Null);
        names.extend(value["type"].as_str().map(|kind| other_name(kind).to_owned()));
        names.extend(value.get("thought").map(|_| "thinking".to_owned()));
        rest = parent;
    }
    names
}

fn is_quiet(place: &str) -> bool {
    let path = format!("{}.", place.replace('/', "."));
    QUIET.iter().any(|(quiet, _)| path.contains(&format!(".{quiet}.")))
}

/// What a note calls a thing that stands under another name.
fn other_name(name: &str) -> &str {
    match name {
        "top_logprobs" => "logprobs",
        "reasoning" | "redacted_thinking" | "thought" => "thinking",
        "thoughtSignature" => "signature",
        name => name,
    }
}

#[test]
fn every_field_is_sent_or_noted() {
    let mut lost = Vec::new();
    for client in Spoken::ALL {
        let whole = client.request("everything", false);
        let mut found = Vec::new();
        places(&whole, "", &mut found);
        for upstream in Spoken::ALL.into_iter().filter(|upstream| *upstream != client) {
            let pair = DialectPair::new(client.dialect(), upstream.dialect()).expect("a pair");
            let (model, host) = match upstream {
                // Older models of Google's refuse a schema beside tools.
                Spoken::Gemini => ("gemini-3.5-flash", "generativelanguage.googleapis.com"),
                _ => upstream.model(),
            };
            let sent = |body: &Value| {
                let target = TargetProfile { model, host };
                let sent = pair.request(body.to_string().as_bytes(), &target, 1);
                sent.map(|sent| {
                    let notes: BTreeSet<String> =
                        sent.notes.as_slice().iter().map(|note| note.field.clone()).collect();
                    (parse(&sent.body), notes)
                })
            };
            let expected = sent(&whole).unwrap_or_else(|fault| panic!("{client:?}: {fault}"));
            for place in found.iter().filter(|place| !is_quiet(place)) {
                // A request that cannot be made without the field has it for a reason.
                let Ok(found) = sent(&without(&whole, place)) else { continue };
                let names = names(&whole, place);
                let is_told = expected.1.iter().any(|note| {
                    names.iter().any(|name| note.split(['.', '[']).any(|it| it == name))
                });
                if found == expected && !is_told {
                    lost.push(format!("{}>{} {place}", client.title(), upstream.title()));
                }
            }
        }
    }
    assert!(lost.is_empty(), "{} fields go nowhere:\n{}", lost.len(), lost.join("\n"));
}

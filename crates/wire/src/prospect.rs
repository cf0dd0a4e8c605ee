//! What would become of requests of a dialect at a target, before any request has come.
//!
//! For people who plan a route: which of its clients' fields a target of another dialect would
//! lose, and what it would refuse. It is found out by converting the samples of `SAMPLES` with
//! the converters that real requests go through, so it cannot say anything else than they do.
//!
//! Whether a target is asked at all is the core's decision
//! ([`tidegate_core::route::Needs::sent_as`]), which is repeated here and not remade.

use serde_json::Value;
use tidegate_core::route::Ability;
use tidegate_core::settings::Abilities;
use tidegate_core::wire_format::SentAs;

use crate::convert::fault::RequestFault;
use crate::convert::pair::{DialectPair, dialect_of};
use crate::convert::target::TargetProfile;
use crate::dialect::Dialect;
use crate::operation::needs_of_path;

/// A dialect of clients that generates text, and a path by which it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientDialect {
    /// The word for it, as scenario files have it.
    pub word: &'static str,
    /// One of its paths.
    pub path: &'static str,
}

/// All of them.
pub const CLIENT_DIALECTS: [ClientDialect; 4] = [
    ClientDialect { word: "chat", path: "/v1/chat/completions" },
    ClientDialect { word: "responses", path: "/v1/responses" },
    ClientDialect { word: "messages", path: "/v1/messages" },
    ClientDialect { word: "gemini", path: "/v1beta/models/m:generateContent" },
];

/// What becomes of requests at a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prospect {
    /// They are sent as they came.
    AsItCame,
    /// They are converted.
    Converted {
        /// From which dialect to which, as in `openai-chat>anthropic`.
        pair: String,
        /// Fields that do not cross, or not as they were.
        lost: Vec<String>,
        /// What a request cannot have there, such as `more than one choice`.
        refused: Vec<String>,
    },
    /// They are never sent there.
    Never(Ability),
}

/// A few fields of one dialect, on top of a plain request. One field each, so that a field that
/// is refused hides no other.
const SAMPLES: &[(&str, &[&str])] = &[
    (
        "chat",
        &[
            r#"{"temperature":1.5,"top_p":0.5}"#,
            r#"{"frequency_penalty":1,"presence_penalty":1}"#,
            r#"{"seed":1}"#,
            r#"{"n":2}"#,
            r#"{"logprobs":true,"top_logprobs":2}"#,
            r#"{"logit_bias":{"1":1}}"#,
            r#"{"stop":["a","b","c","d"]}"#,
            r#"{"user":"u","metadata":{"a":"b"}}"#,
            r#"{"reasoning_effort":"high"}"#,
            r#"{"prediction":{"type":"content","content":"x"}}"#,
            r#"{"service_tier":"flex","store":true}"#,
            r#"{"response_format":{"type":"json_object"}}"#,
            r#"{"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"required"}"#,
            r#"{"modalities":["text","audio"],"audio":{"voice":"alloy","format":"wav"}}"#,
        ],
    ),
    (
        "responses",
        &[
            r#"{"temperature":1.5,"top_p":0.5}"#,
            r#"{"reasoning":{"effort":"high","summary":"auto"}}"#,
            r#"{"include":["reasoning.encrypted_content"]}"#,
            r#"{"store":true,"metadata":{"a":"b"}}"#,
            r#"{"truncation":"auto"}"#,
            r#"{"text":{"verbosity":"low"}}"#,
            r#"{"tools":[{"type":"web_search"}]}"#,
            r#"{"tools":[{"type":"function","name":"f"}],"tool_choice":"required"}"#,
            r#"{"background":true}"#,
            r#"{"service_tier":"flex","prompt_cache_key":"k"}"#,
        ],
    ),
    (
        "messages",
        &[
            r#"{"temperature":0.5,"top_p":0.5}"#,
            r#"{"top_k":5}"#,
            r#"{"stop_sequences":["a","b","c","d","e","f"]}"#,
            r#"{"thinking":{"type":"enabled","budget_tokens":2000}}"#,
            r#"{"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}]}"#,
            r#"{"tools":[{"name":"f"}],"tool_choice":{"type":"any"}}"#,
            r#"{"tools":[{"name":"f"}],"thinking":{"type":"enabled","budget_tokens":2000}}"#,
            r#"{"metadata":{"user_id":"u"}}"#,
            r#"{"service_tier":"auto"}"#,
            r#"{"tools":[{"type":"web_search_20250305","name":"web_search"}]}"#,
        ],
    ),
    (
        "gemini",
        &[
            r#"{"generationConfig":{"temperature":1.5,"topP":0.5}}"#,
            r#"{"generationConfig":{"topK":5}}"#,
            r#"{"generationConfig":{"seed":1}}"#,
            r#"{"generationConfig":{"candidateCount":2}}"#,
            r#"{"generationConfig":{"thinkingConfig":{"thinkingBudget":2000}}}"#,
            r#"{"generationConfig":{"responseModalities":["TEXT","IMAGE"]}}"#,
            r#"{"tools":[{"functionDeclarations":[{"name":"f"}]}],
                "toolConfig":{"functionCallingConfig":{"mode":"ANY"}}}"#,
            r#"{"safetySettings":[{"category":"HARM_CATEGORY_HARASSMENT","threshold":"OFF"}]}"#,
            r#"{"tools":[{"googleSearch":{}}]}"#,
        ],
    ),
];

/// A plain request of each dialect.
fn plain(word: &str) -> &'static str {
    match word {
        "responses" => r#"{"model":"m","input":"hi"}"#,
        "messages" => {
            r#"{"model":"m","max_tokens":4000,"messages":[{"role":"user","content":"hi"}]}"#
        }
        "gemini" => r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}"#,
        _ => r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#,
    }
}

/// What becomes of requests of a dialect at a target.
#[must_use]
pub fn prospect(
    client: ClientDialect,
    abilities: &Abilities,
    target: &TargetProfile<'_>,
) -> Prospect {
    let format = match needs_of_path(client.path).sent_as(abilities) {
        Ok(SentAs::AsItCame) => return Prospect::AsItCame,
        Ok(SentAs::Converted(format)) => format,
        Err(lack) => return Prospect::Never(lack),
    };
    let Some(pair) = DialectPair::new(Dialect::of_path(client.path), dialect_of(format)) else {
        return Prospect::Never(Ability::Protocol);
    };
    let (mut lost, mut refused) = (Vec::new(), Vec::new());
    for body in samples(client.word) {
        match pair.request(body.to_string().as_bytes(), target, 0) {
            Ok(converted) => {
                lost.extend(converted.notes.as_slice().iter().map(|note| note.field.clone()));
            }
            Err(RequestFault::Impossible { what }) => refused.push(what),
            Err(fault @ RequestFault::Invalid { .. }) => refused.push(fault.to_string()),
        }
    }
    for list in [&mut lost, &mut refused] {
        list.sort();
        list.dedup();
    }
    Prospect::Converted { pair: pair.label(), lost, refused }
}

/// The samples of a dialect, each as a whole request; the plain one first.
fn samples(word: &str) -> Vec<Value> {
    let plain: Value = serde_json::from_str(plain(word)).unwrap_or_default();
    let fields = SAMPLES.iter().find(|(known, _)| *known == word).map_or(&[][..], |(_, it)| *it);
    let with = |fields: &&str| {
        let mut request = plain.clone();
        let more = serde_json::from_str::<Value>(fields).unwrap_or_default();
        if let (Some(request), Value::Object(more)) = (request.as_object_mut(), more) {
            request.extend(more);
        }
        request
    };
    std::iter::once(plain.clone()).chain(fields.iter().map(with)).collect()
}

#[cfg(test)]
mod tests {
    use tidegate_core::settings::{Kind, Kinds, Protocol};

    use super::*;

    fn at(protocol: Protocol, word: &str) -> Prospect {
        let abilities = Abilities {
            protocol: Some(protocol),
            serves: Some(Kinds::KNOWN),
            ..Abilities::default()
        };
        let client = CLIENT_DIALECTS.into_iter().find(|it| it.word == word).expect("a dialect");
        prospect(client, &abilities, &TargetProfile { model: "m", host: "" })
    }

    #[test]
    fn every_sample_is_json_and_every_plain_request_loses_nothing() {
        for client in CLIENT_DIALECTS {
            let samples = samples(client.word);
            assert!(samples.len() > 5, "{client:?}");
            assert!(samples.iter().skip(1).all(|it| *it != samples[0]), "{client:?}");
            let dialect = Dialect::of_path(client.path);
            for target in CLIENT_DIALECTS.map(|it| Dialect::of_path(it.path)) {
                let Some(pair) = DialectPair::new(dialect, target) else { continue };
                let profile = TargetProfile { model: "m", host: "" };
                let body = samples[0].to_string();
                let converted = pair.request(body.as_bytes(), &profile, 0).expect("it is plain");
                // Anthropic wants a limit, which is noted as made up.
                let notes = converted.notes.as_slice();
                assert!(notes.iter().all(|it| it.field.contains("max")), "{pair:?} {notes:?}");
            }
        }
    }

    #[test]
    fn a_target_of_the_clients_own_dialect_loses_nothing() {
        assert_eq!(at(Protocol::OpenAi, "chat"), Prospect::AsItCame);
        assert_eq!(at(Protocol::Gemini, "gemini"), Prospect::AsItCame);
    }

    #[test]
    fn what_another_dialect_cannot_say_is_named() {
        let Prospect::Converted { pair, lost, refused } = at(Protocol::Anthropic, "chat") else {
            panic!("it is converted");
        };
        assert_eq!(pair, "openai-chat>anthropic");
        assert!(lost.iter().any(|it| it == "seed"), "{lost:?}");
        assert_eq!(refused, ["`audio`", "more than one choice"]);
    }

    #[test]
    fn what_a_model_cannot_do_beside_tools_is_named_unless_it_is_asked_otherwise() {
        let client = CLIENT_DIALECTS.into_iter().find(|it| it.word == "messages").expect("one");
        let at = |prefers_responses: bool, serves: Kinds| {
            let (protocol, serves) = (Some(Protocol::OpenAi), Some(serves));
            let abilities =
                Abilities { protocol, serves, prefers_responses, ..Abilities::default() };
            let target = TargetProfile { model: "gpt-5.6", host: "api.openai.com" };
            match prospect(client, &abilities, &target) {
                Prospect::Converted { pair, lost, .. } => {
                    (pair, lost.iter().any(|it| it == "reasoning"))
                }
                other => panic!("{other:?}"),
            }
        };
        let responses = ("anthropic>openai-responses".to_owned(), false);
        let chat = ("anthropic>openai-chat".to_owned(), true);
        assert_eq!(at(true, Kinds::KNOWN), responses);
        assert_eq!(at(false, Kinds::KNOWN), chat);
        assert_eq!(at(true, Kinds::from_iter([Kind::Chat])), chat, "the file allows no other");
    }

    #[test]
    fn a_target_without_generation_is_never_asked() {
        let abilities = Abilities {
            protocol: Some(Protocol::OpenAi),
            serves: Some(Kinds::from_iter([Kind::Embeddings])),
            ..Abilities::default()
        };
        let profile = TargetProfile { model: "m", host: "" };
        let found = prospect(CLIENT_DIALECTS[0], &abilities, &profile);
        assert_eq!(found, Prospect::Never(Ability::Kind));
    }
}

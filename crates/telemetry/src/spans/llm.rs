//! An LLM request and its attempts (`gen_ai.*`).

use tidegate_core::outcome::OutcomeKind;

use super::{Frame, SpanRecord};
use crate::attribute::Value;

pub(super) fn spans(frame: &Frame<'_>) -> Vec<SpanRecord> {
    let decision = frame.decision;
    let mut spans = vec![request(frame)];
    for (number, (attempt, record)) in decision.log.iter().zip(&decision.records).enumerate() {
        let (provider, model) = record.target.split_once('/').unwrap_or((&record.target, ""));
        let operation = operation(decision.path).unwrap_or("request");
        let name =
            if model.is_empty() { operation.to_owned() } else { format!("{operation} {model}") };
        let mut attributes = vec![
            ("gen_ai.operation.name", operation.into()),
            ("gen_ai.provider.name", provider.into()),
            ("gen_ai.request.model", model.into()),
            ("tidegate.target", record.target.as_str().into()),
            ("tidegate.attempt", Value::Number(number as i64 + 1)),
            ("tidegate.key", Value::Number(i64::from(attempt.key))),
            ("tidegate.outcome", record.outcome.word().into()),
        ];
        if decision.is_stream {
            attributes.push(("gen_ai.request.stream", Value::Bool(true)));
            if let Some(first) = record.first_content {
                let seconds = Value::Double(first.0 as f64 / 1000.0);
                attributes.push(("gen_ai.response.time_to_first_chunk", seconds));
            }
        }
        if let Some(status) = record.status {
            attributes.push(("http.response.status_code", Value::Number(status.into())));
        }
        if attempt.is_trial {
            attributes.push(("tidegate.trial", Value::Bool(true)));
        }
        if attempt.is_last_resort {
            attributes.push(("tidegate.last_resort", Value::Bool(true)));
        }
        if attempt.is_resent {
            attributes.push(("http.request.resend_count", Value::Number(1)));
        }
        if record.outcome == OutcomeKind::Success {
            attributes.extend(usage(frame));
        }
        let when = (attempt.at, attempt.at.after(record.took));
        spans.push(frame.attempt(number, name, when, Some(record.outcome), attributes));
    }
    spans
}

fn request(frame: &Frame<'_>) -> SpanRecord {
    let decision = frame.decision;
    let mut attributes = frame.common();
    attributes.extend([
        ("http.request.method", "POST".into()),
        ("http.route", decision.path.into()),
        ("http.response.status_code", Value::Number(decision.status.into())),
        ("tidegate.attempts", Value::Number(decision.records.len() as i64)),
    ]);
    if let Some(operation) = operation(decision.path) {
        attributes.push(("gen_ai.operation.name", operation.into()));
        let model = decision.model.as_deref().unwrap_or_else(|| decision.route());
        if !model.is_empty() {
            attributes.push(("gen_ai.request.model", model.into()));
        }
    }
    if let Some(number) = decision.answered_by() {
        let answered = &decision.records[number].target;
        attributes.push(("tidegate.answered_by", answered.as_str().into()));
    }
    if let Some(own) = decision.own_answer.as_ref().filter(|own| !own.code.is_empty()) {
        attributes.push(("tidegate.error_code", own.code.into()));
    }
    attributes.extend(usage(frame));
    frame.request(format!("POST {}", decision.path), attributes)
}

fn usage(frame: &Frame<'_>) -> Vec<(&'static str, Value)> {
    let Some(tokens) = frame.decision.tokens else { return Vec::new() };
    let number = |count: u64| Value::Number(i64::try_from(count).unwrap_or(i64::MAX));
    let mut attributes = vec![
        ("gen_ai.usage.input_tokens", number(tokens.input)),
        ("gen_ai.usage.output_tokens", number(tokens.output)),
    ];
    if tokens.cached > 0 {
        attributes.push(("gen_ai.usage.cache_read.input_tokens", number(tokens.cached)));
    }
    attributes
}

/// What the conventions call an endpoint's operation; none for those they have no word for.
fn operation(path: &str) -> Option<&'static str> {
    match path {
        "/v1/chat/completions" | "/v1/responses" | "/v1/messages" => Some("chat"),
        "/v1/completions" => Some("text_completion"),
        "/v1/embeddings" => Some("embeddings"),
        "/v1beta/models/{id}" => Some("generate_content"),
        _ => None,
    }
}

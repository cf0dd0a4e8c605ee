//! An MCP call and its attempts (`mcp.*`).

use tidegate_journal::decision::McpRecord;

use super::{Frame, SpanRecord};
use crate::attribute::Value;

pub(super) fn spans(frame: &Frame<'_>, call: &McpRecord) -> Vec<SpanRecord> {
    // A resource is named by its address, which may say anything: it is not in the span.
    let target = match call.method {
        "tools/call" | "prompts/get" => call.tool.as_deref(),
        _ => None,
    };
    let name = match target {
        Some(target) => format!("{} {target}", call.method),
        None => call.method.to_owned(),
    };
    let mut spans = vec![request(frame, call, &name)];
    for (number, attempt) in call.attempts.iter().enumerate() {
        let mut attributes = method(call);
        attributes.extend([
            ("tidegate.target", Value::from(&*attempt.backend)),
            ("tidegate.attempt", Value::Number(number as i64 + 1)),
            ("tidegate.times_sent", Value::Number(attempt.times_sent.into())),
        ]);
        if let Some(outcome) = attempt.outcome {
            attributes.push(("tidegate.outcome", outcome.word().into()));
        }
        if let Some(cause) = &attempt.cause {
            attributes.push(("tidegate.cause", (&**cause).into()));
        }
        let when = (attempt.began, attempt.began.after(attempt.took));
        spans.push(frame.attempt(number, name.clone(), when, attempt.outcome, attributes));
    }
    spans
}

fn request(frame: &Frame<'_>, call: &McpRecord, name: &str) -> SpanRecord {
    let mut attributes = frame.common();
    attributes.extend(method(call));
    attributes.push(("tidegate.attempts", Value::Number(call.attempts.len() as i64)));
    if let Some(cause) = &call.cause {
        attributes.push(("tidegate.cause", (&**cause).into()));
    }
    let span = frame.request(name.to_owned(), attributes);
    let code = call.error_code.map(str::to_owned);
    SpanRecord { error: code.or(span.error), ..span }
}

fn method(call: &McpRecord) -> Vec<(&'static str, Value)> {
    let mut attributes = vec![("mcp.method.name", Value::from(call.method))];
    if let Some(tool) = &call.tool {
        match call.method {
            "tools/call" => {
                attributes.push(("gen_ai.operation.name", "execute_tool".into()));
                attributes.push(("gen_ai.tool.name", (&**tool).into()));
            }
            "prompts/get" => attributes.push(("gen_ai.prompt.name", (&**tool).into())),
            _ => {}
        }
    }
    attributes
}

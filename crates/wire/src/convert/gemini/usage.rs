//! `usageMetadata`. Thoughts and the results of Gemini's own tools are counted apart.

use serde_json::{Map, Value, json};

use crate::convert::fields::count_of;
use crate::convert::reply::TokenUsage;

/// Reads the object.
pub(super) fn read(map: &Map<String, Value>) -> TokenUsage {
    let thoughts = count_of(map, "thoughtsTokenCount");
    TokenUsage {
        input: count_of(map, "promptTokenCount")
            .saturating_add(count_of(map, "toolUsePromptTokenCount")),
        cached: count_of(map, "cachedContentTokenCount"),
        cache_written: 0,
        output: count_of(map, "candidatesTokenCount").saturating_add(thoughts),
        reasoning: thoughts,
    }
}

/// Writes the object.
pub(super) fn written(usage: &TokenUsage) -> Value {
    let mut value = json!({
        "promptTokenCount": usage.input,
        "candidatesTokenCount": usage.output.saturating_sub(usage.reasoning),
        "totalTokenCount": usage.total(),
    });
    if usage.reasoning > 0 {
        value["thoughtsTokenCount"] = usage.reasoning.into();
    }
    if usage.cached > 0 {
        value["cachedContentTokenCount"] = usage.cached.into();
    }
    value
}

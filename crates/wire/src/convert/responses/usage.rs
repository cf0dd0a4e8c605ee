//! `usage` of the Responses API.

use serde_json::{Map, Value, json};

use crate::convert::fields::count_of;
use crate::convert::reply::TokenUsage;

/// Reads the object.
pub(super) fn read(map: &Map<String, Value>) -> TokenUsage {
    let detail = |group: &str, key: &str| {
        let group = map.get(group).and_then(Value::as_object);
        group.map_or(0, |group| count_of(group, key))
    };
    TokenUsage {
        input: count_of(map, "input_tokens"),
        cached: detail("input_tokens_details", "cached_tokens"),
        cache_written: detail("input_tokens_details", "cache_write_tokens"),
        output: count_of(map, "output_tokens"),
        reasoning: detail("output_tokens_details", "reasoning_tokens"),
    }
}

/// Writes the object.
pub(super) fn written(usage: &TokenUsage) -> Value {
    json!({
        "input_tokens": usage.input,
        "input_tokens_details": {
            "cached_tokens": usage.cached, "cache_write_tokens": usage.cache_written,
        },
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.total(),
    })
}

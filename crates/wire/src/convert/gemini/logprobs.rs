//! `logprobsResult`: Google lists the chosen tokens and the alternatives side by side, OpenAI puts
//! the alternatives into each token.

use serde_json::{Value, json};

/// Reads the object into OpenAI's tokens.
pub(super) fn read(result: &Value) -> Vec<Value> {
    let chosen = result["chosenCandidates"].as_array().map_or(&[][..], Vec::as_slice);
    let token_at = |(at, candidate): (usize, &Value)| {
        let others = result["topCandidates"][at]["candidates"].as_array();
        let top: Vec<Value> = others.into_iter().flatten().map(token).collect();
        let mut token = token(candidate);
        token["top_logprobs"] = top.into();
        token
    };
    chosen.iter().enumerate().map(token_at).collect()
}

fn token(candidate: &Value) -> Value {
    let text = candidate["token"].as_str().unwrap_or_default();
    json!({"token": text, "logprob": candidate["logProbability"], "bytes": text.as_bytes()})
}

/// Writes OpenAI's tokens as the object.
pub(super) fn written(tokens: &[Value]) -> Value {
    let candidate =
        |token: &Value| json!({"token": token["token"], "logProbability": token["logprob"]});
    let top = |token: &Value| {
        let others = token["top_logprobs"].as_array();
        json!({"candidates": others.into_iter().flatten().map(candidate).collect::<Vec<_>>()})
    };
    json!({
        "chosenCandidates": tokens.iter().map(candidate).collect::<Vec<_>>(),
        "topCandidates": tokens.iter().map(top).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_back_as_they_went() {
        let tokens = vec![json!({"token": "a", "logprob": -0.5, "bytes": [97],
            "top_logprobs": [{"token": "b", "logprob": -1.5, "bytes": [98]}]})];
        assert_eq!(read(&written(&tokens)), tokens);
        assert_eq!(read(&Value::Null), Vec::<Value>::new());
    }
}

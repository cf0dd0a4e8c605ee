//! Embeddings, lists of models, and the answer to everything else.

use serde_json::{Value, json};

use super::{Answer, Ask, CREATED, Dialect};

/// Small numbers that are exact in every float, so that both encodings say the same.
pub(super) const VECTOR: [f32; 4] = [0.5, -0.25, 0.125, 1.0];

pub(super) fn embeddings(ask: &Ask, answer: &Answer) -> Value {
    let vector = if ask.wants_base64 {
        let bytes: Vec<u8> = VECTOR.iter().flat_map(|number| number.to_le_bytes()).collect();
        json!(base64(&bytes))
    } else {
        json!(VECTOR)
    };
    let row = |index| json!({"object": "embedding", "index": index, "embedding": vector});
    json!({
        "object": "list", "data": (0..ask.inputs).map(row).collect::<Vec<_>>(),
        "model": answer.model,
        "usage": {"prompt_tokens": answer.input_tokens, "total_tokens": answer.input_tokens},
    })
}

pub(super) fn whole(answer: &Answer) -> Value {
    json!({
        "id": format!("fake{}", answer.number), "object": "fake.answer", "created": CREATED,
        "model": answer.model, "text": answer.whole(), "results": [],
        "usage": {"prompt_tokens": answer.input_tokens, "total_tokens": answer.input_tokens},
    })
}

/// The list of models, in the shape of the vendor whose client asks.
pub(in super::super) fn models(names: &[String], dialect: Dialect) -> Value {
    let rows: Vec<Value> = names.iter().map(|name| model(name, dialect)).collect();
    if dialect.is_anthropic() {
        json!({"data": rows, "has_more": false, "first_id": names.first(),
            "last_id": names.last()})
    } else if dialect.is_google() {
        json!({ "models": rows })
    } else {
        json!({"object": "list", "data": rows})
    }
}

/// One model.
pub(in super::super) fn model(name: &str, dialect: Dialect) -> Value {
    if dialect.is_google() {
        json!({"name": format!("models/{name}"), "displayName": name, "version": "1",
            "supportedGenerationMethods": ["generateContent", "countTokens"]})
    } else if dialect.is_anthropic() {
        json!({"type": "model", "id": name, "display_name": name,
            "created_at": "2025-10-09T08:53:20Z", "lifecycle": "active"})
    } else {
        json!({"id": name, "object": "model", "created": CREATED, "owned_by": "fake"})
    }
}

/// Base64 with padding: a dozen lines here, against a crate for one vector.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let at = |index: usize| u32::from(group.get(index).copied().unwrap_or_default());
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= group.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base64_pads_as_the_standard_says() {
        // The test vectors of RFC 4648.
        let cases =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")];
        for (plain, encoded) in cases {
            assert_eq!(base64(plain.as_bytes()), encoded);
        }
    }
}

//! Embeddings between OpenAI's `/v1/embeddings` and Gemini's `embedContent`,
//! `batchEmbedContents`.
//!
//! | form | OpenAI | Gemini |
//! |---|---|---|
//! | `inputs` | `input`: a text or a list of texts | `content` of each request |
//! | `dimensions` | `dimensions` | `outputDimensionality` |
//! | `is_base64` | `encoding_format: base64` | – |
//! | `vectors` | `data[].embedding` | `embedding.values`, `embeddings[].values` |
//!
//! Rules:
//! - Texts only: OpenAI's lists of token numbers belong to one vendor's tokens and are refused.
//! - Gemini is always asked for a batch, so one and many are the same request.

pub mod gemini;
pub mod openai;

use serde_json::{Map, Value};

/// A request for embeddings, in no dialect.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EmbeddingRequest {
    /// The texts, in order.
    pub inputs: Vec<String>,
    /// How many numbers a vector shall have.
    pub dimensions: Option<u64>,
    /// Whether the client wants vectors as base64 of 32-bit floats (OpenAI only).
    pub is_base64: bool,
    /// Whether the client wants one vector and not a list (Gemini's `embedContent`).
    pub is_single: bool,
    /// The fields that the form has no place for.
    pub other: Map<String, Value>,
}

/// The vectors of an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EmbeddingReply {
    /// One for each text, in the order of the texts.
    pub vectors: Vec<Vec<f64>>,
    /// How many tokens the texts had, where told.
    pub input_tokens: u64,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::convert::notes::Notes;

    fn value(body: &[u8]) -> Value {
        serde_json::from_slice(body).expect("JSON")
    }

    #[test]
    fn openai_asks_gemini_for_a_batch() {
        let body = json!({"model": "m", "input": ["a", "b"], "dimensions": 3, "user": "u"});
        let mut notes = Notes::default();
        let request = openai::read_request(body.to_string().as_bytes()).expect("a request");
        let sent = value(&gemini::write_request(&request, "embed-1", &mut notes));
        let one = |text: &str| {
            json!({"model": "models/embed-1", "content": {"parts": [{"text": text}]},
                "outputDimensionality": 3})
        };
        assert_eq!(sent, json!({"requests": [one("a"), one("b")]}));
        assert_eq!(notes.as_slice()[0].field, "user");
        let answer = json!({"embeddings": [{"values": [0.5, 1.0]}, {"values": [-1.0, 2.0]}]});
        let reply = gemini::read_reply(answer.to_string().as_bytes()).expect("an answer");
        let shown = value(&openai::write_reply(&reply, &request, "m"));
        assert_eq!(
            shown,
            json!({"object": "list", "data": [
                {"object": "embedding", "index": 0, "embedding": [0.5, 1.0]},
                {"object": "embedding", "index": 1, "embedding": [-1.0, 2.0]}],
                "model": "m", "usage": {"prompt_tokens": 0, "total_tokens": 0}})
        );
    }

    #[test]
    fn base64_is_made_for_the_clients_that_want_it() {
        let body = br#"{"input":"a","encoding_format":"base64"}"#;
        let request = openai::read_request(body).expect("a request");
        let reply = EmbeddingReply { vectors: vec![vec![0.5, -2.0]], input_tokens: 1 };
        let shown = value(&openai::write_reply(&reply, &request, "m"));
        assert_eq!(shown["data"][0]["embedding"], "AAAAPwAAAMA=");
        assert_eq!(openai::read_reply(shown.to_string().as_bytes()), Ok(reply));
    }

    #[test]
    fn gemini_asks_openai_for_one_or_many() {
        let single = json!({"content": {"parts": [{"text": "a"}, {"text": "b"}]},
            "output_dimensionality": 2, "taskType": "RETRIEVAL_QUERY"});
        let mut notes = Notes::default();
        let request = gemini::read_request(single.to_string().as_bytes(), true);
        let request = request.expect("a request");
        let sent = value(&openai::write_request(&request, "text-1", &mut notes));
        let expected = json!({"model": "text-1", "input": ["a\nb"], "dimensions": 2,
            "encoding_format": "float"});
        assert_eq!(sent, expected);
        assert_eq!(notes.as_slice()[0].field, "taskType");
        let answer = json!({"data": [{"index": 1, "embedding": [2]}, {"index": 0,
            "embedding": [1]}], "usage": {"prompt_tokens": 9}});
        let reply = openai::read_reply(answer.to_string().as_bytes()).expect("an answer");
        assert_eq!(reply.vectors, [[1.0], [2.0]], "in the order of the texts");
        let shown = value(&gemini::write_reply(&reply, &request));
        assert_eq!(shown, json!({"embedding": {"values": [1.0]}}));
        let batch = json!({"requests": [{"content": {"parts": [{"text": "a"}]}},
            {"content": {"parts": [{"text": "b"}]}}]});
        let request = gemini::read_request(batch.to_string().as_bytes(), false);
        let request = request.expect("a request");
        assert_eq!(request.inputs, ["a", "b"]);
        let shown = value(&gemini::write_reply(&reply, &request));
        assert_eq!(shown, json!({"embeddings": [{"values": [1.0]}, {"values": [2.0]}]}));
    }

    #[test]
    fn what_cannot_be_converted_is_refused_by_name() {
        let refused =
            |body: &str| openai::read_request(body.as_bytes()).map_err(|it| it.to_string());
        assert_eq!(
            refused(r#"{"input":[[1,2]]}"#),
            Err("a list of token numbers cannot be sent in this target's dialect".to_owned())
        );
        assert_eq!(refused("{}"), Err("`input` is missing".to_owned()));
        let image = br#"{"content":{"parts":[{"inlineData":{}}]}}"#;
        let read = gemini::read_request(image, true).map_err(|it| it.to_string());
        assert_eq!(read, Err("`content.parts[0].text` is missing".to_owned()));
        assert!(gemini::read_reply(b"{}").is_err());
        assert!(openai::read_reply(br#"{"data":[{"embedding":"A"}]}"#).is_err());
    }
}

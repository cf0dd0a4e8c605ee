//! Puts another model name into a request body without touching the rest.
//!
//! Unknown fields, key order and numbers must reach the backend byte for byte, and a body may be
//! 32 MiB: so the body is cut at the name's place into slices that share its memory, and the new
//! name goes between them.
//!
//! Rules: nothing but the name changes; a body without `model` gets it as its first key, a form as
//! its first part; Gemini's bodies change only where they repeat the name of the path; a name is
//! escaped once, when its target is made ([`EncodedName`]), so that the hot path allocates nothing.

use bytes::Bytes;

use crate::head::{BodyShape, RequestHead, gemini::repeated_names};

/// A model name as it stands in bodies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedName {
    /// A JSON string, quotes included.
    json: Bytes,
    /// The value of a form's field.
    plain: Bytes,
    /// A JSON string in Gemini's form of a name, `models/{name}`.
    resource: Bytes,
}

impl EncodedName {
    /// Escapes `name`.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let json = serde_json::Value::from(name).to_string().into();
        let resource = serde_json::Value::from(format!("models/{name}")).to_string().into();
        Self { json, plain: Bytes::copy_from_slice(name.as_bytes()), resource }
    }

    /// The name itself, as a path or a form has it.
    #[must_use]
    pub fn plain(&self) -> &[u8] {
        &self.plain
    }
}

/// A body in up to three pieces, in order. Unused pieces are empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spliced {
    /// The pieces.
    pub pieces: [Bytes; 3],
}

impl Spliced {
    /// The body that `head` was read from, with `name` as its model.
    #[must_use]
    pub fn new(body: &Bytes, head: &RequestHead<'_>, name: &EncodedName) -> Self {
        let Some(model) = &head.model else { return Self::inserted(body, head.shape, name) };
        let name = match head.shape {
            BodyShape::Json { .. } => &name.json,
            BodyShape::Form { .. } => &name.plain,
            BodyShape::NamedByPath { repeats_model } => {
                let first = if repeats_model { Self::renamed(body, name) } else { body.clone() };
                return Self { pieces: [first, Bytes::new(), Bytes::new()] };
            }
        };
        if body[model.span.clone()] == *name {
            return Self { pieces: [body.clone(), Bytes::new(), Bytes::new()] };
        }
        let before = body.slice(..model.span.start);
        Self { pieces: [before, name.clone(), body.slice(model.span.end..)] }
    }

    /// A body of Gemini's API that repeats the model's name, with `name` in every such place.
    fn renamed(body: &Bytes, name: &EncodedName) -> Bytes {
        let mut out = Vec::with_capacity(body.len() + name.resource.len());
        let mut from = 0;
        for span in repeated_names(body) {
            out.extend_from_slice(&body[from..span.start]);
            out.extend_from_slice(&name.resource);
            from = span.end;
        }
        out.extend_from_slice(&body[from..]);
        out.into()
    }

    fn inserted(body: &Bytes, shape: BodyShape, name: &EncodedName) -> Self {
        let (at, field) = match shape {
            BodyShape::Json { first_key_at, is_empty } => {
                let comma = if is_empty { "" } else { "," };
                (first_key_at, [b"\"model\":", &name.json[..], comma.as_bytes()].concat())
            }
            BodyShape::Form { boundary_len } => {
                let boundary = &body[..2 + boundary_len];
                let head = b"\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n";
                (0, [boundary, head, &name.plain, b"\r\n"].concat())
            }
            BodyShape::NamedByPath { .. } => (0, Vec::new()),
        };
        Self { pieces: [body.slice(..at), field.into(), body.slice(at..)] }
    }

    /// The length of the whole body.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pieces.iter().map(Bytes::len).sum()
    }

    /// Whether there is no byte at all; a spliced body always has some.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &'static str, name: &str, expected: &str) {
        let bytes = Bytes::from_static(body.as_bytes());
        let head = RequestHead::read(body.as_bytes()).expect("a readable body");
        let spliced = Spliced::new(&bytes, &head, &EncodedName::new(name));
        let whole = spliced.pieces.concat();
        assert_eq!(String::from_utf8_lossy(&whole), expected);
        assert_eq!((spliced.len(), spliced.is_empty()), (expected.len(), false));
    }

    #[test]
    fn only_the_name_changes() {
        check(
            r#"{"z":1.50, "model" : "fast","a":1e2}"#,
            "x/y",
            r#"{"z":1.50, "model" : "x/y","a":1e2}"#,
        );
        check(r#"{"model":"fast"}"#, "a\"b\n", r#"{"model":"a\"b\n"}"#);
        check(r#"{"model":null,"a":1}"#, "m", r#"{"model":"m","a":1}"#);
    }

    #[test]
    fn a_missing_name_becomes_the_first_key() {
        check(r#"{ "a":1}"#, "m", r#"{ "model":"m","a":1}"#);
        check("{ }", "m", r#"{ "model":"m"}"#);
        check(" {}", "m", r#" {"model":"m"}"#);
    }

    #[test]
    fn the_rest_of_the_body_is_shared_and_not_copied() {
        let body = Bytes::from(r#"{"model":"fast","messages":[]}"#);
        let head = RequestHead::read(&body).expect("a readable body");
        let spliced = Spliced::new(&body, &head, &EncodedName::new("m"));
        assert_eq!(spliced.pieces[0].as_ptr(), body.as_ptr());
        assert_eq!(spliced.pieces[2].as_ptr(), body[15..].as_ptr());
        let same = Spliced::new(&body, &head, &EncodedName::new("fast"));
        assert_eq!((same.pieces[0].as_ptr(), same.pieces[0].len()), (body.as_ptr(), body.len()));
    }

    #[test]
    fn a_gemini_body_changes_only_where_it_repeats_the_name() {
        use crate::gemini::{GeminiCall, GeminiMethod};
        let call = GeminiCall { model: "fast", method: GeminiMethod::BatchEmbedContents };
        let spliced = |text: &str| {
            let body = Bytes::from(text.to_owned());
            let head = RequestHead::read_gemini(&body, &call).expect("a readable body");
            let pieces = Spliced::new(&body, &head, &EncodedName::new("embed-1")).pieces;
            String::from_utf8(pieces.concat()).expect("text")
        };
        let plain = r#"{ "contents":[{"parts":[{"text":"model"}]}], "x":1.50}"#;
        assert_eq!(spliced(plain), plain);
        assert_eq!(
            spliced(r#"{"requests":[{"model":"models/fast", "content":{}},{"model":"fast"}]}"#),
            r#"{"requests":[{"model":"models/embed-1", "content":{}},{"model":"models/embed-1"}]}"#,
        );
    }
}

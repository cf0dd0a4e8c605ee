//! What the gateway must know of a request body before it can choose a target.
//!
//! One pass over the bytes that came, no tree, no copy: the model's name and place (so that
//! [`crate::splice`] can change it in the original bytes), whether to stream, the session hint and
//! what the request needs of a target. The same pass proves that the body is JSON, so no backend
//! is ever asked to judge bytes that another one would read differently.
//!
//! Rules:
//! - `model` or `stream` given twice is refused: two readers could each believe another one, and
//!   that is smuggling. Keys are compared by what they say, so `"mod\u0065l"` is `model`.
//! - A model that is `null` is like none at all. One that is no text (half of a surrogate pair) is
//!   refused; such text elsewhere is for the backend to judge.
//! - Session hint, first found: `prompt_cache_key`, `metadata.user_id`, `user`; an empty one says
//!   nothing. The headers that go before them are the caller's.
//! - An image is an object in `messages`, `input` or `content` whose `type` is one of
//!   `IMAGE_TYPES`, but not inside the arguments of an earlier tool call, which are anybody's
//!   text.
//! - The length in tokens is a guess: a quarter of the bytes, without inline file data, which
//!   providers count otherwise. It only has to tell a short request from one that cannot fit.
//!
//! Left to others: which route a name means (the config), what a missing model means (the same).

pub(crate) mod gemini;
mod wishes;

use std::borrow::Cow;
use std::ops::Range;

use tidegate_core::route::Needs;
use tidegate_core::settings::Protocol;

use crate::json::{Fault, Scanner, What};
use wishes::{ItemReference, Wishes};

/// How an image part names its type in the dialects.
const IMAGE_TYPES: [&str; 3] = ["image_url", "image", "input_image"];

/// Keys whose string is inline file data or a link, not text.
const FILE_KEYS: [&str; 4] = ["data", "url", "image_url", "file_data"];

/// English text has about four bytes to a token.
const BYTES_PER_TOKEN: u64 = 4;

/// What was read of a request body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHead<'a> {
    /// The model asked for, if any.
    pub model: Option<ModelField<'a>>,
    /// Whether the answer shall be a stream.
    pub is_stream: bool,
    /// Which conversation the body says it belongs to.
    pub session: Option<Cow<'a, str>>,
    /// What a target must be able to do.
    pub needs: Needs,
    /// The id of the state that a provider keeps for it, if it names any.
    pub state_id: Option<Cow<'a, str>>,
    /// Whether the client means to continue the answer by its id (a `thread` of Anthropic's).
    pub is_threaded: bool,
    /// How the body is written, for putting a model into it.
    pub shape: BodyShape,
}

/// How a body is written, as far as putting a model into it needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyShape {
    /// A JSON object.
    Json {
        /// Where a key can be put into the body: just past the opening brace.
        first_key_at: usize,
        /// Whether the body has no key at all.
        is_empty: bool,
    },
    /// A form, which begins with two hyphens and its boundary.
    Form {
        /// How long the boundary is.
        boundary_len: usize,
    },
    /// The path names the model, not the body.
    NamedByPath {
        /// Whether the body repeats the name, which then has to be changed there too.
        repeats_model: bool,
    },
}

/// The model as the body names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelField<'a> {
    /// Its name, escapes resolved; empty where the body says `null`, which is like saying nothing.
    pub name: Cow<'a, str>,
    /// Where its value stands in the body; of JSON, quotes included. Empty if the path names it.
    pub span: Range<usize>,
}

impl<'a> RequestHead<'a> {
    /// Reads a whole request body.
    ///
    /// # Errors
    /// The body is not a JSON object, or says twice or in the wrong type what must be certain.
    pub fn read(body: &'a [u8]) -> Result<Self, Fault> {
        let mut scanner = Scanner::new(body);
        if matches!(scanner.peek(), Some(byte) if byte != b'{') {
            return Err(scanner.fault(What::NotAnObject));
        }
        let mut walk = scanner.enter(b'{')?;
        let mut found = Found::default();
        let first_key_at = body.len() - scanner.rest().len();
        let is_empty = scanner.peek() == Some(b'}');
        while let Some(key) = scanner.next_key(&mut walk)? {
            found.top_level(&key.name(), key.span().start, &mut scanner)?;
        }
        scanner.end()?;
        let text_bytes = (body.len() as u64).saturating_sub(found.file_bytes);
        let context = text_bytes / BYTES_PER_TOKEN;
        let needs =
            Needs { tools: found.has_tools, vision: found.has_images, context, ..Needs::default() };
        let is_threaded = found.wishes.is_threaded;
        let (needs, state_id) = found.wishes.needs(needs);
        Ok(Self {
            model: found.model,
            is_stream: found.stream.unwrap_or(false),
            session: found.cache_key.or(found.user_id).or(found.user),
            needs,
            state_id,
            is_threaded,
            shape: BodyShape::Json { first_key_at, is_empty },
        })
    }
}

#[derive(Default)]
struct Found<'a> {
    model: Option<ModelField<'a>>,
    stream: Option<bool>,
    cache_key: Option<Cow<'a, str>>,
    user_id: Option<Cow<'a, str>>,
    user: Option<Cow<'a, str>>,
    has_tools: bool,
    has_images: bool,
    file_bytes: u64,
    wishes: Wishes<'a>,
}

impl<'a> Found<'a> {
    /// Reads the value of one key of the body.
    fn top_level(
        &mut self,
        key: &[u8],
        key_at: usize,
        scanner: &mut Scanner<'a>,
    ) -> Result<(), Fault> {
        match key {
            b"model" => self.model(key_at, scanner),
            b"stream" => self.stream(key_at, scanner),
            b"prompt_cache_key" => hint(&mut self.cache_key, scanner),
            b"user" => hint(&mut self.user, scanner),
            b"metadata" => self.metadata(scanner),
            b"tools" | b"functions" => {
                self.has_tools |= scanner.peek() == Some(b'[') && !is_empty_list(scanner.rest());
                scanner.skip_value()
            }
            b"messages" | b"input" | b"content" => {
                let is_messages = key == b"messages";
                let native = if is_messages { Protocol::Anthropic } else { Protocol::OpenAi };
                self.wishes.native = Some(native);
                self.parts(scanner)
            }
            _ if self.wishes.top_level(key, scanner)? => Ok(()),
            _ => scanner.skip_value(),
        }
    }

    fn model(&mut self, key_at: usize, scanner: &mut Scanner<'a>) -> Result<(), Fault> {
        if self.model.is_some() {
            return Err(Fault { at: key_at, what: What::GivenTwice("model") });
        }
        let start = scanner.at();
        let name = match scanner.peek() {
            Some(b'"') => {
                let half = Fault { at: start, what: What::LoneSurrogate("model") };
                scanner.string()?.decode_exactly().ok_or(half)?
            }
            // Some clients write every option they know, unset ones as null.
            Some(b'n') => {
                scanner.skip_value()?;
                Cow::Borrowed("")
            }
            _ => return Err(scanner.fault(What::WrongType { key: "model", wants: "string" })),
        };
        self.model = Some(ModelField { name, span: start..scanner.at() });
        Ok(())
    }

    fn stream(&mut self, key_at: usize, scanner: &mut Scanner<'a>) -> Result<(), Fault> {
        if self.stream.is_some() {
            return Err(Fault { at: key_at, what: What::GivenTwice("stream") });
        }
        self.stream = Some(match scanner.peek() {
            Some(b't') => true,
            Some(b'f' | b'n') => false,
            _ => return Err(scanner.fault(What::WrongType { key: "stream", wants: "boolean" })),
        });
        scanner.skip_value()
    }

    fn metadata(&mut self, scanner: &mut Scanner<'a>) -> Result<(), Fault> {
        if scanner.peek() != Some(b'{') {
            return scanner.skip_value();
        }
        let mut walk = scanner.enter(b'{')?;
        while let Some(key) = scanner.next_key(&mut walk)? {
            if key.is("user_id") {
                hint(&mut self.user_id, scanner)?;
            } else {
                scanner.skip_value()?;
            }
        }
        Ok(())
    }

    /// Walks messages and their parts, looking for images and file data.
    fn parts(&mut self, scanner: &mut Scanner<'a>) -> Result<(), Fault> {
        match scanner.peek() {
            Some(b'[') => {
                let mut walk = scanner.enter(b'[')?;
                while scanner.next_element(&mut walk)? {
                    self.parts(scanner)?;
                }
                Ok(())
            }
            Some(b'{') => {
                let mut walk = scanner.enter(b'{')?;
                let mut reference = ItemReference::default();
                while let Some(key) = scanner.next_key(&mut walk)? {
                    if scanner.peek() == Some(b'"') {
                        let value = scanner.string()?;
                        if key.is("type") {
                            self.has_images |= IMAGE_TYPES.iter().any(|name| value.is(name));
                            self.wishes.part_type(|name| value.is(name));
                            reference.is_one |= value.is("item_reference");
                        } else if key.is("id") {
                            reference.id = Some(value.decode());
                        } else {
                            self.wishes.text_field(&key.name(), || value.decode());
                        }
                        if FILE_KEYS.iter().any(|name| key.is(name)) {
                            self.file_bytes += value.span().len() as u64;
                        }
                    } else if key.is("input") || key.is("arguments") {
                        scanner.skip_value()?;
                    } else if key.is("source") && scanner.peek() == Some(b'{') {
                        self.source(scanner)?;
                    } else {
                        self.parts(scanner)?;
                    }
                }
                self.wishes.reference(&reference);
                Ok(())
            }
            _ => scanner.skip_value(),
        }
    }
}

impl<'a> Found<'a> {
    /// Where the bytes of an image or a document are: its `type` is not that of a part.
    fn source(&mut self, scanner: &mut Scanner<'a>) -> Result<(), Fault> {
        let mut walk = scanner.enter(b'{')?;
        while let Some(key) = scanner.next_key(&mut walk)? {
            if scanner.peek() != Some(b'"') {
                self.parts(scanner)?;
                continue;
            }
            let value = scanner.string()?;
            self.wishes.text_field(&key.name(), || value.decode());
            if FILE_KEYS.iter().any(|name| key.is(name)) {
                self.file_bytes += value.span().len() as u64;
            }
        }
        Ok(())
    }
}

/// Keeps a string that is not empty; anything else is no hint.
fn hint<'a>(slot: &mut Option<Cow<'a, str>>, scanner: &mut Scanner<'a>) -> Result<(), Fault> {
    if scanner.peek() != Some(b'"') {
        return scanner.skip_value();
    }
    let text = scanner.string()?.decode();
    if !text.is_empty() {
        *slot = Some(text);
    }
    Ok(())
}

fn is_empty_list(list: &[u8]) -> bool {
    list[1..].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b']')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(body: &str) -> RequestHead<'_> {
        RequestHead::read(body.as_bytes()).expect("a readable body")
    }

    fn check_refused(body: &str, message: &str) {
        let fault = RequestHead::read(body.as_bytes()).expect_err("a refused body");
        assert_eq!(fault.to_string(), message, "{body}");
    }

    #[test]
    fn model_stream_and_place_are_read() {
        let body = r#"{"model": "fast", "stream": true}"#;
        let head = head(body);
        let model = head.model.expect("a model");
        assert_eq!((&*model.name, &body[model.span]), ("fast", "\"fast\""));
        assert!(head.is_stream);
    }

    #[test]
    fn an_escaped_name_is_decoded() {
        let head = head(r#"{"mod\u0065l":"a\/b\n\u00e9"}"#);
        assert_eq!(head.model.expect("a model").name, "a/b\né");
    }

    #[test]
    fn a_model_that_is_null_has_a_place_and_no_name() {
        let body = r#"{"model": null , "stream": false}"#;
        let model = head(body).model.expect("its place");
        assert_eq!((&*model.name, &body[model.span]), ("", "null"));
    }

    #[test]
    fn half_a_surrogate_pair_outside_the_model_is_for_the_backend_to_judge() {
        let head = head(r#"{"model":"a","user":"x\ud800","messages":[{"content":"\udc00"}]}"#);
        assert_eq!(head.session.as_deref(), Some("x\\ud800"), "as it stands there");
    }

    #[test]
    fn nested_models_and_streams_say_nothing() {
        let head = head(r#"{"x":{"model":"a","stream":true},"messages":[{"model":"b"}]}"#);
        assert_eq!((head.model, head.is_stream), (None, false));
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        check_refused(r#"{"model":"a","model":"a"}"#, "`model` is given twice at byte 13");
        check_refused(r#"{"model":"a","mod\u0065l":"b"}"#, "`model` is given twice at byte 13");
        check_refused(r#"{"stream":true,"stream":null}"#, "`stream` is given twice at byte 15");
        check_refused(r#"{"model":null,"model":"a"}"#, "`model` is given twice at byte 14");
        check_refused(r#"{"model":7}"#, "`model` must be a string at byte 9");
        let half = "`model` contains half of a surrogate pair at byte 9";
        check_refused(r#"{"model":"a\ud800"}"#, half);
        check_refused(r#"{"stream":"true"}"#, "`stream` must be a boolean at byte 10");
    }

    #[test]
    fn what_is_no_json_object_is_refused() {
        check_refused("[]", "the body must be a JSON object at byte 0");
        check_refused("", "the text ends too early at byte 0");
        check_refused(r#"{"a":1} x"#, "something follows the value at byte 8");
        check_refused(r#"{"a":1e400}"#, "number out of range at byte 5");
        check_refused("{\"model", "the text ends too early at byte 7");
    }

    #[test]
    fn the_session_hint_is_the_first_of_three() {
        let session = |body| head(body).session.map(Cow::into_owned);
        let all = r#"{"user":"u","metadata":{"user_id":"m"},"prompt_cache_key":"k"}"#;
        assert_eq!(session(all).as_deref(), Some("k"));
        let two = r#"{"user":"u","metadata":{"x":1,"user_id":"m"},"prompt_cache_key":""}"#;
        assert_eq!(session(two).as_deref(), Some("m"));
        assert_eq!(session(r#"{"user":"u","metadata":null}"#).as_deref(), Some("u"));
        assert_eq!(session(r#"{"user":7,"metadata":{"user_id":[]}}"#), None);
    }

    #[test]
    fn tools_are_needed_when_there_are_any() {
        let tools = |body| head(body).needs.tools;
        assert!(tools(r#"{"tools":[{"type":"function"}]}"#));
        assert!(tools(r#"{"functions":[ {}]}"#));
        assert!(!tools(r#"{"tools":[ ]}"#));
        assert!(!tools(r#"{"tools":null}"#));
        assert!(!tools(r#"{"x":{"tools":[1]}}"#));
    }

    #[test]
    fn images_are_found_in_every_dialect() {
        let vision = |body| head(body).needs.vision;
        assert!(vision(
            r#"{"messages":[{"content":[{"type":"image_url","image_url":{"url":"x"}}]}]}"#
        ));
        assert!(vision(r#"{"messages":[{"content":[{"type":"image","source":{}}]}]}"#));
        assert!(vision(r#"{"input":[{"content":[{"type":"input_image"}]}]}"#));
        assert!(vision(
            r#"{"messages":[{"content":[{"type":"tool_result","content":[{"type":"image"}]}]}]}"#
        ));
    }

    #[test]
    fn what_only_looks_like_an_image_is_none() {
        let vision = |body| head(body).needs.vision;
        assert!(!vision(r#"{"messages":[{"content":"{\"type\":\"image\"}"}]}"#));
        assert!(!vision(r#"{"tools":[{"type":"image"}]}"#));
        let call = r#"{"messages":[{"content":[{"type":"tool_use","input":{"type":"image"}}]}]}"#;
        assert!(!vision(call));
    }

    #[test]
    fn inline_file_data_does_not_count_as_text() {
        let data = "A".repeat(400_000);
        let body = format!(
            r#"{{"messages":[{{"content":[{{"type":"image","source":{{"data":"{data}"}}}}]}}]}}"#
        );
        assert!(head(&body).needs.context < 100);
        let text = format!(r#"{{"messages":[{{"content":"{data}"}}]}}"#);
        assert!(head(&text).needs.context >= 100_000);
    }
}

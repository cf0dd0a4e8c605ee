//! The head of a request to Gemini's API, whose path names the model and the method.
//!
//! Rules:
//! - The model is that of the path. Bodies may repeat it (`model`, `requests[].model`,
//!   `generateContentRequest.model`); those are changed to the target's own name on the way
//!   ([`crate::splice`]) and are no reason to refuse a request.
//! - An image is inline data or a file in `contents` whose media type says so. Arguments and
//!   results of earlier calls are anybody's text and are not looked into.
//! - Nothing in a body names a session.

use std::borrow::Cow;
use std::ops::Range;

use tidegate_core::held_state::StateKind;
use tidegate_core::route::Needs;

use super::{BYTES_PER_TOKEN, BodyShape, Found, ModelField, RequestHead, is_empty_list};
use crate::gemini::{GeminiCall, GeminiMethod};
use crate::json::{Fault, Scanner, What};

impl<'a> RequestHead<'a> {
    /// Reads a whole body of Gemini's API.
    ///
    /// # Errors
    /// The body is not a JSON object.
    pub fn read_gemini(body: &'a [u8], call: &GeminiCall<'a>) -> Result<Self, Fault> {
        let mut scanner = Scanner::new(body);
        if matches!(scanner.peek(), Some(byte) if byte != b'{') {
            return Err(scanner.fault(What::NotAnObject));
        }
        let mut found = Found::default();
        let mut names = Vec::new();
        request(&mut found, &mut names, &mut scanner)?;
        scanner.end()?;
        let text_bytes = (body.len() as u64).saturating_sub(found.file_bytes);
        let needs = Needs {
            tools: found.has_tools,
            vision: found.has_images,
            context: text_bytes / BYTES_PER_TOKEN,
            ..Needs::default()
        };
        let (needs, state_id) = found.wishes.needs(needs);
        Ok(Self {
            model: Some(ModelField { name: Cow::Borrowed(call.model), span: 0..0 }),
            is_stream: call.method == GeminiMethod::StreamGenerateContent,
            session: None,
            needs,
            state_id,
            is_threaded: false,
            shape: BodyShape::NamedByPath { repeats_model: !names.is_empty() },
        })
    }
}

/// Where the body repeats the model's name, in order; quotes included.
pub(crate) fn repeated_names(body: &[u8]) -> Vec<Range<usize>> {
    let mut names = Vec::new();
    let read = request(&mut Found::default(), &mut names, &mut Scanner::new(body));
    // The body was read before it got here; one that cannot be read has nothing to change.
    if read.is_ok() { names } else { Vec::new() }
}

/// One request, or the request inside a `countTokens` or of a batch.
fn request<'a>(
    found: &mut Found<'a>,
    names: &mut Vec<Range<usize>>,
    scanner: &mut Scanner<'a>,
) -> Result<(), Fault> {
    let mut walk = scanner.enter(b'{')?;
    while let Some(key) = scanner.next_key(&mut walk)? {
        match (&*key.decode(), scanner.peek()) {
            ("model", Some(b'"')) => names.push(scanner.string()?.span()),
            ("tools", Some(b'[')) => {
                found.has_tools |= !is_empty_list(scanner.rest());
                scanner.skip_value()?;
            }
            ("contents" | "content", _) => parts(found, scanner)?,
            ("generationConfig" | "generation_config", _) => found.wishes.gemini_config(scanner)?,
            ("cachedContent" | "cached_content", Some(b'"')) => {
                let id = Some(scanner.string()?.decode()).filter(|it| !it.is_empty());
                found.wishes.refers_to(StateKind::CachedContent, id);
            }
            ("generateContentRequest" | "generate_content_request", Some(b'{')) => {
                request(found, names, scanner)?;
            }
            ("requests", Some(b'[')) => {
                let mut list = scanner.enter(b'[')?;
                while scanner.next_element(&mut list)? {
                    match scanner.peek() {
                        Some(b'{') => request(found, names, scanner)?,
                        _ => scanner.skip_value()?,
                    }
                }
            }
            _ => scanner.skip_value()?,
        }
    }
    Ok(())
}

/// Walks contents and their parts, looking for images and file data.
fn parts<'a>(found: &mut Found<'a>, scanner: &mut Scanner<'a>) -> Result<(), Fault> {
    match scanner.peek() {
        Some(b'[') => {
            let mut walk = scanner.enter(b'[')?;
            while scanner.next_element(&mut walk)? {
                parts(found, scanner)?;
            }
            Ok(())
        }
        Some(b'{') => {
            let mut walk = scanner.enter(b'{')?;
            while let Some(key) = scanner.next_key(&mut walk)? {
                match (&*key.decode(), scanner.peek()) {
                    ("mimeType" | "mime_type", Some(b'"')) => {
                        let kind = scanner.string()?.decode();
                        found.has_images |= kind.starts_with("image/");
                        let is_media = ["image/", "audio/", "video/"];
                        found.wishes.has_documents |=
                            !is_media.iter().any(|start| kind.starts_with(start));
                    }
                    ("fileUri" | "file_uri", Some(b'"')) => {
                        found.wishes.gemini_file(scanner.string()?.decode());
                    }
                    ("thoughtSignature" | "thought_signature", Some(b'"')) => {
                        found.wishes.gemini_seal(&scanner.string()?.decode());
                    }
                    ("data", Some(b'"')) => {
                        found.file_bytes += scanner.string()?.span().len() as u64;
                    }
                    ("args" | "response", _) => scanner.skip_value()?,
                    _ => parts(found, scanner)?,
                }
            }
            Ok(())
        }
        _ => scanner.skip_value(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(body: &str, method: GeminiMethod) -> RequestHead<'_> {
        let call = GeminiCall { model: "flash", method };
        RequestHead::read_gemini(body.as_bytes(), &call).expect("a readable body")
    }

    #[test]
    fn the_path_says_which_model_and_whether_to_stream() {
        let body = r#"{"model":"models/other","stream":"no matter","contents":[]}"#;
        let read = head(body, GeminiMethod::StreamGenerateContent);
        assert_eq!(read.model.map(|it| it.name.into_owned()).as_deref(), Some("flash"));
        assert!(read.is_stream);
        assert!(!head(body, GeminiMethod::GenerateContent).is_stream);
    }

    #[test]
    fn tools_and_images_are_found() {
        let needs = |body| head(body, GeminiMethod::GenerateContent).needs;
        let image = r#"{"contents":[{"parts":[{"inlineData":{"mimeType":"image/png","data":"x"}}]}],
            "tools":[{"functionDeclarations":[]}]}"#;
        assert!(needs(image).vision && needs(image).tools);
        let python = r#"{"contents":{"parts":{"file_data":{"mime_type":"image/png"}}}}"#;
        assert!(needs(python).vision && !needs(python).tools);
        let call = r#"{"contents":[{"parts":[{"functionCall":{"args":{"mimeType":"image/x"}}}]}]}"#;
        assert!(!needs(call).vision);
        assert!(!needs(r#"{"contents":[{"parts":[{"text":"image/png"}]}],"tools":[]}"#).vision);
    }

    #[test]
    fn inline_data_does_not_count_as_text() {
        let data = "A".repeat(400_000);
        let body =
            format!(r#"{{"contents":[{{"parts":[{{"inlineData":{{"data":"{data}"}}}}]}}]}}"#);
        assert!(head(&body, GeminiMethod::GenerateContent).needs.context < 100);
    }

    #[test]
    fn repeated_names_are_found_where_a_method_has_them() {
        let body = r#"{"model":"models/a","requests":[{"model":"models/b","content":{}}],
            "generateContentRequest":{"model":"models/c"},"contents":{"model":"models/no"}}"#;
        let found: Vec<&str> =
            repeated_names(body.as_bytes()).into_iter().map(|span| &body[span]).collect();
        assert_eq!(found, ["\"models/a\"", "\"models/b\"", "\"models/c\""]);
    }

    #[test]
    fn a_body_that_is_no_object_is_refused() {
        let call = GeminiCall { model: "flash", method: GeminiMethod::CountTokens };
        for body in ["", "[]", "{", "{\"contents\":", "{} {}"] {
            assert!(RequestHead::read_gemini(body.as_bytes(), &call).is_err(), "{body}");
        }
    }
}

//! What a body asks of its target besides text: documents, a schema, reasoning, kept state.
//!
//! Rules:
//! - A document is a part whose type is one of `DOCUMENT_TYPES`, or, of Gemini's, data of a media
//!   type that is neither image, sound nor film.
//! - Reasoning is asked for by a level of effort other than `none` and `minimal`, by `thinking`
//!   that is on, or by a budget for it.
//! - State is named by `previous_response_id`, `conversation`, `item_reference`, a `thread` that is
//!   continued, ids of files and `cachedContent`. If a body names several, the one that stands
//!   first in [`StateKind`] counts.
//! - Sealed reasoning is recognised by the fields of its vendor. The last one in the body counts:
//!   it comes from whoever answered last. A seal that was carried through another vendor's field
//!   names its vendor.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tidegate_core::held_state::{HeldState, Holder, StateKind};
use tidegate_core::route::Needs;
use tidegate_core::settings::Protocol;

use crate::convert::part::{FOREIGN_SEAL, NO_SEAL};
use crate::convert::responses::item::{OWN_ITEM, OWN_REASONING};
use crate::json::{Fault, Scanner};

/// How a part with a document names its type in the dialects.
pub(super) const DOCUMENT_TYPES: [&str; 3] = ["document", "file", "input_file"];

/// How much of a seal in base64 is decoded: enough to tell the vendors apart.
const SEAL_HEAD: usize = 20;

/// An object of the input, as far as it may be a reference to an item.
#[derive(Default)]
pub(super) struct ItemReference<'a> {
    pub(super) is_one: bool,
    pub(super) id: Option<Cow<'a, str>>,
}

/// What was found of it.
#[derive(Default)]
pub(super) struct Wishes<'a> {
    pub(super) has_documents: bool,
    pub(super) wants_schema: bool,
    pub(super) wants_reasoning: bool,
    /// The answer becomes part of a thread.
    pub(super) is_threaded: bool,
    state: Option<StateKind>,
    state_id: Option<Cow<'a, str>>,
    /// An item is named that no provider ever had.
    is_gone: bool,
    sealed_by: Option<Protocol>,
    /// Whose fields the part of the body that is being read has.
    pub(super) native: Option<Protocol>,
}

impl<'a> Wishes<'a> {
    /// The needs with these wishes, and the id of the state that they name.
    pub(super) fn needs(self, needs: Needs) -> (Needs, Option<Cow<'a, str>>) {
        let sealed = self.sealed_by.map(|by| HeldState::new(StateKind::SealedReasoning, Some(by)));
        let holder = self.is_gone.then_some(Holder::Gone);
        let state = self.state.map(|kind| HeldState { holder, ..HeldState::new(kind, None) });
        let state = state.or(sealed);
        let needs = Needs {
            documents: self.has_documents,
            json_schema: self.wants_schema,
            reasoning: self.wants_reasoning,
            state,
            ..needs
        };
        (needs, self.state_id)
    }

    /// Reads the value of a key of the body; `false` if the key is none of these.
    pub(super) fn top_level(
        &mut self,
        key: &[u8],
        scanner: &mut Scanner<'a>,
    ) -> Result<bool, Fault> {
        match key {
            b"response_format" | b"output_format" => {
                self.wants_schema |= has_word(scanner, b"type", |it| it == "json_schema")?;
            }
            b"text" | b"output_config" => each_field(scanner, |name, scanner| {
                if name == b"format" {
                    self.wants_schema |= has_word(scanner, b"type", |it| it == "json_schema")?;
                    return Ok(());
                }
                scanner.skip_value()
            })?,
            b"reasoning_effort" => {
                self.wants_reasoning |= word(scanner)?.is_some_and(|it| is_effort(&it));
            }
            b"reasoning" => self.wants_reasoning |= has_word(scanner, b"effort", is_effort)?,
            b"thinking" => {
                let is_on = |it: &str| it == "enabled" || it == "adaptive";
                self.wants_reasoning |= has_word(scanner, b"type", is_on)?;
            }
            b"previous_response_id" => {
                let id = word(scanner)?;
                self.refers_to(StateKind::PreviousResponse, id);
            }
            b"thread" => {
                let mut previous = None;
                self.is_threaded = scanner.peek() == Some(b'{');
                each_field(scanner, |name, scanner| match name {
                    b"previous_message_id" => word(scanner).map(|id| previous = id),
                    _ => scanner.skip_value(),
                })?;
                self.refers_to(StateKind::Thread, previous);
            }
            b"conversation" if scanner.peek() == Some(b'{') => {
                let mut found = None;
                each_field(scanner, |name, scanner| match name {
                    b"id" => word(scanner).map(|id| found = id),
                    _ => scanner.skip_value(),
                })?;
                self.refers_to(StateKind::Conversation, found);
            }
            b"conversation" => {
                let id = word(scanner)?;
                self.refers_to(StateKind::Conversation, id);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// A text field of a message or of one of its parts.
    pub(super) fn text_field(&mut self, key: &[u8], value: impl FnOnce() -> Cow<'a, str>) {
        match key {
            b"file_id" => self.refers_to(StateKind::File, Some(value())),
            b"encrypted_content" | b"signature" => self.seal(&value()),
            _ => {}
        }
    }

    /// A `type` of a part.
    pub(super) fn part_type(&mut self, is: impl Fn(&str) -> bool) {
        self.has_documents |= DOCUMENT_TYPES.iter().any(|name| is(name));
        if is("redacted_thinking") {
            self.sealed_by = self.native;
        }
    }

    /// An object of the body, which may be a reference to an item. Reasoning that the gateway
    /// itself named is with nobody, and the request does not need it.
    pub(super) fn reference(&mut self, reference: &ItemReference<'_>) {
        let id = reference.id.as_deref().unwrap_or_default();
        if reference.is_one && !id.starts_with(OWN_REASONING) {
            self.is_gone |= id.contains(OWN_ITEM);
            self.refers_to(StateKind::StoredItem, None);
        }
    }

    /// State that the body names.
    pub(super) fn refers_to(&mut self, kind: StateKind, id: Option<Cow<'a, str>>) {
        if id.is_none() && kind != StateKind::StoredItem {
            return;
        }
        if self.state.is_none_or(|known| (kind as u8) < known as u8) {
            self.state = Some(kind);
            self.state_id = id;
        }
    }

    fn seal(&mut self, text: &str) {
        if text.is_empty() || text == NO_SEAL {
            return;
        }
        let foreign = text.strip_prefix(FOREIGN_SEAL);
        self.sealed_by = foreign.map_or(self.native, protocol_of);
    }

    /// A signature of Gemini's, in which another vendor's seal lies in base64.
    pub(super) fn gemini_seal(&mut self, text: &str) {
        let head = text.as_bytes().get(..SEAL_HEAD).and_then(|head| STANDARD.decode(head).ok());
        let head = head.and_then(|head| String::from_utf8(head).ok());
        match head.as_deref().and_then(|head| head.strip_prefix(FOREIGN_SEAL)) {
            Some(foreign) => self.sealed_by = protocol_of(foreign),
            None if !text.is_empty() => self.sealed_by = Some(Protocol::Gemini),
            None => {}
        }
    }

    /// What Gemini's `generationConfig` asks for.
    pub(super) fn gemini_config(&mut self, scanner: &mut Scanner<'a>) -> Result<(), Fault> {
        each_field(scanner, |name, scanner| match name {
            b"responseSchema"
            | b"response_schema"
            | b"responseJsonSchema"
            | b"response_json_schema" => {
                self.wants_schema |= scanner.peek() == Some(b'{');
                scanner.skip_value()
            }
            b"thinkingConfig" | b"thinking_config" => self.gemini_thinking(scanner),
            _ => scanner.skip_value(),
        })
    }

    fn gemini_thinking(&mut self, scanner: &mut Scanner<'a>) -> Result<(), Fault> {
        each_field(scanner, |name, scanner| {
            match (name, scanner.peek()) {
                (b"thinkingBudget" | b"thinking_budget", Some(b'1'..=b'9' | b'-'))
                | (b"includeThoughts" | b"include_thoughts", Some(b't')) => {
                    self.wants_reasoning = true;
                }
                (b"thinkingLevel" | b"thinking_level", Some(b'"')) => {
                    let level = word(scanner)?.unwrap_or_default();
                    self.wants_reasoning |= !level.eq_ignore_ascii_case("minimal");
                    return Ok(());
                }
                _ => {}
            }
            scanner.skip_value()
        })
    }

    /// A file that Gemini's API has: other addresses are anybody's to read.
    pub(super) fn gemini_file(&mut self, uri: Cow<'a, str>) {
        let is_googles = uri.contains("generativelanguage.googleapis.com/");
        if uri.starts_with("files/") || (is_googles && uri.contains("/files/")) {
            self.refers_to(StateKind::File, Some(uri));
        }
    }
}

/// Whose a seal is, by what stands behind the mark of a foreign one; none if it says nobody's.
fn protocol_of(foreign: &str) -> Option<Protocol> {
    let begins = |word: &str| foreign.starts_with(word);
    match () {
        () if begins("openai") => Some(Protocol::OpenAi),
        () if begins("anthro") => Some(Protocol::Anthropic),
        () if begins("google") => Some(Protocol::Gemini),
        () => None,
    }
}

fn is_effort(word: &str) -> bool {
    !matches!(word, "none" | "minimal")
}

/// A text that is not empty; anything else is skipped.
fn word<'a>(scanner: &mut Scanner<'a>) -> Result<Option<Cow<'a, str>>, Fault> {
    if scanner.peek() != Some(b'"') {
        return scanner.skip_value().map(|()| None);
    }
    Ok(Some(scanner.string()?.decode()).filter(|it| !it.is_empty()))
}

/// Whether an object has a text field that fits.
fn has_word(
    scanner: &mut Scanner<'_>,
    key: &[u8],
    fits: impl Fn(&str) -> bool,
) -> Result<bool, Fault> {
    let mut found = false;
    each_field(scanner, |name, scanner| {
        if name != key {
            return scanner.skip_value();
        }
        found |= word(scanner)?.is_some_and(|it| fits(&it));
        Ok(())
    })?;
    Ok(found)
}

/// Goes through the fields of an object, each of which `read` reads or skips; anything else than
/// an object is skipped.
fn each_field<'a>(
    scanner: &mut Scanner<'a>,
    mut read: impl FnMut(&[u8], &mut Scanner<'a>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    if scanner.peek() != Some(b'{') {
        return scanner.skip_value();
    }
    let mut walk = scanner.enter(b'{')?;
    while let Some(key) = scanner.next_key(&mut walk)? {
        read(&key.name(), scanner)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use tidegate_core::held_state::{Holder, StateKind};
    use tidegate_core::settings::Protocol;

    use crate::gemini::{GeminiCall, GeminiMethod};
    use crate::head::RequestHead;

    fn head(body: &str) -> RequestHead<'_> {
        RequestHead::read(body.as_bytes()).expect("a readable body")
    }

    fn gemini(body: &str) -> RequestHead<'_> {
        let call = GeminiCall { model: "m", method: GeminiMethod::GenerateContent };
        RequestHead::read_gemini(body.as_bytes(), &call).expect("a readable body")
    }

    fn check_state(head: &RequestHead<'_>, kind: StateKind, id: Option<&str>) {
        assert_eq!(head.needs.state.map(|it| it.kind), Some(kind));
        assert_eq!(head.state_id.as_deref(), id);
    }

    #[test]
    fn documents_are_found_in_every_dialect() {
        let is_found = |body| head(body).needs.documents;
        assert!(is_found(r#"{"messages":[{"content":[{"type":"file","file":{}}]}]}"#));
        assert!(is_found(r#"{"messages":[{"content":[{"type":"document","source":{}}]}]}"#));
        assert!(is_found(r#"{"input":[{"content":[{"type":"input_file"}]}]}"#));
        let image = r#"{"messages":[{"content":[{"type":"image",
            "source":{"type":"file","file_id":"f"}}]}]}"#;
        assert!(!is_found(image) && head(image).needs.vision);
        let data = |kind: &str| {
            format!(r#"{{"contents":[{{"parts":[{{"inlineData":{{"mimeType":"{kind}"}}}}]}}]}}"#)
        };
        assert!(gemini(&data("application/pdf")).needs.documents);
        assert!(!gemini(&data("audio/wav")).needs.documents);
    }

    #[test]
    fn a_schema_is_a_need_and_plain_json_is_not() {
        let is_found = |body| head(body).needs.json_schema;
        assert!(is_found(r#"{"response_format":{"json_schema":{},"type":"json_schema"}}"#));
        assert!(!is_found(r#"{"response_format":{"type":"json_object"}}"#));
        assert!(is_found(r#"{"text":{"format":{"type":"json_schema"}}}"#));
        assert!(!is_found(r#"{"text":{"format":{"type":"text"},"verbosity":"low"}}"#));
        assert!(is_found(r#"{"output_config":{"format":{"type":"json_schema"}}}"#));
        assert!(gemini(r#"{"generationConfig":{"responseSchema":{}}}"#).needs.json_schema);
        assert!(!gemini(r#"{"generationConfig":{"responseSchema":null}}"#).needs.json_schema);
    }

    #[test]
    fn reasoning_is_a_need_where_it_is_asked_for() {
        let is_found = |body| head(body).needs.reasoning;
        assert!(is_found(r#"{"reasoning_effort":"low"}"#));
        assert!(!is_found(r#"{"reasoning_effort":"none"}"#));
        assert!(is_found(r#"{"reasoning":{"summary":"auto","effort":"high"}}"#));
        assert!(!is_found(r#"{"reasoning":{"effort":null,"summary":"auto"}}"#));
        assert!(!is_found(r#"{"reasoning":null}"#));
        assert!(is_found(r#"{"thinking":{"type":"enabled","budget_tokens":1}}"#));
        assert!(!is_found(r#"{"thinking":{"type":"disabled"}}"#));
        let thinks = |config: &str| {
            let body = format!(r#"{{"generationConfig":{{"thinkingConfig":{config}}}}}"#);
            gemini(&body).needs.reasoning
        };
        assert!(thinks(r#"{"thinkingBudget":-1}"#) && thinks(r#"{"thinkingLevel":"HIGH"}"#));
        assert!(!thinks(r#"{"thinkingBudget":0}"#) && !thinks("{}"));
    }

    #[test]
    fn state_that_a_provider_keeps_is_found_with_its_id() {
        let body = r#"{"input":[{"type":"item_reference","id":"i"}],"previous_response_id":"r"}"#;
        check_state(&head(body), StateKind::PreviousResponse, Some("r"));
        check_state(&head(r#"{"conversation":"c"}"#), StateKind::Conversation, Some("c"));
        let object = r#"{"conversation":{"id":"c"},"input":"x"}"#;
        check_state(&head(object), StateKind::Conversation, Some("c"));
        let thread = r#"{"thread":{"type":"continue","previous_message_id":"m"},"messages":[]}"#;
        check_state(&head(thread), StateKind::Thread, Some("m"));
        assert!(head(thread).is_threaded);
        let begun = head(r#"{"thread":{"type":"create"},"messages":[]}"#);
        assert!(begun.is_threaded && begun.needs.state.is_none());
        assert!(!head(r#"{"thread":null,"messages":[]}"#).is_threaded);
        let item = r#"{"input":[{"type":"item_reference","id":"i"}]}"#;
        check_state(&head(item), StateKind::StoredItem, None);
        for item in [
            r#"{"input":[{"type":"item_reference","id":"rs_tg_a_0"}]}"#,
            r#"{"input":[{"id":"rs_tg_a_0","type":"item_reference"}]}"#,
        ] {
            assert_eq!(head(item).needs.state, None, "reasoning that the gateway named: {item}");
        }
        let own = head(r#"{"input":[{"type":"item_reference","id":"msg_tg_a_0"}]}"#).needs.state;
        assert_eq!(own.and_then(|it| it.holder), Some(Holder::Gone), "nobody has such a text");
        let file = r#"{"messages":[{"content":[{"type":"file","file":{"file_id":"f"}}]}]}"#;
        check_state(&head(file), StateKind::File, Some("f"));
        let cached = r#"{"cachedContent":"cachedContents/1","contents":[]}"#;
        check_state(&gemini(cached), StateKind::CachedContent, Some("cachedContents/1"));
        let own = "https://generativelanguage.googleapis.com/v1beta/files/1";
        let file =
            format!(r#"{{"contents":[{{"parts":[{{"fileData":{{"fileUri":"{own}"}}}}]}}]}}"#);
        check_state(&gemini(&file), StateKind::File, Some(own));
        let web = file.replace(own, "https://example.com/files/a.png");
        assert_eq!(gemini(&web).needs.state, None);
        for nothing in [r#"{"previous_response_id":null}"#, r#"{"conversation":""}"#] {
            assert_eq!(head(nothing).needs.state, None, "{nothing}");
        }
        let text = r#"{"messages":[{"content":[{"type":"tool_use","input":{"file_id":"f"}}]}]}"#;
        assert_eq!(head(text).needs.state, None, "arguments are anybody's text");
    }

    #[test]
    fn sealed_reasoning_names_its_vendor_wherever_it_lies() {
        let by = |head: RequestHead<'_>| {
            let state = head.needs.state.filter(|it| it.kind == StateKind::SealedReasoning);
            state.and_then(|it| it.protocol)
        };
        let message = |signature: &str| {
            let block = format!(r#"{{"type":"thinking","signature":"{signature}"}}"#);
            format!(r#"{{"messages":[{{"content":[{block}]}}]}}"#)
        };
        assert_eq!(by(head(&message("abc"))), Some(Protocol::Anthropic));
        assert_eq!(by(head(&message("tidegate:openai:content:x"))), Some(Protocol::OpenAi));
        assert_eq!(by(head(&message("tidegate:none"))), None);
        let item = r#"{"input":[{"type":"reasoning","encrypted_content":"x"}]}"#;
        assert_eq!(by(head(item)), Some(Protocol::OpenAi));
        let hidden = r#"{"messages":[{"content":[{"type":"redacted_thinking","data":"x"}]}]}"#;
        assert_eq!(by(head(hidden)), Some(Protocol::Anthropic));
        let part = |text: &str| {
            format!(r#"{{"contents":[{{"parts":[{{"thoughtSignature":"{text}"}}]}}]}}"#)
        };
        assert_eq!(by(gemini(&part("AbC/+w=="))), Some(Protocol::Gemini));
        let foreign = "dGlkZWdhdGU6YW50aHJvcGljOnByb29mOng="; // tidegate:anthropic:proof:x
        assert_eq!(by(gemini(&part(foreign))), Some(Protocol::Anthropic));
    }
}

//! Follows one stream from its first frame to its end.
//!
//! The server asks of a stream: has content come, has it ended as the dialect wants, and what did
//! it use. This is the one place that remembers the answers, frame by frame.
//!
//! Rules:
//! - A terminator or error that comes in parts counts when its last part is there; so does one
//!   that the stream ended without a blank line, if its data is whole.
//! - The JSON of every event of a dialect is checked ([`EventClass::Malformed`]), unless the event
//!   is so long that it passes in parts. One that differs from an event of content before it in
//!   its text alone (`template.rs`) is known without another reading.
//! - A stream of a dialect without terminator is whole when it ends. So is one of chat or
//!   completions where every choice has its finish reason: only the formal `[DONE]` is missing
//!   then, and [`Watch::closing`] has it. One of Gemini's is whole in no other way.
//!
//! Left to others: timers, holding and releasing (the server); which outcome an end is.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::choices::Choices;
use crate::dialect::{Dialect, EventClass};
use crate::frame::{Extent, Frame};
use crate::json::Scanner;
use crate::response_id::response_id;
use crate::template::EventTemplate;
use crate::usage::Usage;

/// How a stream said that it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// With the dialect's terminator.
    Complete,
    /// With an error event of the upstream's.
    Failed,
}

/// What is known of a stream so far.
#[derive(Debug)]
pub struct Watch {
    dialect: Dialect,
    has_content: bool,
    end: Option<StreamEnd>,
    /// The class of the event whose parts are passing.
    long: EventClass,
    /// The end of the part before: a count may stand across two parts.
    tail: Vec<u8>,
    usage: Usage,
    choices: Choices,
    /// The stream ended inside its last event.
    is_cut: bool,
    /// The stream ended before the blank line of its last event or comment.
    is_open: bool,
    /// The number that the next event of a Responses stream has.
    next_sequence: u64,
    /// The id by which the answer can be continued.
    response_id: Option<Box<str>>,
    /// An event of content that was read to its end.
    template: EventTemplate,
    /// How many more events are kept as a template before one has fitted.
    templates_left: u8,
}

/// How much of a part is looked at together with its neighbour: an object of counts has less.
const TAIL: usize = 1024;

/// How many events in a row are kept as templates for nothing: the events of such a stream differ
/// in more than their text.
const USELESS_TEMPLATES: u8 = 8;

static SEQUENCE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"sequence_number\":"));

impl Watch {
    /// A stream that has not begun.
    #[must_use]
    pub fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            has_content: false,
            end: None,
            long: EventClass::Other,
            tail: Vec::new(),
            usage: Usage::default(),
            choices: Choices::default(),
            is_cut: false,
            is_open: false,
            next_sequence: 0,
            response_id: None,
            template: EventTemplate::default(),
            templates_left: USELESS_TEMPLATES,
        }
    }

    /// Takes note of a frame and gives its class; of a later part, that of its event.
    pub fn see(&mut self, frame: &Frame<'_>) -> EventClass {
        if self.has_content && self.is_repeated(frame) {
            self.number(frame);
            return EventClass::Content;
        }
        let class = match frame.extent {
            Extent::Middle | Extent::End => self.long,
            Extent::Start => self.dialect.class(frame),
            Extent::Whole => self.checked_class(frame),
            Extent::Cut => self.class_of_cut(frame),
        };
        self.count(frame);
        self.identify(frame);
        self.number(frame);
        if frame.extent == Extent::Start {
            self.long = class;
        }
        let is_over = !matches!(frame.extent, Extent::Start | Extent::Middle) && !self.is_cut;
        match class {
            EventClass::Content => {
                self.has_content = true;
                self.learn(frame);
            }
            EventClass::Terminator if is_over => self.end = Some(StreamEnd::Complete),
            EventClass::Error if is_over => self.end = Some(StreamEnd::Failed),
            _ => {}
        }
        class
    }

    /// Whether an event of content came before that said the same but for its text, and so changes
    /// nothing of what is known.
    fn is_repeated(&mut self, frame: &Frame<'_>) -> bool {
        let Some(data) = frame.only_data().filter(|_| frame.extent == Extent::Whole) else {
            return false;
        };
        let fits = self.template.fits(frame.name.unwrap_or_default(), data);
        if fits {
            self.templates_left = USELESS_TEMPLATES;
        }
        fits
    }

    /// Keeps an event of content for those that will say the same.
    fn learn(&mut self, frame: &Frame<'_>) {
        let is_checked = frame.extent == Extent::Whole && self.dialect.has_terminator();
        if let Some(data) = frame.only_data().filter(|_| is_checked && self.templates_left > 0) {
            self.templates_left -= 1;
            self.template.learn(frame.name.unwrap_or_default(), data);
        }
    }

    /// Whether content has come.
    #[must_use]
    pub fn has_content(&self) -> bool {
        self.has_content
    }

    /// How the stream said that it is over. What follows is not to be released.
    #[must_use]
    pub fn end(&self) -> Option<StreamEnd> {
        self.end
    }

    /// Whether a stream that the upstream closes here is whole.
    #[must_use]
    pub fn may_end(&self) -> bool {
        match self.end {
            Some(end) => end == StreamEnd::Complete,
            None if self.is_cut => false,
            None => !self.dialect.has_terminator() || self.choices.are_finished(),
        }
    }

    /// What a whole stream that ends here lacks of its form.
    #[must_use]
    pub fn closing(&self) -> &'static [u8] {
        let ends_with_done =
            matches!(self.dialect, Dialect::OpenAiChat | Dialect::OpenAiCompletions);
        let lacks_done = ends_with_done && self.end.is_none() && self.choices.are_finished();
        match (self.is_open, lacks_done) {
            (false, false) => b"",
            (true, false) => b"\n\n",
            (false, true) => b"data: [DONE]\n\n",
            (true, true) => b"\n\ndata: [DONE]\n\n",
        }
    }

    /// The number of the event that comes next in a Responses stream.
    #[must_use]
    pub fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// What the stream has told of its usage.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// The id of a Responses or Messages answer, by which it can be continued.
    #[must_use]
    pub fn response_id(&self) -> Option<&str> {
        self.response_id.as_deref()
    }

    fn count(&mut self, frame: &Frame<'_>) {
        self.usage.see(frame.raw);
        if matches!(frame.extent, Extent::Middle | Extent::End) {
            self.tail.extend_from_slice(&frame.raw[..frame.raw.len().min(TAIL)]);
            self.usage.see(&self.tail);
            self.tail.clear();
        }
        if matches!(frame.extent, Extent::Start | Extent::Middle) {
            let start = frame.raw.len().saturating_sub(TAIL);
            self.tail.extend_from_slice(&frame.raw[start..]);
        }
    }

    /// The first event tells the id.
    fn identify(&mut self, frame: &Frame<'_>) {
        let has_id = match self.dialect {
            Dialect::OpenAiResponses => self.next_sequence <= 1,
            Dialect::AnthropicMessages => !self.has_content,
            _ => false,
        };
        if has_id && self.response_id.is_none() {
            self.response_id = frame.data().and_then(|data| response_id(&data));
        }
    }

    /// Events of the Responses API are numbered; the numbers only grow.
    fn number(&mut self, frame: &Frame<'_>) {
        if self.dialect != Dialect::OpenAiResponses {
            return;
        }
        for at in SEQUENCE.find_iter(frame.raw) {
            let text = frame.raw[at + SEQUENCE.needle().len()..].trim_ascii_start();
            let mut scanner = Scanner::of_answer(text);
            let number = scanner.number().ok().and_then(|it| it.parse::<u64>().ok());
            let next = number.map_or(0, |it| it.saturating_add(1));
            self.next_sequence = self.next_sequence.max(next);
        }
    }

    /// The class of a whole event whose data has been read to its end.
    fn checked_class(&mut self, frame: &Frame<'_>) -> EventClass {
        let class = self.dialect.class(frame);
        if class == EventClass::Ping || !self.dialect.has_terminator() {
            return class;
        }
        match frame.data() {
            Some(data) if !self.is_sound(&data) => EventClass::Malformed,
            _ => class,
        }
    }

    /// The last event, if the stream ended before its blank line.
    fn class_of_cut(&mut self, frame: &Frame<'_>) -> EventClass {
        self.is_open = true;
        let Some(data) = frame.data() else { return EventClass::Ping };
        self.is_cut = !self.is_sound(&data);
        self.dialect.class(frame)
    }

    /// Whether an event's data is JSON, or the mark that ends a chat.
    fn is_sound(&mut self, data: &[u8]) -> bool {
        let mut json = || match self.dialect {
            Dialect::OpenAiChat | Dialect::OpenAiCompletions | Dialect::Gemini => {
                self.choices.read(data)
            }
            _ => {
                let mut scanner = Scanner::of_answer(data);
                scanner.skip_value().and_then(|()| scanner.end())
            }
        };
        data.trim_ascii() == b"[DONE]" || json().is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(raw: &str, extent: Extent) -> Frame<'_> {
        Frame::parse(raw.as_bytes(), extent, false)
    }

    fn after(dialect: Dialect, frames: &[(&str, Extent)]) -> (Watch, Vec<EventClass>) {
        let mut watch = Watch::new(dialect);
        let classes = frames.iter().map(|(raw, extent)| watch.see(&frame(raw, *extent))).collect();
        (watch, classes)
    }

    const TEXT: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";

    #[test]
    fn a_stream_is_whole_once_its_terminator_was_seen() {
        let whole = [(TEXT, Extent::Whole), ("data: [DONE]\n\n", Extent::Whole)];
        let (watch, _) = after(Dialect::OpenAiChat, &whole[..1]);
        assert!(watch.has_content() && !watch.may_end());
        let (watch, _) = after(Dialect::OpenAiChat, &whole);
        assert!(watch.may_end());
        let (watch, _) = after(Dialect::Json, &whole[..1]);
        assert!(watch.may_end());
    }

    #[test]
    fn a_terminator_without_blank_line_counts_if_its_data_is_whole() {
        let (watch, _) = after(Dialect::OpenAiChat, &[("data: [DONE]", Extent::Cut)]);
        assert!(watch.may_end());
        let stop = "event: message_stop\ndata: {\"type\":\"message_stop\"}";
        let (watch, _) = after(Dialect::AnthropicMessages, &[(stop, Extent::Cut)]);
        assert!(watch.may_end());
        let half = "event: message_stop\ndata: {\"type\":\"mess";
        let (watch, _) = after(Dialect::AnthropicMessages, &[(half, Extent::Cut)]);
        assert!(!watch.may_end());
    }

    #[test]
    fn a_terminator_in_parts_counts_at_its_last_part() {
        let parts = [
            ("event: response.completed\ndata: {\"resp", Extent::Start),
            ("onse\":1", Extent::Middle),
            ("}\n\n", Extent::End),
        ];
        let (watch, _) = after(Dialect::OpenAiResponses, &parts[..2]);
        assert_eq!(watch.end(), None);
        let (watch, classes) = after(Dialect::OpenAiResponses, &parts);
        assert_eq!(watch.end(), Some(StreamEnd::Complete));
        assert_eq!(classes, [EventClass::Terminator; 3]);
    }

    #[test]
    fn usage_is_read_across_two_parts() {
        let parts = [
            ("event: response.completed\ndata: {\"usage\":{\"input_to", Extent::Start),
            ("kens\":7,\"output_tokens\":3}}\n\n", Extent::End),
        ];
        let (watch, _) = after(Dialect::OpenAiResponses, &parts);
        assert_eq!(watch.usage(), Usage { input: 7, output: 3, cached: 0 });
    }

    #[test]
    fn what_is_not_json_is_malformed_at_any_time() {
        let broken = "data: {\"choices\":[{\"delta\":{\"content\":\"a\n\n";
        let frames = [(broken, Extent::Whole), (TEXT, Extent::Whole), (broken, Extent::Whole)];
        let (_, classes) = after(Dialect::OpenAiChat, &frames);
        assert_eq!(classes, [EventClass::Malformed, EventClass::Content, EventClass::Malformed]);
        let page = [("data: <html>\n\n", Extent::Whole), (": ping\n\n", Extent::Whole)];
        let (_, classes) = after(Dialect::OpenAiChat, &page);
        assert_eq!(classes, [EventClass::Malformed, EventClass::Ping]);
        let half = "data: {\"choices\":[{\"delta\":{\"content\":\"\\ud83d\"}}]}\n\n";
        let (_, classes) = after(Dialect::OpenAiChat, &[(half, Extent::Whole)]);
        assert_eq!(classes, [EventClass::Content], "half a pair is completed by the next event");
    }

    const STOP: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";

    #[test]
    fn a_chat_with_every_finish_reason_lacks_its_done_only() {
        let frames = [(TEXT, Extent::Whole), (STOP, Extent::Whole)];
        let (watch, _) = after(Dialect::OpenAiChat, &frames);
        assert!(watch.may_end() && watch.end().is_none());
        assert_eq!(watch.closing(), b"data: [DONE]\n\n");
        let (watch, _) = after(Dialect::OpenAiChat, &frames[..1]);
        assert!(!watch.may_end());
        let unclosed = [(TEXT, Extent::Whole), (STOP.trim_end(), Extent::Cut)];
        let (watch, _) = after(Dialect::OpenAiChat, &unclosed);
        assert!(watch.may_end());
        assert_eq!(watch.closing(), b"\n\ndata: [DONE]\n\n");
        let cut = [(STOP, Extent::Whole), ("data: {\"usage", Extent::Cut)];
        let (watch, _) = after(Dialect::OpenAiChat, &cut);
        assert!(!watch.may_end(), "it ended inside an event");
        let done = [(STOP, Extent::Whole), ("data: [DONE]", Extent::Cut)];
        let (watch, _) = after(Dialect::OpenAiChat, &done);
        assert_eq!((watch.may_end(), watch.closing()), (true, &b"\n\n"[..]));
    }

    #[test]
    fn a_stream_of_gemini_is_whole_when_its_candidates_have_ended() {
        let text = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]}}]}\n\n";
        let stop = "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n";
        let (watch, classes) = after(Dialect::Gemini, &[(text, Extent::Whole)]);
        assert_eq!(classes, [EventClass::Content]);
        assert!(!watch.may_end(), "no candidate has said why it ended");
        let frames = [(text, Extent::Whole), (stop, Extent::Whole)];
        let (watch, classes) = after(Dialect::Gemini, &frames);
        assert_eq!(classes, [EventClass::Content, EventClass::Lifecycle]);
        assert_eq!((watch.may_end(), watch.closing()), (true, &b""[..]));
        assert_eq!(watch.end(), None, "older models give a reason in every chunk");
        let blocked = "data: {\"promptFeedback\":{\"blockReason\":\"SAFETY\"}}\n\n";
        let (watch, _) = after(Dialect::Gemini, &[(blocked, Extent::Whole)]);
        assert!(watch.may_end(), "a refused prompt has no candidates");
        let (_, classes) = after(Dialect::Gemini, &[("data: {\"cand\n\n", Extent::Whole)]);
        assert_eq!(classes, [EventClass::Malformed]);
    }

    /// What is known of a stream whose events are all read, and of one with templates.
    fn check_templates(dialect: Dialect, events: &[String]) {
        let mut plain = Watch { templates_left: 0, ..Watch::new(dialect) };
        let mut quick = Watch::new(dialect);
        for event in events {
            let frame = frame(event, Extent::Whole);
            assert_eq!(quick.see(&frame), plain.see(&frame), "{event} of {events:?}");
            let known =
                |it: &Watch| (it.may_end(), it.closing(), it.end(), it.usage(), it.next_sequence());
            assert_eq!(known(&quick), known(&plain), "after {event} of {events:?}");
        }
    }

    #[test]
    fn templates_change_nothing_of_what_is_known() {
        let pieces = [
            r#"{"choices":[{"index":0,"delta":{"content":"?"},"finish_reason":null}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"?"},"finish_reason":"stop"}]}"#,
            r#"{"choices":[{"index":1,"delta":{"content":"?"}}],"usage":{"prompt_tokens":3}}"#,
            r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"?"}}"#,
            r#"{"type":"message_stop","text":"?"}"#,
            r#"{"type":"response.output_text.delta","sequence_number":7,"delta":"?"}"#,
            r#"{"type":"response.output_text.delta","sequence_number":12,"delta":"?"}"#,
            r#"{"candidates":[{"content":{"parts":[{"text":"?"}]}}]}"#,
            r#"{"error":{"message":"?"},"content":"?"}"#,
        ];
        let texts = ["a", "", "error", "x\"", "\\q"];
        let events: Vec<String> = pieces
            .iter()
            .flat_map(|piece| texts.map(|text| format!("data: {}\n\n", piece.replace('?', text))))
            .collect();
        let dialects = [
            Dialect::OpenAiChat,
            Dialect::OpenAiResponses,
            Dialect::AnthropicMessages,
            Dialect::Gemini,
            Dialect::Json,
        ];
        for dialect in dialects {
            for first in &events {
                for second in &events {
                    check_templates(dialect, &[first.clone(), second.clone(), first.clone()]);
                }
            }
        }
    }

    #[test]
    fn a_repeated_event_is_known_without_another_reading() {
        let (watch, classes) = after(Dialect::OpenAiChat, &[(TEXT, Extent::Whole); 20]);
        assert_eq!(classes, [EventClass::Content; 20]);
        assert_eq!(watch.templates_left, USELESS_TEMPLATES, "each after the first fitted");
        let differing: Vec<String> =
            (0..20).map(|at| TEXT.replace("data: {", &format!("data: {{\"at\":{at},"))).collect();
        let frames: Vec<_> = differing.iter().map(|it| (it.as_str(), Extent::Whole)).collect();
        let (watch, _) = after(Dialect::OpenAiChat, &frames);
        assert_eq!(watch.templates_left, 0, "no more are kept");
    }

    #[test]
    fn the_number_of_the_next_event_follows_the_largest() {
        let event = |number| format!("data: {{\"type\":\"x\",\"sequence_number\": {number}}}\n\n");
        let (first, second) = (event(4), event(5));
        let (watch, _) = after(Dialect::OpenAiResponses, &[]);
        assert_eq!(watch.next_sequence(), 0);
        let frames = [(&*first, Extent::Whole), (&*second, Extent::Whole)];
        let (watch, _) = after(Dialect::OpenAiResponses, &frames);
        assert_eq!(watch.next_sequence(), 6);
    }
}

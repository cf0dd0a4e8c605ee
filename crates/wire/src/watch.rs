//! Follows one stream from its first frame to its end.
//!
//! The server asks three things of a stream: has content come, has it ended as the dialect wants,
//! and what did it use. This is the one place that remembers the answers, frame by frame.
//!
//! Rules:
//! - A terminator or error that comes in parts counts when its last part is there; so does one
//!   that the stream ended without a blank line, if its data is whole.
//! - Before the first content, and while the stream is held, the JSON of every event is checked
//!   ([`EventClass::Malformed`]); after that only the bytes that decide are looked at.
//! - A stream of a dialect without terminator is whole when it ends.
//!
//! Left to others: timers, holding and releasing (the server); which outcome an end is.

use crate::dialect::{Dialect, EventClass};
use crate::frame::{Extent, Frame};
use crate::json::Scanner;
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
    is_held: bool,
    end: Option<StreamEnd>,
    /// The class of the event whose parts are passing.
    long: EventClass,
    /// The end of the part before: a count may stand across two parts.
    tail: Vec<u8>,
    usage: Usage,
}

/// How much of a part is looked at together with its neighbour: an object of counts has less.
const TAIL: usize = 1024;

impl Watch {
    /// A stream that has not begun.
    #[must_use]
    pub fn new(dialect: Dialect) -> Self {
        let long = EventClass::Other;
        let (tail, usage) = (Vec::new(), Usage::default());
        Self { dialect, has_content: false, is_held: false, end: None, long, tail, usage }
    }

    /// Takes note of a frame and gives its class; of a later part, that of its event.
    pub fn see(&mut self, frame: &Frame<'_>) -> EventClass {
        let class = match frame.extent {
            Extent::Middle | Extent::End => self.long,
            Extent::Whole if self.is_held || !self.has_content => self.strict_class(frame),
            Extent::Whole | Extent::Start | Extent::Cut => self.dialect.class(frame),
        };
        self.count(frame);
        let is_over = match frame.extent {
            Extent::Whole | Extent::End => true,
            Extent::Cut => is_whole_data(frame),
            Extent::Start => {
                self.long = class;
                false
            }
            Extent::Middle => false,
        };
        match class {
            EventClass::Content => self.has_content = true,
            EventClass::Terminator if is_over => self.end = Some(StreamEnd::Complete),
            EventClass::Error if is_over => self.end = Some(StreamEnd::Failed),
            _ => {}
        }
        class
    }

    /// The stream is held back beyond its first content: what is malformed can still be told.
    pub fn hold(&mut self) {
        self.is_held = true;
    }

    /// The stream is held no longer.
    pub fn release(&mut self) {
        self.is_held = false;
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
            None => !self.dialect.has_terminator(),
        }
    }

    /// What the stream has told of its usage.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.usage
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

    fn strict_class(&self, frame: &Frame<'_>) -> EventClass {
        let class = self.dialect.class(frame);
        let is_json = || frame.data().is_none_or(|data| is_json(&data));
        match class {
            EventClass::Terminator | EventClass::Ping => class,
            _ if self.dialect.has_terminator() && !is_json() => EventClass::Malformed,
            _ => class,
        }
    }
}

fn is_json(data: &[u8]) -> bool {
    let mut scanner = Scanner::new(data);
    data.trim_ascii() == b"[DONE]" || scanner.skip_value().and_then(|()| scanner.end()).is_ok()
}

fn is_whole_data(frame: &Frame<'_>) -> bool {
    frame.data().is_some_and(|data| is_json(&data))
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
    fn what_is_not_json_is_malformed_before_the_first_content_and_while_held() {
        let broken = "data: {\"choices\":[{\"delta\":{\"content\":\"a\n\n";
        let frames = [(broken, Extent::Whole), (TEXT, Extent::Whole), (broken, Extent::Whole)];
        let (_, classes) = after(Dialect::OpenAiChat, &frames);
        assert_eq!(classes, [EventClass::Malformed, EventClass::Content, EventClass::Content]);
        let mut watch = Watch::new(Dialect::OpenAiChat);
        watch.hold();
        let class = |watch: &mut Watch, raw| watch.see(&frame(raw, Extent::Whole));
        assert_eq!(class(&mut watch, TEXT), EventClass::Content);
        assert_eq!(class(&mut watch, broken), EventClass::Malformed, "it is held back");
        watch.release();
        assert_eq!(class(&mut watch, broken), EventClass::Content);
        let page = [("data: <html>\n\n", Extent::Whole), (": ping\n\n", Extent::Whole)];
        let (_, classes) = after(Dialect::OpenAiChat, &page);
        assert_eq!(classes, [EventClass::Malformed, EventClass::Ping]);
    }
}

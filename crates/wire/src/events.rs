//! Reads an event stream chunk by chunk and says what of it may be released.
//!
//! [`Splitter`] finds the events and [`Watch`] knows what they say; this joins the two, so that one
//! place decides which bytes a client may get.
//!
//! Rules:
//! - What is released does not depend on how the stream was cut into chunks.
//! - Nothing that follows a terminator or an error event is ever released (I9).
//! - An event that is no JSON is not released, and nothing after it.
//!
//! Left to others: when to release, and what to say at a break (the server).

use bytes::Bytes;

use crate::dialect::{Dialect, EventClass};
use crate::sse::Splitter;
use crate::usage::Usage;
use crate::watch::{StreamEnd, Watch};

/// What the next event of a stream is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// It announces, or keeps the connection alive.
    Quiet,
    /// It carries a part of the answer.
    Content,
    /// The stream ended as the dialect wants.
    Complete,
    /// The stream ended with this error.
    Failed(Vec<u8>),
    /// It is no JSON; the stream cannot go on.
    Malformed,
    /// It is too long; the stream cannot go on.
    TooLong,
}

/// One stream.
#[derive(Debug)]
pub struct EventReader {
    splitter: Splitter,
    watch: Watch,
    is_over: bool,
    is_malformed: bool,
}

impl EventReader {
    /// A stream that has not begun; an event may be `max_event` bytes long.
    #[must_use]
    pub fn new(dialect: Dialect, max_event: usize) -> Self {
        let (splitter, watch) = (Splitter::new(max_event), Watch::new(dialect));
        Self { splitter, watch, is_over: false, is_malformed: false }
    }

    /// From here on long events are released in parts.
    pub fn commit(&mut self) {
        self.splitter.commit();
    }

    /// Takes the next chunk.
    pub fn feed(&mut self, chunk: Bytes) {
        self.splitter.feed(chunk);
    }

    /// What the next event is; `None` when it has not come yet, or the stream is over.
    pub fn next_event(&mut self) -> Option<Step> {
        if self.is_over {
            return None;
        }
        let step = match self.splitter.next() {
            Err(_) => Step::TooLong,
            Ok(None) => return None,
            Ok(Some(frame)) => match (self.watch.see(&frame), self.watch.end()) {
                (_, Some(StreamEnd::Complete)) => Step::Complete,
                (_, Some(StreamEnd::Failed)) => {
                    Step::Failed(frame.data().unwrap_or_default().into_owned())
                }
                (EventClass::Malformed, None) => Step::Malformed,
                (EventClass::Content, None) => Step::Content,
                (_, None) => Step::Quiet,
            },
        };
        self.is_malformed = step == Step::Malformed;
        self.is_over = !matches!(step, Step::Quiet | Step::Content);
        Some(step)
    }

    /// The body ended here, and whether the stream is whole; [`Self::closing`] has what it lacks.
    pub fn finish(&mut self) -> bool {
        if self.is_over {
            return self.watch.may_end();
        }
        self.is_over = true;
        if let Some(frame) = self.splitter.finish() {
            self.is_malformed = self.watch.see(&frame) == EventClass::Malformed;
        }
        self.watch.may_end() && !self.is_malformed && !self.is_mid_event()
    }

    /// The bytes of the events looked at since the last time, in order. A piece may be empty.
    pub fn take(&mut self) -> [Bytes; 2] {
        let is_withheld = std::mem::take(&mut self.is_malformed);
        if is_withheld { self.splitter.take_run_but_last() } else { self.splitter.take_run() }
    }

    /// What a whole stream lacks of its form, to be released last.
    #[must_use]
    pub fn closing(&self) -> Bytes {
        Bytes::from_static(self.watch.closing())
    }

    /// Whether a part of an unfinished event was released: it must be closed before an event of
    /// our own.
    #[must_use]
    pub fn is_mid_event(&self) -> bool {
        self.splitter.is_mid_event()
    }

    /// The id of a Responses answer, by which it can be continued.
    #[must_use]
    pub fn response_id(&self) -> Option<&str> {
        self.watch.response_id()
    }

    /// Whether content has come.
    #[must_use]
    pub fn has_content(&self) -> bool {
        self.watch.has_content()
    }

    /// The number of the event that comes next in a Responses stream.
    #[must_use]
    pub fn next_sequence(&self) -> u64 {
        self.watch.next_sequence()
    }

    /// What the stream has told of its usage.
    #[must_use]
    pub fn usage(&self) -> Usage {
        self.watch.usage()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    const DONE: &str = "data: [DONE]\n\n";

    fn read(stream: &str) -> (Vec<Step>, String) {
        let mut reader = EventReader::new(Dialect::OpenAiChat, 10_000);
        reader.feed(Bytes::from(stream.to_owned()));
        let steps = std::iter::from_fn(|| reader.next_event()).collect();
        let released = reader.take().concat();
        (steps, String::from_utf8_lossy(&released).into_owned())
    }

    #[test]
    fn nothing_after_a_terminator_is_released() {
        let (steps, released) = read(&[TEXT, DONE, TEXT, DONE].concat());
        assert_eq!(steps, [Step::Content, Step::Complete]);
        assert_eq!(released, [TEXT, DONE].concat());
    }

    #[test]
    fn an_event_that_is_no_json_is_withheld_with_all_that_follows() {
        let (steps, released) = read(&[TEXT, "data: {\"cho\n\n", TEXT, DONE].concat());
        assert_eq!(steps, [Step::Content, Step::Malformed]);
        assert_eq!(released, TEXT);
    }

    #[test]
    fn an_error_event_ends_the_stream_and_is_shown() {
        let error = "{\"error\":{\"message\":\"no\"}}";
        let (steps, released) = read(&format!("{TEXT}data: {error}\n\n{DONE}"));
        assert_eq!(steps, [Step::Content, Step::Failed(error.as_bytes().to_vec())]);
        assert!(released.ends_with("\"no\"}}\n\n"), "{released}");
    }
}

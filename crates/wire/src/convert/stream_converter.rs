//! Converts the stream of an answer while it comes.
//!
//! Rules:
//! - What comes out does not depend on how the stream was cut into chunks.
//! - Work is linear in the bytes. Held is at most one event, and what a reader or the restoring of
//!   free-text calls holds back, each within a limit.
//! - A stream that breaks off gets no terminator, so whoever watches the converted stream sees the
//!   break too.

use bytes::Bytes;

use super::context::{ReplyContext, free_text_of};
use super::fault::ReplyFault;
use super::stream::{HELD_LIMIT, ReadStream, StreamEvent, WriteStream};
use crate::sse::Splitter;

/// The conversion of one stream.
pub struct StreamConverter {
    splitter: Splitter,
    reader: Box<dyn ReadStream + Send>,
    writer: Box<dyn WriteStream + Send>,
    context: ReplyContext,
    /// The arguments of an open call that becomes free text.
    free_text: Option<String>,
    /// The target's own error event, if one came.
    failure: Option<Vec<u8>>,
    events: Vec<StreamEvent>,
}

impl std::fmt::Debug for StreamConverter {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("StreamConverter").finish_non_exhaustive()
    }
}

impl StreamConverter {
    pub(super) fn new(
        reader: Box<dyn ReadStream + Send>,
        writer: Box<dyn WriteStream + Send>,
        context: ReplyContext,
        max_event: usize,
    ) -> Self {
        let (splitter, events) = (Splitter::new(max_event), Vec::new());
        Self { splitter, reader, writer, context, free_text: None, failure: None, events }
    }

    /// Takes the next chunk and appends what the client gets for it.
    ///
    /// # Errors
    /// The stream cannot be read any further; what was appended before is good.
    pub fn feed(&mut self, chunk: Bytes, out: &mut Vec<u8>) -> Result<(), ReplyFault> {
        self.splitter.feed(chunk);
        loop {
            let frame = self.splitter.next().map_err(|_| ReplyFault::TooLong)?;
            let Some(frame) = frame else { break };
            let outcome = self.reader.read(&frame, &mut self.events);
            if matches!(self.events.last(), Some(StreamEvent::Error(_))) {
                self.failure = frame.data().map(|data| data.into_owned());
            }
            self.write_events(out)?;
            outcome?;
        }
        // The bytes that were read are let go.
        drop(self.splitter.take_run());
        Ok(())
    }

    /// The body ended cleanly: appends what is owed, nothing if the stream is not whole.
    ///
    /// # Errors
    /// Its last event cannot be read.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), ReplyFault> {
        if let Some(frame) = self.splitter.finish() {
            self.reader.read(&frame, &mut self.events)?;
        }
        self.reader.finish(&mut self.events);
        self.write_events(out)
    }

    /// The target's own error event, in its own words.
    #[must_use]
    pub fn failure(&self) -> Option<&[u8]> {
        self.failure.as_deref()
    }

    fn write_events(&mut self, out: &mut Vec<u8>) -> Result<(), ReplyFault> {
        for event in std::mem::take(&mut self.events) {
            for event in restored(event, &self.context, &mut self.free_text)? {
                self.writer.write(event, out);
            }
        }
        Ok(())
    }
}

/// Makes a call of a free-text tool free text again: its arguments are held until they are whole.
fn restored(
    event: StreamEvent,
    context: &ReplyContext,
    held: &mut Option<String>,
) -> Result<impl Iterator<Item = StreamEvent>, ReplyFault> {
    let events = match (event, held.as_mut()) {
        (StreamEvent::ToolCallStart { id, name, seal, is_free_text: false }, _)
            if context.is_free_text(&name) =>
        {
            *held = Some(String::new());
            [Some(StreamEvent::ToolCallStart { id, name, seal, is_free_text: true }), None]
        }
        (StreamEvent::ToolCallDelta(more), Some(text)) => {
            text.push_str(&more);
            if text.len() > HELD_LIMIT {
                return Err(ReplyFault::TooLong);
            }
            [None, None]
        }
        (StreamEvent::ToolCallEnd, Some(text)) => {
            let text = free_text_of(text);
            *held = None;
            let delta = (!text.is_empty()).then_some(StreamEvent::ToolCallDelta(text));
            [delta, Some(StreamEvent::ToolCallEnd)]
        }
        (event, _) => [Some(event), None],
    };
    Ok(events.into_iter().flatten())
}

//! Converts the stream of an answer while it comes.
//!
//! Rules:
//! - What comes out does not depend on how the stream was cut into chunks.
//! - Work is linear in the bytes.
//! - Memory is bounded: at most one event of the stream; [`HELD_LIMIT`] each for what the reader
//!   holds back, for what the writer does, and for a free-text call that is restored; and for a
//!   client of Responses the answer itself, up to
//!   [`super::responses::stream_out::ANSWER_LIMIT`], because its last event repeats it.
//! - A stream that breaks off gets no terminator, so whoever watches the converted stream sees the
//!   break too.

use bytes::Bytes;

use super::bounds::check_event;
use super::context::{ReplyContext, free_text_of};
use super::fault::ReplyFault;
use super::order::EventOrder;
use super::stream::{HELD_LIMIT, ReadStream, StreamEvent, WriteStream};
use crate::frame::Frame;
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
    order: EventOrder,
    /// What the reader told of the last frame, and the same in order; empty between frames.
    events: Vec<StreamEvent>,
    ordered: Vec<StreamEvent>,
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
        Self {
            splitter: Splitter::new(max_event),
            reader,
            writer,
            context,
            free_text: None,
            failure: None,
            order: EventOrder::default(),
            events: Vec::new(),
            ordered: Vec::new(),
        }
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
            see_failure(&mut self.failure, &self.events, &frame);
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
            see_failure(&mut self.failure, &self.events, &frame);
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
        for event in self.events.drain(..) {
            self.order.add(event, &mut self.ordered);
        }
        for event in self.ordered.drain(..) {
            check_event(&event)?;
            for event in restored(event, &self.context, &mut self.free_text)? {
                self.writer.write(event, out);
            }
        }
        Ok(())
    }
}

/// Keeps the target's own error event, in its own words.
fn see_failure(failure: &mut Option<Vec<u8>>, events: &[StreamEvent], frame: &Frame<'_>) {
    if matches!(events.last(), Some(StreamEvent::Error(_))) {
        *failure = frame.data().map(|data| data.into_owned());
    }
}

/// Gives a call the client's name of its tool, and makes a call of a free-text tool free text
/// again: its arguments are held until they are whole.
fn restored(
    event: StreamEvent,
    context: &ReplyContext,
    held: &mut Option<String>,
) -> Result<impl Iterator<Item = StreamEvent>, ReplyFault> {
    let events = match (event, held.as_mut()) {
        (StreamEvent::ToolCallStart { id, mut name, seal, mut is_free_text }, _) => {
            context.own_name(&mut name);
            if !is_free_text && context.is_free_text(&name) {
                *held = Some(String::new());
                is_free_text = true;
            }
            [Some(StreamEvent::ToolCallStart { id, name, seal, is_free_text }), None]
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

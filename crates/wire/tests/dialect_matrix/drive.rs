//! Drives a pair as the data plane does: the answer is converted before anybody looks at it, and
//! what comes out is released event by event.

use bytes::Bytes;
use tidegate_wire::convert::context::ReplyContext;
use tidegate_wire::convert::fault::{ReplyFault, RequestFault};
use tidegate_wire::convert::pair::DialectPair;
use tidegate_wire::convert::target::TargetProfile;
use tidegate_wire::events::{EventReader, Step};

use crate::spoken::Spoken;

/// As long as an event of a stream may be.
const MAX_EVENT: usize = 1 << 20;

/// How a stream ended for the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamEnding {
    /// With its terminator.
    Whole,
    /// With the provider's error.
    Failed,
    /// With nothing: the gateway adds its own error event.
    Cut,
}

/// A client and a provider.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exchange {
    pub(crate) client: Spoken,
    pub(crate) upstream: Spoken,
}

/// A request as the provider gets it, what the notes say, and what the answer needs.
pub(crate) struct SentRequest {
    pub(crate) body: Vec<u8>,
    pub(crate) notes: Vec<String>,
    pub(crate) context: ReplyContext,
}

impl Exchange {
    /// `None` where both speak the same.
    pub(crate) fn pair(self, is_stream: bool) -> Option<DialectPair> {
        let pair = DialectPair::new(self.client.dialect(), self.upstream.dialect());
        pair.map(|pair| pair.streaming(is_stream))
    }

    pub(crate) fn request(self, body: &[u8], is_stream: bool) -> Result<SentRequest, RequestFault> {
        let Some(pair) = self.pair(is_stream) else {
            let (notes, context) = (Vec::new(), ReplyContext::default());
            return Ok(SentRequest { body: body.to_vec(), notes, context });
        };
        let (model, host) = self.upstream.model_for(body);
        let sent = pair.request(body, &TargetProfile { model, host }, 1_741_569_952)?;
        assert_eq!(sent.is_stream, is_stream);
        let notes = sent.notes.as_slice().iter().map(ToString::to_string).collect();
        Ok(SentRequest { body: sent.body.to_vec(), notes, context: sent.context })
    }

    pub(crate) fn reply(self, body: &[u8], context: &ReplyContext) -> Result<Vec<u8>, ReplyFault> {
        match self.pair(false) {
            None => Ok(body.to_vec()),
            Some(pair) => pair.reply(body, context).map(|body| body.to_vec()),
        }
    }

    pub(crate) fn error(self, status: u16, body: &[u8]) -> Vec<u8> {
        let pair = self.pair(false);
        pair.map_or_else(|| body.to_vec(), |pair| pair.error(status, body).to_vec())
    }

    /// What the client gets of a stream that comes in chunks of `step` bytes.
    pub(crate) fn stream(
        self,
        stream: &[u8],
        context: &ReplyContext,
        step: usize,
    ) -> (Vec<u8>, StreamEnding) {
        self.pieces(stream.chunks(step), context)
    }

    /// What the client gets of a stream that comes in two pieces.
    pub(crate) fn stream_in_two(
        self,
        stream: &[u8],
        context: &ReplyContext,
        at: usize,
    ) -> (Vec<u8>, StreamEnding) {
        let (left, right) = stream.split_at(at);
        self.pieces([left, right].into_iter(), context)
    }

    fn pieces<'a>(
        self,
        pieces: impl Iterator<Item = &'a [u8]>,
        context: &ReplyContext,
    ) -> (Vec<u8>, StreamEnding) {
        let mut converter = self.pair(true).map(|pair| pair.stream(context, MAX_EVENT));
        let mut reader = EventReader::new(self.client.dialect(), MAX_EVENT);
        let mut released = Vec::new();
        let mut end = None;
        for chunk in pieces {
            let mut out = Vec::new();
            let chunk = Bytes::copy_from_slice(chunk);
            let mut is_readable = true;
            match &mut converter {
                None => out.extend_from_slice(&chunk),
                Some(converter) => is_readable = converter.feed(chunk, &mut out).is_ok(),
            }
            end = end.or(release(&mut reader, out, &mut released));
            if !is_readable {
                return (released, end.unwrap_or(StreamEnding::Cut));
            }
        }
        let mut out = Vec::new();
        if let Some(converter) = &mut converter
            && converter.finish(&mut out).is_err()
        {
            return (released, end.unwrap_or(StreamEnding::Cut));
        }
        end = end.or(release(&mut reader, out, &mut released));
        let ending = match end {
            Some(end) => end,
            None if reader.finish() => {
                released.extend_from_slice(&reader.take().concat());
                released.extend_from_slice(&reader.closing());
                StreamEnding::Whole
            }
            None => StreamEnding::Cut,
        };
        (released, ending)
    }
}

fn release(reader: &mut EventReader, out: Vec<u8>, released: &mut Vec<u8>) -> Option<StreamEnding> {
    reader.feed(out.into());
    let end = loop {
        match reader.next_event() {
            None => break None,
            Some(Step::Quiet | Step::Content) => {}
            Some(Step::Complete) => break Some(StreamEnding::Whole),
            Some(Step::Failed(_)) => break Some(StreamEnding::Failed),
            Some(Step::Malformed | Step::TooLong) => break Some(StreamEnding::Cut),
        }
    };
    released.extend_from_slice(&reader.take().concat());
    end
}

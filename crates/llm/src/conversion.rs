//! A request on its way to a target of another dialect, and its answer on the way back.
//!
//! The request is converted once per attempt, because its model and limits are the target's. The
//! answer is converted before anybody looks at it, so that holding, committing, usage and errors
//! see the client's dialect only; classifying looks at the target's own words.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use tidegate_core::wire_format::WireFormat;
use tidegate_gateway::provider::Target;
use tidegate_journal::decision::{ConversionNote, ConversionRecord};
use tidegate_net::upstream::RequestLines;
use tidegate_wire::{
    convert::{
        exchange::{ConvertedCall, convert},
        fault::{ReplyFault, RequestFault},
        notes::{Change, Note},
        stream_converter::StreamConverter,
    },
    dialect::Dialect,
};

use super::inbound::Inbound;

const CONVERTED: HeaderName = HeaderName::from_static("x-tidegate-converted");
const LOST: HeaderName = HeaderName::from_static("x-tidegate-lost");

/// The largest answer that is held whole to be converted: as long as an event of a stream may be.
pub(crate) const ANSWER_MAX: usize = 16 * 1024 * 1024;

/// The most fields that the header of lost ones names.
const LOST_MAX: usize = 16;

/// The conversion of one attempt.
#[derive(Clone, Debug)]
pub(crate) struct Conversion {
    /// The request for the target, and the way back of the answer.
    pub(crate) call: ConvertedCall,
}

impl Conversion {
    /// Converts a request.
    pub(crate) fn new(
        inbound: &Inbound,
        format: WireFormat,
        target: &Target,
        asked: Option<&str>,
        now_unix_s: u64,
    ) -> Result<Self, RequestFault> {
        let profile = target.profile(asked);
        let call = convert(&inbound.path, &inbound.body, format, &profile, now_unix_s)?;
        Ok(Self { call })
    }

    /// The dialect that the target answers in.
    pub(crate) fn target_dialect(&self) -> Dialect {
        self.call.answer.target()
    }

    /// A whole answer for the client.
    pub(crate) fn reply(&self, body: &[u8]) -> Result<Bytes, ReplyFault> {
        self.call.answer.reply(body)
    }

    /// The body of an error for the client.
    pub(crate) fn error(&self, status: u16, body: &[u8]) -> Bytes {
        self.call.answer.error(status, body)
    }

    /// Converts the stream of the answer.
    pub(crate) fn stream(&self, event_max: usize) -> Option<StreamConverter> {
        self.call.answer.stream(event_max)
    }

    /// What the record of the request keeps of it.
    pub(crate) fn record(&self, attempt: usize) -> ConversionRecord {
        let note = |note: &Note| ConversionNote {
            change: match note.change {
                Change::Dropped => "dropped",
                Change::Clamped => "clamped",
                Change::Rewritten => "rewritten",
            },
            field: note.field.clone(),
            why: note.why,
        };
        let notes = self.call.notes.as_slice().iter().map(note).collect();
        ConversionRecord { attempt, pair: self.call.pair.clone(), notes }
    }

    /// Says in the answer's headers that it was converted, and which fields did not cross.
    pub(crate) fn mark(&self, headers: &mut HeaderMap) {
        if let Ok(label) = HeaderValue::try_from(&self.call.pair) {
            headers.insert(CONVERTED, label);
        }
        let is_plain = |field: &&str| field.bytes().all(|byte| byte.is_ascii_graphic());
        let fields = self.call.notes.as_slice().iter().map(|note| note.field.as_str());
        let lost: Vec<&str> = fields.filter(is_plain).take(LOST_MAX).collect();
        if let Some(lost) = (!lost.is_empty()).then(|| lost.join(", "))
            && let Ok(lost) = HeaderValue::try_from(lost)
        {
            headers.insert(LOST, lost);
        }
    }

    /// Takes out of a request's headers what belongs to the client's dialect or its own body.
    pub(crate) fn clean(lines: &mut RequestLines<'_>) {
        const OWN: [&str; 4] = ["anthropic-", "openai-", "x-goog-", "x-stainless-"];
        lines.remove(|name| {
            let text = name.as_str();
            OWN.iter().any(|it| text.starts_with(it))
                || text == "idempotency-key"
                || *name == header::ACCEPT
        });
    }
}

//! A request on its way to a target of another dialect, and its answer on the way back.
//!
//! The request is converted once per attempt, because its model and limits are the target's. The
//! answer is converted before anybody looks at it, so that holding, committing, usage and errors
//! see the client's dialect only; classifying looks at the target's own words.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use tidegate_core::wire_format::WireFormat;
use tidegate_gateway::provider::Target;
use tidegate_wire::{
    convert::{
        context::ReplyContext,
        fault::{ReplyFault, RequestFault},
        notes::Notes,
        pair::{DialectPair, dialect_of},
        stream_converter::StreamConverter,
        target::TargetProfile,
    },
    dialect::Dialect,
    gemini::{GeminiCall, GeminiMethod},
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
    pair: DialectPair,
    /// The request for the target.
    pub(crate) body: Bytes,
    notes: Notes,
    context: ReplyContext,
    /// Where the target takes it, and with which query.
    pub(crate) path: String,
    pub(crate) query: Option<&'static str>,
}

impl Conversion {
    /// Converts a request. `None` if there is no such conversion, which the core knew before.
    pub(crate) fn new(
        inbound: &Inbound,
        client: Dialect,
        format: WireFormat,
        target: &Target,
        asked: Option<&str>,
        now_unix_s: u64,
    ) -> Result<Self, RequestFault> {
        let pair = DialectPair::new(client, dialect_of(format))
            .ok_or_else(|| RequestFault::impossible("this request"))?;
        let call = GeminiCall::of_path(&inbound.path);
        let pair =
            pair.streaming(call.is_some_and(|it| it.method == GeminiMethod::StreamGenerateContent));
        let named = target.model.as_ref().and_then(|name| std::str::from_utf8(name.plain()).ok());
        let model = named.or(asked).unwrap_or_default();
        let host = target.provider.origin.as_ref().map_or("", |origin| origin.host.as_str());
        let profile = TargetProfile { model, host };
        let converted = pair.request(&inbound.body, &profile, now_unix_s)?;
        let (path, query) = pair.target_path(model, converted.is_stream);
        Ok(Self {
            pair,
            body: converted.body,
            notes: converted.notes,
            context: converted.context,
            path,
            query,
        })
    }

    /// The dialect that the target answers in.
    pub(crate) fn target_dialect(&self) -> Dialect {
        self.pair.target()
    }

    /// A whole answer for the client.
    pub(crate) fn reply(&self, body: &[u8]) -> Result<Bytes, ReplyFault> {
        self.pair.reply(body, &self.context)
    }

    /// The body of an error for the client.
    pub(crate) fn error(&self, status: u16, body: &[u8]) -> Bytes {
        self.pair.error(status, body)
    }

    /// Converts the stream of the answer.
    pub(crate) fn stream(&self, event_max: usize) -> StreamConverter {
        self.pair.stream(&self.context, event_max)
    }

    /// Says in the answer's headers that it was converted, and which fields did not cross.
    pub(crate) fn mark(&self, headers: &mut HeaderMap) {
        if let Ok(label) = HeaderValue::try_from(self.pair.label()) {
            headers.insert(CONVERTED, label);
        }
        let is_plain = |field: &&str| field.bytes().all(|byte| byte.is_ascii_graphic());
        let fields = self.notes.as_slice().iter().map(|note| note.field.as_str());
        let lost: Vec<&str> = fields.filter(is_plain).take(LOST_MAX).collect();
        if let Some(lost) = (!lost.is_empty()).then(|| lost.join(", "))
            && let Ok(lost) = HeaderValue::try_from(lost)
        {
            headers.insert(LOST, lost);
        }
    }

    /// Takes out of a request's headers what belongs to the client's dialect or its own body.
    pub(crate) fn clean(headers: &mut HeaderMap) {
        const OWN: [&str; 4] = ["anthropic-", "openai-", "x-goog-", "x-stainless-"];
        let is_own = |name: &&HeaderName| OWN.iter().any(|it| name.as_str().starts_with(it));
        let own: Vec<HeaderName> = headers.keys().filter(is_own).cloned().collect();
        for name in own {
            headers.remove(name);
        }
        headers.remove("idempotency-key");
        headers.remove(header::ACCEPT);
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
}

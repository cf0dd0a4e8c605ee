//! The upstream request of one attempt: the client's bytes, decompressed, with this target's model
//! name, key, headers and path.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, header};
use tidegate_config::file::Api;
use tidegate_gateway::provider::Target;
use tidegate_net::passed::PASSED;
use tidegate_net::upstream::{RequestLines, SplicedBody};
use tidegate_wire::{
    convert::history::without_foreign_thinking,
    dialect::Dialect,
    gemini::{self, GeminiCall},
    head::RequestHead,
    splice::{EncodedName, Spliced},
};

use super::{
    conversion::Conversion,
    headers,
    inbound::{Inbound, TRACEPARENT, TRACESTATE},
};

/// What Anthropic wants to hear if the client does not say: never a reason to refuse.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// How an attempt names its trace, where traces are exported. Elsewhere the client's own headers
/// pass as they are.
pub(crate) struct SentTrace {
    /// The `traceparent` header: it names the span of the attempt.
    pub(crate) parent: HeaderValue,
    /// Whether no client named it: what a `tracestate` says is about another trace then.
    pub(crate) is_begun_here: bool,
}

// References to these outlive a request; those to constants would not.
static CONTENT_TYPE: HeaderName = header::CONTENT_TYPE;
static HOST: HeaderName = header::HOST;
static PASSED_NAME: HeaderName = PASSED;
static JSON: HeaderValue = HeaderValue::from_static("application/json");
static VERSION: HeaderValue = HeaderValue::from_static(ANTHROPIC_VERSION);
static VERSION_NAME: HeaderName = HeaderName::from_static("anthropic-version");

/// Builds it. Nothing of the body is copied but the model's name: the target's, else `asked`; and
/// no header is copied before it is sent.
pub(crate) fn build<'a>(
    inbound: &'a Inbound,
    head: &RequestHead<'_>,
    target: &'a Target,
    key: usize,
    asked: Option<&str>,
    conversion: Option<&Conversion>,
    traced: Option<&'a SentTrace>,
) -> Option<RequestLines<'a>> {
    let provider = &target.provider;
    let (body, path) = match conversion {
        Some(conversion) => {
            let call = &conversion.call;
            let body = SplicedBody::new([call.body.clone(), Bytes::new(), Bytes::new()]);
            (body, provider.path(&call.path, call.query, target.profile(asked).model))
        }
        None => {
            let made;
            let name = match &target.model {
                Some(name) => name,
                None => {
                    made = EncodedName::new(asked.unwrap_or_default());
                    &made
                }
            };
            let call = GeminiCall::of_path(&inbound.path);
            let dialect = Dialect::of_path(&inbound.path);
            let model = String::from_utf8_lossy(name.plain());
            let spliced = match without_foreign_thinking(dialect, &model, &inbound.body) {
                None => Spliced::new(&inbound.body, head, name),
                Some(body) => {
                    let body = Bytes::from(body);
                    let head = match &call {
                        Some(call) => RequestHead::read_gemini(&body, call),
                        None => RequestHead::read(&body),
                    };
                    Spliced::new(&body, &head.ok()?, name)
                }
            };
            let named_by_path = call.map(|call| gemini::path_of(&model, call.method));
            let path = named_by_path.as_deref().unwrap_or(&inbound.path);
            let path = provider.path(path, inbound.query.as_deref(), &model);
            (SplicedBody::new(spliced.pieces), path)
        }
    };
    let mut lines = RequestLines::post(path, body)?;
    headers::upward(&inbound.headers, &mut lines);
    if conversion.is_some() {
        Conversion::clean(&mut lines);
        lines.set(&CONTENT_TYPE, &JSON);
    }
    if provider.api == Api::Anthropic && !lines.contains(&VERSION_NAME) {
        lines.add(&VERSION_NAME, &VERSION);
    }
    if !lines.contains(&CONTENT_TYPE) {
        lines.add(&CONTENT_TYPE, &JSON);
    }
    for (name, value) in &provider.headers {
        lines.set(name, value);
    }
    if let Some(Some((name, value))) = target.credentials.get(key) {
        lines.set(name, value);
    }
    if let Some(traced) = traced {
        lines.set(&TRACEPARENT, &traced.parent);
        if traced.is_begun_here {
            lines.remove(|name| *name == TRACESTATE);
        }
    }
    lines.set(&PASSED_NAME, &inbound.passed);
    lines.set(&HOST, &provider.authority);
    Some(lines)
}

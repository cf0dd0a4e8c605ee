//! The upstream request of one attempt: the client's bytes, decompressed, with this target's model
//! name, key, headers and path.

use bytes::Bytes;
use http::{HeaderValue, Method, Request, header};
use tidegate_config::file::Api;
use tidegate_gateway::provider::Target;
use tidegate_net::passed::PASSED;
use tidegate_net::upstream::SplicedBody;
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

/// Builds it. Nothing of the body is copied but the model's name: the target's, else `asked`.
pub(crate) fn build(
    inbound: &Inbound,
    head: &RequestHead<'_>,
    target: &Target,
    key: usize,
    asked: Option<&str>,
    conversion: Option<&Conversion>,
    traced: Option<&SentTrace>,
) -> Option<Request<SplicedBody>> {
    let provider = &target.provider;
    let mut headers = headers::upward(&inbound.headers);
    let (body, path) = match conversion {
        Some(conversion) => {
            Conversion::clean(&mut headers);
            let call = &conversion.call;
            let body = SplicedBody::new([call.body.clone(), Bytes::new(), Bytes::new()]);
            (body, provider.path(&call.path, call.query, target.profile(asked).model))
        }
        None => {
            let named = target.model.clone();
            let name = named.unwrap_or_else(|| EncodedName::new(asked.unwrap_or_default()));
            let call = GeminiCall::of_path(&inbound.path);
            let dialect = Dialect::of_path(&inbound.path);
            let model = String::from_utf8_lossy(name.plain());
            let spliced = match without_foreign_thinking(dialect, &model, &inbound.body) {
                None => Spliced::new(&inbound.body, head, &name),
                Some(body) => {
                    let body = Bytes::from(body);
                    let head = match &call {
                        Some(call) => RequestHead::read_gemini(&body, call),
                        None => RequestHead::read(&body),
                    };
                    Spliced::new(&body, &head.ok()?, &name)
                }
            };
            let named_by_path = call.map(|call| gemini::path_of(&model, call.method));
            let path = named_by_path.as_deref().unwrap_or(&inbound.path);
            let path = provider.path(
                path,
                inbound.query.as_deref(),
                &String::from_utf8_lossy(name.plain()),
            );
            (SplicedBody::new(spliced.pieces), path)
        }
    };
    if provider.api == Api::Anthropic && !headers.contains_key("anthropic-version") {
        headers.insert("anthropic-version", HeaderValue::from_static(ANTHROPIC_VERSION));
    }
    if !headers.contains_key(header::CONTENT_TYPE) {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    for (name, value) in &provider.headers {
        headers.insert(name.clone(), value.clone());
    }
    if let Some((name, value)) = target.credentials.get(key).cloned().flatten() {
        headers.insert(name, value);
    }
    if let Some(traced) = traced {
        headers.insert(TRACEPARENT, traced.parent.clone());
        if traced.is_begun_here {
            headers.remove(TRACESTATE);
        }
    }
    headers.insert(PASSED, inbound.passed.clone());
    headers.insert(header::HOST, provider.authority.clone());
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
    let mut request = Request::builder().method(Method::POST).uri(path).body(body).ok()?;
    *request.headers_mut() = headers;
    Some(request)
}

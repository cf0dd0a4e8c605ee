//! Answers of our own, and what is added to everybody's.
//!
//! Every answer carries `x-tidegate-request-id`; one that a target had a part in also
//! `x-tidegate-resolved` and `x-tidegate-attempts`. A final error tells the official SDKs not to
//! retry what was retried here already, and when to come back if that is known.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use tidegate_core::{
    attempt::{Answer, End, Finish},
    time::Millis,
};
use tidegate_journal::decision::OwnAnswer;
use tidegate_net::client_body::ClientBody;
use tidegate_wire::{
    dialect::Dialect,
    error_body::{AttemptLine, OwnError, OwnErrorKind},
};

use super::request_context::RequestContext;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-tidegate-request-id");
pub(super) const RESOLVED: HeaderName = HeaderName::from_static("x-tidegate-resolved");
const ATTEMPTS: HeaderName = HeaderName::from_static("x-tidegate-attempts");
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// An answer.
pub fn with(status: StatusCode, headers: HeaderMap, body: ClientBody) -> Response<ClientBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// JSON of our own.
pub fn json(status: StatusCode, body: Bytes) -> Response<ClientBody> {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    with(status, headers, body.into())
}

/// Says which request an answer is to.
pub fn name(response: &mut Response<ClientBody>, id: &str) {
    if let Ok(value) = HeaderValue::try_from(id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
}

/// An error of our own, in the client's dialect.
pub fn own(dialect: Dialect, id: &str, error: OwnError<'_>) -> Response<ClientBody> {
    let error = OwnError { request_id: Some(id), ..error };
    let status = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json(status, error.body(dialect));
    name(&mut response, id);
    response
}

/// How many targets are told of by name where none can do what a request needs.
const LACKING_TOLD: usize = 8;

/// The answer to a request that no target answered.
pub(crate) fn failure(
    context: &RequestContext,
    finish: &Finish,
    dialect: Dialect,
    id: &str,
) -> (Response<ClientBody>, OwnAnswer) {
    let attempts: Vec<AttemptLine<'_>> = context
        .records
        .iter()
        .map(|it| AttemptLine {
            target: &it.target,
            outcome: it.outcome,
            status: it.status,
            ms: it.took,
            detail: it.detail,
        })
        .collect();
    let unable;
    let kept;
    let (kind, message) = match (finish.end, finish.status) {
        _ if finish.answer == Answer::ThreadGone => (
            OwnErrorKind::ThreadNotFound,
            "this request cannot be answered as a part of its thread",
        ),
        (End::NothingAble, _) => {
            unable = format!(
                "no target of this route can do what the request needs: {}",
                context.lacking(LACKING_TOLD)
            );
            (OwnErrorKind::MissingAbility, &*unable)
        }
        (End::OutOfPatience, _) => {
            (OwnErrorKind::OutOfTime, "no target answered within the client's own timeout")
        }
        (End::Cancelled | End::Deadline, _) => {
            (OwnErrorKind::OutOfTime, "the request's deadline came before an answer")
        }
        (_, 502) => {
            (OwnErrorKind::BadGateway, "the last target answered with what cannot be relayed")
        }
        (End::BudgetSpent, _) => (
            OwnErrorKind::NoHealthyBackend,
            "no backend answered, and this route's budget of hops is spent",
        ),
        _ if attempts.is_empty() => {
            unable = format!(
                "this route has no target that can be asked: {}",
                context.obstacles(LACKING_TOLD)
            );
            (OwnErrorKind::NoHealthyBackend, &*unable)
        }
        _ => (OwnErrorKind::NoHealthyBackend, "every target of this route failed"),
    };
    let message = match context.kept_at() {
        Some(why) => {
            kept = format!("{message}; {why}");
            &*kept
        }
        None => message,
    };
    let record =
        OwnAnswer { code: kind.row().code, message: Some(message.into()), ..OwnAnswer::default() };
    let error = OwnError { attempts: &attempts, ..OwnError::new(kind, message) };
    (own(dialect, id, error), record)
}

/// The record of an answer of our own, with what its headers tell the client to do.
pub(crate) fn advised(answer: OwnAnswer, headers: &HeaderMap) -> OwnAnswer {
    let text = |name: &HeaderName| headers.get(name).and_then(|it| it.to_str().ok());
    let seconds = text(&header::RETRY_AFTER).and_then(|it| it.parse::<u64>().ok());
    OwnAnswer {
        retry_after: seconds.map(|it| Millis(it.saturating_mul(1000))),
        should_retry: text(&SHOULD_RETRY).map(|it| it == "true"),
        ..answer
    }
}

/// The name of the request that a response answers; empty where it has none.
#[must_use]
pub fn id_of(response: &Response<ClientBody>) -> &str {
    response.headers().get(REQUEST_ID).and_then(|id| id.to_str().ok()).unwrap_or_default()
}

/// Whether a request got as far as being routed: only then its attempts are told.
#[must_use]
pub fn is_routed(response: &Response<ClientBody>) -> bool {
    response.headers().contains_key(ATTEMPTS)
}

/// Says who answered, and after how many attempts.
pub(crate) fn sign(headers: &mut HeaderMap, id: &str, context: &RequestContext) {
    if let Ok(id) = HeaderValue::from_str(id) {
        headers.insert(REQUEST_ID, id);
    }
    if let Some(resolved) = context.resolved().and_then(|it| HeaderValue::try_from(it).ok()) {
        headers.insert(RESOLVED, resolved);
    }
    headers.insert(ATTEMPTS, HeaderValue::from(context.attempts()));
}

/// Says whose answer this is, where that is not the latest attempt's.
pub(crate) fn sign_for(headers: &mut HeaderMap, target: &str) {
    if let Ok(target) = HeaderValue::from_str(target) {
        headers.insert(RESOLVED, target);
    }
}

/// Tells an SDK not to try again what was tried at several targets here, and when it may.
pub(crate) fn advise(headers: &mut HeaderMap, context: &RequestContext, finish: &Finish) {
    if (finish.end, finish.answer) == (End::OutOfPatience, Answer::OutOfTime) {
        // Without a gateway the client would try again after its timeout.
        headers.insert(SHOULD_RETRY, HeaderValue::from_static("true"));
    } else if context.is_retry_futile() {
        headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
    }
    // What the last upstream said of itself is not when this route can be asked again.
    if let Some(wait) = context.re_entry() {
        headers.remove("retry-after-ms");
        headers.insert(header::RETRY_AFTER, HeaderValue::from(wait.0.div_ceil(1000).max(1)));
    }
}

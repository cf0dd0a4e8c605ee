//! The life of a request: read, choose, send, watch, release.
//!
//! This file is the whole story in order; each step is one call into a file of its own.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Response};
use tidegate_core::{
    attempt::{Answer, End, Finish},
    outcome::Outcome,
    plan::RequestSpec,
    wire_format::SentAs,
};
use tidegate_gateway::{live::Live, log::Refused, report, worker::Worker};
use tidegate_journal::decision::cut_name;
use tidegate_net::client_body::ClientBody;
use tidegate_wire::{
    dialect::Dialect,
    error_body::{OwnError, OwnErrorKind},
    mask::{Mask, MaskedStream},
    operation::{Operation, needs_of_path},
};

use super::{
    answer,
    attempt::{self, AttemptOptions, AttemptResult, Failure, UpstreamReply},
    committed_body::CommittedBody,
    conversion::Conversion,
    headers,
    inbound::Inbound,
    refused::{RefusedRequest, refused_model},
    request_context::{Next, RequestContext, RequestMeta},
    upstream_request::{self, SentTrace},
};

/// Answers a request that names a model.
pub async fn forward(
    worker: &Rc<Worker>,
    live: &Arc<Live>,
    inbound: Inbound,
) -> Response<ClientBody> {
    let dialect = Dialect::of_path(&inbound.path);
    let fail = |kind, message: &str, model: Option<&str>| {
        let (id, path, caller) = (&*inbound.id, &*inbound.path, &inbound.caller.name);
        refused_model(worker, &RefusedRequest { id, path, caller, kind }, model);
        answer::own(dialect, &inbound.id, OwnError::new(kind, message))
    };

    let head = match inbound.head() {
        Ok(head) => head,
        Err(fault) => return fail(OwnErrorKind::InvalidRequest, &fault, None),
    };
    let asked = head.model.as_ref().map(|model| &*model.name);
    let is_unlisted = Operation::of_path(&inbound.path) == Some(Operation::Unlisted);
    if is_unlisted && asked.unwrap_or_default().is_empty() {
        // Whatever such a path does, without a model it is not inference.
        let message = "this path takes requests with a `model` only";
        return fail(OwnErrorKind::InvalidRequest, message, None);
    }
    let caller = &inbound.caller;
    let resolved = match live.resolve(asked) {
        Ok(resolved) => resolved,
        Err(missing) => {
            let missing = missing.shown_to(|route| caller.may_use(route));
            return fail(OwnErrorKind::ModelNotFound, &missing.to_string(), asked);
        }
    };
    if !resolved.is_open_to(caller, asked) {
        let refused = Refused {
            event: "route_not_allowed",
            caller: &caller.name,
            path: &inbound.path,
            route: resolved.label(),
            request_id: &inbound.id,
        };
        report::refused(&worker.gateway, &refused);
        return fail(OwnErrorKind::PermissionDenied, "this key does not open this route", asked);
    }
    let session = inbound.session().or(head.session.as_deref()).unwrap_or_default();
    let ask = RequestSpec {
        caller: &inbound.caller.name,
        session,
        needs: needs_of_path(&inbound.path).and_of_body(head.needs),
        is_stream: head.is_stream,
        within: None,
        patience: inbound.patience(),
        stays_at: None,
        state_id: head.state_id.as_deref().unwrap_or_default(),
    };
    let traced = live.is_traced().then(|| inbound.trace());
    let meta = RequestMeta {
        request_id: Rc::clone(&inbound.id),
        path: Rc::clone(&inbound.path),
        caller: Arc::clone(&inbound.caller.name),
        asked: asked.filter(|asked| *asked != resolved.label()).map(cut_name),
        is_continued: dialect == Dialect::OpenAiResponses || head.is_threaded,
        traced,
    };
    let mut context = RequestContext::new(worker, live, &resolved, &ask, meta);
    let options = AttemptOptions {
        dialect,
        is_stream: head.is_stream,
        is_json: answers_with_json(&inbound.path),
        event_max: EVENT_MAX,
    };

    let mut replies: Vec<Option<UpstreamReply>> = Vec::new();
    loop {
        let (target, key, sent_as) = match context.next() {
            Next::Attempt { target, key, sent_as } => (target, key, sent_as),
            Next::Over(finish) => return over(context, finish, replies, dialect, &inbound.id),
        };
        let conversion = match sent_as {
            SentAs::AsItCame => None,
            SentAs::Converted(format) => {
                let now_unix_s = worker.gateway.clock.unix_ms() / 1000;
                let asked = resolved.model;
                match Conversion::new(&inbound, format, &target, asked, now_unix_s) {
                    Ok(conversion) => Some(conversion),
                    Err(fault) => {
                        context.decline(format, fault.to_string());
                        continue;
                    }
                }
            }
        };
        let conversion = conversion.as_ref();
        if let Some(conversion) = conversion {
            context.converted(conversion.record(context.attempts().saturating_sub(1)));
        }
        let sent_trace = traced.as_ref().map(|traced| SentTrace {
            parent: inbound.trace_header(traced, context.attempts().saturating_sub(1)),
            is_begun_here: traced.parent.is_none(),
        });
        let (asked, sent_trace) = (resolved.model, sent_trace.as_ref());
        let build = || {
            upstream_request::build(&inbound, &head, &target, key, asked, conversion, sent_trace)
        };
        let mask = target.mask(key);
        match attempt::open(&mut context, &target, &build, options, conversion).await {
            AttemptResult::Whole { head, pieces, usage, is_events } => {
                if let Some(usage) = usage {
                    context.used(usage);
                }
                let mut headers = headers::downward(&head.headers, &mask);
                mark_converted(&mut headers, conversion);
                if is_events {
                    headers::label_events(&mut headers);
                }
                answer::sign(&mut headers, &inbound.id, &context);
                context.report(&Outcome::answered(head.status.as_u16()), "");
                context.finished(head.status.as_u16());
                return answer::with(
                    head.status,
                    headers,
                    ClientBody::Whole(covered(pieces, mask)),
                );
            }
            AttemptResult::Passing(pending) => {
                let status = pending.head.status;
                let mut headers = headers::downward(&pending.head.headers, &mask);
                mark_converted(&mut headers, conversion);
                if pending.events.is_some() {
                    headers::label_events(&mut headers);
                }
                answer::sign(&mut headers, &inbound.id, &context);
                let committed = CommittedBody::new(context, *pending, dialect, mask);
                return answer::with(status, headers, ClientBody::Passing(Box::new(committed)));
            }
            AttemptResult::Failed(Failure { outcome, detail, reply }) => {
                replies.push(reply.map(|UpstreamReply { status, headers, body }| UpstreamReply {
                    status,
                    headers: marked(headers::downward(&headers, &mask), conversion),
                    body: mask.cover(&body).map_or(body, Bytes::from),
                }));
                context.report(&outcome, detail);
            }
        }
    }
}

fn marked(mut headers: HeaderMap, conversion: Option<&Conversion>) -> HeaderMap {
    mark_converted(&mut headers, conversion);
    headers
}

fn mark_converted(headers: &mut HeaderMap, conversion: Option<&Conversion>) {
    if let Some(conversion) = conversion {
        conversion.mark(headers);
    }
}

/// A whole answer with our secrets covered (S2), also where one stands across two pieces.
fn covered(mut pieces: VecDeque<Bytes>, mask: Arc<Mask>) -> VecDeque<Bytes> {
    let mut stream = MaskedStream::new(mask);
    let Some(last) = pieces.pop_back() else { return pieces };
    let mut covered: VecDeque<Bytes> = pieces.into_iter().map(|it| stream.feed(it)).collect();
    covered.push_back(stream.feed_last(last));
    covered.retain(|it| !it.is_empty());
    covered
}

/// Whether an endpoint answers with JSON or a stream only: those of audio also send sound and
/// plain text.
fn answers_with_json(path: &str) -> bool {
    !path.starts_with("/v1/audio/")
}

/// An event of a stream may be this long before the commit, and passes in parts after it.
const EVENT_MAX: usize = 16 * 1024 * 1024;

/// Nothing more will be tried: what the client sees is what the core says.
fn over(
    mut context: RequestContext,
    finish: Finish,
    mut replies: Vec<Option<UpstreamReply>>,
    dialect: Dialect,
    id: &str,
) -> Response<ClientBody> {
    context.settle();
    let shown = match finish.answer {
        Answer::Attempt(number) => Some(number),
        Answer::NoHealthyBackend
        | Answer::NothingAble
        | Answer::ThreadGone
        | Answer::OutOfTime
        | Answer::Nobody => None,
    };
    let relayed = shown.and_then(|number| replies.get_mut(number)).and_then(Option::take);
    let is_exhausted = finish.end != End::ClientFault && finish.end != End::AuthSurfaced;
    let (mut response, own) = match relayed {
        Some(reply) if reply.status.as_u16() == finish.status => {
            (answer::with(reply.status, reply.headers, reply.body.into()), None)
        }
        _ => {
            let (response, own) = answer::failure(&context, &finish, dialect, id);
            (response, Some(own))
        }
    };
    answer::sign(response.headers_mut(), id, &context);
    if let Some(record) = shown.and_then(|number| context.records.get(number)) {
        answer::sign_for(response.headers_mut(), &record.target);
    }
    if is_exhausted {
        answer::advise(response.headers_mut(), &context, &finish);
    }
    if let Some(own) = own {
        context.answers_itself(answer::advised(own, response.headers()));
    }
    context.ended(&finish);
    response
}

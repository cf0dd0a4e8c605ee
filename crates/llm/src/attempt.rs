//! One attempt, up to the moment of commitment: send, watch, judge.
//!
//! Until the first content of a stream, or the whole of a short answer, nothing is released: what
//! goes wrong before that is a failure of this attempt only, and the request can go elsewhere.
//!
//! Rules kept here:
//! - Frames that only announce are held, as they came, until the core commits the answer
//!   (`attempt/hold.rs`).
//! - A connection that was kept may have been closed meanwhile: the core then has the request sent
//!   once more over a fresh one, within the same attempt.
//! - A 2xx that brings nothing that was asked for is no success: an empty body, a web page, JSON
//!   that is cut or `null`.
//! - A stream is known by its media type or, where one was asked for, by its first line.
//! - What is no JSON on purpose, such as audio, is released as it comes.
//! - The limits on waiting are those of `timers.rs` and the client's patience; nothing here waits
//!   without one.

mod hold;

use std::collections::VecDeque;
use std::pin::pin;
use std::rc::Rc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header, response};
use tidegate_core::{
    commit::{AnswerForm, CommitCause},
    outcome::{Outcome, OutcomeKind},
    plan::PatienceVerdict,
    resend::{ConnectionAge, SendFailure, SendVerdict},
};
use tidegate_gateway::provider::Target;
use tidegate_net::upstream::{
    ConnectError, PooledConnection, RequestLines, SendError, UpstreamBody,
};
use tidegate_runtime::clock::timer_now;
use tidegate_wire::{
    body::{self, BodyKind, ReadBody},
    convert::stream_converter::StreamConverter,
    dialect::Dialect,
    error_body::{OwnError, OwnErrorKind, body_of_event},
    events::EventReader,
    response_id::response_id,
    sniff::{self, Media},
    usage::Usage,
};
use tokio::time::Instant;

use super::{
    classified,
    conversion::{self, Conversion},
    request_context::RequestContext,
    timers::{Deadline, Limit, Timers},
};

/// How far an attempt got.
pub(crate) enum AttemptResult {
    /// The whole answer is here, and it is a success.
    Whole { head: response::Parts, pieces: VecDeque<Bytes>, usage: Option<Usage>, is_events: bool },
    /// There is content to release; the rest follows.
    Passing(Box<PendingResponse>),
    /// It failed before anything was released.
    Failed(Failure),
}

/// An answer that has begun.
pub(crate) struct PendingResponse {
    pub(crate) head: response::Parts,
    pub(crate) held: VecDeque<Bytes>,
    pub(crate) rest: UpstreamBody,
    pub(crate) timers: Timers,
    /// When content last came, if it came before the commit.
    pub(crate) last_content_at: Option<Instant>,
    /// What was read to tell what kind of answer it is.
    first: Option<Bytes>,
    /// `None` for a body that is not a stream of events.
    pub(crate) events: Option<EventReader>,
    /// Where the target speaks another dialect than the client: what turns one into the other.
    /// (In a box, because most answers have none, and are moved with the room for one.)
    pub(crate) converter: Option<Box<StreamConverter>>,
    /// Whether what follows the bytes so far cannot be converted. Whether that is a failover or a
    /// break must not depend on how the bytes were cut on their way, so they are seen first.
    pub(crate) is_unreadable: bool,
}

/// What a provider answered, kept in case it is the last word.
pub(crate) struct UpstreamReply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// A failed attempt: how it ended, and what the provider answered, if it answered anything.
pub(crate) struct Failure {
    pub(crate) outcome: Outcome,
    pub(crate) detail: &'static str,
    pub(crate) reply: Option<UpstreamReply>,
}

impl Failure {
    fn unanswered(kind: OutcomeKind, detail: &'static str) -> Self {
        Self { outcome: Outcome::unanswered(kind), detail, reply: None }
    }

    /// One that came to nothing after a response head with this status.
    pub(super) fn after_head(status: StatusCode, kind: OutcomeKind, detail: &'static str) -> Self {
        Self { outcome: Outcome::broken(kind, Some(status.as_u16())), detail, reply: None }
    }

    /// An error inside a 2xx: to the client it is a 502 with the upstream's own words.
    pub(super) fn inside(outcome: Outcome, headers: HeaderMap, error: Bytes) -> Self {
        let mut headers = headers;
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let reply = UpstreamReply { status: StatusCode::BAD_GATEWAY, headers, body: error };
        Self { outcome, detail: "an error inside the answer", reply: Some(reply) }
    }

    /// What the provider said, as the client would say it.
    fn in_clients_dialect(mut self, conversion: Option<&Conversion>) -> Self {
        if let (Some(conversion), Some(reply)) = (conversion, &mut self.reply) {
            reply.body = conversion.error(reply.status.as_u16(), &reply.body);
            let headers = &mut reply.headers;
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        self
    }
}

/// How much of an error's body is read: enough for any error a provider means to be read.
const ERROR_BODY_MAX: usize = 1024 * 1024;

/// What an attempt needs to know of its request.
#[derive(Clone, Copy)]
pub(crate) struct AttemptOptions {
    pub(crate) dialect: Dialect,
    pub(crate) is_stream: bool,
    /// Whether the endpoint answers with JSON or a stream, and never with anything else.
    pub(crate) is_json: bool,
    /// How long one event may be.
    pub(crate) event_max: usize,
}

/// Makes the attempt that the request has a permit for.
pub(crate) async fn open<'a>(
    context: &mut RequestContext,
    target: &Target,
    build: &dyn Fn() -> Option<RequestLines<'a>>,
    options: AttemptOptions,
    conversion: Option<&Conversion>,
) -> AttemptResult {
    let mut timers = Timers::new(target.timeouts, context.worker.gateway.now(), context.deadline());
    let response = match send(context, target, build, &mut timers, options.is_stream).await {
        Ok(response) => response,
        Err(failure) => return AttemptResult::Failed(failure),
    };
    context.head();
    let (head, rest) = response.into_parts();
    if !head.status.is_success() {
        let failure = refused(context, target, head, rest, &timers, options).await;
        return AttemptResult::Failed(failure.in_clients_dialect(conversion));
    }
    if is_encoded(&head.headers) {
        let failure = Failure::after_head(head.status, OutcomeKind::ServerError, ENCODED);
        return AttemptResult::Failed(failure);
    }
    let media = sniff::media(head.headers.get(header::CONTENT_TYPE).map(|it| it.as_bytes()));
    let mut pending = PendingResponse {
        head,
        held: VecDeque::new(),
        rest,
        timers,
        last_content_at: None,
        first: None,
        events: None,
        converter: None,
        is_unreadable: false,
    };
    let is_events = media == Media::Events
        || (options.is_stream
            && match pending.begins_like_events(context).await {
                Ok(is_events) => is_events,
                Err(failure) => return AttemptResult::Failed(failure),
            });
    if is_events {
        pending.events = Some(EventReader::new(options.dialect, options.event_max));
        pending.converter = conversion.and_then(|it| it.stream(options.event_max)).map(Box::new);
        return pending.hold_to_commit(context, target, options).await;
    }
    let is_as_it_is = match media {
        Media::Binary => !options.dialect.answers_with_object(),
        Media::Other => !options.is_json,
        Media::Events | Media::Json | Media::Html => false,
    };
    if is_as_it_is {
        pending.hold_to_first_bytes(context).await
    } else {
        pending.hold_to_whole_answer(context, target, options, conversion).await
    }
}

async fn send<'a>(
    context: &mut RequestContext,
    target: &Target,
    build: &dyn Fn() -> Option<RequestLines<'a>>,
    timers: &mut Timers,
    is_stream: bool,
) -> Result<Response<UpstreamBody>, Failure> {
    let worker = Rc::clone(&context.worker);
    let mut is_resent = false;
    loop {
        let Some(lines) = build() else {
            return Err(Failure::unanswered(OutcomeKind::Cancelled, "cannot be sent"));
        };
        let kept = if is_resent { None } else { worker.pool.kept(&target.provider.connections) };
        let connection = match kept {
            Some(connection) => connection,
            None => connect(context, target, timers).await?,
        };
        let age = if connection.is_reused { ConnectionAge::Reused } else { ConnectionAge::Fresh };
        timers.sent();
        context.sent();
        let deadline = if is_stream { timers.first_content() } else { timers.answer() };
        // It stays where it is made: what waits for it would be moved with it.
        let sending = pin!(connection.send_lines(lines));
        let (failure, detail) = match context.wait(deadline, sending).await {
            Err(limit) => {
                let (outcome, detail) = context.stopped(limit, None);
                return Err(Failure { outcome, detail, reply: None });
            }
            Ok(Ok(response)) => return Ok(response),
            Ok(Err(SendError::NotSent)) => (SendFailure::NotSent, "connection lost"),
            Ok(Err(SendError::Broken(error))) if error.is_parse() => {
                (SendFailure::Malformed, "malformed answer")
            }
            Ok(Err(SendError::Broken(_))) => (SendFailure::Broken, "connection lost"),
        };
        match context.send_failed(age, failure) {
            SendVerdict::Resend => is_resent = true,
            SendVerdict::Failed(outcome) => return Err(Failure { outcome, detail, reply: None }),
        }
    }
}

async fn connect(
    context: &mut RequestContext,
    target: &Target,
    timers: &Timers,
) -> Result<PooledConnection, Failure> {
    let worker = Rc::clone(&context.worker);
    let pool = &worker.pool;
    let provider = &target.provider;
    let deadline = timers.connect();
    let connected = match &provider.origin {
        Some(origin) => context.wait(deadline, pool.fresh(&provider.connections, origin)).await,
        None => {
            let io = worker.gateway.dial_fake(&provider.name);
            context.wait(deadline, pool.handshake(&provider.connections, io, false)).await
        }
    };
    match connected {
        Ok(Ok(connection)) => Ok(connection),
        Ok(Err(ConnectError::Shortage)) => {
            Err(Failure::unanswered(OutcomeKind::Cancelled, "out of local resources"))
        }
        Ok(Err(error)) => Err(Failure::unanswered(OutcomeKind::Transport, error.word())),
        Err(Limit::Target(_)) => {
            Err(Failure::unanswered(OutcomeKind::Transport, "connect timed out"))
        }
        Err(limit) => {
            let (outcome, detail) = context.stopped(limit, None);
            Err(Failure { outcome, detail, reply: None })
        }
    }
}

/// An answer that is no success: read what it says, for as long as its client waits, and class it.
async fn refused(
    context: &mut RequestContext,
    target: &Target,
    mut head: response::Parts,
    mut rest: UpstreamBody,
    timers: &Timers,
    options: AttemptOptions,
) -> Failure {
    let mut body = Vec::new();
    let is_read = loop {
        let Ok(data) = context.wait(timers.idle(timer_now()), rest.data()).await else {
            break false;
        };
        match data {
            None => break true,
            Some(Err(_)) => break false,
            Some(Ok(data)) => body.extend_from_slice(&data),
        }
        if body.len() > ERROR_BODY_MAX {
            break false;
        }
    };
    if is_read {
        context.worker.pool.keep(rest);
    }
    if is_encoded(&head.headers) {
        let error = OwnError::new(OwnErrorKind::BadGateway, ENCODED);
        body = error.body(options.dialect).into();
        head.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    let unix_ms = context.worker.gateway.clock.unix_ms();
    let outcome = classified::of_answer(target, head.status, &head.headers, &body, unix_ms);
    let reply = UpstreamReply { status: head.status, headers: head.headers, body: body.into() };
    Failure { outcome, detail: outcome.kind.word(), reply: Some(reply) }
}

/// Requests ask for answers as they are. An encoded one can neither be judged nor searched for our
/// secrets, so it is no answer, and no error to hand on.
const ENCODED: &str = "the answer has a content-encoding that was not asked for";

fn is_encoded(headers: &HeaderMap) -> bool {
    let encodings = headers.get_all(header::CONTENT_ENCODING);
    let is_plain =
        |it: &HeaderValue| it.is_empty() || it.as_bytes().eq_ignore_ascii_case(b"identity");
    !encodings.iter().all(is_plain)
}

/// Why the next bytes of a body did not come.
#[derive(Clone, Copy, Debug)]
pub(super) enum Interrupt {
    /// This limit was reached.
    Waited(Limit),
    /// The client's patience ends: what has come is to be released.
    Commit,
    /// The body broke.
    Broke,
    /// What came cannot be converted.
    Unreadable,
}

impl PendingResponse {
    /// The next bytes of the body, `None` at its end.
    pub(super) async fn chunk(
        &mut self,
        context: &mut RequestContext,
        deadline: Deadline,
    ) -> Result<Option<Bytes>, Interrupt> {
        if self.is_unreadable {
            return Err(Interrupt::Unreadable);
        }
        if let Some(first) = self.first.take()
            && let Some(data) = self.converted(first)?
        {
            return Ok(Some(data));
        }
        loop {
            match context.wait(deadline, self.rest.data()).await {
                Err(Limit::Patience(PatienceVerdict::Commit)) => return Err(Interrupt::Commit),
                Err(limit) => return Err(Interrupt::Waited(limit)),
                Ok(None) => return self.converted_end(),
                Ok(Some(Err(_))) => return Err(Interrupt::Broke),
                Ok(Some(Ok(data))) if data.is_empty() => {}
                Ok(Some(Ok(data))) => {
                    context.body_bytes(data.len());
                    if let Some(data) = self.converted(data)? {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    /// Bytes in the client's dialect, if there are any yet.
    fn converted(&mut self, data: Bytes) -> Result<Option<Bytes>, Interrupt> {
        let Some(converter) = &mut self.converter else { return Ok(Some(data)) };
        let mut out = Vec::new();
        self.is_unreadable = converter.feed(data, &mut out).is_err();
        if self.is_unreadable && out.is_empty() {
            return Err(Interrupt::Unreadable);
        }
        Ok((!out.is_empty()).then(|| out.into()))
    }

    /// What the end of the body means in the client's dialect.
    fn converted_end(&mut self) -> Result<Option<Bytes>, Interrupt> {
        let Some(converter) = &mut self.converter else { return Ok(None) };
        let mut out = Vec::new();
        converter.finish(&mut out).map_err(|_| Interrupt::Unreadable)?;
        Ok((!out.is_empty()).then(|| out.into()))
    }

    pub(super) fn interrupted(
        &self,
        context: &mut RequestContext,
        interrupt: Interrupt,
    ) -> Failure {
        match interrupt {
            // Whoever holds bytes has released them instead.
            Interrupt::Commit => self.failed(OutcomeKind::Cancelled, "the client's own timeout"),
            Interrupt::Unreadable => self.failed(OutcomeKind::Transport, "malformed stream"),
            Interrupt::Broke => self.failed(OutcomeKind::Transport, "the answer ended early"),
            Interrupt::Waited(limit) => {
                let status = Some(self.head.status.as_u16());
                let (outcome, detail) = context.stopped(limit, status);
                Failure { outcome, detail, reply: None }
            }
        }
    }

    pub(super) fn failed(&self, kind: OutcomeKind, detail: &'static str) -> Failure {
        Failure::after_head(self.head.status, kind, detail)
    }

    /// Whether the first line of the body is one of a stream; what was read for it is kept.
    async fn begins_like_events(&mut self, context: &mut RequestContext) -> Result<bool, Failure> {
        let mut begun = Vec::new();
        let opening = loop {
            match self.chunk(context, self.timers.first_content()).await {
                Ok(None) | Err(Interrupt::Commit) => break sniff::Opening::Other,
                Err(interrupt) => return Err(self.interrupted(context, interrupt)),
                Ok(Some(data)) => begun.extend_from_slice(&data),
            }
            let opening = sniff::opening(&begun);
            // More blank lines than that are no way to begin a stream.
            if opening != sniff::Opening::Unknown || begun.len() > BLANK_MAX {
                break opening;
            }
        };
        self.first = (!begun.is_empty()).then(|| begun.into());
        Ok(opening == sniff::Opening::Events)
    }

    /// The stream is complete: what remains of the body is nothing a client waits for.
    pub(super) fn whole(self, context: &mut RequestContext) -> AttemptResult {
        let usage = self.events.as_ref().map(EventReader::usage);
        if let Some(id) = self.events.as_ref().and_then(EventReader::response_id) {
            context.answered_under(id);
        }
        context.worker.pool.keep(self.rest);
        let is_events = self.events.is_some();
        AttemptResult::Whole { head: self.head, pieces: self.held, usage, is_events }
    }

    /// Waits for the first bytes of an answer that nobody here reads.
    async fn hold_to_first_bytes(mut self, context: &mut RequestContext) -> AttemptResult {
        context.answers_as(AnswerForm::AsItComes);
        match self.chunk(context, self.timers.idle(timer_now())).await {
            Err(interrupt) => AttemptResult::Failed(self.interrupted(context, interrupt)),
            Ok(None) => {
                AttemptResult::Failed(self.failed(OutcomeKind::ServerError, "an empty body"))
            }
            Ok(Some(data)) => {
                self.held.push_back(data);
                context.commit(CommitCause::FirstContent);
                AttemptResult::Passing(Box::new(self))
            }
        }
    }

    /// Holds a plain answer until it is whole, or too long to hold.
    async fn hold_to_whole_answer(
        mut self,
        context: &mut RequestContext,
        target: &Target,
        options: AttemptOptions,
        conversion: Option<&Conversion>,
    ) -> AttemptResult {
        // What is converted is held whole: half an answer cannot be said in another dialect.
        let is_converted = conversion.is_some();
        context.answers_as(if is_converted { AnswerForm::Converted } else { AnswerForm::Whole });
        let mut held_len = 0;
        loop {
            match self.chunk(context, self.timers.idle(timer_now())).await {
                Err(Interrupt::Commit) if !is_converted => {
                    context.commit(CommitCause::Patience);
                    return AttemptResult::Passing(Box::new(self));
                }
                Err(interrupt) => {
                    return AttemptResult::Failed(self.interrupted(context, interrupt));
                }
                Ok(None) => break,
                Ok(Some(data)) => {
                    held_len += data.len();
                    self.held.push_back(data);
                }
            }
            if is_converted && held_len > conversion::ANSWER_MAX {
                return AttemptResult::Failed(self.failed(OutcomeKind::ServerError, TOO_LONG));
            }
            if let Some(cause) = context.commit_due() {
                context.commit(cause);
                return AttemptResult::Passing(Box::new(self));
            }
        }
        let body = joined(&self.held);
        let spoken = conversion.map_or(options.dialect, Conversion::target_dialect);
        let ReadBody { kind, usage } = body::read(spoken, &body);
        if let BodyKind::Nothing(detail) = kind {
            return AttemptResult::Failed(self.failed(OutcomeKind::ServerError, detail));
        }
        context.worker.pool.keep(self.rest);
        if kind == BodyKind::Error {
            let outcome = classified::of_event(target, self.head.status, &body);
            let failure = Failure::inside(outcome, self.head.headers, body);
            return AttemptResult::Failed(failure.in_clients_dialect(conversion));
        }
        if let Some(conversion) = conversion {
            let Ok(body) = conversion.reply(&body) else {
                let failure = Failure::after_head(
                    self.head.status,
                    OutcomeKind::ServerError,
                    "an answer that cannot be converted",
                );
                return AttemptResult::Failed(failure);
            };
            self.held = VecDeque::from([body]);
        }
        context.commit(CommitCause::Complete);
        if matches!(options.dialect, Dialect::OpenAiResponses | Dialect::AnthropicMessages)
            && let Some(id) = self.held.front().and_then(|piece| response_id(piece))
        {
            context.answered_under(&id);
        }
        // What another dialect says was read in the provider's, and may have been told deeper down.
        let usage = usage.filter(|_| conversion.is_none());
        let usage = usage.or_else(|| Usage::of_pieces(self.held.make_contiguous()));
        AttemptResult::Whole { head: self.head, pieces: self.held, usage, is_events: false }
    }
}

/// Why an answer cannot be converted.
const TOO_LONG: &str = "an answer that is too long to be converted";

/// How many bytes of blank lines are read before an answer is taken for no stream.
const BLANK_MAX: usize = 4096;

/// An error event as an answer of its own.
pub(super) fn error_event(
    target: &Target,
    options: AttemptOptions,
    head: response::Parts,
    event: &[u8],
    converter: Option<&StreamConverter>,
) -> Failure {
    // The class is found in the provider's own words, which a conversion has translated.
    let words = converter.and_then(StreamConverter::failure).unwrap_or(event);
    let outcome = classified::of_event(target, head.status, words);
    Failure::inside(outcome, head.headers, body_of_event(options.dialect, event))
}

fn joined(pieces: &VecDeque<Bytes>) -> Bytes {
    match pieces.len() {
        1 => pieces[0].clone(),
        _ => pieces.iter().map(|piece| &piece[..]).collect::<Vec<_>>().concat().into(),
    }
}

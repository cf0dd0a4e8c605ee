//! One request of ours and its answer: a POST, and what follows on its stream.
//!
//! Rules kept here:
//! - Messages are told in the order they came, the answer last.
//! - A stream that ends before the answer is taken up again if its events had ids (2025-11-25: a
//!   server may close it and be asked again, which is told), but not for ever: [`RESUMES_MAX`]
//!   times, and [`FRUITLESS_MAX`] times in a row without an event. Otherwise the request may have
//!   been carried out, and nobody knows.
//! - Waiting has no limit here: whoever waits drops the task.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Response, StatusCode, header, response};
use tidegate_mcp::{cause::Delivery, message::Message};
use tidegate_net::upstream::UpstreamBody;
use tokio::time::{sleep, timeout};

use super::{
    conversation::{ConnectionUse, HttpConversation},
    failure::{self, Refused},
    reading::{self, EventStream, Resume},
};
use crate::{
    beside::{Received, is_large},
    transport::{ConnectionEvent, Failure},
};

/// An answer of ten minutes, asked for every half second.
const RESUMES_MAX: u32 = 1_200;
/// A server that has nothing to say this often has lost the stream.
const FRUITLESS_MAX: u32 = 5;
/// How long to wait before a stream is taken up again where the server does not say.
const RESUME_AFTER: Duration = Duration::from_secs(1);
/// A server may ask for more patience, up to this.
const RESUME_AFTER_MAX: Duration = Duration::from_secs(30);
/// And for less, down to this: half a second of nothing is no hurry.
const RESUME_AFTER_MIN: Duration = Duration::from_millis(100);

/// How much of a refusal's body is read.
const REFUSAL_MAX: usize = 64 * 1024;
/// And for how long: it follows its head at once, or says nothing.
const REFUSAL_WITHIN: Duration = Duration::from_secs(5);

/// What the head of an answer announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyKind {
    Json,
    Events,
    Other,
}

/// What an answer's body is, if it can be read as it comes.
pub(crate) fn kind_of(headers: &HeaderMap) -> BodyKind {
    let encoding = headers.get(header::CONTENT_ENCODING).map(|it| it.as_bytes());
    if encoding.is_some_and(|it| !it.is_empty() && !it.eq_ignore_ascii_case(b"identity")) {
        return BodyKind::Other;
    }
    let text = headers.get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let media = text.and_then(|text| text.split(';').next()).unwrap_or_default().trim();
    if media.eq_ignore_ascii_case("application/json") {
        BodyKind::Json
    } else if media.eq_ignore_ascii_case("text/event-stream") {
        BodyKind::Events
    } else {
        BodyKind::Other
    }
}

/// Makes a request, and tells what comes until its answer.
pub(super) async fn run(
    talk: &HttpConversation,
    call: u64,
    message: Bytes,
    heads: Option<HeaderMap>,
) -> Result<(), Failure> {
    if let Some(failure) = talk.refusal() {
        return Err(failure);
    }
    let had_session = talk.has_session();
    let post = || {
        let mut request = talk.request(Method::POST, message.clone(), None);
        if let Some(heads) = &heads {
            request.headers_mut().extend(heads.clone());
        }
        request
    };
    let (head, body) = talk.send(ConnectionUse::Calls, post).await?.into_parts();
    if !head.status.is_success() {
        return refused(talk, call, &head, body, had_session).await;
    }
    if heads.is_none()
        && let Some(name) = talk.note_session(&head.headers)
    {
        talk.tell(ConnectionEvent::Named(name)).await;
    }
    let told = |failure| Failure { status: Some(head.status.as_u16()), ..failure };
    match kind_of(&head.headers) {
        BodyKind::Json => json(talk, call, body).await.map_err(told),
        BodyKind::Events => {
            let stream = EventStream::new(body, Resume::default(), talk.place.answer_max());
            Box::pin(events(talk, call, stream)).await.map_err(told)
        }
        BodyKind::Other => Err(told(failure::malformed())),
    }
}

/// The answer in one piece.
async fn json(talk: &HttpConversation, call: u64, mut body: UpstreamBody) -> Result<(), Failure> {
    let bytes = reading::whole(&mut body, talk.place.answer_max()).await?;
    talk.pool.keep(body);
    if tell_all(talk, call, bytes).await? { Ok(()) } else { Err(failure::malformed()) }
}

/// The answer at the end of a stream, which may come in several parts.
async fn events(
    talk: &HttpConversation,
    call: u64,
    mut stream: EventStream,
) -> Result<(), Failure> {
    let mut fruitless = 0;
    for _ in 0..RESUMES_MAX {
        let ended = follow(talk, call, &mut stream).await;
        match ended {
            Ok(true) => {
                talk.pool.keep(stream.into_body());
                return Ok(());
            }
            Ok(false) if stream.resume.after.is_some() => {
                talk.tell(ConnectionEvent::Paused { call }).await
            }
            // What was lost with the connection can be asked for again.
            Ok(false) => {}
            Err(failure) if failure == failure::broken() => {}
            Err(failure) => return Err(failure),
        }
        fruitless = if stream.events == 0 { fruitless + 1 } else { 0 };
        let mut resume = stream.resume.clone();
        stream = loop {
            if resume.after.is_none() || fruitless >= FRUITLESS_MAX {
                return Err(failure::broken());
            }
            match take_up(talk, resume).await? {
                TakenUp::Stream(stream) => break *stream,
                TakenUp::NotNow(same) => resume = same,
            }
            fruitless += 1;
        };
    }
    Err(failure::broken())
}

/// Tells what a stream says until the answer (true) or its end (false).
async fn follow(
    talk: &HttpConversation,
    call: u64,
    stream: &mut EventStream,
) -> Result<bool, Failure> {
    while let Some(bytes) = stream.next().await? {
        if tell_all(talk, call, bytes).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What came of asking for the rest of a stream.
enum TakenUp {
    Stream(Box<EventStream>),
    NotNow(Resume),
}

/// Asks for the rest of a stream, after a while.
async fn take_up(talk: &HttpConversation, resume: Resume) -> Result<TakenUp, Failure> {
    let wait = resume.wait.map_or(RESUME_AFTER, |wait| Duration::from_millis(wait.0));
    sleep(wait.clamp(RESUME_AFTER_MIN, RESUME_AFTER_MAX)).await;
    let had_session = talk.has_session();
    let get = || talk.request(Method::GET, Bytes::new(), resume.after.as_ref());
    let Ok(response) = talk.send(ConnectionUse::Calls, get).await else {
        return Ok(TakenUp::NotNow(resume));
    };
    let (head, body) = response.into_parts();
    if head.status.is_success() && kind_of(&head.headers) == BodyKind::Events {
        let stream = EventStream::new(body, resume, talk.place.answer_max());
        return Ok(TakenUp::Stream(Box::new(stream)));
    }
    if head.status.is_server_error() || head.status == StatusCode::TOO_MANY_REQUESTS {
        return Ok(TakenUp::NotNow(resume));
    }
    let (failure, _) = refusal(talk, &head, body, had_session).await;
    // The request itself was taken long ago.
    let lost = Failure { delivery: Delivery::Maybe, ..failure };
    Err(if failure.is_session_loss { lost } else { failure::broken() })
}

/// Tells the messages in what came as one; true if the answer is among them.
async fn tell_all(talk: &HttpConversation, call: u64, bytes: Bytes) -> Result<bool, Failure> {
    let mut is_answered = false;
    if is_large(&bytes) {
        for received in reading::large(bytes).await? {
            // On the stream of one request nothing else is answered.
            let is_other = matches!(&received, Received::Answer(it) if it.call != call);
            is_answered |= received.answered() == Some(call);
            match received.into_event(Some(call)).filter(|_| !is_other) {
                Some(event) => talk.tell(event).await,
                None if is_other => {}
                None => return Err(failure::malformed()),
            }
        }
        return Ok(is_answered);
    }
    for bytes in reading::messages(bytes)? {
        is_answered |= reading::is_answer(&bytes, call)?;
        talk.tell(ConnectionEvent::Message { bytes, call: Some(call) }).await;
    }
    Ok(is_answered)
}

/// A refused request. A caller's fault that is told as an answer is one.
pub(crate) async fn refused(
    talk: &HttpConversation,
    call: u64,
    head: &response::Parts,
    body: UpstreamBody,
    had_session: bool,
) -> Result<(), Failure> {
    let (failure, body) = refusal(talk, head, body, had_session).await;
    let may_be_answer = head.status.is_client_error()
        && !failure.is_session_loss
        && !matches!(head.status.as_u16(), 401 | 403 | 429);
    if may_be_answer && matches!(reading::is_answer(&body, call), Ok(true)) {
        talk.tell(ConnectionEvent::Message { bytes: body, call: Some(call) }).await;
        return Ok(());
    }
    Err(Failure { is_spoken: Message::parse(&body).is_ok(), ..failure })
}

/// What an answer that is no success means, and its body or nothing.
pub(crate) async fn refusal(
    talk: &HttpConversation,
    head: &response::Parts,
    mut body: UpstreamBody,
    had_session: bool,
) -> (Failure, Bytes) {
    let read = timeout(REFUSAL_WITHIN, reading::whole(&mut body, REFUSAL_MAX)).await;
    let said = match read {
        Ok(Ok(said)) => {
            talk.pool.keep(body);
            said
        }
        Ok(Err(_)) | Err(_) => Bytes::new(),
    };
    let refused = Refused { status: head.status, headers: &head.headers, body: &said, had_session };
    (refused.failure(talk.clock.unix_ms()), said)
}

/// Reads the rest of an answer that nobody is interested in, so that its connection can be kept.
pub(crate) async fn discard(talk: &HttpConversation, response: Response<UpstreamBody>) {
    // A stream may stay open, and a connection is not worth that.
    if kind_of(response.headers()) == BodyKind::Events {
        return;
    }
    let mut body = response.into_body();
    if reading::whole(&mut body, REFUSAL_MAX).await.is_ok() {
        talk.pool.keep(body);
    }
}

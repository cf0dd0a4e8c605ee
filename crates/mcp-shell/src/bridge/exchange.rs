//! One POST to the gateway and everything that comes back for it.
//!
//! Rules kept here:
//! - Messages come in order, the awaited answers last; then the exchange is over.
//! - In a session, a stream that ends before its answer is taken up again where it ended, as long
//!   as its events have ids: [`RESUMES_MAX`] times, [`FRUITLESS_MAX`] times in a row without an
//!   event. A stream whose client gave the request up is not.
//! - Everything else that ends early may have been carried out, and nobody knows.
//! - Silence of [`QUIET_MAX`] ends it. A client may end it before, by dropping it.
//!
//! The gateway's own client of servers (`http/call.rs`) does the same for requests under numbers
//! of its own; here they are the client's, and what the gateway says in a refusal matters.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use tidegate_core::{outcome::OutcomeKind, time::Millis};
use tidegate_mcp::{
    cause::{Cause, Delivery},
    message::{self, Id},
};
use tidegate_net::upstream::{SplicedBody, UpstreamBody};
use tokio::time::{sleep, timeout};

use super::{
    trouble::Trouble,
    wire::{Wire, Worth},
};
use crate::{
    http::{
        call::{self, BodyKind},
        conversation::{ConnectionUse, HttpConversation},
        failure,
        reading::{self, EventStream, Resume},
    },
    transport::{Failure, MESSAGE_MAX},
};

/// Half an hour of an answer that is asked for every second or two.
const RESUMES_MAX: u32 = 1_200;
/// A gateway that has nothing to say this often has lost the stream, or is gone.
const FRUITLESS_MAX: u32 = 5;
/// How long to wait before a stream is taken up again: what the gateway says, within this.
const RESUME_AFTER: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));
/// Where it does not say.
const RESUME_USUAL: Duration = Duration::from_secs(1);
/// The longest call anybody was seen to make without a word of progress, and some.
const QUIET_MAX: Millis = Millis::minutes(60);

/// Whether a client has given a request up.
pub(super) type GivenUp = Rc<Cell<bool>>;

/// What is posted, and what is expected of it.
pub(super) struct Post<'a> {
    pub(super) wire: &'a Wire,
    pub(super) talk: &'a Rc<HttpConversation>,
    pub(super) message: Bytes,
    /// What is sent beside the headers of the session.
    pub(super) headers: HeaderMap,
    pub(super) worth: Worth,
    /// The requests in the message.
    pub(super) wants: Vec<Id>,
    pub(super) given_up: GivenUp,
}

/// The answer to a POST on its way.
pub(super) struct Exchange<'a> {
    post: Post<'a>,
    /// The head of the answer.
    pub(super) head: HeaderMap,
    body: Body,
    ready: VecDeque<Bytes>,
    resumes: u32,
    fruitless: u32,
}

enum Body {
    Json(UpstreamBody),
    Events(Box<EventStream>),
    Over,
}

impl<'a> Exchange<'a> {
    /// Posts a message and waits for the head of the answer.
    pub(super) async fn begin(post: Post<'a>) -> Result<Self, Trouble> {
        let had_session = post.talk.has_session();
        let sent = post.wire.send(post.talk, post.worth, || post.request());
        let response = timeout(quiet_max(), sent).await.map_err(|_| too_quiet())??;
        let (head, body) = response.into_parts();
        if !head.status.is_success() {
            let (failure, said) = call::refusal(post.talk, &head, body, had_session).await;
            return Err(Trouble::refused(failure, said));
        }
        let body = match call::kind_of(&head.headers) {
            BodyKind::Json => Body::Json(body),
            BodyKind::Events => {
                Body::Events(Box::new(EventStream::new(body, Resume::default(), MESSAGE_MAX)))
            }
            BodyKind::Other if post.wants.is_empty() => Body::Over,
            BodyKind::Other => return Err(failure::malformed().into()),
        };
        let ready = VecDeque::new();
        Ok(Self { post, head: head.headers, body, ready, resumes: 0, fruitless: 0 })
    }

    /// The next message; none when every request is answered.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Trouble> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                self.note(&message)?;
                return Ok(Some(message));
            }
            if self.post.wants.is_empty() {
                self.keep_connection();
                return Ok(None);
            }
            match &mut self.body {
                Body::Json(body) => {
                    let read = timeout(quiet_max(), reading::whole(body, MESSAGE_MAX)).await;
                    self.ready.push_back(read.map_err(|_| too_quiet())??);
                    self.keep_connection();
                }
                Body::Events(stream) => match timeout(quiet_max(), stream.next()).await {
                    Err(_) => return Err(too_quiet().into()),
                    Ok(Ok(Some(message))) => self.ready.push_back(message),
                    Ok(Ok(None)) => self.ended_early().await?,
                    Ok(Err(failure)) if failure == failure::broken() => self.ended_early().await?,
                    Ok(Err(failure)) => return Err(failure.into()),
                },
                Body::Over if self.post.given_up.get() => return Ok(None),
                Body::Over => return Err(failure::malformed().into()),
            }
        }
    }

    /// The requests that have no answer yet.
    pub(super) fn wants(&self) -> &[Id] {
        &self.post.wants
    }

    /// Crosses off what a message answers. What is no message cannot be handed on.
    fn note(&mut self, message: &Bytes) -> Result<(), Failure> {
        for part in reading::messages(message.clone())? {
            let head: AnswerHead<'_> =
                serde_json::from_slice(&part).map_err(|_| failure::malformed())?;
            if let (None, Some(id)) = (head.method, head.id) {
                self.post.wants.retain(|wanted| wanted.as_json() != id.get());
            }
        }
        Ok(())
    }

    /// The connection of an answer that was read to its end serves the next one.
    fn keep_connection(&mut self) {
        match std::mem::replace(&mut self.body, Body::Over) {
            Body::Json(body) => self.post.wire.pool.keep(body),
            Body::Events(stream) => self.post.wire.pool.keep(stream.into_body()),
            Body::Over => {}
        }
    }

    /// Takes a stream up again that ended before its answer, if that can be.
    async fn ended_early(&mut self) -> Result<(), Trouble> {
        let Body::Events(stream) = std::mem::replace(&mut self.body, Body::Over) else {
            return Ok(());
        };
        if self.post.given_up.get() {
            return Ok(());
        }
        self.fruitless = if stream.events == 0 { self.fruitless + 1 } else { 0 };
        let mut resume = stream.resume;
        loop {
            self.resumes += 1;
            let is_hopeless = self.resumes > RESUMES_MAX || self.fruitless >= FRUITLESS_MAX;
            if is_hopeless || resume.after.is_none() || !self.post.talk.has_session() {
                return Err(failure::broken().into());
            }
            match self.take_up(resume).await? {
                Ok(stream) => {
                    self.body = Body::Events(stream);
                    return Ok(());
                }
                Err(same) => resume = same,
            }
            self.fruitless += 1;
        }
    }

    /// Asks for the rest of a stream, after a while; where that cannot be now, for the same again.
    async fn take_up(&self, resume: Resume) -> Result<Result<Box<EventStream>, Resume>, Trouble> {
        let wait = resume.wait.map_or(RESUME_USUAL, |wait| Duration::from_millis(wait.0));
        sleep(wait.clamp(RESUME_AFTER.0, RESUME_AFTER.1)).await;
        let talk = self.post.talk;
        let get = || talk.request(Method::GET, Bytes::new(), resume.after.as_ref());
        let Ok(response) = talk.send(ConnectionUse::Calls, get).await else {
            return Ok(Err(resume));
        };
        let (head, body) = response.into_parts();
        if head.status.is_success() && call::kind_of(&head.headers) == BodyKind::Events {
            return Ok(Ok(Box::new(EventStream::new(body, resume, MESSAGE_MAX))));
        }
        if head.status.is_server_error() || head.status == StatusCode::TOO_MANY_REQUESTS {
            return Ok(Err(resume));
        }
        let (failure, _) = call::refusal(talk, &head, body, true).await;
        // The request itself was taken long ago.
        let lost = Failure { delivery: Delivery::Maybe, ..failure };
        Err(if failure.is_session_loss { lost } else { failure::broken() }.into())
    }
}

impl Post<'_> {
    fn request(&self) -> Request<SplicedBody> {
        let mut request = self.talk.request(Method::POST, self.message.clone(), None);
        request.headers_mut().extend(self.headers.clone());
        request
    }
}

/// Whether anybody answers who speaks MCP. `ping` opens nothing, in either era.
pub(super) async fn is_answered(wire: &Wire) -> bool {
    let id = Id::number(0);
    let post = Post {
        wire,
        talk: &wire.without_session(),
        message: message::request(&id, "ping", None).into(),
        headers: HeaderMap::new(),
        worth: Worth::Usual,
        wants: vec![id],
        given_up: GivenUp::default(),
    };
    match Exchange::begin(post).await {
        Ok(mut exchange) => exchange.next().await.is_ok(),
        Err(trouble) => trouble.is_of_mcp(),
    }
}

/// The part of a message that is looked at.
#[derive(Deserialize)]
struct AnswerHead<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<IgnoredAny>,
}

const fn quiet_max() -> Duration {
    Duration::from_millis(QUIET_MAX.0)
}

const fn too_quiet() -> Failure {
    failure::plain(Cause::TimedOut(QUIET_MAX), Delivery::Maybe, OutcomeKind::Timeout)
}

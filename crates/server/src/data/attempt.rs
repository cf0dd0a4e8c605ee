//! One attempt, up to the moment of commitment: send, watch, judge.
//!
//! Until the first content of a stream, or the whole of a short answer, nothing is released: what
//! goes wrong before that is a failure of this attempt only, and the request can go elsewhere.
//!
//! Rules kept here:
//! - Frames that only announce are held, as they came, until the first content, or for as long as
//!   the route says (`hold.rs`).
//! - A connection that was kept may have been closed meanwhile: what certainly was not sent, or
//!   broke before any answer, goes out once more on a fresh one, within the same attempt.
//! - The limits on waiting are those of `timers.rs`; nothing here waits without one.

use std::collections::VecDeque;
use std::future::Future;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode, Version, header, response};
use tidegate_core::outcome::{Outcome, OutcomeKind};
use tidegate_wire::{
    body::{self, BodyKind},
    dialect::Dialect,
    sse::Splitter,
    usage::Usage,
    watch::Watch,
};
use tokio::time::{Instant, timeout_at};

use super::{
    classified,
    hold::Hold,
    journey::Journey,
    timers::{Timers, Until},
};
use crate::{
    provider::Target,
    upstream::{Arriving, ConnectError, Lease, Pieces, SendError},
};

/// How far an attempt got.
pub(crate) enum Opened {
    /// The whole answer is here, and it is a success.
    Whole { head: response::Parts, pieces: VecDeque<Bytes>, usage: Option<Usage> },
    /// There is content to release; the rest follows.
    Passing(Box<Opening>),
    /// It failed before anything was released.
    Failed(Failure),
}

/// An answer that has begun.
pub(crate) struct Opening {
    pub(crate) head: response::Parts,
    pub(crate) held: VecDeque<Bytes>,
    pub(crate) rest: Arriving,
    pub(crate) timers: Timers,
    /// When content last came, if it came before the commit.
    pub(crate) heard: Option<Instant>,
    /// `None` for a body that is not a stream of events.
    pub(crate) events: Option<(Splitter, Watch)>,
}

/// A failed attempt: how it ended, and what the provider said, if it said anything.
pub(crate) struct Failure {
    pub(crate) outcome: Outcome,
    pub(crate) detail: &'static str,
    pub(crate) said: Option<(StatusCode, HeaderMap, Bytes)>,
}

impl Failure {
    fn unanswered(kind: OutcomeKind, detail: &'static str) -> Self {
        Self { outcome: Outcome::unanswered(kind), detail, said: None }
    }
}

/// How much of an error's body is read: enough for any error a provider means to be read.
const ERROR_BODY_MAX: usize = 1024 * 1024;

/// How long an answer in pieces may be to be put together for a look: errors are short, and long
/// answers are not to be copied.
const ERROR_IN_PIECES_MAX: usize = 64 * 1024;

/// What an attempt needs to know of its request.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) dialect: Dialect,
    pub(crate) is_stream: bool,
    /// How far a stream is held beyond its first content.
    pub(crate) hold: Hold,
    /// How much may be held before the commit.
    pub(crate) hold_max: usize,
    /// How much of an answer that does not stream is held.
    pub(crate) answer_max: usize,
    /// How long one event may be.
    pub(crate) event_max: usize,
}

/// Makes the attempt that the journey has a permit for.
pub(crate) async fn open(
    journey: &mut Journey,
    target: &Target,
    build: &dyn Fn() -> Option<Request<Pieces>>,
    wanted: Wanted,
) -> Opened {
    let mut timers = Timers::new(target.timeouts, journey.worker.gateway.now(), journey.deadline());
    let response = match send(journey, target, build, &mut timers, wanted.is_stream).await {
        Ok(response) => response,
        Err(failure) => return Opened::Failed(failure),
    };
    journey.head();
    let (head, rest) = response.into_parts();
    if !head.status.is_success() {
        return Opened::Failed(refused(journey, target, head, rest, &timers).await);
    }
    let content_type = head.headers.get(header::CONTENT_TYPE).map(|it| it.as_bytes());
    let is_events = content_type.is_some_and(|it| it.starts_with(b"text/event-stream"));
    let opening = Opening {
        head,
        held: VecDeque::new(),
        rest,
        timers,
        heard: None,
        events: is_events.then(|| (Splitter::new(wanted.event_max), Watch::new(wanted.dialect))),
    };
    if is_events {
        opening.hold_to_commit(journey, target, wanted).await
    } else {
        opening.hold_to_whole_answer(journey, target, wanted).await
    }
}

/// Waits for something until a limit.
pub(super) async fn within<T>(until: Until, future: impl Future<Output = T>) -> Result<T, Until> {
    timeout_at(until.at, future).await.map_err(|_| until)
}

async fn send(
    journey: &Journey,
    target: &Target,
    build: &dyn Fn() -> Option<Request<Pieces>>,
    timers: &mut Timers,
    is_stream: bool,
) -> Result<Response<Arriving>, Failure> {
    let pool = &journey.worker.pool;
    let lost = || Failure::unanswered(OutcomeKind::Transport, "connection lost");
    for is_second in [false, true] {
        let Some(request) = build() else {
            return Err(Failure::unanswered(OutcomeKind::Cancelled, "cannot be sent"));
        };
        let kept = if is_second { None } else { pool.kept(&target.provider.connections) };
        let lease = match kept {
            Some(lease) => lease,
            None => connect(journey, target, timers).await?,
        };
        let is_reused = lease.is_reused;
        timers.sent();
        let until = if is_stream { timers.first_content() } else { timers.answer() };
        match within(until, lease.send(request)).await {
            Err(until) => {
                let (outcome, detail) = timers.outcome(until.limit, None);
                return Err(Failure { outcome, detail, said: None });
            }
            Ok(Ok(response)) => return Ok(response),
            Ok(Err(SendError::NotSent)) if is_reused => {}
            Ok(Err(SendError::Broken(error)))
                // Closed or reset, by the time it had been kept: no word on the provider's state.
                if is_reused && !error.is_parse() => {}
            Ok(Err(SendError::Broken(error))) if error.is_parse() => {
                return Err(Failure::unanswered(OutcomeKind::Transport, "malformed answer"));
            }
            Ok(Err(_)) => return Err(lost()),
        }
    }
    Err(lost())
}

async fn connect(journey: &Journey, target: &Target, timers: &Timers) -> Result<Lease, Failure> {
    let pool = &journey.worker.pool;
    let provider = &target.provider;
    let until = timers.connect();
    let connected = match &provider.place {
        Some(place) => within(until, pool.fresh(&provider.connections, place)).await,
        None => {
            let io = journey.worker.gateway.dial_fake(&provider.name);
            within(until, pool.handshake(&provider.connections, io, false)).await
        }
    };
    match connected {
        Ok(Ok(lease)) => Ok(lease),
        Ok(Err(ConnectError::Shortage)) => {
            Err(Failure::unanswered(OutcomeKind::Cancelled, "out of local resources"))
        }
        Ok(Err(error)) => Err(Failure::unanswered(OutcomeKind::Transport, error.word())),
        Err(until) if until.limit == super::timers::Limit::Deadline => {
            let (outcome, detail) = timers.outcome(until.limit, None);
            Err(Failure { outcome, detail, said: None })
        }
        Err(_) => Err(Failure::unanswered(OutcomeKind::Transport, "connect timed out")),
    }
}

/// An answer that is no success: read what it says, and class it.
async fn refused(
    journey: &Journey,
    target: &Target,
    head: response::Parts,
    mut rest: Arriving,
    timers: &Timers,
) -> Failure {
    let mut said = Vec::new();
    let is_read = loop {
        let Ok(frame) = within(timers.idle(Instant::now()), rest.frame()).await else {
            break false;
        };
        match frame {
            None => break true,
            Some(Err(_)) => break false,
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    said.extend_from_slice(&data);
                }
            }
        }
        if said.len() > ERROR_BODY_MAX {
            break false;
        }
    };
    if is_read {
        journey.worker.pool.keep(rest);
    }
    let unix_ms = journey.worker.gateway.clock.unix_ms();
    let outcome = classified::of_answer(target, head.status, &head.headers, &said, unix_ms);
    let said = Some((head.status, head.headers, said.into()));
    Failure { outcome, detail: outcome.kind.word(), said }
}

impl Opening {
    /// The body is over; whether it may end here.
    pub(super) fn see_end(&mut self) -> bool {
        let Some((splitter, watch)) = &mut self.events else { return true };
        if let Some(frame) = splitter.finish() {
            watch.see(&frame);
        }
        self.held.extend(splitter.take_run().into_iter().filter(|it| !it.is_empty()));
        watch.may_end()
    }

    /// The stream is complete: what remains of the body is nothing a client waits for.
    pub(super) fn whole(self, journey: &Journey) -> Opened {
        let usage = self.events.as_ref().map(|(_, watch)| watch.usage());
        journey.worker.pool.keep(self.rest);
        Opened::Whole { head: self.head, pieces: self.held, usage }
    }

    /// Holds a plain answer until it is whole, or too long to hold.
    async fn hold_to_whole_answer(
        mut self,
        journey: &mut Journey,
        target: &Target,
        wanted: Wanted,
    ) -> Opened {
        let status = Some(self.head.status.as_u16());
        let mut held_len = 0;
        loop {
            let until = self.timers.idle(Instant::now());
            let frame = match within(until, self.rest.frame()).await {
                Err(until) => {
                    let (outcome, detail) = self.timers.outcome(until.limit, status);
                    return Opened::Failed(Failure { outcome, detail, said: None });
                }
                Ok(None) => break,
                Ok(Some(Err(_))) => {
                    let outcome = Outcome { status, ..Outcome::unanswered(OutcomeKind::Transport) };
                    let detail = "the answer ended early";
                    return Opened::Failed(Failure { outcome, detail, said: None });
                }
                Ok(Some(Ok(frame))) => frame,
            };
            let Ok(data) = frame.into_data() else { continue };
            held_len += data.len();
            self.held.push_back(data);
            if held_len > wanted.answer_max {
                journey.content(self.timers.since_sent());
                return Opened::Passing(Box::new(self));
            }
        }
        if is_ended_by_closing(&self.head) && !body::is_whole(&joined(&self.held)) {
            let outcome = Outcome { status, ..Outcome::unanswered(OutcomeKind::Transport) };
            let detail = "the answer ended early";
            return Opened::Failed(Failure { outcome, detail, said: None });
        }
        journey.worker.pool.keep(self.rest);
        if let Some(error) = error_in(&self.held) {
            let outcome = classified::of_event(target, self.head.status, &error);
            let said = Some((self.head.status, self.head.headers, error));
            return Opened::Failed(Failure { outcome, detail: "an error inside the answer", said });
        }
        journey.content(self.timers.since_sent());
        let usage = Usage::of_pieces(self.held.make_contiguous());
        Opened::Whole { head: self.head, pieces: self.held, usage }
    }
}

/// Whether only the end of the connection says where this body of JSON ends: then a connection that
/// was lost looks like a good end.
fn is_ended_by_closing(head: &response::Parts) -> bool {
    let is_framed = head.version >= Version::HTTP_2
        || head.headers.contains_key(header::CONTENT_LENGTH)
        || head.headers.contains_key(header::TRANSFER_ENCODING);
    let has_no_body = head.status == StatusCode::NO_CONTENT;
    let kind = head.headers.get(header::CONTENT_TYPE).map(|it| it.as_bytes());
    let is_json = kind.is_none_or(|it| memchr::memmem::find(it, b"json").is_some());
    !is_framed && !has_no_body && is_json && !head.headers.contains_key(header::CONTENT_ENCODING)
}

fn joined(pieces: &VecDeque<Bytes>) -> Bytes {
    match pieces.len() {
        1 => pieces[0].clone(),
        _ => pieces.iter().map(|piece| &piece[..]).collect::<Vec<_>>().concat().into(),
    }
}

/// The error that an answer is, in however many pieces it came.
fn error_in(held: &VecDeque<Bytes>) -> Option<Bytes> {
    let whole = match held.len() {
        0 => return None,
        1 => held[0].clone(),
        _ if held.iter().map(Bytes::len).sum::<usize>() > ERROR_IN_PIECES_MAX => return None,
        _ => joined(held),
    };
    (body::kind(&whole) == BodyKind::Error).then_some(whole)
}

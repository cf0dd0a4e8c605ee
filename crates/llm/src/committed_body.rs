//! An answer on its way to the client, after commitment: no retry, no splice.
//!
//! Rules kept here:
//! - Bytes are forwarded as they came. Of a stream, whole events are released, so that an explicit
//!   error can follow if it breaks.
//! - A stream ends with its dialect's terminator or with an explicit error event, never silently
//!   (I9). A broken plain body aborts the connection.
//! - Our own secrets are covered in everything that is released (S2).
//! - The outcome is reported before the last byte is released, so that a client that asks again at
//!   once meets the new state.
//! - Silence is measured between events with content: comments and pings do not count.
//! - When the gateway's drain is over, a stream ends with an error event like any other break.
//! - Dropped unfinished, which is what happens when the client goes away, the attempt is cancelled
//!   and the upstream connection closed at once.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use tidegate_core::{
    commit::CommitCause,
    outcome::{Outcome, OutcomeKind},
};
use tidegate_net::client_body::Broke;
use tidegate_net::upstream::UpstreamBody;
use tidegate_runtime::{clock::timer_now, dormant::Dormant};
use tidegate_wire::{
    convert::stream_converter::StreamConverter,
    dialect::Dialect,
    error_body::{OwnError, OwnErrorKind},
    events::{EventReader, Step},
    mask::{Mask, MaskedStream},
};
use tokio::sync::futures::OwnedNotified;
use tokio::time::Sleep;

use super::{
    attempt::PendingResponse,
    request_context::RequestContext,
    timers::{Deadline, Timers},
};

/// Why a stream broke that nothing else is wrong with.
const UNREADABLE: &str = "an event cannot be converted";

/// An answer on its way.
pub(crate) struct CommittedBody {
    context: RequestContext,
    /// Ready to be released.
    ready: VecDeque<Bytes>,
    rest: Option<UpstreamBody>,
    events: Option<EventReader>,
    /// Turns the target's dialect into the client's, where they differ.
    converter: Option<Box<StreamConverter>>,
    masked: MaskedStream,
    dialect: Dialect,
    status: u16,
    timers: Timers,
    silence: Pin<Box<Sleep>>,
    /// When the silence ends it, and what that means. The timer may be set to an earlier moment:
    /// moments are compared, timers are moved only when they ring.
    deadline: Deadline,
    /// The end of the gateway's drain; of interest to streams only.
    drained: Option<Dormant<Pin<Box<OwnedNotified>>>>,
    /// After `ready`: the end, or an abort.
    is_over: bool,
    is_aborted: bool,
}

impl CommittedBody {
    pub(crate) fn new(
        context: RequestContext,
        pending: PendingResponse,
        dialect: Dialect,
        mask: Arc<Mask>,
    ) -> Self {
        let drained =
            pending.events.as_ref().map(|_| Dormant::new(Box::pin(context.worker.drained())));
        let deadline = match pending.last_content_at {
            Some(last) => pending.timers.idle(last),
            // Committed without content, because its client would not wait any longer.
            None if pending.events.is_some() => pending.timers.first_content(),
            None => pending.timers.idle(timer_now()),
        };
        let mut committed = Self {
            context,
            ready: VecDeque::new(),
            rest: Some(pending.rest),
            events: pending.events,
            converter: pending.converter,
            masked: MaskedStream::new(mask),
            dialect,
            status: pending.head.status.as_u16(),
            timers: pending.timers,
            silence: Box::pin(tokio::time::sleep_until(deadline.at)),
            deadline,
            drained,
            is_over: false,
            is_aborted: false,
        };
        committed.release(pending.held);
        // More may have come in the chunk with the first content.
        committed.read_on();
        if pending.is_unreadable && !committed.is_over {
            committed.broke(OutcomeKind::Truncated, UNREADABLE);
        }
        committed
    }

    /// Makes bytes of the answer ready.
    fn release(&mut self, pieces: impl IntoIterator<Item = Bytes>) {
        for piece in pieces {
            let covered = self.masked.feed(piece);
            if !covered.is_empty() {
                self.ready.push_back(covered);
            }
        }
    }

    /// More of the answer.
    fn take(&mut self, data: Bytes) {
        match &mut self.events {
            None => {
                self.release([data]);
                self.restart_silence();
            }
            Some(reader) => {
                let Some(converter) = &mut self.converter else {
                    reader.feed(data);
                    return self.read_on();
                };
                let mut out = Vec::new();
                let outcome = converter.feed(data, &mut out);
                reader.feed(out.into());
                self.read_on();
                if outcome.is_err() && !self.is_over {
                    self.broke(OutcomeKind::Truncated, UNREADABLE);
                }
            }
        }
    }

    /// What the end of the body means in the client's dialect.
    fn convert_end(&mut self) {
        let (Some(reader), Some(converter)) = (&mut self.events, &mut self.converter) else {
            return;
        };
        let mut out = Vec::new();
        // What cannot be read here is missed as the end of the stream.
        if converter.finish(&mut out).is_ok() && !out.is_empty() {
            reader.feed(out.into());
            self.read_on();
        }
    }

    /// Releases the events that have come, up to the one that ends the stream.
    fn read_on(&mut self) {
        let Some(reader) = &mut self.events else { return };
        let mut has_content = false;
        let end = loop {
            match reader.next_event() {
                None => break None,
                Some(Step::Quiet) => {}
                Some(Step::Content) => has_content = true,
                end => break end,
            }
        };
        let pieces = reader.take();
        self.release(pieces);
        if has_content {
            self.context.content_event();
            self.context.commit(CommitCause::FirstContent);
            self.restart_silence();
        }
        match end {
            None | Some(Step::Quiet | Step::Content) => {}
            Some(Step::Complete) => self.succeeded(),
            // The upstream's own error event is already in `ready`: it is the explicit end.
            Some(Step::Failed(_)) => {
                self.report(OutcomeKind::Truncated, "an error inside the stream");
                self.over();
            }
            Some(Step::Malformed) => self.broke(OutcomeKind::Truncated, "an event is no JSON"),
            Some(Step::TooLong) => self.broke(OutcomeKind::Truncated, "an event is too long"),
        }
    }

    /// Content came: the silence is over.
    fn restart_silence(&mut self) {
        self.deadline = self.timers.idle(timer_now());
    }

    /// Whether the silence has lasted for too long.
    fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.silence.deadline() > self.deadline.at {
            self.silence.as_mut().reset(self.deadline.at);
        }
        loop {
            ready!(self.silence.as_mut().poll(cx));
            if self.silence.deadline() >= self.deadline.at {
                return Poll::Ready(());
            }
            self.silence.as_mut().reset(self.deadline.at);
        }
    }

    /// The upstream closed the body.
    fn ended(&mut self) {
        self.convert_end();
        if self.is_over {
            return;
        }
        let Some(reader) = &mut self.events else {
            return self.succeeded();
        };
        if reader.finish() {
            let closing = reader.closing();
            let [carried, run] = reader.take();
            self.release([carried, run, closing]);
            self.succeeded();
        } else {
            self.broke(OutcomeKind::Truncated, "the stream ended early");
        }
    }

    fn succeeded(&mut self) {
        match &self.events {
            Some(reader) => {
                if let Some(id) = reader.response_id() {
                    self.context.answered_under(id);
                }
                self.context.used(reader.usage());
            }
            // The time to the answer, unless it was known to have content before.
            None => self.context.commit(CommitCause::Complete),
        }
        let waiting = self.masked.finish();
        if !waiting.is_empty() {
            self.ready.push_back(waiting);
        }
        self.report(OutcomeKind::Success, "");
        if let Some(rest) = self.rest.take() {
            self.context.worker.pool.keep(rest);
        }
        self.over();
    }

    /// The answer broke: say so inside it if it is a stream, else abort.
    fn broke(&mut self, kind: OutcomeKind, detail: &'static str) {
        self.report(kind, detail);
        if let Some(reader) = &self.events {
            // An event of which a part is out has to be closed first. Its JSON is broken, so that
            // no client can take it for whole.
            if reader.is_mid_event() {
                self.ready.push_back(Bytes::from_static(b"\n\n"));
            }
            let id = self.context.request_id();
            let target = self.context.resolved().unwrap_or_default();
            let message = format!("the answer of `{target}` broke: {detail} (request {id})");
            let error = OwnError::new(OwnErrorKind::StreamBroken, &message);
            let error = OwnError { request_id: Some(id), ..error };
            self.ready.push_back(error.event(self.dialect, reader.next_sequence()));
        } else {
            self.is_aborted = true;
        }
        self.over();
    }

    fn over(&mut self) {
        self.is_over = true;
        self.rest = None;
    }

    fn report(&mut self, kind: OutcomeKind, detail: &'static str) {
        let outcome = Outcome::broken(kind, Some(self.status));
        self.context.report(&outcome, detail);
        self.context.finished(self.status);
    }
}

impl Body for CommittedBody {
    type Data = Bytes;
    type Error = Broke;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broke>>> {
        let this = self.get_mut();
        loop {
            if let Some(bytes) = this.ready.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
            if this.is_aborted {
                this.is_aborted = false;
                return Poll::Ready(Some(Err(Broke)));
            }
            let Some(rest) = this.rest.as_mut().filter(|_| !this.is_over) else {
                return Poll::Ready(None);
            };
            match rest.poll_data(cx) {
                Poll::Ready(Some(Ok(data))) => this.take(data),
                Poll::Ready(Some(Err(_))) => this.broke(OutcomeKind::Truncated, "connection lost"),
                Poll::Ready(None) => this.ended(),
                Poll::Pending if this.poll_silence(cx).is_ready() => {
                    let limit = this.deadline.limit;
                    let (outcome, detail) = this.context.stopped(limit, Some(this.status));
                    this.broke(outcome.kind, detail);
                }
                Poll::Pending => match this.drained.as_mut().map(|it| Pin::new(it).poll(cx)) {
                    Some(Poll::Ready(())) => {
                        this.broke(OutcomeKind::Cancelled, "the gateway is shutting down");
                    }
                    Some(Poll::Pending) | None => return Poll::Pending,
                },
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match (&self.events, &self.rest) {
            (None, Some(rest)) => {
                let ready: usize = self.ready.iter().map(Bytes::len).sum();
                let ready = (ready + self.masked.waiting()) as u64;
                rest.exact_len().map_or_else(SizeHint::new, |it| SizeHint::with_exact(it + ready))
            }
            _ => SizeHint::new(),
        }
    }
}

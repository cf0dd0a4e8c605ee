//! A client's connection as bytes, with limits on waiting for the client.
//!
//! Rules kept here:
//! - A head that has begun must be whole within [`HEAD_WITHIN`]; between two requests a connection
//!   may idle for [`IDLE_FOR`]. Idling is not dawdling: agents think between two requests.
//! - A client that takes nothing for a minute has gone (`write_watch.rs`).
//! - A client that has sent its whole request and closed its side still gets its answer
//!   ([`super::super::half_close`]), unless closing calls its request off.
//! - Who waits holds no buffer: what comes is read to the stack first, and kept in as much memory
//!   as it has bytes. Only the rest of a long body is read to where it stays, in memory that is
//!   given back if nothing comes.
//!
//! Moments are compared, timers are not moved: a request costs a look at the clock, and only a wait
//! that ends earlier than the last one touches a timer.

use std::any::Any;
use std::future::Future;
use std::io;
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tidegate_runtime::clock::timer_now;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep_until};

use super::super::activity::{Activity, Wait};
use super::super::half_close::{Beats, INTERIM};
use super::super::handover::FirstRequest;
use super::super::write_watch::WriteWatch;
use super::BodyBroke;
use super::framing::{RequestFraming, Taken};
use super::head::{HeadFault, HeadSearch, RequestHead};
use super::outgoing::OutgoingAnswer;

/// A client that has not sent its request head by then is not going to.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// What most load balancers and SDKs take for granted.
pub(in super::super) const IDLE_FOR: Duration = Duration::from_secs(75);
/// After the last answer, what a client is still sending is read and dropped for so long, and so
/// much of it: closing the socket at once would take the answer away from it.
const LINGER_FOR: Duration = Duration::from_secs(2);
const LINGER_BYTES: usize = 1 << 20;
/// How much is read at once: a usual request fits.
const READ_AT_ONCE: usize = 8 * 1024;
/// How much of a long body is read at once.
const READ_LONG: usize = 256 * 1024;
/// How much of what comes early is read, to learn whether the client has gone.
const READ_EARLY: usize = 256;

/// What bytes are read from and written to.
trait Socket: AsyncRead + AsyncWrite + Unpin + Any {}

impl<T: AsyncRead + AsyncWrite + Unpin + Any> Socket for T {}

/// A client's connection.
pub(in super::super) struct Wire {
    io: Box<dyn Socket>,
    /// The head that had come when this thread took the connection over.
    given: Option<Box<RequestHead>>,
    /// Read and not used yet.
    buffer: BytesMut,
    search: HeadSearch,
    /// The body of the request under way.
    framing: RequestFraming,
    /// Which request of the connection is under way.
    request: u64,
    expects_continue: bool,
    /// What is left to write of an interim response.
    interim: &'static [u8],
    activity: Rc<Activity>,
    read_timer: Pin<Box<Sleep>>,
    watch: WriteWatch,
    /// Nothing more is read: the client has sent all it had to send, or was given enough time.
    has_ended: bool,
    /// What came was no request, and the rest of it may still be on its way.
    has_refused: bool,
    beats: Option<Beats>,
    /// What is left of the time and the bytes to read before the socket is closed.
    linger: Option<(Pin<Box<Sleep>>, usize)>,
}

/// What waiting for a request came to.
#[derive(Debug)]
pub(super) enum NextHead {
    Request(Box<RequestHead>),
    /// No request can be read; it is answered, and the connection closed.
    Refused(HeadFault),
    /// The client has closed the connection, or was silent for too long.
    Over,
}

impl Wire {
    pub(in super::super) fn new(
        io: impl AsyncRead + AsyncWrite + Unpin + 'static,
        activity: &Rc<Activity>,
    ) -> Self {
        let activity = Rc::clone(activity);
        Self {
            io: Box::new(io),
            given: None,
            buffer: BytesMut::new(),
            search: HeadSearch::default(),
            framing: RequestFraming::Ended,
            request: 0,
            expects_continue: false,
            interim: &[],
            activity,
            read_timer: Box::pin(sleep_until(timer_now() + IDLE_FOR)),
            watch: WriteWatch::default(),
            has_ended: false,
            has_refused: false,
            beats: None,
            linger: None,
        }
    }

    /// A connection that another thread has read from.
    pub(in super::super) fn amid(
        stream: TcpStream,
        activity: &Rc<Activity>,
        FirstRequest { head, rest }: FirstRequest,
    ) -> Self {
        Self { given: Some(head), buffer: rest, ..Self::new(stream, activity) }
    }

    pub(super) fn activity(&self) -> &Rc<Activity> {
        &self.activity
    }

    /// Whether another thread can take it after so many requests: its bytes are those that the
    /// system carries.
    pub(super) fn may_go(&self, requests: u64) -> bool {
        let io: &dyn Any = &*self.io;
        self.request >= requests && !self.has_ended && io.is::<TcpStream>()
    }

    /// What another thread needs to go on, if it is plain and the system lets it go.
    pub(super) fn into_parts(self) -> Option<(std::net::TcpStream, BytesMut)> {
        let io: Box<dyn Any> = self.io;
        let stream = io.downcast::<TcpStream>().ok()?.into_std().ok()?;
        Some((stream, self.buffer))
    }

    /// Whether nothing of a request has come that was not read.
    pub(super) fn is_between_requests(&self) -> bool {
        self.buffer.is_empty() && self.framing.has_ended()
    }

    /// Whether the body of the request under way was read to its end.
    pub(super) fn has_read_body(&self) -> bool {
        self.framing.has_ended()
    }

    /// Waits for the head of the next request.
    pub(super) fn poll_head(&mut self, cx: &mut Context<'_>, limit: usize) -> Poll<NextHead> {
        if let Some(head) = self.given.take() {
            return Poll::Ready(NextHead::Request(head));
        }
        loop {
            match self.search.take(&mut self.buffer, limit) {
                Ok(Some(head)) => return Poll::Ready(NextHead::Request(Box::new(head))),
                Ok(None) => {}
                Err(fault) => {
                    self.has_refused = true;
                    return Poll::Ready(NextHead::Refused(fault));
                }
            }
            match self.poll_fill(cx, READ_AT_ONCE) {
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(NextHead::Over),
                Poll::Ready(Ok(_)) => {}
                Poll::Pending => {
                    ready!(self.poll_patience(cx));
                    self.has_ended = true;
                    return Poll::Ready(NextHead::Over);
                }
            }
        }
    }

    /// The request whose head has come is under way: the number by which its body is read.
    pub(super) fn begin(&mut self, head: &mut RequestHead) -> u64 {
        self.framing = std::mem::replace(&mut head.framing, RequestFraming::Ended);
        self.expects_continue = head.expects_continue;
        self.request += 1;
        self.request
    }

    /// The next bytes of the body of a request, while it is under way.
    pub(super) fn poll_body(
        &mut self,
        cx: &mut Context<'_>,
        request: u64,
    ) -> Poll<Option<Result<Bytes, BodyBroke>>> {
        if request != self.request {
            return Poll::Ready(Some(Err(BodyBroke)));
        }
        loop {
            match self.framing.take(&mut self.buffer) {
                Ok(Taken::Data(data)) => {
                    if self.framing.has_ended() {
                        self.activity.waits_for(None);
                    }
                    return Poll::Ready(Some(Ok(data)));
                }
                Ok(Taken::Ended) => return Poll::Ready(None),
                Ok(Taken::More) => {}
                Err(broke) => return Poll::Ready(Some(Err(broke))),
            }
            if std::mem::take(&mut self.expects_continue) {
                self.interim = INTERIM;
            }
            if !self.interim.is_empty() && matches!(self.poll_interim(cx), Poll::Ready(Err(_))) {
                return Poll::Ready(Some(Err(BodyBroke)));
            }
            let size = match self.framing.exact_len() {
                Some(left) => usize::try_from(left).unwrap_or(READ_LONG).min(READ_LONG),
                None => READ_AT_ONCE,
            };
            let read = self.poll_fill(cx, size);
            if read.is_pending() {
                self.activity.waits_for(Some(Wait::Body));
            }
            if matches!(ready!(read), Ok(0) | Err(_)) {
                return Poll::Ready(Some(Err(BodyBroke)));
            }
        }
    }

    /// How much of the body of a request is still to come, if that was announced.
    pub(super) fn body_len(&self, request: u64) -> Option<u64> {
        self.framing.exact_len().filter(|_| request == self.request)
    }

    /// Ready when the client has gone while its request is being answered. A client that has sent
    /// its request and closed its side may still be there: only a write tells.
    pub(super) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // A body that is still to come tells its reader; the next request is read after this one.
        if !self.is_between_requests() {
            return Poll::Pending;
        }
        if !self.has_ended {
            let mut space = [const { MaybeUninit::uninit() }; READ_EARLY];
            let mut early = ReadBuf::uninit(&mut space);
            if ready!(Pin::new(&mut self.io).poll_read(cx, &mut early)).is_err() {
                return Poll::Ready(());
            }
            if !early.filled().is_empty() {
                self.buffer.extend_from_slice(early.filled());
                return Poll::Pending;
            }
            self.has_ended = true;
            // A silent answer is to hear of it.
            cx.waker().wake_by_ref();
        }
        if !self.activity.awaits_answer() {
            return Poll::Ready(());
        }
        self.activity.half_closed();
        while self.activity.may_send_interim() && !self.watch.is_stuck() {
            ready!(self.beats.get_or_insert_with(Beats::new).poll_beat(cx));
            self.interim = INTERIM;
            if ready!(self.poll_interim(cx)).is_err() {
                return Poll::Ready(());
            }
        }
        Poll::Pending
    }

    /// Writes what there is of an answer, all of it.
    pub(super) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        out: &mut OutgoingAnswer,
    ) -> Poll<io::Result<()>> {
        self.activity.answer_began();
        if !self.interim.is_empty() {
            ready!(self.poll_interim(cx))?;
        }
        while !out.is_empty() {
            let written = match out.slices() {
                [text, long, after] if long.is_empty() && after.is_empty() => {
                    Pin::new(&mut self.io).poll_write(cx, &text)
                }
                slices => Pin::new(&mut self.io).poll_write_vectored(cx, &slices),
            };
            match ready!(self.watch.watched(written, &self.activity, cx))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => out.advance(count),
            }
        }
        let flushed = Pin::new(&mut self.io).poll_flush(cx);
        self.watch.watched(flushed, &self.activity, cx)
    }

    fn poll_interim(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.interim.is_empty() {
            let written = Pin::new(&mut self.io).poll_write(cx, self.interim);
            match ready!(self.watch.watched(written, &self.activity, cx))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.interim = &self.interim[count..],
            }
        }
        let flushed = Pin::new(&mut self.io).poll_flush(cx);
        self.watch.watched(flushed, &self.activity, cx)
    }

    /// Says that nothing more comes, and lets a client that is in the middle of a request have its
    /// answer: what it is still sending is read and dropped for a short while.
    pub(super) fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.linger.is_none() {
            let shut = Pin::new(&mut self.io).poll_shutdown(cx);
            let shut = ready!(self.watch.watched(shut, &self.activity, cx));
            let is_amid_request = self.has_refused || !self.is_between_requests();
            if shut.is_err() || self.has_ended || !is_amid_request {
                return Poll::Ready(());
            }
        }
        let until = || (Box::pin(sleep_until(timer_now() + LINGER_FOR)), LINGER_BYTES);
        let (timer, left) = self.linger.get_or_insert_with(until);
        let mut space = [const { MaybeUninit::uninit() }; READ_AT_ONCE];
        while *left > 0 && timer.as_mut().poll(cx).is_pending() {
            let mut dropped = ReadBuf::uninit(&mut space);
            let read = ready!(Pin::new(&mut self.io).poll_read(cx, &mut dropped));
            if read.is_err() || dropped.filled().is_empty() {
                break;
            }
            *left = left.saturating_sub(dropped.filled().len());
        }
        Poll::Ready(())
    }

    /// Whether the client was waited for long enough.
    fn poll_patience(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let (wait, span) = match self.buffer.is_empty() {
            true => (Wait::NextRequest, IDLE_FOR),
            false => (Wait::Head, HEAD_WITHIN),
        };
        let since = self.activity.waits_for(Some(wait)).unwrap_or_else(timer_now);
        let deadline = since + span;
        if self.read_timer.deadline() > deadline {
            self.read_timer.as_mut().reset(deadline);
        }
        loop {
            ready!(self.read_timer.as_mut().poll(cx));
            if self.read_timer.deadline() >= deadline {
                return Poll::Ready(());
            }
            self.read_timer.as_mut().reset(deadline);
        }
    }

    /// Reads what is there, about so many bytes, into the buffer; 0 at the end of the connection.
    fn poll_fill(&mut self, cx: &mut Context<'_>, size: usize) -> Poll<io::Result<usize>> {
        if self.has_ended {
            return Poll::Ready(Ok(0));
        }
        if self.buffer.is_empty() {
            // It may be the rest of a larger one that somebody else still uses a part of.
            self.buffer = BytesMut::new();
        }
        let read = if size > READ_AT_ONCE {
            self.buffer.reserve(size);
            // It keeps nothing between polls, so it need not be kept.
            let Poll::Ready(read) = pin!(self.io.read_buf(&mut self.buffer)).poll(cx) else {
                self.buffer = BytesMut::new();
                return Poll::Pending;
            };
            read?
        } else {
            let mut space = [const { MaybeUninit::uninit() }; READ_AT_ONCE];
            let mut came = ReadBuf::uninit(&mut space);
            ready!(Pin::new(&mut self.io).poll_read(cx, &mut came))?;
            self.buffer.extend_from_slice(came.filled());
            came.filled().len()
        };
        self.has_ended |= read == 0;
        Poll::Ready(Ok(read))
    }
}

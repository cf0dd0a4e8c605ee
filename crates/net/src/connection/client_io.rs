//! A client's connection as bytes, with limits on waiting and an eye on what comes in.
//!
//! Rules kept here:
//! - A head that has begun must be whole within [`HEAD_WITHIN`]; between two requests a connection
//!   may idle for [`IDLE_FOR`]. Idling is not dawdling: agents think between two requests.
//! - A client that takes nothing for [`WRITE_WITHIN`] has gone. Until then what it does not read is
//!   held back all the way to the upstream, since nobody asks for more (S52).
//! - A request that could be read in two ways is spoilt here, so that it is answered with 400 and
//!   the connection closed ([`super::head_scan`], S20).
//! - A client that has sent its whole request and closed its side still gets its answer
//!   ([`super::half_close`]).
//!
//! Moments are compared, timers are not moved: a request costs a look at the clock, and only a wait
//! that ends earlier than the last one touches a timer.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tidegate_runtime::clock::timer_now;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep_until};

use super::activity::{Activity, Wait};
use super::half_close::{Beats, INTERIM};
use super::head_scan::{HeadScan, Verdict};

/// A client that has not sent its request head by then is not going to.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// What most load balancers and SDKs take for granted.
pub(super) const IDLE_FOR: Duration = Duration::from_secs(75);
/// A reader that is merely slow takes something in a minute.
pub(super) const WRITE_WITHIN: Duration = Duration::from_secs(60);
/// After the last answer, what a client is still sending is read and dropped for so long, and so
/// much of it: closing the socket at once would take the answer away from it.
const LINGER_FOR: Duration = Duration::from_secs(2);
const LINGER_BYTES: usize = 1 << 20;

/// A client's connection.
#[derive(Debug)]
pub(super) struct ClientIo<T> {
    io: T,
    /// None in HTTP/2: frames say where a request begins, and `h2.rs` has the limits on waiting.
    scan: Option<HeadScan>,
    activity: Rc<Activity>,
    read_timer: Pin<Box<Sleep>>,
    /// Since when the client has taken nothing of what is there for it.
    stuck: Option<Pin<Box<Sleep>>>,
    /// The client has sent all it had to send.
    is_ended: bool,
    beats: Option<Beats>,
    /// What is left of the time and the bytes to read before the socket is closed.
    linger: Option<(Pin<Box<Sleep>>, usize)>,
    is_late: bool,
}

impl<T> ClientIo<T> {
    pub(super) fn new(io: T, activity: Rc<Activity>) -> Self {
        Self { scan: Some(HeadScan::new()), ..Self::over_h2(io, activity) }
    }

    /// One over which HTTP/2 is spoken.
    pub(super) fn over_h2(io: T, activity: Rc<Activity>) -> Self {
        Self {
            io,
            scan: None,
            activity,
            read_timer: Box::pin(sleep_until(timer_now() + IDLE_FOR)),
            stuck: None,
            is_ended: false,
            beats: None,
            linger: None,
            is_late: false,
        }
    }

    /// Whether the client was waited for long enough.
    fn poll_patience(&mut self, cx: &mut Context<'_>) -> Poll<Wait> {
        let is_answering = self.activity.is_answering();
        let Some(scan) = &self.scan else { return Poll::Pending };
        let wait = match () {
            () if scan.is_in_body() => Some((Wait::Body, HEAD_WITHIN)),
            () if is_answering => None,
            () if scan.is_in_head() => Some((Wait::Head, HEAD_WITHIN)),
            () => Some((Wait::NextRequest, IDLE_FOR)),
        };
        let since = self.activity.waits_for(wait.map(|(wait, _)| wait));
        // Whoever answers a request has a limit of its own on waiting for the body.
        let Some(((wait, span), since)) = wait.zip(since).filter(|_| !is_answering) else {
            return Poll::Pending;
        };
        let deadline = since + span;
        if self.read_timer.deadline() > deadline {
            self.read_timer.as_mut().reset(deadline);
        }
        loop {
            ready!(self.read_timer.as_mut().poll(cx));
            if self.read_timer.deadline() >= deadline {
                return Poll::Ready(wait);
            }
            self.read_timer.as_mut().reset(deadline);
        }
    }

    /// What a write came to, if the client still takes anything.
    fn watched<R>(
        &mut self,
        written: Poll<io::Result<R>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<R>> {
        if written.is_ready() {
            if self.stuck.take().is_some() {
                self.activity.waits_for(None);
            }
            return written;
        }
        self.activity.waits_for(Some(Wait::Reading));
        let until = || Box::pin(sleep_until(timer_now() + WRITE_WITHIN));
        ready!(self.stuck.get_or_insert_with(until).as_mut().poll(cx));
        self.is_late = true;
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client reads nothing")))
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> ClientIo<T> {
    /// A client that has sent its request and closed its side gets its answer; its end is told
    /// only when that has been sent, or when the client turns out to have gone.
    fn poll_half_closed(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.activity.awaits_answer() {
            return Poll::Ready(Ok(()));
        }
        self.activity.half_closed(cx.waker());
        while self.activity.may_send_interim() && self.stuck.is_none() {
            ready!(self.beats.get_or_insert_with(Beats::new).poll_beat(cx));
            let written = ready!(Pin::new(&mut self.io).poll_write(cx, INTERIM))?;
            // Nothing else is on its way to the client, so there is room for these few bytes.
            if written < INTERIM.len() {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            let _is_flushed = Pin::new(&mut self.io).poll_flush(cx)?;
        }
        Poll::Pending
    }

    /// Reads and drops what the client is still sending, for a short while.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let until = || (Box::pin(sleep_until(timer_now() + LINGER_FOR)), LINGER_BYTES);
        let (timer, left) = self.linger.get_or_insert_with(until);
        let mut dropped = [0; 4096];
        while *left > 0 && timer.as_mut().poll(cx).is_pending() {
            let mut buffer = ReadBuf::new(&mut dropped);
            let read = ready!(Pin::new(&mut self.io).poll_read(cx, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                break;
            }
            *left = left.saturating_sub(buffer.filled().len());
        }
        Poll::Ready(())
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncRead for ClientIo<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.is_ended {
            return this.poll_half_closed(cx);
        }
        let before = buf.filled().len();
        if let Poll::Ready(result) = Pin::new(&mut this.io).poll_read(cx, buf) {
            result?;
            let came = &mut buf.filled_mut()[before..];
            let Some(scan) = &mut this.scan else { return Poll::Ready(Ok(())) };
            if came.is_empty() && scan.is_between() {
                this.is_ended = true;
                // A silent answer is to hear of it.
                cx.waker().wake_by_ref();
                return this.poll_half_closed(cx);
            }
            match scan.feed(came) {
                Verdict::Sound => {}
                // No line of a request may hold this byte, so the request is refused as malformed.
                Verdict::BadHead(at) => came[at] = 0,
                Verdict::BadChunks => return Poll::Ready(Err(io::ErrorKind::InvalidData.into())),
            }
            return Poll::Ready(Ok(()));
        }
        let wait = ready!(this.poll_patience(cx));
        this.is_late = true;
        match wait {
            // An end as if the client had closed: it has nothing under way here.
            Wait::NextRequest => Poll::Ready(Ok(())),
            Wait::Head | Wait::Body | Wait::Reading => {
                let error = io::Error::new(io::ErrorKind::TimedOut, "the request is late");
                Poll::Ready(Err(error))
            }
        }
    }
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ClientIo<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.activity.answer_began();
        let written = Pin::new(&mut this.io).poll_write(cx, buf);
        this.watched(written, cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.activity.answer_began();
        let written = Pin::new(&mut this.io).poll_write_vectored(cx, bufs);
        this.watched(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.io).poll_flush(cx);
        this.watched(flushed, cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.linger.is_none() {
            let shut = Pin::new(&mut this.io).poll_shutdown(cx);
            ready!(this.watched(shut, cx))?;
        }
        // A client that is in the middle of a request would otherwise lose its answer with it.
        let is_amid_request = this.scan.as_ref().is_some_and(|scan| !scan.is_between());
        if !this.is_ended && !this.is_late && is_amid_request {
            ready!(this.poll_linger(cx));
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use http::Version;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    /// How long a read waits, in seconds, and whether it ends in an error.
    async fn waited(sent: &[u8], activity: Rc<Activity>) -> (u64, bool) {
        let (mut client, ours) = duplex(256);
        let mut ours = ClientIo::new(ours, activity);
        client.write_all(sent).await.expect("there is room");
        let began = timer_now();
        let mut buffer = [0; 64];
        loop {
            match ours.read(&mut buffer).await {
                Ok(0) => return (began.elapsed().as_secs(), false),
                Ok(_) => {}
                Err(_) => return (began.elapsed().as_secs(), true),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_is_held_longer_than_a_head_may_take() {
        assert_eq!(waited(b"", Activity::new()).await, (75, false));
        assert_eq!(waited(b"GET / HTTP/1.1\r\n\r\n", Activity::new()).await, (75, false));
        let chunked = b"GET / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n";
        assert_eq!(waited(chunked, Activity::new()).await, (75, false));
    }

    #[tokio::test(start_paused = true)]
    async fn s48_a_head_that_has_begun_must_end_and_so_must_a_body_that_nobody_reads() {
        for sent in [
            "GET / HT",
            "GET / HTTP/1.1\r\nhost: x\r\n",
            "GET / HTTP/1.1\r\ncontent-length: 9\r\n\r\nabc",
            "GET / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
            "GET / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /",
        ] {
            assert_eq!(waited(sent.as_bytes(), Activity::new()).await, (10, true), "{sent:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn while_an_answer_is_made_the_client_is_not_hurried() {
        let activity = Activity::new();
        let guard = activity.begin(Version::HTTP_11);
        let request = b"GET / HTTP/1.1\r\n\r\n";
        let long = Duration::from_secs(1000);
        let result = tokio::time::timeout(long, waited(request, activity)).await;
        assert!(result.is_err(), "{result:?}");
        drop(guard);
    }

    #[tokio::test(start_paused = true)]
    async fn s20_chunks_that_readers_disagree_about_end_the_connection() {
        let sent = b"GET / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\n\nGET / HTTP/1.1\r\n";
        assert_eq!(waited(sent, Activity::new()).await, (0, true));
    }

    #[tokio::test(start_paused = true)]
    async fn a_half_closed_client_is_waited_for_until_a_write_finds_it_gone() {
        let (mut client, ours) = duplex(256);
        let activity = Activity::new();
        let mut ours = ClientIo::new(ours, Rc::clone(&activity));
        client.write_all(b"GET / HTTP/1.1\r\n\r\n").await.expect("there is room");
        let mut buffer = [0; 64];
        let request = ours.read(&mut buffer).await.expect("the request");
        assert_eq!(request, 18);
        let guard = activity.begin(Version::HTTP_11);
        client.shutdown().await.expect("its side closes");
        let waited = tokio::time::timeout(Duration::from_secs(4), ours.read(&mut buffer)).await;
        assert!(waited.is_err(), "it is still to be answered: {waited:?}");
        let said = client.read(&mut buffer).await.expect("interim responses");
        assert!(buffer[..said].starts_with(INTERIM));
        drop(guard);
        assert_eq!(ours.read(&mut buffer).await.expect("the end"), 0, "it was answered");
        let _guard = activity.begin(Version::HTTP_11);
        drop(client);
        let gone = tokio::time::timeout(Duration::from_secs(20), ours.read(&mut buffer)).await;
        assert!(gone.expect("within some seconds").is_err(), "nobody is there any more");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_cancels_by_closing_is_not_waited_for() {
        let (mut client, ours) = duplex(256);
        let activity = Activity::new();
        let mut ours = ClientIo::new(ours, Rc::clone(&activity));
        client.write_all(b"GET / HTTP/1.1\r\n\r\n").await.expect("there is room");
        let mut buffer = [0; 64];
        assert_eq!(ours.read(&mut buffer).await.expect("the request"), 18);
        let _guard = activity.begin(Version::HTTP_11);
        activity.closing_cancels(true);
        drop(client);
        let began = timer_now();
        assert_eq!(ours.read(&mut buffer).await.expect("the end"), 0);
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn s52_a_client_that_takes_nothing_is_let_go_and_a_slow_one_is_not() {
        let (mut client, ours) = duplex(64);
        let mut ours = ClientIo::new(ours, Activity::new());
        let began = timer_now();
        let slow = async {
            let mut buffer = [0; 32];
            for _ in 0..4 {
                tokio::time::sleep(Duration::from_secs(50)).await;
                client.read_exact(&mut buffer).await.expect("bytes are there");
            }
            std::future::pending::<()>().await;
        };
        let error = tokio::select! {
            result = ours.write_all(&[0; 1024]) => result.expect_err("it is stuck in the end"),
            () = slow => unreachable!("it waits for ever"),
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert_eq!(began.elapsed().as_secs(), 200 + 60);
    }
}

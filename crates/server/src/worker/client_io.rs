//! A client's connection as bytes, with limits on waiting and an eye on what comes in.
//!
//! Rules kept here:
//! - A head that has begun must be whole within [`HEAD_WITHIN`]; between two requests a connection
//!   may idle for [`IDLE_FOR`]. Idling is not dawdling: agents think between two requests.
//! - A client that takes nothing for [`WRITE_WITHIN`] has gone. Until then what it does not read is
//!   held back all the way to the upstream, since nobody asks for more (S52).
//! - A request that could be read in two ways is spoilt here, so that it is answered with 400 and
//!   the connection closed ([`super::head_scan`], S20).
//!
//! Moments are compared, timers are not moved: a request costs a look at the clock, and only a wait
//! that ends earlier than the last one touches a timer.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use super::head_scan::HeadScan;

/// A client that has not sent its request head by then is not going to.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// What most load balancers and SDKs take for granted.
const IDLE_FOR: Duration = Duration::from_secs(75);
/// A reader that is merely slow takes something in a minute.
const WRITE_WITHIN: Duration = Duration::from_secs(60);

/// Whether a request of this connection is being answered: then it is ours to be waited for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answering(Rc<Cell<bool>>);

/// Marks a connection as answering until it is dropped.
#[derive(Debug)]
pub(crate) struct AnsweringGuard(Rc<Cell<bool>>);

impl Answering {
    pub(crate) fn begin(&self) -> AnsweringGuard {
        self.0.set(true);
        AnsweringGuard(Rc::clone(&self.0))
    }
}

impl Drop for AnsweringGuard {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

/// What the client is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    Head,
    NextRequest,
}

/// A client's connection.
#[derive(Debug)]
pub(crate) struct ClientIo<T> {
    io: T,
    scan: HeadScan,
    answering: Answering,
    waiting: Option<(Wait, Instant)>,
    read_timer: Pin<Box<Sleep>>,
    /// Since when the client has taken nothing of what is there for it.
    stuck: Option<Pin<Box<Sleep>>>,
}

impl<T> ClientIo<T> {
    pub(crate) fn new(io: T, answering: Answering) -> Self {
        Self {
            io,
            scan: HeadScan::new(),
            answering,
            waiting: None,
            read_timer: Box::pin(sleep_until(Instant::now() + IDLE_FOR)),
            stuck: None,
        }
    }

    /// Whether the client was waited for long enough.
    fn poll_patience(&mut self, cx: &mut Context<'_>) -> Poll<Wait> {
        let wait = match () {
            () if self.answering.0.get() => None,
            () if self.scan.is_in_head() => Some((Wait::Head, HEAD_WITHIN)),
            () if self.scan.is_between() => Some((Wait::NextRequest, IDLE_FOR)),
            () => None,
        };
        let Some((wait, span)) = wait else {
            self.waiting = None;
            return Poll::Pending;
        };
        let since = match self.waiting {
            Some((known, since)) if known == wait => since,
            _ => Instant::now(),
        };
        self.waiting = Some((wait, since));
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
            self.stuck = None;
            return written;
        }
        let until = || Box::pin(sleep_until(Instant::now() + WRITE_WITHIN));
        ready!(self.stuck.get_or_insert_with(until).as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client reads nothing")))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for ClientIo<T> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        if let Poll::Ready(result) = Pin::new(&mut this.io).poll_read(cx, buf) {
            let came = &mut buf.filled_mut()[before..];
            if let Some(at) = this.scan.feed(came) {
                // No line of a request may hold this byte, so the request is refused as malformed.
                came[at] = 0;
            }
            return Poll::Ready(result);
        }
        match ready!(this.poll_patience(cx)) {
            // An end as if the client had closed: it has nothing under way here.
            Wait::NextRequest => Poll::Ready(Ok(())),
            Wait::Head => {
                let error = io::Error::new(io::ErrorKind::TimedOut, "the request head is late");
                Poll::Ready(Err(error))
            }
        }
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for ClientIo<T> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.io).poll_write(cx, buf);
        this.watched(written, cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.io).poll_write_vectored(cx, bufs);
        this.watched(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    /// How long a read waits, in seconds, and whether it ends in an error.
    async fn waited(sent: &[u8], answering: Answering) -> (u64, bool) {
        let (mut client, ours) = duplex(64);
        let mut ours = ClientIo::new(ours, answering);
        client.write_all(sent).await.expect("there is room");
        let began = Instant::now();
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
        assert_eq!(waited(b"", Answering::default()).await, (75, false));
        assert_eq!(waited(b"GET / HTTP/1.1\r\n\r\n", Answering::default()).await, (75, false));
    }

    #[tokio::test(start_paused = true)]
    async fn s48_a_head_that_has_begun_must_end() {
        assert_eq!(waited(b"GET / HT", Answering::default()).await, (10, true));
        assert_eq!(
            waited(b"GET / HTTP/1.1\r\nhost: x\r\n", Answering::default()).await,
            (10, true)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn while_an_answer_is_made_the_client_is_not_hurried() {
        let answering = Answering::default();
        let guard = answering.begin();
        let request = b"GET / HTTP/1.1\r\n\r\n";
        let long = Duration::from_secs(1000);
        let result = tokio::time::timeout(long, waited(request, answering)).await;
        assert!(result.is_err(), "{result:?}");
        drop(guard);
    }

    #[tokio::test(start_paused = true)]
    async fn s52_a_client_that_takes_nothing_is_let_go_and_a_slow_one_is_not() {
        let (mut client, ours) = duplex(64);
        let mut ours = ClientIo::new(ours, Answering::default());
        let began = Instant::now();
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

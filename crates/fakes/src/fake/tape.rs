//! A whole answer as data, faults included, and the body that plays it.
//!
//! Whatever a fake does after the response head is a list of beats and an ending. So rendering is
//! a pure function, tests can read what will happen, and there is one place that waits.
//!
//! Rules kept here:
//! - What was sent before an abort reaches the socket first: the body gives way once, so that the
//!   connection is flushed, before it fails.
//! - A body that is dropped before its end counts as abandoned (`calls.rs`).

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode};
use http_body::{Body, Frame};
use tokio::time::{Sleep, sleep};

use super::calls::Ticket;

/// One thing that happens after the response head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Beat {
    Wait(Duration),
    Bytes(Bytes),
    /// So many letters, in blocks.
    Fill(u64),
    /// The bytes, a few at a time.
    Drip {
        bytes: Bytes,
        each: usize,
        gap: Duration,
    },
}

/// What comes after the last beat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// A proper end of the body.
    Clean,
    /// The connection breaks.
    Abort,
    /// Nothing, for ever.
    Never,
    /// These bytes, over and over.
    Again { bytes: Bytes, every: Duration },
}

/// An answer.
#[derive(Clone, Debug)]
pub(super) struct Tape {
    pub(super) status: StatusCode,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) latency: Duration,
    pub(super) beats: Arc<[Beat]>,
    pub(super) ending: Ending,
}

/// Why a body failed: on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the script breaks the connection here")]
pub(super) struct Broken;

/// Plays a tape.
#[derive(Debug)]
pub(super) struct Play {
    beats: Arc<[Beat]>,
    ending: Ending,
    next: usize,
    /// How much of the current beat is out.
    done: u64,
    sleep: Option<Pin<Box<Sleep>>>,
    has_given_way: bool,
    /// None for what counts as no call.
    ticket: Option<Ticket>,
}

impl Play {
    pub(super) fn new(tape: &Tape, ticket: Option<Ticket>) -> Self {
        let (beats, ending) = (Arc::clone(&tape.beats), tape.ending.clone());
        Self { beats, ending, next: 0, done: 0, sleep: None, has_given_way: false, ticket }
    }

    fn wait(&mut self, time: Duration) {
        if !time.is_zero() {
            self.sleep = Some(Box::pin(sleep(time)));
        }
    }

    fn go_on(&mut self) {
        self.next += 1;
        self.done = 0;
        // Here and not at the end of the body: a body of known length may not be asked again.
        if self.next >= self.beats.len() && self.ending == Ending::Clean {
            self.finish();
        }
    }

    fn finish(&mut self) {
        if let Some(ticket) = &mut self.ticket {
            ticket.finish();
        }
    }

    /// The next bytes of the current beat; none if it only waits or is over.
    fn step(&mut self) -> Option<Bytes> {
        match &self.beats[self.next] {
            Beat::Wait(time) => {
                let time = *time;
                self.go_on();
                self.wait(time);
                None
            }
            Beat::Bytes(bytes) => {
                let bytes = bytes.clone();
                self.go_on();
                Some(bytes)
            }
            Beat::Fill(size) => {
                let left = size.saturating_sub(self.done);
                let block = left.min(BLOCK.len() as u64);
                self.done += block;
                if left == block {
                    self.go_on();
                }
                // At most BLOCK.len(), so the cast is exact.
                Some(Bytes::from_static(&BLOCK[..block as usize]))
            }
            Beat::Drip { bytes, each, gap } => {
                // At most bytes.len(), so the casts are exact.
                let from = self.done as usize;
                let to = bytes.len().min(from + (*each).max(1));
                let (drop, gap, is_last) = (bytes.slice(from..to), *gap, to == bytes.len());
                self.done = to as u64;
                if is_last {
                    self.go_on();
                } else {
                    self.wait(gap);
                }
                Some(drop)
            }
        }
    }
}

/// What a huge event is filled with, a block at a time.
const BLOCK: &[u8] = &[b'a'; 64 * 1024];

impl Body for Play {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let this = self.get_mut();
        loop {
            if let Some(sleep) = &mut this.sleep {
                ready!(sleep.as_mut().poll(cx));
                this.sleep = None;
            }
            if this.next < this.beats.len() {
                match this.step() {
                    Some(bytes) if !bytes.is_empty() => {
                        return Poll::Ready(Some(Ok(Frame::data(bytes))));
                    }
                    _ => continue,
                }
            }
            match &this.ending {
                Ending::Clean => return Poll::Ready(None),
                Ending::Never => return Poll::Pending,
                Ending::Abort if this.has_given_way => {
                    this.finish();
                    return Poll::Ready(Some(Err(Broken)));
                }
                Ending::Abort => {
                    this.has_given_way = true;
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Ending::Again { bytes, every } => {
                    let bytes = bytes.clone();
                    let every = (*every).max(LEAST_GAP);
                    this.wait(every);
                    return Poll::Ready(Some(Ok(Frame::data(bytes))));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.next >= self.beats.len() && self.ending == Ending::Clean
    }
}

/// Something repeated for ever without a wait would keep the thread from everything else.
const LEAST_GAP: Duration = Duration::from_millis(1);

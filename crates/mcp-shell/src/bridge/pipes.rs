//! InputLines from a client and lines to it, each on a thread of its own.
//!
//! Threads, because a pipe, a file and a terminal can all be read and written that way, and none
//! has to be changed for it: what another process made non-blocking for us would be so for it too.
//!
//! Rules kept here:
//! - A line is at most [`MESSAGE_MAX`] long; a longer one is passed by and told.
//! - Both queues are bounded: a client that does not read stops being listened to.
//! - A message is one line, written whole and at once.
//! - Nobody waits for these threads at the end but for what is still to be written, and not long.

use std::io::{self, ErrorKind, Read, Write};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::{
    stdio::lines::{Line, Lines as Splitter},
    transport::MESSAGE_MAX,
};

/// InputLines that may wait to be looked at; each may be long.
const LINES_AHEAD: usize = 4;
/// Messages that may wait to be written.
const MESSAGES_AHEAD: usize = 64;
/// How much is read at once.
const CHUNK: usize = 64 * 1024;
/// What is left at the end must be written by then: nobody may be there to read it.
const WRITTEN_WITHIN: Duration = Duration::from_secs(2);

/// What the client writes.
pub(super) type InputLines = mpsc::Receiver<Line>;

/// Begins to read.
pub(super) fn read(mut input: Box<dyn Read + Send>) -> io::Result<InputLines> {
    let (sender, lines) = mpsc::channel(LINES_AHEAD);
    let run = move || {
        let mut chunk = vec![0; CHUNK];
        let mut splitter = Splitter::up_to(MESSAGE_MAX);
        loop {
            match input.read(&mut chunk) {
                Ok(0) => break,
                Ok(count) => splitter.space().extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                // Whatever it is, nothing more comes.
                Err(_) => break,
            }
            while let Some(line) = splitter.next() {
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        }
        if let Some(line) = splitter.finish() {
            drop(sender.blocking_send(line));
        }
    };
    std::thread::Builder::new().name("bridge input".to_owned()).spawn(run)?;
    Ok(lines)
}

/// The way to what the client reads.
#[derive(Clone, Debug)]
pub(super) struct Out(mpsc::Sender<Bytes>);

/// Tells when everything has been written.
#[derive(Debug)]
pub(super) struct Written(oneshot::Receiver<()>);

/// Begins to write; it ends when every [`Out`] is gone.
pub(super) fn write(mut output: Box<dyn Write + Send>) -> io::Result<(Out, Written)> {
    let (sender, mut messages) = mpsc::channel::<Bytes>(MESSAGES_AHEAD);
    let (done, written) = oneshot::channel();
    let run = move || {
        while let Some(message) = messages.blocking_recv() {
            let line = [&message[..], b"\n"].concat();
            // Nobody reads any more: dropping the queue tells the others.
            if output.write_all(&line).and_then(|()| output.flush()).is_err() {
                break;
            }
        }
        drop(messages);
        // Nobody may be waiting for it.
        let _ = done.send(());
    };
    std::thread::Builder::new().name("bridge output".to_owned()).spawn(run)?;
    Ok((Out::to(sender), Written(written)))
}

impl Out {
    /// The way to a queue that somebody empties.
    pub(super) const fn to(queue: mpsc::Sender<Bytes>) -> Self {
        Self(queue)
    }

    /// Says a message to the client; waits while it does not read.
    pub(super) async fn say(&self, message: impl Into<Bytes>) {
        let message = one_line(message.into());
        // Nobody reads any more: the bridge is about to end.
        drop(self.0.send(message).await);
    }

    /// Waits until nobody reads any more.
    pub(super) async fn nobody_reads(&self) {
        self.0.closed().await;
    }
}

/// A message on one line. Inside a text a line end is always escaped, so one that stands here is
/// white space.
fn one_line(message: Bytes) -> Bytes {
    let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
    if !message.iter().any(is_end) {
        return message;
    }
    let blank = |byte: &u8| if is_end(byte) { b' ' } else { *byte };
    message.iter().map(blank).collect()
}

impl Written {
    /// Waits for it, but not for long.
    pub(super) async fn wait(self) {
        drop(timeout(WRITTEN_WITHIN, self.0).await);
    }
}

//! The task that owns one program: its warden, its pipes, its place; from start to the last
//! process of it.
//!
//! Four things go on at once and none waits for another: writing, reading, listening to stderr, and
//! to the warden's words. The task ends them when the owner is gone, when the program's output
//! ends, or when the program does not read what it is sent. Then, in this order:
//! 1. the socket to the warden is closed, which kills what still runs;
//! 2. the warden is reaped, and the rest of stderr heard;
//! 3. the place is given back, the end is told in the log, and then to the owner, unless it was
//!    the owner that ended it.

use std::cell::Cell;
use std::future::pending;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::process::Stdio;
use std::rc::Rc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use memchr::memchr2;
use rustix::process::{Pid, Signal, kill_process_group};
use serde::de::IgnoredAny;
use tidegate_core::outcome::OutcomeKind;
use tidegate_mcp::cause::{Cause, Delivery};
use tidegate_runtime::clock::timer_now;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::children::ChildPermit;
use super::lines::{Line, Lines};
use super::oversize::answered_call;
use super::throttle::Throttle;
use super::{Shared, StdioSettings, environment, stderr};
use crate::beside::{Received, beside, is_large};
use crate::child::word::{End, WORD_MAX, Word};
use crate::transport::{ConnectionEvent, EventSender, Failure};

/// How long a warden may take to start a program: an overloaded machine needs seconds.
const START_WITHIN: Duration = Duration::from_secs(10);
/// How long output may go on after the warden has ended: what is in the pipes is read by then.
const OUTPUT_AFTER_END: Duration = Duration::from_secs(1);
/// How long a warden may take to kill and reap.
const REAP_WITHIN: Duration = Duration::from_secs(5);
/// Dropped lines a second that are told.
const DROPPED_PER_SECOND: u32 = 2;

/// A message on its way to the program.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// The request it is, if it is one.
    pub(super) call: Option<u64>,
    pub(super) message: Bytes,
}

/// A started warden and the ways to it and its program.
pub(super) struct Wires {
    warden: Child,
    words: BufReader<OwnedReadHalf>,
    input: OwnedWriteHalf,
    output: ChildStdout,
    stderr: ChildStderr,
}

impl Wires {
    /// Starts a warden, which starts the program.
    pub(super) fn start(settings: &StdioSettings) -> io::Result<Self> {
        if settings.command.is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no program is named"));
        }
        let (program, arguments) = settings
            .warden
            .split_first()
            .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let (words, input) = UnixStream::from_std(ours)?.into_split();
        // Its own group, so that Ctrl-C reaches the gateway alone, which ends things in order.
        let mut warden = Command::new(program)
            .arg0("tidegate")
            .args(arguments)
            .args(&settings.command)
            .env_clear()
            .envs(environment::environment(|name| std::env::var_os(name), &settings.env))
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let output = warden.stdout.take().expect("stdout was asked to be a pipe");
        let stderr = warden.stderr.take().expect("stderr was asked to be a pipe");
        Ok(Self { warden, words: BufReader::new(words), input, output, stderr })
    }
}

/// Why a conversation is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// The owner dropped its transport, or closed it.
    Ours,
    /// The program did not read.
    Overflow,
    /// The program ended.
    Ended,
}

/// One program and all that belongs to it.
pub(super) struct StdioConversation {
    pub(super) shared: Rc<Shared>,
    pub(super) wires: Wires,
    pub(super) messages: mpsc::Receiver<Outgoing>,
    pub(super) events: EventSender,
    /// Resolves when the transport is dropped.
    pub(super) ended: oneshot::Receiver<()>,
    pub(super) place: ChildPermit,
}

impl StdioConversation {
    /// Runs from start to end.
    pub(super) async fn run(self) {
        let Self { shared, wires, mut messages, events, mut ended, place } = self;
        let Wires { mut warden, mut words, input, output, stderr } = wires;
        let started = tokio::select! {
            _ = &mut ended => Err(None),
            started = start_word(&mut words) => started.map_err(Some),
        };
        let program = match started {
            Ok(program) => program,
            Err(error) => {
                drop((words, input, output, stderr));
                reap(&mut warden, None).await;
                drop(place);
                // Whoever opened it may have left before it could fail.
                if let Some(error) = error {
                    let failure = shared.cannot_start(&error);
                    events.tell(ConnectionEvent::OpenFailed(failure)).await;
                }
                return;
            }
        };
        // An owner that has left drops the transport, which is noticed next.
        events.tell(ConnectionEvent::Opened).await;
        let end = Cell::new(None);
        let mut stderr = pin!(stderr::listen(stderr, &shared));
        let mut is_stderr_over = false;
        let why = {
            let mut writer = pin!(write(&mut messages, input, &shared));
            let reader = read(output, &events, &shared);
            let mut program = pin!(until_ended(reader, hear_words(words, &end)));
            loop {
                tokio::select! {
                    biased;
                    _ = &mut ended => break Why::Ours,
                    () = shared.overflow.notified() => break Why::Overflow,
                    () = &mut stderr, if !is_stderr_over => is_stderr_over = true,
                    () = &mut program => break Why::Ended,
                    () = &mut writer => {}
                }
            }
        };
        let rest = async {
            if !is_stderr_over {
                // What keeps it open for longer has escaped us.
                let _ = timeout(OUTPUT_AFTER_END, &mut stderr).await;
            }
        };
        tokio::join!(reap(&mut warden, Some(program)), rest);
        drop(place);
        // Whether the owner closed in good order: no transport holds the other side any more.
        let why = if messages.is_closed() { Why::Ours } else { why };
        tell_end(&shared, why, end.get());
        if why != Why::Ours {
            report(why, messages, &events, shared.last_words()).await;
        }
    }
}

/// Waits for the warden's first word: the program's process.
async fn start_word(words: &mut BufReader<OwnedReadHalf>) -> io::Result<Pid> {
    let word = timeout(START_WITHIN, next_word(words)).await?;
    match word {
        Some(Word::Started(id)) => i32::try_from(id)
            .ok()
            .and_then(Pid::from_raw)
            .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData)),
        Some(Word::Failed(errno)) => Err(io::Error::from_raw_os_error(errno)),
        Some(Word::Ended(_)) | None => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
    }
}

/// The next word; none when the warden has ended.
async fn next_word(words: &mut BufReader<OwnedReadHalf>) -> Option<Word> {
    let mut line = String::new();
    // An error here is the same as the end: nothing will be said any more.
    words.take(WORD_MAX as u64).read_line(&mut line).await.ok()?;
    Word::parse(&line)
}

/// Ends when both do, or one of them does and the other not in good time: what keeps the output
/// open after the warden's end has escaped us.
async fn until_ended(reader: impl Future<Output = ()>, listener: impl Future<Output = ()>) {
    let (mut reader, mut listener) = (pin!(reader), pin!(listener));
    let _ = tokio::select! {
        () = &mut reader => timeout(OUTPUT_AFTER_END, listener).await,
        () = &mut listener => timeout(OUTPUT_AFTER_END, reader).await,
    };
}

/// Notes how the program ended, until the warden does.
async fn hear_words(mut words: BufReader<OwnedReadHalf>, end: &Cell<Option<End>>) {
    while let Some(word) = next_word(&mut words).await {
        if let Word::Ended(how) = word {
            end.set(Some(how));
        }
    }
}

/// Writes what is sent, a line each. When no more can come, the sending side is shut, which makes
/// the warden close the program's stdin. Never ends: that is the reader's to say.
async fn write(
    messages: &mut mpsc::Receiver<Outgoing>,
    mut input: OwnedWriteHalf,
    shared: &Shared,
) {
    while let Some(Outgoing { message, .. }) = messages.recv().await {
        shared.queued.set(shared.queued.get().saturating_sub(message.len()));
        // An error means that the warden has ended, which is noticed elsewhere.
        let _ = input.write_all(&as_line(&message)).await;
    }
    drop(input);
    pending::<()>().await;
}

/// A message as one line. A line break outside of strings is mere space in JSON, and inside of
/// them it cannot be.
fn as_line(message: &[u8]) -> BytesMut {
    let mut line = BytesMut::with_capacity(message.len() + 1);
    line.extend_from_slice(message);
    let mut from = 0;
    while let Some(at) = memchr2(b'\n', b'\r', &line[from..]) {
        line[from + at] = b' ';
        from += at + 1;
    }
    line.extend_from_slice(b"\n");
    line
}

/// Reads messages until the output ends.
async fn read(mut output: ChildStdout, events: &EventSender, shared: &Shared) {
    let mut lines = Lines::up_to(shared.answer_max.get());
    let mut dropped = Dropped { shared, throttle: Throttle::new(DROPPED_PER_SECOND), count: 0 };
    loop {
        let is_over = matches!(output.read_buf(lines.space()).await, Ok(0) | Err(_));
        lines.set_limit(shared.answer_max.get());
        while let Some(line) = lines.next() {
            pass_on(line, events, &mut dropped).await;
        }
        if is_over {
            break;
        }
    }
    if let Some(line) = lines.finish() {
        pass_on(line, events, &mut dropped).await;
    }
}

/// Hands a line to the owner. One that is gone needs none, but the program may go on talking
/// while it ends.
async fn pass_on(line: Line, events: &EventSender, dropped: &mut Dropped<'_>) {
    let event = match line {
        Line::Whole(bytes) if is_large(&bytes) => {
            let judge = |line: &[u8]| if is_message(line) { Ok(None) } else { Err(()) };
            let Some(received) = beside(move || Received::read(bytes, judge)).await else { return };
            if let Received::Garbage(bytes) = &received {
                dropped.garbage(bytes);
            }
            let Some(event) = received.into_event(None) else { return };
            event
        }
        Line::Whole(bytes) if is_message(&bytes) => ConnectionEvent::Message { bytes, call: None },
        Line::Whole(bytes) => return dropped.garbage(&bytes),
        Line::TooLong(ends) => {
            let call = answered_call(&ends);
            dropped.too_long(ends.bytes, call);
            let Some(call) = call else { return };
            let failure = Failure {
                delivery: Delivery::Maybe,
                ..Failure::of(Cause::TooLarge, OutcomeKind::ClientFault)
            };
            ConnectionEvent::Unanswered { call, failure }
        }
    };
    events.tell(event).await;
}

/// Whether a line is JSON of the kind that messages are.
fn is_message(line: &[u8]) -> bool {
    let first = line.trim_ascii_start().first();
    matches!(first, Some(b'{' | b'['))
        && str::from_utf8(line).is_ok_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok())
}

/// Lines that are no messages.
struct Dropped<'a> {
    shared: &'a Shared,
    throttle: Throttle,
    count: u64,
}

impl Dropped<'_> {
    fn garbage(&mut self, line: &[u8]) {
        self.count = self.count.saturating_add(1);
        if self.throttle.admits(timer_now()) {
            let line = self.shared.cleaner.clean(line);
            let (server, dropped) = (&*self.shared.name, self.count);
            tracing::warn!(server, dropped, line, "a server's program printed what is no message");
        }
    }

    fn too_long(&mut self, bytes: u64, call: Option<u64>) {
        self.count = self.count.saturating_add(1);
        if self.throttle.admits(timer_now()) {
            let (server, dropped) = (&*self.shared.name, self.count);
            let limit = self.shared.answer_max.get();
            let is_answer = call.is_some();
            tracing::warn!(server, dropped, bytes, limit, is_answer, "a message was too long");
        }
    }
}

/// Waits for the warden, whose socket is closed, so that it kills. One that was itself killed, or
/// hangs, may have left the program behind.
async fn reap(warden: &mut Child, program: Option<Pid>) {
    let status = match timeout(REAP_WITHIN, warden.wait()).await {
        Ok(status) => status.ok(),
        Err(_) => {
            // It may just have ended by itself.
            let _ = warden.start_kill();
            warden.wait().await.ok()
        }
    };
    let was_killed = status.is_none_or(|status| status.code().is_none());
    if let Some(program) = program
        && was_killed
    {
        // Nobody else can have its number so soon.
        let _ = kill_process_group(program, Signal::KILL);
    }
}

fn tell_end(shared: &Shared, why: Why, end: Option<End>) {
    let server = &*shared.name;
    let code = end.and_then(|end| if let End::Code(code) = end { Some(code) } else { None });
    let signal = end.and_then(|end| if let End::Signal(it) = end { Some(it) } else { None });
    let last_line = shared.tail.borrow().last_line(&shared.cleaner);
    let last_line = last_line.as_deref();
    match why {
        Why::Ours => tracing::debug!(server, code, signal, "a server's program was ended"),
        Why::Overflow => tracing::warn!(server, "a server's program does not read its input"),
        Why::Ended => {
            tracing::warn!(server, code, signal, last_line, "a server's program ended by itself");
        }
    }
}

/// Tells the owner: first what was never sent, then that it is over.
async fn report(
    why: Why,
    mut messages: mpsc::Receiver<Outgoing>,
    events: &EventSender,
    last_words: String,
) {
    let cause = match why {
        Why::Ended => Cause::ProcessExited,
        Why::Overflow | Why::Ours => Cause::ConnectionBroken,
    };
    let failure = Failure::of(cause, OutcomeKind::Transport);
    messages.close();
    while let Some(outgoing) = messages.recv().await {
        if let Some(call) = outgoing.call {
            events.tell(ConnectionEvent::Unanswered { call, failure }).await;
        }
    }
    let failure = Failure { delivery: Delivery::Maybe, ..failure };
    events.tell(ConnectionEvent::Closed { failure, last_words }).await;
}

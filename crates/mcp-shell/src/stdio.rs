//! Conversations with servers that are programs: one message a line on their stdin and stdout.
//!
//! ```text
//!   owner ── request, notice ──▶ outbox ──▶ conversation ──▶ warden ──▶ program
//!   owner ◀── events ────────────────────  conversation ◀───────────── program
//! ```
//! A program never runs by itself: a warden ([`crate::child`]) stands between, which ends it with
//! everything it started, also after `kill -9` of the gateway.
//!
//! Rules kept here:
//! - Nothing that is sent waits: a program that does not read fills the outbox, and a full outbox
//!   ends the conversation.
//! - Output that is no message costs that line and nothing else: it is dropped, counted and told.
//!   An answer that is too long ends its own call, if it can be seen whose it is.
//! - A request that never left the outbox is reported as not delivered before the end is.
//! - A place among the [`Children`] is held until the program is really gone.
//! - The program's environment is the config's and a short list of our own ([`environment`]).
//! - Dropping a transport kills the program at once; [`StdioTransport::close`] lets it end.
//!
//! Left to others: when to start it again (`tidegate_mcp::supervisor`), deadlines (the owner).

use tidegate_runtime::task;

mod children;
mod conversation;
mod environment;
pub(super) mod lines;
pub(super) mod oversize;
mod stderr;
#[cfg(test)]
mod tests;
mod throttle;

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use rustix::io::Errno;
use tidegate_config::secret::Secret;
use tidegate_core::outcome::OutcomeKind;
use tidegate_mcp::cause::Cause;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::timeout;

pub use self::children::Children;
use self::conversation::{Outgoing, StdioConversation, Wires};
use self::stderr::{Cleaner, Tail};
use super::transport::{EventSender, Failure};

/// Messages that may wait for a program that does not read: more than calls at once.
const OUTBOX_MESSAGES: usize = 1024;
/// Their bytes: twice the largest request a client may make.
const OUTBOX_BYTES: usize = 64 * 1024 * 1024;
/// The longest an orderly end may take: the warden's two graces, killing, and some slack.
const CLOSE_WITHIN: Duration = Duration::from_secs(8);

/// What a program needs to be started.
#[derive(Clone, Debug)]
pub(crate) struct StdioSettings {
    /// The server's name.
    pub(crate) name: Rc<str>,
    /// The program and its arguments; no shell reads them.
    pub(crate) command: Vec<String>,
    /// What the config adds to its environment.
    pub(crate) env: Vec<(String, Secret)>,
    /// The warden and its arguments, to which `command` is added: [`own_warden`], but for tests.
    pub(crate) warden: Vec<OsString>,
    /// The largest message that is taken from it; a reload may change it.
    pub(crate) answer_max: Rc<Cell<usize>>,
}

/// This very program as a warden. By this path it is the same program even when the file has been
/// replaced by a newer one since.
pub(crate) fn own_warden() -> io::Result<Vec<OsString>> {
    const SELF: &str = "/proc/self/exe";
    let program = match Path::new(SELF).exists() {
        true => SELF.into(),
        false => std::env::current_exe()?.into_os_string(),
    };
    Ok(vec![program, "__child".into(), "--".into()])
}

/// One running program, as its owner sees it.
#[derive(Debug)]
pub(crate) struct StdioTransport {
    outbox: mpsc::Sender<Outgoing>,
    shared: Rc<Shared>,
    /// Dropped: everything ends at once.
    end: oneshot::Sender<()>,
    /// Resolves when nothing of the program is left.
    done: oneshot::Receiver<()>,
}

/// What a transport and its conversation both hold.
#[derive(Debug)]
struct Shared {
    name: Rc<str>,
    /// The program, as configured.
    program: String,
    /// Bytes in the outbox.
    queued: Cell<usize>,
    /// The program does not read, and the outbox is full.
    overflow: Notify,
    cleaner: Cleaner,
    tail: RefCell<Tail>,
    answer_max: Rc<Cell<usize>>,
}

impl StdioTransport {
    /// Starts the program. Whether it runs is told as the first event.
    pub(crate) fn open(
        settings: &StdioSettings,
        children: &Children,
        events: EventSender,
    ) -> Result<Self, Failure> {
        let Some(place) = children.place() else {
            let limit = children.max();
            tracing::warn!(server = &*settings.name, limit, "too many programs run already");
            return Err(Failure::of(Cause::TooManyChildren, OutcomeKind::Cancelled));
        };
        let shared = Rc::new(Shared::of(settings));
        let wires = Wires::start(settings).map_err(|error| shared.cannot_start(&error))?;
        let (outbox, messages) = mpsc::channel(OUTBOX_MESSAGES);
        let (end, ended) = oneshot::channel();
        let (finished, done) = oneshot::channel();
        let conversation =
            StdioConversation { shared: Rc::clone(&shared), wires, messages, events, ended, place };
        task::spawn("mcp child", async move {
            conversation.run().await;
            // Nobody may be waiting for it.
            let _ = finished.send(());
        });
        Ok(Self { outbox, shared, end, done })
    }

    /// Sends a request, whose id is `call`.
    pub(crate) fn request(&self, call: u64, message: Bytes) {
        self.send(Outgoing { call: Some(call), message });
    }

    /// Sends a notification, or an answer to the server's own request.
    pub(crate) fn notice(&self, message: Bytes) {
        self.send(Outgoing { call: None, message });
    }

    /// The version matters to HTTP only.
    pub(crate) fn negotiated(&self, _version: &str) {}

    /// An answer that still comes is a message like any other, and the owner knows its calls.
    pub(crate) fn forget(&self, _call: u64) {}

    /// Ends the conversation in good order: the program's stdin is closed, it is asked by TERM
    /// after a while, and killed after another. Dropping this future kills at once.
    pub(crate) async fn close(self) {
        let Self { outbox, end, done, .. } = self;
        drop(outbox);
        // What has not ended by then is killed by dropping `end`.
        let _ = timeout(CLOSE_WITHIN, done).await;
        drop(end);
    }

    /// The name of the server.
    pub(crate) fn name(&self) -> &str {
        &self.shared.name
    }

    fn send(&self, outgoing: Outgoing) {
        let queued = self.shared.queued.get().saturating_add(outgoing.message.len());
        if queued > OUTBOX_BYTES {
            self.shared.overflow.notify_one();
            return;
        }
        match self.outbox.try_send(outgoing) {
            Ok(()) => self.shared.queued.set(queued),
            Err(mpsc::error::TrySendError::Full(_)) => self.shared.overflow.notify_one(),
            // The conversation is over, and its end is among the events.
            Err(mpsc::error::TrySendError::Closed(_)) => {}
        }
    }
}

impl Shared {
    fn of(settings: &StdioSettings) -> Self {
        Self {
            name: Rc::clone(&settings.name),
            program: settings.command.first().cloned().unwrap_or_default(),
            queued: Cell::new(0),
            overflow: Notify::new(),
            cleaner: Cleaner::of(&settings.env),
            tail: RefCell::default(),
            answer_max: Rc::clone(&settings.answer_max),
        }
    }

    /// The last lines the program wrote to stderr, cleaned, for a person who looks for the cause.
    fn last_words(&self) -> String {
        self.tail.borrow().text(&self.cleaner)
    }

    /// Logs why the program does not start, and what may help.
    fn cannot_start(&self, error: &io::Error) -> Failure {
        let (server, program) = (&*self.name, &*self.program);
        if is_shortage(error) {
            tracing::warn!(server, program, %error, "no resources left to start a program");
            return Failure::of(Cause::Shortage, OutcomeKind::Cancelled);
        }
        let help = match error.kind() {
            io::ErrorKind::NotFound => Some("write its full path, or add its folder to PATH"),
            io::ErrorKind::PermissionDenied => Some("the file must be executable for this user"),
            _ => None,
        };
        tracing::error!(server, program, %error, help, "a server's program cannot be started");
        Failure::of(Cause::CannotStart, OutcomeKind::Transport)
    }
}

/// Whether it is us who lack something: that says nothing about the server.
fn is_shortage(error: &io::Error) -> bool {
    const SHORTAGES: [Errno; 4] = [Errno::MFILE, Errno::NFILE, Errno::AGAIN, Errno::NOMEM];
    let errno = error.raw_os_error();
    SHORTAGES.iter().any(|shortage| errno == Some(shortage.raw_os_error()))
}

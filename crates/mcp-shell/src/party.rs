//! Whose call it is: where everything goes that a server says while it works on one.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use serde_json::value::RawValue;
use tidegate_mcp::{
    message::{self, Id},
    raw::Fields,
};
use tokio::sync::Notify;

use super::{
    client::Client,
    conversation::Conversation,
    large::Large,
    stream::{Stream, Weight},
};

/// Questions about one call that wait for its client.
const WAITING_MAX: u32 = 64;

/// The client's side of one call.
pub(crate) struct Party {
    pub(crate) client: Weak<Client>,
    pub(crate) desk: Rc<Desk>,
    /// Which program asks, if the request itself said so.
    pub(crate) info: Option<Box<RawValue>>,
    /// From which level on the client wants the log lines of this call; all that come if its
    /// session says so, none if a client without one does not ask.
    pub(crate) level: Option<String>,
    /// Headers that repeat arguments, for servers of the stateless era.
    pub(crate) mirrored: Vec<(String, String)>,
    /// Arguments that are put back when the call is sent.
    pub(crate) large: Option<Large>,
}

/// Where a client waits for the answer to one call. One without a session may leave it, and come
/// back with another request.
pub(crate) struct Desk {
    stream: RefCell<Rc<Stream>>,
    progress: RefCell<Option<Box<RawValue>>>,
    /// The client has left, to come back: the latest progress waits for it.
    is_away: Cell<bool>,
    missed: RefCell<Option<String>>,
    /// Requests of the server's that the client has not answered.
    asked: Cell<u32>,
    waiting: RefCell<Vec<Waiting>>,
    turned: Notify,
    /// The client has cancelled the call, and what it said of that.
    cancelled: RefCell<Option<Cancelled>>,
}

/// What a client says when it cancels a call: its reason, if it gives one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cancelled {
    pub(crate) reason: Option<Box<RawValue>>,
}

/// A request of a server with sessions to a client that has none: it waits for the client's next
/// request.
pub(crate) struct Waiting {
    pub(crate) talk: Weak<Conversation>,
    /// The server's own id.
    pub(crate) id: Id,
    pub(crate) method: String,
    pub(crate) params: Option<Box<RawValue>>,
}

impl Desk {
    /// A client waits for events on this stream.
    pub(crate) fn new(stream: &Rc<Stream>) -> Rc<Self> {
        Rc::new(Self {
            stream: RefCell::new(Rc::clone(stream)),
            progress: RefCell::default(),
            is_away: Cell::default(),
            missed: RefCell::default(),
            asked: Cell::default(),
            waiting: RefCell::default(),
            turned: Notify::new(),
            cancelled: RefCell::default(),
        })
    }

    /// The client does not want the answer any more.
    pub(crate) fn cancel(&self, cancelled: Cancelled) {
        *self.cancelled.borrow_mut() = Some(cancelled);
    }

    /// What the client said when it cancelled the call, if it did.
    pub(crate) fn cancelled(&self) -> Option<Cancelled> {
        self.cancelled.borrow().clone()
    }

    /// The stream that the call's answer will be sent on.
    pub(crate) fn stream(&self) -> Rc<Stream> {
        Rc::clone(&self.stream.borrow())
    }

    /// The client waits on this stream now, and hears the latest of what it missed.
    pub(crate) fn move_to(&self, stream: &Rc<Stream>) {
        *self.stream.borrow_mut() = Rc::clone(stream);
        self.is_away.set(false);
        if let Some(missed) = self.missed.take() {
            self.tell_progress(missed);
        }
    }

    /// The client leaves, to come back.
    pub(crate) fn leave(&self) {
        self.is_away.set(true);
    }

    /// Tells of progress, with the client's own token, if it wants to hear of it.
    pub(crate) fn tell_progress(&self, params: String) {
        let Some(token) = self.progress() else { return };
        if self.is_away.get() {
            *self.missed.borrow_mut() = Some(params);
            return;
        }
        let Ok(mut fields) = Fields::parse(&params, &[]) else { return };
        fields.set("progressToken", token);
        let message = message::notification("notifications/progress", Some(&fields.to_json()));
        self.stream().send(message.as_bytes(), Weight::Notice);
    }

    /// The client's token for progress, as it wrote it; `None` if it wants none.
    pub(crate) fn progress(&self) -> Option<Box<RawValue>> {
        self.progress.borrow().clone()
    }

    /// The client wants progress under this token.
    pub(crate) fn set_progress(&self, token: Option<Box<RawValue>>) {
        *self.progress.borrow_mut() = token;
    }

    /// Whether the server waits for the client.
    pub(crate) fn is_asked(&self) -> bool {
        self.asked.get() > 0
    }

    /// The client is asked something.
    pub(crate) fn one_asked(&self) {
        self.asked.set(self.asked.get() + 1);
    }

    /// It has answered, or need not any more.
    pub(crate) fn one_answered(&self) {
        self.asked.set(self.asked.get().saturating_sub(1));
    }

    /// The client is to be asked with the answer to its request; the question, if too many wait.
    pub(crate) fn wait(&self, waiting: Waiting) -> Result<(), Waiting> {
        if self.asked.get() >= WAITING_MAX {
            return Err(waiting);
        }
        self.one_asked();
        self.waiting.borrow_mut().push(waiting);
        self.turned.notify_waiters();
        Ok(())
    }

    /// Waits until the client is to be asked something; what.
    pub(crate) async fn questions(&self) -> Vec<Waiting> {
        loop {
            let mut turned = std::pin::pin!(self.turned.notified());
            turned.as_mut().enable();
            let waiting = std::mem::take(&mut *self.waiting.borrow_mut());
            if !waiting.is_empty() {
                return waiting;
            }
            turned.await;
        }
    }
}

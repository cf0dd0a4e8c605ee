//! The streams on which a client without a session hears what it asked for
//! (`subscriptions/listen`).
//!
//! Rules kept here:
//! - Nothing is told that was not asked for; everything carries the id of the request.
//! - Bounded: as many streams as requests may be under way; a reader that does not read loses
//!   notifications, not the stream.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use tidegate_mcp::{
    message::Id,
    stateless::listen::{self, Filter},
};

use crate::stream::{Stream, Weight};

/// All streams of one client.
#[derive(Default)]
pub(crate) struct Listens {
    open: RefCell<BTreeMap<u64, Listen>>,
    next: Cell<u64>,
    ended: tokio::sync::Notify,
    is_over: Cell<bool>,
}

struct Listen {
    id: Id,
    filter: Filter,
    stream: Rc<Stream>,
}

impl Listens {
    /// Opens a stream: it begins with what the client will hear. Its number.
    pub(crate) fn open(&self, id: &Id, filter: Filter, stream: &Rc<Stream>) -> u64 {
        let number = self.next.get();
        self.next.set(number + 1);
        stream.send(listen::acknowledgement(&filter, id).as_bytes(), Weight::Needed);
        let listen = Listen { id: id.clone(), filter, stream: Rc::clone(stream) };
        self.open.borrow_mut().insert(number, listen);
        number
    }

    /// A stream is no more.
    pub(crate) fn close(&self, number: u64) {
        self.open.borrow_mut().remove(&number);
    }

    /// Whether any stream is about a resource.
    pub(crate) fn wants(&self, uri: &str) -> bool {
        self.open.borrow().values().any(|listen| listen.filter.uris.contains(uri))
    }

    /// Tells whoever asked for it.
    pub(crate) fn tell(&self, method: &str, params: Option<&str>) {
        for Listen { id, filter, stream } in self.open.borrow().values() {
            if filter.wants(method, params) {
                let message = listen::tagged(method, params, id);
                stream.send(message.as_bytes(), Weight::Notice);
            }
        }
    }

    /// Every stream is to end, in good order.
    pub(super) fn end(&self) {
        self.is_over.set(true);
        self.ended.notify_waiters();
    }

    /// Waits until the streams are to end.
    pub(crate) async fn over(&self) {
        loop {
            let mut ended = std::pin::pin!(self.ended.notified());
            ended.as_mut().enable();
            if self.is_over.get() {
                return;
            }
            ended.await;
        }
    }
}

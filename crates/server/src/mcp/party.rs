//! Whose call it is: where everything goes that a server says while it works on one.

use std::cell::Cell;
use std::rc::{Rc, Weak};

use serde_json::value::RawValue;

use super::{client::Client, stream::Stream};

/// The client's side of one call.
pub(crate) struct Party {
    pub(crate) client: Weak<Client>,
    /// The stream that the call's answer will be sent on.
    pub(crate) stream: Rc<Stream>,
    /// The client's token for progress, as it wrote it; `None` if it wants none.
    pub(crate) progress: Option<Box<RawValue>>,
    /// Requests of the server's that the client has not answered.
    pub(crate) asked: Cell<u32>,
    /// Which program asks, if the request itself said so.
    pub(crate) info: Option<Box<RawValue>>,
    /// From which level on the client wants the log lines of this call; all that come if its
    /// session says so, none if a client without one does not ask.
    pub(crate) level: Option<String>,
    /// Headers that repeat arguments, for servers of the stateless era.
    pub(crate) mirrored: Vec<(String, String)>,
}

//! Requests of ours on their way: a POST each, whose own answer only says that it was taken.
//!
//! Rules kept here:
//! - A POST that was refused is a request that gets no answer; what it means is read as anywhere
//!   else over HTTP.
//! - A server may take its time with the POST (some work first), so waiting has no limit while the
//!   request is under way: whoever waits drops the task. Once the answer has come over the stream
//!   the POST has [`TAKEN_WITHIN`] left.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::{
    http::{
        call,
        conversation::{ConnectionUse, HttpConversation},
    },
    transport::Failure,
};

/// How long a server may still take to acknowledge what it has answered.
const TAKEN_WITHIN: Duration = Duration::from_secs(5);

/// The POSTs under way.
#[derive(Debug, Default)]
pub(super) struct Posts(RefCell<BTreeMap<u64, Rc<Notify>>>);

impl Posts {
    /// Sends a request. Ends when it was taken, refused, or answered.
    pub(super) async fn send(
        &self,
        talk: &Rc<HttpConversation>,
        call: u64,
        message: Bytes,
    ) -> Result<(), Failure> {
        let answered = Rc::new(Notify::new());
        self.0.borrow_mut().insert(call, Rc::clone(&answered));
        let _under_way = UnderWay { posts: self, call };
        tokio::select! {
            taken = post(talk, call, message) => taken,
            () = async { answered.notified().await; sleep(TAKEN_WITHIN).await } => Ok(()),
        }
    }

    /// The answer to a request has come.
    pub(super) fn answered(&self, call: u64) {
        if let Some(answered) = self.0.borrow().get(&call) {
            answered.notify_one();
        }
    }
}

/// Takes a POST off the list when it ends, however it does.
struct UnderWay<'a> {
    posts: &'a Posts,
    call: u64,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.posts.0.borrow_mut().remove(&self.call);
    }
}

async fn post(talk: &Rc<HttpConversation>, call: u64, message: Bytes) -> Result<(), Failure> {
    if let Some(failure) = talk.refusal() {
        return Err(failure);
    }
    let post = || talk.request(Method::POST, message.clone(), None);
    let response = talk.send(ConnectionUse::Calls, post).await?;
    if response.status().is_success() {
        call::discard(talk, response).await;
        return Ok(());
    }
    let (head, body) = response.into_parts();
    call::refused(talk, call, &head, body, true).await
}

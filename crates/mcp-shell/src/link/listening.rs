//! What a server without sessions is asked to tell of its own accord: requests that stay open
//! (`subscriptions/listen`), made anew when they end or something else is to be heard.
//!
//! What it brings is heard like everything else a server says (`hearing`).
//!
//! Rules kept here:
//! - Lists and resources are asked for apart: a server that takes no more resources still tells of
//!   its lists.
//! - It is asked only for what the server says it tells.
//! - A stream that ends is asked for again after 2 s, twice as long each time, up to 30 s; a server
//!   that has no such method is not asked again.

use std::rc::{Rc, Weak};
use std::time::Duration;

use serde_json::value::RawValue;
use tidegate_core::time::Millis;
use tidegate_mcp::{
    message::{ErrorObject, METHOD_NOT_FOUND, Params},
    stateless::listen::{self, Filter},
};
use tidegate_runtime::{
    clock::timer_now,
    task::{self, Owned},
};
use tokio::sync::Notify;

use super::Link;
use crate::{
    conversation::{Conversation, Reply, Voice},
    hello::Hello,
};

/// A stream is asked for anew once a day, whatever happens.
const AGAIN_AFTER: Millis = Millis::seconds(24 * 3600);
const WAIT_MIN: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(30);
/// A stream that lasted this long was a good one.
const LASTED: Duration = Duration::from_secs(10);

/// What one stream is about.
#[derive(Clone, Copy)]
enum About {
    Lists,
    Resources,
}

/// Begins to listen, if there is no session in which the server would speak by itself.
pub(super) fn begin(link: &Link, talk: &Rc<Conversation>) -> Vec<Owned> {
    if !talk.is_stateless() {
        return Vec::new();
    }
    let listen = |about| {
        let resubscribed = Rc::clone(&link.resubscribed);
        let listening = run(link.downgrade(), about, Rc::clone(talk), resubscribed);
        task::spawn_owned("mcp listening", listening)
    };
    vec![listen(About::Lists), listen(About::Resources)]
}

/// Listens until the conversation is over.
async fn run(link: Weak<Link>, about: About, talk: Rc<Conversation>, resubscribed: Rc<Notify>) {
    let hello = Hello::own();
    let mut wait = WAIT_MIN;
    while !talk.is_over() {
        let mut changed = std::pin::pin!(resubscribed.notified());
        changed.as_mut().enable();
        let Some(filter) = link.upgrade().map(|link| link.filter(about)) else { return };
        if filter.is_empty() {
            changed.await;
            continue;
        }
        let params = format!(r#"{{"notifications":{}}}"#, filter.to_json());
        let params = RawValue::from_string(params).ok();
        let params = Params::parse(params.as_deref()).unwrap_or_default();
        let began = timer_now();
        let reply = tokio::select! {
            reply = talk.ask(listen::METHOD, params, Voice::of(&hello), AGAIN_AFTER) => reply,
            // At once: whoever wishes expects to hear what comes next.
            () = &mut changed => continue,
        };
        if is_unknown(&reply) {
            // Another wish may be one that it knows.
            changed.await;
            continue;
        }
        wait = if began.elapsed() > LASTED { WAIT_MIN } else { (wait * 2).min(WAIT_MAX) };
        drop(tokio::time::timeout(wait, changed).await);
    }
}

impl Link {
    /// What is to be heard over this link.
    fn filter(&self, about: About) -> Filter {
        let Some(info) = self.info() else { return Filter::default() };
        match about {
            About::Lists => Filter {
                tools: info.tells_changes("tools"),
                prompts: info.tells_changes("prompts"),
                resources: info.tells_changes("resources"),
                ..Filter::default()
            },
            About::Resources => {
                let uris = self.subscriptions.borrow();
                let uris = uris.iter().take(listen::URIS_MAX).cloned().collect();
                Filter { uris, ..Filter::default() }
            }
        }
    }

    /// A client wants to hear of a resource, or does not any more.
    pub(crate) fn subscribe(&self, uri: &str, is_wanted: bool) {
        if is_wanted && uri.len() > listen::URI_MAX {
            return;
        }
        let has_changed = match is_wanted {
            true => self.subscriptions.borrow_mut().insert(uri.to_owned()),
            false => self.subscriptions.borrow_mut().remove(uri),
        };
        if has_changed {
            self.resubscribed.notify_waiters();
        }
    }
}

fn is_unknown(reply: &Reply) -> bool {
    let Reply::Answer(Err(error)) = reply else { return false };
    let error = serde_json::from_slice::<&RawValue>(error).ok().map(ErrorObject::read);
    error.is_some_and(|error| error.code == METHOD_NOT_FOUND)
}

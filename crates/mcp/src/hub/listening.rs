//! What a server without sessions is asked to tell of its own accord: requests that stay open
//! (`subscriptions/listen`), made anew when they end or something else is to be heard.
//!
//! Rules kept here:
//! - Lists and resources are asked for apart: a server that takes no more resources still tells of
//!   its lists.
//! - It is asked only for what the server says it tells.
//! - A stream that ends is asked for again after 2 s, twice as long each time, up to 30 s; a server
//!   that has no such method is not asked again until something else is to be heard.

use std::sync::Arc;

use serde_json::value::RawValue;
use tidegate_core::time::{Millis, Now};

use super::connection::{Asker, Outbound, ServerReply};
use super::ids::{ConnectionId, LinkId};
use super::schedule::Task;
use super::{Env, Hub};
use crate::{
    era::Era,
    message::{METHOD_NOT_FOUND, Params, read_error},
    stateless::listen::{self, Filter},
};

/// A stream is asked for anew once a day, whatever happens.
const AGAIN_AFTER: Millis = Millis::seconds(24 * 3600);
const WAIT_MIN: Millis = Millis::seconds(1);
const WAIT_MAX: Millis = Millis::seconds(30);
/// A stream that lasted this long was a good one.
const LASTED: Millis = Millis::seconds(10);

/// What one link listens to.
pub(super) struct Listening {
    talk: ConnectionId,
    lists: ListeningStream,
    resources: ListeningStream,
}

#[derive(Clone, Copy)]
struct ListeningStream {
    stage: ListeningStage,
    wait: Millis,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ListeningStage {
    /// Nothing is asked for until something else is to be heard.
    Idle,
    /// Asked for, since then.
    Open(Now),
    /// Asked for again then.
    Again(Now),
}

impl Listening {
    fn stream(&mut self, is_lists: bool) -> &mut ListeningStream {
        if is_lists { &mut self.lists } else { &mut self.resources }
    }
}

impl Hub {
    /// Begins to listen, if there is no session in which the server would speak by itself.
    pub(super) fn begin_listening(&mut self, id: LinkId) {
        self.stop_listening(id);
        let Some(link) = self.links.get_mut(id) else { return };
        let Some((_, talk)) = link.talk else { return };
        if self.connections.get(talk).is_none_or(|it| it.era != Era::Stateless) {
            return;
        }
        let stream = ListeningStream { stage: ListeningStage::Idle, wait: WAIT_MIN };
        link.listening = Some(Box::new(Listening { talk, lists: stream, resources: stream }));
        self.schedule.wake(Task::Listening(id, true));
        self.schedule.wake(Task::Listening(id, false));
    }

    pub(super) fn stop_listening(&mut self, id: LinkId) {
        let Some(listening) = self.links.get_mut(id).and_then(|it| it.listening.take()) else {
            return;
        };
        for is_lists in [true, false] {
            self.give_up_all_of(listening.talk, Asker::Listening(id, is_lists));
            self.schedule.disarm(Task::Listening(id, is_lists));
        }
    }

    /// Asks for what is to be heard, if nothing is asked for and its time has come.
    pub(super) fn run_listening(&mut self, env: &mut Env<'_>, id: LinkId, is_lists: bool) {
        let filter = self.listening_filter(id, is_lists);
        let own_profile = Arc::clone(&self.own_profile);
        let Some(link) = self.links.get_mut(id) else { return };
        let Some(listening) = link.listening.as_mut() else { return };
        let talk = listening.talk;
        let is_over = self.connections.get(talk).is_none_or(|it| it.over.is_some());
        let stream = listening.stream(is_lists);
        match stream.stage {
            ListeningStage::Open(_) => return,
            ListeningStage::Again(at) if !env.now.reached(at) => return,
            ListeningStage::Idle | ListeningStage::Again(_) => {}
        }
        if is_over || filter.is_empty() {
            stream.stage = ListeningStage::Idle;
            return;
        }
        stream.stage = ListeningStage::Open(env.now);
        let params = format!(r#"{{"notifications":{}}}"#, filter.to_json());
        let params = RawValue::from_string(params).ok();
        let params = Params::parse(params.as_deref()).unwrap_or_default();
        let asker = Asker::Listening(id, is_lists);
        let out = Outbound::own(listen::METHOD, params, own_profile, AGAIN_AFTER, asker);
        self.send_request(env.now, talk, out);
    }

    /// A stream has ended.
    pub(super) fn listening_replied(
        &mut self,
        env: &mut Env<'_>,
        id: LinkId,
        is_lists: bool,
        reply: &ServerReply,
    ) {
        let Some(link) = self.links.get_mut(id) else { return };
        let Some(listening) = link.listening.as_mut() else { return };
        let stream = listening.stream(is_lists);
        let ListeningStage::Open(began) = stream.stage else { return };
        if is_unknown(reply) {
            // Another wish may be one that it knows.
            stream.stage = ListeningStage::Idle;
            return;
        }
        let doubled = Millis(stream.wait.0.saturating_mul(2)).min(WAIT_MAX);
        stream.wait = if env.now.since(began) > LASTED { WAIT_MIN } else { doubled };
        let at = env.now.after(stream.wait);
        stream.stage = ListeningStage::Again(at);
        self.schedule.arm(Task::Listening(id, is_lists), at);
    }

    /// What is to be heard over a link.
    fn listening_filter(&self, id: LinkId, is_lists: bool) -> Filter {
        let Some(link) = self.links.get(id) else { return Filter::default() };
        let Some(info) = &link.info else { return Filter::default() };
        if is_lists {
            return Filter {
                tools: info.tells_changes("tools"),
                prompts: info.tells_changes("prompts"),
                resources: info.tells_changes("resources"),
                ..Filter::default()
            };
        }
        let uris = link.subscriptions.iter().take(listen::URIS_MAX).cloned().collect();
        Filter { uris, ..Filter::default() }
    }

    /// A client wants to hear of a resource over a link without a session, or does not any more.
    pub(super) fn subscribe_link(&mut self, id: LinkId, uri: &str, is_wanted: bool) {
        if is_wanted && uri.len() > listen::URI_MAX {
            return;
        }
        let Some(link) = self.links.get_mut(id) else { return };
        let has_changed = match is_wanted {
            true => link.subscriptions.insert(uri.to_owned()),
            false => link.subscriptions.remove(uri),
        };
        if !has_changed {
            return;
        }
        let Some(listening) = link.listening.as_mut() else { return };
        // At once: whoever wishes expects to hear what comes next. The list stream is asked for
        // anew as well if the server did not know it.
        let talk = listening.talk;
        for is_lists in [true, false] {
            let stream = listening.stream(is_lists);
            if !is_lists || stream.stage == ListeningStage::Idle {
                stream.stage = ListeningStage::Idle;
                self.schedule.disarm(Task::Listening(id, is_lists));
                self.schedule.wake(Task::Listening(id, is_lists));
            }
        }
        self.give_up_all_of(talk, Asker::Listening(id, false));
    }
}

fn is_unknown(reply: &ServerReply) -> bool {
    let ServerReply::Answer(Err(error)) = reply else { return false };
    read_error(error).is_some_and(|error| error.code == METHOD_NOT_FOUND)
}

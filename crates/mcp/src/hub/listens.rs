//! The streams on which a client without a session hears what it asked for
//! (`subscriptions/listen`).
//!
//! Rules kept here:
//! - Nothing is told that was not asked for; everything carries the id of the request.
//! - Bounded: as many streams as requests may be under way; a reader that does not read loses
//!   notifications, not the stream.
//! - What a stream is to hear of is subscribed to, one resource after the other, and unsubscribed
//!   from when no other stream wants it.

use std::collections::VecDeque;

use serde_json::value::RawValue;

use super::calls::{AnswerTo, ClientCall, Requested};
use super::event::RequestToken;
use super::ids::ClientId;
use super::relay::Relayed;
use super::stateless_front::own_info_value;
use super::streams::StreamRef;
use super::{Env, Hub};
use crate::{
    message::{Id, made},
    raw::quoted,
    replay::Weight,
    stateless::{
        dress,
        listen::{self, Filter},
    },
};

/// One stream.
pub(super) struct Listen {
    id: Id,
    filter: Filter,
    /// None: the stream is over, and what it had subscribed to is unsubscribed from.
    stream: Option<StreamRef>,
    /// Resources that are still to be subscribed to, or to be unsubscribed from.
    left: VecDeque<String>,
    /// Whether one of them is under way.
    is_busy: bool,
}

impl Hub {
    /// A client wants to hear of changes, until it closes the stream or the gateway does.
    pub(super) fn open_listen(
        &mut self,
        env: &mut Env<'_>,
        client: ClientId,
        request: RequestToken,
        id: &Id,
        filter: Filter,
    ) {
        let Some(kept) = self.clients.get_mut(client) else { return };
        let account = self.retained.account(&kept.caller, kept.rights.share);
        let number = kept.next_listen;
        kept.next_listen += 1;
        let stream = self.plain_stream(account);
        let Some(reader) = self.attach(env.now, stream, Some(0)) else { return };
        let acknowledged = listen::acknowledgement(&filter, id);
        self.send_event(stream, acknowledged.as_bytes(), Weight::Needed);
        let left: VecDeque<String> = filter.uris.iter().cloned().collect();
        let id = id.clone();
        let listen = Listen { id, filter, stream: Some(stream), left, is_busy: false };
        if let Some(kept) = self.clients.get_mut(client) {
            kept.listens.insert(number, listen);
        }
        self.answer_events(request, reader);
        // Servers that come now are looked at, as for a list.
        self.begin_listen_look(env, client);
        self.run_listens(env, client);
    }

    /// A first look, so that servers that are well again are there to be heard.
    fn begin_listen_look(&mut self, env: &mut Env<'_>, client: ClientId) {
        let Some(kept) = self.clients.get(client) else { return };
        if kept.visibility.follows_health() {
            (0..kept.slots.len()).for_each(|slot| self.follow(env, client, slot));
        }
        if let Some(kept) = self.clients.get_mut(client) {
            kept.session.look(env.now);
        }
    }

    /// Tells whoever asked for it.
    pub(super) fn tell_listens(&mut self, client: ClientId, method: &str, params: Option<&str>) {
        let Some(kept) = self.clients.get(client) else { return };
        let open = kept.listens.values().filter(|it| it.filter.wants(method, params));
        let told = open.filter_map(|it| Some((it.stream?, listen::tagged(method, params, &it.id))));
        let told: Vec<(StreamRef, String)> = told.collect();
        for (stream, message) in told {
            self.send_event(stream, message.as_bytes(), Weight::Notice);
        }
    }

    /// Sees to the next resource of every stream that has none under way.
    fn run_listens(&mut self, env: &mut Env<'_>, client: ClientId) {
        let Some(kept) = self.clients.get(client) else { return };
        let numbers: Vec<u64> = kept.listens.keys().copied().collect();
        for number in numbers {
            let Some(kept) = self.clients.get_mut(client) else { return };
            let Some(it) = kept.listens.get_mut(&number) else { continue };
            if it.is_busy {
                continue;
            }
            let is_over = it.stream.is_none();
            let Some(uri) = it.left.pop_front() else {
                if is_over {
                    kept.listens.remove(&number);
                }
                continue;
            };
            it.is_busy = true;
            let what = if is_over { Relayed::Unsubscribe } else { Relayed::Subscribe };
            let params = RawValue::from_string(format!(r#"{{"uri":{}}}"#, quoted(&uri))).ok();
            let answer = (Self::standing(client), AnswerTo::Listen(number));
            let id = Id::number(number);
            // What cannot be subscribed to is never told of; the client is told so by silence.
            let call = ClientCall::new(client, id, Requested::Relay(what), params, answer);
            self.begin_call(env, call);
        }
    }

    /// A resource of one of the streams was seen to.
    pub(super) fn listen_goes_on(&mut self, env: &mut Env<'_>, client: ClientId) {
        let under_way: Vec<u64> = self
            .calls
            .iter()
            .filter(|(_, it)| it.client == client)
            .filter_map(|(_, it)| match it.answer {
                AnswerTo::Listen(number) => Some(number),
                _ => None,
            })
            .collect();
        if let Some(kept) = self.clients.get_mut(client) {
            for (number, it) in &mut kept.listens {
                it.is_busy = under_way.contains(number);
            }
        }
        self.run_listens(env, client);
    }

    /// The client closed the stream.
    pub(super) fn listen_gone(&mut self, env: &mut Env<'_>, stream: StreamRef) {
        let is_it = |it: &Listen| it.stream == Some(stream);
        let client = self.clients.iter().find(|(_, kept)| kept.listens.values().any(is_it));
        let Some(client) = client.map(|(id, _)| id) else { return };
        let Some(kept) = self.clients.get_mut(client) else { return };
        let numbers: Vec<u64> =
            kept.listens.iter().filter(|(_, it)| is_it(it)).map(|(number, _)| *number).collect();
        for number in numbers {
            self.close_listen(client, number);
        }
        self.visit_ended(env, client);
        self.run_listens(env, client);
    }

    /// A stream is no more: what no other wants is unsubscribed from.
    fn close_listen(&mut self, client: ClientId, number: u64) {
        let Some(kept) = self.clients.get_mut(client) else { return };
        let Some(it) = kept.listens.get_mut(&number) else { return };
        it.stream = None;
        let uris = it.filter.uris.clone();
        let others: Vec<&Listen> = kept.listens.values().filter(|it| it.stream.is_some()).collect();
        let is_unwanted = |uri: &String| !others.iter().any(|it| it.filter.uris.contains(uri));
        let left: VecDeque<String> = uris.into_iter().filter(is_unwanted).collect();
        if let Some(it) = kept.listens.get_mut(&number) {
            it.left = left;
        }
    }

    /// Every stream of a client ends, in good order.
    pub(super) fn end_listens(&mut self, env: &mut Env<'_>, client: ClientId) {
        let Some(kept) = self.clients.get_mut(client) else { return };
        for (_, it) in std::mem::take(&mut kept.listens) {
            let Some(stream) = it.stream else { continue };
            let farewell = dress::for_stateless("", &listen::farewell(&it.id), &own_info_value());
            self.send_event(stream, made(&it.id, &Ok(farewell)).as_bytes(), Weight::Needed);
            self.end_stream(stream);
            self.visit_ended(env, client);
        }
    }
}

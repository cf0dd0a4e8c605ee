//! Requests of the stateless era over stdio, where there is one stream for all of them: so they
//! are cancelled by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;

use super::{
    FakeMcp, Reply, RequestFate, Talk, answer, carry_out, course, dress, listen, of_request,
};
use crate::fake_mcp::talk::Out;

/// The requests of one client.
pub(crate) struct Requests {
    fake: Arc<FakeMcp>,
    wire: UnboundedSender<Out>,
    under_way: BTreeMap<String, Arc<Talk>>,
}

impl Requests {
    pub(crate) fn new(fake: &Arc<FakeMcp>, wire: &UnboundedSender<Out>) -> Self {
        let (fake, wire) = (Arc::clone(fake), wire.clone());
        Self { fake, wire, under_way: BTreeMap::new() }
    }

    /// Cancels a request; whether it was one of these.
    pub(crate) fn cancel(&mut self, id: &Value) -> bool {
        let mut listeners = self.fake.listeners();
        let before = listeners.len();
        listeners.retain(|_, listener| !listener.is_of(id));
        let was_listening = listeners.len() < before;
        drop(listeners);
        let talk = self.under_way.remove(&id.to_string());
        talk.is_some_and(|talk| talk.cancel(id)) || was_listening
    }

    /// Takes a message.
    pub(crate) fn take(&mut self, message: Value) {
        let method = &message["method"];
        if message["id"].is_null() {
            // A request that has been answered meanwhile may be cancelled all the same.
            if method != "notifications/cancelled" {
                self.fake.record.breach(format!("{method} came without a session"));
            }
            return;
        }
        // Nobody else holds the conversation of a request that is over.
        self.under_way.retain(|_, talk| Arc::strong_count(talk) > 1);
        let id = message["id"].clone();
        match course(&self.fake, None, &message) {
            RequestFate::Refuse(refusal) => self.say(refusal.message(&id)),
            RequestFate::Known(reply) => self.reply(&id, reply),
            RequestFate::Status { status, .. } => {
                self.reply(&id, Reply::Error(-32603, format!("status {status}")));
            }
            // The writer takes care of it, after what was said before.
            RequestFate::Cut => drop(self.wire.send(Out::Cut)),
            RequestFate::Listen => {
                let talk = Talk::of_request(None);
                talk.attach_to(0, &self.wire);
                listen::open(&self.fake, talk, &message);
            }
            RequestFate::Answer(act) => {
                let talk = Arc::new(of_request(&message));
                talk.attach_to(0, &self.wire);
                carry_out(&self.fake, &talk, message, act);
                self.under_way.insert(id.to_string(), talk);
            }
        }
    }

    fn reply(&self, id: &Value, reply: Reply) {
        let reply = dress(&self.fake.script.load(), "", reply);
        self.say(answer::message(id, &reply).unwrap_or_default());
    }

    fn say(&self, text: String) {
        // Whoever reads no more hears nothing.
        drop(self.wire.send(Out::Message(String::new(), text)));
    }
}

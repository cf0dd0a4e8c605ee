//! Streams of `subscriptions/listen`: what a client wants to hear of its own accord.
//!
//! Rules kept here:
//! - The first message says what of the wish is granted: lists and resources that the server has.
//! - Nothing is said that was not asked for, and everything carries the id of the request.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::{FakeMcp, McpScript, PREFIX, Reply, answer, dress};
use crate::fake_mcp::notification;
use crate::fake_mcp::talk::Talk;

/// Who listens.
#[derive(Debug)]
pub(crate) struct Listener {
    id: Value,
    granted: Value,
    talk: Talk,
    /// The last message, when the server ends it in good order.
    farewell: String,
}

impl Listener {
    /// Breaks the stream.
    pub(crate) fn cut(&self) {
        self.talk.cut(0);
    }

    /// Ends it in good order: the request is answered.
    pub(crate) fn finish(&self) {
        self.talk.tell(&self.farewell);
        self.talk.detach(0);
    }

    /// Whether the request of this id opened it.
    pub(crate) fn is_of(&self, id: &Value) -> bool {
        self.id == *id
    }

    fn wants(&self, method: &str, params: Option<&Value>) -> bool {
        let uri = || params.and_then(|params| params["uri"].as_str());
        match method {
            "notifications/tools/list_changed" => self.granted["toolsListChanged"] == true,
            "notifications/prompts/list_changed" => self.granted["promptsListChanged"] == true,
            "notifications/resources/list_changed" => self.granted["resourcesListChanged"] == true,
            "notifications/resources/updated" => {
                let uris = self.granted["resourceSubscriptions"].as_array();
                uris.is_some_and(|uris| uris.iter().any(|it| it.as_str() == uri()))
            }
            _ => false,
        }
    }

    fn say(&self, method: &str, params: Option<&Value>) {
        let mut params = params.cloned().unwrap_or_else(|| json!({}));
        params["_meta"][format!("{PREFIX}subscriptionId")] = self.id.clone();
        self.talk.tell(&notification(method, Some(params)));
    }
}

/// Begins to tell what changes, on the stream 0 of this conversation; the number of the stream.
/// The wish was acknowledged.
pub(super) fn open(fake: &FakeMcp, talk: Talk, message: &Value) -> u64 {
    let script = fake.script.load();
    let id = message["id"].clone();
    let meta = json!({format!("{PREFIX}subscriptionId"): id});
    let farewell = dress(&script, "", Reply::Result(json!({"_meta": meta}).to_string()));
    let farewell = answer::message(&id, &farewell).unwrap_or_default();
    let granted = granted(&script, &message["params"]["notifications"]);
    let listener = Listener { id, granted, talk, farewell };
    let params = json!({"notifications": listener.granted});
    listener.say("notifications/subscriptions/acknowledged", Some(&params));
    let number = fake.next_session.fetch_add(1, Ordering::Relaxed);
    fake.listeners().insert(number, listener);
    number
}

/// Tells everybody who wants to hear it.
pub(crate) fn tell(fake: &FakeMcp, method: &str, params: Option<&Value>) {
    for listener in fake.listeners().values().filter(|it| it.wants(method, params)) {
        listener.say(method, params);
    }
}

fn granted(script: &McpScript, wish: &Value) -> Value {
    let capabilities = answer::capabilities(script);
    let kinds = [
        ("toolsListChanged", "tools"),
        ("promptsListChanged", "prompts"),
        ("resourcesListChanged", "resources"),
    ];
    let mut granted = json!({});
    for (key, kind) in kinds {
        if wish[key] == true && !capabilities[kind].is_null() {
            granted[key] = json!(true);
        }
    }
    let uris = wish["resourceSubscriptions"].as_array();
    if let Some(uris) = uris.filter(|_| !capabilities["resources"].is_null()) {
        granted["resourceSubscriptions"] = json!(uris);
    }
    granted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_mcp::talk::{Out, Outs};

    fn next(outs: &mut Outs) -> Value {
        match outs.try_recv() {
            Ok(Out::Message(_, text)) => serde_json::from_str(&text).expect("JSON"),
            _ => Value::Null,
        }
    }

    #[test]
    fn a_listener_hears_what_it_asked_for_with_the_id_of_its_request() {
        let fake = FakeMcp::new(McpScript::default().resource("memo://a", "A"));
        let wish = json!({"toolsListChanged": true, "promptsListChanged": true,
            "resourceSubscriptions": ["memo://a"]});
        let message = json!({"id": "l1", "params": {"notifications": wish}});
        let talk = Talk::of_request(None);
        let mut outs = talk.attach(0, None, false).expect("every conversation has it");
        open(&fake, talk, &message);
        let ack = next(&mut outs);
        assert_eq!(ack["method"], "notifications/subscriptions/acknowledged");
        let granted = json!({"toolsListChanged": true, "resourceSubscriptions": ["memo://a"]});
        assert_eq!(ack["params"]["notifications"], granted, "it has no prompts");
        fake.tell_all("notifications/prompts/list_changed", None);
        fake.tell_all("notifications/resources/list_changed", None);
        answer::touch(&fake, "memo://b");
        fake.tell_all("notifications/tools/list_changed", None);
        answer::touch(&fake, "memo://a");
        let heard = [next(&mut outs), next(&mut outs)];
        assert_eq!(heard[0]["method"], "notifications/tools/list_changed");
        assert_eq!(heard[1]["params"]["uri"], "memo://a");
        fake.end_listening();
        let end = next(&mut outs);
        assert_eq!((&end["id"], &end["result"]["resultType"]), (&json!("l1"), &json!("complete")));
        let key = "io.modelcontextprotocol/subscriptionId";
        for params in [&ack["params"], &heard[0]["params"], &heard[1]["params"], &end["result"]] {
            assert_eq!(params["_meta"][key], "l1");
        }
        assert!(outs.try_recv().is_err() && fake.listeners().is_empty());
    }
}

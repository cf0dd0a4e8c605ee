//! Batches, search mode, listening, and a transport of the first revision.

use bytes::Bytes;
use serde_json::{Value, json};
use tidegate_core::time::Millis;

use super::bed::{Bed, Manner};
use crate::hub::{Event, LargeAnswer};

#[test]
fn a_batch_is_answered_on_one_stream_that_ends_with_its_last_answer() {
    let mut bed = Bed::new(&["a"]).start();
    let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-03-26", "capabilities": {}}});
    let token = bed.post("", &message);
    let session = bed.answers[&token].session.clone().expect("a session");
    let call = |id: u64, tool: &str| {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": tool, "arguments": {}}})
    };
    let ping = json!({"jsonrpc": "2.0", "id": 3, "method": "ping"});
    let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let batch = Value::Array(vec![call(1, "echo"), call(2, "wait"), ping, told.clone()]);
    let token = bed.post(&session, &batch);
    assert_eq!(bed.messages(token).len(), 2, "the call and the ping");
    assert!(!bed.over.contains(&bed.reader(token)));
    let (connection, call) = bed.servers[0].held.remove(0);
    bed.reply(connection, call, Ok(json!({"content": []})));
    bed.settle();
    assert_eq!(bed.last(token)["id"], 2);
    assert!(bed.over.contains(&bed.reader(token)));
    let token = bed.post(&session, &Value::Array(vec![told]));
    assert_eq!(bed.answers[&token].status, 202);
}

#[test]
fn in_search_mode_lists_and_finds_are_asked_of_whoever_searches() {
    let mut bed = Bed::new(&["a", "b"]);
    bed.settings.is_search = true;
    let mut bed = bed.start();
    let session = bed.open();
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let token = bed.post(&session, &list);
    assert_eq!(bed.whole(token)["result"]["found"], 8);
    let token = bed.call(&session, 2, "find_tool");
    assert_eq!(bed.last(token)["result"]["found"], 8);
    let token = bed.call(&session, 3, "b_echo");
    assert_eq!(bed.last(token)["result"]["content"][0]["text"], "b", "by its own name too");
}

#[test]
fn a_client_without_a_session_hears_of_changes_until_it_closes_the_stream() {
    let mut bed = Bed::new(&["a"]).start();
    let wish = json!({"notifications": {"toolsListChanged": true}});
    let token = bed.post_stateless(7, "subscriptions/listen", wish, &json!({}));
    let first = bed.last(token);
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    bed.pass(Millis::seconds(1));
    bed.servers[0].tools.pop();
    bed.reload();
    bed.pass(Millis::seconds(1));
    let told = bed.last(token);
    assert_eq!(told["method"], "notifications/tools/list_changed", "{told}");
    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 7);
    let reader = bed.reader(token);
    bed.tell(Event::ReaderGone { reader });
    bed.pass(Millis::minutes(31));
    assert_eq!(bed.hub.sizes().clients, 0, "nobody is left to hear");
}

#[test]
fn the_end_of_the_gateway_says_farewell_to_who_listens() {
    let mut bed = Bed::new(&["a"]).start();
    let wish = json!({"notifications": {"toolsListChanged": true}});
    let token = bed.post_stateless(7, "subscriptions/listen", wish, &json!({}));
    bed.tell(Event::Close);
    assert_eq!(bed.last(token)["id"], 7);
    assert!(bed.over.contains(&bed.reader(token)) && bed.is_closed);
}

#[test]
fn a_server_that_takes_no_post_is_tried_with_the_transport_of_the_first_revision() {
    let mut bed = Bed::new(&["a"]);
    bed.servers[0].manner = Manner::Legacy;
    let mut bed = bed.start();
    let session = bed.open();
    assert_eq!(bed.tools(&session).len(), 4);
    let token = bed.call(&session, 1, "echo");
    assert_eq!(bed.last(token)["result"]["content"][0]["text"], "a");
    let refused = bed.servers[0].count("server/discover");
    bed.open();
    assert_eq!(bed.servers[0].count("server/discover"), refused, "it is remembered");
}

#[test]
fn a_large_answer_is_taken_out_of_its_message_and_nothing_else_is() {
    let read = |text: &str| LargeAnswer::read(&Bytes::from(text.to_owned()));
    let answer = read(r#"{"jsonrpc":"2.0","id":7,"result":{"a": 1.0}}"#).expect("an answer");
    assert_eq!((answer.call, answer.outcome), (7, Ok(Bytes::from(r#"{"a": 1.0}"#))));
    let error = read(r#"{"jsonrpc":"2.0","id":7,"error":{"code":1}}"#).expect("an answer");
    assert_eq!(error.outcome, Err(Bytes::from(r#"{"code":1}"#)));
    for other in [
        r#"{"jsonrpc":"2.0","id":"7","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":7,"result":{}"#,
        r#"[{"jsonrpc":"2.0","id":7,"result":{}}]"#,
    ] {
        assert!(read(other).is_none(), "{other}");
    }
}

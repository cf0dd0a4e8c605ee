//! Sessions: what they see, how they end.

use serde_json::json;
use tidegate_core::time::Millis;

use super::bed::{Bed, Manner};
use crate::hub::{Event, HttpMethod};

#[test]
fn a_session_lists_and_calls_what_all_servers_offer() {
    let mut bed = Bed::new(&["a", "b"]).start();
    let session = bed.open();
    let tools = bed.tools(&session);
    assert_eq!(tools.len(), 8, "{tools:?}");
    let token = bed.call(&session, 1, "b_echo");
    let answer = bed.last(token);
    assert_eq!((&answer["id"], &answer["result"]["content"][0]["text"]), (&json!(1), &json!("b")));
    assert!(bed.over.contains(&bed.reader(token)), "the stream ends with the answer");
    assert_eq!(bed.servers[0].count("tools/call"), 0);
    assert_eq!(bed.records.len(), 1);
    assert_eq!(bed.hub.sizes().calls, 0);
}

#[test]
fn a_server_that_is_dead_when_a_session_opens_is_left_out_of_it() {
    let mut bed = Bed::new(&["a", "b"]).start();
    bed.servers[1].manner = Manner::Dead;
    let session = bed.open();
    let tools = bed.tools(&session);
    assert!(tools.iter().all(|it| it.starts_with("a_")), "{tools:?}");
    let before = bed.servers[1].asked.len();
    let token = bed.call(&session, 1, "b_echo");
    let answer = bed.last(token);
    let told = &answer["result"]["structuredContent"];
    assert_eq!(told["code"], "backend_unavailable", "{answer}");
    assert_eq!(bed.servers[1].asked.len(), before, "no request of the session reaches it");
    bed.servers[1].manner = Manner::Works;
    bed.pass(Millis::seconds(60));
    let later = bed.open();
    assert_eq!(bed.tools(&later).len(), 8);
}

#[test]
fn an_unknown_tool_is_told_with_the_nearest_name() {
    let mut bed = Bed::new(&["a"]).start();
    let session = bed.open();
    let token = bed.call(&session, 1, "ecko");
    bed.pass(Millis::seconds(1));
    let answer = bed.last(token);
    assert_eq!(answer["error"]["code"], -32602);
    assert!(answer["error"]["message"].as_str().expect("words").contains("echo"), "{answer}");
}

#[test]
fn an_unknown_session_is_404_and_an_ended_one_is_gone_with_its_connections() {
    let mut bed = Bed::new(&["a"]).start();
    let session = bed.open();
    let token = bed.send(HttpMethod::Get, "nobody", None);
    assert_eq!(bed.answers[&token].status, 404);
    let open = bed.hub.sizes();
    let token = bed.send(HttpMethod::Delete, &session, None);
    assert_eq!(bed.answers[&token].status, 200);
    let after = bed.hub.sizes();
    assert_eq!((open.clients, after.clients), (1, 0));
    assert_eq!(after.connections, open.connections - 1);
    let token = bed.call(&session, 1, "echo");
    assert_eq!(bed.answers[&token].status, 404);
}

#[test]
fn calls_under_way_may_finish_when_their_session_ends() {
    let mut bed = Bed::new(&["a"]).start();
    let session = bed.open();
    let token = bed.call(&session, 1, "wait");
    bed.send(HttpMethod::Delete, &session, None);
    bed.pass(Millis::seconds(1));
    let (connection, call) = bed.servers[0].held.remove(0);
    bed.reply(connection, call, Ok(json!({"content": []})));
    bed.settle();
    assert_eq!(bed.last(token)["id"], 1);
    assert_eq!(bed.hub.sizes().clients, 0);
}

#[test]
fn an_idle_session_is_reaped_and_one_that_is_read_is_not() {
    let mut bed = Bed::new(&["a"]).start();
    let (idle, read) = (bed.open(), bed.open());
    let standing = bed.send(HttpMethod::Get, &read, None);
    bed.pass(Millis::minutes(31));
    let token = bed.call(&idle, 1, "echo");
    assert_eq!(bed.answers[&token].status, 404);
    let token = bed.call(&read, 1, "echo");
    assert_eq!(bed.answers[&token].status, 200);
    let reader = bed.reader(standing);
    bed.tell(Event::ReaderGone { reader });
    bed.pass(Millis::minutes(31));
    assert_eq!(bed.hub.sizes().clients, 0);
}

#[test]
fn a_client_that_comes_back_hears_the_rest_of_its_stream() {
    let mut bed = Bed::new(&["a"]).start();
    let session = bed.open();
    let token = bed.call(&session, 1, "wait");
    let reader = bed.reader(token);
    bed.tell(Event::ReaderGone { reader });
    let (connection, call) = bed.servers[0].held.remove(0);
    bed.reply(connection, call, Ok(json!({"content": []})));
    bed.settle();
    let again = bed.send(HttpMethod::Get, &session, Some("1-0"));
    assert_eq!(bed.last(again)["id"], 1);
}

#[test]
fn everything_ends_in_good_order_at_the_end() {
    let mut bed = Bed::new(&["a", "b"]).start();
    let session = bed.open();
    let token = bed.call(&session, 1, "a_wait");
    bed.tell(Event::Close);
    assert!(!bed.is_closed, "a call is under way");
    let refused = bed.call(&session, 2, "a_echo");
    assert_eq!(bed.answers[&refused].status, 503);
    let (connection, call) = bed.servers[0].held.remove(0);
    bed.reply(connection, call, Ok(json!({"content": []})));
    bed.settle();
    assert_eq!(bed.last(token)["id"], 1);
    assert!(bed.is_closed);
    assert_eq!(bed.opened, bed.closed, "every connection is closed");
}

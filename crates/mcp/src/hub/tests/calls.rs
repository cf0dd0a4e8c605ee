//! Calls: turns, losses, cancelling, groups.

use serde_json::json;
use tidegate_core::time::Millis;

use super::bed::{Bed, Manner};
use crate::hub::{Event, Metric};

#[test]
fn a_lost_session_is_regained_and_the_first_result_says_so() {
    let mut bed = Bed::new(&["a"]).start();
    let session = bed.open();
    bed.servers[0].manner = Manner::Forgetful;
    let before = bed.servers[0].count("initialize");
    let token = bed.call(&session, 1, "echo");
    let answer = bed.last(token);
    assert_eq!(answer["result"]["_meta"]["tidegate/session"], "new", "{answer}");
    assert_eq!(bed.servers[0].count("initialize"), before + 1);
    let token = bed.call(&session, 2, "echo");
    assert!(bed.last(token)["result"]["_meta"].is_null());
}

#[test]
fn a_call_that_may_have_been_carried_out_is_not_sent_again_unless_that_is_harmless() {
    let mut bed = Bed::new(&["a"]).start();
    let session = bed.open();
    let token = bed.call(&session, 1, "wait");
    bed.break_connections(0);
    let answer = bed.last(token);
    assert_eq!(answer["result"]["structuredContent"]["code"], "result_unknown", "{answer}");
    assert_eq!(bed.servers[0].count("tools/call"), 1);
}

#[test]
fn calls_wait_for_their_turn_and_one_that_waits_in_vain_is_busy_and_charges_nobody() {
    let mut bed = Bed::new(&["a"]);
    bed.settings.servers[0].max_calls = 1;
    let mut bed = bed.start();
    let session = bed.open();
    let first = bed.call(&session, 1, "wait");
    bed.pass(Millis::seconds(1));
    let second = bed.call(&session, 2, "wait");
    assert_eq!(bed.servers[0].count("tools/call"), 1, "one at a time");
    bed.pass(Millis::seconds(59));
    let timed_out = bed.last(first);
    assert_eq!(timed_out["result"]["structuredContent"]["code"], "result_unknown", "{timed_out}");
    assert_eq!(bed.servers[0].count("tools/call"), 2, "the turn of the second has come");
    let third = bed.call(&session, 3, "wait");
    let (connection, call) = bed.servers[0].held.remove(1);
    bed.pass(Millis::seconds(30));
    bed.reply(connection, call, Ok(json!({"content": []})));
    bed.settle();
    assert_eq!(bed.last(second)["id"], 2);
    let fourth = bed.call(&session, 4, "echo");
    bed.pass(Millis::seconds(59));
    bed.pass(Millis::seconds(2));
    assert_eq!(bed.messages(third).len(), 1);
    assert_eq!(bed.last(fourth)["id"], 4);
}

#[test]
fn a_call_that_is_cancelled_in_the_line_leaves_its_turn_to_the_next() {
    let mut bed = Bed::new(&["a"]);
    bed.settings.servers[0].max_calls = 1;
    let mut bed = bed.start();
    let session = bed.open();
    bed.call(&session, 1, "wait");
    bed.call(&session, 2, "wait");
    let third = bed.call(&session, 3, "echo");
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": 2}});
    bed.post(&session, &cancel);
    let (connection, call) = bed.servers[0].held.remove(0);
    bed.reply(connection, call, Ok(json!({"content": []})));
    bed.settle();
    assert_eq!(bed.last(third)["id"], 3);
    assert_eq!(bed.servers[0].count("tools/call"), 2, "the second was never sent");
}

#[test]
fn a_call_that_is_cancelled_tells_its_server_why_and_ends_its_stream() {
    let mut bed = Bed::new(&["a"]).start();
    let session = bed.open();
    let token = bed.call(&session, 1, "wait");
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": 1, "reason": "changed my mind"}});
    bed.post(&session, &cancel);
    let cancelled = bed.servers[0].asked.iter().find(|it| it.0 == "notifications/cancelled");
    assert_eq!(cancelled.expect("the server is told").1["reason"], "changed my mind");
    assert_eq!(bed.messages(token).len(), 0);
    assert!(bed.over.contains(&bed.reader(token)));
    assert_eq!((bed.hub.sizes().calls, bed.hub.sizes().exchanges), (0, 0));
}

#[test]
fn progress_comes_with_the_clients_own_token() {
    let mut bed = Bed::new(&["a"]).start();
    let session = bed.open();
    let token = bed.call(&session, 1, "wait");
    let (connection, call) = bed.servers[0].held[0];
    let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress",
        "params": {"progressToken": call, "progress": 3}});
    bed.say(connection, &progress, None);
    bed.settle();
    let told = bed.last(token);
    assert_eq!(
        (&told["params"]["progressToken"], &told["params"]["progress"]),
        (&json!("p"), &json!(3))
    );
}

#[test]
fn a_question_reaches_the_client_whose_call_caused_it_and_its_answer_the_server() {
    let mut bed = Bed::new(&["a"]).start();
    let session = bed.open_with(json!({"elicitation": {}}));
    let token = bed.call(&session, 1, "ask");
    let question = bed.last(token);
    assert_eq!(question["method"], "elicitation/create");
    // The time of a call stands still while its client is asked.
    bed.pass(Millis::seconds(90));
    assert_eq!(bed.messages(token).len(), 1);
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}});
    bed.post(&session, &answer);
    assert_eq!(bed.servers[0].told[0]["id"], 77);
    let (connection, call) = bed.servers[0].held.remove(0);
    bed.reply(connection, call, Ok(json!({"content": []})));
    bed.settle();
    assert_eq!(bed.last(token)["id"], 1);
}

#[test]
fn a_group_goes_on_at_the_next_member_and_stays_there() {
    let mut bed = Bed::new(&["a", "b"]).grouped().start();
    let session = bed.open();
    assert_eq!(bed.tools(&session).len(), 4);
    let token = bed.call(&session, 1, "read");
    assert_eq!(bed.last(token)["result"]["content"][0]["text"], "a");
    bed.servers[0].manner = Manner::Dead;
    let token = bed.call(&session, 2, "read");
    let moved = bed.last(token);
    assert_eq!(moved["result"]["content"][0]["text"], "b");
    assert_eq!(moved["result"]["_meta"]["tidegate/session"], "new", "its state is at the other");
    bed.servers[0].manner = Manner::Works;
    let token = bed.call(&session, 3, "read");
    let stayed = bed.last(token);
    assert_eq!(stayed["result"]["content"][0]["text"], "b", "its state is there");
    assert!(stayed["result"].get("_meta").is_none(), "it is told once: {stayed}");
}

#[test]
fn a_breaker_that_is_open_refuses_calls_at_once_and_a_probe_heals_it() {
    let mut bed = Bed::new(&["a"]).start();
    let session = bed.open();
    bed.servers[0].manner = Manner::Dead;
    for id in 1..=3 {
        bed.call(&session, id, "read");
    }
    let before = bed.servers[0].asked.len();
    let token = bed.call(&session, 9, "read");
    let told = bed.last(token);
    let text = told["result"]["content"][0]["text"].as_str().expect("words");
    assert!(text.contains("circuit open"), "{text}");
    assert_eq!(bed.servers[0].asked.len(), before);
    bed.servers[0].manner = Manner::Works;
    bed.pass(Millis::seconds(90));
    let token = bed.call(&session, 10, "read");
    assert_eq!(bed.last(token)["result"]["content"][0]["text"], "a");
}

#[test]
fn an_operator_can_have_a_server_probed_now() {
    let mut bed = Bed::new(&["a"]).start();
    let token = crate::hub::RequestToken(1000);
    bed.tell(Event::Probe { token, server: "a".into() });
    assert_eq!(bed.probes[&token], Some(true));
    bed.servers[0].manner = Manner::Silent;
    let token = crate::hub::RequestToken(1001);
    bed.tell(Event::Probe { token, server: "a".into() });
    bed.pass(Millis::seconds(4));
    assert_eq!(bed.probes[&token], Some(false));
    let token = crate::hub::RequestToken(1002);
    bed.tell(Event::Probe { token, server: "nobody".into() });
    assert_eq!(bed.probes[&token], None);
}

#[test]
fn an_idle_connection_is_kept_alive_and_lost_after_three_failures() {
    let mut bed = Bed::new(&["a"]);
    bed.settings.servers[0].probe.every = Millis::ZERO;
    let mut bed = bed.start();
    let session = bed.open();
    bed.pass(Millis::minutes(7));
    let pings = |bed: &Bed| bed.servers[0].count("ping");
    assert!(pings(&bed) >= 1, "{}", pings(&bed));
    bed.servers[0].manner = Manner::Silent;
    bed.pass(Millis::minutes(20));
    let is_off = |it: &Metric| matches!(it, Metric::KeepaliveDisabled(_));
    assert_eq!(bed.metrics.iter().filter(|it| is_off(it)).count(), 1);
    bed.servers[0].manner = Manner::Works;
    let token = bed.call(&session, 1, "read");
    assert_eq!(bed.last(token)["id"], 1);
}

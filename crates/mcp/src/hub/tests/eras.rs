//! Both eras on both sides.

use serde_json::json;
use tidegate_core::time::Millis;

use super::bed::{Bed, Manner};
use crate::{
    hub::{Event, Metric},
    keepalive::Method,
};

#[test]
fn a_session_uses_a_server_without_sessions_over_one_shared_link() {
    let mut bed = Bed::new(&["a"]);
    bed.servers[0].is_stateless = true;
    let mut bed = bed.start();
    let (one, two) = (bed.open(), bed.open());
    assert_eq!((bed.tools(&one).len(), bed.tools(&two).len()), (4, 4));
    for session in [&one, &two] {
        let token = bed.call(session, 1, "echo");
        assert_eq!(bed.last(token)["result"]["content"][0]["text"], "a");
    }
    // The first session found out that there are no sessions, over a connection of its own.
    assert_eq!(bed.hub.sizes().connections, 2);
    let three = bed.open();
    assert_eq!((bed.tools(&three).len(), bed.hub.sizes().connections), (4, 2));
    let call = bed.servers[0].asked.iter().find(|it| it.0 == "tools/call").expect("a call");
    assert_eq!(call.1["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
}

#[test]
fn a_client_without_a_session_uses_servers_of_either_era() {
    let mut bed = Bed::new(&["a", "b"]);
    bed.servers[1].is_stateless = true;
    let mut bed = bed.start();
    let token = bed.post_stateless(1, "tools/list", json!({}), &json!({}));
    bed.pass(Millis::seconds(1));
    let tools = bed.whole(token);
    assert_eq!(tools["result"]["tools"].as_array().map(Vec::len), Some(8), "{tools}");
    for name in ["a", "b"] {
        let params = json!({"name": format!("{name}_echo"), "arguments": {}});
        let token = bed.post_stateless(2, "tools/call", params, &json!({}));
        assert_eq!(bed.whole(token)["result"]["content"][0]["text"], *name);
    }
    assert_eq!(bed.hub.sizes().calls, 0);
}

#[test]
fn a_call_of_a_client_without_a_session_waits_for_it_while_its_server_asks() {
    let mut bed = Bed::new(&["a"]).start();
    let can = json!({"elicitation": {}});
    let params = json!({"name": "ask", "arguments": {}});
    let token = bed.post_stateless(1, "tools/call", params.clone(), &can);
    let asked = bed.whole(token);
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let mut back = params;
    back["requestState"] = asked["result"]["requestState"].clone();
    back["inputResponses"] = json!({"question-1": {"action": "accept"}});
    let token = bed.post_stateless(2, "tools/call", back.clone(), &can);
    assert_eq!(bed.servers[0].told[0]["result"]["action"], "accept");
    let (connection, call) = bed.servers[0].held.remove(0);
    bed.reply(connection, call, Ok(json!({"content": []})));
    bed.settle();
    assert_eq!(bed.whole(token)["id"], 2);
    let token = bed.post_stateless(3, "tools/call", back, &can);
    assert_eq!(bed.whole(token)["error"]["code"], -32602, "only once");
}

#[test]
fn only_the_same_request_comes_back_for_a_parked_call() {
    let mut bed = Bed::new(&["a"]).start();
    let can = json!({"elicitation": {}});
    let params = json!({"name": "ask", "arguments": {"to": "ada", "sum": 1}});
    let token = bed.post_stateless(1, "tools/call", params.clone(), &can);
    let mut back = params;
    back["requestState"] = bed.whole(token)["result"]["requestState"].clone();
    back["inputResponses"] = json!({"question-1": {"action": "accept"}});
    for arguments in [json!({"to": "eve", "sum": 1}), json!({}), json!(null)] {
        back["arguments"] = arguments;
        let token = bed.post_stateless(2, "tools/call", back.clone(), &can);
        assert_eq!(bed.whole(token)["error"]["code"], -32602);
        assert_eq!(bed.servers[0].told.len(), 0, "its server hears nothing");
    }
    // The order of keys says nothing.
    back["arguments"] = json!({"sum": 1, "to": "ada"});
    bed.post_stateless(3, "tools/call", back, &can);
    assert_eq!(bed.servers[0].told[0]["result"]["action"], "accept");
}

#[test]
fn a_server_without_sessions_asks_a_client_only_what_it_declared() {
    let mut bed = Bed::new(&["a"]);
    bed.servers[0].is_stateless = true;
    bed.servers[0].tools.push(json!({"name": "need", "inputSchema": {"type": "object"}}));
    let mut bed = bed.start();
    let params = json!({"name": "need", "arguments": {}});
    let token = bed.post_stateless(1, "tools/call", params.clone(), &json!({"roots": {}}));
    let refused = bed.whole(token);
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
    assert_eq!(refused["error"]["data"], json!({"requiredCapabilities": {"elicitation": {}}}));
    assert_eq!(bed.answers[&token].status, 400);
    let token = bed.post_stateless(2, "tools/call", params, &json!({"elicitation": {}}));
    let asked = bed.whole(token);
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    assert_eq!(asked["result"]["requestState"], "its own");
}

#[test]
fn a_server_without_sessions_is_kept_alive_only_if_the_config_says_how() {
    for (method, sent) in [(Method::Suitable, 0), (Method::Ping, 5)] {
        let mut bed = Bed::new(&["a"]);
        bed.servers[0].is_stateless = true;
        let settings = &mut bed.settings.servers[0];
        settings.probe.every = Millis::ZERO;
        settings.keepalive.method = method;
        (settings.keepalive.every, settings.keepalive.jitter) = (Millis::seconds(10), 0.0);
        let mut bed = bed.start();
        bed.pass(Millis::seconds(55));
        let attempts = bed.metrics.iter().filter(|it| matches!(it, Metric::KeepaliveAttempt(_)));
        assert_eq!(attempts.count(), sent, "{method:?}");
    }
}

#[test]
fn a_parked_call_that_nobody_comes_back_for_is_given_up() {
    let mut bed = Bed::new(&["a"]);
    bed.settings.call_timeout = Millis::minutes(10);
    let mut bed = bed.start();
    let can = json!({"elicitation": {}});
    bed.post_stateless(1, "tools/call", json!({"name": "ask", "arguments": {}}), &can);
    assert_eq!(bed.hub.sizes().calls, 1);
    bed.pass(Millis::seconds(301));
    assert_eq!((bed.hub.sizes().calls, bed.hub.sizes().exchanges), (0, 0));
    assert_eq!(bed.servers[0].count("notifications/cancelled"), 1);
}

#[test]
fn an_answer_that_takes_long_begins_as_a_stream_and_closing_it_cancels() {
    let mut bed = Bed::new(&["a"]).start();
    let params = json!({"name": "wait", "arguments": {}});
    let token = bed.post_stateless(1, "tools/call", params, &json!({}));
    assert!(!bed.answers.contains_key(&token));
    bed.pass(Millis::seconds(6));
    let reader = bed.reader(token);
    bed.tell(Event::ReaderGone { reader });
    assert_eq!(bed.servers[0].count("notifications/cancelled"), 1);
    assert_eq!(bed.hub.sizes().calls, 0);
}

#[test]
fn a_server_that_changes_its_era_is_greeted_anew() {
    let mut bed = Bed::new(&["a"]);
    bed.servers[0].is_stateless = true;
    let mut bed = bed.start();
    let session = bed.open();
    bed.servers[0].is_stateless = false;
    bed.servers[0].manner = Manner::Forgetful;
    let token = bed.call(&session, 1, "read");
    bed.pass(Millis::seconds(1));
    assert_eq!(bed.last(token)["id"], 1);
    let token = bed.call(&session, 2, "read");
    assert_eq!(bed.last(token)["result"]["content"][0]["text"], "a");
}

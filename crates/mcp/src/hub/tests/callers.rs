//! What callers may use, and how much of it.

use std::sync::Arc;

use serde_json::json;
use tidegate_core::time::Millis;

use super::bed::Bed;
use crate::hub::{CallerRights, Event, HttpMethod, Metric, RequestToken};

const TWO: [&str; 2] = ["ada", "bob"];

/// Two callers that may each use a quarter of everything.
fn shared(names: &[&'static str]) -> Bed {
    let mut bed = Bed::new(names);
    let rights = CallerRights { share: 0.25, servers: None };
    bed.settings.callers = TWO.map(|name| (Arc::from(name), rights.clone())).into();
    bed.start()
}

fn open(bed: &mut Bed, caller: &str) -> (RequestToken, Option<String>) {
    let mut request = bed.request();
    request.caller = caller.into();
    let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}}});
    request.body = message.to_string().into();
    let token = request.token;
    bed.tell(Event::Request(Box::new(request)));
    (token, bed.answers[&token].session.clone())
}

fn list(bed: &mut Bed, caller: &str, session: &str) -> RequestToken {
    let mut request = bed.request();
    (request.caller, request.session) = (caller.into(), Some(session.to_owned()));
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    request.body = message.to_string().into();
    let token = request.token;
    bed.tell(Event::Request(Box::new(request)));
    token
}

#[test]
fn a_session_of_another_caller_does_not_exist() {
    let mut bed = shared(&["a"]);
    let (_, session) = open(&mut bed, "ada");
    let session = session.expect("a session");
    let token = list(&mut bed, "bob", &session);
    assert_eq!(bed.answers[&token].status, 404);
    let token = list(&mut bed, "ada", &session);
    assert_eq!(bed.answers[&token].status, 200);
}

#[test]
fn a_caller_at_its_share_of_sessions_loses_its_own_oldest_idle_one() {
    let mut bed = shared(&["a"]);
    let (_, first) = open(&mut bed, "ada");
    let (_, other) = open(&mut bed, "bob");
    let own: Vec<Option<String>> = (0..4).map(|_| open(&mut bed, "ada").1).collect();
    assert!(own.iter().all(Option::is_some), "four of sixteen");
    let first = first.expect("a session");
    let token = list(&mut bed, "ada", &first);
    assert_eq!(bed.answers[&token].status, 404, "the oldest of its own went");
    let token = list(&mut bed, "bob", &other.expect("a session"));
    assert_eq!(bed.answers[&token].status, 200, "never another caller's");
}

#[test]
fn a_caller_whose_sessions_are_all_in_use_is_refused_one_more() {
    let mut bed = shared(&["a"]);
    for _ in 0..4 {
        let session = open(&mut bed, "ada").1.expect("a session");
        let mut request = bed.request();
        (request.caller, request.session) = ("ada".into(), Some(session));
        request.method = HttpMethod::Get;
        bed.tell(Event::Request(Box::new(request)));
    }
    let (token, session) = open(&mut bed, "ada");
    let answer = &bed.answers[&token];
    assert_eq!((answer.status, answer.retry_after, session), (503, Some(5), None));
    assert!(bed.metrics.contains(&Metric::Refused("session")));
}

#[test]
fn a_key_that_is_narrowed_or_removed_binds_its_open_sessions() {
    let mut bed = shared(&["a", "b"]);
    let session = open(&mut bed, "ada").1.expect("a session");
    let token = list(&mut bed, "ada", &session);
    assert_eq!(bed.whole(token)["result"]["tools"].as_array().map(Vec::len), Some(8));
    let narrow = CallerRights { share: 0.25, servers: Some(vec!["a".to_owned()]) };
    bed.settings.callers.insert("ada".into(), narrow);
    bed.reload();
    let token = list(&mut bed, "ada", &session);
    assert_eq!(bed.whole(token)["result"]["tools"].as_array().map(Vec::len), Some(4));
    bed.settings.callers.remove("ada");
    bed.reload();
    bed.pass(Millis::seconds(1));
    let token = list(&mut bed, "ada", &session);
    assert_eq!(bed.answers[&token].status, 404);
    let (token, _) = open(&mut bed, "ada");
    assert_eq!(bed.answers[&token].status, 401);
}

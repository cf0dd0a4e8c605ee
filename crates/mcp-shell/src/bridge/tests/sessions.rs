//! The era of sessions: what passes, what is taken up again, and a gateway that has forgotten.

use std::cell::Cell;

use http::Method;
use serde_json::json;
use tidegate_runtime::clock::timer_now;
use tokio::net::TcpListener;

use super::{Bed, answer, error, hello, usual};
use crate::http::tests::bed::{Piece, Reply, Seen, Server, event, local, local_paused, note};

fn is_get(seen: &Seen) -> bool {
    seen.method == Method::GET
}

#[test]
fn a_session_is_opened_once_and_named_with_every_request_that_follows() {
    local(async {
        let mut bed =
            Bed::with(|seen| usual("s1", seen).unwrap_or_else(|| Reply::json(&answer(seen, "ok"))))
                .await;
        bed.open().await;
        bed.ask("a", "tools/list").await;
        assert_eq!(
            bed.hear().await,
            json!({"jsonrpc": "2.0", "id": "a", "result": {"text": "ok"}})
        );
        bed.server.until(|it| it.count(is_get) == 1).await;
        let seen = bed.server.all(|_| true);
        assert!(seen[0].is("initialize") && seen[0].body == hello());
        assert_eq!(seen[0].header("mcp-session-id"), None);
        assert!(seen[1].is("notifications/initialized"), "before what follows it");
        for later in &seen[1..] {
            assert_eq!(later.header("mcp-session-id"), Some("s1"));
            assert_eq!(later.header("mcp-protocol-version"), Some("2025-11-25"));
            assert_eq!(later.header("authorization"), Some("Bearer k3y"));
        }
    });
}

#[test]
fn what_comes_on_a_stream_comes_in_order_and_so_does_what_nobody_asked_for() {
    local(async {
        let mut bed = Bed::with(|seen| match usual("s1", seen) {
            Some(_) if is_get(seen) => Reply::events(vec![event(&note(9)), Piece::Hang]),
            Some(reply) => reply,
            None => Reply::events(vec![
                event(&note(1)),
                event(&json!({"jsonrpc": "2.0", "id": 5, "method": "roots/list"})),
                event(&note(2)),
                event(&answer(seen, "done")),
            ]),
        })
        .await;
        bed.open().await;
        assert_eq!(bed.hear().await, note(9));
        bed.ask(7, "tools/call").await;
        assert_eq!(bed.hear().await, note(1));
        assert_eq!(bed.hear().await["method"], "roots/list");
        assert_eq!(bed.hear().await, note(2));
        assert_eq!(bed.hear().await["result"]["text"], "done");
        let roots = json!({"jsonrpc": "2.0", "id": 5, "result": {"roots": []}});
        bed.say(roots.clone()).await;
        bed.server.until(|it| it.count(|seen| seen.body == roots) == 1).await;
    });
}

#[test]
fn a_stream_that_breaks_is_taken_up_where_it_ended() {
    local_paused(async {
        let mut bed = Bed::with(|seen| match seen.header("last-event-id") {
            Some("4-1") => Reply::events(vec![
                event(&note(2)),
                event(&json!(
                {"jsonrpc": "2.0", "id": 7, "result": {}})),
            ]),
            Some(other) => panic!("{other}"),
            None => usual("s1", seen).unwrap_or_else(|| {
                let first = Piece::Say(format!("id: 4-1\ndata: {}\n\n", note(1)));
                Reply::events(vec![first, Piece::Cut])
            }),
        })
        .await;
        bed.open().await;
        bed.ask(7, "tools/call").await;
        assert_eq!(bed.hear().await, note(1));
        assert_eq!(bed.hear().await, note(2));
        assert_eq!(bed.hear().await["id"], 7);
        assert_eq!(bed.server.count(|seen| seen.is("tools/call")), 1, "it was posted once");
    });
}

#[test]
fn a_stream_that_breaks_and_cannot_be_taken_up_leaves_the_result_unknown() {
    local(async {
        let mut bed = Bed::with(|seen| {
            usual("s1", seen).unwrap_or_else(|| Reply::events(vec![event(&note(1)), Piece::Cut]))
        })
        .await;
        bed.open().await;
        bed.ask(7, "tools/call").await;
        assert_eq!(bed.hear().await, note(1));
        let said = bed.hear().await;
        assert_eq!((&said["id"], &said["error"]["code"]), (&json!(7), &json!(-32603)));
        let words = said["error"]["message"].as_str().expect("a text");
        assert!(words.ends_with("connection broken; the result is unknown"), "{words}");
    });
}

/// A gateway that forgets its session after the first call, as one does that restarts.
fn forgetful() -> impl Fn(&Seen) -> Reply {
    let (sessions, calls) = (Cell::new(0), Cell::new(0));
    move |seen| {
        if seen.is("initialize") {
            sessions.set(sessions.get() + 1);
        }
        let current = format!("s{}", sessions.get());
        let is_known = seen.header("mcp-session-id") == Some(current.as_str());
        if let Some(reply) = usual(&current, seen) {
            return reply;
        }
        calls.set(calls.get() + 1);
        if calls.get() > 1 && sessions.get() == 1 || !is_known {
            let text = "session not found: send `initialize` again";
            return Reply::status(404, &error(json!(null), -32001, text).to_string());
        }
        Reply::json(&answer(seen, &current))
    }
}

#[test]
fn a_forgotten_session_is_opened_again_once_for_all_and_what_was_refused_is_sent_again() {
    local(async {
        let mut bed = Bed::with(forgetful()).await;
        bed.open().await;
        bed.ask(1, "tools/list").await;
        assert_eq!(bed.hear().await["result"]["text"], "s1");
        for id in 2..5 {
            bed.ask(id, "tools/call").await;
        }
        let (mut answered, mut told) = (Vec::new(), 0);
        while answered.len() < 3 {
            let said = bed.hear().await;
            if said["method"] == "notifications/tools/list_changed" {
                told += 1;
            } else {
                assert_eq!(said["result"]["text"], "s2", "{said}");
                answered.push(said["id"].as_u64());
            }
        }
        answered.sort();
        assert_eq!(answered, [Some(2), Some(3), Some(4)]);
        assert_eq!(told, 1, "lists may have changed");
        let hellos = bed.server.all(|seen| seen.is("initialize"));
        assert_eq!(hellos.len(), 2);
        assert_eq!(hellos[1].body, hello(), "the client's own words");
        let ready = |seen: &Seen| seen.is("notifications/initialized");
        bed.server.until(|it| it.count(ready) == 2).await;
    });
}

#[test]
fn a_session_in_place_of_a_lost_one_knows_what_lasted() {
    local(async {
        let mut bed = Bed::with(forgetful()).await;
        bed.open().await;
        let params = json!({"uri": "tide://now"});
        let watch = json!({"jsonrpc": "2.0", "id": 1, "method": "resources/subscribe",
            "params": params});
        bed.say(watch).await;
        assert_eq!(bed.hear().await["id"], 1);
        bed.ask(2, "tools/call").await;
        assert_eq!(bed.hear().await["method"], "notifications/tools/list_changed");
        assert_eq!(bed.hear().await["result"]["text"], "s2");
        let watches = bed.server.all(|seen| seen.is("resources/subscribe"));
        assert_eq!(watches.len(), 2);
        assert_eq!(watches[1].body["params"], params);
        assert_eq!(watches[1].header("mcp-session-id"), Some("s2"));
    });
}

#[test]
fn a_request_that_is_refused_again_is_not_sent_for_ever() {
    local(async {
        let mut bed = Bed::with(|seen| {
            usual("s1", seen).unwrap_or_else(|| Reply::status(404, "no such session"))
        })
        .await;
        bed.open().await;
        bed.ask(1, "tools/call").await;
        assert_eq!(bed.hear().await["method"], "notifications/tools/list_changed");
        let said = bed.hear().await;
        assert_eq!(said["error"]["code"], -32603, "{said}");
        assert_eq!(bed.server.count(|seen| seen.is("tools/call")), 2);
    });
}

#[test]
fn a_gateway_that_is_not_there_is_waited_for_at_the_first_word_only() {
    local_paused(async {
        let free = TcpListener::bind("127.0.0.1:0").await.expect("loopback binds");
        let url = format!("http://{}/mcp", free.local_addr().expect("it is bound"));
        drop(free);
        let mut bed = Bed::at(&url, Server::start(|_| Reply::Silence).await);
        for (message, waits) in
            [(hello(), true), (json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}), false)]
        {
            let began = timer_now();
            bed.say(message).await;
            let words = bed.hear().await["error"]["message"].clone();
            let expected = "does not answer: connection refused; start it with `tidegate serve`";
            assert_eq!(words, format!("gateway at `{url}` {expected}"));
            assert_eq!(began.elapsed().as_secs() >= 3, waits, "{:?}", began.elapsed());
        }
    });
}

#[test]
fn a_refusal_in_words_of_the_protocol_passes_under_the_clients_id() {
    local(async {
        let mut bed = Bed::with(|seen| {
            usual("s1", seen).unwrap_or_else(|| {
                let body = error(json!(null), -32600, "this key is not known here");
                Reply::status(401, &body.to_string())
            })
        })
        .await;
        bed.open().await;
        bed.ask("mine", "tools/list").await;
        let expected = error(json!("mine"), -32600, "this key is not known here");
        assert_eq!(bed.hear().await, expected);
    });
}

#[test]
fn a_batch_passes_whole_and_each_of_its_requests_is_answered() {
    local(async {
        let mut bed = Bed::with(|seen| {
            if seen.body.is_array() {
                let one = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
                let two = json!({"jsonrpc": "2.0", "id": "b", "result": {}});
                return Reply::events(vec![event(&one), event(&two), Piece::Hang]);
            }
            usual("s1", seen).unwrap_or(Reply::Silence)
        })
        .await;
        bed.open().await;
        let batch = json!([
            {"jsonrpc": "2.0", "id": 1, "method": "ping"},
            {"jsonrpc": "2.0", "method": "notifications/x"},
            {"jsonrpc": "2.0", "id": "b", "method": "ping"},
        ]);
        bed.say(batch.clone()).await;
        assert_eq!(bed.hear().await["id"], 1);
        assert_eq!(bed.hear().await["id"], "b");
        assert_eq!(bed.server.count(|seen| seen.body == batch), 1);
        bed.close_input();
        bed.over().await;
    });
}

//! The era without sessions: headers, streams, and giving up by closing them.

use std::cell::Cell;

use serde_json::{Value, json};
use tidegate_runtime::clock::timer_now;

use super::{Bed, answer, error};
use crate::http::tests::bed::{Piece, Reply, Seen, event, local, local_paused, note};

fn request(id: impl Into<Value>, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

#[test]
fn a_request_that_stands_by_itself_has_headers_and_no_session() {
    local(async {
        let mut bed =
            Bed::with(|seen| Reply::json(&answer(seen, "ok")).with("mcp-session-id", "s9")).await;
        for id in 0..2 {
            let call = request(id, "tools/call", json!({"name": "häfen", "arguments": {}}));
            bed.say(call.clone()).await;
            assert_eq!(bed.hear().await["id"], id);
            let seen = bed.server.all(|_| true).pop().expect("a request");
            assert_eq!(seen.body, call, "as it came");
            assert_eq!(seen.header("mcp-protocol-version"), Some("2026-07-28"));
            assert_eq!(seen.header("mcp-method"), Some("tools/call"));
            assert_eq!(seen.header("mcp-name"), Some("=?base64?aMOkZmVu?="));
            assert_eq!(seen.header("mcp-session-id"), None);
        }
        assert_eq!(bed.server.accepted.get(), 1, "one connection serves both");
    });
}

#[test]
fn a_request_that_is_given_up_is_closed_and_gets_no_answer() {
    local(async {
        let mut bed = Bed::with(|seen| match seen.is("tools/call") {
            true => Reply::events(vec![event(&note(1)), Piece::Hang]),
            false => Reply::json(&answer(seen, "ok")),
        })
        .await;
        bed.say(request(1, "tools/call", json!({"name": "slow"}))).await;
        assert_eq!(bed.hear().await, note(1));
        let params = json!({"requestId": 1});
        let cancelled =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        bed.say(cancelled).await;
        bed.server.until(|it| it.open.get() == 0).await;
        bed.say(request(1, "tools/list", json!({}))).await;
        assert_eq!(bed.hear().await["result"]["text"], "ok", "the id is free again");
        assert_eq!(bed.server.count(|_| true), 2, "nothing else was posted");
    });
}

#[test]
fn a_refusal_passes_as_it_is_with_its_data() {
    local(async {
        let mut bed = Bed::with(|seen| {
            let mut body = error(seen.body["id"].clone(), -32022, "not spoken here");
            body["error"]["data"] = json!({"supported": ["2026-07-28"]});
            Reply::status(400, &body.to_string())
        })
        .await;
        bed.say(request("x", "server/discover", json!({}))).await;
        let said = bed.hear().await;
        assert_eq!(said["id"], "x");
        assert_eq!(said["error"]["code"], -32022);
        assert_eq!(said["error"]["data"]["supported"][0], "2026-07-28");
    });
}

#[test]
fn a_stream_that_breaks_leaves_the_result_unknown_and_is_not_posted_again() {
    local(async {
        let first = format!("id: 1-1\ndata: {}\n\n", note(1));
        let mut bed =
            Bed::with(move |_| Reply::events(vec![Piece::Say(first.clone()), Piece::Cut])).await;
        bed.say(request(3, "tools/call", json!({"name": "a"}))).await;
        assert_eq!(bed.hear().await, note(1));
        let words = bed.hear().await["error"]["message"].to_string();
        assert!(words.contains("the result is unknown"), "{words}");
        assert_eq!(bed.server.count(|_| true), 1);
    });
}

#[test]
fn an_open_subscription_does_not_hold_the_end_back() {
    local(async {
        let mut bed = Bed::with(|_| Reply::events(vec![event(&note(1)), Piece::Hang])).await;
        bed.say(request("sub", "subscriptions/listen", json!({}))).await;
        assert_eq!(bed.hear().await, note(1));
        bed.close_input();
        let began = timer_now();
        bed.over().await;
        assert!(began.elapsed() < super::super::CALLS_WITHIN, "{:?}", began.elapsed());
    });
}

#[test]
fn arguments_that_a_tool_wants_in_headers_are_mirrored_also_if_no_list_was_asked_for() {
    local(async {
        let script = |seen: &Seen| match seen.body["method"].as_str() {
            Some("tools/list") => {
                let port = json!({"type": "string", "x-mcp-header": "Port"});
                let schema = json!({"type": "object", "properties": {"port": port}});
                let tools = json!([{"name": "go", "inputSchema": schema}]);
                let result = json!({"tools": tools});
                let said = json!({"jsonrpc": "2.0", "id": seen.body["id"], "result": result});
                Reply::json(&said)
            }
            _ if seen.header("mcp-param-port") == Some("Brest") => {
                Reply::json(&answer(seen, "gone"))
            }
            _ => {
                let refused = error(seen.body["id"].clone(), -32020, "the header is missing");
                Reply::status(400, &refused.to_string())
            }
        };
        let mut bed = Bed::with(script).await;
        let arguments = json!({"port": "Brest"});
        for id in 1..3 {
            let params = json!({"name": "go", "arguments": arguments});
            bed.say(request(id, "tools/call", params)).await;
            assert_eq!(bed.hear().await["result"]["text"], "gone");
        }
        assert_eq!(bed.server.count(|seen| seen.is("tools/list")), 1, "it is remembered");
        let params = json!({"name": "stay", "arguments": {}});
        bed.say(request(3, "tools/call", params)).await;
        let said = bed.hear().await;
        assert_eq!((&said["id"], &said["error"]["code"]), (&json!(3), &json!(-32020)));
    });
}

#[test]
fn a_subscription_is_made_again_and_what_may_have_changed_is_told() {
    local_paused(async {
        let wishes = json!({"toolsListChanged": true, "resourcesListChanged": true});
        let acknowledged = json!({"jsonrpc": "2.0",
            "method": "notifications/subscriptions/acknowledged",
            "params": {"notifications": wishes}});
        let (times, said) = (Cell::new(0), acknowledged.clone());
        let mut bed = Bed::with(move |seen| {
            times.set(times.get() + 1);
            let last = match times.get() {
                1 => Piece::Cut,
                2 => return Reply::HangUp,
                _ => event(&answer(seen, "the end")),
            };
            Reply::events(vec![event(&said), last])
        })
        .await;
        bed.say(request("sub", "subscriptions/listen", json!({"notifications": wishes}))).await;
        assert_eq!(bed.hear().await, acknowledged);
        for kind in ["tools", "resources"] {
            let changed = bed.hear().await;
            assert_eq!(changed["method"], format!("notifications/{kind}/list_changed"));
            let meta = &changed["params"]["_meta"];
            assert_eq!(meta["io.modelcontextprotocol/subscriptionId"], "sub");
        }
        assert_eq!(bed.hear().await["result"]["text"], "the end");
    });
}

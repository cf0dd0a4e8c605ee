//! Lines that are no messages, and too many that are.

use serde_json::{Value, json};

use super::{Bed, answer, usual};
use crate::{
    http::tests::bed::{Reply, local},
    stdio::lines::{Ends, Line},
};

#[test]
fn what_is_no_message_is_answered_and_goes_nowhere() {
    local(async {
        let mut bed = Bed::with(|_| panic!("nothing is posted")).await;
        for (line, code, id) in [
            ("nonsense", -32700, Value::Null),
            ("{\"jsonrpc\":\"2.0\",", -32700, Value::Null),
            ("[]", -32600, Value::Null),
            ("[1", -32700, Value::Null),
            ("7", -32600, Value::Null),
            (r#"{"jsonrpc":"1.0","id":4,"method":"ping"}"#, -32600, json!(4)),
            (r#"{"jsonrpc":"2.0","id":5,"method":"ping","params":[1]}"#, -32602, json!(5)),
            (r#"{"jsonrpc":"2.0","id":6,"id":7,"method":"ping"}"#, -32600, Value::Null),
            (r#"{"jsonrpc":"2.0","id":8,"method":"x","params":{"a":1,"a":2}}"#, -32602, json!(8)),
        ] {
            bed.write(line).await;
            let said = bed.hear().await;
            assert_eq!((&said["error"]["code"], &said["id"]), (&json!(code), &id), "{line}");
        }
        let lines = bed.lines.as_ref().expect("it is open");
        let head = br#"{"jsonrpc":"2.0","id":"long","method":"tools/call","params":{"#.to_vec();
        let ends = Ends { head, bytes: 17 << 20, ..Ends::default() };
        lines.send(Line::TooLong(ends)).await.expect("the bridge reads");
        let said = bed.hear().await;
        assert_eq!(said["id"], "long");
        assert_eq!(
            said["error"]["message"],
            "a message of 17825792 bytes; at most 16 MiB are taken"
        );
    });
}

#[test]
fn a_request_before_any_session_is_told_what_the_gateway_says_of_it() {
    local(async {
        let mut bed = Bed::with(|_| {
            let text = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}"#;
            Reply::status(400, text)
        })
        .await;
        bed.ask(1, "tools/list").await;
        let expected =
            json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32600, "message": "no"}});
        assert_eq!(bed.hear().await, expected);
    });
}

#[test]
fn an_id_is_used_by_one_request_at_a_time_and_requests_have_a_limit() {
    local(async {
        let mut bed = Bed::with(|seen| match seen.is("ping") {
            true => Reply::json(&answer(seen, "ok")),
            false => usual("s1", seen).unwrap_or(Reply::Silence),
        })
        .await;
        bed.open().await;
        for id in 0..256 {
            bed.ask(id, "tools/call").await;
        }
        bed.ask(7, "tools/call").await;
        let said = bed.hear().await;
        assert_eq!(said["id"], 7);
        assert_eq!(said["error"]["message"], "the id `7` is used by a request under way");
        bed.ask(256, "ping").await;
        let said = bed.hear().await;
        let expected = "256 requests are under way; wait for some of them";
        assert_eq!((&said["id"], &said["error"]["message"]), (&json!(256), &json!(expected)));
    });
}

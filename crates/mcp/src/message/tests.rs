//! What is a message, what is not, and that ids and parts come back as they were.

use super::*;

fn check_fault(text: &str, code: i64, id: Option<&str>, part: &str) {
    let fault = Message::parse(text.as_bytes()).expect_err(text);
    assert_eq!(fault.code, code, "{text}: {fault}");
    assert_eq!(fault.id.as_ref().map(Id::as_json), id, "{text}");
    assert!(fault.message.contains(part), "{text}: {fault}");
}

#[test]
fn an_id_comes_back_byte_for_byte() {
    for id in ["1", "1.0", "-7", "12345678901234567890", "\"é\"", "\"\\u00e9\"", "1e2"] {
        let text = format!(r#"{{"jsonrpc":"2.0","id": {id} ,"method":"ping"}}"#);
        let Ok(Message::Request { id: read, method, params: None }) =
            Message::parse(text.as_bytes())
        else {
            panic!("no request: {text}");
        };
        assert_eq!(method, "ping");
        assert_eq!(result(&read, "{}"), format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#));
    }
}

#[test]
fn an_id_of_ours_is_known_again_also_as_a_float() {
    let id = |text: &str| {
        Id::read(serde_json::from_str(text).expect("JSON")).expect("an id").as_number()
    };
    assert_eq!(id("17"), Some(17));
    assert_eq!(id("17.0"), Some(17));
    assert_eq!(id("18446744073709551615"), Some(u64::MAX));
    for other in ["17.5", "-1", "\"17\"", "1e300"] {
        assert_eq!(id(other), None, "{other}");
    }
}

#[test]
fn the_three_kinds_are_told_apart() {
    let parse = |text: &'static str| Message::parse(text.as_bytes()).expect(text);
    let call = parse(r#"{"method":"m","params":{"a":1.0},"jsonrpc":"2.0"}"#);
    let Message::Notification { params: Some(params), .. } = call else { panic!("{call:?}") };
    assert_eq!(params.get(), r#"{"a":1.0}"#);
    let answer = parse(r#"{"jsonrpc":"2.0","id":3,"result":{"b":[ ]},"error":null}"#);
    let Message::Answer { id: Some(id), outcome: Ok(result) } = answer else {
        panic!("{answer:?}")
    };
    assert_eq!((id.as_number(), result.get()), (Some(3), r#"{"b":[ ]}"#));
    let answer = parse(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"no"}}"#);
    let Message::Answer { id: None, outcome: Err(error) } = answer else { panic!("{answer:?}") };
    let error = ErrorObject::read(error);
    assert_eq!((error.code, error.message.as_str()), (-1, "no"));
}

#[test]
fn a_fault_says_what_is_wrong_and_to_whom() {
    check_fault("{", PARSE_ERROR, None, "not JSON");
    check_fault("3", INVALID_REQUEST, None, "not an object");
    check_fault("[{}]", INVALID_REQUEST, None, "batch");
    check_fault(r#"{"id":1,"method":"m"}"#, INVALID_REQUEST, Some("1"), "`jsonrpc`");
    check_fault(r#"{"jsonrpc":"2.0","id":"a"}"#, INVALID_REQUEST, Some("\"a\""), "`method`");
    check_fault(r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#, INVALID_REQUEST, None, "null");
    check_fault(r#"{"jsonrpc":"2.0","id":[1],"method":"m"}"#, INVALID_REQUEST, None, "`id`");
    check_fault(r#"{"jsonrpc":"2.0","id":1,"method":7}"#, INVALID_REQUEST, Some("1"), "`method`");
    check_fault(
        r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[]}"#,
        INVALID_PARAMS,
        Some("1"),
        "`params`",
    );
    check_fault(
        r#"{"jsonrpc":"2.0","id":1,"result":1,"error":2}"#,
        INVALID_REQUEST,
        Some("1"),
        "either",
    );
    check_fault(r#"{"jsonrpc":"2.0","result":1}"#, INVALID_REQUEST, None, "needs the `id`");
    check_fault(
        r#"{"jsonrpc":"2.0","id":1,"method":"m","result":1}"#,
        INVALID_REQUEST,
        Some("1"),
        "`method`",
    );
    let long = format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"m"}}"#, "x".repeat(1024));
    check_fault(&long, INVALID_REQUEST, None, "longer");
    assert_eq!(Message::parse(b"\xff").expect_err("no text").code, PARSE_ERROR);
}

#[test]
fn an_envelope_that_readers_disagree_about_is_a_fault() {
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"a","Method":"b"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"a","PARAMS":{}}"#,
    ] {
        check_fault(text, INVALID_REQUEST, None, "the key");
    }
}

#[test]
fn a_batch_gives_each_message_or_its_fault() {
    let text = br#" [{"jsonrpc":"2.0","method":"a"}, 3, {"jsonrpc":"2.0","id":1,"method":"b"}]"#;
    assert!(is_batch(text));
    let messages = parse_batch(text).expect("a batch");
    let good: Vec<bool> = messages.iter().map(Result::is_ok).collect();
    assert_eq!(good, [true, false, true]);
    assert_eq!(parse_batch(b"[]").expect_err("empty").code, INVALID_REQUEST);
    let many = format!("[{}1]", "1,".repeat(BATCH_MAX));
    assert!(parse_batch(many.as_bytes()).expect_err("many").message.contains("101 messages"));
}

#[test]
fn written_messages_stand_on_one_line() {
    let id = Id::number(5);
    let text = request(&id, "tools/call", Some("{\n  \"a\": \"b\\nc\"\n}"));
    assert_eq!(
        text,
        r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{   "a": "b\nc" }}"#
    );
    assert_eq!(notification("n/x", None), r#"{"jsonrpc":"2.0","method":"n/x"}"#);
    assert_eq!(
        error(None, -32700, "a \"b\"", Some("[1]")),
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"a \"b\"","data":[1]}}"#
    );
}

#[test]
fn what_a_gateway_owns_in_params_is_set_and_the_rest_stays() {
    let text = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","v/x":1.0,
        "io.modelcontextprotocol/related-task":{"taskId":"t"},"progressToken":"p"},"name":"s_t"}"#;
    let raw: &RawValue = serde_json::from_str(text).expect("JSON");
    let mut params = Params::parse(Some(raw)).expect("params");
    assert_eq!(params.text("name").as_deref(), Some("s_t"));
    assert_eq!(params.progress_token().expect("a token").get(), "\"p\"");
    params.set_text("name", "t");
    params.set_progress_token(Some(9)).expect("an object");
    params.strip_reserved().expect("an object");
    assert_eq!(
        params.to_json(),
        concat!(
            r#"{"_meta":{"v/x":1.0,"io.modelcontextprotocol/related-task":{"taskId":"t"},"#,
            r#""progressToken":9},"name":"t"}"#
        )
    );
    let twice: &RawValue = serde_json::from_str(r#"{"name":"a","Name":"b"}"#).expect("JSON");
    assert!(Params::parse(Some(twice)).is_err(), "a second name could reach the server");
}

#[test]
fn params_without_a_token_stay_as_they_are() {
    let mut params = Params::parse(None).expect("none");
    params.set_progress_token(None).expect("nothing to do");
    params.strip_reserved().expect("nothing to do");
    assert_eq!(params.to_json(), "{}");
}

#[test]
fn versions_compare_and_unknown_ones_get_the_latest() {
    assert_eq!(Version::negotiate("2025-03-26"), Version::V2025_03_26);
    assert_eq!(Version::negotiate("2026-07-28"), Version::V2025_11_25);
    assert_eq!(Version::negotiate(""), Version::LATEST);
    assert!(Version::V2025_11_25.at_least(Version::V2025_06_18));
    assert!(!Version::V2025_03_26.at_least(Version::V2025_06_18));
    assert!(Version::KNOWN.is_sorted());
}

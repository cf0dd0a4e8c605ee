//! Every fault, as the bytes and the end that a client sees.

use std::time::Duration;

use tidegate_fakes::fake::{Act, ErrorText, FakeServer, Script, Step};

use crate::client::{Answer, Client, End, SILENCE, chat, post, post_until_silence};

const CHAT: &str = "/v1/chat/completions";

fn with(step: Step) -> FakeServer {
    FakeServer::start(Script::always(step))
}

fn stream(step: Step) -> Result<Answer, End> {
    post(with(step).address(), CHAT, &chat("m1", true))
}

fn whole(step: Step) -> Result<Answer, End> {
    post(with(step).address(), CHAT, &chat("m1", false))
}

/// For steps that fall silent.
fn silent(step: Step, is_stream: bool) -> Result<Answer, End> {
    post_until_silence(with(step).address(), CHAT, &chat("m1", is_stream))
}

fn tokens(answer: &Answer) -> usize {
    answer.body.matches("\"content\":\"").count() - answer.body.matches("\"content\":\"\"").count()
}

#[test]
fn a_status_comes_with_its_headers_word_for_word() {
    let date = "Wed, 21 Oct 2026 07:28:00 GMT";
    for text in ["2", "0.5", "-1", "1000000000", "1e9", "soon", date] {
        let answer = whole(Step::status(429).with_retry_after(text)).expect("an answer");
        assert_eq!((answer.status, answer.header("retry-after")), (429, Some(text)));
        assert_eq!(answer.json()["error"]["code"], "rate_limit_exceeded");
    }
    let ms = Step { retry_after_ms: Some("1500".to_owned()), ..Step::status(529) };
    assert_eq!(whole(ms).expect("an answer").header("retry-after-ms"), Some("1500"));
}

#[test]
fn an_error_has_the_shape_of_its_dialect() {
    let server = with(Step::status(529));
    let answer = post(server.address(), "/v1/messages", &chat("m1", true)).expect("an answer");
    assert_eq!(answer.status, 529);
    assert_eq!(answer.json()["type"], "error");
    assert_eq!(answer.json()["error"]["type"], "overloaded_error");
}

#[test]
fn an_error_body_says_what_the_script_wants() {
    let cases = [
        (ErrorText::Html, "<html>"),
        (ErrorText::Quota, "insufficient_quota"),
        (ErrorText::Billing, "credit_balance_exhausted"),
        (ErrorText::ModelGone, "model_not_found"),
        (ErrorText::ContextLength, "context_length_exceeded"),
        (ErrorText::ContentFilter, "content_filter"),
        (ErrorText::GzipGarbage, "garbage"),
    ];
    for (body, words) in cases {
        let answer = whole(Step { body, ..Step::status(400) }).expect("an answer");
        assert!(answer.body.contains(words), "{body:?}: {}", answer.body);
        let is_gzip = answer.header("content-encoding") == Some("gzip");
        assert_eq!(is_gzip, body == ErrorText::GzipGarbage);
    }
    let empty = whole(Step { body: ErrorText::Empty, ..Step::status(502) }).expect("an answer");
    assert_eq!((empty.status, empty.body.as_str()), (502, ""));
    let half = whole(Step { body: ErrorText::HalfJson, ..Step::status(500) }).expect("an answer");
    assert!(half.body.starts_with("{\"error\"") && !half.body.ends_with('}'));
    let own = Step { text: Some("no soup".to_owned()), ..Step::status(418) };
    assert_eq!(whole(own).expect("an answer").body, "no soup");
}

#[test]
fn a_connection_can_end_instead_of_an_answer() {
    for is_stream in [true, false] {
        let ask = |step| post(with(step).address(), CHAT, &chat("m1", is_stream));
        assert_eq!(ask(Step::of(Act::Close)).err(), Some(End::Closed));
        assert_eq!(ask(Step::of(Act::Reset)).err(), Some(End::Reset));
        assert_eq!(ask(Step::of(Act::NotHttp)).err(), Some(End::Closed));
        assert_eq!(silent(Step::of(Act::Hang), is_stream).err(), Some(End::Silent));
    }
}

#[test]
fn a_redirect_leads_nowhere() {
    let answer = whole(Step::of(Act::Redirect)).expect("an answer");
    assert_eq!(answer.status, 302);
    assert!(answer.header("location").is_some());
}

#[test]
fn a_head_can_be_followed_by_silence_comments_or_pings() {
    let silence = silent(Step::of(Act::Silence), true).expect("a head");
    assert_eq!((silence.status, silence.body.as_str(), silence.end), (200, "", End::Silent));
    let whole = silent(Step::of(Act::Silence), false).expect("a head");
    assert_eq!((whole.body.as_str(), whole.end), ("", End::Silent));
    for (act, text) in
        [(Act::CommentsOnly, ": keep-alive\n\n"), (Act::PingsOnly, "\"content\":\"\"")]
    {
        let step = Step { token_gap: Duration::from_millis(5), ..Step::of(act) };
        let server = with(step);
        let mut client = Client::connect(server.address());
        client.send("POST", CHAT, "", &chat("m1", true));
        let seen = client.first_bytes(2000);
        assert!(seen.matches(text).count() > 3, "{act:?}: {seen}");
        assert!(!seen.contains("fake as"), "no content: {seen}");
    }
}

#[test]
fn a_cut_leaves_half_an_event_and_a_broken_connection() {
    let cut = Step { tokens: Some(60), ..Step::after(Act::Cut, 40) };
    let answer = stream(cut).expect("a head");
    assert_eq!((answer.status, answer.end), (200, End::Closed));
    assert_eq!(tokens(&answer), 40);
    assert!(!answer.body.ends_with("\n\n"), "the last event is broken off");
    let answer = whole(Step::of(Act::Cut)).expect("a head");
    assert_eq!(answer.end, End::Closed);
    assert!(!answer.body.is_empty() && !answer.body.ends_with('}'));
}

#[test]
fn a_truncated_stream_ends_in_good_order_without_a_terminator() {
    let answer = stream(Step::after(Act::Truncate, 3)).expect("a head");
    assert_eq!((answer.end, tokens(&answer)), (End::Whole, 3));
    assert!(!answer.body.contains("[DONE]") && answer.body.ends_with("\n\n"));
    let all = stream(Step::of(Act::NoTerminator)).expect("a head");
    assert_eq!(all.end, End::Whole);
    assert!(all.body.contains("\"stop\"") && !all.body.contains("[DONE]"));
}

#[test]
fn a_stalled_stream_falls_silent_after_its_tokens() {
    let answer = silent(Step::after(Act::Stall, 3), true).expect("a head");
    assert_eq!((answer.end, tokens(&answer)), (End::Silent, 3));
    assert_eq!(silent(Step::of(Act::Stall), false).expect("a head").end, End::Silent);
}

#[test]
fn an_error_event_comes_first_or_after_tokens_and_ends_the_stream() {
    let first = stream(Step::of(Act::ErrorEvent)).expect("a head");
    assert_eq!((first.status, first.events().len(), first.end), (200, 1, End::Whole));
    assert!(first.body.contains("\"error\""));
    let opened = stream(Step::after(Act::ErrorEvent, 0)).expect("a head");
    assert_eq!((opened.events().len(), tokens(&opened)), (2, 0));
    let later = stream(Step::after(Act::ErrorEvent, 3)).expect("a head");
    assert_eq!(tokens(&later), 3);
    assert!(later.events().last().is_some_and(|it| it.starts_with("{\"error\"")));
    for path in ["/v1/messages", "/v1/responses"] {
        let server = with(Step::after(Act::ErrorEvent, 3));
        let answer = post(server.address(), path, &chat("m1", true)).expect("a head");
        assert_eq!(answer.types().last().map(String::as_str), Some("error"), "{path}");
    }
}

#[test]
fn an_error_body_comes_with_200() {
    for answer in [whole(Step::of(Act::ErrorBody)), stream(Step::of(Act::ErrorBody))] {
        let answer = answer.expect("an answer");
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
        assert!(answer.json()["error"]["message"].is_string());
    }
}

#[test]
fn a_malformed_event_is_not_json() {
    let answer = stream(Step::after(Act::Malformed, 2)).expect("a head");
    let events = answer.events();
    assert_eq!(tokens(&answer), 2);
    let last = events.last().expect("an event");
    assert!(serde_json::from_str::<serde_json::Value>(last).is_err());
    assert!(answer.body.ends_with("\n\n"), "the event itself is whole");
}

#[test]
fn a_terminator_can_come_twice_or_too_early() {
    let twice = stream(Step::of(Act::DuplicateTerminator)).expect("a head");
    assert_eq!(twice.body.matches("[DONE]").count(), 2);
    let early = stream(Step::of(Act::LateToken)).expect("a head");
    assert_ne!(early.events().last(), Some(&"[DONE]"));
    assert!(early.body.contains("[DONE]"));
}

#[test]
fn a_huge_event_has_no_newline_and_the_stream_goes_on() {
    let size = 5 << 20;
    let huge = Step { size: Some(size), ..Step::of(Act::HugeEvent) };
    let answer = stream(huge.clone()).expect("a head");
    assert_eq!(answer.end, End::Whole);
    let longest = answer.body.lines().map(str::len).max();
    assert!(longest > Some(size as usize), "{longest:?}");
    assert_eq!(answer.events().last(), Some(&"[DONE]"));
    assert!(whole(huge).expect("a head").json()["text"].as_str().map(str::len) == Some(5 << 20));
}

#[test]
fn a_dripping_answer_is_whole_in_the_end() {
    let drip = Step { size: Some(50), token_gap: Duration::from_millis(1), ..Step::of(Act::Drip) };
    let answer = stream(drip).expect("a head");
    assert_eq!((answer.end, answer.events().last()), (End::Whole, Some(&"[DONE]")));
}

#[test]
fn waits_are_kept() {
    let late = Step::ok().with_latency(SILENCE * 4);
    assert_eq!(silent(late, true).err(), Some(End::Silent), "no head before its time");
    let slow = Step { first_token: SILENCE * 4, ..Step::ok() };
    let answer = silent(slow, true).expect("a head");
    assert_eq!((tokens(&answer), answer.end), (0, End::Silent));
    let gap = Step::ok().with_tokens(3, SILENCE * 4);
    assert_eq!(tokens(&silent(gap, true).expect("a head")), 1, "the first does not wait for a gap");
}

#[test]
fn only_known_keys_are_taken_and_each_has_a_fate_of_its_own() {
    let limited = Step::status(429).with_retry_after("2");
    let keys = [("good".to_owned(), Step::ok()), ("limited".to_owned(), limited)];
    let server = FakeServer::start(Script { keys: keys.into(), ..Script::default() });
    let status = |headers: &str| {
        let body = chat("m1", false);
        crate::client::ask(server.address(), "POST", CHAT, headers, &body)
            .expect("an answer")
            .status
    };
    assert_eq!(status("authorization: Bearer good\r\n"), 200);
    assert_eq!(status("x-api-key: good\r\n"), 200);
    assert_eq!(status("authorization: Bearer limited\r\n"), 429);
    assert_eq!(status("authorization: Bearer other\r\n"), 401);
    assert_eq!(status(""), 401);
}

#[test]
fn a_model_name_asks_for_a_behaviour() {
    let server = FakeServer::start(Script::default());
    let ask = |model: &str| post(server.address(), CHAT, &chat(model, true));
    assert_eq!(ask("status-503").expect("an answer").status, 503);
    assert_eq!(ask("tokens-6+cut-after-3").expect("a head").end, End::Closed);
    assert_eq!(ask("reset").err(), Some(End::Reset));
    assert_eq!(ask("gpt-4o").expect("an answer").status, 200);
}

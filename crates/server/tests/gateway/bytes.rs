//! What goes through unchanged: the request but for its model, the answer altogether.

use crate::bed::{Setup, good};
use crate::upstream::Raw;

#[test]
fn a_request_arrives_byte_for_byte_but_for_the_model() {
    let fake = good();
    let gate = Setup::of(&[&fake]).start();
    let body = "{ \"zeta\" : 1e-40 , \"unknown\":{\"b\":1,\"a\":[ ]},\n\t\"model\"  :  \"r\",\
                \"big\":123456789012345678901234567890.000100, \"neg\":-0.0, \
                \"text\":\"\\u00e9\\ud83d\\ude00 \\\"r\\\" é😀\\/\", \"messages\":[], \
                \"nested\":{\"model\":\"r\"}, \"last\":null }";
    for path in ["/v1/chat/completions", "/v1/responses", "/v1/embeddings", "/v1/rerank"] {
        assert_eq!(gate.post(path, body).status, 200, "{path}");
    }
    for call in fake.calls() {
        assert_eq!(call.text(), body.replacen("\"r\"", "\"m\"", 1), "{}", call.path);
    }
}

#[test]
fn a_request_in_chunks_arrives_as_the_same_bytes() {
    let fake = good();
    let gate = Setup::of(&[&fake]).start();
    let mut client = gate.client();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {}\r\ntransfer-encoding: chunked\r\n\
         content-type: application/json\r\n\r\n",
        gate.address()
    );
    client.send_raw(head.as_bytes());
    client.send_raw(b"5;x=y\r\n{\"mod\r\n6\r\nel\":\"r\r\n");
    client.send_raw(b"10\r\n\",\"messages\":[]}\r\n0\r\ntrailer: x\r\n\r\n");
    assert_eq!(client.answer().expect("an answer").status, 200);
    assert_eq!(fake.calls()[0].text(), "{\"model\":\"m\",\"messages\":[]}");
}

#[test]
fn an_answers_bytes_and_headers_come_back_untouched() {
    let body = "{ \"id\" : \"x\",\"odd\":1e400, \"text\":\"\\u00e9 é\" , \"usage\":{} }\n";
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-ratelimit-remaining: 7\r\n\
         x-request-id: theirs\r\nset-cookie: a=b\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let raw = Raw::start(vec![head.into_bytes(), body.as_bytes().to_vec()]);
    let fake = good();
    let mut setup = Setup::of(&[&fake]);
    setup.urls[0] = raw.url();
    let answer = setup.start().chat();
    assert_eq!(answer.text(), body);
    assert_eq!(answer.header("x-ratelimit-remaining"), Some("7"));
    assert_eq!(answer.header("x-request-id"), Some("theirs"));
    assert_eq!(answer.header("set-cookie"), None);
    assert_eq!(answer.header("x-tidegate-resolved"), Some("a/m"));
    assert_eq!(answer.header("x-tidegate-attempts"), Some("1"));
    assert!(answer.header("x-tidegate-request-id").is_some());
    assert_eq!(raw.hits(), 1);
}

#[test]
fn a_streams_bytes_come_back_untouched_however_oddly_they_are_laid_out() {
    let stream = ": hello\r\n\r\nid: 1\r\ndata:{\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\
                  \r\n\r\nevent: x\ndata: {\"choices\":\n\
                  data: [{\"delta\":{\"content\":\"é\"}}]}\n\n\
                  \n: odd\n\ndata:   {\"choices\":[{\"delta\":{\"content\":\"\\u00e9\"}}]}\n\n\
                  data: [DONE]\n\n";
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\r\n";
    for cut in [1, 40, 77, 120, stream.len() - 3] {
        let (one, two) = stream.as_bytes().split_at(cut);
        let raw = Raw::start(vec![head.as_bytes().to_vec(), one.to_vec(), two.to_vec()]);
        let fake = good();
        let mut setup = Setup::of(&[&fake]);
        setup.urls[0] = raw.url();
        let answer = setup.start().stream();
        assert_eq!(answer.text(), stream, "cut at {cut}");
    }
}

#[test]
fn an_answer_larger_than_what_is_held_passes_whole() {
    let mut body = b"{\"text\":\"".to_vec();
    body.resize(3_000_000, b'a');
    body.extend_from_slice(b"\"}");
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
    let raw = Raw::start(vec![head.into_bytes(), body.clone()]);
    let fake = good();
    let mut setup = Setup::of(&[&fake]);
    setup.urls[0] = raw.url();
    let answer = setup.start().chat();
    assert!(answer.body == body, "{} bytes came", answer.body.len());
}

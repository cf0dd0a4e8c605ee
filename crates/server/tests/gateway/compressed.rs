//! Requests whose body a client compressed.

use std::io::Write;

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use tidegate_testkit::{
    gate::{Gate, chat},
    http::Answer,
};

use crate::bed::{Setup, good, hits};

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).expect("memory takes it");
    encoder.finish().expect("memory takes it")
}

fn deflate(text: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).expect("memory takes it");
    encoder.finish().expect("memory takes it")
}

fn zstd_of(text: &[u8]) -> Vec<u8> {
    zstd::encode_all(text, 3).expect("memory takes it")
}

type Encode = fn(&[u8]) -> Vec<u8>;
const CODINGS: [(&str, Encode); 3] = [("gzip", gzip), ("deflate", deflate), ("zstd", zstd_of)];

fn send(gate: &Gate, path: &str, coding: &str, body: &[u8]) -> Answer {
    let mut client = gate.client();
    client.send("POST", path, &format!("content-encoding: {coding}\r\n"), body);
    client.answer().expect("an answer")
}

#[test]
fn a_compressed_body_is_forwarded_plain() {
    let fake = good();
    let gate = Setup::of(&[&fake]).start();
    for (coding, encode) in CODINGS {
        let body = encode(chat("r", false).as_bytes());
        let answer = send(&gate, "/v1/chat/completions", coding, &body);
        assert_eq!(answer.status, 200, "{coding}: {}", answer.text());
        let call = fake.calls().pop().expect("a call");
        assert_eq!(call.text(), chat("m", false), "{coding}");
        assert_eq!(call.header("content-encoding"), None, "{coding}");
        let length = chat("m", false).len().to_string();
        assert_eq!(call.header("content-length"), Some(length.as_str()), "{coding}");
    }
}

#[test]
fn s46_a_bomb_is_413_and_what_is_not_compressed_400() {
    let fake = good();
    let gate = Setup { top: "limits: {body: 64KiB}", ..Setup::of(&[&fake]) }.start();
    let large = format!("{{\"model\":\"r\",\"x\":\"{}\"}}", "a".repeat(40 << 20));
    for (coding, encode) in CODINGS {
        let bomb = encode(large.as_bytes());
        assert!(bomb.len() < 64 * 1024, "{coding}: {}", bomb.len());
        assert_eq!(send(&gate, "/v1/chat/completions", coding, &bomb).status, 413, "{coding}");
        let plain = chat("r", false);
        let answer = send(&gate, "/v1/chat/completions", coding, plain.as_bytes());
        assert_eq!(answer.status, 400, "{coding}: {}", answer.text());
        let fits =
            encode(format!("{{\"model\":\"r\",\"x\":\"{}\"}}", "a".repeat(60_000)).as_bytes());
        assert_eq!(send(&gate, "/v1/chat/completions", coding, &fits).status, 200, "{coding}");
    }
    assert_eq!(hits(&fake), 3);
}

#[test]
fn s47_hostile_json_is_a_400_in_compressed_bodies_too() {
    let fake = good();
    let gate = Setup::of(&[&fake]).start();
    let deep = format!("{{\"model\":\"r\",\"x\":{}", "[".repeat(20_000_000));
    let began = tidegate_testkit::time::now();
    for (coding, encode) in CODINGS {
        let answer = send(&gate, "/v1/chat/completions", coding, &encode(deep.as_bytes()));
        assert_eq!(answer.status, 400, "{coding}: {}", answer.text());
        assert!(answer.text().contains("levels of nesting"), "{coding}: {}", answer.text());
        let two = encode(b"{\"model\":\"r\",\"model\":\"a/other\"}");
        assert_eq!(send(&gate, "/v1/chat/completions", coding, &two).status, 400, "{coding}");
    }
    assert!(began.elapsed() < tidegate_testkit::time::PATIENCE, "{:?}", began.elapsed());
    assert_eq!(hits(&fake), 0);
}

//! A provider that closes a kept connection at the moment it is used again.

use std::io::Write;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_testkit::gate::chat;

use crate::bed::{Setup, good};
use crate::upstream::read_request;

/// Serves one request on every connection and takes a second one, which it answers by closing.
/// Its address, and how many requests it took.
fn one_answer_per_connection() -> (String, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    let taken = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&taken);
    let body = r#"{"id":"x","object":"chat.completion","choices":[]}"#;
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    // The thread ends with the test process: nobody connects any more.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            for is_first in [true, false] {
                if !read_request(&mut stream) {
                    break;
                }
                counted.fetch_add(1, Ordering::Relaxed);
                if is_first && stream.write_all(answer.as_bytes()).is_err() {
                    break;
                }
            }
        }
    });
    (url, taken)
}

#[test]
fn a_request_whose_kept_connection_was_closed_is_sent_again_once_and_counted() {
    let (url, taken) = one_answer_per_connection();
    let fake = good();
    let mut setup = Setup::of(&[&fake]);
    setup.urls[0] = url;
    let gate = setup.start();
    let mut client = gate.client();
    for expected in [1, 3] {
        let answer = client.post("/v1/chat/completions", &chat("r", false));
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.header("x-tidegate-attempts"), Some("1"), "it is no hop");
        assert_eq!(taken.load(Ordering::Relaxed), expected);
    }
    assert_eq!(gate.health("a/m")["consecutive_failures"], 0);
    let metrics = gate.admin("/metrics").text();
    assert!(metrics.contains("tidegate_resends_total{target=\"a/m\"} 1"), "{metrics}");
}

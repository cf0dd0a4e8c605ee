//! Many streams and many idle connections at once: nothing is lost, memory comes back.
//!
//! Small by default; `TIDEGATE_LONG=1` makes it 2 000 streams for a minute and 10 000 idle
//! connections, and prints what it measured.

use std::time::Duration;

use tidegate_server::fake::Step;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::bed::{Setup, always, chat, good, now, pause};

struct Size {
    streams: usize,
    tokens: u32,
    idle: usize,
}

pub fn is_long() -> bool {
    std::env::var_os("TIDEGATE_LONG").is_some_and(|it| it == "1")
}

fn size() -> Size {
    if is_long() {
        Size { streams: 2000, tokens: 600, idle: 10_000 }
    } else {
        Size { streams: 200, tokens: 20, idle: 1000 }
    }
}

/// Between two tokens of a stream.
const GAP: Duration = Duration::from_millis(100);

/// What this process has in memory, in KiB.
pub fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|text| text.parse().ok()).unwrap_or_default()
}

/// A runtime for clients by the thousand.
fn crowd() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().expect("a runtime starts")
}

/// One stream, read to its end; how many tokens came, if it ended well.
async fn stream(address: std::net::SocketAddr) -> Option<usize> {
    let mut socket = TcpStream::connect(address).await.ok()?;
    let body = chat("r", true);
    let length = body.len();
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    socket.write_all(request.as_bytes()).await.ok()?;
    let (mut tokens, mut tail, mut buffer) = (0, Vec::new(), vec![0; 4096]);
    loop {
        let count = socket.read(&mut buffer).await.ok()?;
        if count == 0 {
            break;
        }
        // A mark may stand across two reads: the end of the one before stays in front.
        let kept = tail.len();
        tail.extend_from_slice(&buffer[..count]);
        tokens += marks(&tail) - marks(&tail[..kept]);
        let from = tail.len().saturating_sub(64);
        tail.drain(..from);
    }
    let text = String::from_utf8_lossy(&tail);
    text.ends_with("data: [DONE]\n\n\r\n0\r\n\r\n").then_some(tokens)
}

/// How many events with content begin in these bytes.
fn marks(bytes: &[u8]) -> usize {
    const MARK: &[u8] = b"\"delta\":{\"content\":";
    bytes.windows(MARK.len()).filter(|window| *window == MARK).count()
}

#[test]
fn many_streams_at_once_lose_no_frame_and_memory_comes_back() {
    let size = size();
    let fake = always(Step::ok().with_tokens(size.tokens, GAP));
    let gate = Setup::of(&[&fake]).start();
    assert!(gate.stream().is_whole_stream());
    let idle_kib = resident_kib();
    let began = now();
    let (results, peak_kib) = crowd().block_on(async {
        let tasks: Vec<_> =
            (0..size.streams).map(|_| tokio::spawn(stream(gate.address()))).collect();
        let mut results = Vec::new();
        let mut peak_kib = 0;
        for task in tasks {
            results.push(task.await.ok().flatten());
            peak_kib = peak_kib.max(resident_kib());
        }
        (results, peak_kib)
    });
    let whole = results.iter().filter(|it| **it == Some(size.tokens as usize)).count();
    assert_eq!(whole, size.streams, "{:?} …", results.iter().take(5).collect::<Vec<_>>());
    let took = began.elapsed();
    if is_long() {
        pause(Duration::from_secs(5));
        let after_kib = resident_kib();
        let frames = size.streams as u64 * u64::from(size.tokens);
        eprint_figures(&format!(
            "{} streams, {frames} frames in {took:?}; memory of gateway, provider and clients: \
             idle {idle_kib} KiB, peak {peak_kib} KiB, after {after_kib} KiB",
            size.streams
        ));
    }
}

#[test]
fn many_idle_connections_are_held_and_still_served() {
    let size = size();
    let fake = good();
    let gate = Setup { top: "limits: {connections: 20000}", ..Setup::of(&[&fake]) }.start();
    let address = gate.address();
    crowd().block_on(async {
        let mut held = Vec::with_capacity(size.idle);
        for _ in 0..size.idle {
            held.push(TcpStream::connect(address).await.expect("a connection"));
        }
        if is_long() {
            // Longer than a request head may take: idling is not dawdling.
            tokio::time::sleep(Duration::from_secs(15)).await;
            eprint_figures(&format!(
                "{} idle connections held; memory of both sides {} KiB",
                size.idle,
                resident_kib()
            ));
        }
        for socket in held.iter_mut().step_by(size.idle / 50) {
            let request = format!("GET /health HTTP/1.1\r\nhost: {address}\r\n\r\n");
            socket.write_all(request.as_bytes()).await.expect("it is open");
            let mut start = [0; 12];
            socket.read_exact(&mut start).await.expect("it is served");
            assert_eq!(&start, b"HTTP/1.1 200");
        }
    });
}

/// Figures for whoever runs the long form by hand.
fn eprint_figures(text: &str) {
    use std::io::Write;
    drop(writeln!(std::io::stderr(), "{text}"));
}

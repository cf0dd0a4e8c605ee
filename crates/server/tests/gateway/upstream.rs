//! A provider that sends exactly the bytes it is given, for what no well-made server would send.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// One that answers every request with the same pieces, each written by itself, and closes.
pub struct Raw {
    address: SocketAddr,
    hits: Arc<AtomicU64>,
}

impl Raw {
    pub fn start(pieces: Vec<Vec<u8>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let address = listener.local_addr().expect("it is bound");
        let hits = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&hits);
        // The thread ends with the test process: nobody connects any more.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { continue };
                drop(stream.set_nodelay(true));
                if !read_request(&mut stream) {
                    continue;
                }
                counted.fetch_add(1, Ordering::Relaxed);
                for piece in &pieces {
                    // So that each piece is a segment of its own, most of the time.
                    tidegate_testkit::time::pause(std::time::Duration::from_millis(20));
                    if stream.write_all(piece).is_err() {
                        break;
                    }
                }
            }
        });
        Self { address, hits }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }
}

/// Reads one request whose length is told; false if it never comes.
pub fn read_request(stream: &mut impl Read) -> bool {
    let mut seen = Vec::new();
    let mut buffer = [0; 16 * 1024];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return false,
            Ok(count) => seen.extend_from_slice(&buffer[..count]),
        }
        let text = String::from_utf8_lossy(&seen);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.and_then(|text| text.parse().ok()).unwrap_or_default();
        if body.len() >= length {
            return true;
        }
    }
}

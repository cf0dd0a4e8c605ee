//! The other processes of a soak: a provider, a crowd of streams, a crowd that idles.
//!
//! A part is this test binary, run again with one test that does nothing unless it is told what to
//! be. It tells results as lines `part <word> <value>` and ends when its input does.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidegate_server::fake::{FakeServer, Script, Step};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::bed::{chat, now, pause};

/// Longer than the large form takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(300);

const ROLE: &str = "TIDEGATE_SOAK_PART";

/// A running part; it ends with this value.
pub struct Part {
    child: Child,
    said: Arc<Mutex<BTreeMap<String, String>>>,
}

impl Part {
    pub fn start(role: &str) -> Self {
        let binary = std::env::current_exe().expect("a test knows its binary");
        let mut child = Command::new(binary)
            .args(["--exact", "parts::a_part_does_what_it_is_told", "--nocapture"])
            .env(ROLE, role)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary runs again");
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        let said: Arc<Mutex<BTreeMap<String, String>>> = Arc::default();
        let heard = Arc::clone(&said);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let Some(told) = line.strip_prefix("part ") else { continue };
                let Some((word, value)) = told.split_once(' ') else { continue };
                let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
                heard.insert(word.to_owned(), value.to_owned());
            }
        });
        Self { child, said }
    }

    pub fn has_said(&self, word: &str) -> bool {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).contains_key(word)
    }

    /// Waits for a word.
    pub fn hear(&mut self, word: &str) -> String {
        let until = now() + PATIENCE;
        while !self.has_said(word) {
            assert!(now() < until, "it never said `{word}`");
            pause(Duration::from_millis(10));
        }
        self.said.lock().unwrap_or_else(PoisonError::into_inner)[word].clone()
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // Its input ends, and so does it; killed if that is not enough.
        drop(self.child.stdin.take());
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn tell(word: &str, value: impl std::fmt::Display) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "\npart {word} {value}").and_then(|()| out.flush()).expect("somebody listens");
}

#[test]
fn a_part_does_what_it_is_told() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let words: Vec<&str> = role.split(' ').collect();
    let number = |index: usize| words[index].parse::<usize>().expect("a number");
    let address = || words[1].parse::<SocketAddr>().expect("an address");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime starts");
    let _provider = match words[0] {
        "provider" => {
            let step = Step::ok().with_tokens(number(1) as u32, Duration::from_millis(100));
            let script = Script { record: 0, ..Script::always(step) };
            let fake = FakeServer::start(script);
            tell("address", fake.address());
            Some(fake)
        }
        "streams" => {
            runtime.block_on(streams(address(), number(2)));
            None
        }
        "idle" => {
            let hold = Duration::from_secs(number(3) as u64);
            runtime.block_on(idle(address(), number(2), hold));
            None
        }
        other => panic!("`{other}` is no part"),
    };
    drop(std::io::stdin().read_to_end(&mut Vec::new()));
}

async fn streams(address: SocketAddr, count: usize) {
    let tasks: Vec<_> = (0..count).map(|_| tokio::spawn(stream(address))).collect();
    let (mut whole, mut tokens) = (0, 0);
    for task in tasks {
        let came = task.await.ok().flatten();
        whole += usize::from(came.is_some());
        tokens += came.unwrap_or_default();
    }
    tell("tokens", tokens);
    tell("whole", whole);
}

/// One stream, read to its end; how many tokens came, if it ended well.
async fn stream(address: SocketAddr) -> Option<usize> {
    let mut socket = TcpStream::connect(address).await.ok()?;
    let body = chat("r", true);
    let length = body.len();
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    socket.write_all(request.as_bytes()).await.ok()?;
    let (mut tokens, mut tail, mut buffer) = (0, Vec::new(), vec![0; 2048]);
    loop {
        let count = socket.read(&mut buffer).await.ok()?;
        if count == 0 {
            break;
        }
        // A mark may stand across two reads: the end of the one before stays in front.
        let seen = marks(&tail);
        tail.extend_from_slice(&buffer[..count]);
        tokens += marks(&tail) - seen;
        let from = tail.len().saturating_sub(64);
        tail.drain(..from);
    }
    let text = String::from_utf8_lossy(&tail);
    text.ends_with("data: [DONE]\n\n\r\n0\r\n\r\n").then_some(tokens)
}

/// How many events with content begin in these bytes.
fn marks(bytes: &[u8]) -> usize {
    memchr::memmem::find_iter(bytes, b"\"delta\":{\"content\":").count()
}

/// Holds connections that have been used once, waits, and uses them all again.
async fn idle(address: SocketAddr, count: usize, hold: Duration) {
    let mut held = Vec::with_capacity(count);
    for _ in 0..count {
        let mut socket = TcpStream::connect(address).await.expect("a connection");
        assert!(is_served(&mut socket, address).await);
        held.push(socket);
    }
    pause(hold);
    tell("held", held.len());
    let mut served = 0;
    for socket in &mut held {
        served += usize::from(is_served(socket, address).await);
    }
    tell("served", served);
}

async fn is_served(socket: &mut TcpStream, address: SocketAddr) -> bool {
    let request = format!("GET /health HTTP/1.1\r\nhost: {address}\r\n\r\n");
    if socket.write_all(request.as_bytes()).await.is_err() {
        return false;
    }
    let (mut came, mut buffer) = (Vec::new(), [0; 1024]);
    while !came.ends_with(b"\r\n\r\n") {
        match socket.read(&mut buffer).await {
            Ok(0) | Err(_) => return false,
            Ok(count) => came.extend_from_slice(&buffer[..count]),
        }
    }
    came.starts_with(b"HTTP/1.1 200")
}

//! Many streams and many idle connections at once, through the real program: nothing is lost, and
//! the memory comes back.
//!
//! Small by default; `TIDEGATE_LONG=1` makes it 2 000 streams for a minute and 10 000 idle
//! connections (`TIDEGATE_LONG=1 cargo test --release -p tidegate --test soak -- --test-threads 1
//! --nocapture`). Both forms print their figures and hold memory to the same bound.
//!
//! The gateway and the provider are processes of their own, so that neither the crowd's memory nor
//! its descriptors are counted; the crowd is this process.

mod support;

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use support::{folder, program};

/// Longer than connections to a provider are kept (55 s), and than freed pages are (1 s).
const MEMORY_PATIENCE: Duration = Duration::from_secs(90);

/// Whether the large form is wanted.
fn is_long() -> bool {
    std::env::var_os("TIDEGATE_LONG").is_some_and(|it| it == "1")
}

/// A process that ends with this value.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A provider that sends so many tokens, one every 100 ms, with these headers. Its first answer is
/// a short one, without any wait.
fn provider(folder: &Path, tokens: u64, headers: &str) -> (Process, String) {
    let script = format!(
        r#"{{"record": 0, "steps": [{{"tokens": 1}}], "phases": [{{"tokens": {tokens},
            "token_gap": "100ms", "headers": {{{headers}}}}}]}}"#
    );
    std::fs::write(folder.join("script.json"), script).expect("the folder takes files");
    let mut command = program(folder);
    command.args(["__fake", "--script", "script.json"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
    let mut url = String::new();
    let mut stdout = BufReader::new(child.stdout.take().expect("it is piped"));
    stdout.read_line(&mut url).expect("it prints its url");
    (Process(child), url.trim_end().to_owned())
}

/// The program, serving one route to this provider.
fn gateway(folder: &Path, url: &str) -> (Process, SocketAddr) {
    let config = format!(
        "listen: 127.0.0.1:0\nadmin: {{listen: '127.0.0.1:0'}}\nhealth: {{probe: {{every: 0s}}}}\n\
         limits: {{connections: 20000}}\nproviders:\n  a: {{api: openai, url: '{url}/v1'}}\n\
         routes:\n  r: {{tiers: [[a/m]]}}\n"
    );
    std::fs::write(folder.join("tidegate.yaml"), config).expect("the folder takes files");
    let mut command = program(folder);
    command.args(["serve", "--config", "tidegate.yaml", "--threads", "2"]);
    let mut child = command.stderr(Stdio::piped()).spawn().expect("the program starts");
    let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    let address = lines.by_ref().map_while(Result::ok).find_map(|line| {
        let url = line.trim_start().strip_prefix("api")?.trim_start().strip_prefix("http://")?;
        url.split('/').next()?.parse().ok()
    });
    // Whatever else it says is read, so that it never waits for a reader.
    std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
    (Process(child), address.expect("it says where it serves"))
}

#[test]
fn many_streams_at_once_lose_no_frame_and_the_memory_comes_back() {
    let folder = folder("soak-streams");
    // Connections that are kept for a next request would outlive the small form.
    let (streams, tokens, headers) =
        if is_long() { (2000, 600, "") } else { (200, 20, r#""connection": "close""#) };
    let (_provider, url) = provider(&folder, tokens, headers);
    let (gateway, address) = gateway(&folder, &url);
    assert_eq!(crowd(streams_of(address, 1)), (1, 1), "it serves");
    let idle_kib = resident_kib(&gateway);
    let began = now();
    let is_over = AtomicBool::new(false);
    let (peak_kib, (whole, frames)) = std::thread::scope(|scope| {
        let peak = scope.spawn(|| {
            let mut peak_kib = 0;
            while !is_over.load(Ordering::Relaxed) {
                peak_kib = peak_kib.max(resident_kib(&gateway));
                pause();
            }
            peak_kib
        });
        let came = crowd(streams_of(address, streams));
        is_over.store(true, Ordering::Relaxed);
        (peak.join().expect("it only reads"), came)
    });
    let took = began.elapsed();
    assert_eq!((whole, frames), (streams, streams * tokens), "streams that ended well, frames");
    let (after_kib, waited) = settled_kib(&gateway, idle_kib * 12 / 10);
    tell(&format!(
        "{streams} streams, {frames} frames in {took:.1?}, none lost; the gateway's memory: idle \
         {idle_kib} KiB, peak {peak_kib} KiB, {waited:.0?} later {after_kib} KiB"
    ));
    assert!(after_kib * 10 <= idle_kib * 12, "{after_kib} KiB is over 1.2 times {idle_kib} KiB");
}

#[test]
fn many_idle_connections_are_held_and_still_served() {
    let folder = folder("soak-idle");
    // In the large form longer than a request head may take: idling is not dawdling.
    let (count, hold_s) = if is_long() { (10_000, 15) } else { (1000, 0) };
    let (_provider, url) = provider(&folder, 1, "");
    let (gateway, address) = gateway(&folder, &url);
    let before_kib = resident_kib(&gateway);
    let (held_kib, served) = crowd(async {
        let mut held = Vec::new();
        for _ in 0..count {
            let mut socket = TcpStream::connect(address).await.expect("a connection");
            assert!(is_served(&mut socket, address).await);
            held.push(socket);
        }
        tokio::time::sleep(Duration::from_secs(hold_s)).await;
        let held_kib = resident_kib(&gateway).saturating_sub(before_kib);
        let mut served = 0;
        for socket in &mut held {
            served += usize::from(is_served(socket, address).await);
        }
        (held_kib, served)
    });
    assert_eq!(served, count);
    tell(&format!("{count} idle connections held in {held_kib} KiB more"));
}

/// Runs the crowd on this thread.
fn crowd<R>(work: impl Future<Output = R>) -> R {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime starts").block_on(work)
}

/// So many streams at once: how many ended well, and the frames of those.
async fn streams_of(address: SocketAddr, count: u64) -> (u64, u64) {
    let tasks: Vec<_> = (0..count).map(|_| tokio::spawn(stream(address))).collect();
    let (mut whole, mut frames) = (0, 0);
    for task in tasks {
        if let Ok(Some(came)) = task.await {
            whole += 1;
            frames += came;
        }
    }
    (whole, frames)
}

/// One stream, read to its end; how many frames with content came, if it ended well.
async fn stream(address: SocketAddr) -> Option<u64> {
    let mut socket = TcpStream::connect(address).await.ok()?;
    let body = r#"{"model": "r", "stream": true, "messages": [{"role": "user", "content": "hi"}]}"#;
    let length = body.len();
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    socket.write_all(request.as_bytes()).await.ok()?;
    let (mut frames, mut tail, mut buffer) = (0, Vec::new(), vec![0; 2048]);
    loop {
        let count = socket.read(&mut buffer).await.ok()?;
        if count == 0 {
            break;
        }
        // A mark may stand across two reads: the end of the one before stays in front.
        let seen = marks(&tail);
        tail.extend_from_slice(&buffer[..count]);
        frames += marks(&tail) - seen;
        let from = tail.len().saturating_sub(64);
        tail.drain(..from);
    }
    tail.ends_with(b"data: [DONE]\n\n\r\n0\r\n\r\n").then_some(frames)
}

/// How many frames with content begin in these bytes.
fn marks(bytes: &[u8]) -> u64 {
    memchr::memmem::find_iter(bytes, b"\"delta\":{\"content\":").count() as u64
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

/// What a process has in memory, in KiB.
fn resident_kib(process: &Process) -> u64 {
    let path = format!("/proc/{}/status", process.0.id());
    let status = std::fs::read_to_string(path).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|text| text.parse().ok()).expect("a running process has memory")
}

/// What it has once that is no more than `bound_kib`, or patience has run out, and the wait.
fn settled_kib(process: &Process, bound_kib: u64) -> (u64, Duration) {
    let began = now();
    loop {
        let (kib, waited) = (resident_kib(process), began.elapsed());
        if kib <= bound_kib || waited > MEMORY_PATIENCE {
            return (kib, waited);
        }
        pause();
    }
}

fn pause() {
    #[expect(clippy::disallowed_methods, reason = "another process needs the time, not this one")]
    std::thread::sleep(Duration::from_millis(50));
}

fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "how long it takes is one of the figures")]
    Instant::now()
}

/// Figures for whoever runs it by hand.
fn tell(text: &str) {
    drop(writeln!(std::io::stderr(), "{text}"));
}

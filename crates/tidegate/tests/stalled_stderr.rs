//! A gateway whose stderr nobody reads: it serves, and it ends when it is told to.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);

fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "how long the end takes is what is tested")]
    Instant::now()
}

fn pause() {
    #[expect(clippy::disallowed_methods, reason = "another process needs the time")]
    std::thread::sleep(Duration::from_millis(20));
}

/// A port that nobody has.
fn port() -> u16 {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    socket.local_addr().expect("it is bound").port()
}

fn ask(port: u16, path: &str) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let close = "host: localhost\r\nconnection: close\r\n";
    stream.write_all(format!("GET {path} HTTP/1.1\r\n{close}\r\n").as_bytes()).ok()?;
    let mut said = String::new();
    stream.read_to_string(&mut said).ok()?;
    Some(said)
}

#[test]
fn sigterm_ends_a_gateway_whose_log_nobody_reads() {
    let folder = std::env::temp_dir().join(format!("tidegate-stalled-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let (data, admin) = (port(), port());
    let config = format!(
        "listen: 127.0.0.1:{data}\nadmin: {{listen: '127.0.0.1:{admin}'}}\n\
         log: {{access: true}}\nproviders: {{a: {{api: fake}}}}\n\
         routes: {{r: {{tiers: [[a/m]]}}}}\n"
    );
    let path = folder.join("tidegate.yaml");
    std::fs::write(&path, config).expect("a config");
    let mut gateway = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(["serve", "--threads", "1", "-c"])
        .arg(&path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let until = now() + PATIENCE;
    while ask(data, "/health").is_none() {
        assert!(now() < until, "it never served");
        pause();
    }
    // A line each, of more than a hundred bytes: more than any pipe holds.
    for _ in 0..1500 {
        let said = ask(data, "/v1/models").expect("it serves on");
        assert!(said.starts_with("HTTP/1.1 200"), "{said}");
    }
    let began = now();
    let killed = Command::new("kill").arg(gateway.id().to_string()).status();
    assert!(killed.is_ok_and(|it| it.success()));
    let ended = loop {
        match gateway.try_wait().expect("it can be asked") {
            Some(status) => break status,
            None if began.elapsed() > Duration::from_secs(15) => {
                drop(gateway.kill());
                panic!("it does not end while nobody reads its stderr");
            }
            None => pause(),
        }
    };
    assert!(ended.success(), "{ended}");
    drop(std::fs::remove_dir_all(folder));
}

//! A real `redis-server` of a test's own, and whatever may happen to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use crate::time::{PATIENCE, eventually};

/// A store on a port of its own; killed when it is dropped.
pub struct Store {
    address: SocketAddr,
    options: Vec<String>,
    process: Option<Child>,
}

impl Store {
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    pub fn start_with(options: &[&str]) -> Self {
        let address = free_address();
        let options = options.iter().map(|it| (*it).to_owned()).collect();
        let mut store = Self { address, options, process: None };
        store.run();
        store
    }

    /// One that speaks TLS only, at this port of its options.
    pub fn start_secure(options: &[&str], port: u16) -> Self {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        // What comes later counts: no plain port.
        let options = ["--port", "0"].iter().chain(options).map(|it| (*it).to_owned()).collect();
        let mut store = Self { address, options, process: None };
        store.run();
        store
    }

    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Starts it, empty.
    pub fn run(&mut self) {
        let port = self.address.port().to_string();
        let started = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--port", &port, "--save", "", "--appendonly", "no"])
            .args(["--daemonize", "no", "--dir", "/tmp"])
            .args(&self.options)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let missing = "redis-server is not there: install Debian's `redis-server`, or run \
                       `cargo xtask fleet`, which does";
        self.process = Some(started.expect(missing));
        eventually("the store answers", || TcpStream::connect(self.address).is_ok());
    }

    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("it can be killed");
            process.wait().expect("it ends");
        }
    }

    /// Stops it in the middle of whatever it does.
    pub fn pause(&self) {
        self.signal("STOP");
    }

    pub fn go_on(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        let id = self.process.as_ref().expect("it runs").id().to_string();
        let done = Command::new("kill").args([&format!("-{name}"), &id]).status();
        assert!(done.expect("kill is there").success());
    }

    /// Sends one command; the answer's first line, or a bulk answer's bytes as text.
    pub fn ask(&self, words: &[&[u8]]) -> String {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
        let mut text = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            text.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            text.extend_from_slice(word);
            text.extend_from_slice(b"\r\n");
        }
        stream.write_all(&text).expect("it takes a command");
        let mut reader = BufReader::new(stream);
        let line = read_line(&mut reader);
        match line.strip_prefix('$').and_then(|size| size.parse::<usize>().ok()) {
            Some(size) => {
                let mut bytes = vec![0; size];
                reader.read_exact(&mut bytes).expect("it is whole");
                String::from_utf8_lossy(&bytes).into_owned()
            }
            None => line,
        }
    }

    /// Every key there is.
    pub fn keys(&self) -> Vec<String> {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
        stream.write_all(b"*2\r\n$4\r\nKEYS\r\n$1\r\n*\r\n").expect("it takes a command");
        let mut reader = BufReader::new(stream);
        let count: usize = read_line(&mut reader)[1..].parse().expect("a count");
        let mut key = || {
            drop(read_line(&mut reader));
            read_line(&mut reader)
        };
        (0..count).map(|_| key()).collect()
    }
}

/// An address that nobody listens at.
pub fn free_address() -> SocketAddr {
    let free = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    free.local_addr().expect("it has an address")
}

fn read_line(reader: &mut impl BufRead) -> String {
    let mut line = String::new();
    reader.read_line(&mut line).expect("it answers");
    line.trim_end().to_owned()
}

impl Drop for Store {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Something that listens where a store should, and answers every connection with these bytes.
pub fn garbage(address: SocketAddr, bytes: &'static [u8]) -> TcpListener {
    let listener = TcpListener::bind(address).expect("the port is free");
    let accepting = listener.try_clone().expect("a listener can be shared");
    std::thread::spawn(move || {
        for stream in accepting.incoming() {
            let Ok(mut stream) = stream else { return };
            std::thread::spawn(move || {
                let mut read = [0; 1024];
                while let Ok(1..) = stream.read(&mut read) {
                    if stream.write_all(bytes).is_err() {
                        return;
                    }
                }
            });
        }
    });
    listener
}

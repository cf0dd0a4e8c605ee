//! A gateway that runs as a process of its own: what it says, and questions to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

use super::program;

/// How long a line may take; far more than it ever does.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A running gateway and what it says.
pub struct Served {
    child: Child,
    lines: Receiver<String>,
    /// The lines so far.
    pub heard: Vec<String>,
    /// Where it serves.
    pub address: String,
    /// Where its admin listener is.
    pub admin: String,
}

impl Served {
    /// Starts on ports that the system picks.
    pub fn start(folder: &Path, args: &[&str]) -> Self {
        let mut command = program(folder);
        command.args(["serve", "--listen", ":0", "--admin-listen", "localhost:0"]).args(args);
        Self::spawn(&mut command)
    }

    /// Starts a prepared program and waits until it serves.
    pub fn spawn(command: &mut Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the program starts");
        let stderr = child.stderr.take().expect("it is piped");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let (heard, address, admin) = (Vec::new(), String::new(), String::new());
        let mut served = Self { child, lines, heard, address, admin };
        // The last line of the banner, or the one line that stands for it in a log of JSON.
        let line = served.until_line(|line| line == "serving" || line.starts_with('{'));
        if line.starts_with('{') {
            let line: Value = serde_json::from_str(&line).expect("a line of JSON");
            let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
            (served.address, served.admin) = (text("listen"), text("admin_listen"));
        } else {
            served.address = served.banner_address("api");
            served.admin = served.banner_address("admin");
        }
        served
    }

    fn banner_address(&self, row: &str) -> String {
        let is_row = |line: &&String| line.trim_start().starts_with(row);
        let line = self.heard.iter().find(is_row).expect("a row of the banner");
        let url = line.split_whitespace().nth(1).expect("a url");
        url.trim_start_matches("http://").split('/').next().unwrap_or_default().to_owned()
    }

    /// The first line from now on that holds these words.
    pub fn until(&mut self, words: &str) -> String {
        self.until_line(|line| line.contains(words))
    }

    /// The first line from now on for which this is true.
    pub fn until_line(&mut self, is_it: impl Fn(&str) -> bool) -> String {
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("no such line in {:#?}", self.heard));
            self.heard.push(line.clone());
            if is_it(&line) {
                return line;
            }
        }
    }

    /// Sends a request and gives the whole answer.
    pub fn ask(&self, address: &str, request: &str) -> String {
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        answer
    }

    /// The whole answer to a `GET`.
    pub fn get(&self, path: &str, headers: &str) -> String {
        let head = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
        self.ask(&self.address, &format!("{head}{headers}\r\n"))
    }

    /// The whole answer to a chat request.
    pub fn chat(&self, model: &str, headers: &str) -> String {
        let body = format!(r#"{{"model":"{model}","messages":[]}}"#);
        let request = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n{headers}\r\n{body}",
            body.len()
        );
        self.ask(&self.address, &request)
    }
}

impl Served {
    /// Ends it as an operator does, and gives everything it said.
    pub fn stop(mut self) -> Vec<String> {
        let id = self.child.id().to_string();
        let ended = Command::new("kill").args(["-TERM", &id]).status();
        assert!(ended.is_ok_and(|status| status.success()), "kill is there");
        drop(self.child.wait());
        let rest: Vec<String> = self.lines.iter().collect();
        self.heard.extend(rest);
        std::mem::take(&mut self.heard)
    }

    /// Kills it as `kill -9` does.
    pub fn stop_dead(mut self) {
        self.child.kill().expect("it runs");
        drop(self.child.wait());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

//! The scene of the SDK tests: processes, where they listen, and their end.
//!
//! Every process writes into a file of its own under the scene's folder: that is where its address
//! is read from, and what is left to look at after a failure. A value that stands for a process
//! ends it when it is dropped, so no path out of the chore leaves one behind; the fake providers
//! also end with their stdin, that is with us, however we end.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};

use super::{KEY, NARROW_KEY, read};
use crate::counts::Counts;
use crate::say;

/// How long a process may take until it serves: generous, for a machine that compiles meanwhile.
const START: Duration = Duration::from_secs(60);

/// How long a program of tests may take; they need seconds.
const PROGRAM: Duration = Duration::from_secs(300);

/// How often something that is waited for is looked at.
const STEP: Duration = Duration::from_millis(50);

/// The running scene.
pub(super) struct Bed {
    /// The gateway's address, without a path.
    pub(super) gateway: String,
    /// The first provider's.
    pub(super) ebb: String,
    /// The second provider's.
    pub(super) flow: String,
    log: PathBuf,
    _processes: Vec<Process>,
}

impl Bed {
    /// Starts two fake providers and a gateway with `config`, in which `EBB_URL` and `FLOW_URL`
    /// stand for their addresses.
    pub(super) fn start(binary: &Path, config: &Path, folder: &Path) -> anyhow::Result<Self> {
        let mut processes = Vec::new();
        let mut urls = Vec::new();
        for name in ["ebb", "flow"] {
            let mut command = Command::new(binary);
            command.args(["__fake", "--name", name]);
            let mut process = Process::start(command, &folder.join(format!("{name}.log")))?;
            urls.push(process.wait_for(|log| first_line(log, "http://"))?);
            processes.push(process);
        }
        let (flow, ebb) = (urls.pop().unwrap_or_default(), urls.pop().unwrap_or_default());
        let written = folder.join("tidegate.yaml");
        let text = read(&config.to_owned())?.replace("EBB_URL", &ebb).replace("FLOW_URL", &flow);
        fs::write(&written, text).context("cannot write the gateway's config")?;
        let mut command = Command::new(binary);
        command.arg("serve").arg("-c").arg(&written).env("TIDEGATE_SDK_KEY", KEY);
        command.env("TIDEGATE_SDK_NARROW_KEY", NARROW_KEY);
        command.env("TIDEGATE_SDK_UPSTREAM_KEY", "tg-upstream-key");
        let log = folder.join("gateway.log");
        let mut process = Process::start(command, &log)?;
        let gateway = process.wait_for(|log| {
            let line = first_line(log, "  api    http://")?;
            let address = line.split_whitespace().nth(1)?;
            Some(address.trim_end_matches("/v1").to_owned())
        })?;
        process.wait_for(|_| is_ready(&gateway).then_some(()))?;
        processes.push(process);
        Ok(Self { gateway, ebb, flow, log, _processes: processes })
    }

    /// What the gateway printed.
    pub(super) fn gateway_log(&self) -> &Path {
        &self.log
    }
}

/// The first whole line of a log that begins like this.
fn first_line(log: &str, start: &str) -> Option<String> {
    let whole = &log[..log.rfind('\n')?];
    whole.lines().find(|line| line.starts_with(start)).map(str::to_owned)
}

fn is_ready(url: &str) -> bool {
    let ask = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect(url.trim_start_matches("http://"))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(b"GET /ready HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
        let mut head = [0; 12];
        stream.read_exact(&mut head)?;
        Ok(head == *b"HTTP/1.1 200")
    };
    ask().unwrap_or(false)
}

/// A process that ends with this value.
struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    fn start(mut command: Command, log: &Path) -> anyhow::Result<Self> {
        let file = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
        let other = file.try_clone().context("cannot share a log")?;
        let line = format!("{command:?}");
        let child = command.stdin(Stdio::piped()).stdout(file).stderr(other).spawn();
        let child = child.with_context(|| format!("cannot start {line}"))?;
        Ok(Self { child, log: log.to_owned() })
    }

    /// Looks at the log until `find` finds something in it.
    fn wait_for<T>(&mut self, find: impl Fn(&str) -> Option<T>) -> anyhow::Result<T> {
        let mut waited = Duration::ZERO;
        loop {
            let log = read(&self.log)?;
            if let Some(found) = find(&log) {
                return Ok(found);
            }
            let ended = self.child.try_wait().context("cannot look at a process")?;
            if let Some(status) = ended {
                bail!("it ended at once, {status}:\n{log}");
            }
            if waited >= START {
                bail!("it does not serve after {} s:\n{log}", START.as_secs());
            }
            pause(&mut waited);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Errors mean that it has ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A program of tests.
pub(super) struct Program {
    command: Command,
}

impl Program {
    pub(super) fn new(command: Command) -> Self {
        Self { command }
    }

    /// Runs it to its end, passing its output on: what it counted, and whether it is content.
    pub(super) fn run(mut self) -> anyhow::Result<(Counts, bool)> {
        let line = format!("{:?}", self.command);
        let child = self.command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut child = child.with_context(|| format!("cannot start {line}"))?;
        let stdout = child.stdout.take().context("the program has no stdout")?;
        let reader = thread::spawn(move || {
            let mut counts = Counts::default();
            for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line);
                counts.read(&line);
                say::line(&line);
            }
            counts
        });
        let status = within_limit(&mut child)?;
        let counts = reader.join().ok().context("reading the program's output failed")?;
        Ok((counts, status.success()))
    }
}

fn within_limit(child: &mut Child) -> anyhow::Result<ExitStatus> {
    let mut waited = Duration::ZERO;
    loop {
        if let Some(status) = child.try_wait().context("cannot look at a program")? {
            return Ok(status);
        }
        if waited >= PROGRAM {
            drop(child.kill());
            drop(child.wait());
            bail!("the program did not end within {} s", PROGRAM.as_secs());
        }
        pause(&mut waited);
    }
}

fn pause(waited: &mut Duration) {
    #[expect(clippy::disallowed_methods, reason = "waits for another process, with a deadline")]
    thread::sleep(STEP);
    *waited += STEP;
}

#[cfg(test)]
mod tests {
    use super::first_line;

    #[test]
    fn an_address_is_read_from_whole_lines_only() {
        assert_eq!(first_line("note\nhttp://127.0.0.1:40", "http://"), None);
        let log = "note\nhttp://127.0.0.1:40123\n";
        assert_eq!(first_line(log, "http://").as_deref(), Some("http://127.0.0.1:40123"));
    }
}

//! Processes of a scene: a gateway, what stands behind it, and programs of tests in front of it.
//!
//! Every process writes into a file of its own under the scene's folder: that is where its address
//! is read from, and what is left to look at after a failure. A value that stands for a process
//! ends it when it is dropped, so no path out of a chore leaves one behind.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail};

use crate::counts::Counts;
use crate::install::read;
use crate::say;

/// How long a process may take until it serves: generous, for a machine that compiles meanwhile.
const START: Duration = Duration::from_secs(60);

/// How long a program of tests may take; they need seconds, or a minute at most.
const PROGRAM: Duration = Duration::from_secs(300);

/// How often something that is waited for is looked at.
const STEP: Duration = Duration::from_millis(50);

/// Starts a gateway and waits until it is ready; its address, without a path.
pub(crate) fn gateway(command: Command, log: &Path) -> anyhow::Result<(Process, String)> {
    let mut process = Process::start(command, log)?;
    let gateway = process.wait_for(|log| {
        let line = first_line(log, "  api    http://")?;
        let address = line.split_whitespace().nth(1)?;
        Some(address.trim_end_matches("/v1").to_owned())
    })?;
    process.wait_for(|_| is_ready(&gateway).then_some(()))?;
    Ok((process, gateway))
}

/// The first whole line of a log that begins like this.
pub(crate) fn first_line(log: &str, start: &str) -> Option<String> {
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
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts it; both its outputs go into `log`.
    pub(crate) fn start(mut command: Command, log: &Path) -> anyhow::Result<Self> {
        let file = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
        let other = file.try_clone().context("cannot share a log")?;
        let line = format!("{command:?}");
        let child = command.stdin(Stdio::piped()).stdout(file).stderr(other).spawn();
        let child = child.with_context(|| format!("cannot start {line}"))?;
        Ok(Self { child, log: log.to_owned() })
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Looks at the log until `find` finds something in it.
    pub(crate) fn wait_for<T>(&mut self, find: impl Fn(&str) -> Option<T>) -> anyhow::Result<T> {
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

    /// Waits until it ends by itself, for as long as a program of tests may take.
    pub(crate) fn wait(mut self) -> anyhow::Result<ExitStatus> {
        within_limit(&mut self.child, PROGRAM)
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
pub(crate) struct Program {
    command: Command,
    limit: Duration,
}

impl Program {
    pub(crate) fn new(command: Command) -> Self {
        Self { command, limit: PROGRAM }
    }

    /// The same for a program that may take this long.
    pub(crate) fn within(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// Runs it to its end, passing its output on: what it counted, and whether it is content.
    pub(crate) fn run(mut self) -> anyhow::Result<(Counts, bool)> {
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
        let status = within_limit(&mut child, self.limit)?;
        let counts = reader.join().ok().context("reading the program's output failed")?;
        Ok((counts, status.success()))
    }
}

fn within_limit(child: &mut Child, limit: Duration) -> anyhow::Result<ExitStatus> {
    let mut waited = Duration::ZERO;
    loop {
        if let Some(status) = child.try_wait().context("cannot look at a program")? {
            return Ok(status);
        }
        if waited >= limit {
            drop(child.kill());
            drop(child.wait());
            bail!("the program did not end within {} s", limit.as_secs());
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

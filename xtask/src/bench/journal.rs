//! `cargo xtask bench journal`: what the record of decisions costs, in instructions.
//!
//! The gateway runs under valgrind's callgrind and answers requests of one client; the instructions
//! inside the functions that record are compared with all instructions of the process. Counts of
//! instructions do not depend on what else the machine does. They leave out the kernel, so before
//! that the gateway runs by itself, and the kernel says how its CPU time is divided: the share of
//! the CPU is the share of the instructions, times the share of the gateway's own code in the time.
//! That takes an instruction that records for as slow as any other.
//!
//! The binary must have its names: `cargo xtask dist` leaves such a one in
//! `target/dist-build/release`; without `--binary` one is built by `cargo build --profile bench`.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail, ensure};

use super::{Options, usage};
use crate::install::quietly;
use crate::process::{self, Process, first_line};
use crate::stage::Stage;
use crate::{docs, say};

const HELP: &str = "install valgrind (Debian: `apt install valgrind`)";
/// Requests before the counting begins: connections, caches and tables are there then.
const WARM_UP: u32 = 200;
/// Requests that are counted.
const COUNTED: u32 = 2000;
/// Requests of the run that is timed: two seconds of a core, in ticks of ten milliseconds.
const TIMED: u32 = 40_000;
/// What records in every request, each by a part of its name. None of them calls another.
const PER_REQUEST: [&str; 2] = ["RequestContext::record", "ChoiceTrace::note"];
/// What takes records in on a timer. A short run may end before the timer does.
const ON_A_TIMER: &str = "journal::Journal::collect";
/// The goal.
const GOAL_PERCENT: f64 = 3.0;

/// Counts, and says the share.
pub(super) fn run(options: &Options) -> anyhow::Result<()> {
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => built()?,
    };
    let folder = docs::root().join("target/bench");
    fs::create_dir_all(&folder).context("cannot make `target/bench`")?;
    let mut fake = Command::new(&binary);
    fake.arg("__fake");
    let mut fake = Process::start(fake, &folder.join("journal-fake.log"))?;
    let upstream = fake.wait_for(|log| first_line(log, "http://"))?;
    let config = folder.join("journal.yaml");
    fs::write(&config, config_text(upstream.trim_end())).context("cannot write the config")?;
    let own_share = own_share_of_time(&binary, &config, &folder)?;
    let counts = folder.join("journal.callgrind");
    drop(fs::remove_file(&counts));
    let mut serve = Command::new("valgrind");
    serve
        .args(["--tool=callgrind", "--instr-atstart=no"])
        .arg(format!("--callgrind-out-file={}", counts.display()))
        .arg(&binary)
        .args(["serve", "--threads", "1", "--config"])
        .arg(&config);
    let (gateway, url) = process::gateway(serve, &folder.join("journal.log")).context(HELP)?;
    let mut client = KeepAliveClient::connect(&url)?;
    client.ask(WARM_UP)?;
    let pid = gateway.pid().to_string();
    quietly(Command::new("callgrind_control").args(["-i", "on", &pid]), HELP)?;
    client.ask(COUNTED)?;
    quietly(Command::new("callgrind_control").args(["-i", "off", &pid]), HELP)?;
    quietly(Command::new("callgrind_control").args(["-d", &pid]), HELP)?;
    drop(gateway);
    tell(&dumped(&counts)?, own_share)
}

/// How much of the CPU time of a request is spent outside the kernel.
fn own_share_of_time(binary: &Path, config: &Path, folder: &Path) -> anyhow::Result<f64> {
    let mut serve = Command::new(binary);
    serve.args(["serve", "--threads", "1", "--config"]).arg(config);
    let (gateway, url) = process::gateway(serve, &folder.join("journal-timed.log"))?;
    let mut client = KeepAliveClient::connect(&url)?;
    client.ask(WARM_UP)?;
    let before = usage::user_and_kernel_ticks(gateway.pid())?;
    client.ask(TIMED)?;
    let after = usage::user_and_kernel_ticks(gateway.pid())?;
    let (own, kernel) = (after.0 - before.0, after.1 - before.1);
    ensure!(own + kernel > 0, "no CPU time was counted");
    Ok(own as f64 / (own + kernel) as f64)
}

fn config_text(upstream: &str) -> String {
    format!(
        "listen: 127.0.0.1:0\nadmin: {{ listen: \"127.0.0.1:0\" }}\n\
         providers: {{ a: {{ api: openai, url: \"{upstream}/v1\" }}, \
         b: {{ api: openai, url: \"{upstream}/v1\" }} }}\n\
         routes: {{ r: {{ tiers: [[a/m], [b/m]] }} }}\n"
    )
}

fn built() -> anyhow::Result<PathBuf> {
    Stage::cargo("build", &["build", "--profile", "bench", "-p", "tidegate"]).run()?;
    let target = std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| docs::root().join("target"), PathBuf::from);
    Ok(target.join("release/tidegate"))
}

/// A dump on request has a number after its name.
fn dumped(counts: &Path) -> anyhow::Result<PathBuf> {
    let numbered = PathBuf::from(format!("{}.1", counts.display()));
    for path in [numbered.as_path(), counts] {
        if path.exists() {
            return Ok(path.to_owned());
        }
    }
    bail!("callgrind wrote no counts to {}", counts.display())
}

/// The share of recording in what callgrind counted.
pub(super) fn percent_of(counts: &Path) -> anyhow::Result<f64> {
    Ok(share(&annotated(counts)?)?.percent())
}

fn annotated(counts: &Path) -> anyhow::Result<String> {
    let mut annotate = Command::new("callgrind_annotate");
    annotate.args(["--inclusive=yes", "--threshold=100", "--show-percs=no"]).arg(counts);
    quietly(&mut annotate, HELP)
}

fn tell(counts: &Path, own_share: f64) -> anyhow::Result<()> {
    let share = share(&annotated(counts)?)?;
    let per_request = |count: u64| count / u64::from(COUNTED);
    say::line(&format!(
        "{} instructions per request, {} of them to record it: {:.2} %",
        per_request(share.total),
        per_request(share.recording),
        share.percent(),
    ));
    let of_cpu = share.percent() * own_share;
    say::line(&format!(
        "{:.0} % of the CPU time is outside the kernel, so recording takes {of_cpu:.2} % of the \
         CPU (goal: {GOAL_PERCENT} %)",
        100.0 * own_share,
    ));
    for (name, count) in &share.parts {
        say::line(&format!("  {name}: {}", per_request(*count)));
    }
    ensure!(of_cpu <= GOAL_PERCENT, "the record costs more than its goal");
    Ok(())
}

/// What was counted.
struct Share {
    total: u64,
    recording: u64,
    parts: Vec<(&'static str, u64)>,
}

impl Share {
    fn percent(&self) -> f64 {
        100.0 * self.recording as f64 / self.total as f64
    }
}

/// Reads what `callgrind_annotate` prints: a count, then a file and a function.
fn share(text: &str) -> anyhow::Result<Share> {
    let count_of = |line: &str| -> Option<u64> {
        line.split_whitespace().next()?.replace(',', "").parse().ok()
    };
    let total = text.lines().find(|line| line.contains("PROGRAM TOTALS")).and_then(count_of);
    let total = total.filter(|it| *it > 0).context("no instruction was counted")?;
    let of = |name: &str| text.lines().find(|line| line.contains(name)).and_then(count_of);
    let mut parts = Vec::new();
    for name in PER_REQUEST {
        let count = of(name).with_context(|| {
            format!("`{name}` is not among the functions: has the binary its names?")
        })?;
        parts.push((name, count));
    }
    parts.push((ON_A_TIMER, of(ON_A_TIMER).unwrap_or(0)));
    Ok(Share { total, recording: parts.iter().map(|it| it.1).sum(), parts })
}

/// A client with one connection.
pub(super) struct KeepAliveClient {
    stream: BufReader<TcpStream>,
    body: String,
    request: Vec<u8>,
}

impl KeepAliveClient {
    pub(super) fn connect(url: &str) -> anyhow::Result<Self> {
        let address = url.trim_start_matches("http://");
        let stream = TcpStream::connect(address).context("the gateway does not listen")?;
        // Under valgrind everything is fifty times slower.
        stream.set_read_timeout(Some(Duration::from_secs(60))).context("no timeout")?;
        let text = "a word or two ".repeat(140);
        let body = format!(
            "{{\"model\":\"r\",\"messages\":[{{\"role\":\"user\",\"content\":\"{text}\"}}]}}"
        );
        let request = request(&body, "").into_bytes();
        Ok(Self { stream: BufReader::new(stream), body, request })
    }

    /// Asks as this session from now on.
    pub(super) fn set_session(&mut self, number: u32) {
        self.request = request(&self.body, &format!("x-session-id: s{number}\r\n")).into_bytes();
    }

    /// Asks so many times, one after the other.
    pub(super) fn ask(&mut self, times: u32) -> anyhow::Result<()> {
        for _ in 0..times {
            self.stream.get_mut().write_all(&self.request).context("the gateway went away")?;
            let (mut line, mut length, mut is_first) = (String::new(), 0, true);
            loop {
                line.clear();
                self.stream.read_line(&mut line).context("no answer")?;
                let told = line.trim_end().to_ascii_lowercase();
                ensure!(!is_first || told.contains(" 200 "), "a request failed: {told}");
                is_first = false;
                if let Some(count) = told.strip_prefix("content-length: ") {
                    length = count.parse().context("an odd length")?;
                }
                if told.is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            self.stream.read_exact(&mut body).context("a cut answer")?;
        }
        Ok(())
    }
}

/// A request with these headers besides its own.
fn request(body: &str, headers: &str) -> String {
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n\
         content-type: application/json\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn the_share_is_read_from_callgrinds_list_and_a_missing_name_is_an_error() {
        let text = "2,000,000  PROGRAM TOTALS\n\
                    30,000  x.rs:tidegate_llm::request_context::RequestContext::record [b]\n\
                    9,000  y.rs:tidegate_journal::choice_trace::ChoiceTrace::note [b]\n\
                    1,000  z.rs:tidegate_journal::journal::Journal::collect [b]\n";
        let read = share(text).expect("a share");
        assert_eq!((read.total, read.recording), (2_000_000, 40_000));
        assert!((read.percent() - 2.0).abs() < 1e-9);
        assert!(share(&text.replace("note", "noted_elsewhere_")).is_ok(), "a part of a name");
        assert!(share(&text.replace("ChoiceTrace", "Other")).is_err());
        let short = share(&text.replace("Journal::collect", "Journal::other")).expect("a share");
        assert_eq!(short.recording, 39_000, "the timer did not fire");
        assert!(share("nothing").is_err());
    }
}

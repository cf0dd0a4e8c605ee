//! `cargo xtask bench dashboards`: what fifty open dashboards cost the data plane.
//!
//! One gateway with 200 backends answers 500 requests per second of a thousand sessions, in turn
//! with nobody looking and with fifty clients that read its event stream, as many times as there
//! are rounds. Compared are the CPU time per request of the threads that carry requests, by the
//! kernel's count, and how long requests took. The admin listener has a thread of its own, which is
//! told apart. The best round of each counts; a failed request voids the run.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use super::{Options, built, journal::KeepAliveClient};
use crate::process::{self, Process, first_line};
use crate::{docs, say};

const DASHBOARDS: usize = 50;
const PER_SECOND: u32 = 500;
const PROVIDERS: usize = 20;
const MODELS: usize = 10;
const SESSIONS: u32 = 1000;
/// More would mean that looking at the gateway slows it down.
const GOAL_RATIO: f64 = 1.05;
/// How the threads that carry requests are named.
const DATA_THREADS: &str = "worker-";

/// What a round showed.
#[derive(Clone, Copy, Debug)]
struct Round {
    data_us: f64,
    other_us: f64,
    p50_us: u64,
    p99_us: u64,
}

/// Measures, and says the ratio.
pub(super) fn run(options: &Options) -> anyhow::Result<()> {
    let binary = match &options.binary {
        Some(binary) => binary.clone(),
        None => built()?,
    };
    let folder = docs::root().join("target/bench");
    fs::create_dir_all(&folder).context("cannot make `target/bench`")?;
    let mut fake = Command::new(&binary);
    fake.arg("__fake");
    let mut fake = Process::start(fake, &folder.join("dashboards-fake.log"))?;
    let upstream = fake.wait_for(|log| first_line(log, "http://"))?;
    let gateway = Measured::start(&binary, &folder, upstream.trim_end())?;
    gateway.round(options.load)?;
    let (mut alone, mut watched) = (Vec::new(), Vec::new());
    let mut read = 0;
    for _ in 0..options.rounds {
        alone.push(gateway.round(options.load)?);
        let readers = Readers::open(&gateway.admin)?;
        watched.push(gateway.round(options.load)?);
        read += readers.close()?;
    }
    let (alone, watched) = (best(&alone)?, best(&watched)?);
    tell("nobody looks", alone);
    tell("50 dashboards", watched);
    say::line(&format!("the dashboards read {} KiB", read / 1024));
    let ratio = watched.data_us / alone.data_us;
    say::line(&format!(
        "ratio of the data plane's CPU per request: {ratio:.3} (goal: {GOAL_RATIO})"
    ));
    ensure!(ratio <= GOAL_RATIO, "open dashboards slow the data plane down");
    Ok(())
}

fn tell(name: &str, round: Round) {
    let Round { data_us, other_us, p50_us, p99_us } = round;
    say::line(&format!(
        "{name:<14} data plane {data_us:>7.1} us/request   other threads {other_us:>7.1}   \
         p50 {p50_us} us   p99 {p99_us} us"
    ));
}

/// The round in which the data plane used the least.
fn best(rounds: &[Round]) -> anyhow::Result<Round> {
    let best = rounds.iter().min_by(|one, other| one.data_us.total_cmp(&other.data_us));
    best.copied().context("no round was run")
}

/// A gateway under load.
struct Measured {
    process: Process,
    url: String,
    admin: String,
}

impl Measured {
    fn start(binary: &Path, folder: &Path, upstream: &str) -> anyhow::Result<Self> {
        let config: PathBuf = folder.join("dashboards.yaml");
        fs::write(&config, config_text(upstream)).context("cannot write the config")?;
        let log = folder.join("dashboards.log");
        let mut serve = Command::new(binary);
        serve.args(["serve", "--threads", "1", "--config"]).arg(&config);
        let (process, url) = process::gateway(serve, &log)?;
        let said = fs::read_to_string(&log).context("cannot read the log")?;
        let admin = first_line(&said, "  admin  http://");
        let admin = admin.as_deref().and_then(|line| line.split_whitespace().nth(1));
        let admin = admin.context("the gateway says no admin address")?;
        let admin = admin.trim_start_matches("http://").to_owned();
        Ok(Self { process, url, admin })
    }

    /// Asks at a steady pace, and compares what the threads used before and after.
    #[expect(clippy::disallowed_methods, reason = "a bench measures real time, at a real pace")]
    fn round(&self, load: Duration) -> anyhow::Result<Round> {
        let mut client = KeepAliveClient::connect(&self.url)?;
        let before = self.used()?;
        let requests = PER_SECOND * u32::try_from(load.as_secs()).unwrap_or(1);
        let begun = Instant::now();
        let mut took: Vec<u64> = Vec::with_capacity(requests as usize);
        for number in 0..requests {
            let due = begun + Duration::from_secs(1) / PER_SECOND * number;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            client.set_session(number % SESSIONS);
            let asked = Instant::now();
            client.ask(1)?;
            took.push(u64::try_from(asked.elapsed().as_micros()).unwrap_or(u64::MAX));
        }
        let after = self.used()?;
        took.sort_unstable();
        let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize];
        let per_request = |ns: u64| ns as f64 / 1000.0 / f64::from(requests);
        Ok(Round {
            data_us: per_request(after.0.saturating_sub(before.0)),
            other_us: per_request(after.1.saturating_sub(before.1)),
            p50_us: at(0.5),
            p99_us: at(0.99),
        })
    }

    /// Nanoseconds of the threads that carry requests, and of all others.
    fn used(&self) -> anyhow::Result<(u64, u64)> {
        let folder = format!("/proc/{}/task", self.process.pid());
        let (mut data, mut other) = (0, 0);
        for entry in fs::read_dir(&folder).context("the gateway is gone")?.flatten() {
            let read = |name: &str| fs::read_to_string(entry.path().join(name)).unwrap_or_default();
            let ran = read("schedstat").split(' ').next().and_then(|it| it.parse::<u64>().ok());
            let part = if read("comm").starts_with(DATA_THREADS) { &mut data } else { &mut other };
            *part += ran.unwrap_or(0);
        }
        ensure!(data > 0, "no thread of the gateway is called `{DATA_THREADS}`");
        Ok((data, other))
    }
}

fn config_text(upstream: &str) -> String {
    let providers: Vec<String> = (0..PROVIDERS)
        .map(|number| format!("  p{number}: {{ api: openai, url: \"{upstream}/v1\" }}\n"))
        .collect();
    let targets = |models: std::ops::Range<usize>| -> String {
        let names =
            models.flat_map(|model| (0..PROVIDERS).map(move |it| format!("p{it}/m{model}")));
        names.collect::<Vec<_>>().join(", ")
    };
    format!(
        "listen: 127.0.0.1:0\nadmin: {{ listen: \"127.0.0.1:0\" }}\nproviders:\n{}\
         routes: {{ r: {{ tiers: [[{}], [{}]], affinity: {{ ttl: 30m }} }} }}\n",
        providers.concat(),
        targets(0..1),
        targets(1..MODELS),
    )
}

/// Clients that read the event stream as fast as it comes.
struct Readers {
    is_over: Arc<AtomicBool>,
    read: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Readers {
    fn open(admin: &str) -> anyhow::Result<Self> {
        let (is_over, read) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let mut threads = Vec::new();
        for _ in 0..DASHBOARDS {
            let mut stream = TcpStream::connect(admin).context("no admin listener")?;
            let ask = format!("GET /api/events HTTP/1.1\r\nhost: {admin}\r\n\r\n");
            stream.write_all(ask.as_bytes()).context("no admin listener")?;
            stream.set_read_timeout(Some(Duration::from_secs(10))).context("no timeout")?;
            let mut head = [0; 12];
            stream.read_exact(&mut head).context("no stream")?;
            ensure!(head == *b"HTTP/1.1 200", "a stream was refused");
            // A reader that hears nothing looks at whether it is over.
            stream.set_read_timeout(Some(Duration::from_millis(200))).context("no timeout")?;
            let (is_over, read) = (Arc::clone(&is_over), Arc::clone(&read));
            threads.push(thread::spawn(move || {
                let mut piece = [0; 16 * 1024];
                while !is_over.load(Ordering::Relaxed) {
                    let count = stream.read(&mut piece).unwrap_or(0);
                    read.fetch_add(count as u64, Ordering::Relaxed);
                }
            }));
        }
        Ok(Self { is_over, read, threads })
    }

    /// Closes them; how many bytes they were sent.
    fn close(self) -> anyhow::Result<u64> {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads {
            ensure!(thread.join().is_ok(), "a reader failed");
        }
        let read = self.read.load(Ordering::Relaxed);
        ensure!(read > 0, "the dashboards were told nothing");
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::{MODELS, PROVIDERS, config_text};

    #[test]
    fn the_config_names_two_hundred_backends() {
        let text = config_text("http://127.0.0.1:1");
        assert_eq!(text.matches("/m").count(), PROVIDERS * MODELS);
        assert!(text.contains("p19/m9"), "{text}");
    }
}

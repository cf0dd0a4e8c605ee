//! The measuring: every contender in turn, round after round, the best of each kept.

use std::time::Duration;

use super::{
    Options,
    contender::Contender,
    sse_mock::{PACE, SseMock},
    stream::{self, Place},
    tools::Tools,
    usage, wrk,
};
use crate::say;

/// Connections of the load that saturates a contender.
const CONNECTIONS: usize = 32;
/// Load before anything counts: a slow contender needs seconds for its first answer.
const WARM_UP: Duration = Duration::from_secs(4);
/// Streams at the same time.
const STREAMS: usize = 64;
/// Clients that read streams whose events are there at once, the streams of each, and the events of
/// a stream.
const READY_CLIENTS: usize = 8;
const READY_STREAMS: usize = 250;
const READY_EVENTS: u32 = 60;
/// Streams one after the other for the time to the first token.
const FIRST_TOKENS: usize = 100;

/// The best that one contender showed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Best {
    pub(super) name: &'static str,
    /// CPU time per request at saturation.
    pub(super) request_us: f64,
    /// Requests per second at saturation.
    pub(super) per_second: f64,
    /// Latency with one connection, as the client sees it.
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    /// CPU time per event of paced streams.
    pub(super) event_us: f64,
    /// CPU time per stream whose events are all there at once.
    pub(super) ready_us: f64,
    /// Time to the first token, as the client sees it.
    pub(super) first_token_us: f64,
    pub(super) idle_kib: u64,
    pub(super) peak_kib: u64,
    pub(super) after_kib: u64,
}

impl Best {
    fn nothing_yet(name: &'static str) -> Self {
        Self {
            name,
            request_us: f64::INFINITY,
            per_second: 0.0,
            p50_us: f64::INFINITY,
            p99_us: f64::INFINITY,
            event_us: f64::INFINITY,
            ready_us: f64::INFINITY,
            first_token_us: f64::INFINITY,
            idle_kib: 0,
            peak_kib: 0,
            after_kib: 0,
        }
    }
}

/// What a comparison found.
#[derive(Clone, Debug)]
pub(super) struct Results {
    /// The same load without anybody in between.
    pub(super) direct: Best,
    pub(super) contenders: Vec<Best>,
}

/// What measuring needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Runs<'a> {
    pub(super) tools: &'a Tools,
    pub(super) upstream: &'a Contender,
    pub(super) mock: &'a SseMock,
}

impl Runs<'_> {
    /// Measures everything.
    pub(super) fn all(
        &self,
        contenders: &[Contender],
        options: &Options,
    ) -> anyhow::Result<Results> {
        let mut direct = Best::nothing_yet("direct");
        let mut bests: Vec<Best> = contenders.iter().map(|it| Best::nothing_yet(it.name)).collect();
        for (best, contender) in bests.iter_mut().zip(contenders) {
            best.idle_kib = usage::memory_kib(contender.pid());
            // Connections to the upstream are opened and caches filled before anything counts.
            wrk::run(self.tools, contender.port, CONNECTIONS, WARM_UP)?;
        }
        for round in 1..=options.rounds {
            for (best, contender) in bests.iter_mut().zip(contenders) {
                self.saturate(best, contender, options.load)?;
            }
            if !options.is_cpu_only {
                self.wait_times(&mut direct, self.upstream.port)?;
                self.first_token(&mut direct, Place { port: self.mock.port, model: "bench" })?;
                for (best, contender) in bests.iter_mut().zip(contenders) {
                    self.wait_times(best, contender.port)?;
                    if let Some(place) = stream_place(contender) {
                        self.first_token(best, place)?;
                        self.streams(best, contender, place, options.load)?;
                        self.ready_streams(best, contender, place)?;
                    }
                }
            }
            let line: Vec<String> =
                bests.iter().map(|it| format!("{} {:.2}", it.name, it.request_us)).collect();
            say::line(&format!(
                "round {round}/{}: best µs of CPU per request so far: {}",
                options.rounds,
                line.join(", ")
            ));
        }
        pause(Duration::from_secs(2));
        for (best, contender) in bests.iter_mut().zip(contenders) {
            best.after_kib = usage::memory_kib(contender.pid());
            best.peak_kib = usage::peak_memory_kib(contender.pid());
        }
        Ok(Results { direct, contenders: bests })
    }

    fn saturate(
        &self,
        best: &mut Best,
        contender: &Contender,
        load: Duration,
    ) -> anyhow::Result<()> {
        let (seen, used_us) =
            measured(contender, || wrk::run(self.tools, contender.port, CONNECTIONS, load))?;
        best.request_us = best.request_us.min(used_us / seen.requests as f64);
        best.per_second = best.per_second.max(seen.per_second);
        Ok(())
    }

    fn wait_times(&self, best: &mut Best, port: u16) -> anyhow::Result<()> {
        let seen = wrk::run(self.tools, port, 1, Duration::from_secs(1))?;
        best.p50_us = best.p50_us.min(seen.p50_us);
        best.p99_us = best.p99_us.min(seen.p99_us);
        Ok(())
    }

    fn first_token(&self, best: &mut Best, place: Place) -> anyhow::Result<()> {
        let times = stream::first_tokens_us(place, FIRST_TOKENS)?;
        best.first_token_us = best.first_token_us.min(times[times.len() / 2]);
        Ok(())
    }

    fn streams(
        &self,
        best: &mut Best,
        contender: &Contender,
        place: Place,
        load: Duration,
    ) -> anyhow::Result<()> {
        let events = (load.as_millis() / PACE.as_millis()) as u32;
        let (seen, used_us) = measured(contender, || stream::many(place, STREAMS, events))?;
        best.event_us = best.event_us.min(used_us / seen as f64);
        Ok(())
    }

    fn ready_streams(
        &self,
        best: &mut Best,
        contender: &Contender,
        place: Place,
    ) -> anyhow::Result<()> {
        let load = || stream::many_ready(place, READY_CLIENTS, READY_STREAMS, READY_EVENTS);
        let ((), used_us) = measured(contender, load)?;
        best.ready_us = best.ready_us.min(used_us / (READY_CLIENTS * READY_STREAMS) as f64);
        Ok(())
    }
}

/// What a load showed, and the microseconds of CPU that the contender used for it.
fn measured<T>(
    contender: &Contender,
    load: impl FnOnce() -> anyhow::Result<T>,
) -> anyhow::Result<(T, f64)> {
    let before = usage::cpu_ns(contender.pid())?;
    let seen = load()?;
    Ok((seen, (usage::cpu_ns(contender.pid())? - before) as f64 / 1000.0))
}

/// Where a contender's streams are measured, if they are.
fn stream_place(contender: &Contender) -> Option<Place> {
    let model = contender.stream_model?;
    Some(Place { port: contender.stream_port, model })
}

#[expect(clippy::disallowed_methods, reason = "memory is looked at after the load has gone")]
fn pause(span: Duration) {
    std::thread::sleep(span);
}

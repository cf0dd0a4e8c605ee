//! The thread that exports: decisions become spans, and the metrics of the moment go along.
//!
//! ```text
//!   journal ─▶ RecordQueue ─▶ spans ────┐
//!   control ─▶ offer ───────▶ figures ──┴▶ send ─▶ collector
//! ```
//! Rules kept here:
//! - Nobody waits for it. The queue is bounded; what does not fit, or cannot be delivered within
//!   `WAITS`, is dropped and counted.
//! - It says once that a collector is away, and once that it is back.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus::proto::MetricFamily;
use tidegate_journal::{
    api::snapshot::StoreView,
    record_queue::{Record, RecordQueue, Work},
};
use tidegate_runtime::clock::Clock;
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

use crate::{
    destination::{Destination, DestinationError, Signal},
    figures,
    protobuf::Message,
    send::send,
    sender::Sender,
    spans,
};

/// How long it waits for something to do.
const IDLE: Duration = Duration::from_secs(60);
/// A message of traces is sent when it is this long; collectors take 4 MiB as a rule.
const MESSAGE_BYTES: usize = 512 * 1024;
/// How long it waits before it sends a message once more. In all as long as the restart of a
/// collector takes.
const WAITS: [Duration; 5] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
    Duration::from_secs(15),
];

/// Why nothing is exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The url is of no use.
    #[error(transparent)]
    Destination(#[from] DestinationError),
    /// There is no thread to export with.
    #[error("the exporter cannot start: {0}")]
    Start(#[from] io::Error),
}

/// An exporter at work.
#[derive(Debug)]
pub struct Exporter {
    url: String,
    queue: Arc<RecordQueue>,
    shared: Arc<ExporterShared>,
}

#[derive(Debug, Default)]
struct ExporterShared {
    problem: Mutex<Option<String>>,
    /// The metrics to send next; newer ones take the place of older ones.
    offered: Mutex<Option<Vec<MetricFamily>>>,
}

impl Exporter {
    /// Begins to export to the collector at `url`.
    ///
    /// # Errors
    /// The url is of no use, or there is no thread.
    pub fn start(url: &str, clock: Clock, sender: Sender) -> Result<Self, ExportError> {
        let destination = Destination::parse(url)?;
        let queue = Arc::new(RecordQueue::default());
        let shared = Arc::new(ExporterShared::default());
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (queue_of, shared_of) = (Arc::clone(&queue), Arc::clone(&shared));
        let run = move || {
            let (queue, shared, tasks) = (queue_of, shared_of, LocalSet::new());
            ExportThread { destination, clock, sender, queue, shared, runtime, tasks }.run();
        };
        std::thread::Builder::new().name("tidegate-otlp".into()).spawn(run)?;
        Ok(Self { url: url.to_owned(), queue, shared })
    }

    /// Where decisions are handed over.
    #[must_use]
    pub fn queue(&self) -> &Arc<RecordQueue> {
        &self.queue
    }

    /// The collector's url, as the config has it.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The metrics of this moment, to be sent next.
    pub fn offer(&self, families: Vec<MetricFamily>) {
        *self.shared.offered.lock().unwrap_or_else(PoisonError::into_inner) = Some(families);
        self.queue.nudge();
    }

    /// How it does.
    #[must_use]
    pub fn view(&self) -> StoreView {
        let problem = self.shared.problem.lock().unwrap_or_else(PoisonError::into_inner).clone();
        StoreView {
            to: Some(self.url.clone()),
            status: if problem.is_some() { "failed" } else { "ok" }.to_owned(),
            why: problem,
            dropped: self.queue.dropped(),
        }
    }

    /// Waits until everything is sent, for so long at most; whether it is. For a collector that is
    /// away nobody waits.
    pub fn flush(&self, within: Duration) -> bool {
        let is_away = self.shared.problem.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        !is_away && self.queue.flush(within)
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.queue.close();
    }
}

struct ExportThread {
    destination: Destination,
    clock: Clock,
    sender: Sender,
    queue: Arc<RecordQueue>,
    shared: Arc<ExporterShared>,
    runtime: Runtime,
    tasks: LocalSet,
}

impl ExportThread {
    fn run(&self) {
        loop {
            match self.queue.take(IDLE) {
                Work::Over => return,
                Work::Idle => {}
                Work::Write(records) => self.traces(records.iter()),
            }
            let offered = self.shared.offered.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(families) = offered {
                let message = figures::message(&self.sender, self.clock, &families);
                self.deliver(Signal::Metrics, message, 0);
            }
        }
    }

    fn traces<'a>(&self, records: impl Iterator<Item = &'a Record>) {
        let (mut message, mut count) = (Message::default(), 0);
        for record in records {
            let Record::Decision(_, decision) = record else { continue };
            for span in spans::of(decision, self.clock) {
                message.message(2, &span.encoded());
            }
            count += 1;
            if message.len() >= MESSAGE_BYTES {
                let full = std::mem::take(&mut message);
                self.deliver(Signal::Traces, self.sender.wrap(full), std::mem::take(&mut count));
            }
        }
        if message.len() > 0 {
            self.deliver(Signal::Traces, self.sender.wrap(message), count);
        }
    }

    /// Sends a message that tells of so many records, again and again if that may help.
    fn deliver(&self, signal: Signal, message: Vec<u8>, records: usize) {
        let message = bytes::Bytes::from(message);
        let mut waits = WAITS.iter();
        loop {
            let sending = send(&self.destination, signal, message.clone());
            let Err(failed) = self.tasks.block_on(&self.runtime, sending) else {
                return self.tell(None);
            };
            self.tell(Some(failed.why));
            // Metrics of a moment that has passed are worth nothing: newer ones come.
            let wait = waits.next().filter(|_| failed.may_retry && signal == Signal::Traces);
            if wait.is_none_or(|wait| self.queue.is_closed_within(*wait)) {
                return self.queue.lost(records);
            }
        }
    }

    /// Remembers how sending went, and logs when that changes.
    fn tell(&self, problem: Option<String>) {
        let mut known = self.shared.problem.lock().unwrap_or_else(PoisonError::into_inner);
        match (&*known, &problem) {
            (None, Some(problem)) => tracing::error!(
                collector = self.destination.authority,
                problem,
                "telemetry cannot be sent: it is tried again, and what does not fit is dropped"
            ),
            (Some(_), None) => {
                tracing::info!(collector = self.destination.authority, "telemetry is sent again");
            }
            _ => {}
        }
        *known = problem;
    }
}

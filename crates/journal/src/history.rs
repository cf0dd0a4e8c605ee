//! The history file: decisions and events in SQLite, for as long as the config says.
//!
//! Rules kept here:
//! - One thread owns the file. Records reach it through a bounded queue; when the disk is slow the
//!   oldest records go and are counted, and when it is full or broken whole batches do. No request
//!   ever waits for the file or fails because of it.
//! - A write-ahead log makes every committed batch survive a crash of the process (kill -9). The
//!   last moments before a power cut may be missing, and the file is sound all the same.
//! - A file that is not ours, that is damaged, or that a newer version wrote, is left as it is: the
//!   gateway says so and serves without a history. A recorder must not be the cause of an outage.
//! - Rows older than `keep` go, a few thousand at a time.
//!
//! Left to others: which records there are, and the ring that answers for the last minutes.

mod read;
mod rows;
mod schema;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::Connection;
use tidegate_core::time::{Millis, Now};

pub use self::{
    read::{Stretch, find, last_unix_ms, read_page, stretch},
    schema::HistoryProblem,
};
use crate::{
    api::snapshot::StoreView,
    record_queue::{Record, RecordQueue, Work},
    render::Renderer,
};

/// How long the writer waits for something to do; then it looks for rows that are too old.
const IDLE: Duration = Duration::from_secs(30);
/// Rows that are deleted in one go.
const DELETED: usize = 2000;

/// What the writer and its owner share.
#[derive(Debug)]
struct HistoryShared {
    problem: Mutex<Option<String>>,
    keep_ms: AtomicU64,
}

/// A history file at work.
#[derive(Debug)]
pub struct History {
    path: PathBuf,
    queue: Arc<RecordQueue>,
    shared: Arc<HistoryShared>,
}

impl History {
    /// Opens a file, or makes it, and begins to write.
    ///
    /// # Errors
    /// The file is not ours, damaged, or cannot be opened; or there is no thread to write with.
    pub fn start(
        path: &Path,
        keep: Millis,
        instance: &str,
        renderer: impl Fn() -> Renderer + Send + 'static,
    ) -> Result<Self, HistoryProblem> {
        let connection = schema::open(path)?;
        let queue = Arc::new(RecordQueue::default());
        let keep_ms = AtomicU64::new(keep.0);
        let shared = Arc::new(HistoryShared { problem: Mutex::default(), keep_ms });
        let mut writer = HistoryWriter {
            path: path.to_owned(),
            connection: Some(connection),
            instance: instance.to_owned(),
            queue: Arc::clone(&queue),
            shared: Arc::clone(&shared),
        };
        let run = move || writer.run(&renderer);
        let thread = std::thread::Builder::new().name("tidegate-history".into()).spawn(run);
        thread.map_err(HistoryProblem::Thread)?;
        Ok(Self { path: path.to_owned(), queue, shared })
    }

    /// Where its records are handed over.
    #[must_use]
    pub fn queue(&self) -> &Arc<RecordQueue> {
        &self.queue
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Rows are kept for so long from now on.
    pub fn keep(&self, keep: Millis) {
        self.shared.keep_ms.store(keep.0, Ordering::Relaxed);
    }

    /// How it does.
    #[must_use]
    pub fn view(&self) -> StoreView {
        let problem = self.shared.problem.lock().unwrap_or_else(PoisonError::into_inner).clone();
        StoreView {
            to: Some(self.path.display().to_string()),
            status: if problem.is_some() { "failed" } else { "ok" }.to_owned(),
            why: problem,
            dropped: self.queue.dropped(),
        }
    }

    /// Waits for what is queued to be written, for so long at most; whether it is.
    pub fn flush(&self, within: Duration) -> bool {
        self.queue.flush(within)
    }
}

impl Drop for History {
    fn drop(&mut self) {
        self.queue.close();
    }
}

struct HistoryWriter {
    path: PathBuf,
    /// None after it broke: it is opened anew with the next batch.
    connection: Option<Connection>,
    instance: String,
    queue: Arc<RecordQueue>,
    shared: Arc<HistoryShared>,
}

impl HistoryWriter {
    fn run(&mut self, renderer: &impl Fn() -> Renderer) {
        loop {
            match self.queue.take(IDLE) {
                Work::Over => return self.close(),
                Work::Idle => self.forget(&renderer()),
                Work::Write(records) => {
                    let records: Vec<Record> = records.into();
                    self.write(&renderer(), &records);
                }
            }
        }
    }

    fn write(&mut self, renderer: &Renderer, records: &[Record]) {
        match self.try_write(renderer, records) {
            Ok(()) => self.tell(None),
            Err(problem) => {
                self.queue.lost(records.len());
                self.connection = None;
                self.tell(Some(problem.to_string()));
            }
        }
    }

    fn try_write(&mut self, renderer: &Renderer, records: &[Record]) -> Result<(), HistoryProblem> {
        if self.connection.is_none() {
            self.connection = Some(schema::open(&self.path)?);
        }
        let Some(connection) = &mut self.connection else { return Ok(()) };
        let transaction = connection.transaction()?;
        let mut rows = rows::RowWriter::new(&transaction, &self.instance)?;
        for record in records {
            rows.insert(renderer, record)?;
        }
        drop(rows);
        let oldest = oldest_unix_ms(&self.shared, renderer);
        rows::forget(&transaction, oldest, DELETED)?;
        transaction.commit()?;
        Ok(())
    }

    /// Drops rows that are too old, in steps, while nothing else is to be done.
    fn forget(&mut self, renderer: &Renderer) {
        let oldest = oldest_unix_ms(&self.shared, renderer);
        let Some(connection) = &self.connection else { return };
        // What fails here fails with the next batch too, and is told then.
        while rows::forget(connection, oldest, DELETED).is_ok_and(|gone| gone >= DELETED) {}
    }

    fn close(&mut self) {
        if let Some(connection) = self.connection.take() {
            drop(connection.close());
        }
    }

    /// Remembers how writing went, and logs when that changes.
    fn tell(&self, problem: Option<String>) {
        let mut known = self.shared.problem.lock().unwrap_or_else(PoisonError::into_inner);
        match (&*known, &problem) {
            (None, Some(problem)) => {
                tracing::error!(problem, "the history file cannot be written: records are dropped");
            }
            (Some(_), None) => tracing::info!("the history file is written again"),
            _ => {}
        }
        *known = problem;
    }
}

fn oldest_unix_ms(shared: &HistoryShared, renderer: &Renderer) -> u64 {
    let now: Now = renderer.clock.now();
    let keep = shared.keep_ms.load(Ordering::Relaxed);
    renderer.clock.unix_ms_of(now).saturating_sub(keep)
}

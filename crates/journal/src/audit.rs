//! The audit log: one JSON line per use of a model or a tool, and per refusal and action.
//!
//! Rules kept here (S60):
//! - A line says who used what and how it was decided: names of the config, the tool's name, words
//!   of closed sets. Never a prompt, a header, a key or an address.
//! - JSON escapes line feeds and control characters, so no field can end its line, begin another or
//!   talk to a terminal.
//! - A file is only ever appended to. It is opened anew when the config is read again, so a log
//!   rotation that moves it away and then reloads loses nothing.
//! - Writing never holds up a request: the queue is bounded, what does not fit is counted, and a
//!   file that cannot be written is tried again with every batch.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;

use crate::{
    api::snapshot::StoreView,
    decision::Decision,
    event::EventBody,
    record_queue::{Record, RecordQueue, Work},
    render::Renderer,
};

/// Where lines go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditTarget {
    /// Appended to this file.
    File(PathBuf),
    /// The process's stderr.
    Stderr,
}

/// An audit log at work.
#[derive(Debug)]
pub struct Audit {
    target: AuditTarget,
    queue: Arc<RecordQueue>,
    shared: Arc<AuditShared>,
}

#[derive(Debug, Default)]
struct AuditShared {
    problem: Mutex<Option<String>>,
    is_reopening: AtomicBool,
}

/// How long the writer waits for something to do.
const IDLE: Duration = Duration::from_secs(60);

impl Audit {
    /// Begins to write. `renderer` is asked when a line is written.
    ///
    /// # Errors
    /// There is no thread to write with. A file that cannot be opened is no error: the log says so
    /// and goes on trying.
    pub fn start(
        target: AuditTarget,
        renderer: impl Fn() -> Renderer + Send + 'static,
    ) -> io::Result<Self> {
        let queue = Arc::new(RecordQueue::default());
        let shared = Arc::new(AuditShared::default());
        let mut writer = AuditWriter {
            target: target.clone(),
            file: None,
            queue: Arc::clone(&queue),
            shared: Arc::clone(&shared),
        };
        // Whether the file can be written is known at the start.
        writer.open();
        let run = move || writer.run(&renderer);
        std::thread::Builder::new().name("tidegate-audit".into()).spawn(run)?;
        Ok(Self { target, queue, shared })
    }

    /// Where its records are handed over.
    #[must_use]
    pub fn queue(&self) -> &Arc<RecordQueue> {
        &self.queue
    }

    /// Where it writes to.
    #[must_use]
    pub fn target(&self) -> &AuditTarget {
        &self.target
    }

    /// The file is opened anew with the next line: it may have been moved away.
    pub fn reopen(&self) {
        self.shared.is_reopening.store(true, Ordering::Relaxed);
    }

    /// How it does.
    #[must_use]
    pub fn view(&self) -> StoreView {
        let problem = self.shared.problem.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let to = match &self.target {
            AuditTarget::File(path) => path.display().to_string(),
            AuditTarget::Stderr => "stderr".to_owned(),
        };
        StoreView {
            to: Some(to),
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

impl Drop for Audit {
    fn drop(&mut self) {
        self.queue.close();
    }
}

struct AuditWriter {
    target: AuditTarget,
    file: Option<File>,
    queue: Arc<RecordQueue>,
    shared: Arc<AuditShared>,
}

impl AuditWriter {
    fn run(&mut self, renderer: &impl Fn() -> Renderer) {
        loop {
            match self.queue.take(IDLE) {
                Work::Over => return,
                Work::Idle => {}
                Work::Write(records) => {
                    let renderer = renderer();
                    let lines = records.iter().filter_map(|record| line(&renderer, record));
                    let lines: Vec<String> = lines.collect();
                    if let Err(error) = self.write(&lines.concat()) {
                        self.queue.lost(lines.len());
                        self.tell(Some(error.to_string()));
                    } else {
                        self.tell(None);
                    }
                }
            }
        }
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        let path = match &self.target {
            AuditTarget::Stderr => return io::stderr().lock().write_all(text.as_bytes()),
            AuditTarget::File(path) => path.clone(),
        };
        if self.shared.is_reopening.swap(false, Ordering::Relaxed) {
            self.file = None;
        }
        if self.file.is_none() {
            self.file = Some(append(&path)?);
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        let written = file.write_all(text.as_bytes());
        if written.is_err() {
            // A line that was cut must not run into the next one.
            self.file = None;
        }
        written
    }

    fn open(&mut self) {
        let AuditTarget::File(path) = &self.target else { return };
        match append(path) {
            Ok(file) => self.file = Some(file),
            Err(error) => self.tell(Some(error.to_string())),
        }
    }

    /// Remembers how writing went, and logs when that changes.
    fn tell(&self, problem: Option<String>) {
        let mut known = self.shared.problem.lock().unwrap_or_else(PoisonError::into_inner);
        match (&*known, &problem) {
            (None, Some(problem)) => {
                tracing::error!(problem, "the audit log cannot be written: records are dropped");
            }
            (Some(_), None) => tracing::info!("the audit log is written again"),
            _ => {}
        }
        *known = problem;
    }
}

/// Opens a file to append to; one that ends inside a line gets its end first.
fn append(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // Who used what is nobody's business but the operator's.
        options.mode(0o600);
    }
    let mut file = options.open(path)?;
    if file.metadata()?.len() > 0 && !ends_with_line_feed(path)? {
        file.write_all(b"\n")?;
    }
    Ok(file)
}

fn ends_with_line_feed(path: &Path) -> io::Result<bool> {
    use std::io::{Read, Seek, SeekFrom};
    let mut file = File::open(path)?;
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

/// A line of the audit log.
#[derive(Debug, Serialize)]
struct AuditLine<'a> {
    at_unix_ms: u64,
    event: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    request_id: String,
    caller: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    route: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
}

impl<'a> AuditLine<'a> {
    fn new(at_unix_ms: u64, event: &'a str, caller: &'a str) -> Self {
        Self {
            at_unix_ms,
            event,
            request_id: String::new(),
            caller,
            route: None,
            model: None,
            target: None,
            method: None,
            tool: None,
            result: None,
            end: None,
            status: None,
            attempts: None,
            reason: None,
            path: None,
        }
    }

    fn text(&self) -> String {
        let mut text = serde_json::to_string(self).unwrap_or_default();
        text.push('\n');
        text
    }
}

fn line(renderer: &Renderer, record: &Record) -> Option<String> {
    let unix = |moment| renderer.clock.unix_ms_of(moment);
    match record {
        Record::Decision(_, decision) => Some(use_line(renderer, decision).text()),
        Record::Event(event) => match &event.body {
            EventBody::Security(it) => {
                let line = AuditLine {
                    request_id: it.request_id.clone(),
                    route: Some(it.route.as_str()).filter(|it| !it.is_empty()),
                    reason: Some(it.event),
                    path: Some(it.path),
                    ..AuditLine::new(unix(it.at), "refused", &it.caller)
                };
                Some(line.text())
            }
            EventBody::Action(it) => {
                let line = AuditLine {
                    target: Some(&it.backend),
                    method: Some(it.deed),
                    reason: Some(it.reason.as_str()).filter(|it| !it.is_empty()),
                    ..AuditLine::new(unix(it.at), "action", "operator")
                };
                Some(line.text())
            }
            EventBody::Reload(it) => {
                let result = if it.is_taken { "taken" } else { "refused" };
                let line = AuditLine {
                    result: Some(result),
                    reason: Some(it.by),
                    ..AuditLine::new(unix(it.at), "reload", "operator")
                };
                Some(line.text())
            }
            EventBody::Transition(_) | EventBody::Decision(..) | EventBody::Moved(_) => None,
        },
    }
}

fn use_line<'a>(renderer: &Renderer, decision: &'a Decision) -> AuditLine<'a> {
    let mcp = decision.mcp.as_deref();
    let target = match mcp {
        Some(mcp) => mcp.attempts.last().map(|it| &*it.backend),
        None => decision.records.last().map(|it| it.target.as_str()),
    };
    let end = decision.end.and_then(|end| match serde_json::to_value(end) {
        Ok(serde_json::Value::String(word)) => Some(word),
        _ => None,
    });
    AuditLine {
        request_id: decision.id.to_string(),
        route: Some(decision.route()).filter(|it| !it.is_empty()),
        model: decision.model.as_deref(),
        target,
        method: mcp.map(|it| it.method),
        tool: mcp.and_then(|it| it.tool.as_deref()),
        result: Some(decision.verdict.result.word()),
        end,
        status: Some(decision.status),
        attempts: Some(mcp.map_or(decision.records.len(), |it| it.attempts.len())),
        path: Some(decision.path).filter(|it| !it.is_empty()),
        ..AuditLine::new(renderer.clock.unix_ms_of(decision.at), "use", &decision.caller)
    }
}

#[cfg(test)]
mod tests;

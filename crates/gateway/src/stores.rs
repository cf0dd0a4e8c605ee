//! Where the journal goes: the history file, the audit log, and an OpenTelemetry collector.
//!
//! Rules kept here:
//! - They follow the config at every reload. The audit log is opened anew then, so that a rotated
//!   file is left alone; the history file stays open unless it is another one.
//! - A file that cannot be used is logged with what to do about it, shown in the snapshot and tried
//!   again at the next reload. Serving goes on without it: a recorder must not cause an outage.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus::proto::MetricFamily;
#[cfg(feature = "history")]
use tidegate_journal::history::{self, History};
use tidegate_journal::{
    api::{decision::DecisionFull, snapshot::StoreView},
    audit::{Audit, AuditTarget},
    journal::Journal,
    question::{OlderPage, OlderQuestion},
};
#[cfg(feature = "otlp")]
use tidegate_telemetry::{exporter::Exporter, sender::Sender};

use crate::live::Live;

/// How long the end of the process waits for each file.
const FLUSH_WITHIN: Duration = Duration::from_secs(2);

/// How long a reader waits for what is on its way to the history file.
#[cfg(feature = "history")]
const SETTLE_WITHIN: Duration = Duration::from_millis(500);

/// The files.
#[derive(Debug, Default)]
pub struct Stores(Mutex<OpenStores>);

#[derive(Debug, Default)]
struct OpenStores {
    #[cfg(feature = "history")]
    history: Option<History>,
    /// Why there is no history although the config names one.
    history_failed: Option<StoreView>,
    audit: Option<Audit>,
    #[cfg(feature = "otlp")]
    telemetry: Option<Exporter>,
    /// Why nothing is exported although the config names a collector.
    telemetry_failed: Option<StoreView>,
}

impl Stores {
    /// Takes over what a config says.
    pub(crate) fn follow(&self, journal: &Arc<Journal>, live: &Live) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.follow_history(journal, live);
        open.follow_audit(journal, live);
        open.follow_telemetry(journal, live);
    }

    /// How the history file does.
    pub fn history(&self) -> StoreView {
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        #[cfg(feature = "history")]
        if let Some(history) = &open.history {
            return history.view();
        }
        open.history_failed.clone().unwrap_or_else(off)
    }

    /// The history file, if there is one to be read.
    pub fn history_file(&self) -> Option<PathBuf> {
        #[cfg(feature = "history")]
        {
            let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            open.history.as_ref().map(|history| history.path().to_owned())
        }
        #[cfg(not(feature = "history"))]
        None
    }

    /// Older decisions, from the file. It waits for the disk: not for a thread that serves.
    ///
    /// # Errors
    /// The file cannot be read; why.
    pub fn older(&self, asked: &OlderQuestion) -> Result<OlderPage, String> {
        #[cfg(feature = "history")]
        if let Some(file) = self.history_file() {
            return history::read_page(&file, asked).map_err(|it| it.to_string());
        }
        let _ = asked;
        Ok(OlderPage { decisions: Vec::new(), next_row: None })
    }

    /// An older decision, from the file.
    ///
    /// # Errors
    /// The file cannot be read; why.
    pub fn older_one(&self, id: &str) -> Result<Option<DecisionFull>, String> {
        #[cfg(feature = "history")]
        if let Some(file) = self.history_file() {
            return history::find(&file, id).map_err(|it| it.to_string());
        }
        let _ = id;
        Ok(None)
    }

    /// Logs what is wrong with the files, when the log has just begun.
    pub fn announce(&self) {
        let stores =
            [("history", self.history()), ("audit", self.audit()), ("telemetry", self.telemetry())];
        for (what, view) in stores {
            if let Some(problem) = view.why {
                tracing::error!(
                    what,
                    file = view.to,
                    problem,
                    "records are not kept: serving goes on"
                );
            }
        }
    }

    /// Waits until what has happened so far is in the history file, for a moment at most.
    pub fn settle(&self, journal: &Journal) {
        journal.collect();
        #[cfg(feature = "history")]
        {
            let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let queue = open.history.as_ref().map(|history| Arc::clone(history.queue()));
            drop(open);
            if let Some(queue) = queue {
                queue.settle(SETTLE_WITHIN);
            }
        }
    }

    /// How the audit log does.
    pub fn audit(&self) -> StoreView {
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.audit.as_ref().map_or_else(off, Audit::view)
    }

    /// How the export to a collector does.
    pub fn telemetry(&self) -> StoreView {
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        #[cfg(feature = "otlp")]
        if let Some(telemetry) = &open.telemetry {
            return telemetry.view();
        }
        open.telemetry_failed.clone().unwrap_or_else(off)
    }

    /// Has the metrics of this moment exported, if anything is.
    pub fn export(&self, metrics: impl FnOnce() -> Vec<MetricFamily>) {
        #[cfg(feature = "otlp")]
        {
            let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(telemetry) = &open.telemetry {
                telemetry.offer(metrics());
            }
        }
        #[cfg(not(feature = "otlp"))]
        drop(metrics);
    }

    /// Waits a little for everything to be written.
    pub fn flush(&self, journal: &Journal) {
        journal.collect();
        let open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        #[cfg(feature = "history")]
        if let Some(history) = &open.history {
            history.flush(FLUSH_WITHIN);
        }
        if let Some(audit) = &open.audit {
            audit.flush(FLUSH_WITHIN);
        }
        #[cfg(feature = "otlp")]
        if let Some(telemetry) = &open.telemetry {
            telemetry.flush(FLUSH_WITHIN);
        }
    }
}

impl OpenStores {
    #[cfg(feature = "history")]
    fn follow_history(&mut self, journal: &Arc<Journal>, live: &Live) {
        self.history_failed = None;
        let wanted = live.file.history.as_ref();
        let wanted = wanted.map(|it| (live.folder.join(&it.file), it.keep.millis()));
        if let (Some(history), Some((path, keep))) = (&self.history, &wanted)
            && history.path() == path
        {
            return history.keep(*keep);
        }
        if let Some(history) = self.history.take() {
            journal.remove_sink(history.queue());
        }
        let Some((path, keep)) = wanted else { return };
        let of = Arc::clone(journal);
        match History::start(&path, keep, journal.instance(), move || of.renderer()) {
            Ok(history) => {
                journal.add_sink(history.queue());
                self.history = Some(history);
            }
            Err(problem) => {
                let (file, why) = (path.display().to_string(), problem.to_string());
                tracing::error!(file, problem = why, "there is no history: serving goes on");
                let (to, status) = (Some(file), "failed".to_owned());
                self.history_failed = Some(StoreView { to, status, why: Some(why), dropped: 0 });
            }
        }
    }

    #[cfg(not(feature = "history"))]
    fn follow_history(&mut self, _: &Arc<Journal>, live: &Live) {
        let why = "this build has no history: build it with the feature `history`";
        self.history_failed = live.file.history.as_ref().map(|it| {
            tracing::error!(file = it.file, problem = why, "there is no history: serving goes on");
            let (to, status) = (Some(it.file.clone()), "failed".to_owned());
            StoreView { to, status, why: Some(why.to_owned()), dropped: 0 }
        });
    }

    #[cfg(feature = "otlp")]
    fn follow_telemetry(&mut self, journal: &Arc<Journal>, live: &Live) {
        self.telemetry_failed = None;
        let wanted = live.file.telemetry.as_ref().map(|it| it.otlp.as_str());
        if self.telemetry.as_ref().map(Exporter::url) == wanted {
            return;
        }
        if let Some(telemetry) = self.telemetry.take() {
            journal.remove_sink(telemetry.queue());
        }
        let Some(url) = wanted else { return };
        let version = env!("CARGO_PKG_VERSION");
        let sender = Sender { version, instance: journal.instance().to_owned() };
        match Exporter::start(url, journal.clock(), sender) {
            Ok(telemetry) => {
                journal.add_sink(telemetry.queue());
                self.telemetry = Some(telemetry);
            }
            Err(problem) => self.telemetry_failed = Some(failed(url, &problem.to_string())),
        }
    }

    #[cfg(not(feature = "otlp"))]
    fn follow_telemetry(&mut self, _: &Arc<Journal>, live: &Live) {
        let why = "this build has no telemetry: build it with the feature `otlp`";
        self.telemetry_failed = live.file.telemetry.as_ref().map(|it| failed(&it.otlp, why));
    }

    fn follow_audit(&mut self, journal: &Arc<Journal>, live: &Live) {
        let wanted = live.file.audit.as_ref().map(|it| match it.file.as_str() {
            "stderr" => AuditTarget::Stderr,
            file => AuditTarget::File(live.folder.join(file)),
        });
        if let Some(audit) = &self.audit
            && Some(audit.target()) == wanted.as_ref()
        {
            return audit.reopen();
        }
        if let Some(audit) = self.audit.take() {
            journal.remove_sink(audit.queue());
        }
        let Some(target) = wanted else { return };
        let of = Arc::clone(journal);
        match Audit::start(target, move || of.renderer()) {
            Ok(audit) => {
                journal.add_sink(audit.queue());
                self.audit = Some(audit);
            }
            Err(error) => tracing::error!(%error, "there is no audit log: serving goes on"),
        }
    }
}

/// Logs that nothing is exported, and says it to whoever looks.
fn failed(url: &str, why: &str) -> StoreView {
    tracing::error!(collector = url, problem = why, "nothing is exported: serving goes on");
    let (to, status) = (Some(url.to_owned()), "failed".to_owned());
    StoreView { to, status, why: Some(why.to_owned()), dropped: 0 }
}

fn off() -> StoreView {
    StoreView { to: None, status: "off".to_owned(), why: None, dropped: 0 }
}

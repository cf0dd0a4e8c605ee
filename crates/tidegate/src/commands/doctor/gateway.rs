//! What a running gateway says of itself: whether clients are hurt, whether its records are
//! written, whether it serves the config that lies here, and how its fleet is.
//!
//! It is asked where the command line, the environment or the config says. A gateway that is only
//! named by the config need not run: whether its address is free is looked at elsewhere.

use tidegate_config::Config;
use tidegate_config::source::Source;
use tidegate_console::client::AskError;
use tidegate_console::fleet::advice::{Advice, Weight, advice};
use tidegate_console::words::{calm, counted};
use tidegate_gateway::prepare::fingerprint;
use tidegate_journal::api::fleet::FleetView;
use tidegate_journal::api::snapshot::{SnapshotView, StoreView};

use super::DoctorArgs;
use super::finding::Finding;
use crate::commands::admin::{self, AdminArgs};
use crate::printer::Printer;

const CATEGORY: &str = "gateway";

/// Asks the gateway, if one can be meant.
pub(super) fn look(
    args: &DoctorArgs,
    loaded: Option<&(Source, Config)>,
    printer: &Printer,
    findings: &mut Vec<Finding>,
) {
    let is_named = args.admin.is_some() || admin::is_in_environment();
    // A port that the system picks says nothing about where a gateway is.
    let is_configured = loaded.is_some_and(|(_, config)| config.file.admin.listen.0.port() != 0);
    if !is_named && !is_configured {
        return;
    }
    let config = args.config.clone().filter(|_| args.admin.is_none());
    let asked = AdminArgs { admin: args.admin.clone(), config };
    let Ok(gateway) = admin::find(&asked, printer) else {
        let fix = "write it as `http://127.0.0.1:8701`";
        findings.push(Finding::bad(CATEGORY, "the gateway's address cannot be used").fix(fix));
        return;
    };
    let url = gateway.client.url();
    match gateway.client.get::<SnapshotView>("/api/snapshot") {
        Ok(snapshot) => {
            findings.push(verdict(&snapshot, url));
            findings.extend(records(&snapshot));
            findings.extend(loaded.and_then(|(source, _)| drift(&snapshot, source)));
            // A gateway that stands alone has no fleet.
            if let Ok(fleet) = gateway.client.get::<FleetView>("/api/fleet") {
                findings.extend(of_fleet(&fleet));
            }
        }
        Err(AskError::NoGateway(_) | AskError::NotTidegate(_)) if !is_named => {}
        Err(AskError::NoGateway(why)) => {
            let words = format!("no gateway answers at {url}: {why}");
            findings.push(Finding::bad(CATEGORY, words).fix("`tidegate serve` starts one"));
        }
        Err(AskError::TokenRejected(_)) => {
            let words = format!("the gateway at {url} wants its admin token");
            let fix = "`export TIDEGATE_ADMIN_TOKEN=...`, then run this again";
            findings.push(Finding::warning(CATEGORY, words).fix(fix));
        }
        Err(problem) => {
            let words = format!("the gateway at {url} cannot be asked: {problem}");
            let fix = "`--admin URL` is the address of `admin.listen`, not of `listen`";
            findings.push(Finding::bad(CATEGORY, words).fix(fix));
        }
    }
}

/// The replicas that are there, and whatever keeps them from acting like one gateway.
fn of_fleet(fleet: &FleetView) -> Vec<Finding> {
    const CATEGORY: &str = "fleet";
    let finding = |it: Advice| match it.weight {
        Weight::Trouble => Finding::bad(CATEGORY, it.words).fix(it.fix),
        Weight::Note => Finding::warning(CATEGORY, it.words).fix(it.fix),
    };
    let names: Vec<String> = fleet.replicas.iter().map(|it| calm(&it.replica)).collect();
    let count = counted(names.len() as u64, "replica");
    let words = format!("fleet {}: {count} ({})", calm(&fleet.fleet), names.join(", "));
    let mut findings = vec![Finding::good(CATEGORY, words)];
    findings.extend(advice(fleet).into_iter().map(finding));
    findings
}

fn verdict(snapshot: &SnapshotView, url: &str) -> Finding {
    let it = &snapshot.verdict;
    let headline = calm(it.headline.trim_end_matches('.'));
    let words = format!("the gateway at {url} says: {headline}");
    let broken = it.broken.first().map(|id| format!("`tidegate explain {}` says why", calm(id)));
    let fix = broken.unwrap_or_else(|| "`tidegate status` says what is broken".to_owned());
    match it.level.as_str() {
        "ok" => Finding::good(CATEGORY, words),
        "degraded" => Finding::warning(CATEGORY, words).fix(fix),
        _ => Finding::bad(CATEGORY, words).fix(fix),
    }
}

/// Records that are not written.
fn records(snapshot: &SnapshotView) -> Vec<Finding> {
    let journal = &snapshot.journal;
    let stores: [(&str, &StoreView, &str); 3] = [
        ("history file", &journal.history, "free the disk or name another file in `history.file`"),
        ("audit log", &journal.audit, "free the disk or name another file in `audit.file`"),
        ("export of telemetry", &journal.telemetry, "is the collector of `telemetry.otlp` up?"),
    ];
    let failed = stores.into_iter().filter(|(_, store, _)| store.status == "failed");
    let finding = |(name, store, fix): (&str, &StoreView, &str)| {
        let why = store.why.as_deref().map(calm).unwrap_or_default();
        let lost = match store.dropped {
            0 => String::new(),
            dropped => format!(" ({dropped} records lost)"),
        };
        let words = format!("the {name} does not work: {why}{lost}");
        Finding::bad(CATEGORY, words).fix(fix)
    };
    failed.map(finding).collect()
}

/// A file that was changed and not read again, or not the one that is served.
fn drift(snapshot: &SnapshotView, source: &Source) -> Option<Finding> {
    let (served, here) = (&snapshot.config.sha, fingerprint(source));
    (*served != here).then(|| {
        let name = source.name();
        let words = format!("it serves a config with sha {served}; `{name}` has sha {here}");
        Finding::warning(CATEGORY, words).fix("`tidegate reload` reads the file again")
    })
}

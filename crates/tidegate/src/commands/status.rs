//! `tidegate status`: is anybody hurt, what is broken, where does traffic go, when does it heal?
//!
//! | what was found | exit code |
//! |---|---|
//! | an answer; with `--fail-on`, one that is better than that | 0 |
//! | with `--fail-on`, an answer that is as bad or worse; the token was refused | 1 |
//! | no gateway answers | 4 |

mod live;

use clap::{Args, ValueEnum};
use serde_json::Value;
use tidegate_console::fleet;
use tidegate_console::status::{Status, severity};
use tidegate_journal::api::decision::DecisionList;
use tidegate_journal::api::fleet::FleetView;
use tidegate_journal::api::snapshot::SnapshotView;

use super::admin::{self, AdminArgs, Gateway};
use crate::exit::Exit;
use crate::printer::Printer;

const EXAMPLES: &str = "\
Examples:
  tidegate status                      the gateway of this folder's config
  tidegate status --watch              the same, kept up to date
  tidegate status --admin http://10.0.0.7:8701 --json
  tidegate status -q --fail-on hurt    for scripts: exit code 1 if clients are hurt

Next: `tidegate explain BACKEND`";

/// Where failovers are found: among sessions that moved, of which an outage has many.
const NOTABLE: &str = "/api/decisions?notable=true&since=15m&limit=300";

/// Is anyone hurt? What is broken, and when does it heal?
///
/// It asks a running gateway. Reading needs no token on loopback; elsewhere it is
/// TIDEGATE_ADMIN_TOKEN.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    gateway: AdminArgs,
    /// Follow the gateway until Ctrl-C; with `--json` as JSON lines
    #[arg(short, long)]
    watch: bool,
    /// Exit with 1 if it is as bad as this, or worse
    #[arg(long, value_name = "LEVEL", conflicts_with = "watch")]
    fail_on: Option<FailOn>,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

impl StatusArgs {
    /// Whether it ends by Ctrl-C only, and then has a screen to leave.
    pub(crate) fn is_watch(&self) -> bool {
        self.watch
    }
}

/// The levels of a verdict that can make a script stop.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum FailOn {
    /// A backend is not healthy, though nobody is hurt
    Degraded,
    /// A client got no whole answer in the last minute
    Hurt,
    /// A route has nothing left
    Down,
}

impl FailOn {
    const fn level(self) -> &'static str {
        match self {
            Self::Degraded => "degraded",
            Self::Hurt => "hurt",
            Self::Down => "down",
        }
    }
}

/// Asks the gateway and prints what it says.
pub(crate) fn run(args: &StatusArgs, printer: &Printer) -> Exit {
    let gateway = match admin::find(&args.gateway, printer) {
        Ok(gateway) => gateway,
        Err(exit) => return exit,
    };
    if args.watch {
        return live::follow(&gateway, args.json, printer);
    }
    match once(&gateway, args, printer) {
        Ok(snapshot) => {
            let is_bad =
                |wanted: FailOn| severity(&snapshot.verdict.level) >= severity(wanted.level());
            if args.fail_on.is_some_and(is_bad) { Exit::No } else { Exit::Done }
        }
        Err(exit) => exit,
    }
}

fn once(gateway: &Gateway, args: &StatusArgs, printer: &Printer) -> Result<SnapshotView, Exit> {
    if args.json {
        // The document as the gateway wrote it, with keys that a newer one may have.
        let value: Value = gateway
            .client
            .get("/api/snapshot")
            .map_err(|error| gateway.explain(&error, printer))?;
        printer.result(&format!("{value:#}"));
        return serde_json::from_value(value).map_err(|problem| {
            printer.error(&format!("the gateway is of another version: {problem}"));
            Exit::Unreachable
        });
    }
    let snapshot = gateway.snapshot(printer)?;
    // What is beside the snapshot is worth showing, and no reason to show nothing.
    let list: Option<DecisionList> = gateway.client.get(NOTABLE).ok();
    let timeline = gateway.client.get("/api/timeline").ok();
    let failovers = list.map(|list| list.decisions).unwrap_or_default();
    let status = Status { snapshot: &snapshot, failovers: &failovers, timeline: timeline.as_ref() };
    let mut lines = status.lines(admin::look(printer));
    // A gateway that stands alone has no fleet to show.
    if let Ok(fleet) = gateway.client.get::<FleetView>("/api/fleet") {
        lines.push(String::new());
        lines.extend(fleet::lines(&fleet, admin::look(printer)));
    }
    printer.result(&lines.join("\n"));
    Ok(snapshot)
}

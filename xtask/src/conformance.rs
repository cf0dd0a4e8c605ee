//! `cargo xtask conformance`: the official MCP conformance suite, directly and through a gateway.
//!
//! A gateway is as good as a direct connection if whoever talks through it cannot tell. So the
//! suite is run twice, against a server that has everything it asks for and against a gateway in
//! front of that server, and every check that passes directly has to pass through the gateway.
//! That is done for both requirement sets (the era of sessions and the stateless one), for the
//! fixture alone behind the gateway, beside another server, and beside a dead one too; for one
//! that speaks the other era only; and the other way round, with a client of ours that the suite
//! watches through a gateway.
//!
//! - [`suite`]: installing and running it. [`checks`]: what it found, and what was lost.
//! - [`bed`]: the fixture and the gateways. The programs are in `tests/conformance/`.
//!
//! Rules kept here:
//! - Single checks are compared, never sums: a sum hides that one was lost and another gained.
//! - The direct run has to pass as many checks as it is known to: what does not pass there cannot
//!   be lost.
//! - Nothing is skipped. No loss is excused, but what the other era has no words for
//!   ([`Requirements::unbridged`]).

mod bed;
mod checks;
mod suite;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context, bail};

use crate::counts::Counts;
use crate::gateway::Gateway;
use crate::{docs, say};

use bed::{BRIDGED, Fixture, SCENES};
use checks::{Checks, Loss};
use suite::Suite;

/// One revision of the protocol and what the suite requires for it.
struct Requirements {
    revision: &'static str,
    /// How many checks the fixture passes. Fewer mean that something else is wrong.
    server_passes: usize,
    /// The fixture speaks only this when it speaks the other era.
    other_era: &'static str,
    /// Checks, by scenario and id, that a server of the other era cannot pass.
    unbridged: &'static [(&'static str, &'static str)],
    /// The scenarios of clients that are not about authorization.
    client_scenarios: &'static [&'static str],
    /// How many checks the client passes without a gateway.
    client_passes: usize,
}

/// What is known of `@modelcontextprotocol/conformance` as it is pinned.
const SETS: [Requirements; 2] = [
    Requirements {
        revision: "2025-11-25",
        server_passes: 84,
        other_era: "stateless",
        // A server without sessions cannot close a stream and go on in another.
        unbridged: &[("server-sse-polling", "server-sse-disconnect-resume")],
        client_scenarios: &[
            "initialize",
            "tools_call",
            "elicitation-sep1034-client-defaults",
            "sse-retry",
            "json-schema-2020-12-preservation",
        ],
        client_passes: 20,
    },
    Requirements {
        revision: "2026-07-28",
        server_passes: 164,
        other_era: "sessions",
        unbridged: &[
            // A server with sessions has no names for its questions, and the suite wants its own.
            ("input-required-result-basic-elicitation", "sep-2322-elicitation-incomplete"),
            ("input-required-result-basic-elicitation", "sep-2322-elicitation-complete"),
            // And the fixture's asks them one after the other.
            (
                "input-required-result-multiple-input-requests",
                "sep-2322-multiple-inputs-incomplete",
            ),
            ("input-required-result-multiple-input-requests", "sep-2322-multiple-inputs-complete"),
            // What its client cannot do it says in a result's text, not in a code.
            ("server-stateless", "sep-2575-server-rejects-undeclared-capability"),
            ("server-stateless", "sep-2575-missing-capability-http-400"),
        ],
        client_scenarios: &[
            "tools_call",
            "request-metadata",
            "sep-2322-client-request-state",
            "http-standard-headers",
            "http-custom-headers",
            "http-invalid-tool-headers",
            "json-schema-ref-no-deref",
            "json-schema-2020-12-preservation",
        ],
        client_passes: 61,
    },
];

/// Runs everything; how many checks passed through the gateway, and how many were lost.
pub(crate) fn run(gateway: &Gateway) -> anyhow::Result<Counts> {
    let sources = docs::root().join("tests").join("conformance");
    let folder = gateway.target.join("conformance");
    let suite = Suite::install(&sources, &folder)?;
    let scene = SuiteRun {
        suite: &suite,
        binary: gateway.binary.clone(),
        sources,
        results: folder.join("results"),
    };
    if scene.results.exists() {
        fs::remove_dir_all(&scene.results).context("cannot remove the results before these")?;
    }
    // The suite waits more than it works, so both sets are run at once.
    let reports: Vec<anyhow::Result<Report>> = thread::scope(|scope| {
        let runs: Vec<_> = SETS.iter().map(|set| scope.spawn(|| scene.run(set))).collect();
        runs.into_iter()
            .map(|run| run.join().unwrap_or_else(|_| bail!("a run broke off")))
            .collect()
    });
    let mut counts = Counts::default();
    let mut is_whole = true;
    for report in reports {
        let report = report?;
        report.lines.iter().for_each(|line| say::line(line));
        is_whole &= report.is_whole;
        counts.add(report.counts);
    }
    if !is_whole {
        bail!("{counts}; what the suite found is in `{}`", scene.results.display());
    }
    Ok(counts)
}

/// What the runs have in common.
struct SuiteRun<'a> {
    suite: &'a Suite,
    binary: PathBuf,
    sources: PathBuf,
    results: PathBuf,
}

impl SuiteRun<'_> {
    /// All runs for one revision.
    fn run(&self, set: &Requirements) -> anyhow::Result<Report> {
        let mut report = Report::new(set.revision);
        self.servers(set, &mut report)?;
        self.clients(set, &mut report)?;
        Ok(report)
    }

    /// The suite as a client: of the fixture, and of gateways in front of it.
    fn servers(&self, set: &Requirements, report: &mut Report) -> anyhow::Result<()> {
        let folder = self.results.join(set.revision);
        fs::create_dir_all(&folder).context("cannot make a folder for the results")?;
        let fixture = Fixture::start(self.suite, "both", &folder)?;
        let run = |url: &str, name: &str| self.suite.server(url, set.revision, &folder.join(name));
        let direct = run(&fixture.url, "server-direct")?;
        report.base("server, direct", &direct, set.server_passes);
        for scene in &SCENES {
            let (_gateway, url) = scene.start(&self.binary, &self.sources, &folder, &fixture)?;
            let through = run(&url, &format!("server-{}", scene.name))?;
            report.through(&format!("server, {}", scene.title), &direct, &through, &[]);
        }
        let other = Fixture::start(self.suite, set.other_era, &folder)?;
        let (_gateway, url) = BRIDGED.start(&self.binary, &self.sources, &folder, &other)?;
        let through = run(&url, &format!("server-{}", BRIDGED.name))?;
        let name = format!("server, {}", BRIDGED.title);
        report.through(&name, &direct, &through, set.unbridged);
        Ok(())
    }

    /// The suite as a server: of our client, and of a gateway between the two.
    fn clients(&self, set: &Requirements, report: &mut Report) -> anyhow::Result<()> {
        let folder = self.results.join(set.revision);
        let run = |binary: Option<&Path>, name: &str| -> anyhow::Result<Checks> {
            let mut checks = Checks::default();
            for scenario in set.client_scenarios {
                let results = folder.join(name).join(scenario);
                checks.add(self.suite.client(scenario, set.revision, binary, &results)?);
            }
            Ok(checks)
        };
        let direct = run(None, "client-direct")?;
        report.base("client, direct", &direct, set.client_passes);
        let through = run(Some(&self.binary), "client-through")?;
        report.through("client, through a gateway", &direct, &through, &[]);
        Ok(())
    }
}

/// What is told about one revision.
struct Report {
    lines: Vec<String>,
    counts: Counts,
    is_whole: bool,
}

impl Report {
    fn new(revision: &str) -> Self {
        let title = format!("\n{revision:<32} {:>6} {:>6} {:>6}", "passed", "failed", "lost");
        Self { lines: vec![title], counts: Counts::default(), is_whole: true }
    }

    /// A direct run, which has to pass this many checks.
    fn base(&mut self, name: &str, direct: &Checks, wanted: usize) {
        let (passed, failed) = (direct.passed(), direct.failed());
        self.lines.push(format!("  {name:<30} {passed:>6} {failed:>6}"));
        if passed < wanted {
            self.is_whole = false;
            self.lines.push(format!("    not whole: {wanted} checks used to pass"));
        }
    }

    /// A run through a gateway, measured by the direct one.
    fn through(&mut self, name: &str, direct: &Checks, through: &Checks, excused: &[(&str, &str)]) {
        let is_excused = |loss: &Loss| excused.contains(&(&*loss.scenario, &*loss.id));
        let (pardoned, losses): (Vec<Loss>, Vec<Loss>) =
            direct.lost(through).into_iter().partition(is_excused);
        let (passed, failed) = (through.passed(), through.failed());
        let lost = losses.len();
        let pardoned = match pardoned.len() {
            0 => String::new(),
            count => format!("  (and {count} excused)"),
        };
        self.lines.push(format!("  {name:<30} {passed:>6} {failed:>6} {lost:>6}{pardoned}"));
        self.lines.extend(losses.iter().map(|loss| format!("    lost: {loss}")));
        self.is_whole &= losses.is_empty();
        self.counts.add(Counts::of(passed, lost));
    }
}

#[cfg(test)]
mod tests {
    use super::checks::Checks;
    use super::{Counts, Report};

    #[test]
    fn a_report_is_whole_only_with_a_full_base_and_without_losses() {
        let one = Checks::of(&[("tools-list", "tools-list", "SUCCESS")]);
        let none = Checks::of(&[("tools-list", "tools-list", "INFO")]);
        let mut good = Report::new("2025-11-25");
        good.base("direct", &one, 1);
        good.through("through", &one, &one, &[]);
        assert!(good.is_whole && good.counts == Counts::of(1, 0), "{:?}", good.lines);

        let mut thin = Report::new("2025-11-25");
        thin.base("direct", &one, 2);
        assert!(!thin.is_whole, "one check used to pass that does not now");

        let mut leaky = Report::new("2025-11-25");
        leaky.through("through", &one, &none, &[("tools-list", "another")]);
        assert!(!leaky.is_whole && leaky.counts == Counts::of(0, 1), "{:?}", leaky.lines);

        let mut excused = Report::new("2025-11-25");
        excused.through("through", &one, &none, &[("tools-list", "tools-list")]);
        assert!(excused.is_whole && excused.counts == Counts::of(0, 0), "{:?}", excused.lines);
    }
}

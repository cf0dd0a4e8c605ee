//! `web/demo/recording.json`: two runs of the simulator, written down for the dashboard's demo.
//!
//! `cargo xtask docs` plays `web/demo/outage.yaml` and `web/demo/mcp.yaml` and writes what the page
//! needs to show them: the trace, the attempts of every backend in every second, and the counters
//! at regular moments. The counters come from shorter runs of the same file: a timeline that ends
//! earlier is the beginning of the longer one.

use serde_json::{Value, json};
use tidegate_config::source::Source;
use tidegate_sim::{
    scenario::{Format, RenderOptions, Report, load},
    timeline::TimelineReport,
};

/// The moments at which counters are taken: often enough for a page that interpolates.
const FRAME_MS: u64 = 20_000;

/// The run that the demo shows.
const SEED: u64 = 0;

/// A scenario file: its path and its text.
type File = (&'static str, &'static str);

const OUTAGE: File = ("web/demo/outage.yaml", include_str!("../../web/demo/outage.yaml"));
const MCP: File = ("web/demo/mcp.yaml", include_str!("../../web/demo/mcp.yaml"));

/// The text of the recording: one line per part, so that a change can be read as a diff.
pub(crate) fn text() -> String {
    let whole = timeline(OUTAGE.1);
    let document = whole.to_json();
    let lasts_ms = document["lasts_ms"].as_u64().unwrap_or_default();
    let mut parts = vec![
        ("lasts_ms", json!(lasts_ms)),
        ("about", document["about"].clone()),
        ("backends", backends(&document)),
        ("slices", slices(&whole)),
        ("frames", frames(OUTAGE.1, lasts_ms)),
    ];
    parts.push(("entries", entries(&whole)));
    parts.push(("mcp", run(MCP.0, MCP.1).to_json()));
    let lines: Vec<String> =
        parts.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}\n", lines.join(",\n"))
}

fn run(name: &str, text: &str) -> Report {
    let (scenario, problems) = load(&Source::new(name, text));
    let scenario = scenario.unwrap_or_else(|| panic!("{name} is no scenario: {problems:?}"));
    scenario.run(SEED)
}

fn timeline(text: &str) -> TimelineReport {
    match run(OUTAGE.0, text) {
        Report::Timeline(report) => *report,
        Report::Sequence(_) | Report::Mcp(_) => panic!("{} is no timeline", OUTAGE.0),
    }
}

/// Who takes part, in the order of tiers.
fn backends(document: &Value) -> Value {
    let all = document["backends"].as_array().cloned().unwrap_or_default();
    all.iter().map(|it| json!({ "id": it["id"], "tier": it["tier"] })).collect()
}

/// How many attempts each backend got in each slice of the timeline.
fn slices(report: &TimelineReport) -> Value {
    let picture = report.picture();
    let attempts = |cells: &[tidegate_sim::lanes::Cell]| -> Value {
        cells.iter().map(|cell| json!(cell.attempts)).collect()
    };
    let lanes = picture.lanes.iter().map(|lane| (lane.name.clone(), attempts(&lane.cells)));
    Value::Object(lanes.collect())
}

/// The counters at the end of every frame.
fn frames(text: &str, lasts_ms: u64) -> Value {
    let frame = |at_ms: u64| {
        let shorter = text.replace(&for_line(lasts_ms), &for_line(at_ms));
        let end = shorter.find("\nexpect:").unwrap_or(shorter.len());
        let report = timeline(&format!("{}\n", &shorter[..end])).to_json();
        let backend = |it: &Value| json!([it["attempts"], it["answered"], it["failed"]]);
        let backends: Value =
            report["backends"].as_array().into_iter().flatten().map(backend).collect();
        json!({
            "at": at_ms, "requests": report["sent"], "answered": report["answered"],
            "failures": report["client_failures"], "hops": report["hops"],
            "moved": report["sessions_moved"], "wait_ms": report["wait_ms"],
            "backends": backends,
        })
    };
    (1..=lasts_ms / FRAME_MS).map(|count| frame(count * FRAME_MS)).collect()
}

/// How the scenario file writes its length.
fn for_line(ms: u64) -> String {
    if ms.is_multiple_of(60_000) {
        format!("for: {}m", ms / 60_000)
    } else {
        format!("for: {}s", ms / 1000)
    }
}

/// Every transition, and every request that hopped or failed.
fn entries(report: &TimelineReport) -> Value {
    let options = RenderOptions { format: Format::Json, trace: true, ..RenderOptions::default() };
    let lines = report.render(&options);
    lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap_or_default()).collect()
}

#[cfg(test)]
mod tests {
    use super::{MCP, OUTAGE, Report, run, timeline};

    #[test]
    fn the_recorded_runs_hold_what_they_expect() {
        let outage = timeline(OUTAGE.1);
        assert_eq!(outage.failures(), []);
        let mcp = run(MCP.0, MCP.1);
        assert!(matches!(mcp, Report::Mcp(_)));
        assert_eq!(mcp.failures(), []);
    }
}

//! The files of `ops/` speak of things that exist: metrics, label values, commands, exit codes.
//!
//! Whether Prometheus and systemd accept them is checked by `cargo xtask ops`.

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// What Prometheus adds to the name of a histogram.
const OF_HISTOGRAMS: [&str; 3] = ["_bucket", "_sum", "_count"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Every file below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder can be listed").flatten();
    let paths = entries.map(|entry| entry.path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// The names of metrics in a text.
fn metrics(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let names = text.split("tidegate_").skip(1).map(|rest| {
        let name: String = rest.chars().take_while(|c| is_part(*c)).collect();
        OF_HISTOGRAMS.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name).to_owned()
    });
    names.filter(|name| !name.is_empty()).collect()
}

/// The code of all crates, in which a metric's name stands as a literal.
fn code() -> String {
    let crates = fs::read_dir(root().join("crates")).expect("the crates can be listed").flatten();
    let sources = crates.map(|it| it.path().join("src")).flat_map(|it| files(&it));
    let is_rust = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "rs");
    sources.filter(is_rust).filter_map(|path| fs::read_to_string(path).ok()).collect()
}

/// The names that no line of the code registers.
fn unknown(text: &str, code: &str) -> Vec<String> {
    let is_known = |name: &String| {
        code.contains(&format!("\"{name}\"")) || code.contains(&format!("\"tidegate_{name}\""))
    };
    metrics(text).into_iter().filter(|name| !is_known(name)).collect()
}

#[test]
fn every_metric_that_ops_names_is_one_of_the_gateway() {
    let code = code();
    for path in files(&root().join("ops")) {
        let text = fs::read_to_string(&path).expect("ops has texts only");
        assert_eq!(unknown(&text, &code), Vec::<String>::new(), "{}", path.display());
    }
    let used = metrics(&read("ops/grafana/tidegate.json"));
    assert!(used.len() > 10, "{used:?}");
}

#[test]
fn a_metric_that_does_not_exist_is_caught() {
    let code = "counter(\"requests_total\", \"tidegate_sessions\")";
    let text =
        "tidegate_requests_total{} tidegate_sessions tidegate_request_total tidegate_x_bucket";
    assert_eq!(unknown(text, code), ["request_total", "x"]);
}

#[test]
fn every_alert_has_a_test_that_fires_it() {
    let tests = read("ops/prometheus/alerts.test.yaml");
    let alerts = read("ops/prometheus/alerts.yaml");
    let names: Vec<&str> =
        alerts.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(names.len() > 10, "{names:?}");
    for name in names {
        assert!(tests.contains(&format!("- name: {name} fires\n")), "{name} has no test");
    }
}

#[test]
fn the_board_is_json_and_every_panel_has_a_query_and_a_place_of_its_own() {
    let board: Value = serde_json::from_str(&read("ops/grafana/tidegate.json")).expect("JSON");
    let panels = board["panels"].as_array().expect("panels");
    let mut places = BTreeSet::new();
    for panel in panels {
        let title = panel["title"].as_str().expect("a title");
        let queries = panel["targets"].as_array().expect("queries");
        let has_query = |it: &Value| it["expr"].as_str().is_some_and(|it| it.contains("tidegate_"));
        assert!(!queries.is_empty() && queries.iter().all(has_query), "{title}");
        assert!(places.insert(panel["gridPos"].to_string()), "{title} lies upon another panel");
    }
}

#[test]
fn the_unit_does_not_restart_what_a_restart_cannot_mend() {
    let unit = read("ops/systemd/tidegate.service");
    let line = unit.lines().find_map(|line| line.strip_prefix("RestartPreventExitStatus="));
    assert_eq!(line, Some("2 3 5"));
    let page = support::run(support::program(&root()).args(["help", "exit-codes"])).stdout;
    assert!(page.contains("    5  the gateway cannot bind or start: do not restart it"), "{page}");
    assert!(unit.contains("tidegate serve --config "), "{unit}");
    assert!(read("ops/Dockerfile").contains("\nUSER 10001:10001\n"));
}

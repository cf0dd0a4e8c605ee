//! `tidegate sim` as a user meets it: what goes where, and the exit code.
//!
//! What a scenario means and how its report looks is tested in the simulator crate.

mod support;

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;
use support::{Run, program, run};

const HOLDS: &str = "services: [{provider: a, model: x}]\nprogram: [{request: s}]\n\
                     expect: {final_status: 200}\n";
const FAILS: &str = "services: [{provider: a, model: x}]\nprogram: [{request: s}]\n\
                     expect: {final_status: 500}\n";
const WRONG: &str = "services: [{provider: a, model: x}]\nfaults: {a/y: [500]}\n";

/// A folder with a file of each kind.
fn folder(test: &str) -> PathBuf {
    let folder = support::folder(&format!("sim-{test}"));
    for (name, text) in [("holds.yaml", HOLDS), ("fails.yaml", FAILS), ("wrong.yaml", WRONG)] {
        fs::write(folder.join(name), text).expect("the build's own folder takes files");
    }
    folder
}

fn sim(folder: &Path, args: &[&str]) -> Run {
    run(program(folder).arg("sim").args(args))
}

#[test]
fn without_arguments_the_cascade_story_is_told_and_the_others_are_mentioned() {
    let run = sim(&folder("nothing"), &[]);
    assert_eq!(run.code, Some(0));
    assert!(run.stdout.starts_with("LB scenario \"cascade\"  tactic=tier"), "{}", run.stdout);
    assert!(run.stderr.contains("--list"), "{}", run.stderr);
    assert!(run.stderr.contains("\nsimulated in "), "{}", run.stderr);
    assert!(!run.stdout.contains("simulated in"), "the result is the same every time");
}

#[test]
fn a_failed_expectation_is_1_with_its_sentence_a_replay_line_and_the_trace() {
    let run = sim(&folder("fails"), &["--file", "fails.yaml", "--seed", "7", "-q"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stdout.contains("a/x ✓200"), "{}", run.stdout);
    let sentence = "final_status: request 1 (session `s`): wanted 500, got 200";
    assert!(run.stderr.contains(sentence), "{}", run.stderr);
    assert!(run.stderr.contains("replay: tidegate sim --file fails.yaml --seed 7"));
}

#[test]
fn a_file_with_a_problem_is_3_and_nothing_is_run() {
    let args =
        ["--file", "holds.yaml", "--file", "wrong.yaml", "--file", "absent.yaml", "--file", "."];
    let run = sim(&folder("wrong"), &args);
    assert_eq!((run.code, run.stdout.as_str()), (Some(3), ""));
    for part in ["wrong.yaml:2:10", "did you mean `a/x`?", "`absent.yaml`", "is a directory"] {
        assert!(run.stderr.contains(part), "{part}: {}", run.stderr);
    }
}

#[test]
fn an_unknown_example_is_2_with_a_suggestion() {
    let run = sim(&folder("unknown"), &["cascad"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(2), ""));
    assert!(run.stderr.contains("did you mean `cascade`?"), "{}", run.stderr);
}

#[test]
fn a_config_is_refused_for_a_sequence() {
    assert_eq!(sim(&folder("config"), &["cascade", "-c", "x.yaml"]).code, Some(2));
}

#[test]
fn one_file_is_an_object_and_several_are_an_array_in_their_order() {
    let folder = folder("json");
    let json = |args: &[&str]| -> Value {
        let run = sim(&folder, args);
        serde_json::from_str(&run.stdout).expect("one JSON document")
    };
    assert_eq!(json(&["--file", "holds.yaml", "--json"])["expect"]["passed"], true);
    let several = json(&["--file", "fails.yaml", "--file", "holds.yaml", "--json"]);
    assert_eq!((&several[0]["rule"], &several[1]["rule"]), (&"fails".into(), &"holds".into()));
    assert_eq!(several[0]["expect"]["passed"], false);
}

#[test]
fn many_seeds_show_each_distinct_failure_once_and_draw_nothing_into_a_pipe() {
    let run = sim(&folder("seeds"), &["--file", "fails.yaml", "--seeds", "20"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(1), ""));
    assert!(run.stdout.starts_with("fails: 20 seeds, 1 distinct failure\n"), "{}", run.stdout);
    assert!(run.stdout.contains("20 of 20 seeds, first seed 0"), "{}", run.stdout);
}

#[test]
fn every_example_is_listed_with_what_it_shows() {
    let run = sim(&folder("list"), &["--list"]);
    let cascade = run.stdout.lines().find(|line| line.starts_with("cascade "));
    assert!(cascade.is_some_and(|line| line.contains("primary fails")), "{}", run.stdout);
}

#[test]
fn a_built_in_prints_its_source_and_the_source_is_a_scenario() {
    let folder = folder("print");
    let printed = sim(&folder, &["--print", "brownout"]);
    assert_eq!(printed.code, Some(0));
    assert!(printed.stderr.contains("tidegate sim --file FILE"), "{}", printed.stderr);
    fs::write(folder.join("own.yaml"), &printed.stdout).expect("the folder takes files");
    assert_eq!(sim(&folder, &["--file", "own.yaml"]).code, Some(0));
    let unknown = sim(&folder, &["--print", "brownuot"]);
    assert_eq!((unknown.code, unknown.stdout.as_str()), (Some(2), ""));
    assert!(unknown.stderr.contains("did you mean `brownout`?"), "{}", unknown.stderr);
}

#[test]
fn several_scenarios_end_with_one_total_line() {
    let folder = folder("total");
    let all = sim(&folder, &["--file", "holds.yaml", "--file", "holds.yaml"]);
    let last = all.stderr.lines().last().unwrap_or_default();
    assert_eq!(last, "2 scenarios: every expectation of each held");
    assert_eq!(all.stderr.matches("every expectation").count(), 1, "{}", all.stderr);
    let mixed = sim(&folder, &["--file", "holds.yaml", "--file", "fails.yaml"]);
    assert_eq!(mixed.code, Some(1));
    assert!(mixed.stderr.ends_with("2 scenarios: 1 passed, 1 failed\n"), "{}", mixed.stderr);
}

#[test]
fn every_timeline_runs_under_a_config_and_the_rest_is_counted() {
    let folder = folder("all-config");
    let config = "providers:\n  a: { api: openai, url: 'http://127.0.0.1:1/v1' }\n  \
                  b: { api: openai, url: 'http://127.0.0.1:2/v1' }\nroutes:\n  \
                  r: { tiers: [[a/x], [b/y]] }\ndefault_route: r\n";
    fs::write(folder.join("t.yaml"), config).expect("the folder takes files");
    let run = sim(&folder, &["--all", "-c", "t.yaml", "--json"]);
    let reports: Vec<Value> = serde_json::from_str(&run.stdout).expect("an array of reports");
    assert!(reports.len() >= 12, "{}", reports.len());
    let talk = format!("running the {} timelines with this config", reports.len());
    assert!(run.stderr.contains(&talk), "{}", run.stderr);
}

#[test]
fn colour_adds_escape_codes_to_each_form_and_changes_no_character() {
    let folder = folder("colour");
    for name in ["cascade", "hard-outage", "crash-mid-session", "keepalive-disable"] {
        for look in [&["--ascii"][..], &[]] {
            let plain = sim(&folder, &[&[name, "--color", "never"], look].concat()).stdout;
            let painted = sim(&folder, &[&[name, "--color", "always"], look].concat()).stdout;
            assert_ne!(painted, plain, "{name}");
            assert_eq!(without_escape_codes(&painted), plain, "{name}");
        }
    }
}

fn without_escape_codes(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push_str(part.split_once('m').map_or(part, |(_, rest)| rest));
    }
    plain
}

#[test]
fn the_graph_of_mcp_sessions_shows_keepalives_and_when_they_are_disabled() {
    let run = sim(&folder("keepalive"), &["keepalive-disable"]);
    assert!(run.stdout.contains("keepalive: github 1 sent"), "{}", run.stdout);
    assert!(run.stdout.contains("failed, disabled\n"), "{}", run.stdout);
}

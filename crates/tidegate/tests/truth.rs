//! What `tidegate check` and `tidegate sim` say of a config is what its gateway does with requests.
//!
//! Random routes over providers of every api, with random abilities, are asked by clients of every
//! dialect with random needs. The same file goes to both commands. The other half of this, for what
//! the running gateway says of itself, is `dialect_truth.rs` among the server's tests.

mod support;

use std::fs;
use std::path::Path;

use serde_json::Value;
use support::{folder, program};
use tidegate_fakes::fake::{FakeServer, Script};
use tidegate_testkit::{
    dialects::{Draws, NEEDS, config, request},
    gate::Gate,
};

const DIALECTS: [&str; 4] = ["chat", "responses", "messages", "gemini"];

/// The dialects that `tidegate check` says the route serves.
fn checked(folder: &Path) -> Vec<String> {
    let run = support::run(program(folder).args(["check", "--json", "tidegate.yaml"]));
    let shown: Value = serde_json::from_str(&run.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", run.stdout, run.stderr));
    let serves = shown["clients"]["r"]["serves"].as_array().cloned().unwrap_or_default();
    serves.iter().filter_map(|word| word.as_str().map(str::to_owned)).collect()
}

/// Whether a simulated client with these needs is answered.
fn simulated(folder: &Path, dialect: &str, needs: &[&str]) -> bool {
    let text = format!(
        "for: 5s\ntraffic: {{ rate: 1/s, dialect: {dialect}, needs: [{}] }}\n\
         backends: {{ x/m: [{{ at: 0s, do: ok }}] }}\n\
         expect: {{ client_failures: {{ max: 0 }} }}\n",
        needs.join(", ")
    );
    fs::write(folder.join("scenario.yaml"), text).expect("the folder takes files");
    let run = support::run(program(folder).args([
        "sim",
        "--file",
        "scenario.yaml",
        "-c",
        "tidegate.yaml",
    ]));
    match run.code {
        Some(0) => true,
        Some(1) => false,
        _ => panic!("{run:?}"),
    }
}

#[test]
fn check_and_sim_say_what_real_requests_meet() {
    let fakes: Vec<FakeServer> = (0..3).map(|_| FakeServer::start(Script::default())).collect();
    let urls: Vec<String> = fakes.iter().map(FakeServer::url).collect();
    let folder = folder("truth");
    let mut draws = Draws(23);
    let (mut answered, mut refused) = (0, 0);
    for round in 0..10 {
        let yaml = config(&mut draws, &urls);
        fs::write(folder.join("tidegate.yaml"), &yaml).expect("the folder takes files");
        let gate = Gate::start(&yaml, &[]);
        let serves = checked(&folder);
        for dialect in DIALECTS {
            for bits in [0, 1 << draws.below(NEEDS.len()), draws.below(1 << NEEDS.len())] {
                let (path, body) = request(dialect, bits);
                let status = gate.post(&path, &body.to_string()).status;
                let needs: Vec<&str> = NEEDS
                    .iter()
                    .enumerate()
                    .filter(|(at, _)| bits & (1 << at) != 0)
                    .map(|(_, need)| *need)
                    .collect();
                let context = format!("round {round}, {dialect} {needs:?}: {status}\n{yaml}");
                assert!(matches!(status, 200 | 400), "{context}");
                let is_answered = status == 200;
                assert_eq!(simulated(&folder, dialect, &needs), is_answered, "sim: {context}");
                if bits == 0 {
                    let is_served = serves.iter().any(|word| word == dialect);
                    assert_eq!(is_served, is_answered, "check: {context}");
                }
                *(if is_answered { &mut answered } else { &mut refused }) += 1;
            }
        }
    }
    assert!(answered > 20 && refused > 20, "both happen: {answered} answered, {refused} refused");
}

//! `tidegate doctor` as a user meets it: what it finds, how it ends, and that nothing leaks.

mod support;

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;
use support::{Run, program, run};

/// Nothing to mend: a provider inside the process, and ports that the system chooses.
const WELL: &str = "\
listen: 127.0.0.1:0
admin: { listen: \"127.0.0.1:0\" }
limits: { connections: 10 }
providers: { near: { api: fake }, far: { api: fake } }
routes: { fast: { tiers: [[near/a], [far/b]] } }
";

fn folder(test: &str) -> PathBuf {
    support::folder(&format!("doctor-{test}"))
}

fn doctor(folder: &Path, args: &[&str]) -> Run {
    run(program(folder).arg("doctor").args(args))
}

fn write(folder: &Path, text: &str) {
    fs::write(folder.join("tidegate.yaml"), text).expect("the folder takes files");
}

/// The words of every finding at a level.
fn found(run: &Run, level: &str) -> Vec<String> {
    let document: Value = serde_json::from_str(&run.stdout).expect("one JSON document");
    let findings = document["findings"].as_array().expect("a list").iter();
    let words = findings.filter(|it| it["level"] == level).map(|it| it["words"].to_string());
    words.collect()
}

#[test]
fn a_machine_that_is_in_order_is_0() {
    let folder = folder("well");
    write(&folder, WELL);
    let run = doctor(&folder, &[]);
    assert_eq!(run.code, Some(0), "{}{}", run.stdout, run.stderr);
    for line in ["config\n  √ ", "network\n  √ listen 127.0.0.1:0 is free", "machine\n  √ "] {
        assert!(run.stdout.contains(line), "{line}: {}", run.stdout);
    }
    assert!(run.stdout.ends_with("everything is in order\n"), "{}", run.stdout);
    assert!(doctor(&folder, &["--ascii"]).stdout.contains("\n  ok "), "marks without Unicode");
}

#[test]
fn each_trouble_is_named_with_its_fix() {
    let folder = folder("trouble");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let text = WELL.replace("listen: 127.0.0.1:0", &format!("listen: {address}")).replace(
        "far: { api: fake }",
        "far: { api: openai, url: \"http://127.0.0.1:1/v1\", key: env:FAR_KEY }",
    );
    write(&folder, &text);
    let run = doctor(&folder, &["--json"]);
    assert_eq!(run.code, Some(1), "{}", run.stdout);
    let bad = found(&run, "bad").join("\n");
    for words in ["FAR_KEY", "another program listens at listen 127.0.0.1:", "\"far: "] {
        assert!(bad.contains(words), "{words}: {bad}");
    }
    let offline = found(&doctor(&folder, &["--json", "--offline"]), "bad").join("\n");
    assert!(!offline.contains("\"far: "), "nobody is asked offline: {offline}");
}

#[test]
fn a_missing_config_is_a_warning_and_a_broken_one_is_to_be_mended() {
    let folder = folder("config");
    let none = doctor(&folder, &["--json", "--offline"]);
    assert_eq!(none.code, Some(0), "{}", none.stdout);
    assert!(found(&none, "warning").join("").contains("there is no config file"));
    assert_eq!(doctor(&folder, &["-c", "absent.yaml"]).code, Some(1));
    write(&folder, "routs: {}\n");
    let broken = doctor(&folder, &[]);
    assert_eq!(broken.code, Some(1), "{}", broken.stdout);
    assert!(broken.stdout.contains("fix: run `tidegate check tidegate.yaml`"), "{}", broken.stdout);
}

#[test]
fn no_secret_of_any_kind_reaches_the_output_or_the_report() {
    let folder = folder("canary");
    let text = "\
listen: 127.0.0.1:0
admin: { listen: \"127.0.0.1:0\", token: canary-token }
keys: [{ name: ci, key: env:CI_KEY }]
providers:
  one:
    api: openai
    url: http://127.0.0.1:1/canary-path/v1
    key: canary-literal
    headers: { x-extra: canary-header }
    query: { api-version: canary-query }
  two: { api: openai, url: \"http://127.0.0.1:1/v1\", key: env:TWO_KEY }
routes: { fast: { about: canary-about, tiers: [[one/a], [two/b]] } }
mcp:
  servers:
    net: { url: \"http://127.0.0.1:1/mcp?key=canary-url\", headers: { x-key: env:NET_KEY } }
    run: { command: [/no/such/program, --token, canary-argument], env: { K: canary-env } }
";
    write(&folder, text);
    let mut command = program(&folder);
    command.env("CI_KEY", "canary-ci").env("TWO_KEY", "canary-two").env("NET_KEY", "canary-net");
    let done = run(command.args(["doctor", "--report", "-v"]));
    assert_eq!(done.code, Some(1), "nothing can be reached: {}", done.stdout);
    let path = folder.join("tidegate-report.json");
    let report = fs::read_to_string(&path).expect("the report was written");
    for said in [&done.stdout, &done.stderr, &report] {
        assert!(!said.contains("canary"), "{said}");
    }
    assert!(report.contains("env:TWO_KEY"), "the names of references help: {report}");
    let mode = fs::metadata(&path).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let again = doctor(&folder, &["--offline", "--report"]);
    assert_eq!(again.code, Some(1));
    assert!(again.stderr.contains("cannot be written"), "it is not overwritten: {}", again.stderr);
}

#[test]
fn findings_fit_60_80_and_120_columns() {
    let folder = support::folder("doctor-widths");
    write(
        &folder,
        "providers: { far: { api: openai, key: env:A_VARIABLE_WITH_A_LONG_NAME } }\n\
         routes: { fast: { tiers: [[far/large]] } }\n",
    );
    for columns in [60, 80, 120] {
        let mut command = program(&folder);
        command.args(["doctor", "--offline"]).env("COLUMNS", columns.to_string());
        let text = run(&mut command).stdout;
        let widest = text.lines().map(|line| line.chars().count()).max();
        assert!(widest.is_some_and(|widest| widest <= columns), "{columns}: {text}");
        assert!(text.contains("A_VARIABLE_WITH_A_LONG_NAME"), "{text}");
    }
}

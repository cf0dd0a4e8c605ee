//! The operator's commands against a running gateway: `status`, `explain` and the verbs.
//!
//! The gateway runs in the test's own process, the commands are the real program.

mod support;

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use serde_json::Value;
use support::{Run, folder, program, run};
use tidegate_fakes::fake::{FakeServer, Script, Step};
use tidegate_testkit::gate::{Gate, chat};

const TOKEN: &str = "canary-admin-token";

/// Two providers, the first of which fails, and a gateway that has noticed.
struct Bed {
    gate: Gate,
    _fakes: [FakeServer; 2],
    name: &'static str,
}

impl Bed {
    fn start(name: &'static str) -> Self {
        let failing = FakeServer::start(Script::always(Step::status(500)));
        let working = FakeServer::start(Script::default());
        let yaml = format!(
            "listen: 127.0.0.1:0\nadmin: {{listen: '127.0.0.1:0', token: env:ADMIN}}\n\
             health: {{failure_threshold: 3, open_for: 60s, open_jitter: 0, \
             probe: {{every: 0s}}}}\n\
             providers:\n  alpha: {{api: openai, url: '{}/v1'}}\n  \
             beta: {{api: openai, url: '{}/v1'}}\n\
             routes:\n  r: {{tiers: [[alpha/m], [beta/m]], affinity: {{ttl: 30m}}}}\n",
            failing.url(),
            working.url()
        );
        let gate = Gate::start(&yaml, &[("ADMIN", TOKEN)]);
        for _ in 0..4 {
            gate.chat();
        }
        Self { gate, _fakes: [failing, working], name }
    }

    fn url(&self) -> String {
        format!("http://{}", self.gate.server.admin_address())
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = program(&folder(&format!("operator-{}", self.name)));
        command.args(args).args(["--admin", &self.url()]);
        command
    }

    fn run(&self, args: &[&str]) -> Run {
        run(&mut self.command(args))
    }

    fn run_with_token(&self, args: &[&str]) -> Run {
        run(self.command(args).env("TIDEGATE_ADMIN_TOKEN", TOKEN))
    }
}

fn json(run: &Run) -> Value {
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"))
}

#[test]
fn status_says_what_is_broken_why_and_when_it_heals() {
    let bed = Bed::start("status");
    let status = bed.run(&["status"]);
    assert_eq!((status.code, status.stderr.as_str()), (Some(0), ""), "{status:?}");
    let text = &status.stdout;
    assert!(text.starts_with("Degraded, no client hurt."), "{text}");
    for words in [
        "alpha/m",
        "○ open",
        "3 × 500",
        "asked again in",
        "● closed",
        "ROUTE r → beta/m",
        "tier 0  ○ alpha/m 0%",
        "alpha/m 500 server error",
        "→ beta/m 200",
        "next: tidegate explain alpha/m",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!text.contains('\u{1b}'), "no colour in a pipe: {text}");
}

#[test]
fn status_fits_60_80_and_120_columns_and_ascii() {
    let bed = Bed::start("widths");
    for columns in [60, 80, 120] {
        let shown = run(bed.command(&["status"]).env("COLUMNS", columns.to_string())).stdout;
        let widest = shown.lines().map(|line| line.chars().count()).max();
        assert!(widest.is_some_and(|widest| widest <= columns), "{columns}: {shown}");
    }
    let plain = bed.run(&["status", "--ascii"]).stdout;
    // The reasons are the gateway's own words.
    let plain = plain.replace('×', "x");
    assert!(plain.is_ascii(), "{plain}");
    let painted = bed.run(&["status", "--color", "always"]).stdout;
    assert!(painted.contains("\u{1b}[33m○ open\u{1b}[0m"), "{painted}");
}

#[test]
fn status_as_json_is_the_snapshot_and_fail_on_is_an_exit_code() {
    let bed = Bed::start("json");
    let snapshot = json(&bed.run(&["status", "--json"]));
    assert_eq!(snapshot["verdict"]["level"], "degraded");
    assert_eq!(snapshot["backends"][0]["id"], "alpha/m");
    for (level, expected) in [("degraded", 1), ("hurt", 0), ("down", 0)] {
        let code = bed.run(&["status", "-q", "--fail-on", level]).code;
        assert_eq!(code, Some(expected), "{level}");
    }
    assert_eq!(bed.run(&["status", "--fail-on", "never"]).code, Some(2));
}

#[test]
fn names_are_told_apart_at_60_columns() {
    let bed = Bed::start("narrow");
    let shown = run(bed.command(&["status"]).env("COLUMNS", "60")).stdout;
    for words in ["\nalpha/m  ", "\nbeta/m   "] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
}

#[test]
fn doctor_asks_the_running_gateway_and_says_what_to_type() {
    let bed = Bed::start("doctor");
    let said = bed.run(&["doctor"]);
    let words = "says: Degraded, no client hurt\n      fix: `tidegate explain alpha/m` says why";
    assert!(said.stdout.contains(words), "{said:?}");
    // The file in the folder is not what it serves.
    let here = folder("operator-doctor-drift");
    let text = "providers: {p: {api: fake}}\nroutes: {r: {tiers: [[p/a], [p/b]]}}\n";
    std::fs::write(here.join("tidegate.yaml"), text).expect("a file");
    let said = run(program(&here).args(["doctor", "--admin", &bed.url()]));
    assert!(said.stdout.contains("it serves a config with sha "), "{said:?}");
    assert!(said.stdout.contains("fix: `tidegate reload` reads the file again"), "{said:?}");
    let url = bed.url();
    drop(bed);
    let mut command = program(&folder("operator-doctor-gone"));
    let gone = run(command.args(["doctor", "--admin", &url]));
    assert_eq!(gone.code, Some(1), "{gone:?}");
    assert!(gone.stdout.contains("no gateway answers at http://127.0.0.1:"), "{gone:?}");
    assert!(gone.stdout.contains("fix: `tidegate serve` starts one"), "{gone:?}");
}

#[test]
fn a_gateway_that_is_not_there_is_4_with_the_next_command() {
    // A port that nobody listens on any more.
    let address = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a port");
    let url = format!("http://{address}");
    for args in [
        &["status"][..],
        &["status", "--watch"],
        &["explain", "alpha/m"],
        &["explain", "req_00000000000000000000000000000000"],
        &["drain", "alpha/m"],
        &["reload"],
    ] {
        let mut command = program(&folder("operator-nobody"));
        let said = run(command.args(args).args(["--admin", &url]));
        assert_eq!(said.code, Some(4), "{args:?}: {said:?}");
        assert!(said.stderr.contains("no gateway answers at"), "{said:?}");
        assert!(said.stderr.contains("connection refused"), "{said:?}");
        assert!(said.stderr.contains("hint: `tidegate serve` starts one"), "{said:?}");
    }
}

#[test]
fn another_server_at_the_address_is_told_from_a_gateway() {
    let other = FakeServer::start(Script::default());
    let mut command = program(&folder("operator-other"));
    let said = run(command.args(["status", "--admin", &other.url()]));
    assert_eq!(said.code, Some(4), "{said:?}");
    assert!(said.stderr.contains("is no admin listener"), "{said:?}");
    let mut command = program(&folder("operator-other"));
    let said = run(command.args(["status", "--admin", "ftp://x"]));
    assert_eq!(said.code, Some(2), "{said:?}");
}

#[test]
fn a_verb_without_the_token_says_what_to_set_and_never_shows_one() {
    let bed = Bed::start("token");
    let without = bed.run(&["drain", "beta/m"]);
    assert_eq!(without.code, Some(1), "{without:?}");
    assert!(without.stderr.contains("wants an admin token"), "{without:?}");
    assert!(without.stderr.contains("export TIDEGATE_ADMIN_TOKEN="), "{without:?}");
    let mut command = bed.command(&["drain", "beta/m"]);
    let wrong = run(command.env("TIDEGATE_ADMIN_TOKEN", "canary-wrong"));
    assert_eq!(wrong.code, Some(1), "{wrong:?}");
    assert!(wrong.stderr.contains("does not take this admin token"), "{wrong:?}");
    assert!(!format!("{wrong:?}").contains("canary"), "{wrong:?}");
}

#[test]
fn a_drain_says_until_when_and_how_to_undo_it() {
    let bed = Bed::start("drain");
    let said = bed.run_with_token(&["drain", "beta", "--reason", "key rotation", "--ttl", "5m"]);
    assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{said:?}");
    assert!(said.stdout.starts_with("beta/m is drained until "), "{said:?}");
    assert!(said.stdout.contains("undo: tidegate resume beta/m"), "{said:?}");
    let status = bed.run(&["status"]).stdout;
    assert!(status.contains("✕ drained"), "{status}");
    assert!(status.contains("\"key rotation\"; ends in "), "{status}");
    let story = bed.run(&["explain", "beta/m"]).stdout;
    assert!(story.contains("drain by an operator: key rotation"), "{story}");
    assert!(story.contains("next: tidegate resume beta/m"), "{story}");
    assert_eq!(bed.run_with_token(&["resume", "beta/m"]).code, Some(0));
    assert!(bed.run(&["status"]).stdout.contains("● closed"));
    let held = json(&bed.run_with_token(&["hold", "beta/m", "--json"]));
    assert_eq!((held["done"].as_str(), held["backend"].as_str()), (Some("hold"), Some("beta/m")));
    assert!(held["until_unix_ms"].is_u64(), "{held}");
    let reset = bed.run_with_token(&["reset", "alpha/m"]);
    assert!(reset.stdout.contains("its breaker is closed"), "{reset:?}");
    assert_eq!(json(&bed.run(&["status", "--json"]))["backends"][0]["state"], "closed");
    let probe = bed.run_with_token(&["probe", "beta/m"]);
    assert_eq!((probe.code, probe.stdout.as_str()), (Some(0), "beta/m answered the probe\n"));
}

#[test]
fn what_is_said_of_a_drain_or_hold_is_what_it_is() {
    let bed = Bed::start("leases");
    for verb in ["drain", "hold"] {
        for (ttl, words) in [("0s", "a time of 0 changes nothing"), ("25h", "at most `24h`")] {
            let said = bed.run_with_token(&[verb, "beta/m", "--ttl", ttl]);
            assert_eq!(said.code, Some(1), "{said:?}");
            assert!(said.stderr.contains(words), "{said:?}");
        }
        // A day from now has another date, which the time of day alone would hide.
        let tomorrow = bed.run_with_token(&[verb, "beta/m", "--ttl", "24h"]).stdout;
        let until = tomorrow.split_once(" until ").map_or("", |(_, rest)| rest);
        assert!(until.starts_with("20") && until.contains('T'), "{tomorrow}");
        assert_eq!(bed.run_with_token(&["resume", "beta/m"]).code, Some(0));
        let long = json(&bed.run_with_token(&[verb, "beta/m", "--ttl", "1h", "--json"]));
        let short = bed.run_with_token(&[verb, "beta/m", "--ttl", "2s"]);
        assert!(short.stdout.contains(", for 1h00m") || short.stdout.contains(", for 59m"));
        assert!(short.stderr.contains("`tidegate resume beta/m` ends both"), "{short:?}");
        let again = json(&bed.run_with_token(&[verb, "beta/m", "--ttl", "2s", "--json"]));
        assert_eq!(again["until_unix_ms"], long["until_unix_ms"], "the first one lasts longer");
        assert_eq!(bed.run_with_token(&["resume", "beta/m"]).code, Some(0));
        let short = bed.run_with_token(&[verb, "beta/m", "--ttl", "5m"]);
        assert_eq!(short.stderr, "", "nothing lasts longer any more");
        assert_eq!(bed.run_with_token(&["resume", "beta/m"]).code, Some(0));
    }
}

#[test]
fn an_unknown_backend_is_told_with_the_nearest_name() {
    let bed = Bed::start("unknown");
    let said = bed.run_with_token(&["drain", "alhpa/m"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("there is no backend `alhpa/m`"), "{said:?}");
    assert!(said.stderr.contains("did you mean `alpha/m`?"), "{said:?}");
    let many = bed.run(&["explain", "m"]);
    assert!(many.stderr.contains("`m` stands for 2 targets"), "{many:?}");
    assert_eq!(bed.run_with_token(&["drain", "beta", "--ttl", "soon"]).code, Some(2));
}

#[test]
fn a_reload_without_a_file_or_with_a_broken_one_is_refused_in_words() {
    let bed = Bed::start("reload");
    let said = bed.run_with_token(&["reload"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    assert!(said.stderr.contains("no file that could be read"), "{said:?}");
}

#[test]
fn a_backend_is_explained_with_its_evidence_and_re_entry() {
    let bed = Bed::start("backend");
    let story = bed.run(&["explain", "alpha"]);
    assert_eq!(story.code, Some(0), "{story:?}");
    let text = &story.stdout;
    assert!(text.starts_with("alpha/m  ○ open  for "), "{text}");
    for words in
        ["why: 3 × 500", "asked again: at ", "closed → open:", "next: tidegate probe alpha/m"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    let story = json(&bed.run(&["explain", "alpha/m", "--json"]));
    assert_eq!(story["backend"]["state"], "open");
    assert_eq!(story["transitions"][0]["to"], "open");
}

#[test]
fn a_request_is_explained_with_every_verdict_and_attempt() {
    let bed = Bed::start("request");
    let list = bed.gate.admin("/api/decisions?notable=true").json();
    // The oldest: it met both targets.
    let list = list["decisions"].as_array().expect("a list");
    let id = list.last().and_then(|it| it["id"].as_str()).expect("a request");
    let told = bed.run(&["explain", id]);
    assert_eq!(told.code, Some(0), "{told:?}");
    for words in [
        id,
        "route r",
        "choice 1 after 0ms",
        "alpha/m  chosen   tier 0",
        "beta/m   held     tier 1: another came first",
        "→ alpha/m 500 server error",
        "choice 2 after ",
        "alpha/m  tried    tier 0: this request had asked it",
        "answered by beta/m with 200",
    ] {
        assert!(told.stdout.contains(words), "{words}: {}", told.stdout);
    }
    let whole = json(&bed.run(&["explain", id, "--json"]));
    assert_eq!(whole["choices"].as_array().map(Vec::len), Some(2));
    let gone = bed.run(&["explain", "req_00000000000000000000000000000000"]);
    assert_eq!(gone.code, Some(1), "{gone:?}");
    assert!(gone.stderr.contains("has no record of"), "{gone:?}");
    for wrong in ["req_x/../y", "req_0123"] {
        let said = bed.run(&["explain", wrong]);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.stderr.contains("is not the id of a request"), "{said:?}");
        assert!(said.stderr.contains("x-tidegate-request-id"), "{said:?}");
    }
}

#[test]
fn a_question_about_the_next_request_is_answered_without_making_one() {
    let bed = Bed::start("what-if");
    let told = bed.run(&["explain", "--model", "r", "--session", "s42"]).stdout;
    assert!(told.starts_with("would go to  beta/m (tier 1, route r)"), "{told}");
    assert!(told.contains("alpha/m  skipped  has an open breaker since "), "{told}");
    assert!(told.contains("; asked again in "), "{told}");
    let unknown = bed.run(&["explain", "--model", "nothing"]);
    assert_eq!(unknown.code, Some(1), "{unknown:?}");
}

#[test]
fn without_a_gateway_the_config_answers_and_says_so() {
    let here = folder("operator-offline");
    let config = "admin: {listen: '127.0.0.1:9'}\nhealth: {failure_threshold: 4}\n\
                  providers: {alpha: {api: openai, url: 'http://127.0.0.1:9/v1'}}\n\
                  routes: {r: {tiers: [[alpha/m]]}}\n";
    std::fs::write(here.join("tidegate.yaml"), config).expect("a file");
    let told = run(program(&here).args(["explain", "alpha/m"]));
    assert_eq!(told.code, Some(0), "{told:?}");
    assert!(told.stdout.contains("failure_threshold 4 (tidegate.yaml:2)"), "{told:?}");
    assert!(told.stdout.contains("open_for 30s (the default)"), "{told:?}");
    assert!(told.stderr.contains("this is what the config says"), "{told:?}");
    let told = run(program(&here).args(["explain", "--model", "r"]));
    assert!(told.stdout.starts_with("would go to  alpha/m (tier 0, route r)"), "{told:?}");
}

#[test]
fn an_errors_code_has_a_page_offline() {
    let mut command = program(&folder("operator-code"));
    let told = run(command.args(["explain", "no_healthy_backend"]));
    assert_eq!((told.code, told.stderr.as_str()), (Some(0), ""));
    assert!(told.stdout.starts_with("no_healthy_backend, status 503\n"), "{told:?}");
    assert!(told.stdout.contains("What to do: "), "{told:?}");
}

#[test]
fn a_watched_gateway_is_followed_through_a_break_until_ctrl_c() {
    let bed = Bed::start("watch");
    let mut command = bed.command(&["status", "--watch", "--json"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let mut next = || -> Value {
        let line = lines.next().expect("a line comes").expect("it is text");
        serde_json::from_str(&line).expect("a line of JSON")
    };
    let first = next();
    assert_eq!(first["event"], "snapshot");
    assert_eq!(first["data"]["verdict"]["level"], "degraded");
    bed.gate.post("/v1/chat/completions", &chat("r", false));
    loop {
        let event = next();
        if event["event"] == "decision" || event["event"] == "tick" {
            break;
        }
    }
    // The gateway goes away: the stream breaks, and the program says so and stays.
    let mut talk = BufReader::new(child.stderr.take().expect("it is piped")).lines();
    drop(bed);
    let said = talk.next().expect("a line comes").expect("it is text");
    assert!(said.starts_with("stale since "), "{said}");
    let id = child.id().to_string();
    let killed = Command::new("kill").args(["-INT", &id]).status();
    assert!(killed.is_ok_and(|status| status.success()), "kill is there");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
}

//! Conversations with real programs, through a real warden.
//!
//! The warden is this test binary itself: [`plays_the_warden`] is what it runs. The programs are
//! small Python scripts. What the test harness prints on stdout before them is no message, and is
//! dropped like any other such line.

use std::ffi::OsString;
use std::future::Future;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use rustix::process::{Pid, Signal, kill_process};
use tidegate_config::file::{LogFormat, LogLevel};
use tidegate_config::secret::{ProcessEnvironment, Secret, SecretRef};
use tidegate_core::outcome::OutcomeKind;
use tidegate_gateway::test_bed::log_lines;
use tidegate_mcp::cause::{Cause, Delivery};
use tidegate_mcp::message::LARGE;
use tokio::runtime::Builder;
use tokio::task::LocalSet;
use tokio::time::timeout;

use super::*;
use crate::transport::{ConnectionEvent, Events, MESSAGE_MAX};

/// A role, not a claim: with arguments after `--`, this process stands between a test and a
/// program.
#[test]
fn plays_the_warden() {
    let argv: Vec<OsString> = std::env::args_os().skip_while(|it| it != "--").skip(1).collect();
    if !argv.is_empty() {
        let is_started = crate::child::stand_by(&argv).is_ok();
        std::process::exit(if is_started { 0 } else { 5 });
    }
}

/// A secret with this value.
pub(super) fn secret(value: &str) -> Secret {
    SecretRef::parse(value)
        .and_then(|reference| reference.resolve(&ProcessEnvironment, Path::new(".")))
        .expect("a literal")
}

fn settings(command: &[&str]) -> StdioSettings {
    // Two threads, or the harness would print the test's name in front of the first line.
    const ROLE: [&str; 6] = [
        "--exact",
        "stdio::tests::plays_the_warden",
        "--nocapture",
        "--quiet",
        "--test-threads=2",
        "--",
    ];
    let binary = std::env::current_exe().expect("this process has a program");
    let warden = std::iter::once(binary.into_os_string()).chain(ROLE.map(OsString::from));
    StdioSettings {
        name: "github".into(),
        command: command.iter().map(|&it| it.to_owned()).collect(),
        env: vec![("TOKEN".to_owned(), secret("hunter2!"))],
        warden: warden.collect(),
        answer_max: std::rc::Rc::new(std::cell::Cell::new(MESSAGE_MAX)),
    }
}

fn python(script: &str) -> StdioSettings {
    settings(&["python3", "-uc", script])
}

/// Runs a test as the MCP thread would. What it logs is returned.
fn run(test: impl Future<Output = ()>) -> Vec<String> {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    log_lines(LogFormat::Text, LogLevel::Debug, || {
        let limit = Duration::from_secs(60);
        let test = async { timeout(limit, test).await.expect("nothing hangs") };
        LocalSet::new().block_on(&runtime, test);
    })
}

async fn open(settings: &StdioSettings) -> (StdioTransport, Events, Children) {
    let children = Children::up_to(1);
    let (transport, events) = start(settings, &children).await.expect("it starts");
    (transport, events, children)
}

/// Starts a program and waits until it runs.
async fn start(
    settings: &StdioSettings,
    children: &Children,
) -> Result<(StdioTransport, Events), Failure> {
    let (teller, mut events) = EventSender::alone();
    let transport = StdioTransport::open(settings, children, teller)?;
    match events.recv().await {
        Some(ConnectionEvent::Opened) => Ok((transport, events)),
        Some(ConnectionEvent::OpenFailed(failure)) => Err(failure),
        other => panic!("{other:?} instead of the beginning"),
    }
}

/// The next message, as text.
async fn message(events: &mut Events) -> String {
    match events.recv().await {
        Some(ConnectionEvent::Message { bytes, call: None }) => {
            String::from_utf8(bytes.to_vec()).expect("a message is UTF-8")
        }
        other => panic!("no message but {other:?}"),
    }
}

/// Waits for the end of the conversation.
async fn closed(events: &mut Events) -> Failure {
    loop {
        match events.recv().await {
            Some(ConnectionEvent::Closed { failure, .. }) => return failure,
            Some(_) => {}
            None => panic!("no end was told"),
        }
    }
}

/// Waits until nothing runs any more.
async fn until_none(children: &Children) {
    while children.running() > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// None of the processes that a program named is left, not even as a zombie.
fn assert_gone(numbers: &str) {
    for number in numbers.trim_matches(['[', ']']).split(", ") {
        assert!(!Path::new("/proc").join(number).exists(), "{number} is left");
    }
}

const ECHO: &str = "
import sys
for line in sys.stdin: sys.stdout.write(line)
";

#[test]
fn messages_pass_in_order_and_each_is_one_line() {
    run(async {
        let (transport, mut events, children) = open(&python(ECHO)).await;
        transport.request(1, Bytes::from_static(b"{\"id\":1,\r\n\t\"method\":\"a\\nb\"}"));
        assert_eq!(message(&mut events).await, "{\"id\":1,  \t\"method\":\"a\\nb\"}");
        for id in 2..100 {
            transport.request(id, format!("{{\"id\":{id}}}").into());
        }
        transport.notice(Bytes::from_static(b"{}"));
        for id in 2..100 {
            assert_eq!(message(&mut events).await, format!("{{\"id\":{id}}}"));
        }
        assert_eq!(message(&mut events).await, "{}");
        assert_eq!(children.running(), 1);
        transport.close().await;
        assert_eq!(children.running(), 0);
    });
}

#[test]
fn a_large_message_passes_both_ways() {
    run(async {
        let (transport, mut events, _) = open(&python(ECHO)).await;
        let large = format!("{{\"a\":\"{}\"}}", "x".repeat(MESSAGE_MAX - 8));
        assert_eq!(large.len(), MESSAGE_MAX);
        transport.request(1, large.clone().into());
        assert!(message(&mut events).await == large);
    });
}

#[test]
fn a_large_answer_is_taken_out_of_its_line_and_keeps_its_place() {
    let log = run(async {
        let (transport, mut events, _) = open(&python(ECHO)).await;
        let answer = format!(r#"{{"jsonrpc":"2.0","id":7,"result":"{}"}}"#, "x".repeat(LARGE));
        transport.request(1, format!("{{{}", "y".repeat(LARGE)).into());
        transport.request(7, answer.into());
        transport.request(2, Bytes::from_static(b"{}"));
        let Some(ConnectionEvent::LargeAnswer(answer)) = events.recv().await else {
            panic!("a large answer comes first");
        };
        assert_eq!((answer.call, answer.outcome.map(|it| it.len())), (7, Ok(LARGE + 2)));
        assert_eq!(message(&mut events).await, "{}");
    });
    assert!(log.concat().contains("line={yyy"), "garbage is told, cut short: {log:?}");
}

#[test]
fn garbage_on_stdout_costs_only_itself() {
    let log = run(async {
        let (transport, mut events, _) = open(&python(
            "
import sys
print('Listening, token is hunter2!')
print('{\"half\": ')
print('17')
print('')
sys.stdout.buffer.write(b'{\"bad\": \"\\xff\"}\\n')
print('{\"id\":1}')
for _ in range(1000): print('noise')
print('{\"id\":2}', end='')
",
        ))
        .await;
        assert_eq!(message(&mut events).await, "{\"id\":1}");
        assert_eq!(message(&mut events).await, "{\"id\":2}");
        assert_eq!(closed(&mut events).await.cause, Cause::ProcessExited);
        drop(transport);
    });
    let told: Vec<&String> = log.iter().filter(|line| line.contains("no message")).collect();
    assert!((1..10).contains(&told.len()), "{log:?}");
    assert!(!log.concat().contains("hunter2"), "{log:?}");
}

#[test]
fn an_answer_that_is_too_long_ends_its_own_call_only() {
    run(async {
        let (_transport, mut events, _) = open(&python(
            "
print('{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"text\":\"' + 'x' * 20_000_000 + '\"}}')
print('y' * 20_000_000)
print('{\"id\":8}')
input()
",
        ))
        .await;
        let Some(ConnectionEvent::Unanswered { call: 7, failure }) = events.recv().await else {
            panic!("the call is told to be over");
        };
        assert_eq!((failure.cause, failure.delivery), (Cause::TooLarge, Delivery::Maybe));
        assert_eq!(message(&mut events).await, "{\"id\":8}");
    });
}

#[test]
fn a_flood_of_stderr_blocks_neither_the_program_nor_the_conversation() {
    let log = run(async {
        let (transport, mut events, _) = open(&python(
            "
import sys
for _ in range(500): sys.stderr.write(('\\x1b[31mtoken is hunter2! ' + 'x' * 80 + '\\n') * 1000)
sys.stderr.write('y' * 1_000_000 + '\\n')
sys.stderr.write('last words\\n')
print('{\"id\":1}')
input()
",
        ))
        .await;
        assert_eq!(message(&mut events).await, "{\"id\":1}");
        while !transport.shared.last_words().ends_with("last words\n") {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let words = transport.shared.last_words();
        assert!(words.contains("token is <redacted> xxx") && words.len() < 200_000);
        assert!(!words.contains('\u{1b}'));
        transport.close().await;
    });
    let said = log.iter().filter(|line| line.contains("program says  ")).count();
    assert!((20..1000).contains(&said), "{said} lines");
    assert!(log.iter().any(|line| line.contains("says more than is told")), "{log:?}");
    assert!(!log.concat().contains("hunter2"));
}

#[test]
fn an_exit_ends_the_conversation_and_frees_the_place() {
    let log = run(async {
        let script = "import sys; input(); sys.exit('out of memory')";
        let (transport, mut events, children) = open(&python(script)).await;
        transport.request(1, Bytes::from_static(b"{}"));
        let failure = closed(&mut events).await;
        let expected = Failure {
            delivery: Delivery::Maybe,
            ..Failure::of(Cause::ProcessExited, OutcomeKind::Transport)
        };
        assert_eq!(failure, expected);
        assert_eq!(children.running(), 0);
        assert!(events.recv().await.is_none());
        // Too late, and harmless.
        transport.request(2, Bytes::from_static(b"{}"));
    });
    let line = log.iter().find(|line| line.contains("ended by itself")).expect("it is told");
    assert!(line.contains("server=github code=1 last_line=\"out of memory\""), "{line}");
}

#[test]
fn twenty_crashes_leave_no_zombie() {
    run(async {
        let settings =
            python("import os; print([os.getpid(), os.getppid()]); os.kill(os.getpid(), 11)");
        for _ in 0..20 {
            let (_transport, mut events, _) = open(&settings).await;
            let numbers = message(&mut events).await;
            closed(&mut events).await;
            assert_gone(&numbers);
        }
    });
}

#[test]
fn a_program_that_cannot_be_found_is_told_with_what_helps() {
    let log = run(async {
        let children = Children::up_to(1);
        let opened = start(&settings(&["no-such-server"]), &children).await;
        let failure = opened.map(drop).expect_err("there is no such program");
        assert_eq!(failure, Failure::of(Cause::CannotStart, OutcomeKind::Transport));
        assert_eq!(children.running(), 0);
    });
    let told = log.iter().any(|line| {
        line.contains("program=no-such-server") && line.contains("add its folder to PATH")
    });
    assert!(told, "{log:?}");
}

#[test]
fn a_warden_that_does_not_answer_as_one_is_no_start() {
    run(async {
        let children = Children::up_to(1);
        for warden in ["true", "/no/such/warden"] {
            let settings = StdioSettings { warden: vec![warden.into()], ..settings(&["cat"]) };
            let opened = start(&settings, &children).await;
            assert_eq!(opened.map(drop).expect_err("no warden").cause, Cause::CannotStart);
        }
        assert_eq!(children.running(), 0);
    });
}

#[test]
fn s38_nothing_of_our_environment_is_handed_on_but_the_list() {
    run(async {
        let script = "import json, os; print(json.dumps(dict(os.environ)))";
        let (_transport, mut events, _) = open(&python(script)).await;
        let environment = message(&mut events).await;
        let environment: serde_json::Value =
            serde_json::from_str(&environment).expect("what the program printed");
        assert_eq!(environment["TOKEN"], "hunter2!");
        assert!(environment["PATH"].is_string());
        // Cargo sets some for every test; they stand for the keys of a gateway.
        assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
        assert_eq!(environment.get("CARGO_MANIFEST_DIR"), None);
    });
}

#[test]
fn of_forty_programs_thirty_two_run_and_eight_are_refused() {
    run(async {
        let children = Children::up_to(32);
        let cat = settings(&["cat"]);
        let mut running = Vec::new();
        let mut refused = 0;
        for _ in 0..40 {
            match start(&cat, &children).await {
                Ok(conversation) => running.push(conversation),
                Err(failure) => {
                    let expected = Failure::of(Cause::TooManyChildren, OutcomeKind::Cancelled);
                    assert_eq!(failure, expected);
                    refused += 1;
                }
            }
        }
        assert_eq!((running.len(), refused, children.running()), (32, 8, 32));
        for (transport, events) in &mut running {
            transport.request(1, Bytes::from_static(b"{}"));
            assert_eq!(message(events).await, "{}");
        }
        drop(running);
        until_none(&children).await;
    });
}

#[test]
fn a_program_that_does_not_read_ends_its_conversation_and_what_was_queued_was_not_delivered() {
    run(async {
        let (transport, mut events, _) = open(&python("import signal; signal.pause()")).await;
        let large = Bytes::from(format!("{{\"a\":\"{}\"}}", "x".repeat(1 << 20)));
        for call in 0..100 {
            transport.request(call, large.clone());
        }
        let mut undelivered = 0;
        loop {
            match events.recv().await.expect("the end is told") {
                ConnectionEvent::Unanswered { failure, .. } => {
                    let expected = Failure::of(Cause::ConnectionBroken, OutcomeKind::Transport);
                    assert_eq!(failure, expected);
                    undelivered += 1;
                }
                ConnectionEvent::Closed { failure, .. } => {
                    assert_eq!(failure.delivery, Delivery::Maybe);
                    break;
                }
                other => panic!("it says nothing, but {other:?}"),
            }
        }
        assert!((60..64).contains(&undelivered), "{undelivered}");
    });
}

/// Says its number and its child's, and ends with neither input nor TERM.
const STUBBORN: &str = "
import os, signal, subprocess
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen(['sleep', '60'])
print([os.getpid(), child.pid])
while True: signal.pause()
";

#[test]
fn dropping_a_transport_kills_the_program_and_its_children_at_once() {
    run(async {
        let (transport, mut events, children) = open(&python(STUBBORN)).await;
        let numbers = message(&mut events).await;
        drop(transport);
        // Less than a stubborn program has when it is asked to end.
        timeout(Duration::from_secs(3), until_none(&children)).await.expect("at once");
        assert_gone(&numbers);
        assert!(events.recv().await.is_none());
    });
}

#[test]
fn a_killed_warden_takes_the_program_and_its_children_with_it() {
    let log = run(async {
        let (_transport, mut events, children) = open(&python(STUBBORN)).await;
        let numbers = message(&mut events).await;
        let program = numbers.trim_start_matches('[').split(',').next().expect("a number");
        let stat = std::fs::read_to_string(format!("/proc/{program}/stat")).expect("it runs");
        let warden = stat.split(' ').nth(3).and_then(|it| it.parse().ok()).and_then(Pid::from_raw);
        kill_process(warden.expect("its parent"), Signal::KILL).expect("it runs");
        assert_eq!(closed(&mut events).await.cause, Cause::ProcessExited);
        assert_eq!(children.running(), 0);
        // Whoever adopts orphans here reaps them in its own time.
        let is_running = |number: &str| {
            let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
            !stat.is_empty() && !stat.contains(") Z ")
        };
        while numbers.trim_matches(['[', ']']).split(", ").any(is_running) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(log.iter().any(|line| line.contains("ended by itself")), "{log:?}");
}

#[test]
fn a_shortage_of_ours_does_not_speak_against_the_server() {
    let refused = |error: Errno| Shared::of(&settings(&["cat"])).cannot_start(&error.into());
    for error in [Errno::MFILE, Errno::AGAIN] {
        assert_eq!(refused(error), Failure::of(Cause::Shortage, OutcomeKind::Cancelled));
    }
    assert_eq!(refused(Errno::ACCESS).cause, Cause::CannotStart);
}

#[test]
fn closing_lets_a_program_end_and_kills_one_that_does_not() {
    let log = run(async {
        let patient = "
import sys
for line in sys.stdin: pass
sys.stderr.write('saved\\n')
";
        let (transport, events, children) = open(&python(patient)).await;
        drop(events);
        transport.close().await;
        assert_eq!(children.running(), 0);
        let (transport, mut events, children) = open(&python(STUBBORN)).await;
        let numbers = message(&mut events).await;
        transport.close().await;
        assert_eq!(children.running(), 0);
        assert_gone(&numbers);
    });
    assert!(log.iter().any(|line| line.contains("line=saved")), "{log:?}");
    assert!(log.iter().any(|line| line.contains("was ended  server=github code=0")), "{log:?}");
    assert!(log.iter().any(|line| line.contains("was ended  server=github signal=9")), "{log:?}");
}

#[test]
fn giving_up_while_a_program_starts_leaves_nothing() {
    run(async {
        let children = Children::up_to(1);
        let settings = python(STUBBORN);
        let open = start(&settings, &children);
        assert!(timeout(Duration::ZERO, open).await.is_err());
        assert_eq!(children.running(), 1);
        until_none(&children).await;
    });
}

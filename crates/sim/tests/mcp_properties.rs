//! Random programs of sessions, calls and outages keep the rules, whatever happens when.
//!
//! The run itself checks that no call without a hint reaches its server twice (I10), that no
//! session reaches a server it excludes, that permits return and breakers keep their invariants;
//! a broken one is a failure of the report.

use std::collections::BTreeSet;

use proptest::prelude::*;
use tidegate_config::source::Source;
use tidegate_sim::{
    mcp::trace::{ErrorWord, McpTrace},
    scenario::{Report, load},
};

/// The longest that a call may take, in milliseconds: `connect_timeout` while its server is still
/// connecting, then `call_timeout`.
const CALL_MAX: u64 = 5_000 + 60_000;

#[derive(Clone, Debug)]
enum Op {
    /// Opens a session that is closed, closes one that is open.
    Turn(usize),
    Call {
        session: usize,
        tool: usize,
        at_once: u32,
    },
    /// Calls whose server dies under them and is back a little later.
    Accident {
        session: usize,
        tool: usize,
        at_once: u32,
        at: u64,
        back: u64,
    },
    Look(usize),
    Deed {
        what: usize,
        server: usize,
        after: u64,
    },
    Advance(u64),
}

const SESSIONS: [&str; 3] = ["s", "t", "u"];
const SERVERS: [&str; 2] = ["a", "b"];
const TOOLS: [&str; 3] = ["a_once", "a_again", "b_once"];

fn op() -> impl Strategy<Value = Op> {
    let after = prop_oneof![Just(0), 1..5000_u64];
    let advance = prop_oneof![1..100_u64, 1000..40_000_u64, 100_000..4_000_000_u64];
    prop_oneof![
        2 => (0..3_usize).prop_map(Op::Turn),
        4 => (0..3_usize, 0..3_usize, 1..4_u32)
            .prop_map(|(session, tool, at_once)| Op::Call { session, tool, at_once }),
        2 => (0..3_usize, 0..3_usize, 1..4_u32, 1..2000_u64, 0..20_u64).prop_map(
            |(session, tool, at_once, at, back)| Op::Accident { session, tool, at_once, at, back },
        ),
        1 => (0..3_usize).prop_map(Op::Look),
        4 => (0..6_usize, 0..2_usize, after)
            .prop_map(|(what, server, after)| Op::Deed { what, server, after }),
        2 => advance.prop_map(Op::Advance),
    ]
}

/// A program in which only open sessions are used.
fn program(visibility: &str, ops: &[Op]) -> String {
    let mut text = format!(
        "visibility: {visibility}\nservers:\n\
         \x20 a: {{ tools: [once, again], idempotent: [again], keepalive: {{ quiet: 10m }} }}\n\
         \x20 b: {{ tools: [once] }}\n\
         health: {{ failure_threshold: 2, open_for: 20s, recovery_threshold: 2 }}\nprogram:\n\
         \x20 - {{ advance: 1ms }}\n"
    );
    let mut open = BTreeSet::new();
    for op in ops {
        let step = match op {
            Op::Turn(session) if open.insert(*session) => format!("open: {}", SESSIONS[*session]),
            Op::Turn(session) => {
                open.remove(session);
                format!("close: {}", SESSIONS[*session])
            }
            Op::Call { session, .. } | Op::Accident { session, .. } | Op::Look(session)
                if !open.contains(session) =>
            {
                continue;
            }
            Op::Call { session, tool, at_once } => call(*session, *tool, *at_once),
            Op::Accident { session, tool, at_once, at, back } => {
                let server = &TOOLS[*tool][..1];
                text.push_str(&format!(
                    "  - {{ heal: {server} }}\n\
                     \x20 - {{ slow: {{ server: {server}, by: 1500ms }} }}\n\
                     \x20 - {{ crash: {server}, after: {at}ms }}\n\
                     \x20 - {{ heal: {server}, after: {}ms }}\n",
                    at + back
                ));
                call(*session, *tool, *at_once)
            }
            Op::Look(session) => format!("list: {}", SESSIONS[*session]),
            Op::Advance(millis) => format!("advance: {millis}ms"),
            Op::Deed { what, server, after } => {
                let server = SERVERS[*server];
                let deed = match what {
                    0 => format!("crash: {server}"),
                    1 => format!("hang: {server}"),
                    2 => format!("lose_session: {server}"),
                    3 => format!("slow: {{ server: {server}, by: 1500ms }}"),
                    _ => format!("heal: {server}"),
                };
                format!("{deed}, after: {after}ms")
            }
        };
        text.push_str(&format!("  - {{ {step} }}\n"));
    }
    text
}

/// The same program with the two servers as one group.
fn grouped(program: &str) -> String {
    let program = program
        .replace("b: { tools: [once] }", "b: { tools: [once, again], idempotent: [again] }")
        .replace("\nprogram:", "\nreplicas: { g: [a, b] }\nprogram:");
    TOOLS.iter().fold(program, |text, tool| text.replace(tool, &tool[2..]))
}

fn call(session: usize, tool: usize, at_once: u32) -> String {
    let (session, tool) = (SESSIONS[session], TOOLS[tool]);
    format!("call: {{ session: {session}, tool: {tool}, at_once: {at_once} }}")
}

fn run(text: &str, seed: u64) -> McpTrace {
    let (scenario, problems) = load(&Source::new("t.yaml", text));
    let report = scenario.map(|it| it.run(seed));
    let Some(Report::Mcp(report)) = report else { panic!("{problems:?}\n{text}") };
    assert_eq!(report.failures(), [], "{text}");
    report.trace().clone()
}

/// Found by a random program: the server hung while it was to join, and nothing woke the join.
#[test]
fn a_session_that_ends_leaves_no_server_on_its_way_to_it() {
    let text = "visibility: live
servers:
  a: { tools: [once, again], idempotent: [again], keepalive: { quiet: 10m } }
  b: { tools: [once] }
health: { failure_threshold: 2, open_for: 20s, recovery_threshold: 2 }
program:
  - { advance: 1ms }
  - { open: t }
  - { hang: a, after: 0ms }
  - { advance: 786243ms }
  - { close: t }
  - { heal: b, after: 1ms }
  - { crash: b, after: 0ms }
  - { open: s }
  - { call: { session: s, tool: a_once, at_once: 1 } }
";
    run(text, 2);
}

/// Found by a random program: the server is slow to connect, and hangs once the call is there.
#[test]
fn a_call_that_waited_for_its_server_to_connect_has_its_whole_time_after_that() {
    for (replicas, tool) in [("", "a_once"), ("replicas: { g: [a, b] }\n", "once")] {
        let text = format!(
            "servers:
  a: {{ tools: [once] }}
  b: {{ tools: [once] }}
{replicas}program:
  - {{ advance: 1ms }}
  - {{ slow: {{ server: a, by: 1500ms }}, after: 0ms }}
  - {{ advance: 298499ms }}
  - {{ hang: a, after: 3051ms }}
  - {{ open: s }}
  - {{ call: {{ session: s, tool: {tool}, at_once: 1 }} }}
"
        );
        let trace = run(&text, 0);
        let calls: Vec<_> = trace.steps.iter().flat_map(|step| &step.calls).collect();
        assert_eq!(calls.len(), 1, "{text}");
        assert_eq!(calls[0].cause.as_deref(), Some("timed out after 60s"), "{calls:?}");
        assert!((60_001..=CALL_MAX).contains(&calls[0].took_ms), "{calls:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_program_breaks_a_rule(
        live in any::<bool>(),
        ops in prop::collection::vec(op(), 1..60),
        seed in 0..4_u64,
    ) {
        let text = program(if live { "live" } else { "session" }, &ops);
        let trace = run(&text, seed);
        let mut delivered = 0;
        for step in &trace.steps {
            for call in &step.calls {
                delivered += u64::from(call.delivered);
                let is_once = step.what.contains("_once");
                let most = if is_once { 1 } else { 2 };
                prop_assert!(call.delivered <= most, "I10: {call:?}\n{text}");
                if call.error.is_none() {
                    prop_assert!(call.delivered >= 1, "answered by nobody: {call:?}\n{text}");
                }
                if call.error == Some(ErrorWord::ResultUnknown) {
                    prop_assert!(is_once, "a hint makes it known: {call:?}\n{text}");
                }
                prop_assert!(call.took_ms <= CALL_MAX, "longer than its timeout: {call:?}\n{text}");
            }
        }
        let requests: u64 = trace.totals.values().map(|it| it.requests).sum();
        prop_assert_eq!(requests, delivered);
        let again = run(&text, seed);
        prop_assert_eq!(format!("{trace:?}"), format!("{again:?}"));
    }

    #[test]
    fn no_program_breaks_a_rule_of_a_group(
        live in any::<bool>(),
        ops in prop::collection::vec(op(), 1..60),
        seed in 0..4_u64,
    ) {
        let text = grouped(&program(if live { "live" } else { "session" }, &ops));
        let trace = run(&text, seed);
        let mut delivered = 0;
        for step in &trace.steps {
            for call in &step.calls {
                delivered += u64::from(call.delivered);
                let is_once = step.what.contains("once");
                let most = if is_once { 1 } else { 4 };
                prop_assert!(call.delivered <= most, "I10: {call:?}\n{text}");
                if call.error == Some(ErrorWord::ResultUnknown) {
                    prop_assert!(is_once, "a hint makes it known: {call:?}\n{text}");
                }
                let members: BTreeSet<_> = call.attempts.iter().map(|it| &it.server).collect();
                prop_assert_eq!(members.len(), call.attempts.len(), "a member twice: {}", text);
                prop_assert!(call.took_ms <= CALL_MAX, "longer than its timeout: {call:?}\n{text}");
            }
        }
        let requests: u64 = trace.totals.values().map(|it| it.requests).sum();
        prop_assert_eq!(requests, delivered);
    }

    #[test]
    fn calls_that_meet_a_lost_session_share_one_reinitialise(
        count in 1..60_u32,
        delay in 0..900_u64,
    ) {
        let text = format!(
            "servers: {{ a: {{ tools: [x] }} }}\nprogram:\n  - {{ open: s }}\n\
             \x20 - {{ slow: {{ server: a, by: {delay}ms }} }}\n  - {{ lose_session: a }}\n\
             \x20 - call: {{ session: s, tool: x, at_once: {count} }}\n    expect: {{ ok: true }}\n\
             expect: {{ reinitialised: {{ a: 1 }}, requests: {{ a: {count} }} }}\n"
        );
        run(&text, 0);
    }

    #[test]
    fn a_server_that_was_unhealthy_at_open_is_never_reached(
        ops in prop::collection::vec(op(), 1..40),
    ) {
        // `a` is excluded from every session: it is down until all have opened.
        let mut text = program("session", &[]);
        text.push_str("  - { crash: a }\n  - { open: s }\n  - { open: t }\n  - { open: u }\n");
        text.push_str("  - { heal: a }\n");
        let rest = program("session", &[&[Op::Turn(0), Op::Turn(1), Op::Turn(2)], &*ops].concat());
        // Sessions that open again later may have it: here nobody does.
        let steps = rest.lines().skip_while(|it| *it != "program:").skip(5);
        for step in steps.filter(|it| !it.contains("open:") && !it.contains("close:")) {
            text.push_str(step);
            text.push('\n');
        }
        let trace = run(&text, 0);
        prop_assert_eq!(trace.totals["a"].requests, 0);
        prop_assert_eq!(trace.totals["a"].reinitialised, 0);
    }
}

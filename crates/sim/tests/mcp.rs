//! MCP scenarios: the built-in ones hold and can fail, and the rules of sessions, calls and
//! keepalives show in small programs.

use tidegate_config::{diagnostic::Diagnostic, source::Source};
use tidegate_sim::{
    builtin,
    mcp::trace::{CallTrace, ErrorWord, McpTrace, schema_text},
    scenario::{Format, RenderOptions, Report, Scenario, load},
};

/// Two servers, two failures open a breaker for 30 s, one trial closes it; then the program.
fn two(program: &str) -> String {
    format!(
        "servers:\n  a: {{ tools: [write, read], read_only: [read] }}\n  b: {{ tools: [look] }}\n\
         health: {{ failure_threshold: 2, open_for: 30s, recovery_threshold: 1 }}\n\
         program:\n{program}"
    )
}

/// The scenario of a text that has no error.
fn sound(text: &str) -> Scenario {
    let (scenario, problems) = load(&Source::new("t.yaml", text));
    assert!(!problems.iter().any(Diagnostic::is_error), "{text}\n{problems:?}");
    scenario.expect("a file without an error is a scenario")
}

/// The trace of a text whose expectations hold.
fn run(text: &str) -> McpTrace {
    let Report::Mcp(report) = sound(text).run(0) else { panic!("not an MCP scenario") };
    assert_eq!(report.failures(), [], "{text}\n{}", report.render(&RenderOptions::default()));
    report.trace().clone()
}

/// The calls of the last step.
fn last_calls(trace: &McpTrace) -> &[CallTrace] {
    &trace.steps.last().expect("a step").calls
}

fn examples() -> impl Iterator<Item = (&'static builtin::Builtin, Scenario)> {
    let scenario =
        |it: &'static builtin::Builtin| (it, it.scenario().expect("an example is sound"));
    builtin::all().map(scenario).filter(|(_, it)| matches!(it, Scenario::Mcp(_)))
}

#[test]
fn every_mcp_example_says_what_it_shows_and_passes_with_fifty_seeds() {
    assert_eq!(examples().count(), 11);
    for (builtin, scenario) in examples() {
        assert_eq!(scenario.name(), builtin.name);
        assert!(!scenario.about().is_empty(), "{}", builtin.name);
        assert_eq!(load(&Source::new(builtin.name, builtin.text)).1, [], "{}", builtin.name);
        for seed in 0..50 {
            let report = scenario.run(seed);
            assert_eq!(report.failures(), [], "{}", report.replay());
        }
    }
}

/// Behaviour that is a little wrong is imitated by another setting or program.
#[test]
fn an_mcp_example_fails_when_the_behaviour_is_another() {
    let wrong = [
        ("unhealthy-at-open", "health:", "visibility: live\nhealth:"),
        ("recovered-at-open", "advance: 29999ms", "advance: 30s"),
        ("crash-mid-session", "advance: 31s", "advance: 29s"),
        ("keepalive-disable", "failures: 3", "failures: 4"),
        ("session-lost", ", read_only: [search_repos]", ""),
        ("replica-dies", "search: [search-a, search-b]", "search: [search-b, search-a]"),
        ("era-changes", "era: { server: github, is: stateless }", "crash: github"),
        ("stateless-client", "advance: 30s", "advance: 29s"),
        ("parked-question", "asks: [merge]", "asks: []"),
        ("probe-returns", "every: 10s", "every: 0s"),
        ("waiting-call", "max_calls: 1", "max_calls: 4"),
    ];
    for (name, from, to) in wrong {
        let text = builtin::get(name).expect("an example").text;
        assert!(text.contains(from), "{name} has no `{from}`");
        let scenario = sound(&text.replacen(from, to, 1));
        assert_ne!(scenario.run(0).failures(), [], "{name} with `{to}`");
    }
    let tested: Vec<&str> = wrong.iter().map(|(name, ..)| *name).collect();
    let names: Vec<&str> = examples().map(|(builtin, _)| builtin.name).collect();
    assert_eq!(tested, names);
}

#[test]
fn the_same_seed_gives_the_same_bytes_in_every_format() {
    for (_, scenario) in examples() {
        for format in [Format::Graph, Format::Table, Format::Json] {
            let options = RenderOptions { format, ..RenderOptions::default() };
            assert_eq!(scenario.run(7).render(&options), scenario.run(7).render(&options));
        }
    }
}

#[test]
fn the_pictures_of_a_session_that_outlives_a_crash() {
    let scenario = builtin::get("crash-mid-session").and_then(|it| it.scenario());
    let report = scenario.expect("an example").run(0);
    for (name, format, ascii) in [
        ("mcp_graph", Format::Graph, false),
        ("mcp_graph_ascii", Format::Graph, true),
        ("mcp_table", Format::Table, false),
        ("mcp_json", Format::Json, false),
    ] {
        let options = RenderOptions { format, ascii, ..RenderOptions::default() };
        insta::assert_snapshot!(name, report.render(&options));
    }
}

#[test]
fn the_schema_of_the_report_is_the_committed_one() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/sim-mcp.schema.json");
    let kept = std::fs::read_to_string(path).expect("the schema is in docs/");
    assert!(kept == schema_text(), "stale: run `cargo xtask docs`");
}

#[test]
fn one_server_keeps_its_tools_names_and_two_have_prefixes() {
    run(
        "servers: { a: { tools: [z, x] } }\nprogram:\n  - { open: s, expect: { tools: [x, z] } }\n",
    );
    run(&two("  - { open: s, expect: { tools: [a_read, a_write, b_look] } }\n"));
}

/// A group `g` of two servers that offer the same, and a server beside it.
fn grouped(program: &str) -> String {
    let two = "{ tools: [write, read], read_only: [read] }";
    format!(
        "servers:\n  a: {two}\n  b: {two}\n  c: {{ tools: [look] }}\nreplicas: {{ g: [a, b] }}\n\
         health: {{ failure_threshold: 2, open_for: 30s, recovery_threshold: 1 }}\n\
         program:\n{program}"
    )
}

#[test]
fn a_group_is_one_server_to_clients_and_its_members_are_none() {
    run(&grouped("  - { open: s, expect: { tools: [c_look, g_read, g_write] } }\n"));
    run("servers: { a: { tools: [x] }, b: { tools: [x] } }\nreplicas: { g: [a, b] }\n\
         program:\n  - { open: s, expect: { tools: [x] } }\n");
}

#[test]
fn a_session_has_one_connection_in_a_group_until_it_needs_another() {
    let trace = run(&grouped(
        "  - { open: s }\n  - { crash: b }\n\
         \x20 - { call: { session: s, tool: g_write }, expect: { by: a } }\n\
         expect:\n  health: { b: healthy }\n",
    ));
    assert_eq!(trace.totals["b"].requests, 0);
}

#[test]
fn a_safe_call_to_a_hung_member_takes_its_time_and_the_next_ones_go_on_elsewhere() {
    let trace = run(&grouped(
        "  - { open: s }\n  - { hang: a }\n\
         \x20 - { call: { session: s, tool: g_read, at_once: 2 }, expect: { error: \
         backend_unavailable, names: g, cause: timed out after 60s } }\n\
         \x20 - { call: { session: s, tool: g_read }, expect: { by: b } }\n\
         expect:\n  breaker: { a: open, b: closed }\n",
    ));
    assert_eq!(last_calls(&trace)[0].took_ms, 0);
}

#[test]
fn a_session_opens_with_a_group_as_long_as_one_member_can_be_reached() {
    run(&grouped(
        "  - { crash: a }\n  - { open: s, expect: { tools: [c_look, g_read, g_write] } }\n\
         \x20 - { crash: b }\n  - { open: t, expect: { tools: [c_look] } }\n\
         \x20 - { call: { session: s, tool: g_write }, expect: { error: backend_unavailable } }\n",
    ));
}

#[test]
fn a_reload_that_takes_a_member_away_leaves_the_group() {
    run(&grouped(
        "  - { open: s }\n  - { call: { session: s, tool: g_read }, expect: { by: a } }\n\
         \x20 - reload: { servers: { b: { tools: [write, read], read_only: [read] }, \
         c: { tools: [look] } } }\n\
         \x20 - { call: { session: s, tool: g_read }, expect: { by: b } }\n\
         \x20 - { list: s, expect: { tools: [c_look, g_read, g_write] } }\n",
    ));
}

#[test]
fn a_hung_server_delays_a_session_by_half_a_second_and_stays_listed() {
    let trace = run(&two(
        "  - { hang: a }\n  - { open: s, expect: { tools: [a_read, a_write, b_look] } }\n\
         \x20 - { advance: 10s }\n  - { list: s, expect: { tools: [a_read, a_write, b_look] } }\n\
         expect:\n  breaker: { a: closed }\n  requests: { a: 0 }\n",
    ));
    assert_eq!(trace.steps[1].at_ms, 500);
}

#[test]
fn a_server_whose_breaker_a_slow_connect_has_opened_is_waited_for_by_nobody() {
    let trace = run(&two("  - { hang: a }\n  - { open: s }\n  - { open: t }\n\
         \x20 - { advance: 9s }\n  - { open: u, expect: { tools: [b_look] } }\n"));
    assert_eq!((trace.steps[2].at_ms, trace.steps[4].at_ms), (1000, 10_000));
}

#[test]
fn a_call_on_a_hung_server_takes_its_timeout_and_no_longer() {
    let trace = run(&two(
        "  - { open: s }\n  - { hang: a }\n  - { call: { session: s, tool: a_write } }\n",
    ));
    let call = &last_calls(&trace)[0];
    assert_eq!((call.error, call.took_ms), (Some(ErrorWord::ResultUnknown), 60_000));
    assert_eq!(call.delivered, 1);
}

#[test]
fn an_open_breaker_says_when_to_come_back() {
    let trace = run(&two("  - { open: s }\n  - { crash: a }\n\
         \x20 - { call: { session: s, tool: a_read } }\n\
         \x20 - { call: { session: s, tool: a_read } }\n\
         \x20 - { advance: 10s }\n\
         \x20 - { call: { session: s, tool: a_read }, expect: { cause: circuit open } }\n"));
    assert_eq!(last_calls(&trace)[0].retry_after_ms, Some(20_000));
}

#[test]
fn many_calls_on_a_dead_server_are_one_failure() {
    run(&two(
        "  - { open: s }\n  - { slow: { server: a, by: 2s } }\n  - { crash: a, after: 1s }\n\
         \x20 - call: { session: s, tool: a_read, at_once: 20 }\n\
         \x20   expect: { error: backend_unavailable, cause: connection refused }\n\
         expect: { breaker: { a: closed }, requests: { a: 20 } }\n",
    ));
}

#[test]
fn a_live_session_follows_health_both_ways() {
    let text = two("  - { open: s }\n  - { crash: a }\n\
         \x20 - { call: { session: s, tool: a_read } }\n\
         \x20 - { call: { session: s, tool: a_read } }\n\
         \x20 - { list: s, expect: { tools: [b_look] } }\n  - { heal: a }\n  - { advance: 30s }\n\
         \x20 - { list: s, expect: { tools: [a_read, a_write, b_look] } }\n  - { advance: 1s }\n\
         expect: { list_changed: { s: 2 } }\n");
    run(&format!("visibility: live\n{text}"));
}

#[test]
fn a_live_session_takes_in_a_server_that_was_down_when_it_opened() {
    let text =
        two("  - { crash: a }\n  - { open: s, expect: { tools: [b_look] } }\n  - { heal: a }\n\
         \x20 - { list: s, expect: { tools: [a_read, a_write, b_look] } }\n\
         \x20 - { call: { session: s, tool: a_write }, expect: { ok: true } }\n");
    run(&format!("visibility: live\n{text}"));
}

#[test]
fn sessions_hear_of_other_tools_and_a_tool_that_left_is_unknown() {
    run(&two("  - { open: s }\n  - { tools: { server: b, list: [peek] } }\n  - { advance: 1s }\n\
         \x20 - { list: s, expect: { tools: [a_read, a_write, b_peek] } }\n\
         \x20 - { call: { session: s, tool: b_look }, expect: { error: unknown_tool } }\n\
         expect: { list_changed: { s: 1 } }\n"));
}

#[test]
fn a_change_of_tools_is_told_in_every_session_that_the_server_knows_and_in_no_other() {
    let changed = "  - { tools: { server: b, list: [peek] } }\n  - { advance: 1s }\n";
    run(&two(&format!(
        "  - {{ open: s }}\n  - {{ open: t }}\n{changed}\
         \x20 - {{ list: t, expect: {{ tools: [a_read, a_write, b_peek] }} }}\n\
         expect: {{ list_changed: {{ s: 1, t: 1 }} }}\n"
    )));
    // A server that forgot its sessions has nobody to tell: the next call finds out.
    run(&two(&format!(
        "  - {{ open: s }}\n  - {{ lose_session: b }}\n{changed}\
         \x20 - {{ list: s, expect: {{ tools: [a_read, a_write, b_look] }} }}\n\
         expect: {{ list_changed: {{ s: 0 }} }}\n"
    )));
}

#[test]
fn a_server_without_sessions_tells_of_other_tools_on_the_request_that_stays_open() {
    let text = two("  - { open: s }\n  - { tools: { server: b, list: [peek] } }\n\
         \x20 - { advance: 1s }\n\
         \x20 - { list: s, expect: { tools: [a_read, a_write, b_peek] } }\n\
         expect: { list_changed: { s: 1 } }\n");
    let text = text.replace("b: { tools: [look]", "b: { era: stateless, tools: [look]");
    assert!(text.contains("era: stateless"), "{text}");
    run(&text);
}

#[test]
fn find_shows_what_find_tool_answers_with_a_word_on_whether_it_fits() {
    let servers = "servers:\n  github: { tools: [search_repos, get_issue] }\n\
         \x20 files: { tools: [read_file] }\nprogram:\n  - { open: s }\n";
    let find = |query: &str| {
        let step = format!("  - {{ find: {{ session: s, query: {query} }} }}\n");
        let trace = run(&format!("{servers}{step}"));
        let step = trace.steps.last().expect("a step").clone();
        (step.tools.expect("it looked"), step.good_match)
    };
    let (tools, is_good) = find("get an issue");
    assert_eq!((tools[0].as_str(), is_good), ("github_get_issue", Some(true)));
    // The nearest, though they share no word with the query.
    let (tools, is_good) = find("bake a cake");
    assert_eq!((tools.is_empty(), is_good), (false, Some(false)));
    let bad = "servers: { a: { tools: [x] } }\nprogram:\n\
         \x20 - { open: s, expect: { good_match: true } }\n";
    let (_, problems) = load(&Source::new("t.yaml", bad));
    let told = problems.iter().map(|it| it.message.as_str()).collect::<Vec<_>>();
    assert_eq!(told, ["`program[0].expect.good_match` cannot come true"]);
}

#[test]
fn a_server_whose_trial_is_under_way_joins_when_it_has_succeeded() {
    // `t` finds the one slot taken by the opening of `s`, which takes two seconds.
    let trace = run(&two("  - { crash: a }\n  - { open: x }\n  - { open: y }\n  - { heal: a }\n\
         \x20 - { advance: 30s }\n\
         \x20 - { slow: { server: a, by: 2s } }\n\
         \x20 - { open: s, expect: { tools: [a_read, a_write, b_look] } }\n\
         \x20 - { open: t, expect: { tools: [b_look] } }\n\
         \x20 - { advance: 5s }\n\
         \x20 - { list: s, expect: { tools: [a_read, a_write, b_look] } }\n\
         \x20 - { list: t, expect: { tools: [a_read, a_write, b_look] } }\n\
         expect: { breaker: { a: closed }, list_changed: { s: 0, t: 1, x: 0 } }\n"));
    assert_eq!(trace.totals["a"].requests, 0);
}

#[test]
fn a_reload_keeps_health_and_connections_and_brings_new_servers_in() {
    run(&two("  - { open: s }\n  - { crash: a }\n\
         \x20 - { call: { session: s, tool: a_read } }\n\
         \x20 - { call: { session: s, tool: a_read } }\n\
         \x20 - { reload: { servers: { c: { tools: [new] }, a: { tools: [write, read] } } } }\n\
         \x20 - { advance: 1s }\n\
         \x20 - { list: s, expect: { tools: [a_read, a_write, c_new] } }\n\
         \x20 - { call: { session: s, tool: a_read }, expect: { cause: circuit open } }\n\
         \x20 - { call: { session: s, tool: c_new }, expect: { ok: true } }\n\
         \x20 - { reload: {} }\n\
         expect:\n  breaker: { a: open, c: closed }\n  requests: { b: 0 }\n\
         \x20 list_changed: { s: 1 }\n"));
}

#[test]
fn a_keepalive_on_a_lost_session_makes_a_new_one_and_none_is_sent_while_the_breaker_is_open() {
    let server = "servers: { a: { tools: [x], keepalive: { every: 1m, jitter: 0% } } }\n";
    let health = "health: { failure_threshold: 2, open_for: 5m, recovery_threshold: 1 }\n";
    run(&format!(
        "{server}program:\n  - {{ open: s }}\n  - {{ lose_session: a }}\n  - {{ advance: 1m }}\n\
         \x20 - {{ call: {{ session: s, tool: x }}, expect: {{ ok: true }} }}\n\
         expect:\n  reinitialised: {{ a: 1 }}\n\
         \x20 keepalive: {{ a: {{ attempts: 1, successes: 1 }} }}\n"
    ));
    run(&format!(
        "{server}{health}program:\n  - {{ open: s }}\n  - {{ crash: a }}\n  - {{ advance: 4m }}\n\
         expect:\n  breaker: {{ a: open }}\n\
         \x20 keepalive: {{ a: {{ attempts: 2, failures: 4, auto_disabled: 0 }} }}\n"
    ));
}

#[test]
fn keepalives_end_with_their_session_even_with_one_under_way() {
    let server = "servers: { a: { tools: [x], keepalive: { every: 1m, jitter: 0% } } }\n";
    run(&format!(
        "{server}program:\n  - {{ open: s }}\n  - {{ hang: a }}\n  - {{ advance: 1m }}\n\
         \x20 - {{ close: s }}\n  - {{ advance: 10m }}\n\
         expect:\n  keepalive: {{ a: {{ attempts: 1, failures: 0 }} }}\n"
    ));
}

#[test]
fn failed_expectations_say_what_was_wanted_and_what_came() {
    let text = two("  - { open: s, expect: { tools: [b_look] } }\n\
         \x20 - call: { session: s, tool: a_read, at_once: 3 }\n\
         \x20   expect: { ok: false, names: a }\n\
         expect:\n  breaker: { a: open }\n  reinitialised: { b: 2 }\n\
         \x20 keepalive: { a: { attempts: 1 } }\n");
    let report = sound(&text).run(0);
    let sentences: Vec<&str> = report.failures().iter().map(|it| it.sentence.as_str()).collect();
    assert_eq!(
        sentences,
        [
            "tools: step 1 (open s): wanted [b_look], got [a_read, a_write, b_look]",
            "ok: step 2 (call s a_read x 3): wanted an error, got an answer",
            "names: step 2 (call s a_read x 3): wanted an error that names `a`, got an answer",
            "breaker: at the end, `a`: wanted open, got closed",
            "reinitialised: over the whole program, `b`: wanted 2, got 0",
            "keepalive.attempts: over the whole program, `a`: wanted 1, got 0",
        ]
    );
}

/// Server `a` takes 800 ms to answer `initialize`.
fn slow_to_connect(program: &str) -> String {
    let healthy = "a: { tools: [write, read]";
    two(program).replace(healthy, "a: { initialize: 800ms, tools: [write, read]")
}

#[test]
fn a_server_that_is_slow_to_connect_is_listed_and_its_calls_wait_for_it() {
    let trace = run(&slow_to_connect(
        "  - { open: s, expect: { tools: [a_read, a_write, b_look] } }\n\
         \x20 - { call: { session: s, tool: a_write }, expect: { ok: true } }\n\
         expect: { list_changed: { s: 0 }, breaker: { a: closed } }\n",
    ));
    assert_eq!(trace.steps[0].at_ms, 500, "the first list waits for half a second");
    assert_eq!(trace.steps[1].at_ms, 800);
}

#[test]
fn a_slow_server_that_dies_while_it_connects_stays_listed_and_may_answer_later() {
    run(&slow_to_connect(
        "  - { open: s, expect: { tools: [a_read, a_write, b_look] } }\n\
         \x20 - { crash: a, after: 100ms }\n\
         \x20 - { call: { session: s, tool: a_write }, \
                   expect: { error: backend_unavailable, names: a, cause: connection refused } }\n\
         \x20 - { list: s, expect: { tools: [a_read, a_write, b_look] } }\n\
         \x20 - { heal: a }\n\
         \x20 - { call: { session: s, tool: a_write }, expect: { ok: true } }\n",
    ));
}

//! Groups of equivalent servers: one is used, the others are fallbacks, and clients see one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::json;
use tidegate_fakes::fake_mcp::{FakeMcpServer, McpCounts, McpScript, Tool, ToolAct};
use tidegate_testkit::{
    exchange::{Ask, Exchange},
    gate::Gate,
    mcp::{Hello, text_of},
    time::{eventually, ms, pause},
};

use crate::bed::{Setup, assert_error, assert_unavailable, count};
use crate::visitor::Visitor;

const GROUP: &str = "replicas: {search: [a, b]},";

/// A server that says which one it is; `look` is safe, and takes a moment.
fn replica(name: &str) -> FakeMcpServer {
    FakeMcpServer::start(script(name))
}

fn script(name: &str) -> McpScript {
    let script = McpScript::of(vec![
        Tool::new("who", ToolAct::Text(name.to_owned())).read_only(),
        Tool::new("change", ToolAct::Text(name.to_owned())),
        Tool::new("look", ToolAct::Slow(5)).read_only(),
        Tool::new("touch", ToolAct::Touch("memo://a".to_owned())),
    ]);
    script.resource("memo://a", name).prompt("greet", &["who"])
}

fn setup<'a>(a: &FakeMcpServer, b: &FakeMcpServer) -> Setup<'a> {
    Setup {
        mcp: GROUP,
        health: "failure_threshold: 3, open_for: 1s",
        ..Setup::of(&[("a", a), ("b", b)])
    }
}

/// Payments that a test may make: each is a tool of its own, so that servers count them apart.
const PAYMENTS: u64 = 1000;

/// How often a payment was carried out. (One that was refused unread, because its server had just
/// forgotten the session, arrived and was not.)
fn carried_out(servers: [&McpCounts; 2], number: u64) -> u64 {
    servers.iter().map(|it| it.delivered(&format!("pay_{number}"))).sum()
}

#[test]
fn clients_see_one_server_by_the_groups_name_and_no_member() {
    let (a, b) = (replica("a"), replica("b"));
    let other = FakeMcpServer::start(McpScript::of(vec![Tool::new("read", ToolAct::Echo)]));
    let keys = format!("url: '{}'", other.url());
    let gate = setup(&a, &b).and("files", keys).start();
    let client = gate.open();
    let seen = ["files_read", "search_change", "search_look", "search_touch", "search_who"];
    assert_eq!(client.tools(), seen);
    assert_eq!(client.text("search_who"), "a");
    let alone = setup(&a, &b).start();
    assert!(alone.open().tools().contains(&"who".to_owned()), "one server needs no prefix");
}

#[test]
fn a_session_has_one_connection_in_a_group() {
    let (a, b) = (replica("a"), replica("b"));
    let gate = setup(&a, &b).start();
    let client = gate.named("one");
    assert_eq!(client.text("who"), "a");
    assert_eq!((count(&a, "one", "initialize"), count(&b, "one", "initialize")), (1, 0));
}

#[test]
fn the_first_dies_under_load_and_no_safe_call_fails_while_no_payment_is_made_twice() {
    let (a, b) = (replica("a"), replica("b"));
    for server in [&a, &b] {
        let pay = |number| Tool::new(&format!("pay_{number}"), ToolAct::Slow(5));
        server.change(|script| script.tools.extend((0..PAYMENTS).map(pay)));
    }
    let gate = Arc::new(setup(&a, &b).start());
    eventually("the lists are known", || gate.open().tools().len() as u64 > PAYMENTS);
    let (is_over, number) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let look = || {
        let (gate, is_over) = (Arc::clone(&gate), Arc::clone(&is_over));
        std::thread::spawn(move || {
            let client = gate.open();
            while !is_over.load(Ordering::Relaxed) {
                client.text("look");
            }
        })
    };
    // Gives the payments that were made, and those of which nobody knows.
    let pay = || {
        let (gate, is_over) = (Arc::clone(&gate), Arc::clone(&is_over));
        let number = Arc::clone(&number);
        std::thread::spawn(move || {
            let client = gate.open();
            let (mut made, mut unknown) = (Vec::new(), Vec::new());
            while !is_over.load(Ordering::Relaxed) {
                let next = number.fetch_add(1, Ordering::Relaxed);
                assert!(next < PAYMENTS, "more payments than the test has tools for");
                let result = client.call(&format!("pay_{next}"), json!({}));
                if result["isError"] == true {
                    assert_unavailable(&result, "search", "result_unknown");
                    unknown.push(next);
                } else {
                    made.push(next);
                }
            }
            (made, unknown)
        })
    };
    let lookers: Vec<_> = (0..4).map(|_| look()).collect();
    let payers: Vec<_> = (0..4).map(|_| pay()).collect();
    eventually("calls of both kinds are under way", || {
        a.counts().delivered("look") >= 50 && number.load(Ordering::Relaxed) >= 50
    });
    assert_eq!(b.counts().delivered("look"), 0, "the first is used");
    a.crash();
    let paid = number.load(Ordering::Relaxed);
    eventually("calls of both kinds go on at the second", || {
        b.counts().delivered("look") >= 100 && number.load(Ordering::Relaxed) >= paid + 100
    });
    is_over.store(true, Ordering::Relaxed);
    lookers.into_iter().for_each(|it| it.join().expect("no safe call failed"));
    let payers = payers.into_iter().map(|it| it.join().expect("no payment failed otherwise"));
    let payers: Vec<_> = payers.collect();
    let (at_a, at_b) = (a.counts(), b.counts());
    for (made, unknown) in payers {
        for number in made {
            assert_eq!(carried_out([&at_a, &at_b], number), 1, "payment {number}");
        }
        for number in unknown {
            assert_eq!(at_b.delivered(&format!("pay_{number}")), 0, "sent again: {number}");
        }
    }
}

#[test]
fn what_was_certainly_not_delivered_goes_on_even_if_it_changes_something() {
    let (a, b) = (replica("a"), replica("b"));
    let gate = setup(&a, &b).start();
    let client = gate.open();
    assert_eq!(client.text("who"), "a");
    a.crash();
    eventually("the loss is known", || client.text("who") == "b");
    let other = gate.open();
    assert_eq!(text_of(&other.call("change", json!({}))), "b");
    assert_eq!(
        other.result("resources/read", json!({"uri": "memo://a"}))["contents"][0]["text"],
        "b"
    );
    other.result("prompts/get", json!({"name": "greet", "arguments": {"who": "me"}}));
}

#[test]
fn an_internal_error_of_one_member_is_no_answer_while_another_may_have_one() {
    let broken = vec![
        Tool::new("who", ToolAct::Error { code: -32603, message: "boom".to_owned() }).read_only(),
    ];
    let (a, b) = (FakeMcpServer::start(McpScript::of(broken.clone())), replica("b"));
    let gate = setup(&a, &b).start();
    assert_eq!(gate.open().text("who"), "b");
    let c = FakeMcpServer::start(McpScript::of(broken));
    let gate = setup(&a, &c).start();
    let answer = gate.open().request("tools/call", json!({"name": "who", "arguments": {}}));
    assert_eq!(answer["error"]["message"], "boom", "{answer}");
}

#[test]
fn with_all_members_down_there_is_one_clear_error_that_names_the_group() {
    let (a, b) = (replica("a"), replica("b"));
    let gate = setup(&a, &b).start();
    let client = gate.open();
    assert_eq!(client.text("who"), "a");
    a.crash();
    b.crash();
    let result = client.call("who", json!({}));
    assert_unavailable(&result, "search", "backend_unavailable");
    let answer = client.request("resources/read", json!({"uri": "memo://a"}));
    assert_error(&answer, "search", "backend_unavailable");
    eventually("new sessions go without it", || gate.open().tools().is_empty());
    a.restart();
    eventually("the session goes on when one is back", || {
        client.call("who", json!({}))["isError"] != true
    });
}

#[test]
fn a_member_that_returns_is_used_by_new_sessions_and_the_others_stay() {
    let (a, b) = (replica("a"), replica("b"));
    let gate = setup(&a, &b).start();
    let old = gate.open();
    assert_eq!(old.text("who"), "a");
    a.crash();
    eventually("it goes on", || old.text("who") == "b");
    a.restart();
    eventually("new sessions use it again", || gate.open().text("who") == "a");
    assert_eq!(old.text("who"), "b", "its state is there");
    b.crash();
    eventually("until that one fails", || old.text("who") == "a");
}

#[test]
fn members_and_clients_may_be_of_different_eras() {
    for is_first_stateless in [true, false] {
        let (a, b) = match is_first_stateless {
            true => (script("a").stateless(), script("b")),
            false => (script("a"), script("b").stateless()),
        };
        let (a, b) = (FakeMcpServer::start(a), FakeMcpServer::start(b));
        let gate = setup(&a, &b).start();
        let (client, visitor) = (gate.open(), Visitor::of(gate.address()));
        let says = || {
            let result = visitor.call("who");
            assert_ne!(result["isError"], true, "{result}");
            text_of(&result)
        };
        assert_eq!((client.text("who"), says()), ("a".to_owned(), "a".to_owned()));
        a.crash();
        eventually("both go on", || {
            (client.text("who"), says()) == ("b".to_owned(), "b".to_owned())
        });
        a.restart();
        eventually("who has no session goes back", || says() == "a");
        assert_eq!(client.text("who"), "b", "and who has one stays");
    }
}

#[test]
fn what_a_client_set_goes_with_it_to_another_member() {
    let (a, b) = (replica("a"), replica("b"));
    let gate = setup(&a, &b).start();
    let client = gate.named("mover");
    assert_eq!(client.text("who"), "a");
    client.result("logging/setLevel", json!({"level": "error"}));
    client.result("resources/subscribe", json!({"uri": "memo://a"}));
    a.crash();
    eventually("it goes on", || client.text("who") == "b");
    eventually("both are there too", || {
        count(&b, "mover", "logging/setLevel") == 1
            && count(&b, "mover", "resources/subscribe") == 1
    });
}

#[test]
fn a_caller_may_be_given_the_group_and_not_a_member() {
    let (a, b) = (replica("a"), replica("b"));
    let top = "keys:\n  - { name: all, key: env:ALL, servers: [search] }\n  \
               - { name: none, key: env:NONE, servers: [a] }";
    let variables = &[("ALL", "all-key"), ("NONE", "none-key")];
    let gate = Setup { top, variables, ..setup(&a, &b) }.start();
    let open = |headers| gate.open_as(&Hello { headers, ..Hello::default() });
    assert_eq!(open("authorization: Bearer all-key\r\n").text("who"), "a");
    assert_eq!(open("authorization: Bearer none-key\r\n").tools(), [""; 0]);
}

#[test]
fn a_reload_groups_and_ungroups_servers_under_an_open_session() {
    let (a, b) = (replica("a"), replica("b"));
    let apart = Setup::of(&[("a", &a), ("b", &b)]).yaml();
    let gate = Gate::start(&apart, &[]);
    let client = gate.named("stays");
    assert_eq!((client.text("a_who"), client.text("b_who")), ("a".to_owned(), "b".to_owned()));
    gate.reload(&setup(&a, &b).yaml());
    eventually("they are one", || client.tools().contains(&"who".to_owned()));
    assert_eq!(client.text("who"), "a");
    gate.reload(&apart);
    eventually("they are two", || client.tools().contains(&"a_who".to_owned()));
    assert_eq!((client.text("a_who"), client.text("b_who")), ("a".to_owned(), "b".to_owned()));
    let opened = (count(&a, "stays", "initialize"), count(&b, "stays", "initialize"));
    assert_eq!(opened, (1, 1), "connections stay");
}

#[test]
fn a_first_member_that_never_answers_does_not_keep_a_session_from_the_second() {
    let (a, b) = (replica("a"), replica("b"));
    a.change(|script| script.opening = tidegate_fakes::fake_mcp::Opening::Hang);
    let mcp = "replicas: {search: [a, b]}, connect_timeout: 2s,";
    let gate = Setup { mcp, ..setup(&a, &b) }.start();
    let client = gate.open();
    eventually("it joins", || !client.tools().is_empty());
    assert_eq!(client.text("who"), "b");
}

#[test]
fn explain_says_which_member_would_be_asked_and_why() {
    let (a, b) = (replica("a"), replica("b"));
    let gate = setup(&a, &b).start();
    let explain = |server: &str| {
        let body = json!({"server": server}).to_string();
        let headers = format!("content-length: {}\r\n", body.len());
        let ask = Ask { verb: "POST", path: "/api/explain", headers, body: body.as_bytes() };
        Exchange::begin(gate.server.admin_address(), &ask).expect("an answer comes").json()
    };
    let plan = |server: &str| explain(server)["explanation"]["candidates"].clone();
    let all = plan("search");
    assert_eq!((&all[0]["backend"], &all[1]["backend"]), (&json!("mcp:a"), &json!("mcp:b")));
    assert!(all[0]["verdict"]["chosen"].is_object() && all[1]["verdict"] == "held", "{all}");
    a.crash();
    let client = gate.open();
    eventually("its breaker opens", || {
        client.text("who");
        gate.open();
        pause(ms(5));
        plan("search")[1]["verdict"]["chosen"].is_object()
    });
    assert!(plan("search")[0]["verdict"]["skipped"].is_array());
    assert_eq!(plan("b").as_array().map(Vec::len), Some(1), "a member's own plan");
    assert!(
        explain("nobody")["error"]["message"].is_string() || explain("nobody")["error"].is_string()
    );
}

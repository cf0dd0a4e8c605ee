//! Fair shares: what one caller does in excess costs that caller, and what a key may use is asked
//! at every request.

use serde_json::json;
use tidegate_fakes::fake_mcp::{FakeMcpServer, McpScript, Tool, ToolAct};
use tidegate_testkit::{
    gate::Gate,
    mcp::{Hello, McpClient, text_of},
    time::{eventually, ms},
};

use crate::bed::{Setup, count};
use crate::visitor::Visitor;

const FLOOD: &str = "authorization: Bearer key-of-flood\r\n";
const OTHER: &str = "authorization: Bearer key-of-other\r\n";
const VARIABLES: &[(&str, &str)] = &[("FLOOD", "key-of-flood"), ("OTHER", "key-of-other")];
const KEYS: &str = "keys: [{name: flood, key: 'env:FLOOD'}, {name: other, key: 'env:OTHER'}]";

fn open(gate: &Gate, name: &str, headers: &str) -> McpClient {
    gate.open_as(&Hello { name, headers, ..Hello::default() })
}

/// Whether a session is still there.
fn is_alive(client: &McpClient) -> bool {
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    client.post(&ping).expect("an answer").status == 200
}

fn bed(fake: &FakeMcpServer, mcp: &'static str, top: &'static str) -> Gate {
    Setup { mcp, top, variables: VARIABLES, ..Setup::of(&[("a", fake)]) }.start()
}

#[test]
fn a_flood_of_sessions_costs_only_the_callers_own() {
    let fake = FakeMcpServer::start(McpScript::default());
    let gate = bed(&fake, "session: {max: 8},", KEYS);
    let others: Vec<McpClient> = (0..2).map(|_| open(&gate, "other", OTHER)).collect();
    let floods: Vec<McpClient> = (0..20).map(|_| open(&gate, "flood", FLOOD)).collect();
    let alive: Vec<bool> = floods.iter().map(is_alive).collect();
    assert_eq!(alive[18..], [true, true], "the newest are there");
    assert_eq!(alive[..18], [false; 18], "a quarter of eight is two");
    for other in &others {
        assert_eq!(other.text("echo"), "{}", "nobody else's session went");
    }
}

#[test]
fn with_none_idle_a_new_session_is_refused_with_a_time_to_come_back() {
    let fake = FakeMcpServer::start(McpScript::default());
    let gate = bed(&fake, "session: {max: 8},", KEYS);
    let busy: Vec<McpClient> = (0..2).map(|_| open(&gate, "flood", FLOOD)).collect();
    let _streams: Vec<_> = busy.iter().map(McpClient::listen).collect();
    let hello = Hello { headers: FLOOD, ..Hello::default() };
    let mut refused = McpClient::introduce(gate.address(), &hello);
    assert_eq!(refused.status, 503);
    let after = refused.header("retry-after").and_then(|it| it.parse::<u32>().ok());
    assert!(after.is_some_and(|it| it > 0), "{}", refused.head);
    assert!(refused.json()["error"]["message"].is_string());
    assert!(busy.iter().all(is_alive));
    assert_eq!(open(&gate, "other", OTHER).text("echo"), "{}");
    assert_eq!(gate.metric("tidegate_mcp_refused_total{what=\"session\"}"), 1.0);
}

#[test]
fn with_the_whole_full_a_caller_below_its_share_is_refused_and_nobody_is_evicted() {
    let fake = FakeMcpServer::start(McpScript::default());
    let top =
        "keys: [{name: flood, key: 'env:FLOOD', share: 100%}, {name: other, key: 'env:OTHER'}]";
    let gate = bed(&fake, "session: {max: 4},", top);
    let floods: Vec<McpClient> = (0..4).map(|_| open(&gate, "flood", FLOOD)).collect();
    let hello = Hello { headers: OTHER, ..Hello::default() };
    assert_eq!(McpClient::introduce(gate.address(), &hello).status, 503);
    assert!(floods.iter().all(is_alive));
    let fifth = open(&gate, "flood", FLOOD);
    assert!(is_alive(&fifth) && !is_alive(&floods[0]), "its own oldest made room");
}

#[test]
fn the_only_key_has_everything() {
    let fake = FakeMcpServer::start(McpScript::default());
    let gate = bed(&fake, "session: {max: 4},", "keys: [{name: flood, key: 'env:FLOOD'}]");
    let all: Vec<McpClient> = (0..4).map(|_| open(&gate, "flood", FLOOD)).collect();
    assert!(all.iter().all(is_alive));
}

#[test]
fn a_flood_of_calls_is_busy_and_leaves_the_others_theirs() {
    let tools = vec![Tool::new("hang", ToolAct::Slow(20_000)), Tool::new("echo", ToolAct::Echo)];
    let fake = FakeMcpServer::start(McpScript::of(tools).resource("memo://a", "A"));
    // A hundredth of all calls at once is 40.
    let top = "keys: [{name: flood, key: 'env:FLOOD', share: 1%}, {name: other, key: 'env:OTHER'}]";
    let setup = Setup { top, variables: VARIABLES, ..Setup::of(&[]) };
    let gate = setup.and("a", crate::bed::url(&fake, "max_calls: 200")).start();
    let (one, two) = (open(&gate, "one", FLOOD), open(&gate, "two", FLOOD));
    one.tools();
    let calls: Vec<_> =
        (0..40).map(|n| [&one, &two][n % 2].start("tools/call", json!({"name": "hang"}))).collect();
    for client in [&one, &two] {
        let result = client.call("echo", json!({}));
        assert_eq!(result["structuredContent"]["code"], "busy", "{result}");
        let read = client.request("resources/read", json!({"uri": "memo://a"}));
        assert_eq!(read["error"]["data"]["code"], "busy", "{read}");
        assert!(client.tools().contains(&"echo".to_owned()), "lists go on");
    }
    let visitor = Visitor { headers: FLOOD, ..Visitor::of(gate.address()) };
    let result = visitor.call("echo");
    assert_eq!(result["structuredContent"]["code"], "busy", "{result}");
    assert_eq!(open(&gate, "other", OTHER).text("echo"), "{}");
    assert_eq!(gate.metric("tidegate_mcp_refused_total{what=\"call\"}"), 5.0);
    one.notify("notifications/cancelled", json!({"requestId": calls[0].id}));
    eventually("a call has room again", || text_of(&one.call("echo", json!({}))) == "{}");
}

#[test]
fn a_key_that_is_narrowed_binds_open_sessions_and_callers_without_one() {
    let (a, b) =
        (FakeMcpServer::start(McpScript::default()), FakeMcpServer::start(McpScript::default()));
    let all = Setup { top: KEYS, variables: VARIABLES, ..Setup::of(&[("a", &a), ("b", &b)]) };
    let gate = all.start();
    let client = open(&gate, "narrowed", FLOOD);
    let other = open(&gate, "other", OTHER);
    let visitor = Visitor { headers: FLOOD, ..Visitor::of(gate.address()) };
    assert_eq!(client.tools(), ["a_echo", "b_echo"]);
    assert_eq!(client.text("b_echo"), "{}");
    eventually("everything has joined", || visitor.tools().len() == 2);
    let mut told = client.listen();
    let top =
        "keys: [{name: flood, key: 'env:FLOOD', servers: [a]}, {name: other, key: 'env:OTHER'}]";
    gate.reload(&Setup { top, ..all.clone() }.yaml());
    let sent = count(&b, "narrowed", "tools/call");
    let call = client.request("tools/call", json!({"name": "b_echo"}));
    assert_eq!(call["error"]["code"], -32602, "at the very next request: {call}");
    assert_eq!(client.tools(), ["a_echo"]);
    assert_eq!(client.text("a_echo"), "{}");
    let changed = told.message_within(ms(5000)).expect("it is told");
    assert_eq!(changed["method"], "notifications/tools/list_changed");
    assert_eq!(visitor.tools(), ["a_echo"]);
    let call = visitor.answer("tools/call", json!({"name": "b_echo", "arguments": {}}));
    assert!(call["error"].is_object(), "{call}");
    assert_eq!(count(&b, "narrowed", "tools/call"), sent, "nothing more reached it");
    eventually("its session there is ended", || count(&b, "narrowed", "DELETE") == 1);
    assert_eq!(other.text("b_echo"), "{}", "nobody else is affected");
    gate.reload(&all.yaml());
    eventually("what it may use again has joined", || client.tools().len() == 2);
}

#[test]
fn a_key_that_is_removed_ends_its_sessions() {
    let fake = FakeMcpServer::start(McpScript::default());
    let all = Setup { top: KEYS, variables: VARIABLES, ..Setup::of(&[("a", &fake)]) };
    let gate = all.start();
    let (gone, other) = (open(&gate, "gone", FLOOD), open(&gate, "other", OTHER));
    assert_eq!(gone.text("echo"), "{}");
    let mut stream = gone.listen();
    gate.reload(&Setup { top: "keys: [{name: other, key: 'env:OTHER'}]", ..all.clone() }.yaml());
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    assert_eq!(gone.post(&ping).expect("an answer").status, 401);
    assert!(stream.message_within(ms(5000)).is_err(), "its stream ends");
    eventually("its session is ended", || count(&fake, "gone", "DELETE") == 1);
    gate.reload(&all.yaml());
    assert_eq!(gone.post(&ping).expect("an answer").status, 404, "it does not come back");
    assert_eq!(other.text("echo"), "{}");
}

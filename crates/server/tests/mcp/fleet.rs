//! Three gateways of one fleet: a session is served by whichever is asked, goes on elsewhere when
//! its owner is gone, and is never answered 404 while it may live. The fleet is in memory; the
//! gateways, the clients and the servers are real.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use serde_json::{Value, json};
use tidegate_config::{secret::FixedEnvironment, source::Source};
use tidegate_fakes::fake_mcp::{FakeMcpServer, McpScript, Tool, ToolAct};
use tidegate_mcp_shell::memory_fleet::MemoryFleet;
use tidegate_server::server::{Server, Start};
use tidegate_testkit::{
    http::{Client, End},
    mcp::{Hello, McpClient, usual},
    time::{eventually, ms, now, pause},
};

use crate::bed::{Setup, assert_unavailable, count};
use crate::visitor::Visitor;

/// Replicas of one config.
struct Replicas {
    fleet: MemoryFleet,
    servers: Vec<Option<Server>>,
    addresses: Vec<SocketAddr>,
}

impl Replicas {
    fn start(setup: &Setup<'_>) -> Self {
        let fleet = MemoryFleet::default();
        let mut replicas = Self { fleet, servers: Vec::new(), addresses: Vec::new() };
        for _ in 0..3 {
            replicas.add(&setup.yaml());
        }
        replicas
    }

    /// One more replica.
    fn add(&mut self, yaml: &str) -> usize {
        let at = self.servers.len();
        let environment = FixedEnvironment { variables: Vec::new(), files: Vec::new() };
        let start = Start {
            source: Source::new("test.yaml", yaml),
            path: None,
            environment: Arc::new(environment),
            threads: 1,
        };
        let replica = self.fleet.replica(at as u128);
        let server = Server::start_in_fleet(start, replica).expect("it starts");
        self.fleet.join(at as u128, server.mcp().expect("a handle").clone());
        self.addresses.push(server.address());
        self.servers.push(Some(server));
        at
    }

    fn open(&self, at: usize) -> McpClient {
        McpClient::open(self.addresses[at])
    }

    fn owner(&self, client: &McpClient) -> Option<u128> {
        self.fleet.owner_of(&client.session).expect("it has a record").0
    }

    /// A replica stops in good order, while nobody asks for it any more.
    fn stop(&mut self, at: usize) {
        self.servers[at].take().expect("it runs").stop();
        self.fleet.kill(at as u128);
    }
}

fn server() -> FakeMcpServer {
    FakeMcpServer::start(McpScript::of(vec![
        Tool::new("count", ToolAct::Count),
        Tool::new("echo", ToolAct::Echo),
        Tool::new("slow", ToolAct::Slow(700)),
        Tool::new("hang", ToolAct::Hang),
        Tool::new("steps", ToolAct::Progress { steps: 3, every_ms: 30 }),
        Tool::new("elicit", ToolAct::Elicit),
    ]))
}

#[test]
fn a_session_is_served_by_whichever_replica_is_asked() {
    let fake = server();
    let replicas = Replicas::start(&Setup::of(&[("a", &fake)]));
    let clients: Vec<McpClient> = (0..6).map(|it| replicas.open(it % 3)).collect();
    for round in 1..=6 {
        for (number, client) in clients.iter().enumerate() {
            let at = replicas.addresses[(number + round) % 3];
            let told = client.at(at).text("count");
            assert!(told.ends_with(&format!("call {round}")), "{told}: one backend session");
        }
    }
    for (number, client) in clients.iter().enumerate() {
        assert_eq!(replicas.owner(client), Some(number as u128 % 3), "nobody took it over");
        let elsewhere = client.at(replicas.addresses[(number + 1) % 3]);
        assert_eq!(elsewhere.tools().len(), 6);
        assert_eq!((elsewhere.delete(), client.delete()), (200, 404));
    }
    eventually("no record is left", || replicas.fleet.is_empty());
    assert_eq!(fake.breaches(), [""; 0]);
}

#[test]
fn streams_go_through_another_replica_as_they_come() {
    let fake = server();
    let replicas = Replicas::start(&Setup::of(&[("a", &fake)]));
    let hello = Hello { capabilities: json!({"elicitation": {}}), ..Hello::default() };
    let owner = McpClient::open_as(replicas.addresses[0], &hello);
    let client = owner.at(replicas.addresses[1]);
    let params = json!({"name": "steps", "_meta": {"progressToken": "p"}});
    let mut pending = client.start("tools/call", params);
    let said = pending.all();
    assert_eq!(said.len(), 4, "{said:?}");
    // The server asks, over the replica that the client asked; the answer comes over a third one.
    let mut asking = client.start("tools/call", json!({"name": "elicit"}));
    let question = asking.next_message().expect("it asks");
    assert_eq!(question["method"], "elicitation/create");
    owner.at(replicas.addresses[2]).respond(&question, json!({"action": "accept"}));
    assert!(asking.finish()["result"].is_object());
    let mut listening = client.listen();
    fake.tell_all("notifications/tools/list_changed", None);
    let told = listening.message_within(ms(5000)).expect("it is told");
    assert_eq!(told["method"], "notifications/tools/list_changed");
    // Cancelled at one replica, while it was asked for at another.
    let mut hang = client.start("tools/call", json!({"name": "hang"}));
    owner.notify("notifications/cancelled", json!({"requestId": hang.id}));
    assert_eq!(hang.next_message(), Err(End::Whole));
}

#[test]
fn a_take_over_that_a_slow_store_carried_out_unheard_loses_no_session() {
    let fake = server();
    let replicas = Replicas::start(&Setup::of(&[("a", &fake)]));
    let client = McpClient::named(replicas.addresses[0], "one");
    assert!(client.text("count").ends_with("call 1"));
    replicas.fleet.kill(0);
    replicas.fleet.set_late(true);
    let client = client.at(replicas.addresses[1]);
    let ping = json!({"jsonrpc": "2.0", "id": 7, "method": "ping"}).to_string();
    let status = || client.post(&ping).expect("an answer").status;
    assert_eq!(status(), 503, "nobody can say");
    assert_eq!(replicas.owner(&client), Some(1), "and yet it was carried out");
    replicas.fleet.set_late(false);
    assert!(client.text("count").ends_with("call 2"), "it goes on, where it was found");
    assert!(client.at(replicas.addresses[2]).text("count").ends_with("call 3"));
    assert_eq!(client.delete(), 200);
    assert_eq!(status(), 404, "an end is an end");
    assert_eq!(fake.breaches(), [""; 0]);
}

#[test]
fn a_session_goes_on_elsewhere_when_its_owner_is_gone() {
    let fake = server();
    let replicas = Replicas::start(&Setup::of(&[("a", &fake)]));
    let client = McpClient::named(replicas.addresses[0], "one");
    let first = client.text("count");
    assert!(first.ends_with("call 1"), "{first}");
    replicas.fleet.kill(0);
    let client = client.at(replicas.addresses[1]);
    let result = client.call("count", json!({}));
    let told = result["content"][0]["text"].as_str().expect("text");
    assert_eq!(told, first.replace("call 1", "call 2"), "the server's own session goes on");
    assert!(result["_meta"].get("tidegate/session").is_none(), "{result}");
    assert_eq!(count(&fake, "one", "initialize"), 1);
    assert_eq!(replicas.owner(&client), Some(1));
    let mut listening = client.resume("0-3");
    let lists: Vec<String> = (0..3)
        .map(|_| listening.message_within(ms(5000)).expect("it is told")["method"].to_string())
        .collect();
    assert!(lists.iter().all(|it| it.contains("list_changed")), "{lists:?}");
    // Twenty at once take it over once.
    replicas.fleet.kill(1);
    let address = replicas.addresses[2];
    let told: Vec<String> = std::thread::scope(|scope| {
        let calls: Vec<_> =
            (0..20).map(|_| scope.spawn(|| client.at(address).text("count"))).collect();
        calls.into_iter().map(|it| it.join().expect("answered")).collect()
    });
    assert!(told.iter().any(|it| it.ends_with("call 22")), "{told:?}");
    assert_eq!(replicas.fleet.owner_of(&client.session), Some((Some(2), 3)));
    assert_eq!(replicas.fleet.counts().1, 2, "claimed once per owner that was gone");
    assert_eq!(fake.breaches(), [""; 0]);
}

#[test]
fn calls_end_by_name_when_a_living_owner_loses_its_session() {
    let fake = server();
    let replicas = Replicas::start(&Setup::of(&[("a", &fake)]));
    let client = McpClient::named(replicas.addresses[0], "one");
    let through = client.at(replicas.addresses[2]);
    let direct = client.start("tools/call", json!({"name": "hang"}));
    let forwarded = through.start("tools/call", json!({"name": "hang"}));
    eventually("both are under way", || fake.counts().delivered("hang") == 2);
    replicas.fleet.set_silent(0);
    replicas.fleet.set_unreachable(0, true);
    assert!(client.at(replicas.addresses[1]).text("count").ends_with("call 1"));
    for pending in [direct, forwarded] {
        let answer = pending.finish();
        assert_unavailable(&answer["result"], "a", "result_unknown");
    }
    replicas.fleet.set_unreachable(0, false);
    assert!(client.text("count").ends_with("call 2"), "what it is asked now it hands on");
    assert_eq!(count(&fake, "one", "DELETE"), 0, "nothing was deleted");
    assert_eq!(fake.breaches(), [""; 0]);
}

#[test]
fn a_session_that_may_live_is_never_answered_404() {
    let fake = server();
    let replicas = Replicas::start(&Setup::of(&[("a", &fake)]));
    let client = replicas.open(0);
    let elsewhere = client.at(replicas.addresses[1]);
    let ping = json!({"jsonrpc": "2.0", "id": 7, "method": "ping"}).to_string();
    let asked = |client: &McpClient| {
        let answer = client.post(&ping).expect("an answer");
        (answer.status, answer.header("retry-after").is_some())
    };
    replicas.fleet.set_away(true);
    assert_eq!(asked(&elsewhere), (503, true), "the store is away");
    assert_eq!(asked(&client), (200, false), "its owner needs no store");
    let began = now();
    let fresh = replicas.open(2);
    assert!(began.elapsed() < ms(10_000) && fresh.text("count").ends_with("call 1"));
    replicas.fleet.set_away(false);
    replicas.fleet.set_slow(true);
    let young = replicas.open(2);
    assert_eq!(asked(&young), (200, false), "its owner has it");
    let young = young.at(replicas.addresses[1]);
    assert_eq!(asked(&young), (503, true), "its record is on its way");
    replicas.fleet.set_slow(false);
    assert_eq!(asked(&young), (200, false), "its record is there");
    replicas.fleet.set_unreachable(0, true);
    assert_eq!(asked(&elsewhere), (503, true), "its owner lives, and cannot be reached");
    replicas.fleet.set_unreachable(0, false);
    assert_eq!(asked(&elsewhere), (200, false));
    let mut unknown = elsewhere.at(replicas.addresses[1]);
    let lookups = replicas.fleet.counts().0;
    unknown.session = "0123456789abcdef0123456789abcdef".to_owned();
    assert_eq!(asked(&unknown).0, 404);
    assert_eq!(replicas.fleet.counts().0, lookups, "an id that was never given is not looked up");
    unknown.session.push_str("-fleet");
    assert_eq!(asked(&unknown).0, 404);
    assert!(replicas.fleet.counts().0 > lookups);
}

#[test]
fn another_callers_session_is_nobodys_on_every_replica() {
    let fake = server();
    let keys = "keys:\n- {name: ann, key: env:A}\n- {name: bob, key: env:B}";
    let setup = Setup { top: keys, ..Setup::of(&[("a", &fake)]) };
    let fleet = MemoryFleet::default();
    let mut addresses = Vec::new();
    let mut servers = Vec::new();
    for at in 0..2 {
        let variables = vec![
            ("A".to_owned(), "key-of-ann-0123456789".to_owned()),
            ("B".to_owned(), "key-of-bob-0123456789".to_owned()),
        ];
        let start = Start {
            source: Source::new("test.yaml", &setup.yaml()),
            path: None,
            environment: Arc::new(FixedEnvironment { variables, files: Vec::new() }),
            threads: 1,
        };
        let server = Server::start_in_fleet(start, fleet.replica(at)).expect("it starts");
        fleet.join(at, server.mcp().expect("a handle").clone());
        addresses.push(server.address());
        servers.push(server);
    }
    let hello = |key: &'static str| Hello { headers: key, ..Hello::default() };
    let ann = hello("authorization: Bearer key-of-ann-0123456789\r\n");
    let bob = hello("authorization: Bearer key-of-bob-0123456789\r\n");
    let owner = McpClient::open_as(addresses[0], &ann);
    let mut thief = McpClient::open_as(addresses[1], &bob);
    thief.session.clone_from(&owner.session);
    let ping = json!({"jsonrpc": "2.0", "id": 7, "method": "ping"}).to_string();
    let status = |client: &McpClient| client.post(&ping).expect("an answer").status;
    assert_eq!((status(&thief), status(&thief.at(addresses[0]))), (404, 404));
    assert_eq!(status(&owner.at(addresses[1])), 200);
    fleet.kill(0);
    assert_eq!(status(&thief), 404, "nor is it taken over for somebody else");
    assert_eq!(fleet.owner_of(&owner.session).map(|it| it.1), Some(1));
    assert_eq!(status(&owner.at(addresses[1])), 200);
}

#[test]
fn a_replica_that_stops_hands_its_sessions_over() {
    let fake = server();
    let setup = Setup { top: "shutdown: {drain: 5s}", ..Setup::of(&[("a", &fake)]) };
    let mut replicas = Replicas::start(&setup);
    let clients: Vec<McpClient> = (0..8).map(|_| replicas.open(0)).collect();
    for client in &clients {
        assert!(client.text("count").ends_with("call 1"));
    }
    let busy = clients[0].start("tools/call", json!({"name": "slow"}));
    let through = clients[1].at(replicas.addresses[1]);
    let forwarded = through.start("tools/call", json!({"name": "slow"}));
    let began = now();
    replicas.stop(0);
    assert!(began.elapsed() < ms(4000), "{:?}", began.elapsed());
    assert!(busy.finish()["result"].is_object(), "calls under way were answered first");
    assert!(forwarded.finish()["result"].is_object());
    let deleted = fake.received().iter().filter(|it| it.verb == "DELETE").count();
    assert!(deleted <= 1, "{deleted}: only the gateway's own link was closed");
    for (number, client) in clients.iter().enumerate() {
        assert_eq!(replicas.fleet.owner_of(&client.session), Some((None, 1)), "{number}");
        let result = client.at(replicas.addresses[1 + number % 2]).call("count", json!({}));
        let told = result["content"][0]["text"].as_str().expect("text");
        assert!(told.ends_with("call 2"), "{told}");
    }
    assert_eq!(fake.breaches(), [""; 0]);
}

/// A balancer may have connected to a replica that is told to stop, and send its request then: it
/// asks nobody else, so the session must not have been given away before.
#[test]
fn a_request_that_is_on_its_way_when_a_replica_stops_is_answered() {
    let fake = server();
    let setup = Setup { top: "shutdown: {drain: 5s}", ..Setup::of(&[("a", &fake)]) };
    let mut replicas = Replicas::start(&setup);
    let client = replicas.open(0);
    assert!(client.text("count").ends_with("call 1"));
    let call =
        r#"{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "count"}}"#;
    let (begun, rest) = call.split_at(20);
    let mut late = Client::connect(replicas.addresses[0]);
    let (length, session) = (call.len(), &client.session);
    late.send_raw(
        format!(
            "POST /mcp HTTP/1.1\r\nhost: {}\r\n{}mcp-session-id: {session}\r\n\
             content-length: {length}\r\n\r\n{begun}",
            replicas.addresses[0],
            usual(),
        )
        .as_bytes(),
    );
    let leaving = replicas.servers[0].take().expect("it runs");
    let stopping = std::thread::spawn(move || leaving.stop());
    eventually("nobody listens there", || TcpStream::connect(replicas.addresses[0]).is_err());
    // Where it would be given away too early, that has happened by then.
    let until = now() + ms(300);
    while now() < until && replicas.owner(&client).is_some() {
        pause(ms(5));
    }
    late.send_raw(rest.as_bytes());
    let answer = late.answer().expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.text().contains("call 2"), "{}", answer.text());
    stopping.join().expect("it stops");
    assert_eq!(replicas.fleet.owner_of(&client.session), Some((None, 1)), "and then it is free");
    assert!(client.at(replicas.addresses[1]).text("count").ends_with("call 3"));
}

#[test]
fn every_replica_is_restarted_under_load_and_no_session_is_lost() {
    let fake = server();
    let setup = Setup { top: "shutdown: {drain: 5s}", ..Setup::of(&[("a", &fake)]) };
    let mut replicas = Replicas::start(&setup);
    let clients: Vec<McpClient> = (0..12).map(|it| replicas.open(it % 3)).collect();
    let mut made = vec![0; clients.len()];
    let mut call = |replicas: &Replicas, at: &[usize]| {
        for (number, client) in clients.iter().enumerate() {
            made[number] += 1;
            let address = replicas.addresses[at[(number + made[number]) % at.len()]];
            let told = client.at(address).text("count");
            assert!(told.ends_with(&format!("call {}", made[number])), "{told}");
        }
    };
    let mut serving = vec![0, 1, 2];
    for round in 0..3 {
        call(&replicas, &serving);
        let leaving = serving.remove(0);
        assert_eq!(leaving, round);
        replicas.stop(leaving);
        call(&replicas, &serving);
        serving.push(replicas.add(&setup.yaml()));
        call(&replicas, &serving);
    }
    for client in &clients {
        let (_, epoch) = replicas.fleet.owner_of(&client.session).expect("a record");
        assert!(epoch <= 4, "{epoch}: moved at most once per replica");
    }
    assert_eq!(fake.breaches(), [""; 0]);
}

#[test]
fn a_parked_question_is_answered_through_any_replica() {
    let fake = server();
    let replicas = Replicas::start(&Setup::of(&[("a", &fake)]));
    let able = json!({"elicitation": {}});
    let first = Visitor::able(replicas.addresses[0], able.clone());
    let asked = first.call("elicit");
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let state = asked["requestState"].as_str().expect("a state").to_owned();
    let back = |at: usize, state: &str| -> Value {
        let visitor = Visitor::able(replicas.addresses[at], able.clone());
        let params = json!({"name": "elicit", "arguments": {}, "requestState": state,
            "inputResponses": {"question-1": {"action": "accept", "content": {}}}});
        visitor.answer("tools/call", params)
    };
    let forged = state.replace(".0", ".7");
    assert!(back(1, &forged)["error"].is_object(), "nobody has it");
    let answer = back(1, &state);
    assert!(answer["result"]["content"].is_array(), "{answer}");
    assert!(back(2, &state)["error"].is_object(), "it was answered once");
}

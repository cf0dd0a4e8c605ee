//! MCP sessions of three gateways with a real store and real peer channels: whoever is asked
//! serves, one replica owns, and nobody else is let in.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tidegate_fakes::fake_mcp::{FakeMcpServer, McpScript, Tool, ToolAct};
use tidegate_testkit::{
    gate::Gate,
    http::End,
    mcp::{Hello, McpClient},
    time::{PATIENCE, eventually, ms},
    visitor::Visitor,
};

use crate::bed::{ADMIN, SECRET, fleet_of, is_connected};
use crate::store::{Store, free_address};

const OTHER: &str = "another secret, also of 32 bytes!";

/// What a replica differs by.
#[derive(Clone)]
struct Peer<'a> {
    name: &'a str,
    secret: &'a str,
    fleet: &'a str,
    /// Further keys of `state`.
    more: String,
}

impl Default for Peer<'_> {
    fn default() -> Self {
        let more = "peer_listen: '127.0.0.1:0'".to_owned();
        Self { name: "one", secret: SECRET, fleet: "prod", more }
    }
}

impl Peer<'_> {
    fn named(name: &'static str) -> Self {
        Self { name, ..Self::default() }
    }

    fn start(&self, store: &Store, fake: &FakeMcpServer) -> Gate {
        let Self { name, secret, fleet, more } = self;
        let yaml = format!(
            "listen: 127.0.0.1:0\nadmin: {{listen: '127.0.0.1:0', token: env:ADMIN}}\n\
             health: {{probe: {{every: 0s}}}}\nshutdown: {{drain: 5s}}\n\
             mcp: {{servers: {{a: {{url: '{}'}}}}}}\n\
             state: {{redis: '{}', secret: env:FLEET, fleet: {fleet}, replica: {name}, \
             timeout: 2s, {more}}}\n",
            fake.url(),
            store.url(),
        );
        let gate = Gate::start(&yaml, &[("FLEET", secret), ("ADMIN", ADMIN)]);
        is_connected(&gate);
        gate
    }
}

/// Three replicas that know how they are reached.
fn three(store: &Store, fake: &FakeMcpServer) -> [Gate; 3] {
    let gates = ["one", "two", "three"].map(|name| Peer::named(name).start(store, fake));
    gates.iter().for_each(|gate| drop(own_url(gate)));
    gates
}

/// How others reach a replica.
fn own_url(gate: &Gate) -> String {
    let mut url = None;
    eventually("its address is known", || {
        url = fleet_of(gate)["peer_url"].as_str().map(str::to_owned);
        url.is_some()
    });
    url.expect("it was waited for")
}

fn server() -> FakeMcpServer {
    FakeMcpServer::start(McpScript::of(vec![
        Tool::new("count", ToolAct::Count),
        Tool::new("echo", ToolAct::Echo),
        Tool::new("hang", ToolAct::Hang),
        Tool::new("steps", ToolAct::Progress { steps: 3, every_ms: 30 }),
        Tool::new("elicit", ToolAct::Elicit),
    ]))
}

const PING: &str = r#"{"jsonrpc": "2.0", "id": 7, "method": "ping"}"#;

/// The status of a ping, and whether it says when to come back.
fn ping(client: &McpClient) -> (u16, bool) {
    let answer = client.post(PING).expect("an answer");
    (answer.status, answer.header("retry-after").is_some())
}

/// A way to somebody, which can lead to somebody else or be closed.
struct Way {
    url: String,
    to: Arc<Mutex<Option<SocketAddr>>>,
    /// What stands, as seen from whoever asked.
    standing: Arc<Mutex<Vec<TcpStream>>>,
    listener: TcpListener,
}

impl Way {
    fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let to: Arc<Mutex<Option<SocketAddr>>> = Arc::default();
        let standing: Arc<Mutex<Vec<TcpStream>>> = Arc::default();
        let (accepting, shared) = (listener.try_clone().expect("shared"), Arc::clone(&to));
        let noted = Arc::clone(&standing);
        std::thread::spawn(move || {
            for stream in accepting.incoming() {
                let target = *shared.lock().expect("not poisoned");
                let (Ok(stream), Some(target)) = (stream, target) else { return };
                let Ok(there) = TcpStream::connect(target) else { continue };
                noted.lock().expect("not poisoned").push(stream.try_clone().expect("shared"));
                let back =
                    (there.try_clone().expect("shared"), stream.try_clone().expect("shared"));
                std::thread::spawn(move || pass(stream, there));
                std::thread::spawn(move || pass(back.0, back.1));
            }
        });
        Self { url, to, standing, listener }
    }

    fn leads_to(&self, target: SocketAddr) {
        *self.to.lock().expect("not poisoned") = Some(target);
        self.cut();
    }

    /// A connection that is kept leads where it led: without it nobody is reached any more.
    fn cut(&self) {
        for stream in self.standing.lock().expect("not poisoned").drain(..) {
            drop(stream.shutdown(std::net::Shutdown::Both));
        }
    }

    /// Nobody listens there any more.
    fn close(self) {
        *self.to.lock().expect("not poisoned") = None;
        self.cut();
        let address = self.listener.local_addr().expect("an address");
        drop(self.listener);
        drop(TcpStream::connect(address));
        eventually("it is closed", || TcpStream::connect(address).is_err());
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    let mut bytes = [0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut bytes) {
        if to.write_all(&bytes[..length]).is_err() {
            break;
        }
    }
    drop(to.shutdown(std::net::Shutdown::Both));
    drop(from.shutdown(std::net::Shutdown::Both));
}

fn address_of(url: &str) -> SocketAddr {
    url.strip_prefix("http://").expect("a url").parse().expect("an address")
}

#[test]
fn a_session_is_served_by_whichever_replica_is_asked_and_moves_nowhere() {
    let (store, fake) = (Store::start(), server());
    let gates = three(&store, &fake);
    let at = |number: usize| gates[number % 3].address();
    let clients: Vec<McpClient> = (0..6).map(|it| gates[it % 3].open()).collect();
    for round in 1..=6 {
        for (number, client) in clients.iter().enumerate() {
            let told = client.at(at(number + round)).text("count");
            assert!(told.ends_with(&format!("call {round}")), "{told}: one backend session");
        }
    }
    let hello = Hello { capabilities: json!({"elicitation": {}}), ..Hello::default() };
    let owner = McpClient::open_as(at(0), &hello);
    let client = owner.at(at(1));
    let large = "x".repeat(3_000_000);
    let echoed = client.call("echo", json!({"text": large}));
    assert!(echoed.to_string().len() > 3_000_000, "bodies of any length, both ways");
    let params = json!({"name": "steps", "_meta": {"progressToken": "p"}});
    assert_eq!(client.start("tools/call", params).all().len(), 4, "steps as they come");
    let mut asking = client.start("tools/call", json!({"name": "elicit"}));
    let question = asking.next_message().expect("it asks");
    owner.at(at(2)).respond(&question, json!({"action": "accept"}));
    assert!(asking.finish()["result"].is_object(), "asked at one, answered at another");
    let mut listening = client.listen();
    fake.tell_all("notifications/tools/list_changed", None);
    let told = listening.message_within(PATIENCE).expect("it is told");
    assert_eq!(told["method"], "notifications/tools/list_changed");
    let mut hang = client.start("tools/call", json!({"name": "hang"}));
    owner.at(at(2)).notify("notifications/cancelled", json!({"requestId": hang.id}));
    assert_eq!(hang.next_message(), Err(End::Whole), "cancelled at a third one");
    assert_eq!(client.delete(), 200);
    // The store has just begun: for a while nobody is sure that a record is not lost.
    eventually("it has ended for all", || {
        let told = [0, 1, 2].map(|it| ping(&owner.at(at(it))).0);
        assert!(told.iter().all(|it| [404, 503].contains(it)), "{told:?}");
        told == [404; 3]
    });
    let mut forged = client.at(at(1));
    forged.session = "0".repeat(64);
    assert_eq!(ping(&forged).0, 404, "an id that this fleet never gave");
    assert_eq!(fake.breaches(), [""; 0]);
}

#[test]
fn a_question_that_waits_is_answered_through_any_replica() {
    let (store, fake) = (Store::start(), server());
    let gates = three(&store, &fake);
    let able = json!({"elicitation": {}});
    let asked = Visitor::able(gates[0].address(), able.clone()).call("elicit");
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let state = asked["requestState"].as_str().expect("a state").to_owned();
    assert!(!state.contains("127.0.0.1"), "where it is is sealed");
    let back = |at: usize, state: &str| -> Value {
        let visitor = Visitor::able(gates[at].address(), able.clone());
        let params = json!({"name": "elicit", "arguments": {}, "requestState": state,
            "inputResponses": {"question-1": {"action": "accept", "content": {}}}});
        visitor.answer("tools/call", params)
    };
    let last = if state.ends_with('0') { "1" } else { "0" };
    let forged = format!("{}{last}", &state[..state.len() - 1]);
    assert!(back(1, &forged)["error"].is_object(), "nobody believes a changed one");
    assert!(back(1, &state)["result"]["content"].is_array());
    assert!(back(2, &state)["error"].is_object(), "it was answered once");
}

#[test]
fn an_owner_that_is_gone_for_others_loses_its_sessions_and_lets_them_go() {
    let (store, fake) = (Store::start(), server());
    let way = Way::open();
    let own = free_address();
    way.leads_to(own);
    let more = format!("peer_listen: '{own}', peer_url: '{}'", way.url);
    let far = Peer { name: "far", more, ..Peer::default() }.start(&store, &fake);
    let near = Peer::named("near").start(&store, &fake);
    let third = Peer::named("third").start(&store, &fake);
    drop((own_url(&near), own_url(&third)));
    let client = McpClient::named(far.address(), "one");
    assert!(client.at(near.address()).text("count").ends_with("call 1"), "handed on");
    let direct = client.start("tools/call", json!({"name": "hang"}));
    eventually("it is under way", || fake.counts().delivered("hang") == 1);
    // The way leads to another replica: whoever is there is not the owner.
    way.leads_to(address_of(&own_url(&third)));
    assert!(client.at(near.address()).text("count").ends_with("call 2"), "taken over");
    let ended = direct.finish();
    assert_eq!(ended["result"]["structuredContent"]["code"], "result_unknown", "{ended}");
    assert!(client.text("count").ends_with("call 3"), "the former owner hands on");
    let again = McpClient::named(far.address(), "two");
    assert!(again.text("count").ends_with("call 1"));
    way.close();
    assert!(again.at(third.address()).text("count").ends_with("call 2"), "nobody listens there");
    let deleted = fake.sent_by("one").iter().filter(|it| *it == "DELETE").count();
    assert_eq!(deleted, 0, "nothing was deleted at the server");
    assert_eq!(fake.breaches(), [""; 0]);
}

#[test]
fn an_owner_that_lives_and_cannot_be_asked_keeps_its_session() {
    let (store, fake) = (Store::start(), server());
    let alone = Peer { name: "alone", more: String::new(), ..Peer::default() };
    let alone = alone.start(&store, &fake);
    let other = Peer::named("other").start(&store, &fake);
    let client = alone.open();
    assert_eq!(ping(&client.at(other.address())), (503, true), "it has no `peer_listen`");
    let silent = Way::open();
    let deaf = format!("peer_listen: '127.0.0.1:0', peer_url: '{}'", silent.url);
    let deaf = Peer { name: "deaf", more: deaf, ..Peer::default() }.start(&store, &fake);
    silent.leads_to(address_of(&store.url().replace("redis", "http")));
    let client = deaf.open();
    assert_eq!(ping(&client.at(other.address())), (503, true), "something else is at its url");
    assert_eq!(ping(&client), (200, false), "and it serves on");
}

#[test]
fn whoever_has_another_secret_or_another_fleet_knows_no_session_and_takes_none() {
    let (store, fake) = (Store::start(), server());
    let ours = Peer::named("ours").start(&store, &fake);
    let second = Peer::named("second").start(&store, &fake);
    drop((own_url(&ours), own_url(&second)));
    let secret = Peer { secret: OTHER, ..Peer::named("secret") }.start(&store, &fake);
    let fleet = Peer { fleet: "staging", ..Peer::named("staging") }.start(&store, &fake);
    let client = ours.open();
    assert!(client.text("count").ends_with("call 1"));
    for stranger in [&secret, &fleet] {
        assert_eq!(ping(&client.at(stranger.address())).0, 404, "it never gave that id");
        let theirs = stranger.open();
        assert_eq!(ping(&theirs.at(ours.address())).0, 404, "nor did we give theirs");
        assert_eq!(theirs.delete(), 200);
    }
    assert!(client.at(second.address()).text("count").ends_with("call 2"), "ours goes on");
    assert_eq!(fake.breaches(), [""; 0]);
}

#[test]
fn a_replica_that_stops_hands_its_sessions_over_at_once() {
    let (store, fake) = (Store::start(), server());
    let [first, second, third] = three(&store, &fake);
    let clients: Vec<McpClient> = (0..8).map(|_| first.open()).collect();
    for client in &clients {
        assert!(client.text("count").ends_with("call 1"));
    }
    let mut listening = clients[0].at(second.address()).listen();
    first.server.stop();
    assert!(listening.event_within(ms(5000)).is_err(), "its stream ends");
    for (number, client) in clients.iter().enumerate() {
        let gate = [&second, &third][number % 2];
        assert!(client.at(gate.address()).text("count").ends_with("call 2"), "{number}");
        let other = [&third, &second][number % 2];
        assert!(client.at(other.address()).text("count").ends_with("call 3"), "{number}");
    }
    assert_eq!(fake.breaches(), [""; 0]);
}

//! Replicas as processes of their own, with a real store: one is killed, one is stopped, one is
//! told a wrong way to itself; and what an operator reads of them.

mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::Stdio;

use serde_json::json;
use support::{
    folder, program, run,
    served::{PATIENCE, Served},
};
use tidegate_fakes::fake_mcp::{FakeMcpServer, McpScript, Tool, ToolAct};
use tidegate_testkit::{
    mcp::McpClient,
    store::{Store, free_address},
    time::eventually,
};

const SECRET: &str = "0123456789abcdef0123456789abcdef";

fn server() -> FakeMcpServer {
    FakeMcpServer::start(McpScript::of(vec![
        Tool::new("count", ToolAct::Count),
        Tool::new("hang", ToolAct::Hang),
        Tool::new("slow", ToolAct::Slow(700)),
    ]))
}

/// A replica; `more` is of its `state`.
fn replica(test: &str, name: &str, store: &Store, fake: &FakeMcpServer, more: &str) -> Served {
    let folder = folder(&format!("fleet-{test}-{name}"));
    let yaml = format!(
        "health: {{probe: {{every: 0s}}}}\nshutdown: {{drain: 10s}}\n\
         mcp: {{servers: {{a: {{url: '{}'}}}}}}\n\
         state:\n  redis: {}\n  secret: env:FLEET\n  replica: {name}\n  timeout: 2s\n{more}",
        fake.url(),
        store.url(),
    );
    fs::write(folder.join("tidegate.yaml"), yaml).expect("the folder takes files");
    let mut command = program(&folder);
    command.args(["serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]);
    Served::spawn(command.env("FLEET", SECRET))
}

fn at(served: &Served) -> SocketAddr {
    served.address.parse().expect("an address")
}

/// Waits until a replica knows that others reach it.
fn reached(mut served: Served) -> Served {
    served.until("other replicas reach this one");
    served
}

const ANYWHERE: &str = "  peer_listen: 127.0.0.1:0\n";

#[test]
fn one_of_three_is_killed_and_only_what_was_under_way_there_ends() {
    let (store, fake) = (Store::start(), server());
    let start = |name: &str| reached(replica("killed", name, &store, &fake, ANYWHERE));
    let (first, second, third) = (start("one"), start("two"), start("three"));
    let clients: Vec<McpClient> = (0..6).map(|_| McpClient::open(at(&first))).collect();
    for client in &clients {
        assert!(client.at(at(&second)).text("count").ends_with("call 1"));
    }
    let elsewhere = McpClient::open(at(&second));
    let unharmed = elsewhere.at(at(&third)).start("tools/call", json!({"name": "slow"}));
    let mut direct = clients[0].start("tools/call", json!({"name": "hang"}));
    let handed_on = clients[0].at(at(&third)).start("tools/call", json!({"name": "hang"}));
    eventually("both are under way", || fake.counts().delivered("hang") == 2);
    first.stop_dead();
    assert!(direct.next_message().is_err(), "its connection went with the replica");
    let ended = handed_on.finish();
    assert_eq!(ended["result"]["structuredContent"]["code"], "result_unknown", "{ended}");
    assert!(unharmed.finish()["result"].is_object(), "nothing else is touched");
    for (number, client) in clients.iter().enumerate() {
        let next = if number % 2 == 0 { &second } else { &third };
        let told = client.at(at(next)).text("count");
        assert!(told.ends_with("call 2"), "{told}: every session goes on, in its server's own");
    }
    assert_eq!(fake.counts().delivered("hang"), 2, "nothing was sent twice");
    assert_eq!(fake.breaches(), [""; 0]);
}

#[test]
fn one_that_is_stopped_answers_first_and_hands_its_sessions_over() {
    let (store, fake) = (Store::start(), server());
    let start = |name: &str| reached(replica("stopped", name, &store, &fake, ANYWHERE));
    let (first, second) = (start("one"), start("two"));
    let client = McpClient::open(at(&first));
    assert!(client.text("count").ends_with("call 1"));
    let busy = client.at(at(&second)).start("tools/call", json!({"name": "slow"}));
    let said = first.stop();
    assert!(busy.finish()["result"]["isError"] != true, "it was answered first");
    assert!(said.iter().any(|line| line.contains("handing sessions over")), "{said:#?}");
    assert!(client.at(at(&second)).text("count").ends_with("call 2"));
    let said = second.stop();
    let taken = said.iter().filter(|line| line.contains("took a session over")).count();
    assert_eq!(taken, 1, "{said:#?}");
}

#[test]
fn a_wrong_way_to_oneself_is_told_at_the_start_and_nothing_is_lost() {
    let (store, fake) = (Store::start(), server());
    let place = free_address();
    let right = format!("  peer_listen: {place}\n");
    let first = reached(replica("astray", "one", &store, &fake, &right));
    let wrong = format!("  peer_listen: 127.0.0.1:0\n  peer_url: http://{place}\n");
    let mut second = replica("astray", "two", &store, &fake, &wrong);
    let line = second.until("another replica answers at this one's `state.peer_url`");
    assert!(line.contains(&place.to_string()), "{line}");
    let nobody = format!("  peer_listen: 127.0.0.1:0\n  peer_url: http://{}\n", free_address());
    let mut third = replica("astray", "three", &store, &fake, &nobody);
    third.until("this replica is not reached by its own `state.peer_url`");
    let client = McpClient::open(at(&second));
    assert!(client.text("count").ends_with("call 1"));
    assert!(client.at(at(&first)).text("count").ends_with("call 2"), "taken over");
    second.until("another replica has taken a session over");
    assert!(client.text("count").ends_with("call 3"), "and handed on");
    assert_eq!(fake.breaches(), [""; 0]);
}

#[test]
fn two_replicas_of_one_name_are_warned_of() {
    let (store, fake) = (Store::start(), server());
    let mut first = replica("same-a", "same", &store, &fake, ANYWHERE);
    let _second = replica("same-b", "same", &store, &fake, ANYWHERE);
    let line = first.until("another replica of this fleet has the same name");
    assert!(line.contains("set `state.replica`"), "{line}");
}

#[test]
fn status_and_check_say_who_is_there_and_what_the_store_says() {
    let (store, fake) = (Store::start(), server());
    let start = |name: &str| reached(replica("told", name, &store, &fake, ANYWHERE));
    let (first, second) = (start("one"), start("two"));
    let folder = folder("fleet-told-operator");
    let ask = |args: &[&str]| {
        let url = format!("http://{}", first.admin);
        run(program(&folder).env("FLEET", SECRET).args(args).args(["--admin", &url]))
    };
    let mut told = String::new();
    eventually("both are known", || {
        let status = ask(&["status"]);
        assert_eq!(status.code, Some(0), "{status:?}");
        told = status.stdout;
        told.contains("2 replicas")
    });
    let lines: Vec<&str> = told.lines().collect();
    let head = lines.iter().find(|line| line.contains("fleet tidegate")).expect("a head");
    assert!(head.contains(&store.url()), "{head}");
    let version = env!("CARGO_PKG_VERSION");
    let row = |name: &str| {
        let is_row = |line: &&&str| line.trim_start().starts_with(name) && line.contains(version);
        *lines.iter().find(is_row).unwrap_or_else(|| panic!("no row of {name}: {told}"))
    };
    assert!(row("one").contains("this one"), "{told}");
    assert!(!row("two").contains("another config"), "its name is its own: {told}");
    let check = |store: &str| {
        let yaml = format!(
            "mcp: {{servers: {{a: {{url: '{}'}}}}}}\n\
             state: {{redis: '{store}', secret: env:FLEET}}\n",
            fake.url()
        );
        fs::write(folder.join("tidegate.yaml"), yaml).expect("the folder takes files");
        run(program(&folder).args(["check", "--connect"]).env("FLEET", SECRET))
    };
    let good = check(&store.url());
    assert_eq!(good.code, Some(0), "{good:?}");
    assert!(good.stdout.contains("fleet's store"), "{good:?}");
    assert!(good.stdout.contains("can be used"), "{good:?}");
    let bad = check(&format!("redis://{}", free_address()));
    assert_ne!(bad.code, Some(0), "{bad:?}");
    assert!(bad.stdout.contains("1 of 2 can be used"), "{bad:?}");
    check(&store.url());
    let doctor = ask(&["doctor"]);
    for words in [
        "fleet tidegate: 2 replicas (one, two)",
        &format!("the store {} answers in", store.url()),
        "MCP sessions of",
    ] {
        assert_eq!(
            doctor.stdout.contains(words),
            words != "MCP sessions of",
            "{words}: {doctor:?}"
        );
    }
    let url = format!("http://{}", first.admin);
    let mut watched = Watched::start(&folder, &["status", "--watch", "--admin", &url]);
    watched.until("fleet tidegate  two is there");
    second.stop();
    watched.until("fleet tidegate  two has left");
    watched.until("no other replica is there; start the others with the same");
    drop(store);
    watched.until("the store is away");
    let doctor = ask(&["doctor"]);
    assert_eq!(doctor.code, Some(1), "{doctor:?}");
    assert!(doctor.stdout.contains("fix: `tidegate check --connect` tests it"), "{doctor:?}");
}

/// A program that says something for as long as it runs.
struct Watched {
    child: std::process::Child,
    lines: std::sync::mpsc::Receiver<String>,
}

impl Watched {
    fn start(folder: &std::path::Path, args: &[&str]) -> Self {
        let mut command = program(folder);
        let mut child = command.args(args).stdout(Stdio::piped()).spawn().expect("it starts");
        let stdout = child.stdout.take().expect("it is piped");
        let (sender, lines) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(stdout).lines().map_while(Result::ok);
            lines.for_each(|line| drop(sender.send(line)));
        });
        Self { child, lines }
    }

    fn until(&mut self, words: &str) {
        let mut heard = Vec::new();
        while !heard.last().is_some_and(|line: &String| line.contains(words)) {
            let line = self.lines.recv_timeout(PATIENCE);
            heard.push(line.unwrap_or_else(|_| panic!("`{words}` is not in {heard:#?}")));
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

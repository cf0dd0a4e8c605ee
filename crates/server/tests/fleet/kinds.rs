//! Stores that are more than one server: a Cluster, and one that a Sentinel knows.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tidegate_fakes::fake::Step;
use tidegate_fleet::sessions::{Lookup, SessionRecord};
use tidegate_testkit::time::{PATIENCE, eventually};

use crate::bare::{BareReplica, VersionEars, wait_for};
use crate::bed::{Setup, always, good, hits, target};
use crate::store::{Store, free_address};

/// One window is met once by two replicas of this store.
fn is_shared(store: &Store, url: &str) {
    let (limited, spare) = (always(Step::status(429).with_retry_after("60")), good());
    let mut setup = Setup::of(store, &[&limited, &spare]);
    url.clone_into(&mut setup.store);
    let (one, two) = (setup.start("one"), setup.start("two"));
    assert_eq!(target(&one.chat()), "b/m");
    eventually("the window is heard", || two.health("a/m")["reason"] == "rate_limited");
    let late = setup.start("three");
    eventually("the window is loaded", || late.health("a/m")["reason"] == "rate_limited");
    assert_eq!(hits(&limited), 1);
}

/// A server of a Cluster.
struct Node {
    store: Store,
    file: String,
    bus: String,
}

impl Node {
    fn start() -> Self {
        let file = format!("tidegate-test-{}.conf", free_address().port());
        // Otherwise ten thousand more than its own, which not every port has.
        let bus = free_address().port().to_string();
        let store = Store::start_with(&[
            "--cluster-enabled",
            "yes",
            "--cluster-config-file",
            &file,
            "--cluster-announce-ip",
            "127.0.0.1",
            "--cluster-port",
            &bus,
        ]);
        Self { store, file, bus }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.store.kill();
        drop(std::fs::remove_file(std::path::Path::new("/tmp").join(&self.file)));
    }
}

/// Three servers, with a third of the slots each.
fn cluster() -> [Node; 3] {
    let nodes = [Node::start(), Node::start(), Node::start()];
    let thirds = [("0", "5460"), ("5461", "10922"), ("10923", "16383")];
    for (node, (from, to)) in nodes.iter().zip(thirds) {
        let words = [&b"CLUSTER"[..], b"ADDSLOTSRANGE", from.as_bytes(), to.as_bytes()];
        assert_eq!(node.store.ask(&words), "+OK");
    }
    for Node { store, bus, .. } in &nodes[1..] {
        let port = store.port().to_string();
        let words: [&[u8]; 5] =
            [b"CLUSTER", b"MEET", b"127.0.0.1", port.as_bytes(), bus.as_bytes()];
        assert_eq!(nodes[0].store.ask(&words), "+OK");
    }
    for node in &nodes {
        eventually("the cluster is whole", || {
            let info = node.store.ask(&[b"CLUSTER", b"INFO"]);
            info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")
        });
    }
    nodes
}

#[test]
fn a_cluster_is_a_store_and_records_of_sessions_are_spread_over_it() {
    let nodes = cluster();
    let urls = nodes.each_ref().map(|it| it.store.url());
    is_shared(&nodes[0].store, &urls.join(","));
    let urls = urls.each_ref().map(String::as_str);
    let [one, two] =
        ["one", "two"].map(|it| BareReplica::start_at(&urls, it, VersionEars::default()));
    let (first, second) = (one.fleet.sessions(), two.fleet.sessions());
    let record = SessionRecord { owner: None, epoch: 1, state: b"x".to_vec() };
    for number in 0..20 {
        let id = format!("session-{number}");
        assert!(wait_for(first.create(&id, &record)), "{number}");
        assert_eq!(wait_for(second.load(&id)), Lookup::Found(record.clone()), "{number}");
    }
    let has_some = |it: &&Node| it.store.keys().iter().any(|key| key.contains(":x:"));
    assert_eq!(nodes.iter().filter(has_some).count(), 3, "each server has some of them");
    let is_small = |key: &String| !key.contains(":x:");
    let has_small = |it: &&Node| it.store.keys().iter().any(is_small);
    assert_eq!(nodes.iter().filter(has_small).count(), 1, "all the rest is at one");
}

/// A Sentinel; killed when it is dropped.
struct Sentinel {
    address: SocketAddr,
    conf: PathBuf,
    process: Child,
}

impl Sentinel {
    fn of(store: &Store) -> Self {
        let address = free_address();
        let port = address.port();
        let conf = std::env::temp_dir().join(format!("tidegate-sentinel-{port}.conf"));
        let text = format!(
            "port {port}\nbind 127.0.0.1\nsentinel monitor main 127.0.0.1 {} 1\n\
             sentinel down-after-milliseconds main 1000\nsentinel failover-timeout main 5000\n",
            store.port()
        );
        std::fs::write(&conf, text).expect("a file can be written");
        let mut command = Command::new("redis-server");
        command.arg(&conf).arg("--sentinel").stdout(Stdio::null());
        let process = command.spawn().expect("redis-server is there");
        eventually("the sentinel answers", || TcpStream::connect(address).is_ok());
        Self { address, conf, process }
    }

    fn url(&self) -> String {
        format!("redis+sentinel://{}/main", self.address)
    }

    /// What it answers to a line at first.
    fn ask(&self, line: &str) -> String {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
        stream.write_all(format!("{line}\r\n").as_bytes()).expect("it listens");
        let mut answer = [0; 4096];
        let length = stream.read(&mut answer).expect("an answer");
        String::from_utf8_lossy(&answer[..length]).into_owned()
    }
}

impl Drop for Sentinel {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
        drop(std::fs::remove_file(&self.conf));
    }
}

#[test]
fn a_store_behind_a_sentinel_is_found() {
    let store = Store::start();
    let sentinel = Sentinel::of(&store);
    is_shared(&store, &sentinel.url());
}

/// The server that the Sentinel named is lost, and it names another one.
#[test]
fn a_store_that_a_sentinel_replaced_is_found_again() {
    let mut store = Store::start();
    let port = store.port().to_string();
    let second = Store::start_with(&["--replicaof", "127.0.0.1", &port]);
    eventually("it is a copy", || {
        second.ask(&[b"INFO", b"replication"]).contains("master_link_status:up")
    });
    let sentinel = Sentinel::of(&store);
    eventually("the sentinel knows both", || {
        sentinel.ask("SENTINEL REPLICAS main").contains(&second.port().to_string())
    });
    let (limited, spare) = (always(Step::status(429).with_retry_after("60")), good());
    let mut setup = Setup::of(&store, &[&limited, &spare]);
    setup.store = sentinel.url();
    let (one, two) = (setup.start("one"), setup.start("two"));
    store.kill();
    assert_eq!(target(&one.chat()), "b/m", "nobody waits for it");
    eventually("the other one is the store now", || {
        let named = sentinel.ask("SENTINEL GET-MASTER-ADDR-BY-NAME main");
        named.contains(&second.port().to_string())
    });
    eventually("what was learnt meanwhile is heard", || {
        two.health("a/m")["reason"] == "rate_limited"
    });
    assert_eq!(hits(&limited), 1);
}

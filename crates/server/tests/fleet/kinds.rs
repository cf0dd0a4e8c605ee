//! Stores that are more than one server: a Cluster, and one that a Sentinel knows.

use std::process::{Command, Stdio};

use tidegate_fakes::fake::Step;
use tidegate_testkit::time::eventually;

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

#[test]
fn a_cluster_is_a_store() {
    let file = format!("tidegate-test-{}.conf", free_address().port());
    let store = Store::start_with(&[
        "--cluster-enabled",
        "yes",
        "--cluster-config-file",
        &file,
        "--cluster-announce-ip",
        "127.0.0.1",
    ]);
    assert_eq!(store.ask(&[b"CLUSTER", b"ADDSLOTSRANGE", b"0", b"16383"]), "+OK");
    eventually("the cluster is whole", || {
        store.ask(&[b"CLUSTER", b"INFO"]).contains("cluster_state:ok")
    });
    is_shared(&store, &format!("{0},{0}", store.url()));
    drop(store);
    drop(std::fs::remove_file(std::path::Path::new("/tmp").join(file)));
}

#[test]
fn a_store_behind_a_sentinel_is_found() {
    let store = Store::start();
    let port = free_address().port();
    let conf = std::env::temp_dir().join(format!("tidegate-sentinel-{port}.conf"));
    let text = format!(
        "port {port}\nbind 127.0.0.1\nsentinel monitor main 127.0.0.1 {} 1\n",
        store.port()
    );
    std::fs::write(&conf, text).expect("a file can be written");
    let mut sentinel = Command::new("redis-server")
        .arg(&conf)
        .arg("--sentinel")
        .stdout(Stdio::null())
        .spawn()
        .expect("redis-server is there");
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], port));
    eventually("the sentinel answers", || std::net::TcpStream::connect(address).is_ok());
    is_shared(&store, &format!("redis+sentinel://127.0.0.1:{port}/main"));
    sentinel.kill().expect("it can be killed");
    sentinel.wait().expect("it ends");
    drop(std::fs::remove_file(conf));
}

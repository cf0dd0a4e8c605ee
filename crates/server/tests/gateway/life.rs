//! A gateway's life: reloads keep what is known, and shutting down cuts nobody off.

use std::net::TcpStream;
use std::time::Duration;

use tidegate_config::source::Source;
use tidegate_fakes::fake::{Script, Step};
use tidegate_testkit::{
    gate::chat,
    http::{Client, End},
    time::{eventually, now},
};

use crate::bed::{Setup, always, good, hits};
use crate::failover::assert_served;

#[test]
fn a_config_that_is_read_again_keeps_all_health() {
    let (bad, limited, spare) =
        (always(Step::status(500)), always(Step::status(429).with_retry_after("600")), good());
    let setup = Setup::of(&[&bad, &limited, &spare]);
    let gate = setup.start();
    for _ in 0..5 {
        assert_served(&gate.chat(), false, "before the reload");
    }
    let before = (gate.health("a/m"), gate.health("b/m"));
    assert_eq!(
        (&before.0["healthy"], &before.1["reason"]),
        (&false.into(), &"rate_limited".into())
    );
    gate.reload(&setup.yaml());
    gate.reload(&format!("{}\n# touched", setup.yaml()));
    assert_eq!((gate.health("a/m"), gate.health("b/m")), before);
    for _ in 0..5 {
        assert_served(&gate.chat(), false, "after the reload");
    }
    assert_eq!((hits(&bad), hits(&limited)), (3, 1), "nobody forgot");
}

#[test]
fn a_bad_config_is_refused_and_the_old_one_goes_on() {
    let fake = good();
    let gate = Setup::of(&[&fake]).start();
    for text in ["routes: {}", "routes: [", "nonsense: 1", ""] {
        let refused = gate.server.reload(&Source::new("test.yaml", text));
        assert!(refused.is_err(), "{text}");
        assert_served(&gate.chat(), false, "the old config");
    }
}

#[test]
fn a_provider_that_moved_is_asked_at_its_new_place_at_once() {
    let (old, new) = (good(), good());
    let gate = Setup::of(&[&old]).start();
    let mut client = gate.client();
    for _ in 0..4 {
        client.post("/v1/chat/completions", &chat("r", false));
        gate.chat();
    }
    let asked = hits(&old);
    gate.reload(&Setup::of(&[&new]).yaml());
    for _ in 0..8 {
        assert_served(&client.post("/v1/chat/completions", &chat("r", false)), false, "kept");
        assert_served(&gate.chat(), false, "fresh");
    }
    assert_eq!((hits(&old), hits(&new)), (asked, 16), "no connection to the old place is used");
}

#[test]
fn a_stream_under_way_survives_a_reload() {
    let fake = always(Step::ok().with_tokens(50, Duration::from_millis(10)));
    let setup = Setup::of(&[&fake]);
    let gate = setup.start();
    let mut client = gate.client();
    client.send("POST", "/v1/chat/completions", "", chat("r", true).as_bytes());
    eventually("the call arrives", || hits(&fake) == 1);
    gate.reload(&setup.yaml().replace("r: {", "other: {"));
    let answer = client.answer().expect("an answer");
    assert!(answer.is_whole_stream(), "{}", answer.text());
    assert_eq!(gate.chat().status, 404, "new requests meet the new config");
}

#[test]
fn stopping_lets_a_stream_finish_and_refuses_new_connections() {
    let fake = always(Step::ok().with_tokens(300, Duration::from_millis(10)));
    let gate = Setup::of(&[&fake]).start();
    let address = gate.address();
    let mut idle = gate.client();
    idle.post("/v1/embeddings", "{\"model\":\"r\",\"input\":\"x\"}");
    let mut client = gate.client();
    client.send("POST", "/v1/chat/completions", "", chat("r", true).as_bytes());
    client.read_until("\"content\"").expect("tokens come");
    let began = now();
    let stopping = std::thread::spawn(move || gate.server.stop());
    assert!(idle.is_closed(), "what is idle ends at once");
    assert_eq!(fake.counts().under_way, 1, "before the stream does");
    eventually("new connections are refused", || TcpStream::connect(address).is_err());
    let answer = client.answer().expect("the rest of the answer");
    assert!(answer.is_whole_stream(), "{}", answer.text());
    stopping.join().expect("stop returns");
    assert!(began.elapsed() < Duration::from_secs(10), "long before the drain's 30 s");
}

#[test]
fn stopping_takes_no_longer_than_the_drain() {
    let fake = always(Step::ok().with_tokens(20_000, Duration::from_millis(10)));
    let gate = Setup { top: "shutdown: {drain: 500ms}", ..Setup::of(&[&fake]) }.start();
    let mut client = gate.client();
    client.send("POST", "/v1/chat/completions", "", chat("r", true).as_bytes());
    client.read_until("\"content\"").expect("tokens come");
    let began = now();
    gate.server.stop();
    let took = began.elapsed();
    assert!(took >= Duration::from_millis(400) && took < Duration::from_secs(5), "{took:?}");
    eventually("the upstream is let go", || fake.counts().under_way == 0);
}

#[test]
fn the_end_of_the_drain_ends_streams_with_an_error_event() {
    let fake = always(Step::ok().with_tokens(2_000, Duration::from_millis(10)));
    for (path, api) in [("/v1/chat/completions", "openai"), ("/v1/messages", "anthropic")] {
        let setup = Setup { api, top: "shutdown: {drain: 300ms}", ..Setup::of(&[&fake]) };
        let gate = setup.start();
        let mut client = gate.client();
        client.send("POST", path, "", chat("r", true).as_bytes());
        client.read_until("delta").expect("tokens come");
        gate.server.stop();
        let answer = client.answer().expect("an answer");
        assert_eq!((answer.status, answer.end), (200, End::Whole), "{path}");
        let last = answer.events().pop().unwrap_or_default();
        assert!(last.contains("the gateway is shutting down"), "{path}: {last}");
        assert!(answer.has_error_event() && !answer.text().contains("[DONE]"), "{path}");
        eventually("the upstream is let go", || fake.counts().under_way == 0);
    }
}

#[test]
fn an_idle_gateway_stops_at_once() {
    let fake = good();
    let gate = Setup::of(&[&fake]).start();
    let clients: Vec<Client> = (0..20).map(|_| gate.client()).collect();
    assert_served(&gate.chat(), false, "before");
    let began = now();
    gate.server.stop();
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    drop(clients);
    eventually("no upstream connection is left", || fake.counts().connections == 0);
}

#[test]
fn connections_to_an_upstream_are_kept_and_used_again() {
    let fake = good();
    let gate = Setup::of(&[&fake]).start();
    let mut client = gate.client();
    for _ in 0..20 {
        client.post("/v1/chat/completions", &chat("r", false));
        let answer = client.post("/v1/chat/completions", &chat("r", true));
        assert!(answer.is_whole_stream());
    }
    let mut connections: Vec<u64> = fake.calls().iter().map(|call| call.connection).collect();
    connections.dedup();
    assert_eq!(connections.len(), 1, "{connections:?}");
}

#[test]
fn an_upstream_that_closed_a_kept_connection_costs_no_request() {
    let fake = good();
    let address = fake.address();
    let gate = Setup::of(&[&fake]).start();
    let mut client = gate.client();
    client.post("/v1/chat/completions", &chat("r", false));
    fake.stop();
    let fake = tidegate_fakes::fake::FakeServer::start_at(address, Script::default())
        .expect("the port is free again");
    for _ in 0..5 {
        assert_served(&client.post("/v1/chat/completions", &chat("r", false)), false, "restarted");
    }
    assert_eq!(hits(&fake), 5);
    assert_eq!(gate.health("a/m")["consecutive_failures"], 0);
}

//! What holds for every connection, on every listener and after every kind of answer: a strict eye
//! on framing, no connection after a body that nobody read, a bound that nobody can fill for good,
//! and an answer for clients that have closed their side.

use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use tidegate_fakes::fake::{Act, Step};
use tidegate_testkit::{
    gate::{Gate, chat},
    http::{Client, End},
    time::{eventually, now},
};

use crate::bed::{Setup, always, good, hits};

/// A gateway with a key, so that there are requests without one.
fn guarded(url_of: &tidegate_fakes::fake::FakeServer) -> Gate {
    let top = "keys: [{name: ci, key: 'env:CI'}]\n";
    Setup { top, variables: &[("CI", "client-key-of-16")], ..Setup::of(&[url_of]) }.start()
}

/// Listener, request line and status of answers that read no body.
fn unread(gate: &Gate) -> Vec<(SocketAddr, &'static str, u16)> {
    let (data, admin) = (gate.address(), gate.server.admin_address());
    vec![
        (data, "GET /health", 200),
        (data, "GET /v1/models", 401),
        (data, "POST /v1/chat/completions", 401),
        (data, "GET /mcp", 401),
        (data, "POST /mcp", 401),
        (data, "GET /v1/../x", 404),
        (data, "DELETE /v1/models", 401),
        (admin, "GET /nowhere", 404),
        (admin, "POST /api/reload", 401),
    ]
}

fn head(line: &str, address: SocketAddr, rest: &str) -> String {
    format!("{line} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n{rest}\r\n")
}

#[test]
fn s20_a_body_that_nobody_reads_closes_the_connection_and_smuggles_nothing() {
    let fake = good();
    let gate = guarded(&fake);
    for (address, line, status) in unread(&gate) {
        let second = head("GET /health", address, "");
        for body in [
            "transfer-encoding: chunked\r\n\r\n0\r\n\r\n".to_owned(),
            "transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nt: v\r\n\r\n".to_owned(),
            "content-length: 3\r\n\r\nabc".to_owned(),
            // Its body holds a request, and more of it is to come.
            format!("content-length: {}\r\n\r\n{second}", second.len() + 10),
            format!("transfer-encoding: chunked\r\n\r\nfff\r\n{second}"),
        ] {
            let first = head(line, address, "");
            let first = first.strip_suffix("\r\n").expect("a head ends with an empty line");
            let mut client = Client::connect(address);
            client.send_raw(format!("{first}{body}{second}").as_bytes());
            let answer = client.answer().unwrap_or_else(|end| panic!("{line} {body:?}: {end:?}"));
            assert_eq!(answer.status, status, "{line} {body:?}: {}", answer.text());
            assert_eq!(answer.header("connection"), Some("close"), "{line} {body:?}");
            let next = client.answer().map(|answer| answer.status);
            assert_eq!(next, Err(End::Broken), "{line} {body:?}: a second answer");
        }
    }
    assert_eq!(hits(&fake), 0);
}

#[test]
fn s20_every_head_of_a_connection_is_looked_at_whatever_was_answered_before() {
    let fake = good();
    let gate = guarded(&fake);
    let data = gate.address();
    let mut before = unread(&gate);
    before.push((gate.server.admin_address(), "GET /metrics", 200));
    for (address, line, status) in before {
        for (name, bad) in [
            ("bare LF", "GET /health HTTP/1.1\nhost: HOST\r\n\r\n"),
            (
                "CL+TE",
                "GET /health HTTP/1.1\r\nhost: HOST\r\ncontent-length: 3\r\n\
                 transfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            ),
            (
                "gzip, chunked",
                "GET /health HTTP/1.1\r\nhost: HOST\r\ntransfer-encoding: gzip, chunked\r\n\r\n\
                 0\r\n\r\n",
            ),
        ] {
            let mut client = Client::connect(address);
            client.send_raw(head(line, address, "").as_bytes());
            assert_eq!(client.answer().map(|it| it.status), Ok(status), "{line}");
            client.send_raw(bad.replace("HOST", &address.to_string()).as_bytes());
            assert_eq!(client.answer().map(|it| it.status), Ok(400), "{name} after {line}");
            assert!(client.is_closed(), "{name} after {line}");
        }
    }
    // After a body in chunks that was read, the connection goes on, and is looked at.
    let mut client = Client::connect(data);
    let key = "authorization: Bearer client-key-of-16\r\ntransfer-encoding: chunked\r\n";
    let body = chat("r", false);
    let chunked = format!("{:x};x=y\r\n{body}\r\n0\r\n\r\n", body.len());
    for _ in 0..3 {
        let post = head("POST /v1/chat/completions", data, key);
        client.send_raw(format!("{post}{chunked}").as_bytes());
        let answer = client.answer().expect("an answer");
        assert_eq!((answer.status, answer.header("connection")), (200, None), "{}", answer.text());
    }
    client.send_raw(format!("GET /health HTTP/1.1\nhost: {data}\r\n\r\n").as_bytes());
    assert_eq!(client.answer().map(|it| it.status), Ok(400));
    assert!(client.is_closed());
    assert_eq!(hits(&fake), 3);
}

#[test]
fn s48_sockets_that_say_nothing_lock_nobody_out() {
    let fake = good();
    let gate = Setup { top: "limits: {connections: 32}", ..Setup::of(&[&fake]) }.start();
    let admin = gate.server.admin_address();
    let health = "GET /health HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n";
    let explain = format!("{}content-length: 9\r\n\r\n{{", head("POST /api/explain", admin, ""));
    let explain = explain.replacen("\r\n\r\n", "\r\n", 1);
    let mut held = Vec::new();
    for (address, count) in [(admin, 400), (gate.address(), 100)] {
        for said in ["", "GET / HT", health, explain.as_str()] {
            for _ in 0..count {
                let mut client = Client::connect(address);
                client.send_raw(said.as_bytes());
                held.push(client);
            }
            assert_eq!(
                tidegate_testkit::gate::get(gate.address(), "/health").status,
                200,
                "{said:?}"
            );
            assert_eq!(tidegate_testkit::gate::get(admin, "/metrics").status, 200, "{said:?}");
        }
    }
    assert_eq!(gate.chat().status, 200);
}

#[test]
fn a_request_under_way_is_never_given_up_for_a_new_connection() {
    let fake = always(Step::ok().with_latency(Duration::from_millis(700)));
    let yaml = Setup { top: "limits: {connections: 4}", ..Setup::of(&[&fake]) }.yaml();
    let gate = Gate::start_with_file(&yaml, ("/none", ""));
    let mut busy: Vec<Client> = (0..4).map(|_| gate.client()).collect();
    for client in &mut busy {
        client.send("POST", "/v1/chat/completions", "", chat("r", false).as_bytes());
    }
    eventually("all calls are under way", || hits(&fake) == 4);
    let refused: Vec<bool> = (0..8).map(|_| gate.client().is_closed()).collect();
    assert_eq!(refused, [true; 8], "the bound holds");
    for client in &mut busy {
        assert_eq!(client.answer().map(|it| it.status), Ok(200));
    }
}

#[test]
fn s45_a_client_in_the_middle_of_a_large_body_still_gets_its_refusal() {
    let fake = good();
    let gate = Setup { top: "limits: {body: 64KiB}", ..Setup::of(&[&fake]) }.start();
    for _ in 0..5 {
        let mut client = gate.client();
        let body = vec![b' '; 600 * 1024];
        client.send("POST", "/v1/chat/completions", "", &body);
        assert_eq!(client.answer().map(|it| it.status), Ok(413));
        assert!(client.is_closed());
    }
    assert_eq!(hits(&fake), 0);
}

#[test]
fn a_client_that_has_closed_its_side_gets_its_answer() {
    let quick = good();
    let slow = always(Step::ok().with_latency(Duration::from_millis(900)));
    for fake in [&quick, &slow] {
        let gate = Setup::of(&[fake]).start();
        for is_stream in [false, true] {
            let mut client = gate.client();
            let body = chat("r", is_stream);
            client.send("POST", "/v1/chat/completions", "", body.as_bytes());
            client.stream.shutdown(Shutdown::Write).expect("its side closes");
            let mut answer = client.answer().expect("an answer");
            while answer.status == 100 {
                answer = client.answer().expect("an answer after the interim one");
            }
            assert_eq!(answer.status, 200, "{}", answer.text());
            assert!(!is_stream || answer.is_whole_stream(), "{}", answer.text());
            assert!(client.is_closed());
        }
        for (address, path) in [(gate.address(), "/health"), (gate.address(), "/v1/models")]
            .into_iter()
            .chain([(gate.server.admin_address(), "/metrics")])
        {
            let mut client = Client::connect(address);
            client.send("GET", path, "", b"");
            client.stream.shutdown(Shutdown::Write).expect("its side closes");
            assert_eq!(client.answer().map(|it| it.status), Ok(200), "{path}");
            assert!(client.is_closed());
        }
    }
}

#[test]
fn a_client_that_has_gone_is_told_from_one_that_has_closed_its_side() {
    for (step, is_stream) in [
        (Step::of(Act::Hang), false),
        (Step::of(Act::Hang), true),
        (Step::after(Act::Stall, 3), true),
    ] {
        let fake = always(step);
        let gate = Setup::of(&[&fake]).start();
        let mut client = gate.client();
        client.send("POST", "/v1/chat/completions", "", chat("r", is_stream).as_bytes());
        eventually("the call arrives", || fake.counts().under_way == 1);
        let began = now();
        drop(client);
        eventually("the upstream is let go", || fake.counts().under_way == 0);
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    }
}

#[test]
fn the_drain_ends_idle_connections_at_once_on_both_listeners() {
    let fake = always(Step::ok().with_latency(Duration::from_secs(2)));
    let gate = Setup::of(&[&fake]).start();
    let (data, admin) = (gate.address(), gate.server.admin_address());
    let mut fresh: Vec<Client> = [data, admin].into_iter().map(Client::connect).collect();
    let mut used: Vec<Client> = [data, admin].into_iter().map(Client::connect).collect();
    for (client, path) in used.iter_mut().zip(["/health", "/metrics"]) {
        client.send("GET", path, "", b"");
        assert_eq!(client.answer().map(|it| it.status), Ok(200));
    }
    let mut busy = gate.client();
    busy.send("POST", "/v1/chat/completions", "", chat("r", false).as_bytes());
    eventually("the call arrives", || hits(&fake) == 1);
    let began = now();
    let stopping = std::thread::spawn(move || gate.server.stop());
    for client in fresh.iter_mut().chain(&mut used) {
        assert!(client.is_closed());
    }
    assert_eq!(fake.counts().under_way, 1, "before what is under way ends");
    assert_eq!(busy.answer().map(|it| it.status), Ok(200), "what is under way is finished");
    assert!(busy.is_closed());
    stopping.join().expect("stop returns");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

#[test]
fn a_first_request_that_was_on_its_way_when_the_drain_began_is_answered() {
    let fake = always(Step::ok());
    let gate = Setup::of(&[&fake]).start();
    let address = gate.address();
    let mut clients: Vec<Client> = (0..8).map(|_| gate.client()).collect();
    let stopping = std::thread::spawn(move || gate.server.stop());
    eventually("new connections are refused", || TcpStream::connect(address).is_err());
    for client in &mut clients {
        client.send("POST", "/v1/chat/completions", "", chat("r", false).as_bytes());
    }
    for client in &mut clients {
        assert_eq!(client.answer().map(|it| it.status), Ok(200));
        assert!(client.is_closed(), "and nothing more");
    }
    stopping.join().expect("stop returns");
}

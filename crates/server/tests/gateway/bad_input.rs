//! What a client must not be able to do on the wire: right error, no upstream call, connection
//! closed where what follows cannot be trusted.

use std::net::SocketAddr;

use tidegate_testkit::{
    gate::{Gate, chat},
    http::{Answer, Client, End},
};

use crate::bed::{Setup, good, hits};

/// Sends bytes; `HOST` stands for the listener's own name.
fn raw(gate: &Gate, text: &str) -> (Client, Result<Answer, End>) {
    raw_at(gate.address(), text)
}

fn raw_at(address: SocketAddr, text: &str) -> (Client, Result<Answer, End>) {
    let mut client = Client::connect(address);
    client.send_raw(text.replace("HOST", &address.to_string()).as_bytes());
    let answer = client.answer();
    (client, answer)
}

const BODY: &str = "{\"model\":\"r\",\"messages\":[]}";

#[test]
fn s20_requests_that_two_readers_could_cut_differently_are_refused_and_closed() {
    let fake = good();
    let gate = Setup::of(&[&fake]).start();
    let head = "HTTP/1.1\r\nhost: HOST\r\ncontent-type: application/json\r\n";
    let listeners =
        [(gate.address(), "/v1/chat/completions"), (gate.server.admin_address(), "/api/explain")];
    let length = BODY.len();
    let chunks = format!("{length:x}\r\n{BODY}\r\n0\r\n\r\n");
    let cases = [
        (
            "CL+TE",
            format!("content-length: {length}\r\ntransfer-encoding: chunked\r\n\r\n{chunks}"),
        ),
        ("TE+CL", format!("transfer-encoding: chunked\r\ncontent-length: 3\r\n\r\n{chunks}")),
        ("two lengths", format!("content-length: {length}\r\ncontent-length: 3\r\n\r\n{BODY}")),
        (
            "same length twice",
            format!("content-length: {length}\r\ncontent-length: {length}\r\n\r\n{BODY}"),
        ),
        ("coded chunks", format!("transfer-encoding: gzip, chunked\r\n\r\n{chunks}")),
        ("chunked twice", format!("transfer-encoding: chunked, chunked\r\n\r\n{chunks}")),
        ("a list of lengths", format!("content-length: {length}, {length}\r\n\r\n{BODY}")),
        ("a signed length", format!("content-length: +{length}\r\n\r\n{BODY}")),
        ("xchunked", format!("transfer-encoding: xchunked\r\n\r\n{chunks}")),
        (
            "chunked twice",
            format!("transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n{chunks}"),
        ),
        ("chunked, identity", format!("transfer-encoding: chunked, identity\r\n\r\n{chunks}")),
        ("space before colon", format!("content-length : {length}\r\n\r\n{BODY}")),
        ("obs-fold", format!("x-a: b\r\n c\r\ncontent-length: {length}\r\n\r\n{BODY}")),
        ("bare LF", format!("x-a: b\ncontent-length: {length}\r\n\r\n{BODY}")),
        ("bare LF at the end", format!("content-length: {length}\r\n\n{BODY}")),
        ("NUL in a value", format!("x-a: b\0c\r\ncontent-length: {length}\r\n\r\n{BODY}")),
        ("bare CR in a value", format!("x-a: b\rc\r\ncontent-length: {length}\r\n\r\n{BODY}")),
        ("no colon", format!("x-a\r\ncontent-length: {length}\r\n\r\n{BODY}")),
        (
            "underscore twins",
            format!("content-length: {length}\r\nx-a-b: 1\r\nx_a_b: 2\r\n\r\n{BODY}"),
        ),
    ];
    for (name, rest) in cases {
        for (address, path) in listeners {
            let (mut client, answer) = raw_at(address, &format!("POST {path} {head}{rest}"));
            let status = answer.map(|answer| answer.status);
            assert_eq!(status, Ok(400), "{name} {path}");
            assert!(client.is_closed(), "{name} {path}: what follows must not be read");
        }
    }
    assert_eq!(hits(&fake), 0);
}

#[test]
fn s20_a_broken_chunk_size_reaches_no_provider() {
    let fake = good();
    let gate = Setup::of(&[&fake]).start();
    for size in ["zz", "-5", "0x1b", "1b 1b", "ffffffffffffffffff"] {
        let (mut client, answer) = raw(
            &gate,
            &format!(
                "POST /v1/chat/completions HTTP/1.1\r\nhost: HOST\r\n\
                 transfer-encoding: chunked\r\n\r\n{size}\r\n{BODY}\r\n0\r\n\r\n"
            ),
        );
        let is_refused = answer.is_err() || answer.is_ok_and(|it| it.status == 400);
        assert!(is_refused && client.is_closed(), "{size}");
    }
    assert_eq!(hits(&fake), 0);
}

#[test]
fn s23_s24_odd_request_lines_and_hosts_reach_no_provider() {
    let fake = good();
    let gate = Setup::of(&[&fake]).start();
    let length = BODY.len();
    for host in ["h/?", "h#", "HOST@evil.test", "evil.test@HOST", "", "evil.test", "HOST.evil.test"]
    {
        let text = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: {host}\r\ncontent-length: {length}\r\n\
             \r\n{BODY}"
        );
        let status = raw(&gate, &text).1.map(|answer| answer.status);
        assert!(matches!(status, Ok(400 | 403)), "host `{host}`: {status:?}");
    }
    for line in ["POST  /v1/x HTTP/1.1", "POST /v1/x HTTP/9.9", "POST /v1/x", "\x16\x03\x01\x02"] {
        let (mut client, answer) = raw(&gate, &format!("{line}\r\nhost: HOST\r\n\r\n"));
        let is_refused = answer.is_err() || answer.is_ok_and(|it| it.status >= 400);
        assert!(is_refused, "{line}");
        assert!(client.is_closed(), "{line}");
    }
    let absolute = format!(
        "POST http://evil.test/v1/chat/completions HTTP/1.1\r\nhost: HOST\r\n\
         content-length: {length}\r\n\r\n{BODY}"
    );
    assert_eq!(raw(&gate, &absolute).1.map(|it| it.status), Ok(403));
    assert_eq!(hits(&fake), 0);
}

#[test]
fn s25_a_path_has_one_spelling_and_the_admin_api_is_not_on_this_listener() {
    let fake = good();
    let gate = Setup::of(&[&fake]).start();
    for path in [
        "//v1/chat/completions",
        "/v1//chat/completions",
        "/V1/chat/completions",
        "/v1/%63hat/completions",
        "/v1/../v1/chat/completions",
        "/v1/%2e%2e/api/snapshot",
        "/v1/chat/completions;x",
        "/v1/chat/completions/",
        "/api/snapshot",
        "/api/reload",
        "/metrics",
        "/v2/chat/completions",
    ] {
        let answer = gate.post(path, &chat("r", false));
        assert_eq!(answer.status, 404, "{path}: {}", answer.text());
    }
    for path in ["/api/snapshot", "/metrics", "/", "/v1/../metrics"] {
        assert_eq!(gate.get(path).status, 404, "{path}");
    }
    assert_eq!(hits(&fake), 0);
}

#[test]
fn s26_an_encoded_or_foreign_body_is_415() {
    let fake = good();
    let gate = Setup::of(&[&fake]).start();
    for headers in [
        "content-encoding: gzip, gzip\r\n",
        "content-encoding: gzip\r\ncontent-encoding: zstd\r\n",
        "content-encoding: br\r\n",
        "content-encoding: x-unknown\r\n",
        "content-type: text/plain\r\n",
        "content-type: text/plain; charset=utf-8\r\n",
        "content-type: multipart/form-data; boundary=x\r\n",
        "content-type: application/x-www-form-urlencoded\r\n",
    ] {
        let answer = gate.post_with("/v1/chat/completions", headers, &chat("r", false));
        assert_eq!(answer.status, 415, "{headers}");
    }
    assert_eq!(hits(&fake), 0);
}

#[test]
fn s27_s28_s30_foreign_hosts_and_origins_are_refused_on_both_listeners() {
    let fake = good();
    let gate = Setup::of(&[&fake]).start();
    let length = BODY.len();
    for address in [gate.address(), gate.server.admin_address()] {
        for headers in [
            "host: evil.test\r\n".to_owned(),
            format!("host: evil.test:{}\r\n", address.port()),
            format!("host: {address}\r\norigin: http://evil.test\r\n"),
            format!("host: {address}\r\norigin: null\r\n"),
            format!("host: {address}\r\norigin: https://{address}\r\n"),
            format!("host: {address}\r\norigin: file://localhost\r\n"),
            format!("host: {address}\r\norigin: http://127.0.0.1.evil.test\r\n"),
        ] {
            for line in ["POST /v1/chat/completions", "GET /metrics", "OPTIONS /v1/models"] {
                let mut client = Client::connect(address);
                let text = format!(
                    "{line} HTTP/1.1\r\n{headers}content-type: application/json\r\n\
                     content-length: {length}\r\n\r\n{BODY}"
                );
                client.send_raw(text.as_bytes());
                let answer = client.answer().expect("an answer");
                assert!(matches!(answer.status, 403 | 421), "{line} {headers}: {}", answer.status);
                assert_eq!(answer.header("access-control-allow-origin"), None);
            }
        }
    }
    assert_eq!(hits(&fake), 0);
}

#[test]
fn s27_a_listener_on_a_mapped_loopback_address_checks_the_host_too() {
    let fake = good();
    let yaml = Setup::of(&[&fake]).yaml().replace("127.0.0.1:0", "[::ffff:127.0.0.1]:0");
    let yaml = yaml.replace("listen: [", "listen: '[").replace("]:0\n", "]:0'\n");
    let gate = Gate::start(&yaml, &[]);
    for listener in [gate.address(), gate.server.admin_address()] {
        let address = SocketAddr::from(([127, 0, 0, 1], listener.port()));
        for (host, is_served) in [("evil.test", false), ("127.0.0.1", true), ("localhost", true)] {
            let path = if listener == gate.address() { "/v1/models" } else { "/metrics" };
            let text = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\n\r\n");
            let status = raw_at(address, &text).1.map(|answer| answer.status);
            assert_eq!(status, Ok(if is_served { 200 } else { 403 }), "{host} at {listener}");
        }
    }
}

#[test]
fn s9_a_key_in_the_query_is_refused() {
    let fake = good();
    let gate = Setup::of(&[&fake]).start();
    for query in [
        "key=sekrit",
        "api_key=sekrit",
        "x=1&api-key=sekrit",
        "access_token=sekrit",
        "KEY=sekrit",
        "%6bey=sekrit",
        "x-goog-api-key=sekrit",
        "client_secret=sekrit",
        "x=1;key=sekrit",
    ] {
        let answer = gate.post(&format!("/v1/chat/completions?{query}"), &chat("r", false));
        assert_eq!(answer.status, 400, "{query}");
        assert!(!answer.text().contains("sekrit"), "{query}");
    }
    assert_eq!(hits(&fake), 0);
}

#[test]
fn s45_a_body_over_the_limit_is_413_before_it_was_read() {
    let fake = good();
    let gate = Setup { top: "limits: {body: 64KiB}", ..Setup::of(&[&fake]) }.start();
    let told = "POST /v1/chat/completions HTTP/1.1\r\nhost: HOST\r\ncontent-length: 65537\r\n\r\n{";
    let (mut client, answer) = raw(&gate, told);
    assert_eq!(answer.map(|it| it.status), Ok(413), "by its told length, after one byte");
    assert!(client.is_closed());
    let mut client = gate.client();
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {}\r\ntransfer-encoding: chunked\r\n\r\n",
        gate.address()
    );
    client.send_raw(head.as_bytes());
    let chunk = [b"1000\r\n".to_vec(), vec![b' '; 0x1000], b"\r\n".to_vec()].concat();
    for _ in 0..17 {
        client.send_raw(&chunk);
    }
    assert_eq!(client.answer().map(|it| it.status), Ok(413), "chunked, after 68 KiB");
    assert!(client.is_closed());
    let fits = format!("{{\"model\":\"r\",\"x\":\"{}\"}}", "a".repeat(60_000));
    assert_eq!(gate.post("/v1/chat/completions", &fits).status, 200);
    assert_eq!(hits(&fake), 1);
}

#[test]
fn s45_a_413_arrives_even_while_the_client_still_sends() {
    let fake = good();
    let gate = Setup { top: "limits: {body: 64KiB}", ..Setup::of(&[&fake]) }.start();
    for round in 0..10 {
        let mut client = gate.client();
        let body = "a".repeat(400_000);
        client.send("POST", "/v1/chat/completions", "", body.as_bytes());
        let status = client.answer().map(|it| it.status);
        assert_eq!(status, Ok(413), "round {round}: not a reset connection");
    }
}

#[test]
fn a_head_over_the_limit_is_refused() {
    let fake = good();
    let gate = Setup::of(&[&fake]).start();
    let headers = format!("x-large: {}\r\n", "a".repeat(100_000));
    let mut client = gate.client();
    client.send("POST", "/v1/chat/completions", &headers, BODY.as_bytes());
    let status = client.answer().map(|it| it.status);
    assert_eq!(status, Ok(431));
    assert_eq!(hits(&fake), 0);
}

#[test]
fn s47_hostile_json_is_a_400_without_a_call() {
    let fake = good();
    let gate = Setup::of(&[&fake]).start();
    let deep = |count: usize| format!("{{\"model\":\"r\",\"x\":{}", "[".repeat(count));
    let cases = [
        ("depth 200", format!("{}{}}}", deep(200), "]".repeat(200))),
        ("depth 100 000", deep(100_000)),
        ("two models", "{\"model\":\"r\",\"model\":\"a/other\"}".into()),
        ("two models, one escaped", "{\"model\":\"r\",\"mod\\u0065l\":\"a/other\"}".into()),
        ("two streams", "{\"model\":\"r\",\"stream\":true,\"stream\":false}".into()),
        ("a model that is no text", "{\"model\":[\"r\"]}".into()),
        ("not an object", "[\"r\"]".into()),
        ("nothing", String::new()),
        ("half", "{\"model\":\"r\",".into()),
        ("two values", "{\"model\":\"r\"}{}".into()),
        ("not JSON", "model=r".into()),
        ("half a surrogate pair in the model", "{\"model\":\"\\ud800\"}".into()),
        ("a control byte in the model", "{\"model\":\"r\n\"}".into()),
    ];
    for (name, body) in cases {
        let answer = gate.post("/v1/chat/completions", &body);
        assert_eq!(answer.status, 400, "{name}: {}", answer.text());
        assert!(answer.json()["error"]["message"].is_string(), "{name}");
    }
    assert_eq!(hits(&fake), 0);
    let message = |body: &str| {
        let answer = gate.post("/v1/chat/completions", body).json();
        answer["error"]["message"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(message("{\"model\":[]}"), "`model` must be a string at byte 9");
    let half = "`model` contains half of a surrogate pair at byte 9";
    assert_eq!(message("{\"model\":\"\\ud800\"}"), half);
    let early = "the body is not valid JSON: the text ends too early at byte 1";
    assert_eq!(message("{"), early);
    let elsewhere = "{\"model\":\"r\",\"user\":\"\\ud800\",\"messages\":[]}";
    let mut client = gate.client();
    client.send("POST", "/v1/embeddings", "", elsewhere.as_bytes());
    assert!(client.answer().is_ok(), "the provider may judge it");
    let sent = fake.calls().pop().expect("a call").text();
    assert_eq!(sent, elsewhere.replace("\"r\"", "\"m\""));
    let many = format!("{{\"model\":\"r\",\"x\":[{}0]}}", "[],".repeat(1_000_000));
    let status = gate.post("/v1/chat/completions", &many).status;
    assert_eq!(status, 200, "many empty arrays are large, not wrong");
}

#[test]
fn bytes_that_are_not_utf8_do_no_harm() {
    let fake = good();
    let gate = Setup::of(&[&fake]).start();
    let mut client = gate.client();
    client.send("POST", "/v1/chat/completions", "", b"{\"model\":\"r\xff\"}");
    let status = client.answer().map(|it| it.status);
    assert!(matches!(status, Ok(400 | 404)), "{status:?}");
    assert_eq!(hits(&fake), 0);
}

#[test]
fn methods_that_are_not_served_are_405() {
    let fake = good();
    let gate = Setup::of(&[&fake]).start();
    for method in ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"] {
        let mut client = gate.client();
        client.send(method, "/v1/chat/completions", "", BODY.as_bytes());
        let answer = client.answer().expect("an answer");
        assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")), "{method}");
    }
    for (method, path) in
        [("POST", "/v1/models"), ("DELETE", "/v1/models/r"), ("POST", "/health"), ("PUT", "/ready")]
    {
        let mut client = gate.client();
        client.send(method, path, "", BODY.as_bytes());
        let answer = client.answer().expect("an answer");
        assert_eq!((answer.status, answer.header("allow")), (405, Some("GET")), "{method} {path}");
    }
    let answer = gate.get("/v1/chat/completions");
    assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")));
    assert_eq!(hits(&fake), 0);
}

#[test]
fn a_balancer_may_ask_for_health_and_readiness_with_head() {
    let fake = good();
    let gate = Setup::of(&[&fake]).start();
    for path in ["/health", "/ready"] {
        let mut client = gate.client();
        client.send("HEAD", path, "connection: close\r\n", b"");
        let answer = client.answer().expect("a head");
        assert_eq!((answer.status, answer.body.len()), (200, 0), "{path}");
    }
}

#[test]
fn s11_s13_nothing_a_client_says_changes_where_a_request_goes() {
    let fake = good();
    let gate = Setup::of(&[&fake]).start();
    let body = r#"{"model":"r","api_base":"http://evil.test","base_url":"http://evil.test",
        "messages":[],"metadata":{"host":"evil.test"}}"#;
    let headers = "x-forwarded-host: evil.test\r\nx-upstream-host: evil.test\r\n\
                   forwarded: host=evil.test\r\nx-original-url: /admin\r\n";
    assert_eq!(gate.post_with("/v1/chat/completions", headers, body).status, 200);
    let call = fake.calls()[0].clone();
    assert_eq!(call.header("host"), Some(fake.address().to_string().as_str()));
    assert_eq!(call.path, "/v1/chat/completions");
    assert!(!format!("{:?}", call.headers).contains("evil.test"), "{:?}", call.headers);
}

#[test]
fn s58_a_gateway_that_is_its_own_backend_answers_508() {
    // A port that is free now, so that the config can name the gateway's own address.
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.local_addr().expect("it is bound").port()
    };
    let fake = good();
    let mut setup = Setup::of(&[&fake]);
    setup.urls[0] = format!("http://127.0.0.1:{port}");
    let yaml =
        setup.yaml().replacen("listen: 127.0.0.1:0", &format!("listen: 127.0.0.1:{port}"), 1);
    let gate = Gate::start(&format!("{yaml}\ndefault_route: r"), &[]);
    let answer = gate.chat();
    assert_eq!(answer.status, 508, "{}", answer.text());
    assert_eq!(answer.header("x-tidegate-attempts"), Some("1"));
}

#[test]
fn s46_compressed_answers_are_never_unpacked() {
    // Ten MiB of zeros in ten KiB, roughly; nobody here looks inside.
    let bomb = [b"\x1f\x8b\x08\0\0\0\0\0\0\x03".to_vec(), vec![0xAA; 10_000]].concat();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\n\
         content-length: {}\r\n\r\n",
        bomb.len()
    );
    let upstream = crate::upstream::Raw::start(vec![head.into_bytes(), bomb.clone()]);
    let fake = good();
    let mut setup = Setup::of(&[&fake]);
    setup.urls[0] = upstream.url();
    let gate = setup.start();
    let answer = gate.chat();
    assert_eq!((answer.status, answer.end), (503, End::Whole));
    assert!(!answer.body.starts_with(&bomb[..10]), "bytes that nobody can read are no answer");
    assert_eq!(upstream.hits(), 1);
}

#[test]
fn s49_s50_a_client_that_begins_with_http_2_is_refused_politely() {
    let fake = good();
    let gate = Setup::of(&[&fake]).start();
    for address in [gate.address(), gate.server.admin_address()] {
        let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
        let (mut client, answer) = raw_at(address, preface);
        let status = answer.map(|it| it.status);
        assert!(matches!(status, Ok(400 | 505)), "{status:?}");
        assert!(client.is_closed());
    }
    assert_eq!(hits(&fake), 0);
}

#[test]
fn s48_many_slow_sockets_do_not_slow_the_others() {
    let count = if tidegate_testkit::machine::is_long() { 5000 } else { 300 };
    let fake = good();
    let gate = Setup { top: "limits: {connections: 6000}", ..Setup::of(&[&fake]) }.start();
    let slowest = |gate: &Gate| {
        let took = |_| {
            let began = tidegate_testkit::time::now();
            assert_eq!(gate.chat().status, 200);
            began.elapsed()
        };
        (0..50).map(took).max().unwrap_or_default()
    };
    let alone = slowest(&gate);
    // A third each: a head that does not end, a body that does not come, an answer nobody reads.
    let body = chat("r", false);
    let head = format!("POST /v1/chat/completions HTTP/1.1\r\nhost: {}\r\n", gate.address());
    let rest = format!("content-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
    let slow: Vec<Client> = (0..count)
        .map(|number| {
            let mut client = gate.client();
            client.send_raw(head.as_bytes());
            if number % 3 > 0 {
                client.send_raw(rest.as_bytes());
            }
            if number % 3 > 1 {
                client.send_raw(body.as_bytes());
            }
            client
        })
        .collect();
    let among = slowest(&gate);
    // Twice as long is the aim; a busy machine's hiccups are not the gateway's.
    let most = alone * 2 + std::time::Duration::from_millis(500);
    assert!(among < most, "{among:?} among {} slow ones, {alone:?} alone", slow.len());
}

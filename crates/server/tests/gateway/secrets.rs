//! S1, S2, S61: keys, addresses and prompts appear nowhere they do not belong.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tidegate_fakes::fake::{Act, FakeServer, Script, Step};
use tidegate_testkit::gate::{Gate, chat};

use crate::bed::{Setup, good};

const PROVIDER: &str = "sk-canary-provider-4f5e6d";
const HEADER: &str = "canary-header-0a1b2c";
const CALLER: &str = "canary-caller-778899";
const PROMPT: &str = "canary-prompt-zzyyxx";
const VARIABLES: &[(&str, &str)] = &[("KEY", PROVIDER), ("HEADER", HEADER), ("CALLER", CALLER)];

fn secretive(url: &str) -> Gate {
    let fake = good();
    let mut setup = Setup {
        provider: "key: 'env:KEY', headers: {x-extra: 'env:HEADER'}",
        top: "keys: [{name: ci, key: 'env:CALLER'}]\nlog: {level: debug, access: true}",
        variables: VARIABLES,
        ..Setup::of(&[&fake])
    };
    setup.urls[0] = url.to_owned();
    setup.start()
}

fn asked(gate: &Gate, is_stream: bool) -> String {
    let headers = format!("x-api-key: {CALLER}\r\nx-tidegate-session: s\r\n");
    let body = chat("r", is_stream).replace("good morning", PROMPT);
    let answer = gate.post_with("/v1/chat/completions", &headers, &body);
    format!("{}{}", answer.head, answer.text())
}

fn assert_clean(text: &str, what: &str) {
    for canary in [PROVIDER, HEADER, CALLER] {
        assert!(!text.contains(canary), "{what} tells {canary}: {text}");
    }
}

#[test]
fn s2_an_error_that_echoes_our_key_reaches_the_client_masked() {
    let echo = format!(
        "{{\"error\": {{\"message\": \"Incorrect API key: Bearer {PROVIDER}, x-extra {HEADER}\"}}}}"
    );
    for status in [400, 401, 403, 429, 500] {
        let fake = FakeServer::start(Script::always(Step {
            text: Some(echo.clone()),
            headers: [("x-echo".to_owned(), format!("Bearer {PROVIDER}"))].into(),
            ..Step::status(status)
        }));
        let gate = secretive(&fake.url());
        let text = asked(&gate, false);
        assert!(text.contains("Incorrect API key"), "{status}: the words themselves pass: {text}");
        assert_clean(&text, &format!("a {status}"));
    }
}

#[test]
fn s2_an_error_inside_a_200_is_masked_too() {
    let echo = format!("{{\"error\": {{\"message\": \"bad key {PROVIDER} and {HEADER}\"}}}}");
    let step = Step { text: Some(echo), ..Step::of(Act::ErrorBody) };
    let fake = FakeServer::start(Script::always(step));
    let gate = secretive(&fake.url());
    assert_clean(&asked(&gate, false), "an error body");
    assert_clean(&asked(&gate, true), "an error body in place of a stream");
}

/// What a client gets of an upstream that sends exactly this, and what is in it instead of the key.
fn echoed(content_type: &str, headers: &str, body: &str, is_stream: bool) -> String {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\n{headers}content-length: {}\r\n\r\n",
        body.len()
    );
    // In two pieces, cut inside the body.
    let (first, second) = body.as_bytes().split_at(body.len() / 2);
    let pieces = vec![[head.as_bytes(), first].concat(), second.to_vec()];
    let raw = crate::upstream::Raw::start(pieces);
    asked(&secretive(&raw.url()), is_stream)
}

#[test]
fn s2_an_answer_that_echoes_our_key_is_masked_in_its_body_and_headers() {
    let escaped = PROVIDER.replace('-', "\\u002d");
    let in_url = PROVIDER.replace('-', "%2D");
    for spelling in [PROVIDER, &escaped, &in_url, HEADER] {
        let body = format!("{{\"choices\":[{{\"message\":{{\"content\":\"{spelling}\"}}}}]}}");
        let headers = format!("x-request-id: {spelling}\r\nx-echo: {spelling}\r\n");
        let text = echoed("application/json", &headers, &body, false);
        assert!(text.contains("HTTP/1.1 200") && text.contains("*****\"}}]}"), "{text}");
        assert!(!text.contains(spelling), "{text}");
        let long = format!("{{\"choices\":\"{}{spelling}\"}}", "a".repeat(2_000_000));
        let text = echoed("application/json", "", &long, false);
        assert!(text.ends_with("*****\"}"), "a body that was not held whole");
        assert!(!text.contains(spelling));
    }
}

#[test]
fn s2_an_event_that_echoes_our_key_after_the_commit_is_masked() {
    let event = |text: &str| {
        format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
    };
    let escaped = PROVIDER.replace('-', "\\u002D");
    let long = format!("{}{PROVIDER}", "a".repeat(200_000));
    for spelling in [PROVIDER, &escaped, HEADER, &long] {
        let error = format!("data: {{\"error\":{{\"message\":\"{spelling}\"}}}}\n\n");
        let body = [event("hi"), event(spelling), error].concat();
        let text = echoed("text/event-stream", "", &body, true);
        let spelling = spelling.trim_start_matches('a');
        assert!(text.contains("hi") && text.contains("*****\"}}\n\n"), "{text}");
        assert!(!text.contains(spelling), "{text}");
    }
}

#[test]
fn a_providers_own_affairs_do_not_reach_the_client() {
    let headers = "server: nginx\r\naccess-control-allow-origin: *\r\nx-internal-pod: p7\r\n\
                   set-cookie: a=b\r\nx-request-id: r1\r\nopenai-processing-ms: 7\r\n";
    let text = echoed("application/json", headers, "{\"choices\":[]}", false);
    for kept in ["x-request-id: r1", "openai-processing-ms: 7", "content-type: application/json"] {
        assert!(text.contains(kept), "{kept}: {text}");
    }
    for dropped in ["nginx", "access-control", "x-internal-pod", "set-cookie"] {
        assert!(!text.contains(dropped), "{dropped}: {text}");
    }
}

#[test]
fn s1_no_surface_of_the_gateway_tells_a_secret() {
    let ear = Ear::open();
    let faults = [
        Step::ok(),
        Step::status(500),
        Step::status(401),
        Step::status(429),
        Step::of(Act::Reset),
        Step::after(Act::Cut, 2),
    ];
    for fault in faults {
        let fake = FakeServer::start(Script::always(fault.clone()));
        let gate = secretive(&fake.url());
        let mut said = String::new();
        for is_stream in [false, true, false, true] {
            said += &asked(&gate, is_stream);
        }
        for path in ["/metrics", "/api/snapshot"] {
            said += &gate.admin(path).text();
        }
        for path in ["/v1/health", "/v1/routes", "/v1/models"] {
            let mut client = gate.client();
            client.send("GET", path, &format!("x-api-key: {CALLER}\r\n"), b"");
            said += &client.answer().expect("an answer").text();
        }
        assert_clean(&said, &format!("{fault:?}"));
        assert!(!gate.admin("/metrics").text().contains(PROMPT));
        assert!(!said.contains(&fake.address().to_string()), "S61, {fault:?}: {said}");
    }
    assert!(ear.heard.load(Ordering::Relaxed) > 0, "nothing was logged, so nothing was tested");
    let told = ear.secrets.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert!(told.is_empty(), "the log tells secrets: {told:?}");
}

#[test]
fn s61_an_unreachable_hosts_address_is_not_told() {
    let fake = good();
    let (url, address) = (fake.url(), fake.address().to_string());
    fake.stop();
    let text = asked(&secretive(&url), false);
    assert!(text.contains("connection refused"), "{text}");
    assert!(!text.contains(&address) && !text.contains("127.0.0.1"), "{text}");
}

/// Counts every event of this process, of every test and level, and keeps those with a secret.
#[derive(Default)]
struct Ear {
    heard: AtomicU64,
    secrets: Mutex<Vec<String>>,
}

impl Ear {
    /// The ear of this process.
    fn open() -> Arc<Self> {
        static EAR: OnceLock<Arc<Ear>> = OnceLock::new();
        let open = || {
            let ear = Arc::new(Self::default());
            let subscriber = Listening(Arc::clone(&ear));
            tracing::subscriber::set_global_default(subscriber).expect("nobody else listens");
            ear
        };
        Arc::clone(EAR.get_or_init(open))
    }
}

struct Listening(Arc<Ear>);

impl tracing::Subscriber for Listening {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut text = String::new();
        event.record(&mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
            text += &format!("{field}={value:?} ");
        });
        self.0.heard.fetch_add(1, Ordering::Relaxed);
        let is_secret = |canary: &&str| text.contains(*canary);
        if [PROVIDER, HEADER, CALLER, PROMPT].iter().any(is_secret) {
            self.0.secrets.lock().unwrap_or_else(PoisonError::into_inner).push(text);
        }
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}

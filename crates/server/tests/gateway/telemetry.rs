//! Traces and metrics at a collector: whose child a span is, what it says, and what happens when
//! the collector does not take it.

use tidegate_fakes::{
    fake::Step,
    fake_mcp::{FakeMcpServer, McpScript, Tool, ToolAct},
};
use tidegate_testkit::{
    gate::{Gate, chat},
    time::eventually,
};

use crate::{
    bed::{Setup, always, good},
    collector::Collector,
    protobuf::{Point, Span},
};

const CHAT: &str = "/v1/chat/completions";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER_SPAN: &str = "00f067aa0ba902b7";

/// The kinds of spans.
const SERVER: u64 = 2;
const CLIENT: u64 = 3;

fn of_kind(spans: &[Span], kind: u64) -> Vec<&Span> {
    spans.iter().filter(|it| it.kind == kind).collect()
}

/// What a span says under this name.
fn said<'a>(span: &'a Span, key: &str) -> &'a str {
    span.told.get(key).map_or("", String::as_str)
}

/// Ends the gateway, which sends what it has.
fn stop(gate: Gate) {
    gate.server.stop();
}

fn check_a_failover(collector: &Collector, url: &str) {
    let (failing, working) = (always(Step::status(500)), good());
    let top = format!("telemetry: {{otlp: '{url}'}}");
    let gate = Setup { top: &top, ..Setup::of(&[&failing, &working]) }.start();
    let header = format!("traceparent: 00-{TRACE}-{CALLER_SPAN}-01\r\ntracestate: x=y\r\n");
    assert_eq!(gate.post_with(CHAT, &header, &chat("r", false)).status, 200);
    stop(gate);
    let spans = collector.spans();
    assert_eq!(spans.len(), 3, "{spans:#?}");
    assert!(spans.iter().all(|it| it.trace == TRACE), "{spans:#?}");
    let request = of_kind(&spans, SERVER)[0];
    assert_eq!(request.parent, CALLER_SPAN);
    assert_eq!(request.name, "POST /v1/chat/completions");
    assert_eq!(said(request, "gen_ai.operation.name"), "chat");
    assert_eq!(said(request, "gen_ai.request.model"), "r");
    assert_eq!(said(request, "tidegate.route"), "r");
    assert_eq!(said(request, "tidegate.answered_by"), "b/m");
    assert_eq!(said(request, "http.response.status_code"), "200");
    assert!(!said(request, "gen_ai.usage.input_tokens").is_empty(), "{request:#?}");
    assert!(!request.is_error, "its client has an answer");
    let attempts = of_kind(&spans, CLIENT);
    let told: Vec<_> = attempts
        .iter()
        .map(|it| (said(it, "gen_ai.provider.name"), said(it, "http.response.status_code")))
        .collect();
    assert_eq!(told, [("a", "500"), ("b", "200")]);
    assert!(attempts[0].is_error && !attempts[1].is_error);
    assert_eq!(said(attempts[0], "error.type"), "server_error");
    assert_eq!(attempts[0].name, "chat m");
    assert!(attempts.iter().all(|it| it.parent == request.id), "{attempts:#?}");
    // What each provider was told is the span of the attempt that asked it.
    for (fake, span) in [&failing, &working].iter().zip(attempts) {
        let call = &fake.calls()[0];
        let expected = format!("00-{TRACE}-{}-01", span.id);
        assert_eq!(call.header("traceparent"), Some(expected.as_str()));
        assert_eq!(call.header("tracestate"), Some("x=y"));
        let inside = request.start_ns..=request.end_ns;
        assert!(inside.contains(&span.start_ns), "{span:#?}");
    }
    assert_eq!(collector.resource()["service.name"], "tidegate");
}

#[test]
fn over_grpc_a_failover_is_a_request_span_with_an_attempt_span_for_each_target() {
    let collector = Collector::start();
    check_a_failover(&collector, &format!("http://{}", collector.address()));
    let service = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
    assert!(collector.paths().iter().any(|it| it == service), "{:?}", collector.paths());
}

#[test]
fn over_http_the_same_spans_arrive_below_the_path() {
    let collector = Collector::start();
    check_a_failover(&collector, &format!("http://{}/otlp", collector.address()));
    assert!(collector.paths().iter().any(|it| it == "/otlp/v1/traces"), "{:?}", collector.paths());
}

#[test]
fn a_request_without_a_trace_begins_one_and_an_unsampled_one_is_not_exported() {
    let (collector, working) = (Collector::start(), good());
    let top = format!("telemetry: {{otlp: 'http://{}'}}", collector.address());
    let gate = Setup { top: &top, ..Setup::of(&[&working]) }.start();
    // Whatever belongs to a header that is not valid is dropped with it.
    let answer = gate.post_with(CHAT, "traceparent: zz\r\ntracestate: x=y\r\n", &chat("r", true));
    let id = answer.header("x-tidegate-request-id").expect("an id").replace("req_", "");
    let unsampled = format!("traceparent: 00-{TRACE}-{CALLER_SPAN}-00\r\n");
    assert_eq!(gate.post_with(CHAT, &unsampled, &chat("r", false)).status, 200);
    let calls = working.calls();
    let begun = calls[0].header("traceparent").expect("a trace");
    assert!(begun.starts_with(&format!("00-{id}-")) && begun.ends_with("-01"), "{begun}");
    assert_eq!(calls[0].header("tracestate"), None);
    let passed = calls[1].header("traceparent").expect("a trace");
    assert!(passed.starts_with(&format!("00-{TRACE}-")) && passed.ends_with("-00"), "{passed}");
    assert!(!passed.contains(CALLER_SPAN), "the parent is the attempt: {passed}");
    stop(gate);
    let spans = collector.spans();
    assert_eq!(spans.len(), 2, "{spans:#?}");
    assert!(spans.iter().all(|it| it.trace == id), "{spans:#?}");
    let attempt = of_kind(&spans, CLIENT)[0];
    assert_eq!(said(attempt, "gen_ai.request.stream"), "true");
    assert!(!said(attempt, "gen_ai.response.time_to_first_chunk").is_empty(), "{attempt:#?}");
}

#[test]
fn without_telemetry_the_headers_of_a_trace_pass_as_they_are() {
    let working = good();
    let gate = Setup::of(&[&working]).start();
    let sent = format!("00-{TRACE}-{CALLER_SPAN}-01");
    gate.post_with(CHAT, &format!("traceparent: {sent}\r\n"), &chat("r", false));
    assert_eq!(working.calls()[0].header("traceparent"), Some(sent.as_str()));
}

#[test]
fn an_mcp_call_is_a_span_with_its_tool_and_its_server() {
    let (collector, working) = (Collector::start(), good());
    let top = format!(
        "telemetry: {{otlp: 'http://{}'}}\nmcp: {{servers: {{tides: {{fake: steady}}}}}}",
        collector.address()
    );
    let gate = Setup { top: &top, ..Setup::of(&[&working]) }.start();
    let client = gate.open();
    let tools = client.tools();
    let tool = tools.iter().find(|it| it.ends_with("next_tide")).expect("a tide table");
    client.call(tool, serde_json::json!({"place": "Brest"}));
    stop(gate);
    let spans = collector.spans();
    assert_eq!(spans.len(), 2, "{spans:#?}");
    let request = of_kind(&spans, SERVER)[0];
    assert_eq!(request.name, format!("tools/call {tool}"));
    assert_eq!(said(request, "mcp.method.name"), "tools/call");
    assert_eq!(said(request, "gen_ai.operation.name"), "execute_tool");
    assert_eq!(said(request, "gen_ai.tool.name"), tool);
    let attempt = of_kind(&spans, CLIENT)[0];
    assert_eq!(attempt.parent, request.id);
    assert_eq!(said(attempt, "tidegate.target"), "mcp:tides");
    assert!(!collector.text().contains("Brest"), "arguments are not exported");
}

#[test]
fn the_trace_of_an_mcp_client_goes_through_the_gateway_to_the_server() {
    let (collector, working) = (Collector::start(), good());
    let server = FakeMcpServer::start(McpScript::of(vec![Tool::new("echo", ToolAct::Echo)]));
    let top = format!(
        "telemetry: {{otlp: 'http://{}'}}\nmcp: {{servers: {{s: {{url: '{}', \
         allow_private: true}}}}}}",
        collector.address(),
        server.url()
    );
    let gate = Setup { top: &top, ..Setup::of(&[&working]) }.start();
    let client = gate.open();
    let trace_parent = format!("00-{TRACE}-{CALLER_SPAN}-01");
    for said in [&trace_parent, &format!("00-{TRACE}-{CALLER_SPAN}-00"), "00-zz-1-01"] {
        let meta = serde_json::json!({"traceparent": said});
        let params = serde_json::json!({"name": "echo", "arguments": {}, "_meta": meta});
        client.result("tools/call", params);
    }
    stop(gate);
    let received = server.received_of("tools/call");
    let told: Vec<_> = received.iter().map(|it| it.meta("traceparent").clone()).collect();
    let spans = collector.spans();
    let requests = of_kind(&spans, SERVER);
    let places: Vec<_> = requests.iter().map(|it| it.parent.as_str()).collect();
    assert_eq!(places, [CALLER_SPAN, ""], "one was not sampled, one begins a trace: {spans:#?}");
    assert_eq!(requests[0].trace, TRACE);
    let own = format!("00-{TRACE}-{}-01", requests[0].id);
    assert_eq!(told[0], own, "the server's side of the trace is a child of the gateway's");
    let unsampled = told[1].as_str().unwrap_or_default();
    assert!(unsampled.starts_with(&format!("00-{TRACE}-")) && unsampled.ends_with("-00"));
    assert!(!unsampled.contains(CALLER_SPAN), "{unsampled}");
    assert_eq!(told[2], "00-zz-1-01", "what is not valid is handed on as it came");
    let attempts = of_kind(&spans, CLIENT);
    for (attempt, request) in attempts.iter().zip(&requests) {
        assert_eq!((&attempt.trace, &attempt.parent), (&request.trace, &request.id));
    }
    assert_ne!(requests[1].trace, TRACE);
}

#[test]
fn the_metrics_arrive_under_the_names_of_the_scrape() {
    let (collector, working) = (Collector::start(), good());
    let top = format!(
        "telemetry: {{otlp: 'http://{}'}}\n\
         mcp: {{servers: {{tides: {{fake: steady, keepalive: {{every: 1s, jitter: 0%}}}}}}}}",
        collector.address()
    );
    let gate = Setup { top: &top, ..Setup::of(&[&working]) }.start();
    for _ in 0..3 {
        assert_eq!(gate.chat().status, 200);
    }
    let client = gate.open();
    assert!(!client.tools().is_empty());
    let kept_alive = r#"tidegate_keepalive_success_total{server="tides"}"#;
    eventually("the server is asked whether it lives", || gate.metric(kept_alive) >= 1.0);
    let scraped = gate.admin("/metrics").text();
    stop(gate);
    let names = collector.metric_names();
    let of_scrape = scraped.lines().filter_map(|it| it.strip_prefix("# TYPE ")?.split(' ').next());
    for name in of_scrape {
        assert!(names.iter().any(|it| it == name), "{name} is not among {names:?}");
    }
    let requests = collector.metric("tidegate_requests_total");
    assert!(requests.kind == 7 && requests.is_monotonic && requests.is_cumulative, "{requests:?}");
    let is_of_route = |it: &&Point| it.told["route"] == "r";
    let mut of_route = requests.points.iter().filter(is_of_route);
    let ok = of_route.find(|it| it.told["result"] == "ok");
    assert_eq!(ok.map(|it| it.value), Some(3.0), "{requests:?}");
    let seconds = collector.metric("tidegate_request_seconds");
    assert!(seconds.kind == 9 && seconds.is_cumulative, "{seconds:?}");
    let point = seconds.points.iter().find(is_of_route).expect("a point of the route");
    assert_eq!((point.count, point.buckets.iter().sum()), (3, 3_u64), "{point:?}");
    assert_eq!(point.buckets.len(), point.bounds.len() + 1, "{point:?}");
    assert_eq!(collector.metric("tidegate_backend_state").kind, 5);
    assert!(collector.metric("tidegate_keepalive_success_total").points[0].value >= 1.0);
    assert!(collector.metric("tidegate_keepalive_latency_seconds").points[0].count >= 1);
}

#[test]
fn a_collector_that_is_away_fails_no_request_and_what_it_refuses_is_counted() {
    let (collector, working) = (Collector::start(), good());
    let top = format!("telemetry: {{otlp: 'http://{}/otlp'}}", collector.address());
    // A status after which nothing is sent again.
    collector.refuse(Some(400));
    let gate = Setup { top: &top, ..Setup::of(&[&working]) }.start();
    for _ in 0..3 {
        assert_eq!(gate.chat().status, 200);
    }
    let dropped = r#"tidegate_records_dropped_total{store="telemetry"}"#;
    eventually("what was refused is counted", || gate.metric(dropped) >= 3.0);
    let view = gate.admin("/api/snapshot").json()["journal"]["telemetry"].clone();
    assert_eq!(view["status"], "failed", "{view}");
    assert_eq!(view["why"], "the collector answered 400");
    collector.refuse(None);
    assert_eq!(gate.chat().status, 200);
    eventually("it is sent again", || !collector.spans().is_empty());
    let view = || gate.admin("/api/snapshot").json()["journal"]["telemetry"]["status"].clone();
    eventually("it says that it is well", || view() == "ok");
    stop(gate);
    assert_eq!(collector.spans().len(), 2, "of the last request only");
}

#[test]
fn what_a_collector_cannot_take_for_a_moment_is_sent_again() {
    let (collector, working) = (Collector::start(), good());
    let top = format!("telemetry: {{otlp: 'http://{}'}}", collector.address());
    collector.refuse(Some(503));
    let gate = Setup { top: &top, ..Setup::of(&[&working]) }.start();
    assert_eq!(gate.chat().status, 200);
    eventually("it is asked", || !collector.paths().is_empty());
    collector.refuse(None);
    eventually("the spans arrive", || collector.spans().len() == 2);
    stop(gate);
}

#[test]
fn nobody_waits_for_a_collector_that_does_not_answer() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = silent.local_addr().expect("it is bound");
    let working = good();
    let top = format!("telemetry: {{otlp: 'http://{address}'}}");
    let gate = Setup { top: &top, ..Setup::of(&[&working]) }.start();
    for _ in 0..100 {
        assert_eq!(gate.chat().status, 200);
    }
    let began = tidegate_testkit::time::now();
    stop(gate);
    // Two seconds for telemetry, and for nothing else; a stop without a bound would take ten.
    assert!(began.elapsed() < std::time::Duration::from_secs(8), "{:?}", began.elapsed());
}

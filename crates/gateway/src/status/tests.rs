//! Status answers as clients see them.

use std::sync::Arc;

use tidegate_core::{
    outcome::Outcome,
    plan::{Plan, Step},
    transition::Notes,
};

use super::*;
use crate::test_bed::{self, CALLER_CANARY};

fn bed() -> Live {
    test_bed::live(test_bed::TWO_PROVIDERS)
}

/// Makes `count` requests to a route end with a status.
fn fail(live: &Live, route: &str, status: u16, count: usize) {
    let mut notes = Notes::default();
    let route = live.core.route(route).expect("it is in the config");
    for _ in 0..count {
        let mut plan: Plan = live.core.begin(route, Now(1000), &RequestSpec::default());
        let Step::Attempt(permit) = plan.next(Now(1000), 0, &mut notes) else { panic!("barred") };
        plan.report(Now(1500), permit, &Outcome::answered(status), &mut notes);
    }
}

fn caller(live: &Live, key: &str) -> Arc<Caller> {
    let mut headers = HeaderMap::new();
    headers.insert("x-api-key", key.parse().expect("a header value"));
    live.callers.who(&headers).expect("a known key")
}

#[test]
fn every_backend_is_there_before_anything_was_heard_of_it() {
    let health = health(&bed(), &Clock::start(), Now(0), &Caller::own());
    assert_eq!(health["status"], "healthy");
    let backends = health["backends"].as_object().expect("an object");
    let ids: Vec<&String> = backends.keys().collect();
    assert_eq!(ids, ["one/small", "two/large", "two/spare"]);
    let unknown = json!({
        "state": "closed",
        "healthy": true,
        "consecutive_failures": 0,
        "last_error": null,
        "last_check_unix": null,
        "unhealthy_until_unix": null,
        "reason": null,
        "standing": "active",
        "standing_reason": null,
        "standing_until_unix": null,
    });
    assert_eq!(backends["two/spare"], unknown);
}

#[test]
fn an_mcp_server_is_a_backend_too() {
    let yaml = "mcp: {servers: {github: {url: 'https://example.com/mcp'}}}\n";
    let live = test_bed::live(yaml);
    let health = health(&live, &Clock::start(), Now(0), &Caller::own());
    assert!(health["backends"]["mcp:github"]["healthy"].as_bool().is_some_and(|it| it));
    assert_eq!(ready(&live, Now(0)).0, StatusCode::OK);
}

#[test]
fn one_open_target_degrades_and_a_route_without_any_is_unhealthy() {
    let live = bed();
    let clock = Clock::start();
    fail(&live, "fast", 529, 1);
    let blip = health(&live, &clock, Now(2000), &Caller::own());
    assert_eq!(blip["status"], "healthy");
    assert_eq!(blip["backends"]["one/small"]["last_error"], "overloaded (529)");
    fail(&live, "fast", 529, 2);
    let degraded = health(&live, &clock, Now(2000), &Caller::own());
    assert_eq!(degraded["status"], "degraded");
    let open = &degraded["backends"]["one/small"];
    assert_eq!(open["state"], "open");
    assert_eq!((&open["healthy"], &open["reason"]), (&json!(false), &json!("breaker_open")));
    let until = clock.unix_ms_of(Now(31_500)).div_ceil(1000);
    assert_eq!(open["unhealthy_until_unix"], json!(until));
    assert_eq!(open["last_check_unix"], json!(clock.unix_ms_of(Now(1500)) / 1000));
    fail(&live, "slow", 529, 3);
    let unhealthy = health(&live, &clock, Now(2000), &Caller::own());
    assert_eq!(unhealthy["status"], "unhealthy");
}

#[test]
fn a_rate_limit_tells_when_it_ends_and_why() {
    let live = bed();
    fail(&live, "fast", 429, 1);
    let health = health(&live, &Clock::start(), Now(2000), &Caller::own());
    let limited = &health["backends"]["one/small"];
    assert_eq!((&limited["state"], &limited["healthy"]), (&json!("closed"), &json!(false)));
    assert_eq!(limited["reason"], "rate_limited");
}

#[test]
fn readiness_is_about_the_config_and_not_about_health() {
    let live = bed();
    fail(&live, "fast", 529, 3);
    fail(&live, "slow", 529, 3);
    assert_eq!(ready(&live, Now(2000)).0, StatusCode::OK);
    let keyless = test_bed::live(
        "providers: {p: {api: openai, key: env:UNSET}}\nroutes: {r: {tiers: [[p/m]]}}\n",
    );
    assert_eq!(ready(&keyless, Now(0)).0, StatusCode::SERVICE_UNAVAILABLE);
    let snapshot = keyless.core.snapshot(Now(0));
    assert_eq!(overall(&keyless, &snapshot, Now(0), &Caller::own()), "unhealthy");
}

#[test]
fn a_route_tells_where_it_leads_now() {
    let live = bed();
    let caller = caller(&live, "canary-caller-all");
    let first =
        |live: &Live| routes(live, &caller, &Clock::start(), Now(2000))["routes"][0].clone();
    let before = first(&live);
    assert_eq!(before["name"], "fast");
    assert_eq!(before["resolves_to"], json!(["one/small"]));
    assert_eq!(before["tiers"][1][0]["target"], "two/large");
    fail(&live, "fast", 529, 3);
    let after = first(&live);
    assert_eq!(after["resolves_to"], json!(["two/large"]));
    assert_eq!(after["tiers"][0][0]["state"], "open");
}

fn ids(live: &Live, caller: &Caller) -> Vec<String> {
    let list = models(live, caller, Shape::Openai);
    let data = list["data"].as_array().expect("a list");
    data.iter().map(|it| it["id"].as_str().expect("an id").to_owned()).collect()
}

#[test]
fn models_are_the_routes_and_targets_that_a_caller_may_use() {
    let live = bed();
    let all = caller(&live, "canary-caller-all");
    let expected = ["fast", "slow", "one/small", "two/large", "two/spare"];
    assert_eq!(ids(&live, &all), expected);
    let few = caller(&live, CALLER_CANARY);
    assert_eq!(ids(&live, &few), ["fast"]);
    assert!(model(&live, &few, Shape::Openai, "slow").is_none());
    assert!(model(&live, &few, Shape::Openai, "gpt-4o-mini").is_some());
    let seen = routes(&live, &few, &Clock::start(), Now(0));
    assert_eq!(seen["routes"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_restricted_caller_is_told_the_health_of_what_it_may_use_only() {
    let live = test_bed::live(
        "
keys:
  - {name: ci, key: env:CALLER, routes: [fast], servers: [search, files]}
providers:
  one: {api: fake}
  two: {api: fake, targets: {spare: {}}}
routes:
  fast: {tiers: [[one/small]]}
  slow: {tiers: [[two/large]]}
mcp:
  servers:
    a: {url: 'https://example.com/a'}
    b: {url: 'https://example.com/b'}
    files: {url: 'https://example.com/files'}
    other: {url: 'https://example.com/other'}
  replicas: {search: [a, b]}
",
    );
    let few = caller(&live, CALLER_CANARY);
    fail(&live, "slow", 529, 3);
    let seen = health(&live, &Clock::start(), Now(2000), &few);
    let ids: Vec<&String> = seen["backends"].as_object().expect("an object").keys().collect();
    assert_eq!(ids, ["one/small", "mcp:a", "mcp:b", "mcp:files"]);
    assert_eq!(seen["status"], "healthy", "what others use does not concern it");
    let all = health(&live, &Clock::start(), Now(2000), &Caller::own());
    assert_eq!(all["status"], "unhealthy");
}

#[test]
fn every_sdk_gets_its_own_shape() {
    let live = bed();
    let all = caller(&live, "canary-caller-all");
    let openai = models(&live, &all, Shape::of("/v1/models", &HeaderMap::new()));
    assert_eq!(openai["object"], "list");
    let first = json!({"id": "fast", "object": "model", "created": 0, "owned_by": "tidegate"});
    assert_eq!(openai["data"][0], first);
    let mut headers = HeaderMap::new();
    headers.insert("anthropic-version", "2023-06-01".parse().expect("a header value"));
    let anthropic = models(&live, &all, Shape::of("/v1/models", &headers));
    assert_eq!((&anthropic["has_more"], &anthropic["first_id"]), (&json!(false), &json!("fast")));
    assert_eq!(anthropic["data"][0]["type"], "model");
    let google = models(&live, &all, Shape::of("/v1beta/models", &HeaderMap::new()));
    assert_eq!(google["models"][0]["name"], "models/fast");
    let mut headers = HeaderMap::new();
    headers.insert("x-goog-api-client", "google-genai-sdk".parse().expect("a header value"));
    assert_eq!(models(&live, &all, Shape::of("/v1/models", &headers)), google);
    assert_eq!(anthropic["data"][0]["created_at"], "1970-01-01T00:00:00Z");
}

#[test]
fn a_name_that_only_the_default_route_takes_is_no_model() {
    let live = bed();
    let all = caller(&live, "canary-caller-all");
    for (id, exists) in [
        ("fast", true),
        ("two/spare", true),
        ("two%2Fspare", true),
        ("two/*", false),
        ("whatever", false),
        ("two%2", false),
    ] {
        let path = format!("/v1/models/{id}");
        let answer = get(&live, &Clock::start(), &path, &HeaderMap::new(), &all);
        let (status, body) = answer.expect("it is a path of ours");
        assert_eq!(status == StatusCode::OK, exists, "{id}");
        let body: Value = serde_json::from_slice(&body).expect("JSON");
        assert_eq!(body["error"]["code"] == "model_not_found", !exists, "{id}");
    }
}

#[test]
fn s1_no_secret_and_no_address_is_in_any_answer() {
    let live = bed();
    fail(&live, "fast", 401, 1);
    let all = caller(&live, "canary-caller-all");
    let clock = Clock::start();
    for path in ["/v1/health", "/v1/routes", "/v1/models", "/v1/models/fast", "/v1/models/x"] {
        let answer = get(&live, &clock, path, &HeaderMap::new(), &all);
        let (_, body) = answer.expect("it is a path of ours");
        let text = String::from_utf8_lossy(&body);
        assert!(!text.contains("canary") && !text.contains("127.0.0.1"), "{text}");
    }
    assert!(get(&live, &clock, "/v1/other", &HeaderMap::new(), &all).is_none());
}

#[test]
fn what_is_not_in_use_says_why_and_until_when() {
    let live = test_bed::live(
        "providers:\n  a: {api: openai, key: env:UNSET}\n  b: {api: fake}\n  c: {api: fake}\n\
         \x20 d: {api: fake}\nroutes: {r: {tiers: [[a/m, b/m, c/m, d/m]]}}\n",
    );
    let (clock, now, until) = (Clock::start(), Now(1000), Now(61_000));
    let mut notes = Notes::default();
    assert!(live.core.switch_off(now, "b/m", Some(until), &mut notes));
    assert!(live.core.hold(now, "c/m", until, &mut notes));
    let seconds = clock.unix_ms_of(until).div_ceil(1000);
    let health = health(&live, &clock, Now(2000), &Caller::own());
    let caller = Caller::own();
    let routes = routes(&live, &caller, &clock, Now(2000));
    for (at, (id, standing, ends)) in [
        ("a/m", "unconfigured", json!(null)),
        ("b/m", "drained", json!(seconds)),
        ("c/m", "held", json!(seconds)),
        ("d/m", "active", json!(null)),
    ]
    .into_iter()
    .enumerate()
    {
        for told in [&health["backends"][id], &routes["routes"][0]["tiers"][0][at]] {
            assert_eq!(told["standing"], standing, "{told}");
            assert_eq!(told["standing_until_unix"], ends, "{told}");
            assert_eq!(told["standing_reason"].is_string(), standing != "active", "{told}");
        }
    }
    assert_eq!(health["backends"]["c/m"]["reason"], "held");
    assert_eq!(routes["routes"][0]["resolves_to"], json!(["d/m"]));
}

//! Key pools, and whose key goes where.

use std::collections::BTreeMap;

use tidegate_fakes::fake::{FakeServer, Script, Step};
use tidegate_testkit::gate::chat;

use crate::bed::{Setup, always, good, hits};
use crate::failover::assert_served;

const VARIABLES: &[(&str, &str)] = &[
    ("K1", "key-of-a-limited"),
    ("K2", "key-of-a-rejected"),
    ("K3", "key-of-a-good"),
    ("CALLER", "caller-key-1"),
    ("FENCED", "caller-key-2"),
];

fn used(fake: &FakeServer) -> BTreeMap<String, usize> {
    let mut used = BTreeMap::new();
    for call in fake.calls() {
        let key = call.header("authorization").unwrap_or("none").replace("Bearer ", "");
        *used.entry(key).or_default() += 1;
    }
    used
}

#[test]
fn of_three_keys_one_limited_and_one_rejected_each_bad_one_is_hit_once() {
    let keys = [
        ("key-of-a-limited".to_owned(), Step::status(429).with_retry_after("300")),
        ("key-of-a-good".to_owned(), Step::ok()),
    ];
    let fake = FakeServer::start(Script { keys: keys.into(), ..Script::default() });
    let provider = "keys: ['env:K1', 'env:K2', 'env:K3']";
    let gate = Setup { provider, variables: VARIABLES, ..Setup::of(&[&fake]) }.start();
    for number in 0..20 {
        assert_served(&gate.chat(), false, &format!("client {number}"));
    }
    let used = used(&fake);
    assert_eq!(used.get("key-of-a-limited"), Some(&1), "{used:?}");
    assert_eq!(used.get("key-of-a-rejected"), Some(&1), "{used:?}");
    assert_eq!(used.get("key-of-a-good"), Some(&20), "{used:?}");
    assert_eq!(gate.health("a/m")["healthy"], true, "one good key is enough");
}

#[test]
fn s10_each_hop_carries_its_own_key_and_never_the_clients() {
    let (bad, spare) = (always(Step::status(500)), good());
    let yaml = Setup { variables: VARIABLES, ..Setup::of(&[&bad, &spare]) }.yaml();
    let yaml = yaml.replacen("/v1', }", "/v1', key: 'env:K1'}", 1).replacen(
        "/v1', }",
        "/v1', key: 'env:K3', auth: api-key, headers: {x-own: of-b}}",
        1,
    );
    let gate = tidegate_testkit::gate::Gate::start(&yaml, VARIABLES);
    let headers = "authorization: Bearer client-secret\r\nx-api-key: client-secret\r\n\
                   api-key: client-secret\r\ncookie: client-secret\r\n\
                   connection: x-api-key, x-hop\r\nx-hop: client-secret\r\n\
                   proxy-authorization: client-secret\r\nx-forwarded-for: client-secret\r\n";
    let answer = gate.post_with("/v1/chat/completions", headers, &chat("r", false));
    assert_served(&answer, false, "the spare's answer");
    let (first, second) = (bad.calls()[0].clone(), spare.calls()[0].clone());
    assert_eq!(first.header("authorization"), Some("Bearer key-of-a-limited"));
    assert_eq!(first.header("x-own"), None);
    assert_eq!(second.header("api-key"), Some("key-of-a-good"));
    assert_eq!(second.header("authorization"), None);
    assert_eq!(second.header("x-own"), Some("of-b"));
    for call in [first, second] {
        let all = format!("{:?}", call.headers);
        assert!(!all.contains("client-secret"), "{all}");
        assert_ne!(call.header("host"), Some(gate.address().to_string().as_str()));
    }
}

#[test]
fn an_exhausted_key_moves_on_without_charging_the_target() {
    use tidegate_fakes::fake::ErrorText;
    let broke = Step { body: ErrorText::Quota, ..Step::status(429) };
    let keys = [("key-of-a-limited".to_owned(), broke), ("key-of-a-good".to_owned(), Step::ok())];
    let fake = FakeServer::start(Script { keys: keys.into(), ..Script::default() });
    let provider = "keys: ['env:K1', 'env:K3']";
    let gate = Setup { provider, variables: VARIABLES, ..Setup::of(&[&fake]) }.start();
    for _ in 0..10 {
        assert_served(&gate.chat(), false, "with money left on one key");
    }
    assert_eq!(used(&fake).get("key-of-a-limited"), Some(&1));
}

#[test]
fn a_rejected_key_falls_over_or_surfaces_as_the_route_says() {
    let (bad, spare) = (always(Step::status(401)), good());
    let gate = Setup::of(&[&bad, &spare]).start();
    assert_served(&gate.chat(), false, "fail_over is the default");
    let gate = Setup { route: "on_auth_error: surface", ..Setup::of(&[&bad, &spare]) }.start();
    assert_eq!(gate.chat().status, 401);
}

#[test]
fn a_provider_without_its_key_is_skipped_and_does_not_stop_the_start() {
    let (absent, spare) = (good(), good());
    let yaml = Setup::of(&[&absent, &spare]).yaml();
    let yaml = yaml.replacen("/v1', }", "/v1', key: 'env:NOT_THERE'}", 1);
    let gate = tidegate_testkit::gate::Gate::start(&yaml, &[]);
    assert_served(&gate.chat(), false, "the other provider");
    assert_eq!(hits(&absent), 0);
}

const CALLERS: &str = "keys: [{name: all, key: 'env:CALLER'}, \
                       {name: fenced, key: 'env:FENCED', routes: [other]}]\n";

#[test]
fn a_missing_or_wrong_caller_key_is_refused_before_any_upstream_call() {
    let fake = good();
    let top = &format!("  other: {{tiers: [[a/m]]}}\n{CALLERS}");
    let gate = Setup { top, variables: VARIABLES, ..Setup::of(&[&fake]) }.start();
    let long = "k".repeat(30_000);
    for headers in [
        String::new(),
        "authorization: Bearer wrong\r\n".into(),
        "authorization: Basic caller-key-1\r\n".into(),
        "authorization: caller-key-1\r\n".into(),
        "x-api-key: ' OR 1=1--\r\n".into(),
        "x-api-key: caller-key-\r\n".into(),
        "x-api-key: caller-key-11\r\n".into(),
        format!("x-api-key: {long}\r\n"),
        "x-api-key: \r\n".into(),
        "authorization: Bearer\r\n".into(),
    ] {
        for path in ["/v1/chat/completions", "/v1/messages", "/v1/embeddings"] {
            let answer = gate.post_with(path, &headers, &chat("r", false));
            let shown = &headers[..headers.len().min(60)];
            assert_eq!(answer.status, 401, "{path} {shown}: {}", answer.text());
        }
    }
    for path in ["/v1/models", "/v1/health", "/v1/routes"] {
        assert_eq!(gate.get(path).status, 401, "{path}");
    }
    assert_eq!(gate.get("/health").status, 200, "liveness asks for no key");
    assert_eq!(hits(&fake), 0);
    for headers in ["authorization: bearer caller-key-1\r\n", "x-api-key: caller-key-1\r\n"] {
        let answer = gate.post_with("/v1/chat/completions", headers, &chat("r", false));
        assert_served(&answer, false, headers);
    }
}

#[test]
fn a_callers_key_opens_its_routes_only() {
    let fake = good();
    let top = &format!("  other: {{tiers: [[a/m]]}}\n{CALLERS}");
    let gate = Setup { top, variables: VARIABLES, ..Setup::of(&[&fake]) }.start();
    let ask = |model: &str| {
        let headers = "x-api-key: caller-key-2\r\n";
        gate.post_with("/v1/chat/completions", headers, &chat(model, false)).status
    };
    assert_eq!([ask("other"), ask("r"), ask("a/m"), ask("a/x")], [200, 403, 403, 403]);
    assert_eq!(hits(&fake), 1);
}

#[test]
fn a_session_keeps_its_key_and_others_take_turns() {
    let fake = good();
    let provider = "keys: ['env:K1', 'env:K2', 'env:K3']";
    let gate = Setup { provider, variables: VARIABLES, ..Setup::of(&[&fake]) }.start();
    let ask = |headers: &str| {
        let answer = gate.post_with("/v1/chat/completions", headers, &chat("r", false));
        assert_served(&answer, false, headers);
    };
    for _ in 0..4 {
        ask("x-session-id: one\r\n");
    }
    assert_eq!(used(&fake).len(), 1, "one session, one key");
    let pool = "keys: ['env:K3', 'env:K2', 'env:K1']";
    gate.reload(&Setup { provider: pool, variables: VARIABLES, ..Setup::of(&[&fake]) }.yaml());
    ask("x-session-id: one\r\n");
    assert_eq!(used(&fake).len(), 1, "also after a reload that reorders the pool");
    for _ in 0..3 {
        ask("");
    }
    assert_eq!(used(&fake).len(), 3, "requests without a session take turns");
}

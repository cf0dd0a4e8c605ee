//! The admin listener as its clients meet it, over a stream of bytes.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use tidegate_core::{
    outcome::Outcome,
    plan::{Plan, Step},
    time::Now,
    transition::Notes,
};
use tidegate_gateway::admin_token::AdminAccess;
use tidegate_gateway::test_bed::{self, ADMIN_CANARY, TWO_PROVIDERS, Variables};
use tidegate_net::connection::Activity;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::LocalSet;

use super::paths::TABLE;
use super::*;

/// The address of a listener that others can reach.
const OUTSIDE: &str = "192.0.2.1:8701";

struct Said {
    status: u16,
    head: String,
    body: String,
}

impl Said {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.body))
    }
}

fn admin(yaml: &str, listen: &str) -> Rc<Admin> {
    let gateway = test_bed::gateway_at(test_bed::live(yaml), listen);
    admin_of(Rc::new(Worker::new(gateway)))
}

fn admin_of(worker: Rc<Worker>) -> Rc<Admin> {
    let (serving, phase) = watch::channel(Phase::Serving);
    // A gateway whose phase nobody can tell any more has ended.
    std::mem::forget(serving);
    let probe_server: ProbeServer = Box::new(|_| Box::pin(async { None }));
    Rc::new(Admin::new(worker, Arc::new(Variables::default()), probe_server, phase))
}

/// Sends the text of a request and reads the answer.
async fn send(admin: &Rc<Admin>, request: String) -> Said {
    let (mut ours, theirs) = tokio::io::duplex(1 << 16);
    let admin = Rc::clone(admin);
    let exchange = async move {
        let client = async move {
            // The other side may answer, and close, before it has read everything.
            drop(ours.write_all(request.as_bytes()).await);
            let mut said = String::new();
            ours.read_to_string(&mut said).await.expect("an answer is text");
            said
        };
        let (service, activity) = (service(admin), Activity::new());
        tokio::join!(client, service.converse(theirs, &activity, "http")).0
    };
    let said = LocalSet::new().run_until(exchange).await;
    let (head, body) = said.split_once("\r\n\r\n").expect("a head and a body");
    let status = head.split(' ').nth(1).and_then(|it| it.parse().ok()).expect("a status");
    Said { status, head: head.to_owned(), body: body.to_owned() }
}

/// Asks for a path with a token and a body.
async fn ask(admin: &Rc<Admin>, line: &str, token: Option<&str>, body: &str) -> Said {
    let token = token.map(|token| format!("authorization: Bearer {token}\r\n"));
    let token = token.unwrap_or_default();
    let length = body.len();
    let request = format!(
        "{line} HTTP/1.1\r\nhost: 127.0.0.1:8701\r\n{token}content-length: {length}\r\n\
         connection: close\r\n\r\n{body}"
    );
    send(admin, request).await
}

/// The request line of every path in the table.
fn lines(access: Option<AdminAccess>) -> Vec<String> {
    let rows = TABLE.iter().filter(|row| access.is_none_or(|access| row.access == access));
    // A stream has no end that could be waited for; it has tests of its own.
    let rows = rows.filter(|row| row.pattern != "/api/events");
    rows.map(|row| format!("{} {}", row.method, row.pattern.replace("{id}", "one%2Fsmall")))
        .collect()
}

#[tokio::test]
async fn s35_every_path_that_changes_something_needs_the_token_also_on_loopback() {
    let with_token = admin(TWO_PROVIDERS, "127.0.0.1:8701");
    let tokenless = TWO_PROVIDERS.replace("admin: {token: env:ADMIN}", "");
    let without_token = admin(&tokenless, "127.0.0.1:8701");
    let unset = TWO_PROVIDERS.replace("env:ADMIN}", "env:UNSET}");
    let unresolved = admin(&unset, "127.0.0.1:8701");
    let changing = lines(Some(AdminAccess::Changes));
    assert_eq!(changing.len(), 6);
    for line in &changing {
        for (admin, token) in [
            (&with_token, None),
            (&with_token, Some("wrong")),
            (&with_token, Some("")),
            (&without_token, None),
            (&without_token, Some("")),
            (&unresolved, Some("")),
        ] {
            let said = ask(admin, line, token, "").await;
            assert_eq!(said.status, 401, "{line} with {token:?}: {}", said.body);
            assert!(said.head.contains("www-authenticate: Bearer"), "{}", said.head);
        }
        let said = ask(&with_token, line, Some(ADMIN_CANARY), "").await;
        assert_ne!(said.status, 401, "{line}");
    }
    let advice = ask(&without_token, &changing[0], None, "").await.body;
    assert!(advice.contains("set `admin.token` in the config"), "{advice}");
}

#[tokio::test]
async fn s59_reading_is_open_on_loopback_and_needs_the_token_elsewhere() {
    let inside = admin(TWO_PROVIDERS, "127.0.0.1:8701");
    for line in lines(Some(AdminAccess::Reads)) {
        // There has been no such request, and this gateway is alone.
        let is_absent = line.contains("/decisions/") || line.ends_with("/fleet");
        let expected = if is_absent { 404 } else { 200 };
        assert_eq!(ask(&inside, &line, None, "").await.status, expected, "{line}");
    }
    let outside = admin(TWO_PROVIDERS, OUTSIDE);
    let mut all = lines(None);
    all.push("GET /no/such/path".to_owned());
    // Whoever signs in has no token in a header yet.
    all.retain(|line| !line.ends_with("/login") && !line.ends_with("/logout"));
    all.push("POST /api/login".to_owned());
    for line in all {
        assert_eq!(ask(&outside, &line, None, "").await.status, 401, "{line}");
    }
    assert_eq!(ask(&outside, "GET /metrics", Some(ADMIN_CANARY), "").await.status, 200);
}

#[tokio::test]
async fn s27_a_foreign_host_or_origin_is_refused() {
    let admin = admin(TWO_PROVIDERS, "127.0.0.1:8701");
    for headers in ["host: evil.test", "host: localhost\r\norigin: http://evil.test"] {
        let request =
            format!("GET /api/snapshot HTTP/1.1\r\n{headers}\r\nconnection: close\r\n\r\n");
        assert_eq!(send(&admin, request).await.status, 403, "{headers}");
    }
}

#[tokio::test]
async fn s1_no_secret_is_in_any_answer() {
    let admin = admin(TWO_PROVIDERS, "127.0.0.1:8701");
    for line in lines(None) {
        for token in [None, Some(ADMIN_CANARY)] {
            let said = ask(&admin, &line, token, "").await;
            let all = format!("{}{}", said.head, said.body);
            assert!(!all.contains("canary"), "{line}: {all}");
            assert!(!all.contains("127.0.0.1"), "{line}: {all}");
        }
    }
}

#[tokio::test]
async fn the_snapshot_has_state_routes_version_and_wall_clock_times() {
    let admin = admin(TWO_PROVIDERS, "127.0.0.1:8701");
    let live = admin.worker.gateway.live.load_full();
    let mut notes = Notes::default();
    let route = live.core.route("fast").expect("it is in the config");
    for _ in 0..3 {
        let mut plan: Plan = live.core.begin(route, Now(0), &Default::default());
        let Step::Attempt(permit) = plan.next(Now(0), 0, &mut notes) else { panic!("barred") };
        plan.report(Now(0), permit, &Outcome::answered(529), &mut notes);
    }
    let shown = ask(&admin, "GET /api/snapshot", None, "").await.json();
    assert_eq!(shown["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(shown["config"]["sha"], "f1");
    assert_eq!(shown["status"], "degraded");
    assert_eq!(shown["routes"][0]["resolves_to"][0], "two/large");
    let open = &shown["backends"][0];
    assert_eq!((open["id"].as_str(), open["state"].as_str()), (Some("one/small"), Some("open")));
    let clock = admin.worker.gateway.clock;
    assert_eq!(open["deadline_unix_ms"], clock.unix_ms_of(Now(30_000)));
    assert_eq!(open["last_error"]["at_unix_ms"], clock.unix_ms_of(Now(0)));
}

#[tokio::test]
async fn an_explanation_has_a_verdict_for_every_candidate() {
    let admin = admin(TWO_PROVIDERS, "127.0.0.1:8701");
    let line = "POST /api/explain";
    let shown = ask(&admin, line, None, r#"{"model": "gpt-4o-mini", "session": "s"}"#).await.json();
    assert_eq!(shown["route"], "fast");
    let candidates = shown["explanation"]["candidates"].as_array().expect("a list");
    assert_eq!(candidates.len(), 2);
    assert_eq!(candidates[0]["verdict"]["chosen"]["is_last_resort"], false);
    assert_eq!(candidates[1]["verdict"], "held");
    let direct = ask(&admin, line, None, r#"{"model": "two/other"}"#).await.json();
    assert_eq!(
        (direct["route"].as_str(), direct["asked_model"].as_str()),
        (Some("direct"), Some("other"))
    );
    let missing = ask(&admin, line, None, r#"{"model": "nobody/x"}"#).await;
    assert_eq!(missing.status, 404);
    assert!(missing.body.contains("routes are `fast`, `slow`"), "{}", missing.body);
}

#[tokio::test]
async fn a_backend_explains_its_state_with_what_led_to_it() {
    let admin = admin(TWO_PROVIDERS, "127.0.0.1:8701");
    let live = admin.worker.gateway.live.load_full();
    let route = live.core.route("fast").expect("it is in the config");
    for _ in 0..3 {
        admin.worker.with_notes(|notes| {
            let mut plan: Plan = live.core.begin(route, Now(0), &Default::default());
            let Step::Attempt(permit) = plan.next(Now(0), 0, notes) else { panic!("barred") };
            plan.report(Now(0), permit, &Outcome::answered(529), notes);
        });
    }
    let line = "POST /api/explain";
    let shown = ask(&admin, line, None, r#"{"backend": "one/small"}"#).await.json();
    assert_eq!(shown["backend"]["why"], "3 × 529 overloaded in a row", "{shown}");
    assert_eq!(shown["transitions"][0]["to"], "open");
    let sentence = shown["sentence"].as_str().expect("a sentence");
    assert!(sentence.starts_with("one/small is open, for 0 s: 3 × 529"), "{sentence}");
    assert!(sentence.contains("It needs 3 successful trials in a row to close."), "{sentence}");
    let model = ask(&admin, line, None, r#"{"model": "fast"}"#).await.json();
    let skipped = &model["explanation"]["candidates"][0];
    assert_eq!(skipped["obstacles"][0]["kind"], "breaker", "{model}");
    assert_eq!(skipped["why"], "3 × 529 overloaded in a row");
    assert_eq!(ask(&admin, line, None, r#"{"backend": "x"}"#).await.status, 404);
}

#[tokio::test]
async fn s28_a_page_of_our_own_under_any_name_may_sign_in_where_everything_needs_the_token() {
    let login = |origin: &str, token: &str| {
        let body = format!("{{\"token\": \"{token}\"}}");
        let length = body.len();
        format!(
            "POST /api/login HTTP/1.1\r\nhost: gate.test:8701\r\norigin: {origin}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\
             connection: close\r\n\r\n{body}"
        )
    };
    let outside = admin(TWO_PROVIDERS, OUTSIDE);
    let own = "http://gate.test:8701";
    assert_eq!(send(&outside, login(own, ADMIN_CANARY)).await.status, 200);
    assert_eq!(send(&outside, login(own, "wrong")).await.status, 401);
    assert_eq!(send(&outside, login("http://evil.test", ADMIN_CANARY)).await.status, 403);
    assert_eq!(send(&outside, login("null", ADMIN_CANARY)).await.status, 403);
    let inside = admin(TWO_PROVIDERS, "127.0.0.1:8701");
    assert_eq!(send(&inside, login(own, ADMIN_CANARY)).await.status, 403);
}

#[tokio::test]
async fn bad_bodies_are_refused_and_break_nothing() {
    let admin = admin(TWO_PROVIDERS, "127.0.0.1:8701");
    let deep = "[".repeat(100_000);
    for body in ["{", "[]", r#"{"model": 7}"#, r#"{"modle": "x"}"#, "\u{0}", &deep] {
        let said = ask(&admin, "POST /api/explain", None, body).await;
        assert_eq!(said.status, 400, "{}", body.get(..20).unwrap_or(body));
    }
    let large = "x".repeat((1 << 20) + 1);
    assert_eq!(ask(&admin, "POST /api/explain", None, &large).await.status, 413);
    let drain = "POST /api/backends/one%2Fsmall/drain";
    let said = ask(&admin, drain, Some(ADMIN_CANARY), r#"{"ttl": "-5s"}"#).await;
    assert_eq!(said.status, 400, "{}", said.body);
}

#[tokio::test]
async fn a_drained_backend_gets_no_traffic_until_it_is_reset() {
    let admin = admin(TWO_PROVIDERS, "127.0.0.1:8701");
    let leads_to = async |admin: &Rc<Admin>| {
        let shown = ask(admin, "GET /api/snapshot", None, "").await.json();
        shown["routes"][0]["resolves_to"][0].clone()
    };
    let token = Some(ADMIN_CANARY);
    let body = r#"{"reason": "maintenance\u001b[31m", "ttl": "5m"}"#;
    let done = ask(&admin, "POST /api/backends/one%2Fsmall/drain", token, body).await;
    assert_eq!(done.status, 200, "{}", done.body);
    assert!(done.json()["until_unix_ms"].is_u64());
    assert_eq!(leads_to(&admin).await, "two/large");
    let sentence = async |admin: &Rc<Admin>| {
        let shown = ask(admin, "GET /api/snapshot", None, "").await.json();
        shown["verdict"]["sentence"].as_str().unwrap_or_default().to_owned()
    };
    let told = sentence(&admin).await;
    assert!(told.starts_with("one/small is drained by an operator (maintenance"), "{told}");
    assert!(told.contains("goes to two/large"), "{told}");
    let done = ask(&admin, "POST /api/backends/one%2Fsmall/reset", token, "").await;
    assert_eq!(done.status, 200, "{}", done.body);
    assert_eq!(leads_to(&admin).await, "one/small");
    assert_eq!(sentence(&admin).await, "Nothing stands against any backend.");
    let unknown = ask(&admin, "POST /api/backends/nobody/drain", token, "").await;
    assert_eq!(unknown.status, 404);
}

#[tokio::test]
async fn a_backend_that_is_held_open_gets_no_traffic_until_it_is_reset() {
    let admin = admin(TWO_PROVIDERS, "127.0.0.1:8701");
    let shown = async |admin: &Rc<Admin>| {
        let shown = ask(admin, "GET /api/snapshot", None, "").await.json();
        let backends = shown["backends"].as_array().expect("backends").clone();
        let backend = backends.into_iter().find(|it| it["id"] == "one/small").expect("it is there");
        (shown["routes"][0]["resolves_to"][0].clone(), backend["reason"].clone())
    };
    let token = Some(ADMIN_CANARY);
    let hold = "POST /api/backends/one%2Fsmall/hold";
    let done = ask(&admin, hold, token, r#"{"reason": "odd answers", "ttl": "5m"}"#).await;
    assert_eq!(done.status, 200, "{}", done.body);
    assert!(done.json()["until_unix_ms"].is_u64(), "{}", done.body);
    assert_eq!(shown(&admin).await, ("two/large".into(), "held".into()));
    let done = ask(&admin, "POST /api/backends/one%2Fsmall/reset", token, "").await;
    assert_eq!(done.status, 200, "{}", done.body);
    assert_eq!(shown(&admin).await, ("one/small".into(), serde_json::Value::Null));
    assert_eq!(ask(&admin, "POST /api/backends/nobody/hold", token, "").await.status, 404);
    let odd = ask(&admin, hold, token, r#"{"ttl": "soon"}"#).await;
    assert_eq!(odd.status, 400, "{}", odd.body);
}

#[tokio::test]
async fn a_probe_by_hand_tells_how_it_ended() {
    let yaml = "admin: {token: env:ADMIN}\nproviders: {p: {api: fake}}\n\
                routes: {r: {tiers: [[p/m]]}}\n";
    let token = Some(ADMIN_CANARY);
    let fake = admin(yaml, "127.0.0.1:8701");
    for id in ["p", "p%2Fm"] {
        let done = ask(&fake, &format!("POST /api/backends/{id}/probe"), token, "").await;
        assert_eq!((done.status, &done.json()["result"]), (200, &"passed".into()));
    }
    // Nobody serves port 9 of loopback.
    let dead = admin(TWO_PROVIDERS, "127.0.0.1:8701");
    let done = ask(&dead, "POST /api/backends/one/probe", token, "").await;
    assert_eq!((done.status, &done.json()["result"]), (200, &"failed".into()));
}

/// A file that is gone with the test.
struct ConfigPath(PathBuf);

impl ConfigPath {
    fn new(name: &str, text: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("tidegate-{name}-{}.yaml", std::process::id()));
        fs::write(&path, text).expect("the folder for temporary files can be written");
        Self(path)
    }
}

impl Drop for ConfigPath {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.0));
    }
}

#[tokio::test]
async fn a_reload_takes_a_good_file_and_refuses_a_bad_one_with_its_problems() {
    let file = ConfigPath::new("admin-reload", TWO_PROVIDERS);
    let mut live = test_bed::live(TWO_PROVIDERS);
    live.path = Some(file.0.clone());
    let worker = Rc::new(Worker::new(test_bed::gateway_at(live, "127.0.0.1:8701")));
    let admin = admin_of(worker);
    let token = Some(ADMIN_CANARY);

    let bad =
        TWO_PROVIDERS.replace("routes:\n", "routs:\n").replace("env:KEY", "sk-canary-literal");
    fs::write(&file.0, bad).expect("it can be written");
    let refused = ask(&admin, "POST /api/reload", token, "").await;
    assert_eq!(refused.status, 422, "{}", refused.body);
    assert_eq!(refused.json()["sha"], "f1");
    assert!(refused.body.contains("routs"), "{}", refused.body);
    assert!(!refused.body.contains("canary"), "{}", refused.body);
    assert_eq!(admin.worker.gateway.live.load().fingerprint, "f1");

    let good = TWO_PROVIDERS.replace("  slow:", "  steady:");
    fs::write(&file.0, good).expect("it can be written");
    let done = ask(&admin, "POST /api/reload", token, "").await;
    assert_eq!((done.status, &done.json()["reloaded"]), (200, &true.into()), "{}", done.body);
    assert!(admin.worker.gateway.live.load().file.routes.contains_key("steady"));

    fs::remove_file(&file.0).expect("it is there");
    assert_eq!(ask(&admin, "POST /api/reload", token, "").await.status, 422);
}

#[tokio::test]
async fn the_demo_has_nothing_to_reload() {
    let admin = admin(TWO_PROVIDERS, "127.0.0.1:8701");
    let said = ask(&admin, "POST /api/reload", Some(ADMIN_CANARY), "").await;
    assert_eq!(said.status, 409, "{}", said.body);
}

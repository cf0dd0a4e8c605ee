//! Probes on a clock that stands until everybody waits, and one on a real socket.

use std::cell::RefCell;
use std::future::pending;

use http::StatusCode;
use tidegate_core::{
    outcome::Outcome,
    plan::{RequestSpec, Step},
    transition::Notes,
};
use tidegate_gateway::test_bed;
use tidegate_runtime::clock::timer_now;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::LocalSet;
use tokio::time::{sleep, timeout};

use super::*;

const THREE: &str = "
health: {probe: {every: 30s, timeout: 3s}}
providers: {hangs: {api: fake}, panics: {api: fake}, works: {api: fake}}
routes: {r: {tiers: [[hangs/m, panics/m, works/m]]}}
";

type Asked = Rc<RefCell<Vec<(String, u64)>>>;

/// Runs the loop over `seconds` of paused time; who was asked at which second.
async fn asked_over<F: Future<Output = ProbeReply> + 'static>(
    worker: &Rc<Worker>,
    seconds: u64,
    ask: impl Fn(&str) -> F,
) -> Asked {
    let asked = Asked::default();
    let start = timer_now();
    let now = || Now(start.elapsed().as_millis() as u64);
    let recording = |_: Rc<Worker>, target: Arc<Target>| {
        let name = target.provider.name.to_string();
        asked.borrow_mut().push((name.clone(), start.elapsed().as_secs()));
        ask(&name)
    };
    let ended = timeout(Duration::from_secs(seconds), run(worker, now, recording)).await;
    assert!(ended.is_err(), "the loop ended by itself");
    asked
}

fn times(asked: &Asked, name: &str) -> Vec<u64> {
    asked.borrow().iter().filter(|(it, _)| it == name).map(|(_, at)| *at).collect()
}

fn worker(yaml: &str) -> Rc<Worker> {
    Rc::new(Worker::new(test_bed::gateway(yaml)))
}

fn counted(worker: &Worker, line: &str) -> bool {
    let live = worker.gateway.live.load();
    worker.gateway.metrics.render(&live, Now(0)).lines().any(|it| it == line)
}

#[tokio::test(start_paused = true)]
async fn one_that_hangs_or_panics_delays_nothing_and_ends_nothing() {
    let worker = worker(THREE);
    let run = asked_over(&worker, 100, |name| {
        let name = name.to_owned();
        async move {
            match name.as_str() {
                "hangs" => pending().await,
                "panics" => panic!("a probe's own fault"),
                _ => ProbeReply::Answer(StatusCode::OK),
            }
        }
    });
    let asked = LocalSet::new().run_until(run).await;
    for name in ["hangs", "panics", "works"] {
        let times = times(&asked, name);
        assert_eq!(times.first(), Some(&0), "{name} is asked at once");
        assert!((4..=5).contains(&times.len()), "{name}: {times:?}");
    }
    let snapshot = worker.gateway.live.load().core.snapshot(Now(100_000));
    let failures = |id: &str| {
        let found = snapshot.endpoints.iter().find(|it| it.id == id);
        found.map(|it| it.consecutive_failures)
    };
    assert!(failures("hangs") >= Some(3), "silence is a failure: {:?}", failures("hangs"));
    assert_eq!((failures("panics"), failures("works")), (Some(0), Some(0)));
}

#[tokio::test(start_paused = true)]
async fn phases_differ_so_that_providers_are_not_asked_in_step() {
    let worker = worker(THREE);
    let asked = LocalSet::new()
        .run_until(asked_over(&worker, 60, |_| {
            std::future::ready(ProbeReply::Answer(StatusCode::OK))
        }))
        .await;
    let all = asked.borrow();
    let later: std::collections::BTreeSet<u64> =
        all.iter().map(|(_, at)| *at).filter(|at| *at > 0).collect();
    assert!(later.len() > 1, "all at the same second: {all:?}");
}

#[tokio::test(start_paused = true)]
async fn traffic_within_the_interval_replaces_the_probe() {
    let worker = worker(
        "providers: {busy: {api: fake}, idle: {api: fake}}\nroutes: {r: {tiers: [[busy/m]]}}\n",
    );
    let traffic = async {
        let live = worker.gateway.live.load_full();
        let route = live.core.route("r").expect("it is in the config");
        let mut notes = Notes::default();
        for second in 1..100_u64 {
            sleep(Duration::from_secs(1)).await;
            let now = Now(second * 1000);
            let mut plan = live.core.begin(route, now, &RequestSpec::default());
            let Step::Attempt(permit) = plan.next(now, 0, &mut notes) else { panic!("barred") };
            plan.report(now, permit, &Outcome::answered(200), &mut notes);
        }
    };
    let probes =
        asked_over(&worker, 100, |_| std::future::ready(ProbeReply::Answer(StatusCode::OK)));
    let both = async { tokio::join!(probes, traffic).0 };
    let asked = LocalSet::new().run_until(both).await;
    assert_eq!(times(&asked, "busy"), [0], "the first is at start, whatever the traffic");
    assert!(times(&asked, "idle").len() >= 4, "{:?}", asked.borrow());
}

/// Tells when a future was dropped.
struct Dropped(Rc<RefCell<u32>>);

impl Drop for Dropped {
    fn drop(&mut self) {
        *self.0.borrow_mut() += 1;
    }
}

#[tokio::test(start_paused = true)]
async fn a_reload_is_followed_and_what_is_gone_is_called_off() {
    let worker = worker(THREE);
    let dropped = Rc::new(RefCell::new(0));
    let ask = |name: &str| {
        let guard = (name == "hangs").then(|| Dropped(Rc::clone(&dropped)));
        async move {
            let _guard = guard;
            if _guard.is_some() { pending().await } else { ProbeReply::Answer(StatusCode::OK) }
        }
    };
    let next = "
health: {probe: {every: 30s, timeout: 3s}}
providers: {works: {api: fake}, fresh: {api: fake}}
routes: {r: {tiers: [[works/m, fresh/m]]}}
";
    let reload = async {
        sleep(Duration::from_secs(1)).await;
        worker.gateway.take(test_bed::live_as(next, "f2"));
        sleep(Duration::from_secs(1)).await;
        *dropped.borrow()
    };
    let both = async { tokio::join!(asked_over(&worker, 100, ask), reload) };
    let (asked, dropped_by_then) = LocalSet::new().run_until(both).await;
    assert_eq!(dropped_by_then, 1, "the probe of a provider that is gone goes on");
    assert_eq!(times(&asked, "hangs"), [0]);
    assert_eq!(times(&asked, "fresh").first(), Some(&1), "a new provider is asked at once");
    let works = times(&asked, "works");
    assert!(works.get(1).is_some_and(|second| *second >= 15), "its phase was kept: {works:?}");
}

#[tokio::test(start_paused = true)]
async fn starting_and_stopping_twice_are_harmless() {
    let yaml = "providers: {p: {api: fake}}\nroutes: {r: {tiers: [[p/m]]}}\n";
    let worker = worker(yaml);
    let passed =
        |count: u32| format!("tidegate_probes_total{{backend=\"p\",result=\"passed\"}} {count}");
    let story = async {
        let probes = Probes::start(&worker);
        probes.resume();
        sleep(Duration::from_secs(1)).await;
        assert!(counted(&worker, &passed(1)), "started twice, it probes once");
        probes.stop();
        probes.stop();
        sleep(Duration::from_secs(600)).await;
        assert!(counted(&worker, &passed(1)), "stopped, it does not probe");
        probes.resume();
        sleep(Duration::from_secs(1)).await;
        assert!(counted(&worker, &passed(2)), "it can be started again");
    };
    LocalSet::new().run_until(story).await;
}

/// Asks a provider behind a real socket; what it heard, and what the provider was sent.
async fn ask_socket(answer: &'static str) -> (ProbeReply, String) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("loopback binds");
    let address = listener.local_addr().expect("it is bound");
    let yaml = format!(
        "providers: {{p: {{api: openai, url: 'http://{address}/v1', key: env:KEY}}}}\n\
         routes: {{r: {{tiers: [[p/m]]}}}}\n"
    );
    let worker = worker(&yaml);
    let target = Arc::clone(worker.gateway.live.load().target("p/m").expect("a target"));
    let provider = async {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut sent = vec![0; 4096];
        let length = stream.read(&mut sent).await.expect("a request");
        stream.write_all(answer.as_bytes()).await.expect("it is read");
        String::from_utf8_lossy(&sent[..length]).into_owned()
    };
    LocalSet::new().run_until(async { tokio::join!(ask(worker, target), provider) }).await
}

#[tokio::test]
async fn any_http_answer_means_reachable_and_the_key_goes_along() {
    let (reply, sent) = ask_socket("HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n").await;
    assert_eq!(reply, ProbeReply::Answer(StatusCode::INTERNAL_SERVER_ERROR));
    assert!(sent.starts_with("GET /v1/models HTTP/1.1\r\n"), "{sent}");
    let key = format!("authorization: Bearer {}", test_bed::PROVIDER_CANARY);
    assert!(sent.contains(&key), "{sent}");
}

#[tokio::test]
async fn what_is_not_http_is_no_answer() {
    assert_eq!(ask_socket("SSH-2.0-nope\r\n").await.0, ProbeReply::Nothing);
    assert_eq!(ask_socket("").await.0, ProbeReply::Nothing);
}

#[tokio::test]
async fn three_refused_connections_open_the_endpoint_and_the_line_says_no_address() {
    // Port 9 of loopback: nobody serves `discard` any more.
    let worker = worker(test_bed::TWO_PROVIDERS);
    let target = Arc::clone(worker.gateway.live.load().target("one/small").expect("a target"));
    let story = async {
        for second in 0..3 {
            let reply = ask(Rc::clone(&worker), Arc::clone(&target)).await;
            learn(&worker, Now(second * 1000), &target, reply);
        }
    };
    LocalSet::new().run_until(story).await;
    assert!(counted(&worker, "tidegate_backend_state{backend=\"one\",state=\"open\"} 1"));
    assert!(counted(&worker, "tidegate_probes_total{backend=\"one\",result=\"failed\"} 3"));
}

#[tokio::test]
async fn a_healing_probe_that_gets_a_503_leaves_the_breaker_of_its_targets_open() {
    let worker = worker(
        "providers: {p: {api: fake, probe: {heals: true}}}\nroutes: {r: {tiers: [[p/m]]}}\n",
    );
    let live = worker.gateway.live.load_full();
    let route = live.core.route("r").expect("the only route");
    let mut notes = Notes::default();
    for _ in 0..3 {
        let mut plan = live.core.begin(route, Now(0), &RequestSpec::default());
        let Step::Attempt(permit) = plan.next(Now(0), 1, &mut notes) else { panic!("an attempt") };
        plan.report(Now(0), permit, &Outcome::answered(503), &mut notes);
    }
    let target = Arc::clone(live.target("p/m").expect("a target"));
    let state = |word| format!("tidegate_backend_state{{backend=\"p/m\",state=\"{word}\"}} 1");
    for _ in 0..5 {
        learn(&worker, Now(1), &target, ProbeReply::Answer(StatusCode::SERVICE_UNAVAILABLE));
    }
    assert!(counted(&worker, &state("open")));
    for _ in 0..3 {
        learn(&worker, Now(2), &target, ProbeReply::Answer(StatusCode::OK));
    }
    assert!(counted(&worker, &state("closed")));
}

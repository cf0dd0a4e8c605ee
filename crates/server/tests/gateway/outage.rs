//! Outages under load: no client error that failover could have avoided.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tidegate_fakes::fake::{FakeServer, Script, Step};
use tidegate_testkit::{
    gate::{Gate, chat},
    http::Client,
    time::{eventually, pause},
};

use crate::bed::{Setup, good, hits};

/// What a crowd of clients met.
#[derive(Default)]
struct Tally {
    served: AtomicU64,
    /// Streams that broke after content: nobody can take those over.
    broken: AtomicU64,
    failed: AtomicU64,
}

/// Eight clients ask without pause, half of them for streams, while something happens.
fn under_load(gate: &Gate, event: impl FnOnce(&Tally)) -> Tally {
    let tally = Tally::default();
    let is_over = AtomicBool::new(false);
    let address = gate.address();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let (tally, is_over) = (&tally, &is_over);
            scope.spawn(move || {
                let is_stream = number % 2 == 0;
                let mut client = Client::connect(address);
                while !is_over.load(Ordering::Relaxed) {
                    ask(&mut client, address, is_stream, tally);
                }
            });
        }
        event(&tally);
        is_over.store(true, Ordering::Relaxed);
    });
    tally
}

fn ask(client: &mut Client, address: SocketAddr, is_stream: bool, tally: &Tally) {
    client.send("POST", "/v1/chat/completions", "", chat("r", is_stream).as_bytes());
    let answer = client.answer();
    let count = match &answer {
        Ok(it) if it.status == 200 && (!is_stream || it.is_whole_stream()) => &tally.served,
        Ok(it) if it.status == 200 && it.has_error_event() => &tally.broken,
        _ => &tally.failed,
    };
    count.fetch_add(1, Ordering::Relaxed);
    if answer.is_err() {
        *client = Client::connect(address);
    }
}

fn assert_none_failed(tally: &Tally) {
    let served = tally.served.load(Ordering::Relaxed);
    let failed = tally.failed.load(Ordering::Relaxed);
    assert_eq!(failed, 0, "of {served} served");
    assert!(served > 20, "only {served} were served: no load");
}

/// Waits until so many more clients have been served.
fn wait_for(tally: &Tally, more: u64) {
    let from = tally.served.load(Ordering::Relaxed);
    eventually("clients are served", || tally.served.load(Ordering::Relaxed) >= from + more);
}

fn paced() -> Script {
    Script::always(Step::ok().with_tokens(10, Duration::from_millis(2)))
}

#[test]
fn killing_and_restarting_an_upstream_under_load_costs_no_avoidable_error() {
    let (first, spare) = (FakeServer::start(paced()), good());
    let address = first.address();
    let health = "open_for: 100ms, recovery_threshold: 1";
    let gate = Setup { tiers: "[[a/m], [b/m]]", health, ..Setup::of(&[&first, &spare]) }.start();
    let tally = under_load(&gate, |tally| {
        let mut fake = first;
        for _ in 0..4 {
            wait_for(tally, 20);
            fake.stop();
            wait_for(tally, 40);
            fake = FakeServer::start_at(address, paced()).expect("the port is free again");
            eventually("it is asked again", || hits(&fake) > 0);
        }
    });
    assert_none_failed(&tally);
}

#[test]
fn reloading_in_a_loop_under_load_costs_no_request() {
    let fakes = [FakeServer::start(paced()), good()];
    let setup = Setup { tiers: "[[a/m, b/m]]", ..Setup::of(&fakes.each_ref()) };
    let gate = setup.start();
    let tally = under_load(&gate, |tally| {
        wait_for(tally, 20);
        for round in 0..100 {
            gate.reload(&format!("{}\n# round {round}", setup.yaml()));
            pause(Duration::from_millis(5));
        }
        wait_for(tally, 20);
    });
    assert_none_failed(&tally);
    assert_eq!(tally.broken.load(Ordering::Relaxed), 0);
}

#[test]
fn a_provider_that_moves_under_load_costs_no_request() {
    let (old, new) = (good(), good());
    let gate = Setup::of(&[&old]).start();
    let tally = under_load(&gate, |tally| {
        for round in 0..10 {
            wait_for(tally, 20);
            let next = if round % 2 == 0 { &new } else { &old };
            gate.reload(&Setup::of(&[next]).yaml());
        }
    });
    assert_none_failed(&tally);
    assert!(hits(&old) > 0 && hits(&new) > 0);
}

#[test]
fn an_upstream_that_resets_every_kept_connection_costs_no_request() {
    let step = |times| [Step::ok().times(times), Step::of(tidegate_fakes::fake::Act::Reset)];
    let script = Script { steps: step(3).to_vec(), repeat_steps: true, ..Script::default() };
    let (flaky, spare) = (FakeServer::start(script), good());
    let gate = Setup { tiers: "[[a/m], [b/m]]", ..Setup::of(&[&flaky, &spare]) }.start();
    let tally = under_load(&gate, |tally| wait_for(tally, 200));
    assert_none_failed(&tally);
}

#[test]
fn clients_that_go_on_retrying_cannot_keep_a_dead_target_busy() {
    let dead = crate::bed::always(Step::status(500));
    let route = "last_resort: {burst: 2, per_second: 0}";
    let gate = Setup { route, ..Setup::of(&[&dead]) }.start();
    for _ in 0..5 {
        assert_eq!(gate.chat().status, 500, "three open the breaker, two are last resorts");
    }
    for _ in 0..10 {
        let answer = gate.chat();
        assert_eq!(answer.status, 503);
        let error = &answer.json()["error"];
        assert_eq!(error["attempts"], serde_json::json!([]));
        let message = error["message"].as_str().unwrap_or_default();
        assert!(message.contains("`a/m` has an open breaker"), "{message}");
        assert!(message.contains("limit of last resorts"), "{message}");
        assert_eq!(answer.header("x-should-retry"), Some("false"));
        assert!(answer.header("retry-after").is_some());
    }
    assert_eq!(hits(&dead), 5);
}

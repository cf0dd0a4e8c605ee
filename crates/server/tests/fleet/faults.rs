//! Whatever happens to the store: nobody waits for it, no decision is wrong, and it is picked up
//! again by itself.

use std::time::Duration;

use tidegate_fakes::fake::{FakeServer, Step};
use tidegate_testkit::{
    gate::Gate,
    time::{eventually, now},
};

use crate::bed::{Setup, always, ask_as, fleet_of, good, hits, is_connected, target};
use crate::store::{Store, garbage};

/// No request waits for a store: far less than any of the store's own limits.
const AT_ONCE: Duration = Duration::from_secs(2);

fn serves_at_once(gate: &Gate, what: &str) {
    for number in 0..5 {
        let began = now();
        let answer = ask_as(gate, &format!("{what}-{number}"));
        assert_eq!(answer.status, 200, "{what}: {}", answer.text());
        assert!(began.elapsed() < AT_ONCE, "{what}: {:?}", began.elapsed());
    }
}

fn is_away(gate: &Gate) {
    eventually("the store is known to be away", || fleet_of(gate)["store"]["is_up"] == false);
}

/// A provider that limits for a minute, and another one.
fn limited_and_spare() -> (FakeServer, FakeServer) {
    (always(Step::status(429).with_retry_after("60")), good())
}

/// How many windows a replica has told.
const TOLD: &str = "tidegate_fleet_told_total{fact=\"window\"}";

/// A replica that has met the limit and told the store of it.
fn one_that_told(setup: &Setup<'_>) -> Gate {
    let one = setup.start("one");
    assert_eq!(target(&ask_as(&one, "s")), "b/m");
    eventually("it has been told", || one.metric(TOLD) >= 1.0);
    one
}

#[test]
fn a_gateway_starts_without_its_store_and_picks_it_up() {
    let mut store = Store::start();
    store.kill();
    let (limited, spare) = limited_and_spare();
    let setup = Setup::of(&store, &[&limited, &spare]);
    let gates = ["one", "two"].map(|name| setup.start_alone(name));
    assert_eq!(target(&gates[0].chat()), "b/m");
    serves_at_once(&gates[1], "without a store");
    let before = hits(&limited);
    assert_eq!(before, 2, "each finds out by itself");
    store.run();
    gates.iter().for_each(is_connected);
    let late = setup.start("three");
    eventually("what was learnt before is given to it", || {
        late.health("a/m")["reason"] == "rate_limited"
    });
    assert_eq!(hits(&limited), before);
}

#[test]
fn a_store_that_lost_its_data_is_given_it_again() {
    let mut store = Store::start();
    let (limited, spare) = limited_and_spare();
    let setup = Setup::of(&store, &[&limited, &spare]);
    let one = one_that_told(&setup);
    store.kill();
    is_away(&one);
    serves_at_once(&one, "while the store is dead");
    store.run();
    is_connected(&one);
    let late = setup.start("two");
    eventually("the window is there again", || late.health("a/m")["reason"] == "rate_limited");
    assert_eq!(target(&ask_as(&late, "s")), "b/m");
    assert_eq!(hits(&limited), 1);
}

/// `FLUSHALL`, or an empty store behind the same address: no connection breaks, and no number is
/// missing on the stream.
#[test]
fn a_store_that_is_emptied_while_it_is_used_is_given_its_data_again() {
    let store = Store::start();
    let (limited, spare) = limited_and_spare();
    let setup = Setup::of(&store, &[&limited, &spare]);
    let one = one_that_told(&setup);
    store.ask(&[b"FLUSHALL"]);
    eventually("it is written again", || one.metric(TOLD) >= 2.0);
    let late = setup.start("two");
    eventually("the window is there again", || late.health("a/m")["reason"] == "rate_limited");
    assert_eq!(hits(&limited), 1);
    assert_eq!(fleet_of(&one)["store"]["is_up"], true, "it was never away");
}

#[test]
fn a_store_that_stands_still_delays_nobody_and_is_picked_up_when_it_goes_on() {
    let store = Store::start();
    let (limited, spare) = limited_and_spare();
    let setup = Setup::of(&store, &[&limited, &spare]);
    let gates = ["one", "two"].map(|name| setup.start(name));
    store.pause();
    assert_eq!(target(&gates[0].chat()), "b/m");
    serves_at_once(&gates[0], "while the store stands still");
    is_away(&gates[0]);
    serves_at_once(&gates[0], "while the store is known to stand still");
    store.go_on();
    gates.iter().for_each(is_connected);
    eventually("what was learnt meanwhile is heard", || {
        gates[1].health("a/m")["reason"] == "rate_limited"
    });
    assert_eq!(target(&gates[1].chat()), "b/m");
    assert_eq!(hits(&limited), 1);
}

#[test]
fn a_full_store_is_read_on_and_written_to_when_there_is_room_again() {
    let store = Store::start();
    let (limited, spare) = limited_and_spare();
    let setup = Setup::of(&store, &[&limited, &spare]);
    let gates = ["one", "two"].map(|name| setup.start(name));
    store.ask(&[b"CONFIG", b"SET", b"maxmemory-policy", b"noeviction"]);
    store.ask(&[b"CONFIG", b"SET", b"maxmemory", b"1"]);
    assert_eq!(target(&gates[0].chat()), "b/m");
    eventually("it says that the store is full", || {
        fleet_of(&gates[0])["store"]["problem"].as_str().is_some_and(|it| it.contains("full"))
    });
    serves_at_once(&gates[0], "while the store is full");
    store.ask(&[b"CONFIG", b"SET", b"maxmemory", b"0"]);
    eventually("what was learnt meanwhile is heard", || {
        gates[1].health("a/m")["reason"] == "rate_limited"
    });
    assert_eq!(hits(&limited), 1);
}

#[test]
fn a_store_that_answers_nonsense_is_away() {
    let mut store = Store::start();
    let address = format!("127.0.0.1:{}", store.port()).parse().expect("an address");
    store.kill();
    let listener = garbage(address, b"\x16\x03\x01*9999999999\r\n$-7\r\n+PONG\r\n\xff\xfe");
    let fakes = [good(), good()];
    let gate = Setup::of(&store, &fakes.each_ref()).start_alone("one");
    serves_at_once(&gate, "while the store answers nonsense");
    eventually("it says so", || fleet_of(&gate)["store"]["problem"].is_string());
    assert_eq!(fleet_of(&gate)["store"]["is_up"], false);
    drop(listener);
}

#[test]
fn a_slow_store_slows_nothing() {
    let store = Store::start_with(&["--enable-debug-command", "yes"]);
    let (limited, spare) = limited_and_spare();
    let setup = Setup::of(&store, &[&limited, &spare]);
    let gates = ["one", "two"].map(|name| setup.start(name));
    // It does nothing else for two seconds.
    let address = store.url();
    let slow = std::thread::spawn({
        let sleep: [&[u8]; 3] = [b"DEBUG", b"SLEEP", b"2"];
        let sleep = sleep.map(<[u8]>::to_vec);
        let port = store.port();
        move || {
            use std::io::{Read, Write};
            let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).expect("it listens");
            let mut text = b"*3\r\n".to_vec();
            for word in &sleep {
                text.extend(format!("${}\r\n", word.len()).bytes());
                text.extend(word);
                text.extend(b"\r\n");
            }
            stream.write_all(&text).expect("it takes a command");
            let mut answer = [0; 64];
            stream.read(&mut answer).expect("it answers")
        }
    });
    assert_eq!(target(&gates[0].chat()), "b/m", "{address}");
    serves_at_once(&gates[0], "while the store is slow");
    slow.join().expect("it answered");
    eventually("it is heard late", || gates[1].health("a/m")["reason"] == "rate_limited");
    assert_eq!(hits(&limited), 1);
}

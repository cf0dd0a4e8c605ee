//! Providers behind TLS: who is trusted, and what becomes of a request when somebody is not.

use std::net::TcpListener;
use std::sync::atomic::Ordering;

use tidegate_testkit::{gate::Gate, http::Answer};

use crate::bed::{Setup, good, hits};
use crate::failover::assert_served;
use crate::secure::{Authority, Secure};

const PROTOCOLS: &[&str] = &["h2", "http/1.1"];
const HOST: &str = "127.0.0.1";
/// Far away, and still a date that certificates can hold.
pub const LATE: i32 = 4000;

/// A gateway before this provider, which trusts this authority besides the system's.
pub fn gate_to(url: &str, authority: &Authority, provider: &str) -> Gate {
    let provider = format!("ca: 'file:/ca.pem', {provider}");
    let setup = Setup { urls: vec![url.to_owned()], provider: &provider, ..Setup::of(&[]) };
    Gate::start_with_file(&setup.yaml(), ("/ca.pem", &authority.pem))
}

/// What the only attempt of a request came to.
pub fn outcome(answer: &Answer) -> (String, String) {
    assert_eq!(answer.status, 503, "{}", answer.text());
    let attempt = answer.json()["error"]["attempts"][0].clone();
    let word = |key: &str| attempt[key].as_str().unwrap_or_default().to_owned();
    (word("outcome"), word("detail"))
}

#[test]
fn a_provider_whose_authority_is_named_is_served_and_its_connection_kept() {
    let authority = Authority::new();
    let secure = Secure::start(authority.sign(HOST, LATE), &["http/1.1"]);
    let gate = gate_to(&secure.url(), &authority, "");
    for _ in 0..10 {
        assert_served(&gate.chat(), false, "over tls");
        assert_served(&gate.stream(), true, "over tls");
    }
    assert_eq!(secure.seen.connections.load(Ordering::Relaxed), 1);
    assert_eq!(secure.seen.h2_requests.load(Ordering::Relaxed), 0);
}

#[test]
fn a_provider_that_is_not_trusted_is_a_transport_failure_that_says_tls() {
    let (known, stranger) = (Authority::new(), Authority::new());
    for (identity, what) in [
        (stranger.sign(HOST, LATE), "another authority"),
        (known.sign("other.example", LATE), "another host"),
        (known.sign(HOST, 1999), "expired"),
    ] {
        let secure = Secure::start(identity, PROTOCOLS);
        let gate = gate_to(&secure.url(), &known, "");
        let found = outcome(&gate.chat());
        assert_eq!(found, ("transport".to_owned(), "tls failed".to_owned()), "{what}");
        assert_eq!(secure.seen.requests.load(Ordering::Relaxed), 0, "nothing was sent: {what}");
    }
}

#[test]
fn without_the_extra_authority_only_the_systems_are_trusted() {
    let secure = Secure::start(Authority::new().sign(HOST, LATE), PROTOCOLS);
    let spare = good();
    let mut setup = Setup::of(&[&spare, &spare]);
    setup.urls[0] = secure.url();
    let gate = setup.start();
    for _ in 0..5 {
        assert_served(&gate.chat(), false, "the other target is there");
    }
    assert_eq!((hits(&spare), secure.seen.requests.load(Ordering::Relaxed)), (5, 0));
}

#[test]
fn a_provider_that_speaks_no_tls_fails_as_tls() {
    let plain = good();
    let gate = gate_to(&plain.url().replace("http:", "https:"), &Authority::new(), "");
    assert_eq!(outcome(&gate.chat()), ("transport".to_owned(), "tls failed".to_owned()));
}

#[test]
fn a_handshake_that_never_ends_is_cut_by_the_limit_on_connecting() {
    // Connections are taken by the kernel, and nobody ever says a word.
    let silent = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let url = format!("https://{}", silent.local_addr().expect("it is bound"));
    let gate = gate_to(&url, &Authority::new(), "timeouts: {connect: 200ms}");
    assert_eq!(outcome(&gate.chat()), ("transport".to_owned(), "connect timed out".to_owned()));
}

//! Connecting to a host that has several addresses (RFC 8305, "happy eyeballs").
//!
//! Why it exists: an address that swallows packets answers nothing at all. Tried in turn, it would
//! cost the whole time that a connect may take although the next address works.
//!
//! Rules kept here:
//! - The families take turns, beginning with the one that the resolver named first.
//! - The next address is tried [`STAGGER`] after the one before it, or at once when that failed.
//! - The first connection that stands is used, and the other attempts are dropped.
//! - At most [`ADDRESSES_MAX`] addresses are tried.
//!
//! Left to others: the deadline of the whole, and which addresses may be used (`connect.rs`).

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::ConnectError;

/// What RFC 8305 recommends.
const STAGGER: Duration = Duration::from_millis(250);
/// More than the default time to connect leaves room for.
const ADDRESSES_MAX: usize = 16;

/// Connects to whichever address answers first.
pub(super) async fn race(addresses: Vec<SocketAddr>) -> Result<TcpStream, ConnectError> {
    if let [only] = addresses[..] {
        return one(only).await;
    }
    let mut waiting = interleaved(addresses);
    waiting.truncate(ADDRESSES_MAX);
    let mut attempts = JoinSet::new();
    let mut failure = ConnectError::Failed;
    loop {
        if let Some(address) = waiting.pop_front() {
            attempts.spawn(one(address));
        }
        let stagger = tokio::time::sleep(STAGGER);
        let ended = tokio::select! {
            ended = attempts.join_next() => ended,
            () = stagger, if !waiting.is_empty() => continue,
        };
        match ended {
            Some(Ok(Ok(stream))) => return Ok(stream),
            // A family that this machine does not have looks like a shortage of addresses; another
            // address says more about the host.
            Some(Ok(Err(error))) if error != ConnectError::Shortage => failure = error,
            Some(Ok(Err(error))) if failure == ConnectError::Failed => failure = error,
            Some(_) => {}
            None if waiting.is_empty() => return Err(failure),
            None => {}
        }
    }
}

/// The addresses with their families taking turns, otherwise in the order given.
fn interleaved(addresses: Vec<SocketAddr>) -> VecDeque<SocketAddr> {
    let count = addresses.len();
    let first_is_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (first, second): (VecDeque<_>, VecDeque<_>) =
        addresses.into_iter().partition(|it| it.is_ipv6() == first_is_v6);
    let (mut first, mut second) = (first.into_iter(), second.into_iter());
    let mut mixed = VecDeque::with_capacity(count);
    while mixed.len() < count {
        mixed.extend(first.next());
        mixed.extend(second.next());
    }
    mixed
}

async fn one(address: SocketAddr) -> Result<TcpStream, ConnectError> {
    TcpStream::connect(address).await.map_err(|error| match error.kind() {
        io::ErrorKind::ConnectionRefused => ConnectError::Refused,
        io::ErrorKind::AddrNotAvailable => ConnectError::Shortage,
        _ if matches!(error.raw_os_error(), Some(EMFILE | ENFILE)) => ConnectError::Shortage,
        _ => ConnectError::Failed,
    })
}

/// Too many open files, in this process or in the system (Linux and macOS agree).
const EMFILE: i32 = 24;
const ENFILE: i32 = 23;

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use socket2::{Domain, Socket, Type};
    use tidegate_runtime::clock::timer_now;
    use tokio::time::timeout;

    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn the_families_take_turns_and_the_first_one_named_begins() {
        let list = |texts: &[&str]| texts.iter().map(|it| address(it)).collect::<Vec<_>>();
        let given = list(&["[2001::1]:1", "[2001::2]:1", "[2001::3]:1", "1.0.0.1:1", "1.0.0.2:1"]);
        let mixed = list(&["[2001::1]:1", "1.0.0.1:1", "[2001::2]:1", "1.0.0.2:1", "[2001::3]:1"]);
        assert_eq!(Vec::from(interleaved(given)), mixed);
        let given = list(&["1.0.0.1:1", "[2001::1]:1"]);
        assert_eq!(Vec::from(interleaved(given.clone())), given);
    }

    /// An address that answers nothing: a listener whose queue is full drops what else arrives.
    fn black_hole() -> (Socket, Vec<std::net::TcpStream>, SocketAddr) {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        socket.bind(&address("127.0.0.1:0").into()).expect("a free port");
        socket.listen(0).expect("it listens");
        let bound = socket.local_addr().expect("it is bound").as_socket().expect("an IP address");
        let short = Duration::from_millis(50);
        let fill = || std::net::TcpStream::connect_timeout(&bound, short);
        let filling = std::iter::from_fn(|| fill().ok()).take(64).collect();
        assert!(fill().is_err(), "the queue is full");
        (socket, filling, bound)
    }

    #[tokio::test]
    async fn an_address_that_answers_nothing_costs_a_stagger_and_not_the_whole_time() {
        let (_hole, _filling, silent) = black_hole();
        let good = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let good = good.local_addr().map(|address| (good, address)).expect("it is bound");
        let began = timer_now();
        let raced = timeout(Duration::from_secs(5), race(vec![silent, silent, good.1])).await;
        let stream = raced.expect("long before the limit").expect("one address answers");
        assert_eq!(stream.peer_addr().ok(), Some(good.1));
        assert!(began.elapsed() >= 2 * STAGGER, "{:?}", began.elapsed());
    }

    #[tokio::test]
    async fn a_refusal_goes_on_at_once_and_is_what_is_told_in_the_end() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let closed = listener.local_addr().expect("it is bound");
        drop(listener);
        let began = timer_now();
        // With a pause after each of them this would take 25 seconds.
        assert_eq!(race(vec![closed; 101]).await.err(), Some(ConnectError::Refused));
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    }
}

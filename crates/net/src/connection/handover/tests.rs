//! Connections of real sockets between a listener and a set beside it, which tell who answered.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use tidegate_runtime::{phase::Phase, task};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::LocalSet;

use super::{HandOver, Home, Way, way};
use crate::client_body::ClientBody;
use crate::connection::{
    Answering, Certificates, ConnectionSet, HeadLimits, Listener, RequestBody, Service,
};

/// A listener, `home`, that sends what asks for `/a…` to a set, `away`.
struct Pair {
    address: SocketAddr,
    to_away: Way,
    phase: watch::Sender<Phase>,
}

fn service(
    name: &'static str,
    phase: watch::Receiver<Phase>,
    hand_over: Option<HandOver>,
) -> Service {
    let handler = move |request: Request<RequestBody>| -> Answering {
        Box::pin(async move {
            let path = request.uri().path().to_owned();
            let body = request.into_body().collect().await.map(|it| it.to_bytes());
            let body = body.expect("the body comes whole");
            let said = format!("{name} {path} {}.", String::from_utf8_lossy(&body));
            Response::new(ClientBody::from(Bytes::from(said)))
        })
    };
    Service {
        handler: Rc::new(handler),
        limits: HeadLimits { bytes: 4096 },
        is_cancelled_by_closing: |_| false,
        phase,
        certificates: Arc::new(Certificates::default()),
        hand_over,
    }
}

fn is_for_away(request: &Request<()>) -> bool {
    request.uri().path().starts_with("/a")
}

impl Pair {
    /// With so many seats away.
    fn with_seats(seats: usize) -> Self {
        Self::after(seats, 0)
    }

    /// The same, for connections that have had so many requests answered.
    fn after(seats: usize, after: u64) -> Self {
        let (sender, phase) = watch::channel(Phase::Serving);
        let (to_away, mut going) = way(seats);
        let (to_home, mut coming) = way(seats);
        let home = Some(Home { rule: |request| !is_for_away(request), to: to_home });
        let hand_over = HandOver { rule: is_for_away, after, to: to_away.clone(), home };
        let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        socket.set_nonblocking(true).expect("a socket");
        let address = socket.local_addr().expect("it is bound");
        let home = service("home", phase.clone(), Some(hand_over));
        let mut listener = Listener::new(socket, 8, home).expect("it listens");
        let connections = Rc::clone(&listener.connections);
        let away = ConnectionSet::new(8, service("away", phase, None));
        task::spawn("listener", async move { listener.accept().await });
        task::spawn("going", async move {
            while let Some(moved) = going.next().await {
                away.adopt(moved);
            }
        });
        task::spawn("coming", async move {
            while let Some(moved) = coming.next().await {
                connections.adopt(moved);
            }
        });
        Self { address, to_away, phase: sender }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.expect("it listens")
    }
}

fn request(path: &str, body: &str) -> String {
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\nhost: h\r\ncontent-length: {length}\r\n\r\n{body}")
}

/// Reads so many answers; their bodies end with a point.
async fn answers(stream: &mut TcpStream, count: usize) -> Vec<String> {
    let mut text = String::new();
    let said = |text: &str| -> Vec<String> {
        let bodies = text.split("\r\n\r\n").skip(1);
        let bodies = bodies.filter_map(|it| it.split_once('.').map(|(said, _)| said.to_owned()));
        bodies.collect()
    };
    while said(&text).len() < count {
        let mut bytes = [0; 1024];
        let read = stream.read(&mut bytes).await.expect("it answers");
        assert!(read > 0, "closed after {text:?}");
        text.push_str(std::str::from_utf8(&bytes[..read]).expect("text"));
    }
    said(&text)
}

async fn ask(stream: &mut TcpStream, path: &str, body: &str) -> String {
    stream.write_all(request(path, body).as_bytes()).await.expect("it reads");
    answers(stream, 1).await.remove(0)
}

#[tokio::test]
async fn a_connection_goes_with_what_was_read_and_comes_home_with_another_request() {
    let held = async {
        let pair = Pair::with_seats(2);
        let mut client = pair.connect().await;
        assert_eq!(ask(&mut client, "/h", "1").await, "home /h 1");
        assert_eq!(ask(&mut client, "/a", "2").await, "away /a 2");
        assert_eq!(ask(&mut client, "/a", "3").await, "away /a 3");
        assert_eq!(ask(&mut client, "/h", "4").await, "home /h 4");
        // All at once: the others are read together with the head of the first.
        let all = [("/a", "5"), ("/a", "6"), ("/h", "7"), ("/a", "8"), ("/h", "")];
        let text: String = all.iter().map(|(path, body)| request(path, body)).collect();
        client.write_all(text.as_bytes()).await.expect("it reads");
        let said = answers(&mut client, all.len()).await;
        assert_eq!(said, ["away /a 5", "away /a 6", "home /h 7", "away /a 8", "home /h "]);
        // A body whose first half comes with the head.
        let text = request("/a", "0123456789");
        let (first, second) = text.split_at(text.len() - 5);
        client.write_all(first.as_bytes()).await.expect("it reads");
        tokio::task::yield_now().await;
        client.write_all(second.as_bytes()).await.expect("it reads");
        assert_eq!(answers(&mut client, 1).await, ["away /a 0123456789"]);
    };
    LocalSet::new().run_until(held).await;
}

#[tokio::test]
async fn without_a_seat_a_connection_is_served_where_it_is_and_seats_become_free() {
    let held = async {
        let pair = Pair::with_seats(1);
        let (mut first, mut second) = (pair.connect().await, pair.connect().await);
        assert_eq!(ask(&mut first, "/a", "1").await, "away /a 1");
        assert_eq!(ask(&mut second, "/a", "2").await, "home /a 2");
        drop(first);
        let is_free = async {
            while pair.to_away.seats.available_permits() == 0 {
                tokio::task::yield_now().await;
            }
        };
        let within = std::time::Duration::from_secs(10);
        tokio::time::timeout(within, is_free)
            .await
            .expect("a connection that ends leaves its seat");
        assert_eq!(ask(&mut second, "/a", "3").await, "away /a 3");
        assert_eq!(ask(&mut second, "/h", "4").await, "home /h 4");
        assert_eq!(pair.to_away.seats.available_permits(), 1, "one that went home left its seat");
    };
    LocalSet::new().run_until(held).await;
}

#[tokio::test]
async fn none_goes_once_the_drain_has_begun() {
    let held = async {
        let pair = Pair::with_seats(1);
        let mut client = pair.connect().await;
        // It has been accepted when the other one is answered.
        assert_eq!(ask(&mut pair.connect().await, "/h", "1").await, "home /h 1");
        pair.phase.send_replace(Phase::Draining);
        assert_eq!(ask(&mut client, "/a", "2").await, "home /a 2");
    };
    LocalSet::new().run_until(held).await;
}

#[tokio::test]
async fn one_goes_when_it_has_had_so_many_requests_answered() {
    let held = async {
        let pair = Pair::after(1, 2);
        let mut client = pair.connect().await;
        assert_eq!(ask(&mut client, "/a", "1").await, "home /a 1");
        assert_eq!(ask(&mut client, "/h", "2").await, "home /h 2");
        assert_eq!(ask(&mut client, "/a", "3").await, "away /a 3");
        assert_eq!(ask(&mut client, "/h", "4").await, "home /h 4");
        assert_eq!(ask(&mut client, "/a", "5").await, "home /a 5", "it is counted anew");
    };
    LocalSet::new().run_until(held).await;
}

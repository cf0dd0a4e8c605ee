//! Two sides of a channel over loopback, and whoever else comes to the port.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use tidegate_runtime::{clock::timer_now, task};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::LocalSet;
use tokio::time::{sleep, timeout};

use super::{
    PeerAddress, PeerAsk, PeerAsker, PeerKeys, PeerReply, PeerTrouble, Piece, Reply, ReplyPieces,
    serve, who_is_at,
};
use crate::{identity::InstanceId, seal::FleetSecrets};

mod ending;
mod kept;

const ME: InstanceId = InstanceId(7);
const SECRET: &str = "a secret of more than thirty-two bytes";
const OTHER: &str = "another secret of more than thirty-two";

fn keys(secrets: &[&str]) -> PeerKeys {
    PeerKeys::of(&FleetSecrets::new("prod", secrets.iter().copied()).expect("keys"))
}

/// The pieces of an answer, some time apart; a hanging one says when it is given up.
struct Pieces {
    left: Vec<Option<Piece>>,
    apart: Duration,
    hangs: bool,
    heard: Heard,
}

impl Drop for Pieces {
    fn drop(&mut self) {
        if self.hangs {
            self.heard.borrow_mut().push(request("given up", ""));
        }
    }
}

impl ReplyPieces for Pieces {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<Piece>> + '_>> {
        Box::pin(async {
            sleep(self.apart).await;
            if self.left.is_empty() { std::future::pending().await } else { self.left.remove(0) }
        })
    }
}

/// What the listener was asked.
type Heard = Rc<RefCell<Vec<PeerAsk>>>;

/// A listener that echoes a request's body in two pieces; its url.
async fn listener(keys: PeerKeys, heard: &Heard) -> String {
    listener_until(keys, heard, std::future::pending()).await.0
}

/// The same until something has come about; its end is told by the other one of the two.
async fn listener_until(
    keys: PeerKeys,
    heard: &Heard,
    ended: impl Future<Output = ()> + 'static,
) -> (String, oneshot::Receiver<()>) {
    let socket = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = PeerAddress::url_of(socket.local_addr().expect("an address"));
    let heard = Rc::clone(heard);
    let handler = Rc::new(move |request: PeerAsk| {
        heard.borrow_mut().push(request.clone());
        let heard = Rc::clone(&heard);
        let answer: super::Answering<Option<Reply>> = Box::pin(async move {
            let bytes = |text: &str| Some(Piece::Bytes(Bytes::from(text.to_owned())));
            let left = match request.head.as_slice() {
                b"not mine" => return None,
                b"break" => vec![bytes("one"), None],
                b"hang" => vec![],
                _ => vec![Some(Piece::Bytes(request.body)), bytes("two"), Some(Piece::End)],
            };
            let (apart, hangs) = (Duration::from_millis(5), left.is_empty());
            let body = Box::new(Pieces { left, apart, hangs, heard });
            Some(Reply { head: b"head".to_vec(), body })
        });
        answer
    });
    let (end, has_ended) = oneshot::channel();
    task::spawn("listener", async move {
        serve(socket, Rc::new(keys), ME, handler, ended).await;
        drop(end);
    });
    (url, has_ended)
}

fn run<F: Future<Output = ()>>(test: impl FnOnce(Heard) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let local = LocalSet::new();
    runtime.expect("a runtime").block_on(local.run_until(test(Rc::default())));
}

fn request(head: &str, body: impl Into<Bytes>) -> PeerAsk {
    PeerAsk { head: head.into(), body: body.into() }
}

/// Asks over a connection of its own.
async fn ask(
    url: &str,
    keys: PeerKeys,
    wanted: InstanceId,
    request: PeerAsk,
) -> Result<PeerReply, PeerTrouble> {
    PeerAsker::new(keys).ask(url, wanted, request).await
}

async fn whole(url: &str, keys: PeerKeys, head: &str, body: Bytes) -> Option<Vec<u8>> {
    whole_by(&PeerAsker::new(keys), url, head, body).await
}

async fn whole_by(asker: &PeerAsker, url: &str, head: &str, body: Bytes) -> Option<Vec<u8>> {
    let mut reply = asker.ask(url, ME, request(head, body)).await.expect("an answer");
    assert_eq!(reply.head, b"head");
    let mut all = Vec::new();
    loop {
        match reply.next().await? {
            Piece::Bytes(bytes) => all.extend_from_slice(&bytes),
            Piece::End => return Some(all),
        }
    }
}

#[test]
fn a_request_and_its_answer_of_any_length_go_through() {
    run(|heard| async move {
        let url = listener(keys(&[SECRET]), &heard).await;
        for length in [0, 1, 32 * 1024, 32 * 1024 + 1, 3_000_000] {
            let body = Bytes::from(vec![b'x'; length]);
            let got = whole(&url, keys(&[SECRET]), "call", body.clone()).await;
            let got = got.expect("whole");
            assert!(got.len() == length + 3 && got.ends_with(b"two"), "{length}");
            assert_eq!(heard.borrow().last(), Some(&request("call", body)));
        }
        assert_eq!(who_is_at(&url, &keys(&[SECRET])).await.expect("it answers"), ME);
    });
}

#[test]
fn secrets_may_be_exchanged_one_replica_after_the_other() {
    run(|heard| async move {
        let url = listener(keys(&[OTHER, SECRET]), &heard).await;
        for asker in [&[SECRET][..], &[OTHER, SECRET], &[OTHER]] {
            assert!(whole(&url, keys(asker), "call", Bytes::new()).await.is_some());
        }
    });
}

#[test]
fn whoever_has_another_secret_or_fleet_is_not_let_in_either_way() {
    run(|heard| async move {
        let url = listener(keys(&[SECRET]), &heard).await;
        let foreign = FleetSecrets::new("staging", [SECRET]).expect("keys");
        for asker in [keys(&[OTHER]), PeerKeys::of(&foreign)] {
            let refused = ask(&url, asker, ME, request("call", "x")).await;
            assert!(matches!(refused, Err(PeerTrouble::Unreachable(_))), "{refused:?}");
        }
        assert!(heard.borrow().is_empty(), "nobody heard the request");
    });
}

#[test]
fn a_request_is_sent_to_the_instance_that_is_meant_and_to_no_other() {
    run(|heard| async move {
        let url = listener(keys(&[SECRET]), &heard).await;
        let other = ask(&url, keys(&[SECRET]), InstanceId(8), request("call", "x")).await;
        assert!(matches!(other, Err(PeerTrouble::OtherInstance)), "{other:?}");
        assert!(heard.borrow().is_empty());
        let not_mine = ask(&url, keys(&[SECRET]), ME, request("not mine", "x")).await;
        assert!(matches!(not_mine, Err(PeerTrouble::NotMine)), "{not_mine:?}");
    });
}

#[test]
fn nobody_who_listens_and_somebody_else_who_does_are_told_apart() {
    run(|_| async move {
        let socket = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = PeerAddress::url_of(socket.local_addr().expect("an address"));
        task::spawn("a web server", async move {
            while let Ok((mut stream, _)) = socket.accept().await {
                let answer = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";
                drop(stream.write_all(answer).await);
            }
        });
        let odd = ask(&url, keys(&[SECRET]), ME, request("call", "x")).await;
        assert!(matches!(odd, Err(PeerTrouble::Unreachable(_))), "{odd:?}");
        let gone = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = PeerAddress::url_of(gone.local_addr().expect("an address"));
        drop(gone);
        let gone = ask(&url, keys(&[SECRET]), ME, request("call", "x")).await;
        assert!(matches!(gone, Err(PeerTrouble::Refused)), "{gone:?}");
        let https = ask("https://127.0.0.1:1", keys(&[SECRET]), ME, request("", "")).await;
        assert!(matches!(https, Err(PeerTrouble::Unreachable(_))), "{https:?}");
    });
}

#[test]
fn an_answer_that_breaks_off_is_not_taken_for_a_whole_one() {
    run(|heard| async move {
        let url = listener(keys(&[SECRET]), &heard).await;
        assert_eq!(whole(&url, keys(&[SECRET]), "break", Bytes::new()).await, None);
    });
}

#[test]
fn an_asker_that_leaves_ends_its_request() {
    run(|heard| async move {
        let url = listener(keys(&[SECRET]), &heard).await;
        let reply = ask(&url, keys(&[SECRET]), ME, request("hang", "")).await.expect("a head");
        drop(reply);
        let given_up = async {
            while heard.borrow().len() < 2 {
                sleep(Duration::from_millis(1)).await;
            }
        };
        assert!(timeout(Duration::from_secs(5), given_up).await.is_ok());
    });
}

#[test]
fn garbage_and_silence_at_the_port_cost_little_and_stop_nobody() {
    run(|heard| async move {
        let url = listener(keys(&[SECRET]), &heard).await;
        let place = url.strip_prefix("http://").expect("a url").to_owned();
        let garbage: [&[u8]; 6] = [
            b"",
            b"GET / HTTP/1.1\r\nhost: x\r\n\r\n",
            b"\x00\x00",
            b"\xff\xff\xff",
            &[0, 48, 1, 2, 3, 4],
            &[0; 4096],
        ];
        let mut silent = Vec::new();
        for _ in 0..50 {
            for bytes in garbage {
                let mut stream = TcpStream::connect(&place).await.expect("a connection");
                drop(stream.write_all(bytes).await);
                silent.push(stream);
            }
        }
        // More than there are places for, and none of them has left.
        let began = timer_now();
        assert!(whole(&url, keys(&[SECRET]), "call", Bytes::new()).await.is_some());
        assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
        for mut stream in silent {
            let mut rest = Vec::new();
            let closed = timeout(Duration::from_secs(5), stream.read_to_end(&mut rest)).await;
            assert!(closed.is_ok() && rest.is_empty(), "closed without a word");
        }
        assert_eq!(heard.borrow().len(), 1, "nothing of it was taken for a request");
    });
}

/// Passes bytes to a listener, and keeps what the asker said.
async fn eavesdropper(to: &str, heard: Rc<RefCell<Vec<u8>>>) -> String {
    let socket = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = PeerAddress::url_of(socket.local_addr().expect("an address"));
    let to = to.strip_prefix("http://").expect("a url").to_owned();
    task::spawn("an eavesdropper", async move {
        let (asker, _) = socket.accept().await.expect("an asker");
        let owner = TcpStream::connect(to).await.expect("an owner");
        let (mut from_asker, mut to_asker) = asker.into_split();
        let (mut from_owner, mut to_owner) = owner.into_split();
        task::spawn("the way back", async move {
            drop(tokio::io::copy(&mut from_owner, &mut to_asker).await);
        });
        let mut bytes = [0; 4096];
        while let Ok(length @ 1..) = from_asker.read(&mut bytes).await {
            heard.borrow_mut().extend_from_slice(&bytes[..length]);
            drop(to_owner.write_all(&bytes[..length]).await);
        }
    });
    url
}

#[test]
fn a_recorded_request_that_is_played_again_is_not_carried_out_again() {
    run(|heard| async move {
        let url = listener(keys(&[SECRET]), &heard).await;
        let recorded = Rc::new(RefCell::new(Vec::new()));
        let through = eavesdropper(&url, Rc::clone(&recorded)).await;
        let secret = Bytes::from("a secret word");
        assert!(whole(&through, keys(&[SECRET]), "call", secret.clone()).await.is_some());
        let recorded = recorded.borrow().clone();
        let is_readable = recorded.windows(secret.len()).any(|it| it == secret);
        assert!(!is_readable, "the channel is sealed");
        let place = url.strip_prefix("http://").expect("a url").to_owned();
        let mut again = TcpStream::connect(place).await.expect("a connection");
        again.write_all(&recorded).await.expect("sent");
        let mut rest = Vec::new();
        let closed = timeout(Duration::from_secs(5), again.read_to_end(&mut rest)).await;
        assert!(closed.is_ok(), "it is closed");
        assert_eq!(heard.borrow().len(), 1, "only the first one was heard");
    });
}

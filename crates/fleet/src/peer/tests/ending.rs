//! A replica that ends: whoever was told that it lives is answered, and nobody else is told so.

use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::oneshot::{self, error::TryRecvError};
use tokio::time::timeout;

use super::super::channel::{Channel, FrameKind};
use super::{
    Heard, ME, PeerAsker, PeerTrouble, Rc, RefCell, SECRET, keys, listener_until, request, run,
};

/// A listener, its end, and what ends it.
async fn bed(heard: &Heard) -> (String, oneshot::Sender<()>, oneshot::Receiver<()>) {
    let (end, ended) = oneshot::channel::<()>();
    let until = async { drop(ended.await) };
    let (url, has_ended) = listener_until(keys(&[SECRET]), heard, until).await;
    (url, end, has_ended)
}

async fn channel(url: &str) -> Channel {
    let place = url.strip_prefix("http://").expect("a url");
    let stream = TcpStream::connect(place).await.expect("somebody listens");
    Channel::call(stream, &keys(&[SECRET])).await.expect("a replica").0
}

/// Sends a whole request, and says what the answer begins with.
async fn asks(channel: &mut Channel) -> Option<FrameKind> {
    for (kind, bytes) in [(FrameKind::Head, &b"not mine"[..]), (FrameKind::End, &[])] {
        channel.send(kind, bytes).await.ok()?;
    }
    channel.next().await.ok().map(|it| it.0)
}

#[test]
fn a_request_that_is_on_its_way_when_a_replica_ends_is_told_that_nothing_was_done() {
    run(|heard| async move {
        let (url, end, mut has_ended) = bed(&heard).await;
        let (mut alive, mut fresh, mut idle) =
            (channel(&url).await, channel(&url).await, channel(&url).await);
        assert_eq!(asks(&mut idle).await, Some(FrameKind::NotMine));
        assert_eq!(asks(&mut alive).await, Some(FrameKind::NotMine));
        alive.send(FrameKind::Ping, &[]).await.expect("it is sent");
        assert!(matches!(alive.next().await, Ok((FrameKind::Pong, _))));
        drop(end);
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        // One was told that the replica lives, the other one has just come.
        assert_eq!(has_ended.try_recv(), Err(TryRecvError::Empty), "it waits for both");
        assert_eq!(asks(&mut alive).await, Some(FrameKind::NotMine));
        assert_eq!(asks(&mut fresh).await, Some(FrameKind::NotMine));
        drop(timeout(Duration::from_secs(20), has_ended).await.expect("it ends by itself"));
        assert_eq!(heard.borrow().len(), 4);
    });
}

#[test]
fn whoever_asks_at_the_end_whether_a_replica_lives_is_not_told_so() {
    run(|heard| async move {
        let (url, end, has_ended) = bed(&heard).await;
        let (mut idle, waits) = (channel(&url).await, channel(&url).await);
        assert_eq!(asks(&mut idle).await, Some(FrameKind::NotMine));
        drop(end);
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        idle.send(FrameKind::Ping, &[]).await.expect("it is sent");
        assert!(idle.next().await.is_err(), "nobody says that it lives");
        drop(waits);
        drop(timeout(Duration::from_secs(20), has_ended).await.expect("it ends by itself"));
        let asker = PeerAsker::new(keys(&[SECRET]));
        let asked = asker.ask(&url, ME, request("call", "x")).await;
        assert!(matches!(asked, Err(PeerTrouble::Refused)), "{asked:?}");
    });
}

/// The listener of a replica that ends may take a connection and drop it.
#[test]
fn a_connection_that_is_dropped_at_once_is_tried_again() {
    run(|heard| async move {
        let socket = super::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let place = socket.local_addr().expect("an address");
        let url = super::PeerAddress::url_of(place);
        let taken: Rc<RefCell<usize>> = Rc::default();
        let counted = Rc::clone(&taken);
        super::task::spawn("a listener that ends", async move {
            let (stream, _) = socket.accept().await.expect("an asker");
            *counted.borrow_mut() += 1;
            drop((socket, stream));
        });
        let asked = PeerAsker::new(keys(&[SECRET])).ask(&url, ME, request("call", "x")).await;
        assert!(matches!(asked, Err(PeerTrouble::Refused)), "{asked:?}");
        assert_eq!((*taken.borrow(), heard.borrow().len()), (1, 0));
    });
}

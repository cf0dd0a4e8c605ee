//! Channels that are kept for the next request, and what becomes of those that have died.

use std::cell::Cell;

use futures_util::future::join_all;
use tokio::sync::Notify;

use super::{
    Bytes, Duration, Heard, ME, PeerAddress, PeerAsker, PeerTrouble, Rc, SECRET, TcpListener,
    TcpStream, keys, listener, request, run, sleep, task, whole_by,
};

/// A way to a listener on which connections are counted and can be disturbed.
#[derive(Default)]
struct Way {
    accepted: Cell<usize>,
    /// Every connection is cut, and no other one taken.
    cut: Notify,
    /// Nothing passes, although the connections stand.
    is_stuck: Cell<bool>,
}

/// A way to the listener at a url; the url of the way.
async fn way(to: &str, way: &Rc<Way>) -> String {
    let socket = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = PeerAddress::url_of(socket.local_addr().expect("an address"));
    let (way, to) = (Rc::clone(way), to.strip_prefix("http://").expect("a url").to_owned());
    task::spawn("a way", async move {
        loop {
            let (asker, _) = socket.accept().await.expect("an asker");
            way.accepted.set(way.accepted.get() + 1);
            let owner = TcpStream::connect(&to).await.expect("an owner");
            task::spawn("a connection", carry(asker, owner, Rc::clone(&way)));
        }
    });
    url
}

async fn carry(mut asker: TcpStream, mut owner: TcpStream, way: Rc<Way>) {
    let stuck = async {
        while !way.is_stuck.get() {
            sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        _ = tokio::io::copy_bidirectional(&mut asker, &mut owner) => return,
        () = way.cut.notified() => return,
        () = stuck => {}
    }
    std::future::pending().await
}

async fn bed(heard: &Heard) -> (PeerAsker, String, Rc<Way>) {
    let to = listener(keys(&[SECRET]), heard).await;
    let passed = Rc::new(Way::default());
    let url = way(&to, &passed).await;
    (PeerAsker::new(keys(&[SECRET])), url, passed)
}

async fn call(asker: &PeerAsker, url: &str) {
    assert!(whole_by(asker, url, "call", Bytes::from("x")).await.is_some());
}

#[test]
fn requests_one_after_another_share_one_connection() {
    run(|heard| async move {
        let (asker, url, way) = bed(&heard).await;
        for _ in 0..20 {
            call(&asker, &url).await;
            let not_mine = asker.ask(&url, ME, request("not mine", "x")).await;
            assert!(matches!(not_mine, Err(PeerTrouble::NotMine)), "{not_mine:?}");
        }
        assert_eq!((way.accepted.get(), heard.borrow().len(), asker.kept()), (1, 40, 1));
    });
}

#[test]
fn requests_at_once_have_a_connection_each_and_few_are_kept() {
    run(|heard| async move {
        let (asker, url, way) = bed(&heard).await;
        join_all((0..40).map(|_| call(&asker, &url))).await;
        assert_eq!((way.accepted.get(), asker.kept()), (40, 16));
        join_all((0..16).map(|_| call(&asker, &url))).await;
        assert_eq!((way.accepted.get(), asker.kept()), (40, 16));
    });
}

#[test]
fn what_nobody_asks_for_is_not_kept_for_long() {
    run(|heard| async move {
        let (_, url, way) = bed(&heard).await;
        let kept_for = Duration::from_millis(300);
        let asker = PeerAsker::keeping_for(keys(&[SECRET]), kept_for);
        call(&asker, &url).await;
        call(&asker, &url).await;
        assert_eq!((way.accepted.get(), asker.kept()), (1, 1));
        // Nobody takes or keeps one meanwhile.
        sleep(3 * kept_for).await;
        assert_eq!(asker.kept(), 0);
    });
}

#[test]
fn an_answer_that_was_not_read_to_its_end_ends_its_connection() {
    run(|heard| async move {
        let (asker, url, _) = bed(&heard).await;
        drop(asker.ask(&url, ME, request("call", "x")).await.expect("a head"));
        assert!(whole_by(&asker, &url, "break", Bytes::new()).await.is_none());
        assert_eq!(asker.kept(), 0);
    });
}

#[test]
fn a_kept_connection_that_was_cut_costs_no_request() {
    run(|heard| async move {
        let (asker, url, way) = bed(&heard).await;
        join_all((0..3).map(|_| call(&asker, &url))).await;
        assert_eq!(asker.kept(), 3);
        way.cut.notify_waiters();
        call(&asker, &url).await;
        // The first that was found dead speaks for the others.
        assert_eq!((way.accepted.get(), asker.kept(), heard.borrow().len()), (4, 1, 4));
    });
}

#[test]
fn a_request_is_not_handed_to_a_connection_that_stands_but_carries_nothing() {
    run(|heard| async move {
        let (asker, url, way) = bed(&heard).await;
        call(&asker, &url).await;
        way.is_stuck.set(true);
        sleep(Duration::from_millis(10)).await;
        let stuck = asker.ask(&url, ME, request("call", "x")).await;
        // Sent nowhere: whoever asks may look for another owner.
        assert!(matches!(stuck, Err(PeerTrouble::Unreachable(_))), "{stuck:?}");
        assert_eq!((asker.kept(), heard.borrow().len()), (0, 1));
    });
}

//! The listener for other replicas.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tidegate_runtime::{
    clock::timer_now,
    task::{self, Owned},
};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep, timeout};

use super::{
    PeerAsk, Piece,
    channel::{Channel, ChannelError, FrameKind, HANDSHAKE_WITHIN, PeerKeys},
};
use crate::identity::InstanceId;

/// Connections that have not proved themselves, at once: one more ends the oldest. A replica
/// proves itself within one exchange.
const STRANGERS_MAX: usize = 64;
/// Connections of replicas at once.
const PEERS_MAX: usize = 8192;
/// The largest head of a request: a client's headers are bounded, and fewer come this way.
const HEAD_MAX: usize = 256 * 1024;
/// The largest body; what a client may send is bounded where it comes in.
const BODY_MAX: usize = 64 * 1024 * 1024;
/// How long the connection of a replica is kept for its next request: longer than the replica keeps
/// it, so that no request meets a connection that is just being closed.
const KEPT_FOR: Duration = Duration::from_secs(90);
/// How long a replica may take to send its request.
const REQUEST_WITHIN: Duration = Duration::from_secs(30);
/// How long to wait when the system gives no more connections.
const PAUSE: Duration = Duration::from_millis(50);
/// How often it is looked at the end whether everybody is answered.
const ENDING_STEP: Duration = Duration::from_millis(5);
/// How often a refusal is logged, at most.
const LOG_EVERY: Duration = Duration::from_secs(60);
/// How long what is under way may take when everything else has ended.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// What is waited for, on the thread that serves.
pub type Answering<T> = Pin<Box<dyn Future<Output = T>>>;

/// Answers a request; none if what it is about is not here.
pub type PeerHandler = Rc<dyn Fn(PeerAsk) -> Answering<Option<Reply>>>;

/// The body of an answer, as it comes.
pub trait ReplyPieces {
    /// The next part; none if it broke off. Giving up in the middle must lose nothing.
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Option<Piece>> + '_>>;
}

/// An answer.
pub struct Reply {
    /// Its head.
    pub head: Vec<u8>,
    /// Its body.
    pub body: Box<dyn ReplyPieces>,
}

/// Serves other replicas until `ended`, and then, for a moment, what is under way: a request that
/// was handed over and not read could not be told from one that was carried out.
pub async fn serve(
    listener: TcpListener,
    keys: Rc<PeerKeys>,
    me: InstanceId,
    handler: PeerHandler,
    ended: impl Future<Output = ()>,
) {
    let server = Rc::new(PeerServer { keys, me, handler, callers: Callers::default() });
    tokio::select! {
        () = accept(&listener, &server) => {}
        () = ended => {}
    }
    server.callers.is_ending.set(true);
    // Whoever has connected and was not taken yet may be sending its request.
    if let Ok(listener) = listener.into_std() {
        while let Ok((stream, _)) = listener.accept() {
            let stream = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream));
            stream.into_iter().for_each(|stream| take(stream, &server));
        }
    }
    let last_words = async {
        while server.callers.asking.get() > 0 || server.callers.expected.get() > 0 {
            sleep(ENDING_STEP).await;
        }
    };
    // What is left then ends with the thread.
    drop(timeout(LAST_WORDS, last_words).await);
}

/// What every connection is served with.
struct PeerServer {
    keys: Rc<PeerKeys>,
    me: InstanceId,
    handler: PeerHandler,
    callers: Callers,
}

/// Who is connected.
#[derive(Default)]
struct Callers {
    /// Those that have not proved themselves, the oldest first; a task ends with its entry.
    strangers: RefCell<BTreeMap<u64, Owned>>,
    next: Cell<u64>,
    /// How many have.
    peers: Cell<usize>,
    /// How many of these have asked and are not answered yet.
    asking: Cell<usize>,
    /// How many may ask at any moment: they have just connected, or were told that this replica
    /// lives.
    expected: Cell<usize>,
    /// Nobody is told that any more.
    is_ending: Cell<bool>,
    /// When a refusal was logged last.
    logged: Cell<Option<Instant>>,
}

impl Callers {
    /// The caller of this number is a replica, or has left.
    fn is_no_stranger(&self, number: u64) {
        let task = self.strangers.borrow_mut().remove(&number);
        task.into_iter().for_each(Owned::detach);
    }

    /// Tells of one that has another secret: now and then, for whoever comes may come often.
    fn log_refusal(&self, error: &ChannelError) {
        let now = timer_now();
        if self.logged.get().is_none_or(|at| now.duration_since(at) >= LOG_EVERY) {
            self.logged.set(Some(now));
            tracing::warn!(%error, "a connection to the peer listener was refused");
        }
    }
}

async fn accept(listener: &TcpListener, server: &Rc<PeerServer>) {
    loop {
        if server.callers.peers.get() >= PEERS_MAX {
            // Whoever comes waits in the system's queue, or gives up before it has sent anything.
            sleep(PAUSE).await;
            continue;
        }
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "no connection of another replica can be taken");
                sleep(PAUSE).await;
                continue;
            }
        };
        take(stream, server);
    }
}

/// Serves a connection.
fn take(stream: TcpStream, server: &Rc<PeerServer>) {
    // Frames are small, and somebody waits for each.
    drop(stream.set_nodelay(true));
    let number = server.callers.next.get();
    server.callers.next.set(number + 1);
    let shared = Rc::clone(server);
    let serving = task::spawn_owned("a request of another replica", async move {
        let left = Leaving { callers: &shared.callers, number };
        if let Err(error) = connection(stream, &shared, number).await {
            tracing::debug!(%error, "a connection of another replica ended");
        }
        drop(left);
    });
    let mut strangers = server.callers.strangers.borrow_mut();
    strangers.insert(number, serving);
    if strangers.len() > STRANGERS_MAX {
        drop(strangers.pop_first());
    }
}

/// A caller that is forgotten when this is dropped.
struct Leaving<'a> {
    callers: &'a Callers,
    number: u64,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.callers.is_no_stranger(self.number);
    }
}

/// One of the replicas that are served at once.
struct Counted<'a>(&'a Cell<usize>);

impl<'a> Counted<'a> {
    fn new(count: &'a Cell<usize>) -> Self {
        count.set(count.get() + 1);
        Self(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}

async fn connection(
    stream: TcpStream,
    server: &PeerServer,
    number: u64,
) -> Result<(), ChannelError> {
    let mut expected = Some(Counted::new(&server.callers.expected));
    let mut channel = match Channel::answer(stream, &server.keys, server.me).await {
        Ok(channel) => channel,
        Err(error) => {
            if matches!(error, ChannelError::Foreign) {
                server.callers.log_refusal(&error);
            }
            return Err(error);
        }
    };
    let first = match timeout(HANDSHAKE_WITHIN, channel.next()).await {
        Ok(Ok(first)) => first,
        // Whoever only wanted to know who is here has left.
        Ok(Err(ChannelError::Io(_))) => return Ok(()),
        Ok(Err(error)) => return Err(error),
        Err(_) => return Err(ChannelError::Late),
    };
    server.callers.is_no_stranger(number);
    let _peer = Counted::new(&server.callers.peers);
    let mut frame = first;
    loop {
        expected.take();
        match frame.0 {
            // Whoever asks whether this replica lives has handed nothing over yet.
            FrameKind::Ping if server.callers.is_ending.get() => return Ok(()),
            FrameKind::Ping => {
                expected = Some(Counted::new(&server.callers.expected));
                channel.send(FrameKind::Pong, &[]).await?;
            }
            _ if answer(&mut channel, server, frame).await? => {}
            _ => return Ok(()),
        }
        frame = match timeout(KEPT_FOR, channel.next()).await {
            Ok(Ok(next)) => next,
            // The replica has no more use for it.
            Ok(Err(ChannelError::Io(_))) | Err(_) => return Ok(()),
            Ok(Err(error)) => return Err(error),
        };
    }
}

/// Answers the request that begins with this frame; whether another one may follow.
async fn answer(
    channel: &mut Channel,
    server: &PeerServer,
    first: (FrameKind, Bytes),
) -> Result<bool, ChannelError> {
    let _asking = Counted::new(&server.callers.asking);
    let request = timeout(REQUEST_WITHIN, read_request(channel, first)).await;
    let request = request.map_err(|_| ChannelError::Late)??;
    let answering = (server.handler)(request);
    let reply = tokio::select! {
        reply = answering => reply,
        left = channel.next() => return left.map(|_| false),
    };
    let Some(Reply { head, mut body }) = reply else {
        return channel.send(FrameKind::NotMine, &[]).await.map(|()| true);
    };
    channel.send(FrameKind::Head, &head).await?;
    loop {
        let piece = tokio::select! {
            piece = body.next() => piece,
            // The asker says nothing before the end: it has left.
            left = channel.next() => return left.map(|_| false),
        };
        match piece {
            Some(Piece::Bytes(bytes)) => channel.send(FrameKind::Body, &bytes).await?,
            Some(Piece::End) => return channel.send(FrameKind::End, &[]).await.map(|()| true),
            // An end without the word for it is a break.
            None => return Ok(false),
        }
    }
}

/// The request that begins with this frame.
async fn read_request(
    channel: &mut Channel,
    first: (FrameKind, Bytes),
) -> Result<PeerAsk, ChannelError> {
    let (mut head, mut body) = (Vec::new(), BytesMut::new());
    let mut frame = first;
    loop {
        let (kind, bytes) = frame;
        match kind {
            FrameKind::Head if head.len() + bytes.len() <= HEAD_MAX => {
                head.extend_from_slice(&bytes);
            }
            FrameKind::Body if body.len() + bytes.len() <= BODY_MAX => {
                body.extend_from_slice(&bytes);
            }
            FrameKind::End => return Ok(PeerAsk { head, body: body.freeze() }),
            FrameKind::Head
            | FrameKind::Body
            | FrameKind::NotMine
            | FrameKind::Ping
            | FrameKind::Pong => return Err(ChannelError::Form),
        }
        frame = channel.next().await?;
    }
}

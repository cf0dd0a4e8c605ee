//! A request to another replica, and its answer.

use std::io;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{
    PeerAsk, Piece,
    channel::{Channel, ChannelError, FrameKind, PeerKeys},
    pool::IdleChannels,
    url::{PeerAddress, UrlProblem},
};
use crate::identity::InstanceId;

/// How long a connection may take: replicas are near each other.
const CONNECT_WITHIN: Duration = Duration::from_secs(1);
/// How long the owner may take to begin its answer: streams begin at once, and a list waits for
/// servers for seconds at most.
const HEAD_WITHIN: Duration = Duration::from_secs(120);
/// How long a body may be silent: a stream says that it lives every fifteen seconds.
const SILENT_FOR: Duration = Duration::from_secs(60);

/// Why a request was not answered.
#[derive(Debug, thiserror::Error)]
pub enum PeerTrouble {
    /// Nobody listens there. Nothing was sent.
    #[error("nobody listens there")]
    Refused,
    /// Another run of a replica is there. Nothing was sent.
    #[error("another instance is there")]
    OtherInstance,
    /// There is no way there, or whoever is there is no replica of this fleet. Nothing was sent.
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    /// What is asked for is not there. Nothing was done.
    #[error("what is asked for is not there")]
    NotMine,
    /// The request was sent, and nothing, or not all, was heard.
    #[error("it broke off: {0}")]
    Broken(String),
}

/// An answer whose body is still to be read.
pub struct PeerReply {
    /// Its head.
    pub head: Vec<u8>,
    /// Where its body comes from, and where that is kept once the body has ended.
    coming: Option<(Channel, KeptAt)>,
}

/// Where a channel that is of use again is kept.
struct KeptAt {
    idle: IdleChannels,
    url: String,
    instance: InstanceId,
}

impl KeptAt {
    fn keep(self, channel: Channel) {
        self.idle.keep(self.url, self.instance, channel);
    }
}

impl std::fmt::Debug for PeerReply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PeerReply({} bytes)", self.head.len())
    }
}

impl PeerReply {
    /// The next part of the body; none if it broke off. Giving up in the middle loses nothing.
    pub async fn next(&mut self) -> Option<Piece> {
        let Some((channel, _)) = &mut self.coming else { return Some(Piece::End) };
        match timeout(SILENT_FOR, channel.next()).await.ok()?.ok()? {
            (FrameKind::Body, bytes) => Some(Piece::Bytes(bytes)),
            (FrameKind::End, _) => {
                if let Some((channel, kept_at)) = self.coming.take() {
                    kept_at.keep(channel);
                }
                Some(Piece::End)
            }
            (FrameKind::Head | FrameKind::NotMine | FrameKind::Ping | FrameKind::Pong, _) => None,
        }
    }
}

/// The way to other replicas.
pub struct PeerAsker {
    keys: PeerKeys,
    idle: IdleChannels,
}

impl std::fmt::Debug for PeerAsker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PeerAsker({:?})", self.keys)
    }
}

impl PeerAsker {
    /// The way of whoever has these keys.
    #[must_use]
    pub fn new(keys: PeerKeys) -> Self {
        Self { keys, idle: IdleChannels::default() }
    }

    /// Asks the replica at a url, if it is the instance that is meant.
    ///
    /// # Errors
    /// It did not answer; whether the request was sent is told apart.
    pub async fn ask(
        &self,
        url: &str,
        wanted: InstanceId,
        request: PeerAsk,
    ) -> Result<PeerReply, PeerTrouble> {
        let mut channel = match self.idle.take(url, wanted).await {
            Some(channel) => channel,
            None => match connect(url, &self.keys).await? {
                (channel, instance) if instance == wanted => channel,
                _ => return Err(PeerTrouble::OtherInstance),
            },
        };
        let broken = |error: ChannelError| PeerTrouble::Broken(error.to_string());
        // Until the end was sent the request is not whole, and is not carried out.
        let unsent = |error: ChannelError| PeerTrouble::Unreachable(error.to_string());
        channel.send(FrameKind::Head, &request.head).await.map_err(unsent)?;
        if !request.body.is_empty() {
            channel.send(FrameKind::Body, &request.body).await.map_err(unsent)?;
        }
        channel.send(FrameKind::End, &[]).await.map_err(broken)?;
        let late = || PeerTrouble::Broken(ChannelError::Late.to_string());
        let first = timeout(HEAD_WITHIN, channel.next()).await.map_err(|_| late())?;
        let kept_at = KeptAt { idle: self.idle.clone(), url: url.to_owned(), instance: wanted };
        match first.map_err(broken)? {
            (FrameKind::NotMine, _) => {
                kept_at.keep(channel);
                Err(PeerTrouble::NotMine)
            }
            // A head is one frame.
            (FrameKind::Head, head) => {
                Ok(PeerReply { head: head.to_vec(), coming: Some((channel, kept_at)) })
            }
            (FrameKind::Body | FrameKind::End | FrameKind::Ping | FrameKind::Pong, _) => {
                Err(broken(ChannelError::Form))
            }
        }
    }

    /// One whose channels are kept for so long.
    #[cfg(test)]
    pub(super) fn keeping_for(keys: PeerKeys, kept_for: Duration) -> Self {
        Self { keys, idle: IdleChannels::kept_for(kept_for) }
    }

    /// How many channels are kept.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.idle.len()
    }
}

/// Which instance is at a url.
///
/// # Errors
/// None of this fleet's.
pub async fn who_is_at(url: &str, keys: &PeerKeys) -> Result<InstanceId, PeerTrouble> {
    connect(url, keys).await.map(|it| it.1)
}

/// A listener that is being closed may take a connection and drop it: the next attempt finds out
/// whether it still listens.
async fn connect(url: &str, keys: &PeerKeys) -> Result<(Channel, InstanceId), PeerTrouble> {
    match connect_once(url, keys).await {
        Err(NotConnected::Dropped(_)) => {
            connect_once(url, keys).await.map_err(NotConnected::trouble)
        }
        connected => connected.map_err(NotConnected::trouble),
    }
}

/// Why there is no channel to a replica.
enum NotConnected {
    /// The connection was there, and ended before either side had proved itself.
    Dropped(ChannelError),
    /// Anything else.
    Trouble(PeerTrouble),
}

impl NotConnected {
    fn trouble(self) -> PeerTrouble {
        match self {
            Self::Dropped(error) => PeerTrouble::Unreachable(error.to_string()),
            Self::Trouble(trouble) => trouble,
        }
    }
}

async fn connect_once(url: &str, keys: &PeerKeys) -> Result<(Channel, InstanceId), NotConnected> {
    let stream = reach(url).await.map_err(NotConnected::Trouble)?;
    Channel::call(stream, keys).await.map_err(|error| match error {
        ChannelError::Io(_) => NotConnected::Dropped(error),
        ChannelError::Foreign | ChannelError::Form | ChannelError::Late => {
            NotConnected::Trouble(PeerTrouble::Unreachable(error.to_string()))
        }
    })
}

async fn reach(url: &str) -> Result<TcpStream, PeerTrouble> {
    let address = PeerAddress::parse(url)
        .map_err(|problem: UrlProblem| PeerTrouble::Unreachable(problem.to_string()))?;
    let place = (address.host.as_str(), address.port);
    let stream = match timeout(CONNECT_WITHIN, TcpStream::connect(place)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
            return Err(PeerTrouble::Refused);
        }
        Ok(Err(error)) => return Err(PeerTrouble::Unreachable(error.to_string())),
        Err(_) => return Err(PeerTrouble::Unreachable("timed out".to_owned())),
    };
    // Frames are small, and somebody waits for each.
    drop(stream.set_nodelay(true));
    Ok(stream)
}

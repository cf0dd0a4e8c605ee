//! One connection between two replicas: the handshake, and frames over it.
//!
//! A frame is a Noise message under its length (two bytes): a kind and some bytes.

use std::io;
use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use snow::{Builder, HandshakeState, TransportState};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::primitives::Primitives;
use crate::{identity::InstanceId, seal::FleetSecrets};

const PATTERN: &str = "Noise_NNpsk0_25519_ChaChaPoly_SHA256";
/// What both sides must mean the same by; bound into the handshake.
const PROLOGUE: &[u8] = b"tidegate peer 1";
/// Where the key stands in the pattern.
const PSK_AT: u8 = 0;
/// The largest message of a handshake: a key of 32 bytes, an instance, a tag.
const HANDSHAKE_MAX: usize = 128;
/// How much of a body goes into one frame.
const CHUNK: usize = 32 * 1024;
const TAG_BYTES: usize = 16;
/// How long the handshake may take.
pub(super) const HANDSHAKE_WITHIN: Duration = Duration::from_secs(2);
/// How long a peer that reads may take to read one frame.
const WRITE_WITHIN: Duration = Duration::from_secs(20);

/// The keys of the channel: the first one is used, all are accepted.
pub struct PeerKeys(Vec<[u8; 32]>);

impl PeerKeys {
    /// The keys of a fleet.
    #[must_use]
    pub fn of(secrets: &FleetSecrets) -> Self {
        Self(secrets.noise_psks())
    }
}

impl std::fmt::Debug for PeerKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PeerKeys({})", self.0.len())
    }
}

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameKind {
    /// A part of a head.
    Head = 1,
    /// A part of a body.
    Body = 2,
    /// The message is whole.
    End = 3,
    /// What was asked for is not here.
    NotMine = 4,
    /// A kept channel is about to be used again.
    Ping = 5,
    /// It is there.
    Pong = 6,
}

impl FrameKind {
    const fn of(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Head,
            2 => Self::Body,
            3 => Self::End,
            4 => Self::NotMine,
            5 => Self::Ping,
            6 => Self::Pong,
            _ => return None,
        })
    }
}

/// Why a channel is of no use.
#[derive(Debug, thiserror::Error)]
pub(super) enum ChannelError {
    /// The connection failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The other side has another secret, or is no replica.
    #[error("the other side is no replica of this fleet, or has another `state.secret`")]
    Foreign,
    /// It says something that no replica says.
    #[error("the other side does not speak this protocol")]
    Form,
    /// It takes too long.
    #[error("timed out")]
    Late,
}

/// A channel whose two sides have proved themselves.
pub(super) struct Channel {
    stream: TcpStream,
    noise: TransportState,
    /// What was read and is not taken yet.
    read: BytesMut,
}

impl Channel {
    /// Proves this side, and learns which instance the other one is.
    pub(super) async fn call(
        stream: TcpStream,
        keys: &PeerKeys,
    ) -> Result<(Self, InstanceId), ChannelError> {
        match timeout(HANDSHAKE_WITHIN, Self::greet(stream, keys)).await {
            Ok(called) => called,
            Err(_) => Err(ChannelError::Late),
        }
    }

    async fn greet(
        mut stream: TcpStream,
        keys: &PeerKeys,
    ) -> Result<(Self, InstanceId), ChannelError> {
        let psk = keys.0.first().ok_or(ChannelError::Foreign)?;
        let mut noise = handshake(psk, true)?;
        let mut buffer = [0; HANDSHAKE_MAX];
        let length = noise.write_message(&[], &mut buffer).map_err(|_| ChannelError::Form)?;
        write_framed(&mut stream, &buffer[..length]).await?;
        let mut read = BytesMut::new();
        let reply = read_framed(&mut stream, &mut read, HANDSHAKE_MAX).await?;
        let length = noise.read_message(&reply, &mut buffer).map_err(|_| ChannelError::Foreign)?;
        let instance: [u8; 16] = buffer[..length].try_into().map_err(|_| ChannelError::Form)?;
        let noise = noise.into_transport_mode().map_err(|_| ChannelError::Form)?;
        Ok((Self { stream, noise, read }, InstanceId(u128::from_be_bytes(instance))))
    }

    /// Answers a caller that has the key, and tells it which instance this is. What it said may be
    /// an older caller's words over again: it has proved itself with the first frame that opens.
    pub(super) async fn answer(
        stream: TcpStream,
        keys: &PeerKeys,
        me: InstanceId,
    ) -> Result<Self, ChannelError> {
        match timeout(HANDSHAKE_WITHIN, Self::accept(stream, keys, me)).await {
            Ok(answered) => answered,
            Err(_) => Err(ChannelError::Late),
        }
    }

    async fn accept(
        mut stream: TcpStream,
        keys: &PeerKeys,
        me: InstanceId,
    ) -> Result<Self, ChannelError> {
        let mut read = BytesMut::new();
        let hello = read_framed(&mut stream, &mut read, HANDSHAKE_MAX).await?;
        let mut buffer = [0; HANDSHAKE_MAX];
        let mut noise = None;
        for psk in &keys.0 {
            let mut candidate = handshake(psk, false)?;
            if candidate.read_message(&hello, &mut buffer).is_ok() {
                noise = Some(candidate);
                break;
            }
        }
        let mut noise = noise.ok_or(ChannelError::Foreign)?;
        let length = noise
            .write_message(&me.0.to_be_bytes(), &mut buffer)
            .map_err(|_| ChannelError::Form)?;
        write_framed(&mut stream, &buffer[..length]).await?;
        let noise = noise.into_transport_mode().map_err(|_| ChannelError::Form)?;
        Ok(Self { stream, noise, read })
    }

    /// Sends some bytes, in as many frames as it takes.
    pub(super) async fn send(&mut self, kind: FrameKind, bytes: &[u8]) -> Result<(), ChannelError> {
        let mut chunks = bytes.chunks(CHUNK);
        // A frame without bytes says something, too.
        let first = chunks.next().unwrap_or_default();
        for chunk in std::iter::once(first).chain(chunks) {
            self.send_frame(kind, chunk).await?;
        }
        Ok(())
    }

    async fn send_frame(&mut self, kind: FrameKind, bytes: &[u8]) -> Result<(), ChannelError> {
        let mut plain = Vec::with_capacity(bytes.len() + 1);
        plain.push(kind as u8);
        plain.extend_from_slice(bytes);
        let mut sealed = vec![0; plain.len() + TAG_BYTES];
        let length =
            self.noise.write_message(&plain, &mut sealed).map_err(|_| ChannelError::Form)?;
        let written = write_framed(&mut self.stream, &sealed[..length]);
        timeout(WRITE_WITHIN, written).await.map_err(|_| ChannelError::Late)?
    }

    /// The next frame. Giving up in the middle of it loses nothing.
    pub(super) async fn next(&mut self) -> Result<(FrameKind, Bytes), ChannelError> {
        let sealed = read_framed(&mut self.stream, &mut self.read, usize::from(u16::MAX)).await?;
        let mut plain = vec![0; sealed.len()];
        let length =
            self.noise.read_message(&sealed, &mut plain).map_err(|_| ChannelError::Form)?;
        plain.truncate(length);
        let mut plain = Bytes::from(plain);
        if plain.is_empty() {
            return Err(ChannelError::Form);
        }
        let kind = FrameKind::of(plain.get_u8()).ok_or(ChannelError::Form)?;
        Ok((kind, plain))
    }
}

fn handshake(psk: &[u8; 32], is_initiator: bool) -> Result<HandshakeState, ChannelError> {
    let pattern = PATTERN.parse().map_err(|_| ChannelError::Form)?;
    let builder = Builder::with_resolver(pattern, Box::new(Primitives));
    let builder = builder.psk(PSK_AT, psk).map_err(|_| ChannelError::Form)?;
    let builder = builder.prologue(PROLOGUE).map_err(|_| ChannelError::Form)?;
    let built = if is_initiator { builder.build_initiator() } else { builder.build_responder() };
    built.map_err(|_| ChannelError::Form)
}

async fn write_framed(stream: &mut TcpStream, message: &[u8]) -> Result<(), ChannelError> {
    let length = u16::try_from(message.len()).map_err(|_| ChannelError::Form)?;
    let mut framed = Vec::with_capacity(message.len() + 2);
    framed.extend_from_slice(&length.to_be_bytes());
    framed.extend_from_slice(message);
    stream.write_all(&framed).await?;
    Ok(())
}

/// One message, of at most this length; what follows stays in `read`.
async fn read_framed(
    stream: &mut TcpStream,
    read: &mut BytesMut,
    max: usize,
) -> Result<BytesMut, ChannelError> {
    loop {
        if let Some(length) = read.first_chunk::<2>().map(|it| usize::from(u16::from_be_bytes(*it)))
        {
            if length == 0 || length > max {
                return Err(ChannelError::Form);
            }
            if read.len() >= 2 + length {
                read.advance(2);
                return Ok(read.split_to(length));
            }
            read.reserve(2 + length - read.len());
        }
        if stream.read_buf(read).await? == 0 {
            return Err(ChannelError::Io(io::ErrorKind::UnexpectedEof.into()));
        }
    }
}

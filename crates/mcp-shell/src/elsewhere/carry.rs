//! The answer of another replica on its way to the client.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use tidegate_mcp::hub::{LastWords, McpAnswer, McpAnswerBody, ReaderId, ids::TableId as _};
use tokio::sync::{mpsc, oneshot};

use super::{broke_off, refuse};
use crate::{
    event_body::{Batch, ClientNews, EventBody},
    fleet::{PeerAnswer, PeerAnswerHead, PeerPiece},
    handle::{AnswerEvents, Answered},
};

/// The largest answer that is handed on whole.
const WHOLE_MAX: usize = 64 * 1024 * 1024;

/// What became of an answer.
pub(super) enum Carried {
    /// The client has it, or has left, or knows that it is lost.
    Done,
    /// It is lost, and the request may be made again.
    Lost(oneshot::Sender<Answered>),
}

/// Hands an answer back; `words` is what the client hears if it is lost on the way.
pub(super) async fn hand_back(
    got: PeerAnswer,
    mut answer: oneshot::Sender<Answered>,
    clients: &mpsc::UnboundedSender<ClientNews>,
    words: Option<&LastWords>,
) -> Carried {
    let PeerAnswer { head, mut body } = got;
    if head.is_events {
        return events(head, body, answer, clients, words).await;
    }
    let mut whole = BytesMut::new();
    loop {
        let piece = tokio::select! {
            piece = body.next() => piece,
            () = answer.closed() => return Carried::Done,
        };
        match piece {
            Some(PeerPiece::Bytes(bytes)) if whole.len() + bytes.len() <= WHOLE_MAX => {
                whole.extend_from_slice(&bytes);
            }
            Some(PeerPiece::End) => break,
            Some(PeerPiece::Bytes(_)) | None => return lost(answer, words),
        }
    }
    let body = match whole.is_empty() {
        true => McpAnswerBody::Empty,
        false => McpAnswerBody::Json(whole.freeze()),
    };
    let PeerAnswerHead { status, retry_after, .. } = head;
    refuse(answer, McpAnswer { status, session: None, retry_after, body });
    Carried::Done
}

fn lost(answer: oneshot::Sender<Answered>, words: Option<&LastWords>) -> Carried {
    match words {
        Some(words) if words.may_repeat => return Carried::Lost(answer),
        Some(words) => refuse(answer, McpAnswer::json(200, words.message.clone())),
        None => refuse(answer, broke_off()),
    }
    Carried::Done
}

async fn events(
    head: PeerAnswerHead,
    mut body: crate::fleet::PeerBody,
    mut answer: oneshot::Sender<Answered>,
    clients: &mpsc::UnboundedSender<ClientNews>,
    words: Option<&LastWords>,
) -> Carried {
    // The head waits for the first event: an answer that is lost before it may be asked for again.
    let first = tokio::select! {
        first = tokio::time::timeout(super::find::HEAD_WAITS, body.next()) => first,
        () = answer.closed() => return Carried::Done,
    };
    let mut next = match first {
        Ok(None) => return lost(answer, words),
        Ok(Some(piece)) => Some(piece),
        Err(_) => None,
    };
    // No reader of the Hub's: what is told of it changes nothing.
    let reader = ReaderId::new(u32::MAX, 0);
    let (sender, stream) = EventBody::new(reader, Batch::default(), clients.clone());
    let head = McpAnswer { status: head.status, ..McpAnswer::events(reader) };
    let events = Some(AnswerEvents::Stream(stream));
    if answer.send(Answered { answer: head, events }).is_err() {
        return Carried::Done;
    }
    loop {
        let piece = match next.take() {
            Some(piece) => Some(piece),
            None => tokio::select! {
                piece = body.next() => piece,
                () = sender.closed() => return Carried::Done,
            },
        };
        let (events, is_last) = match piece {
            Some(PeerPiece::Bytes(bytes)) => (VecDeque::from([bytes]), false),
            Some(PeerPiece::End) => (VecDeque::new(), true),
            None => (words.map(|it| event(&it.message)).into_iter().collect(), true),
        };
        // A client that has left reads no more.
        if sender.send(Batch { events, is_last }).await.is_err() || is_last {
            return Carried::Done;
        }
    }
}

/// A message as the last event of a stream.
fn event(message: &str) -> Bytes {
    Bytes::from(format!("event: message\ndata: {message}\n\n"))
}

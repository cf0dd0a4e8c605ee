//! HTTP/1.1 with a client, inside the one task of its connection.
//!
//! Why it exists: a general server reads heads that this gateway would have to look at again for
//! what two readers could cut differently, and moves bodies through channels. Here the body of a
//! request is read by whoever answers it, straight from the socket, and an answer that is ready
//! leaves in one write together with its head.
//!
//! The life of a request: a head ([`head`]) is waited for on the connection ([`wire`]); the handler
//! answers it, and reads its body if it wants to ([`framing`]); meanwhile the client is watched,
//! and one that has gone takes its request with it; the answer is put into bytes ([`outgoing`]).
//!
//! Rules kept here:
//! - One request at a time; what a client sends ahead waits (a few hundred bytes are read, to tell
//!   it from a client that has gone).
//! - A body that was not read to its end closes the connection after the answer.
//! - An answer that breaks is never ended cleanly: the connection is dropped in the middle.
//! - At the drain an idle connection is closed, and any other one after its answer.
//! - A connection whose request another thread should answer goes there (`handover.rs`).

mod date;
mod framing;
mod head;
mod outgoing;
#[cfg(test)]
mod tests;
mod wire;

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::{Rc, Weak};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Response, StatusCode, Version};
use http_body::Body;
use tidegate_runtime::phase::Phase;

pub(super) use self::head::RequestHead;
use self::outgoing::{Asked, OutgoingAnswer};
use self::wire::NextHead;
pub(super) use self::wire::{IDLE_FOR, Wire};
use super::answer_body::AnswerBody;
use super::handover::{FirstRequest, FreeSeat};
use super::request_body::RequestBody;
use super::{Activity, Service};

/// Speaks to the end of a connection. `may_close` is ready when no further request is served.
pub(super) async fn converse(
    service: &Service,
    wire: Wire,
    scheme: &'static str,
    mut may_close: impl Future<Output = ()> + Unpin,
) {
    let activity = Rc::clone(wire.activity());
    let wire = Rc::new(RefCell::new(wire));
    let mut is_closing = false;
    loop {
        let next = poll_fn(|cx| {
            let mut wire = wire.borrow_mut();
            if let Poll::Ready(next) = wire.poll_head(cx, service.limits.bytes) {
                return Poll::Ready(next);
            }
            is_closing = is_closing || Pin::new(&mut may_close).poll(cx).is_ready();
            let is_over = is_closing && wire.is_between_requests();
            if is_over { Poll::Ready(NextHead::Over) } else { Poll::Pending }
        });
        let ended = match next.await {
            NextHead::Request(head) => match seat_elsewhere(service, &wire, &head) {
                Some(seat) => return move_to(seat, wire, head),
                None => exchange(service, &wire, &activity, head, scheme).await,
            },
            NextHead::Refused(fault) => refuse(&wire, fault.0).await,
            NextHead::Over => Ended::Close,
        };
        match ended {
            Ended::KeepOpen => {}
            Ended::Close => break,
            Ended::Broke => return,
        }
    }
    poll_fn(|cx| wire.borrow_mut().poll_close(cx)).await;
}

/// Why the body of a request is not whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the body of the request broke")]
pub struct BodyBroke;

/// What comes after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    KeepOpen,
    Close,
    /// The client has gone, or its answer broke: the connection is dropped as it is.
    Broke,
}

/// A connection that the body of its request shares.
type SharedWire = Rc<RefCell<Wire>>;

/// The seat on another thread for the connection of a request that it should answer.
fn seat_elsewhere<'a>(
    service: &'a Service,
    wire: &SharedWire,
    head: &RequestHead,
) -> Option<FreeSeat<'a>> {
    let hand_over = service.hand_over.as_ref().filter(|it| (it.rule)(&head.request))?;
    let may_go = wire.borrow().may_go(hand_over.after);
    if may_go && *service.phase.borrow() < Phase::Draining { hand_over.seat() } else { None }
}

/// Moves a connection to its seat on another thread.
fn move_to(seat: FreeSeat<'_>, wire: SharedWire, head: Box<RequestHead>) {
    // Its last request is over, so nobody else has it; if the system keeps it, its client is told
    // by its end.
    let wire = Rc::into_inner(wire).map(RefCell::into_inner);
    if let Some((stream, rest)) = wire.and_then(Wire::into_parts) {
        seat.give(stream, FirstRequest { head, rest });
    }
}

/// Has one request answered.
async fn exchange(
    service: &Service,
    wire: &SharedWire,
    activity: &Rc<Activity>,
    mut head: Box<RequestHead>,
    scheme: &'static str,
) -> Ended {
    let body = Incoming::of(wire, &mut head);
    let RequestHead { mut request, is_keep_alive, .. } = *head;
    let mut asked = Asked::new(request.method(), request.version(), is_keep_alive);
    let mut guard = service.begin(activity, &mut request, scheme);
    let mut answering = (service.handler)(request.map(|()| RequestBody::over_h1(body)));
    let response = poll_fn(|cx| match answering.as_mut().poll(cx) {
        Poll::Ready(response) => Poll::Ready(Some(response)),
        Poll::Pending => wire.borrow_mut().poll_gone(cx).map(|()| None),
    });
    let Some(response) = response.await else { return Ended::Broke };
    drop(answering);
    let is_draining = *service.phase.borrow() >= Phase::Draining;
    asked.is_keep_alive &= wire.borrow().has_read_body() && !is_draining;
    if asked.is_head {
        guard.finish();
    }
    send(wire, AnswerBody::around(response, guard), &asked).await
}

/// Sends an answer, each part as soon as it is there.
async fn send(wire: &SharedWire, response: Response<AnswerBody>, asked: &Asked) -> Ended {
    let (head, mut body) = response.into_parts();
    let mut out = OutgoingAnswer::new(&head, body.size_hint().exact(), asked);
    drop(head);
    let mut rest = if out.has_body { Rest::More } else { Rest::Ended };
    poll_fn(|cx| {
        loop {
            if matches!(rest, Rest::More | Rest::Awaited) {
                rest = collect(&mut body, &mut out, cx);
            }
            let mut wire = wire.borrow_mut();
            if ready!(wire.poll_write(cx, &mut out)).is_err() {
                return Poll::Ready(Ended::Broke);
            }
            match rest {
                Rest::More => {}
                Rest::Awaited => return wire.poll_gone(cx).map(|()| Ended::Broke),
                Rest::Ended if out.is_keep_alive => return Poll::Ready(Ended::KeepOpen),
                Rest::Ended => return Poll::Ready(Ended::Close),
                Rest::Broke => return Poll::Ready(Ended::Broke),
            }
        }
    })
    .await
}

/// What is still to come of an answer's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    /// Something that may be there already.
    More,
    /// Something that is not there yet.
    Awaited,
    Ended,
    Broke,
}

/// Puts together what is ready of a body, as far as there is room for it.
fn collect(body: &mut AnswerBody, out: &mut OutgoingAnswer, cx: &mut Context<'_>) -> Rest {
    while out.has_room() {
        let is_sound = match Pin::new(&mut *body).poll_frame(cx) {
            Poll::Pending => return Rest::Awaited,
            // Trailers say nothing to anybody here.
            Poll::Ready(Some(Ok(frame))) => frame.into_data().map_or(Ok(()), |data| out.push(data)),
            Poll::Ready(Some(Err(_))) => return Rest::Broke,
            Poll::Ready(None) => return out.end().map_or(Rest::Broke, |()| Rest::Ended),
        };
        if is_sound.is_err() {
            return Rest::Broke;
        }
        if body.is_end_stream() {
            return out.end().map_or(Rest::Broke, |()| Rest::Ended);
        }
    }
    Rest::More
}

/// Answers what is no request.
async fn refuse(wire: &SharedWire, status: StatusCode) -> Ended {
    let mut response = Response::new(());
    *response.status_mut() = status;
    let (head, ()) = response.into_parts();
    let asked = Asked { is_head: false, version: Version::HTTP_11, is_keep_alive: false };
    let mut out = OutgoingAnswer::new(&head, Some(0), &asked);
    match poll_fn(|cx| wire.borrow_mut().poll_write(cx, &mut out)).await {
        Ok(()) => Ended::Close,
        Err(_) => Ended::Broke,
    }
}

/// The body of a request, which its reader takes straight from the connection. Whoever keeps it
/// does not keep the connection: that ends when it has to.
pub(super) struct Incoming {
    wire: Weak<RefCell<Wire>>,
    /// Of which request it is: one that is kept for longer must not read the next one's bytes.
    request: u64,
}

impl Incoming {
    /// The body of a request that is under way from here on.
    fn of(wire: &SharedWire, head: &mut RequestHead) -> Self {
        Self { wire: Rc::downgrade(wire), request: wire.borrow_mut().begin(head) }
    }

    pub(super) fn poll_data(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyBroke>>> {
        let Some(wire) = self.wire.upgrade() else { return Poll::Ready(Some(Err(BodyBroke))) };
        wire.borrow_mut().poll_body(cx, self.request)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.exact_len() == Some(0)
    }

    /// How much is still to come, if that was announced.
    pub(super) fn exact_len(&self) -> Option<u64> {
        self.wire.upgrade().and_then(|wire| wire.borrow().body_len(self.request))
    }
}

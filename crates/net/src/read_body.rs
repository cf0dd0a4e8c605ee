//! A request's body, read to its end within limits on its size and on the time it takes.

mod content_encoding;

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Body;
use tidegate_runtime::clock::timer_now;
use tokio::time::{Instant, timeout_at};

use self::content_encoding::ContentEncoding;
use crate::connection::RequestBody;

/// Why a request is refused before anybody looks at what it asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub status: StatusCode,
    /// A sentence for the client.
    pub message: &'static str,
}

impl Refusal {
    #[must_use]
    pub const fn new(status: StatusCode, message: &'static str) -> Self {
        Self { status, message }
    }
}

/// A client that sends nothing of its body for this long has gone.
const BODY_IDLE: Duration = Duration::from_secs(30);
/// And one that sends so little each second, in the long run, only means to keep us busy (S48).
const BODY_RATE: u64 = 1024;

/// Until when the next bytes of a body are awaited, of which so many have come.
fn patience(began: Instant, now: Instant, len: usize) -> Instant {
    let earned = Duration::from_secs(len as u64 / BODY_RATE);
    (began + BODY_IDLE + earned).min(now + BODY_IDLE)
}

pub const TOO_LARGE: Refusal =
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "the body is larger than allowed");

/// Reads a body to its end, at most `limit` bytes of it, and undoes its compression within the same
/// limit.
pub async fn read_body(
    headers: &HeaderMap,
    mut body: RequestBody,
    limit: u64,
) -> Result<Bytes, Refusal> {
    const GONE: Refusal =
        Refusal::new(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time");
    const BROKEN: Refusal = Refusal::new(StatusCode::BAD_REQUEST, "the body ended early");
    let encoding = ContentEncoding::of(headers)?;
    if body.size_hint().lower() > limit {
        return Err(TOO_LARGE);
    }
    let mut began = None;
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    loop {
        // What is there already needs no look at the clock.
        let ready = poll_fn(|cx| Poll::Ready(Pin::new(&mut body).poll_frame(cx)));
        let frame = match ready.await {
            Poll::Ready(frame) => frame,
            Poll::Pending => {
                let now = timer_now();
                let until = patience(*began.get_or_insert(now), now, first.len() + rest.len());
                timeout_at(until, body.frame()).await.map_err(|_| GONE)?
            }
        };
        let Some(frame) = frame else { break };
        let Ok(data) = frame.map_err(|_| BROKEN)?.into_data() else { continue };
        if (first.len() + rest.len() + data.len()) as u64 > limit {
            return Err(TOO_LARGE);
        }
        // Most bodies come in one frame, which is used as it is.
        if first.is_empty() && rest.is_empty() {
            first = data;
        } else {
            if rest.is_empty() {
                rest.extend_from_slice(&first);
                first = Bytes::new();
            }
            rest.extend_from_slice(&data);
        }
        if body.is_end_stream() {
            break;
        }
    }
    let whole = if rest.is_empty() { first } else { rest.freeze() };
    encoding.removed_from(whole, limit).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s48_a_body_in_drops_runs_out_of_patience_and_a_slow_one_does_not() {
        let began = timer_now();
        let at = |seconds| began + Duration::from_secs(seconds);
        assert_eq!(patience(began, at(0), 0), at(30));
        assert_eq!(patience(began, at(29), 3), at(30), "a byte now and then earns nothing");
        assert_eq!(patience(began, at(100), 1 << 20), at(130), "ten KiB a second are welcome");
    }
}

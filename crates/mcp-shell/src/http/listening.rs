//! The stream on which a server speaks of its own accord: a GET that stays open.
//!
//! Rules kept here:
//! - A server without one says so once (405, or any other 4xx but 409 to the first GET; many have
//!   no such route and say 404) and is never asked again. Silence is no failure either.
//! - A stream that ends is opened again where it ended, after 1 s, twice as long each time it
//!   brought nothing, up to 30 s, give or take a fifth; a server may ask for more.
//! - Where there has been a stream, a session that is not known any more is lost.
//! - It has a connection of its own and never one of the calls'.

use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use tidegate_runtime::rng;
use tokio::time::sleep;

use super::{
    call::{self, BodyKind},
    conversation::{ConnectionUse, HttpConversation},
    notices::Before,
    reading::{self, EventStream, Resume},
};
use crate::transport::{ConnectionEvent, Failure};

const WAIT_MIN: Duration = Duration::from_secs(1);
const WAIT_MAX: Duration = Duration::from_secs(30);
/// The most that a server may ask for.
const TOLD_MAX: Duration = Duration::from_secs(300);

/// What came of asking for the stream.
enum ListenReply {
    Stream(Box<EventStream>),
    /// There is none.
    Never,
    NotNow,
    Lost(Failure),
}

/// Listens until the session is lost; `before` is what the server must have seen first.
pub(super) async fn run(talk: Rc<HttpConversation>, before: Before) {
    before.were_taken().await;
    let mut resume = Resume::default();
    let mut was_open = false;
    let mut wait = WAIT_MIN;
    loop {
        // In a box of its own: asking takes kilobytes, and this task lives as long as its session.
        match Box::pin(ask(&talk, resume.clone(), was_open)).await {
            ListenReply::Never => return,
            ListenReply::Lost(failure) => return talk.lose(failure),
            ListenReply::NotNow => {}
            ListenReply::Stream(mut stream) => {
                was_open = true;
                listen(&talk, &mut stream).await;
                if stream.events > 0 {
                    wait = WAIT_MIN;
                }
                resume = stream.resume;
            }
        }
        let told = resume.wait.map_or(Duration::ZERO, |wait| Duration::from_millis(wait.0));
        sleep(jittered(wait, rng::draw()).max(told.min(TOLD_MAX))).await;
        wait = (wait * 2).min(WAIT_MAX);
    }
}

async fn ask(talk: &HttpConversation, resume: Resume, was_open: bool) -> ListenReply {
    let had_session = talk.has_session();
    let get = || talk.request(Method::GET, Bytes::new(), resume.after.as_ref());
    let Ok(response) = talk.send(ConnectionUse::Listening, get).await else {
        return ListenReply::NotNow;
    };
    let (head, mut body) = response.into_parts();
    if head.status.is_success() && call::kind_of(&head.headers) == BodyKind::Events {
        body.expect_silence();
        let stream = EventStream::new(body, resume, talk.place.answer_max());
        return ListenReply::Stream(Box::new(stream));
    }
    if was_open {
        let (failure, _) = call::refusal(talk, &head, body, had_session).await;
        if failure.is_session_loss {
            return ListenReply::Lost(failure);
        }
    }
    // 409: whoever had the session before us still has its stream.
    if head.status.is_server_error() || matches!(head.status.as_u16(), 409 | 429) {
        return ListenReply::NotNow;
    }
    tracing::debug!(status = head.status.as_u16(), "an mcp server has no stream of its own");
    ListenReply::Never
}

/// Tells what the stream says until it ends.
async fn listen(talk: &HttpConversation, stream: &mut EventStream) {
    // How it ended makes no difference.
    while let Ok(Some(bytes)) = stream.next().await {
        let Ok(messages) = reading::messages(bytes) else { continue };
        for bytes in messages {
            // What is no message cannot be routed, and there is no request to blame.
            if reading::is_message(&bytes) {
                talk.tell(ConnectionEvent::Message { bytes, call: None }).await;
            }
        }
    }
}

/// A fifth more or less, so that many sessions do not come back at once; never under the least.
fn jittered(wait: Duration, draw: u64) -> Duration {
    let share = 0.8 + 0.4 * (draw % 1024) as f64 / 1024.0;
    wait.mul_f64(share).max(WAIT_MIN)
}

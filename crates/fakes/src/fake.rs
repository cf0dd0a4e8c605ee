//! A scripted LLM provider: `api: fake`, the demo's backends, the upstream of tests and benches.
//!
//! It answers `POST …/chat/completions`, `…/completions`, `…/responses`, `…/messages`,
//! `…/messages/count_tokens`, `…/embeddings`, `…/audio/speech` and any other request that is JSON
//! or a form, streams where the client asks for it, lists models, calls a tool when asked to ("use
//! the tool"), and misbehaves exactly as its [`Script`] or the model name says. What it received
//! can be read.
//!
//! Three ways to use it: inside the process over any stream of bytes (`serve`), as a
//! [`FakeServer`] on a socket of its own, and from other languages over the control endpoints.
//!
//! ```text
//! request → course.rs   which step?  (script.rs, model_name.rs)
//!         → ask.rs      what is asked?      → answer.rs  what is said?
//!         → render.rs   dialect.rs, errors.rs: a Tape of beats
//!         → tape.rs     played onto the wire
//! ```
//!
//! Rules kept here:
//! - Which answer is given depends on the script, the call and its number only; `phases` also on
//!   the time.
//! - Nothing a client sends makes it panic; bodies, recorded calls and answers have bounds.
//! - It has no timeouts of its own on purpose: hanging is one of its jobs. Whoever starts it ends
//!   it.

mod answer;
mod ask;
mod calls;
mod control;
mod course;
mod dialect;
mod errors;
mod model_name;
mod render;
mod script;
mod server;
mod step;
mod tape;

use std::error::Error as _;
use std::future::{pending, poll_fn};
use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::{Request, Response, StatusCode, request::Parts};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tidegate_runtime::clock::timer_now;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, sleep};

pub use calls::{Call, Counts};
pub use script::Script;
pub use server::FakeServer;
pub use step::{Act, ErrorText, Step};

use calls::{Calls, Ticket};
use course::Course;
use render::{Break, Playback};
use tape::{Play, Tape};

/// The largest request taken: twice what the gateway lets through.
const MAX_BODY: usize = 64 << 20;

/// A fake provider.
#[derive(Debug)]
pub struct Fake {
    started: Instant,
    course: ArcSwap<Course>,
    calls: Arc<Calls>,
    /// Whether it answers the control endpoints: only where no client of the gateway gets at them.
    has_control: bool,
}

impl Fake {
    /// A fake inside the process.
    pub fn new(script: Script) -> Self {
        let course = ArcSwap::from_pointee(Course::start(script));
        Self { started: timer_now(), course, calls: Arc::default(), has_control: false }
    }

    fn with_control(script: Script) -> Self {
        Self { has_control: true, ..Self::new(script) }
    }

    /// Sets another script, from its first step and phase.
    pub(crate) fn set_script(&self, script: Script) {
        self.course.store(Arc::new(Course::start(script)));
    }

    /// The calls it received, oldest first, as many as its script keeps.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.calls.list()
    }

    /// How many calls it received, has under way, and was left with.
    pub(crate) fn counts(&self) -> Counts {
        self.calls.counts()
    }

    fn forget_calls(&self) {
        self.calls.forget();
    }

    async fn call(
        self: Arc<Self>,
        connection: u64,
        request: Request<Incoming>,
    ) -> Result<Response<Play>, Break> {
        let (head, body) = request.into_parts();
        let body = match Limited::new(body, MAX_BODY).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => return Ok(too_large()),
            // The client broke off; nobody is left to answer.
            Err(_) => return Err(Break::Close),
        };
        let path = head.uri.path();
        let control = self.has_control.then(|| control::answer(&self, &head.method, path, &body));
        if let Some(tape) = control.flatten() {
            return Ok(response(&tape, None));
        }
        let (number, mut ticket) = self.calls.begin();
        let course = self.course.load_full();
        if course.script.record > 0 {
            let call = recorded(self.started, connection, &head, body.clone());
            self.calls.keep(call, course.script.record);
        }
        match course.reply(number, &head, &body) {
            Playback::Play(tape) => {
                if !tape.latency.is_zero() {
                    sleep(tape.latency).await;
                }
                Ok(response(&tape, Some(ticket)))
            }
            Playback::Hang => pending().await,
            Playback::Break { how, after } => {
                sleep(after).await;
                ticket.finish();
                Err(how)
            }
        }
    }
}

/// Serves one connection until it ends.
pub async fn serve<T>(io: T, fake: Arc<Fake>)
where
    T: AsyncRead + AsyncWrite + Unpin + 'static,
{
    serve_and_reset(io, fake, |_| ()).await;
}

/// Serves one connection; `reset` is what makes its close a reset.
async fn serve_and_reset<T>(io: T, fake: Arc<Fake>, reset: fn(&T))
where
    T: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let connection = fake.calls.connect();
    let number = connection.number;
    let service = service_fn(move |request| Box::pin(Arc::clone(&fake).call(number, request)));
    let mut driver = http1::Builder::new().serve_connection(TokioIo::new(io), service);
    let ended = poll_fn(|cx| driver.poll_without_shutdown(cx)).await;
    let how = ended.err().and_then(|error| error.source()?.downcast_ref::<Break>().copied());
    let mut io = driver.into_parts().io.into_inner();
    match how {
        Some(Break::Reset) => reset(&io),
        // Errors here mean that the other side has gone first.
        Some(Break::NotHttp) => drop(io.write_all(b"SSH-2.0-fake\r\n\r\n").await),
        Some(Break::Close) | None => drop(io.shutdown().await),
    }
}

fn response(tape: &Tape, ticket: Option<Ticket>) -> Response<Play> {
    let mut response = Response::new(Play::new(tape, ticket));
    *response.status_mut() = tape.status;
    for (name, value) in &tape.headers {
        response.headers_mut().append(name, value.clone());
    }
    response
}

fn too_large() -> Response<Play> {
    let text = Bytes::from_static(b"{\"error\":{\"message\":\"the body is too large\"}}");
    let mut tape = render::whole(&Step::ok(), text);
    tape.status = StatusCode::PAYLOAD_TOO_LARGE;
    response(&tape, None)
}

fn recorded(started: Instant, connection: u64, head: &Parts, body: Bytes) -> Call {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    Call {
        at_ms: started.elapsed().as_millis() as u64,
        connection,
        method: head.method.to_string(),
        path: head.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned(),
        headers: head.headers.iter().map(|(name, it)| (name.to_string(), text(it))).collect(),
        body,
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    /// What a fake inside the process sends back to one request.
    async fn sent(script: Script, path: &str, body: &str) -> String {
        // Smaller than an answer, so that back pressure is part of the test.
        let (mut client, server) = tokio::io::duplex(256);
        let length = body.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: fake\r\nconnection: close\r\n\
             content-length: {length}\r\n\r\n{body}"
        );
        let talk = async {
            client.write_all(request.as_bytes()).await.expect("the fake reads");
            let mut text = Vec::new();
            client.read_to_end(&mut text).await.expect("a duplex does not fail");
            String::from_utf8_lossy(&text).into_owned()
        };
        let ((), text) = tokio::join!(serve(server, Arc::new(Fake::new(script))), talk);
        text
    }

    #[tokio::test]
    async fn a_fake_inside_the_process_answers_over_any_stream_of_bytes() {
        let body = r#"{"model": "m1", "stream": true, "messages": []}"#;
        let text = sent(Script::default().named("ebb"), "/v1/chat/completions", body).await;
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n") && text.contains("[DONE]"), "{text}");
        for act in [Act::Close, Act::Reset] {
            assert_eq!(sent(Script::always(Step::of(act)), "/v1/messages", body).await, "");
        }
    }

    #[tokio::test]
    async fn a_client_of_the_gateway_cannot_set_the_script() {
        let text = sent(Script::default(), "/__script", r#"{"name": "mine"}"#).await;
        assert!(text.starts_with("HTTP/1.1 200 OK") && text.contains("fake.answer"), "{text}");
    }
}

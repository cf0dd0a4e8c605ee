//! Reading what a server sends: whole bodies, streams of events, and the messages in them.
//!
//! Rules kept here:
//! - Everything is bounded by a limit on messages (`limits.mcp_answer`); an announced length is
//!   believed before anything is read.
//! - Of an event only `data`, `id` and `retry` matter; an event of another name than the one asked
//!   for (mostly `message`) is none of ours, one without data only brings an id.
//! - Of a message only its id is looked at, to know the answer to a request. A batch, which one
//!   protocol version has, is taken apart.

use bytes::{Bytes, BytesMut};
use http::HeaderValue;
use memchr::memchr2;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use tidegate_core::time::Millis;
use tidegate_net::upstream::UpstreamBody;
use tidegate_wire::{
    frame::{Extent, Frame},
    sse::Splitter,
};

use super::failure;
use crate::{
    beside::{Received, beside},
    transport::Failure,
};

/// What an event may have around its data: field names, an id, line ends.
const EVENT_FRAME: usize = 64 * 1024;
/// The name of an event that says none.
const MESSAGE: &[u8] = b"message";
/// The longest id of an event that is sent back; a header cannot be much longer.
const EVENT_ID_MAX: usize = 4 * 1024;

/// Reads a body to its end, unless it is longer than `max`.
pub(crate) async fn whole(body: &mut UpstreamBody, max: usize) -> Result<Bytes, Failure> {
    if body.exact_len().is_some_and(|len| len > max as u64) {
        return Err(failure::too_large());
    }
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(data) = body.data().await {
        let data = data.map_err(|_| failure::broken())?;
        if first.is_empty() {
            first = data;
            continue;
        }
        if all.is_empty() {
            all.extend_from_slice(&first);
        }
        all.extend_from_slice(&data);
        if all.len() > max {
            return Err(failure::too_large());
        }
    }
    // Most bodies come in one piece, which needs no copy.
    let whole = if all.is_empty() { first } else { all.freeze() };
    if whole.len() > max { Err(failure::too_large()) } else { Ok(whole) }
}

/// A stream of events as the messages in it.
#[derive(Debug)]
pub(crate) struct EventStream {
    body: UpstreamBody,
    splitter: Splitter,
    /// The largest message.
    max: usize,
    pub(crate) resume: Resume,
    /// How many events have come, those without a message too.
    pub(crate) events: u64,
}

/// Where a stream can be taken up again, and when.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resume {
    /// The last event's id.
    pub(crate) after: Option<HeaderValue>,
    /// How long the server asks to wait before.
    pub(crate) wait: Option<Millis>,
}

impl EventStream {
    /// The stream in a body, with messages of at most `max` bytes; `resume` is what earlier parts
    /// of it said.
    pub(crate) fn new(body: UpstreamBody, resume: Resume, max: usize) -> Self {
        let splitter = Splitter::new(max.saturating_add(EVENT_FRAME));
        Self { body, splitter, max, resume, events: 0 }
    }

    /// The next message, or the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        self.next_of(MESSAGE).await
    }

    /// The data of the next event of this name, or the end; others are passed over.
    pub(crate) async fn next_of(&mut self, name: &[u8]) -> Result<Option<Bytes>, Failure> {
        loop {
            while let Some(frame) = self.splitter.next().map_err(|_| failure::too_large())? {
                let data = see(&frame, name, &mut self.resume, &mut self.events);
                self.splitter.take_run();
                match data {
                    Some(data) if data.len() > self.max => return Err(failure::too_large()),
                    Some(_) => return Ok(data),
                    None => {}
                }
            }
            match self.body.data().await {
                Some(Ok(data)) => self.splitter.feed(data),
                Some(Err(_)) => return Err(failure::broken()),
                None => {
                    // An event without its closing blank line is none (the standard says so), save
                    // that the line may end with half of a CRLF.
                    let last = self.splitter.finish();
                    let last = last.filter(|frame| frame.extent == Extent::Whole);
                    let (resume, events) = (&mut self.resume, &mut self.events);
                    return Ok(last.and_then(|it| see(&it, name, resume, events)));
                }
            }
        }
    }

    /// The rest of the body, of a stream that has said what it was asked for.
    pub(crate) fn into_body(self) -> UpstreamBody {
        self.body
    }
}

/// What an event of this name carries; the id and `retry` of any are noted.
fn see(frame: &Frame<'_>, name: &[u8], resume: &mut Resume, events: &mut u64) -> Option<Bytes> {
    let mut is_event = frame.data().is_some();
    for line in lines(frame.raw) {
        if let Some(id) = field(line, b"id") {
            let id = (!id.is_empty() && id.len() <= EVENT_ID_MAX).then_some(id);
            resume.after = id.and_then(|id| HeaderValue::from_bytes(id).ok());
            is_event = true;
        } else if let Some(retry) = field(line, b"retry") {
            let retry = std::str::from_utf8(retry).ok().and_then(|text| text.parse().ok());
            resume.wait = retry.map(Millis).or(resume.wait);
        }
    }
    *events += u64::from(is_event);
    let is_wanted = frame.name.unwrap_or(MESSAGE) == name;
    let data = frame.data().filter(|data| is_wanted && !data.is_empty())?;
    Some(Bytes::copy_from_slice(&data))
}

/// The lines of an event, however they end; between CR and LF there is an empty one.
fn lines(event: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(event);
    std::iter::from_fn(move || {
        let text = rest?;
        let end = memchr2(b'\n', b'\r', text);
        rest = end.map(|end| &text[end + 1..]);
        Some(&text[..end.unwrap_or(text.len())])
    })
}

/// The value of a line if it is one of this field.
fn field<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    match line.strip_prefix(name)? {
        [] => Some(&[]),
        [b':', b' ', value @ ..] | [b':', value @ ..] => Some(value),
        _ => None,
    }
}

/// The part of a message that is looked at.
#[derive(Deserialize)]
struct MessageHead {
    #[serde(default)]
    id: Option<serde_json::Value>,
    #[serde(default)]
    method: Option<IgnoredAny>,
}

/// What most answers begin with.
const ANSWER: &[u8] = br#"{"jsonrpc":"2.0","id":"#;

/// The request of ours that a message answers, if it shows that at its beginning, as most do. The
/// rest of it is not looked at: whoever reads the answer reads it whole.
fn answered_at_first_sight(message: &[u8]) -> Option<u64> {
    let rest = message.strip_prefix(ANSWER)?;
    let digits = rest.iter().take(20).take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = rest.split_at(digits);
    let is_answer = rest.starts_with(br#","result":"#) || rest.starts_with(br#","error":"#);
    let is_number = !number.starts_with(b"0") || number == b"0";
    let number = std::str::from_utf8(number).ok().filter(|_| is_answer && is_number)?;
    number.parse().ok()
}

/// The request of ours that a message answers, if it is an answer to one.
pub(crate) fn answered(message: &[u8]) -> Result<Option<u64>, Failure> {
    if let Some(call) = answered_at_first_sight(message) {
        return Ok(Some(call));
    }
    let text = std::str::from_utf8(message).map_err(|_| failure::malformed())?;
    let head: MessageHead = serde_json::from_str(text).map_err(|_| failure::malformed())?;
    Ok(head.id.filter(|_| head.method.is_none()).and_then(|id| id.as_u64()))
}

/// Whether a message is the answer to this request.
pub(super) fn is_answer(message: &[u8], call: u64) -> Result<bool, Failure> {
    Ok(answered(message)? == Some(call))
}

/// The messages in what came as one: a batch has several.
pub(crate) fn messages(bytes: Bytes) -> Result<Vec<Bytes>, Failure> {
    if bytes.trim_ascii_start().first() != Some(&b'[') {
        return Ok(vec![bytes]);
    }
    let parts: Vec<&RawValue> = serde_json::from_slice(&bytes).map_err(|_| failure::malformed())?;
    Ok(parts.into_iter().map(|part| bytes.slice_ref(part.get().as_bytes())).collect())
}

/// The messages in something large that came as one, read beside this thread, which serves all
/// clients.
pub(crate) async fn large(bytes: Bytes) -> Result<Vec<Received>, Failure> {
    let received = |part| Received::read(part, |part| answered(part).map_err(|_| ()));
    let read = move || Ok(messages(bytes)?.into_iter().map(received).collect());
    beside(read).await.unwrap_or_else(|| Err(failure::broken()))
}

/// Whether these bytes are one message.
pub(super) fn is_message(bytes: &[u8]) -> bool {
    answered(bytes).is_ok()
}

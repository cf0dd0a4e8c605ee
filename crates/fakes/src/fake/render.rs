//! A step, turned into what happens on the wire.
//!
//! Pure: from the step, the request and the answer to a [`Playback`]; nothing here waits or writes.
//! A fault that only makes sense inside a stream does the nearest thing to a single body.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderName, HeaderValue, StatusCode, header};

use super::answer::Answer;
use super::ask::{Ask, Dialect};
use super::dialect::{self, Events};
use super::errors::{self, JSON};
use super::step::{Act, ErrorText, Step};
use super::tape::{Beat, Ending, Tape};

/// What happens to a call.
#[derive(Clone, Debug)]
pub(super) enum Playback {
    /// It is answered.
    Play(Tape),
    /// It is never answered.
    Hang,
    /// Its connection ends instead.
    Break { how: Break, after: Duration },
}

/// How a connection ends instead of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the script ends the connection here")]
pub(super) enum Break {
    Close,
    Reset,
    NotHttp,
}

/// Between comments, pings and drips of a step that names no gap.
const USUAL_GAP: Duration = Duration::from_millis(100);
const USUAL_HUGE: u64 = 1 << 20;

pub(super) fn render(step: &Step, ask: &Ask, answer: &Answer) -> Playback {
    let broken = |how| Playback::Break { how, after: step.latency };
    let tape = match step.act {
        Act::Hang => return Playback::Hang,
        Act::Close => return broken(Break::Close),
        Act::Reset => return broken(Break::Reset),
        Act::NotHttp => return broken(Break::NotHttp),
        Act::Status => error(step, ask, step.status.unwrap_or(500)),
        Act::Redirect => redirect(step, ask),
        Act::ErrorBody => error(step, ask, step.status.unwrap_or(200)),
        Act::ErrorEvent if !ask.is_stream => error(step, ask, 200),
        _ if ask.is_stream => stream(step, ask, answer),
        Act::Ok if ask.dialect == Dialect::Speech => audio(step, answer),
        _ => whole(step, Bytes::from(dialect::whole(ask, answer).to_string())),
    };
    Playback::Play(with_headers(tape, step, answer))
}

/// A good answer with this body, or what the step makes of it.
pub(super) fn whole(step: &Step, body: Bytes) -> Tape {
    let half = body.slice(..body.len() / 2);
    let gap = gap_of(step);
    let length = body.len();
    let bytes = |bytes: Bytes| vec![Beat::Bytes(bytes)];
    let (beats, ending, length) = match step.act {
        Act::Silence => (Vec::new(), Ending::Never, Some(length)),
        Act::CommentsOnly | Act::PingsOnly => {
            let line = Bytes::from_static(b"\n");
            (Vec::new(), Ending::Again { bytes: line, every: gap }, None)
        }
        Act::Cut => (bytes(half), Ending::Abort, Some(length)),
        Act::Truncate => (bytes(half), Ending::Clean, None),
        Act::Stall => (bytes(half), Ending::Never, Some(length)),
        Act::Malformed => (bytes(half.clone()), Ending::Clean, Some(half.len())),
        Act::HugeEvent => {
            let start = Bytes::from_static(b"{\"object\":\"fake.answer\",\"text\":\"");
            let end = Bytes::from_static(b"\"}");
            let fill = Beat::Fill(step.size.unwrap_or(USUAL_HUGE));
            (vec![Beat::Bytes(start), fill, Beat::Bytes(end)], Ending::Clean, None)
        }
        Act::Drip => (vec![drip(step, body)], Ending::Clean, Some(length)),
        _ => (bytes(body), Ending::Clean, Some(length)),
    };
    let mut headers = vec![(header::CONTENT_TYPE, HeaderValue::from_static(JSON))];
    headers.extend(length.map(|length| (header::CONTENT_LENGTH, HeaderValue::from(length))));
    tape(step, StatusCode::OK, headers, beats, ending)
}

/// Bytes that are no text, a frame for each piece of the answer, without a length told before.
fn audio(step: &Step, answer: &Answer) -> Tape {
    // The sync word of an MPEG frame, then what was said.
    let frame = |piece: &String| Bytes::from([&[0xff, 0xfb], piece.as_bytes()].concat());
    let frames: Vec<Bytes> = answer.pieces.iter().map(frame).collect();
    let beats = Reel::new(step).tokens(&frames).beats;
    let headers = vec![(header::CONTENT_TYPE, HeaderValue::from_static("audio/mpeg"))];
    tape(step, StatusCode::OK, headers, beats, Ending::Clean)
}

fn stream(step: &Step, ask: &Ask, answer: &Answer) -> Tape {
    let events = dialect::events(ask.dialect, answer);
    let (mut beats, ending) = played(step, ask, answer, &events);
    if step.act == Act::Drip {
        let mut all = BytesMut::new();
        for beat in &beats {
            if let Beat::Bytes(bytes) = beat {
                all.extend_from_slice(bytes);
            }
        }
        beats = vec![drip(step, all.freeze())];
    }
    let headers = vec![
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    tape(step, StatusCode::OK, headers, beats, ending)
}

/// The events of a stream as the step plays them.
fn played(step: &Step, ask: &Ask, answer: &Answer, events: &Events) -> (Vec<Beat>, Ending) {
    let after = (step.after.unwrap_or_default() as usize).min(events.tokens.len());
    let gap = gap_of(step);
    let begun = || Reel::new(step).add(&events.opening).tokens(&events.tokens[..after]);
    let finished =
        || Reel::new(step).add(&events.opening).tokens(&events.tokens).add(&events.closing);
    let next = events.tokens.get(after).or(events.closing.first());
    let next = next.cloned().unwrap_or_default();
    let half = next.slice(..next.len() / 2);
    match step.act {
        Act::Silence => (Vec::new(), Ending::Never),
        Act::CommentsOnly => {
            let bytes = Bytes::from_static(b": keep-alive\n\n");
            (Vec::new(), Ending::Again { bytes, every: gap })
        }
        Act::PingsOnly => {
            let opening = Reel::new(step).add(&events.opening);
            (opening.beats, Ending::Again { bytes: events.ping.clone(), every: gap })
        }
        Act::Cut => (begun().one(half).beats, Ending::Abort),
        Act::Truncate => (begun().beats, Ending::Clean),
        Act::Stall => (begun().beats, Ending::Never),
        Act::Malformed => {
            // The next event, its JSON broken off but the event itself ended.
            let end = Bytes::from_static(b"\n\n");
            (begun().one(half).one(end).beats, Ending::Clean)
        }
        Act::ErrorEvent if step.after.is_none() => {
            (Reel::new(step).one(errors::event(ask, 0)).beats, Ending::Clean)
        }
        Act::ErrorEvent => {
            let error = errors::event(ask, events.opening.len() + after);
            (begun().one(error).beats, Ending::Clean)
        }
        Act::NoTerminator => (finished().beats, Ending::Clean),
        Act::DuplicateTerminator => {
            let twice = [events.terminator.clone(), events.terminator.clone()];
            (finished().add(&twice).beats, Ending::Clean)
        }
        Act::LateToken => {
            let late = events.tokens.last().cloned().unwrap_or_default();
            (finished().add(&[events.terminator.clone(), late]).beats, Ending::Clean)
        }
        Act::HugeEvent => {
            let rest = begun().huge(step, ask, answer).tokens(&events.tokens[after..]);
            (rest.add(&events.closing).one(events.terminator.clone()).beats, Ending::Clean)
        }
        _ => (finished().one(events.terminator.clone()).beats, Ending::Clean),
    }
}

/// The beats of a stream, as they are put together.
struct Reel {
    beats: Vec<Beat>,
    first_token: Duration,
    token_gap: Duration,
}

impl Reel {
    fn new(step: &Step) -> Self {
        let (first_token, token_gap) = (step.first_token, step.token_gap);
        Self { beats: Vec::new(), first_token, token_gap }
    }

    fn one(mut self, event: Bytes) -> Self {
        self.beats.push(Beat::Bytes(event));
        self
    }

    fn add(mut self, events: &[Bytes]) -> Self {
        self.beats.extend(events.iter().cloned().map(Beat::Bytes));
        self
    }

    /// Tokens, each after its wait.
    fn tokens(mut self, events: &[Bytes]) -> Self {
        for event in events {
            let wait = std::mem::replace(&mut self.first_token, self.token_gap);
            if !wait.is_zero() {
                self.beats.push(Beat::Wait(wait));
            }
            self.beats.push(Beat::Bytes(event.clone()));
        }
        self
    }

    /// One more token, as large as the step says: the dialect's own event around a filling.
    fn huge(mut self, step: &Step, ask: &Ask, answer: &Answer) -> Self {
        const MARK: &str = "@filling@";
        let marked = Answer { pieces: vec![MARK.to_owned()], ..answer.clone() };
        let events = dialect::events(ask.dialect, &marked);
        let event = events.tokens.first().cloned().unwrap_or_default();
        let at = event.windows(MARK.len()).position(|part| part == MARK.as_bytes());
        let at = at.unwrap_or_default();
        self.beats.push(Beat::Bytes(event.slice(..at)));
        self.beats.push(Beat::Fill(step.size.unwrap_or(USUAL_HUGE)));
        self.beats.push(Beat::Bytes(event.slice((at + MARK.len()).min(event.len())..)));
        self
    }
}

fn drip(step: &Step, bytes: Bytes) -> Beat {
    let each = usize::try_from(step.size.unwrap_or(1)).unwrap_or(usize::MAX);
    Beat::Drip { bytes, each, gap: gap_of(step) }
}

fn gap_of(step: &Step) -> Duration {
    if step.token_gap.is_zero() { USUAL_GAP } else { step.token_gap }
}

fn error(step: &Step, ask: &Ask, status: u16) -> Tape {
    let body = errors::body(step, ask, status);
    let mut headers = vec![
        (header::CONTENT_TYPE, HeaderValue::from_static(body.content_type)),
        (header::CONTENT_LENGTH, HeaderValue::from(body.bytes.len())),
    ];
    if body.is_said_to_be_gzip {
        headers.push((header::CONTENT_ENCODING, HeaderValue::from_static("gzip")));
    }
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    tape(step, status, headers, vec![Beat::Bytes(body.bytes)], Ending::Clean)
}

fn redirect(step: &Step, ask: &Ask) -> Tape {
    let body = Step { body: ErrorText::Html, ..step.clone() };
    let mut tape = error(&body, ask, step.status.unwrap_or(302));
    // A place where nothing is: following it would be the mistake.
    let elsewhere = HeaderValue::from_static("http://127.0.0.1:1/elsewhere");
    tape.headers.push((header::LOCATION, elsewhere));
    tape
}

fn tape(
    step: &Step,
    status: StatusCode,
    headers: Vec<(HeaderName, HeaderValue)>,
    beats: Vec<Beat>,
    ending: Ending,
) -> Tape {
    Tape { status, headers, latency: step.latency, beats: beats.into(), ending }
}

/// The headers of the step, word for word; one that cannot be sent is left out.
fn with_headers(mut tape: Tape, step: &Step, answer: &Answer) -> Tape {
    let id = HeaderValue::try_from(format!("req_fake{}", answer.number)).ok();
    for name in ["x-request-id", "request-id"] {
        tape.headers.extend(id.clone().map(|id| (HeaderName::from_static(name), id)));
    }
    let waits = [("retry-after", &step.retry_after), ("retry-after-ms", &step.retry_after_ms)];
    let waits = waits.into_iter().filter_map(|(name, text)| Some((name, text.as_ref()?)));
    let further = step.headers.iter().map(|(name, text)| (name.as_str(), text));
    for (name, text) in waits.chain(further) {
        let pair = (HeaderName::try_from(name), HeaderValue::try_from(text.as_str()));
        if let (Ok(name), Ok(value)) = pair {
            tape.headers.push((name, value));
        }
    }
    tape
}

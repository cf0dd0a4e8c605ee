//! The stream of events of a running gateway, resumed after every break.
//!
//! ```text
//!   connect ─▶ event, event, … ─▶ silence for 10 s, or the end ─▶ wait 2 s ─▶ connect again,
//!      ▲                                                           after the last event's id
//!      └──────────────────────────────────────────────────────────────────────────┘
//! ```
//! A live stream shows that it lives every five seconds; one that is silent for twice as long is
//! taken for broken.

use std::time::Duration;

use serde_json::Value;
use tidegate_net::upstream::UpstreamBody;

use crate::client::{AdminClient, AskError};

/// A gateway says something every five seconds.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// Before the next attempt to connect.
const PAUSE: Duration = Duration::from_secs(2);
/// How long one step of waiting takes: a caller may redraw in between.
const STEP: Duration = Duration::from_millis(200);
/// More than the largest event, which is a snapshot.
const EVENT_MAX: usize = 64 * 1024 * 1024;

/// An event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StreamEvent {
    /// Its id, to resume after; figures have none.
    pub id: Option<String>,
    /// Its name.
    pub name: String,
    /// Its data.
    pub data: Value,
}

/// What a moment of waiting brought.
#[derive(Clone, Debug, PartialEq)]
pub enum Waited {
    /// An event.
    Event(StreamEvent),
    /// Nothing yet.
    Nothing,
    /// The stream is broken, for this reason; it is being opened again.
    Broken(String),
}

/// The stream.
pub struct Events<'a> {
    client: &'a AdminClient,
    body: Option<UpstreamBody>,
    last: Option<String>,
    parser: Parser,
    silent: Duration,
    /// How long it has waited since the stream broke.
    paused: Duration,
}

impl<'a> Events<'a> {
    /// Opens the stream.
    ///
    /// # Errors
    /// It cannot be opened the first time.
    pub fn open(client: &'a AdminClient) -> Result<Self, AskError> {
        let body = client.open_events(None)?.into_body();
        let (parser, silent, paused) = (Parser::default(), Duration::ZERO, Duration::ZERO);
        Ok(Self { client, body: Some(body), last: None, parser, silent, paused })
    }

    /// Waits for the next event, for a fraction of a second at most; while the stream is broken,
    /// opens it again.
    ///
    /// # Errors
    /// The gateway answers and refuses: trying again would not help.
    pub fn wait(&mut self) -> Result<Waited, AskError> {
        if let Some(event) = self.parser.next() {
            return Ok(self.seen(event));
        }
        let Some(body) = &mut self.body else { return self.reopen() };
        let client = self.client;
        let read = client.run(async { tokio::time::timeout(STEP, body.data()).await });
        match read {
            Ok(Some(Ok(bytes))) => {
                self.silent = Duration::ZERO;
                if self.parser.add(&bytes) {
                    return Ok(self.parser.next().map_or(Waited::Nothing, |it| self.seen(it)));
                }
                self.body = None;
                Ok(Waited::Broken("an event is too large".to_owned()))
            }
            Ok(None | Some(Err(_))) => {
                self.body = None;
                Ok(Waited::Broken("the gateway ended the stream".to_owned()))
            }
            Err(_) => {
                self.silent += STEP;
                if self.silent < SILENCE_MAX {
                    return Ok(Waited::Nothing);
                }
                self.body = None;
                let words = format!("nothing came for {} s", SILENCE_MAX.as_secs());
                Ok(Waited::Broken(words))
            }
        }
    }

    fn seen(&mut self, event: StreamEvent) -> Waited {
        if event.id.is_some() {
            self.last.clone_from(&event.id);
        }
        Waited::Event(event)
    }

    fn reopen(&mut self) -> Result<Waited, AskError> {
        if self.paused < PAUSE {
            // Within the runtime: a timer belongs to one.
            self.client.run(async { tokio::time::sleep(STEP).await });
            self.paused += STEP;
            return Ok(Waited::Nothing);
        }
        self.paused = Duration::ZERO;
        match self.client.open_events(self.last.as_deref()) {
            Ok(response) => {
                self.body = Some(response.into_body());
                self.parser = Parser::default();
                self.silent = Duration::ZERO;
                Ok(Waited::Nothing)
            }
            Err(AskError::NoGateway(why)) => Ok(Waited::Broken(why)),
            // All streams are taken, or it is closing: that passes.
            Err(AskError::Refused { status: 503, message }) => Ok(Waited::Broken(message)),
            Err(other) => Err(other),
        }
    }
}

/// Cuts bytes into events.
#[derive(Debug, Default)]
struct Parser {
    bytes: Vec<u8>,
}

impl Parser {
    /// Adds bytes; whether they still are a stream that can be read.
    fn add(&mut self, bytes: &[u8]) -> bool {
        self.bytes.extend_from_slice(bytes);
        self.bytes.len() <= EVENT_MAX
    }

    /// The next whole event; comments and empty ones are none.
    fn next(&mut self) -> Option<StreamEvent> {
        loop {
            let end = self.bytes.windows(2).position(|pair| pair == b"\n\n")?;
            let block: Vec<u8> = self.bytes.drain(..end + 2).collect();
            let text = String::from_utf8_lossy(&block);
            let mut event = StreamEvent::default();
            let mut data = String::new();
            for line in text.lines() {
                let (field, value) = line.split_once(':').unwrap_or((line, ""));
                let value = value.strip_prefix(' ').unwrap_or(value);
                match field {
                    "id" => event.id = Some(value.to_owned()),
                    "event" => event.name = value.to_owned(),
                    "data" => data.push_str(value),
                    _ => {}
                }
            }
            if let Ok(value) = serde_json::from_str(&data) {
                event.data = value;
                return Some(event);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Parser, StreamEvent};

    #[test]
    fn events_come_out_whole_whatever_the_pieces() {
        let text = "retry: 2000\n\nid: a-1\nevent: snapshot\ndata: {\"seq\":1}\n\n: ping\n\n\
                    event: tick\ndata: {}\n\n";
        for size in [1, 7, text.len()] {
            let mut parser = Parser::default();
            let mut seen = Vec::new();
            for piece in text.as_bytes().chunks(size) {
                assert!(parser.add(piece));
                seen.extend(std::iter::from_fn(|| parser.next()));
            }
            let first = StreamEvent {
                id: Some("a-1".to_owned()),
                name: "snapshot".to_owned(),
                data: json!({ "seq": 1 }),
            };
            let tick = StreamEvent { id: None, name: "tick".to_owned(), data: json!({}) };
            assert_eq!(seen, [first, tick]);
        }
    }
}

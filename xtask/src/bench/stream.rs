//! The client of streams: opens some at once, counts their events, and tells how soon the first
//! one came.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use super::sse_mock;

/// What one stream showed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// From the request's first byte to the first content.
    pub(super) first_token: Duration,
    pub(super) events: u32,
}

/// Where streams are asked for, and by which model name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) port: u16,
    pub(super) model: &'static str,
}

/// What a stream is asked for; the upstream sees all of it.
#[derive(Clone, Copy, Debug)]
struct StreamWish {
    model: &'static str,
    events: u32,
    /// Says how the events come. Real clients send such a name too, and the gateway takes it for
    /// that of the conversation.
    user: &'static str,
}

impl StreamWish {
    fn paced(place: Place, events: u32) -> Self {
        Self { model: place.model, events, user: "paced" }
    }

    fn ready(place: Place, events: u32) -> Self {
        Self { model: place.model, events, user: sse_mock::READY }
    }
}

/// Reads `streams` streams of `events` events at the same time; the number of events in all.
pub(super) fn many(place: Place, streams: usize, events: u32) -> anyhow::Result<u64> {
    let threads: Vec<_> = (0..streams)
        .map(|_| {
            std::thread::spawn(move || {
                one(&mut connect(place.port)?, &StreamWish::paced(place, events))
            })
        })
        .collect();
    let mut total = 0;
    for thread in threads {
        let seen = thread.join().map_err(|_| anyhow::anyhow!("a client panicked"))??;
        total += u64::from(seen.events);
    }
    Ok(total)
}

/// Lets each of `clients` connections read `streams` streams, one after the other, of which all
/// events are there at once.
pub(super) fn many_ready(
    place: Place,
    clients: usize,
    streams: usize,
    events: u32,
) -> anyhow::Result<()> {
    let client = move || -> anyhow::Result<()> {
        let mut stream = connect(place.port)?;
        (0..streams).try_for_each(|_| one(&mut stream, &StreamWish::ready(place, events)).map(drop))
    };
    let threads: Vec<_> = (0..clients).map(|_| std::thread::spawn(client)).collect();
    for thread in threads {
        thread.join().map_err(|_| anyhow::anyhow!("a client panicked"))??;
    }
    Ok(())
}

/// How soon the first token of each of `count` streams came, one after the other on one
/// connection, in microseconds and in order.
pub(super) fn first_tokens_us(place: Place, count: usize) -> anyhow::Result<Vec<f64>> {
    let mut stream = connect(place.port)?;
    let mut times = Vec::with_capacity(count);
    // The first opens connections and is not counted.
    for number in 0..=count {
        let seen = one(&mut stream, &StreamWish::paced(place, 1))?;
        if number > 0 {
            times.push(seen.first_token.as_secs_f64() * 1e6);
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}

fn connect(port: u16) -> anyhow::Result<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port)).context("void: no connection")?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    Ok(stream)
}

#[expect(clippy::disallowed_methods, reason = "the client measures time")]
fn one(stream: &mut TcpStream, wanted: &StreamWish) -> anyhow::Result<Seen> {
    let StreamWish { model, events, user } = *wanted;
    let body = format!(
        "{{\"model\":\"{model}\",\"stream\":true,\"max_tokens\":{events},\"user\":\"{user}\",\
         \"messages\":[{{\"role\":\"user\",\"content\":\"Which cloud is this?\"}}]}}"
    );
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let start = Instant::now();
    stream.write_all(request.as_bytes()).context("void: the request was not taken")?;
    let mut answer = Vec::new();
    let mut first_token = None;
    let mut chunk = [0; 16 * 1024];
    // The last chunk of a body is the only one of length zero.
    while !answer.ends_with(b"0\r\n\r\n") {
        let count = stream.read(&mut chunk).context("void: a stream went silent")?;
        if count == 0 {
            bail!("void: a stream was cut");
        }
        answer.extend_from_slice(&chunk[..count]);
        if first_token.is_none() && count_of(&answer, "\"content\"") > 0 {
            first_token = Some(start.elapsed());
        }
    }
    let seen = count_of(&answer, "\"content\"");
    if !answer.starts_with(b"HTTP/1.1 200") || seen != events || count_of(&answer, "[DONE]") != 1 {
        bail!("void: {seen} of {events} events came:\n{}", String::from_utf8_lossy(&answer));
    }
    Ok(Seen { first_token: first_token.context("void: no content")?, events: seen })
}

fn count_of(bytes: &[u8], text: &str) -> u32 {
    bytes.windows(text.len()).filter(|window| *window == text.as_bytes()).count() as u32
}

//! `GET /api/events`: one stream per page, resumable.
//!
//! Rules kept here:
//! - The first event is a snapshot, sent at once. After a resume follow the events that were
//!   missed, then those that happen. If some are gone, a `gap` says so.
//! - One task feeds all streams, four times a second, and ends with the last of them: a gateway
//!   that nobody looks at does nothing here.
//! - A client that does not read is dropped: its queue is short, and full for ten seconds at most.
//! - Figures are made once a second for all, and only if they changed.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use tidegate_core::time::{Millis, Now};
use tidegate_gateway::gateway::Gateway;
use tidegate_journal::{
    api::events::GapView,
    journal::{EventsAfter, Journal},
    render::Renderer,
};
use tidegate_net::client_body::ClientBody;
use tidegate_runtime::{phase::Phase, task};
use tokio::sync::{mpsc, watch};

use super::{Admin, refuse, snapshot, ticks::Ticks};

/// Streams at once.
const STREAMS_MAX: usize = 64;
/// Chunks that wait for one client.
const QUEUE: usize = 8;
/// Events of one chunk: the larger a chunk, the more memory a client that does not read holds.
const CHUNK_EVENTS: usize = 64;
/// How long a queue may be full.
const STUCK_MAX: Millis = Millis::seconds(10);
/// How often there is a look at what is new.
const STEP: Duration = Duration::from_millis(250);
/// How often a quiet stream shows that it lives.
const PING_EVERY: Millis = Millis::seconds(5);
const TICK_EVERY: Millis = Millis::seconds(1);
/// When a client may come back that found all streams taken.
const RETRY_AFTER_S: u16 = 5;

/// The streams.
#[derive(Debug, Default)]
pub(super) struct Streams {
    clients: RefCell<Vec<StreamClient>>,
    is_fed: Cell<bool>,
}

#[derive(Debug)]
struct StreamClient {
    chunks: mpsc::Sender<Bytes>,
    /// The last event that was sent.
    seq: u64,
    stuck_since: Option<Now>,
    last_sent: Now,
}

/// Where a client left off.
enum Resume {
    /// It begins.
    Fresh,
    /// After this event.
    After(u64),
    /// After an event of another process, or none that can be read.
    Unknown,
}

/// `GET /api/events`.
pub(super) fn open(admin: &Rc<Admin>, last_event_id: Option<&str>) -> Response<ClientBody> {
    let streams = &admin.streams;
    if streams.clients.borrow().len() >= STREAMS_MAX {
        let message = "all event streams are taken: close a dashboard, or try again later";
        let mut response = refuse(StatusCode::SERVICE_UNAVAILABLE, message);
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(RETRY_AFTER_S));
        return response;
    }
    let gateway = &admin.worker.gateway;
    let (first, seq) = opening(gateway, &resume(&gateway.journal, last_event_id));
    let (chunks, events) = mpsc::channel(QUEUE);
    // The queue is new and has room.
    drop(chunks.try_send(first));
    let now = gateway.now();
    let client = StreamClient { chunks, seq, stuck_since: None, last_sent: now };
    streams.clients.borrow_mut().push(client);
    if !streams.is_fed.replace(true) {
        task::spawn("event streams", feed(Rc::clone(admin), admin.phase.clone()));
    }
    let mut response = Response::new(ClientBody::Streaming(events));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

fn resume(journal: &Journal, last_event_id: Option<&str>) -> Resume {
    let Some(id) = last_event_id.filter(|id| !id.is_empty()) else { return Resume::Fresh };
    let parts = id.rsplit_once('-').filter(|(instance, _)| *instance == journal.instance());
    let seq = parts.and_then(|(_, seq)| seq.parse().ok());
    seq.map_or(Resume::Unknown, Resume::After)
}

/// The first chunk of a stream, and the last event of which the client knows after it.
fn opening(gateway: &Gateway, resume: &Resume) -> (Bytes, u64) {
    let journal = &gateway.journal;
    let snapshot = snapshot::take(gateway);
    let json = serde_json::to_string(&snapshot).unwrap_or_default();
    let (known, gap) = match *resume {
        Resume::Fresh => (snapshot.seq, None),
        Resume::Unknown => (snapshot.seq, Some("other_instance")),
        Resume::After(seq) => match journal.events_after(seq) {
            EventsAfter::All(_) => (seq, None),
            EventsAfter::Gap => (snapshot.seq, Some("too_old")),
        },
    };
    let mut text = String::from("retry: 2000\n\n");
    let id = Some((journal.instance(), known));
    write(&mut text, id, "snapshot", &json);
    if let Some(reason) = gap {
        let view = GapView { since_unix_ms: snapshot.at_unix_ms, reason: reason.to_owned() };
        write(&mut text, id, "gap", &serde_json::to_string(&view).unwrap_or_default());
    }
    (text.into(), known)
}

/// Writes one event. JSON on one line needs no more.
fn write(text: &mut String, id: Option<(&str, u64)>, name: &str, json: &str) {
    if let Some((instance, seq)) = id {
        text.push_str(&format!("id: {instance}-{seq}\n"));
    }
    text.push_str("event: ");
    text.push_str(name);
    text.push_str("\ndata: ");
    text.push_str(json);
    text.push_str("\n\n");
}

async fn feed(admin: Rc<Admin>, phase: watch::Receiver<Phase>) {
    let gateway = &admin.worker.gateway;
    let streams = &admin.streams;
    let mut ticks = Ticks::default();
    let mut ticked = gateway.now();
    loop {
        tokio::time::sleep(STEP).await;
        let now = gateway.now();
        let tick = (now.since(ticked) >= TICK_EVERY).then(|| {
            ticked = now;
            ticks.next(gateway)
        });
        let tick = tick.flatten().map(|json| {
            let mut text = String::new();
            write(&mut text, None, "tick", &json);
            Bytes::from(text)
        });
        let renderer = gateway.journal.renderer();
        let is_over = *phase.borrow() >= Phase::Draining;
        let mut clients = streams.clients.borrow_mut();
        if is_over {
            clients.clear();
        }
        clients.retain_mut(|client| client.serve(gateway, &renderer, now, tick.as_ref()));
        if clients.is_empty() {
            streams.is_fed.set(false);
            return;
        }
    }
}

impl StreamClient {
    /// Sends what is new; whether the client is still there.
    fn serve(
        &mut self,
        gateway: &Gateway,
        renderer: &Renderer,
        now: Now,
        tick: Option<&Bytes>,
    ) -> bool {
        if self.chunks.is_closed() {
            return false;
        }
        while let Some((chunk, seq)) = self.next_chunk(gateway, renderer) {
            if self.chunks.try_send(chunk).is_err() {
                let since = *self.stuck_since.get_or_insert(now);
                return now.since(since) < STUCK_MAX;
            }
            (self.seq, self.last_sent, self.stuck_since) = (seq, now, None);
        }
        let is_quiet = now.since(self.last_sent) >= PING_EVERY;
        let extra = tick.cloned().or_else(|| is_quiet.then(|| Bytes::from_static(b": ping\n\n")));
        let Some(extra) = extra else { return true };
        if self.chunks.try_send(extra).is_ok() {
            (self.last_sent, self.stuck_since) = (now, None);
            return true;
        }
        let since = *self.stuck_since.get_or_insert(now);
        now.since(since) < STUCK_MAX
    }

    /// The next events of this client, and the number of the last of them.
    fn next_chunk(&self, gateway: &Gateway, renderer: &Renderer) -> Option<(Bytes, u64)> {
        let journal = &gateway.journal;
        let mut text = String::new();
        match journal.events_after(self.seq) {
            EventsAfter::All(events) => {
                for event in events.iter().take(CHUNK_EVENTS) {
                    let json = event.json(|event| renderer.event(event));
                    let id = Some((journal.instance(), event.seq));
                    write(&mut text, id, event.body.name(), json);
                }
                let last = events.iter().take(CHUNK_EVENTS).next_back()?;
                Some((text.into(), last.seq))
            }
            // It was too slow: it begins again.
            EventsAfter::Gap => Some(opening(gateway, &Resume::After(self.seq))),
        }
    }
}

#[cfg(test)]
mod tests {
    use tidegate_gateway::test_bed;

    use super::*;

    #[test]
    fn a_client_that_never_reads_is_dropped_after_ten_seconds() {
        let gateway = test_bed::gateway(test_bed::TWO_PROVIDERS);
        let renderer = gateway.journal.renderer();
        let (chunks, mut events) = mpsc::channel(QUEUE);
        let begun = Now(0);
        let mut client = StreamClient { chunks, seq: 0, stuck_since: None, last_sent: begun };
        let tick = Bytes::from_static(b"event: tick\ndata: {}\n\n");
        for _ in 0..QUEUE {
            assert!(client.serve(&gateway, &renderer, Now(1_000), Some(&tick)));
        }
        assert!(client.serve(&gateway, &renderer, Now(2_000), Some(&tick)), "it is full now");
        assert!(client.serve(&gateway, &renderer, Now(11_999), Some(&tick)));
        // Whoever reads in time goes on.
        assert!(events.try_recv().is_ok());
        assert!(client.serve(&gateway, &renderer, Now(12_000), Some(&tick)));
        assert!(client.serve(&gateway, &renderer, Now(13_000), Some(&tick)), "it is full again");
        assert!(!client.serve(&gateway, &renderer, Now(23_000), Some(&tick)));
    }

    #[test]
    fn a_quiet_stream_shows_that_it_lives_and_one_that_is_closed_ends() {
        let gateway = test_bed::gateway(test_bed::TWO_PROVIDERS);
        let renderer = gateway.journal.renderer();
        let (chunks, mut events) = mpsc::channel(QUEUE);
        let mut client = StreamClient { chunks, seq: 0, stuck_since: None, last_sent: Now(0) };
        assert!(client.serve(&gateway, &renderer, Now(4_999), None));
        assert!(events.try_recv().is_err());
        assert!(client.serve(&gateway, &renderer, Now(5_000), None));
        assert_eq!(events.try_recv().ok(), Some(Bytes::from_static(b": ping\n\n")));
        drop(events);
        assert!(!client.serve(&gateway, &renderer, Now(5_001), None));
    }
}

//! What is kept for a client that lost its connection, in bytes.

use super::*;

/// A session with one stream of a call, whose reader is attached.
fn begun() -> (Replay<String>, u32, u64) {
    let mut replay = Replay::new();
    let stream = replay.begin();
    let (reader, _) = replay.attach(stream, Some(0));
    (replay, stream, reader)
}

fn body(bytes: usize) -> Option<Body<String>> {
    Some(Body { text: "x".repeat(bytes), bytes })
}

fn note(id: &Id, _: u64) -> Body<String> {
    let text = format!("gone {id:?}");
    Body { bytes: text.len(), text }
}

fn answer(replay: &mut Replay<String>, stream: u32, bytes: usize) -> Taken {
    let weight = Weight::Answer(Id::number(7));
    replay.send(stream, body(bytes), weight, |id| note(id, 0))
}

fn read(replay: &mut Replay<String>, stream: u32, reader: u64, from: u64) -> Vec<String> {
    let (mut all, mut at) = (Vec::new(), from);
    while let Next::Event(text, then) = replay.next(stream, reader, at) {
        all.push(text);
        at = then;
        replay.mark_sent(stream, at);
    }
    all
}

#[test]
fn an_answer_nobody_reads_is_kept_within_the_sessions_bytes() {
    let (mut replay, stream, reader) = begun();
    replay.detach(stream, reader, note);
    assert_eq!(answer(&mut replay, stream, SESSION_BYTES), Taken::Kept);
    replay.end(stream);
    assert_eq!(replay.resume(&format!("{stream}-0")), Resumed::At(stream, 1));
    let (reader, from) = replay.attach(stream, Some(0));
    assert_eq!(read(&mut replay, stream, reader, from)[0].len(), SESSION_BYTES);
}

#[test]
fn an_answer_that_does_not_fit_is_gone_and_a_resume_says_so() {
    let (mut replay, stream, reader) = begun();
    replay.detach(stream, reader, note);
    assert_eq!(answer(&mut replay, stream, SESSION_BYTES + 1), Taken::Gone);
    replay.end(stream);
    assert!(replay.idle_bytes() < 100);
    let (reader, from) = replay.attach(stream, Some(0));
    assert!(read(&mut replay, stream, reader, from)[0].starts_with("gone"));
}

#[test]
fn however_many_answers_nobody_reads_a_session_keeps_no_more_than_its_bytes() {
    let mut replay = Replay::new();
    for _ in 0..500 {
        let stream = replay.begin();
        let (reader, _) = replay.attach(stream, Some(0));
        assert_eq!(answer(&mut replay, stream, 300_000), Taken::Kept, "its reader is there");
        replay.end(stream);
        replay.detach(stream, reader, note);
        assert!(replay.idle_bytes() <= SESSION_BYTES, "{}", replay.idle_bytes());
    }
    assert!(replay.rings.len() <= ENDED_KEPT + 1);
}

#[test]
fn an_answer_that_a_reader_left_unread_is_gone_if_it_does_not_fit() {
    let (mut replay, stream, reader) = begun();
    replay.send(stream, body(10), Weight::Notice, |id| note(id, 0));
    assert_eq!(answer(&mut replay, stream, 5_000_000), Taken::Kept);
    assert_eq!(replay.idle_bytes(), 0, "a reader is waiting for it");
    replay.detach(stream, reader, note);
    assert!(replay.idle_bytes() < 100);
    let (reader, from) = replay.attach(stream, None);
    let rest = read(&mut replay, stream, reader, from);
    assert_eq!((rest.len(), rest[0].len()), (2, 10), "the small one fits");
    assert!(rest[1].starts_with("gone"));
}

#[test]
fn what_was_sent_makes_room_for_what_was_not() {
    let (mut replay, stream, reader) = begun();
    for _ in 0..3 {
        replay.send(stream, body(SESSION_BYTES / 3), Weight::Needed, |id| note(id, 0));
    }
    read(&mut replay, stream, reader, 0);
    assert!(replay.idle_bytes() > SESSION_BYTES / 2);
    replay.detach(stream, reader, note);
    assert_eq!(answer(&mut replay, stream, SESSION_BYTES), Taken::Kept);
    assert_eq!(replay.idle_bytes(), SESSION_BYTES);
    assert_eq!(replay.resume(&format!("{stream}-0")), Resumed::At(stream, 3));
}

#[test]
fn an_answer_that_was_read_and_forgotten_is_gone() {
    let (mut replay, stream, reader) = begun();
    replay.send(stream, body(1), Weight::Needed, |id| note(id, 0));
    answer(&mut replay, stream, SESSION_BYTES + 1);
    read(&mut replay, stream, reader, 0);
    replay.end(stream);
    replay.detach(stream, reader, note);
    assert_eq!(replay.resume(&format!("{stream}-0")), Resumed::Gone);
    assert_eq!(replay.resume("99-0"), Resumed::Unknown);
    assert_eq!(replay.resume("nonsense"), Resumed::Unknown);
    for _ in 0..ENDED_KEPT {
        let next = replay.begin();
        replay.end(next);
    }
    assert_eq!(replay.resume(&format!("{stream}-0")), Resumed::Gone, "the stream is forgotten");
}

#[test]
fn a_client_that_left_before_its_first_event_cannot_come_back() {
    let (mut replay, stream, reader) = begun();
    assert!(!replay.is_lost(stream));
    replay.detach(stream, reader, note);
    assert!(replay.is_lost(stream));
    let (reader, from) = replay.attach(stream, Some(0));
    replay.send(stream, body(1), Weight::Notice, |id| note(id, 0));
    read(&mut replay, stream, reader, from);
    replay.detach(stream, reader, note);
    assert!(!replay.is_lost(stream), "it has an id to come back with");
}

#[test]
fn a_request_without_a_session_keeps_nothing() {
    let mut replay = Replay::of_one();
    let (reader, from) = replay.attach(0, Some(0));
    answer(&mut replay, 0, 1000);
    assert_eq!(read(&mut replay, 0, reader, from).len(), 1);
    assert_eq!(replay.idle_bytes(), 0);
    replay.detach(0, reader, note);
    assert_eq!(answer(&mut replay, 0, 1000), Taken::Gone);
}

/// A session that was sent an answer of this size, and the stream it is on.
fn with_one_sent(bytes: usize) -> (Replay<String>, u32) {
    let (mut replay, stream, reader) = begun();
    replay.send(stream, body(10), Weight::Needed, |id| note(id, 0));
    answer(&mut replay, stream, bytes);
    assert_eq!(read(&mut replay, stream, reader, 0).len(), 2);
    replay.end(stream);
    replay.detach(stream, reader, note);
    (replay, stream)
}

#[test]
fn an_answer_too_large_to_keep_pushes_no_other_out() {
    let is_kept = |replay: &Replay<String>, stream| {
        assert_eq!(replay.resume(&format!("{stream}-0")), Resumed::At(stream, 1));
        assert!(replay.idle_bytes() >= 1000);
    };
    // It was handed to a reader.
    let (mut replay, kept) = with_one_sent(1000);
    let stream = replay.begin();
    let (reader, _) = replay.attach(stream, Some(0));
    replay.send(stream, body(10), Weight::Needed, |id| note(id, 0));
    answer(&mut replay, stream, SESSION_BYTES + 1);
    assert_eq!(read(&mut replay, stream, reader, 0).len(), 2);
    replay.end(stream);
    replay.detach(stream, reader, note);
    is_kept(&replay, kept);
    assert_eq!(replay.resume(&format!("{stream}-0")), Resumed::Gone);
    // Its reader left before it was read.
    let (mut replay, kept) = with_one_sent(1000);
    let stream = replay.begin();
    let (reader, _) = replay.attach(stream, Some(0));
    answer(&mut replay, stream, SESSION_BYTES + 1);
    replay.detach(stream, reader, note);
    is_kept(&replay, kept);
    // There was no reader.
    let (mut replay, kept) = with_one_sent(1000);
    let stream = replay.begin();
    assert_eq!(answer(&mut replay, stream, SESSION_BYTES + 1), Taken::Gone);
    is_kept(&replay, kept);
}

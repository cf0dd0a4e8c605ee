//! Splits a stream of server-sent events into frames without holding or copying it.
//!
//! The gateway forwards an answer's bytes as they came; it only has to know where each event ends
//! and what it says. [`Splitter::feed`] takes a chunk, [`Splitter::next`] shows the frames that
//! end in it, [`Splitter::take_run`] hands out the bytes shown so far, as slices of the chunk.
//!
//! Rules:
//! - Frames do not depend on how the stream was cut into chunks, and together they are the
//!   stream: nothing is lost, added or changed. A frame is an event with its closing blank line,
//!   or a stray blank line.
//! - Lines end with LF, CRLF or CR. After a blank line's CR at the end of a chunk the next byte is
//!   awaited, since some clients see no end of an event in half a CRLF.
//! - Only a frame that spans chunks is copied, once. Work is linear in the bytes.
//! - An event longer than `max_event` is an error. After [`Splitter::commit`] an event longer than
//!   [`PART_LIMIT`] is shown in parts ([`Extent`]), so that none is ever held whole.
//!
//! Left to others: what an event means ([`crate::dialect`]), holding frames back before the first
//! content (the server).

use bytes::{Bytes, BytesMut};
use memchr::memchr2;

use crate::frame::{Extent, Frame};

/// How much of an unfinished event is held after the commit: the back-pressure buffer of a stream.
/// Shorter events reach the client whole or not at all, so an error event can follow them.
pub const PART_LIMIT: usize = 64 * 1024;

/// An event was longer than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event is longer than the limit of {max_event} bytes")]
pub struct EventTooLong {
    /// The limit.
    pub max_event: usize,
}

/// Where in a line the scan stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Start,
    Inside,
    /// A CR ended a line; an LF may belong to it.
    AfterCr,
    /// A CR ended a blank line and so the frame; an LF may belong to it.
    AfterBlankCr,
}

/// The splitter of one stream.
#[derive(Debug)]
pub struct Splitter {
    max_event: usize,
    is_committed: bool,
    /// The latest chunk: `..run_start` is taken, `..frame_start` is shown, `..at` is scanned.
    chunk: Bytes,
    run_start: usize,
    frame_start: usize,
    at: usize,
    line: Line,
    /// What earlier chunks brought of the unfinished frame.
    carry: BytesMut,
    /// Shown bytes that go before the chunk's run.
    carried: Bytes,
    /// How many bytes of the unfinished event were shown in parts.
    parts_len: usize,
    /// How long the frame shown last is.
    last_len: usize,
    is_first: bool,
}

impl Splitter {
    /// A splitter that refuses events longer than `max_event` bytes.
    #[must_use]
    pub fn new(max_event: usize) -> Self {
        Self {
            max_event,
            is_committed: false,
            chunk: Bytes::new(),
            run_start: 0,
            frame_start: 0,
            at: 0,
            line: Line::Start,
            carry: BytesMut::new(),
            carried: Bytes::new(),
            parts_len: 0,
            last_len: 0,
            is_first: true,
        }
    }

    /// From here on long events are shown in parts.
    pub fn commit(&mut self) {
        self.is_committed = true;
    }

    /// How many bytes of an unfinished event are held.
    #[must_use]
    pub fn held(&self) -> usize {
        self.carry.len() + self.chunk.len() - self.frame_start
    }

    /// Whether a part of an unfinished event was shown: an error event cannot follow cleanly.
    #[must_use]
    pub fn is_mid_event(&self) -> bool {
        self.parts_len > 0
    }

    /// Takes the next chunk of the stream. The frames of the one before should have been shown and
    /// taken; what was not is kept, at the price of a copy.
    pub fn feed(&mut self, chunk: Bytes) {
        if self.run_start < self.frame_start {
            let run = self.chunk.slice(self.run_start..self.frame_start);
            self.carried = joined(&self.carried, &run);
        }
        if self.at < self.chunk.len() {
            let unseen = joined(&self.chunk.slice(self.frame_start..), &chunk);
            self.at -= self.frame_start;
            self.chunk = unseen;
        } else {
            self.carry.extend_from_slice(&self.chunk[self.frame_start..]);
            self.at = 0;
            self.chunk = chunk;
        }
        self.run_start = 0;
        self.frame_start = 0;
    }

    /// The next frame that ends in what was fed, or the next part of a long one.
    ///
    /// # Errors
    /// An event is too long. The stream cannot be split any further.
    #[expect(clippy::should_implement_trait, reason = "a frame borrows from the splitter")]
    pub fn next(&mut self) -> Result<Option<Frame<'_>>, EventTooLong> {
        let (end, extent) = match self.find_end() {
            Some(end) if self.parts_len == 0 => (end, Extent::Whole),
            Some(end) => (end, Extent::End),
            None => {
                // Half of the CRLF that closes the frame stays, so that the frame can end.
                let kept = usize::from(self.line == Line::AfterBlankCr);
                let has_bytes = self.held() > kept;
                let is_long = self.parts_len > 0 || self.held() > PART_LIMIT;
                if self.parts_len + self.held() > self.max_event {
                    return Err(EventTooLong { max_event: self.max_event });
                }
                if !(self.is_committed && is_long && has_bytes) {
                    return Ok(None);
                }
                let is_start = self.parts_len == 0;
                let extent = if is_start { Extent::Start } else { Extent::Middle };
                (self.chunk.len() - kept, extent)
            }
        };
        let len = self.carry.len() + end - self.frame_start;
        if self.parts_len + len > self.max_event {
            return Err(EventTooLong { max_event: self.max_event });
        }
        let is_open = matches!(extent, Extent::Start | Extent::Middle);
        self.parts_len = if is_open { self.parts_len + len } else { 0 };
        Ok(Some(self.show(end, extent)))
    }

    /// What is left when the stream has ended: a frame whose end could have gone on, or the
    /// beginning of one that was cut off ([`Extent::Cut`]).
    pub fn finish(&mut self) -> Option<Frame<'_>> {
        if self.held() == 0 {
            return None;
        }
        let is_complete = self.line == Line::AfterBlankCr;
        let extent = match (is_complete, self.parts_len) {
            (true, 0) => Extent::Whole,
            (true, _) => Extent::End,
            (false, _) => Extent::Cut,
        };
        self.line = Line::Start;
        self.at = self.chunk.len();
        if is_complete {
            self.parts_len = 0;
        }
        Some(self.show(self.chunk.len(), extent))
    }

    /// Hands out the bytes of all frames shown since the last time, in order. A piece may be
    /// empty.
    pub fn take_run(&mut self) -> [Bytes; 2] {
        let run = self.chunk.slice(self.run_start..self.frame_start);
        self.run_start = self.frame_start;
        [std::mem::take(&mut self.carried), run]
    }

    /// The same without the frame shown last, which nobody is to see.
    pub fn take_run_but_last(&mut self) -> [Bytes; 2] {
        let [mut carried, mut run] = self.take_run();
        // The last frame stands at the end of the run, or of what was carried if the run is empty.
        let last = if run.is_empty() { &mut carried } else { &mut run };
        last.truncate(last.len().saturating_sub(self.last_len));
        [carried, run]
    }

    /// Moves the frame that ends at `end` of the chunk to the run.
    fn show(&mut self, end: usize, extent: Extent) -> Frame<'_> {
        let is_first = std::mem::take(&mut self.is_first);
        let start = self.frame_start;
        self.frame_start = end;
        self.last_len = self.carry.len() + end - start;
        if self.carry.is_empty() {
            return Frame::parse(&self.chunk[start..end], extent, is_first);
        }
        // With a carry the frame began before this chunk, so nothing of the chunk was shown yet.
        self.carry.extend_from_slice(&self.chunk[start..end]);
        self.run_start = end;
        let whole = self.carry.split().freeze();
        let before = self.carried.len();
        self.carried = if before == 0 { whole } else { joined(&self.carried, &whole) };
        Frame::parse(&self.carried[before..], extent, is_first)
    }

    /// Scans on to the end of the frame, just past its blank line.
    fn find_end(&mut self) -> Option<usize> {
        loop {
            let next = *self.chunk.get(self.at)?;
            match self.line {
                Line::Start if next == b'\n' => {
                    self.at += 1;
                    return Some(self.at);
                }
                Line::Start if next == b'\r' => {
                    self.at += 1;
                    self.line = Line::AfterBlankCr;
                }
                Line::Start | Line::Inside => {
                    self.line = Line::Inside;
                    let Some(skipped) = memchr2(b'\n', b'\r', &self.chunk[self.at..]) else {
                        self.at = self.chunk.len();
                        return None;
                    };
                    self.at += skipped + 1;
                    let is_lf = self.chunk[self.at - 1] == b'\n';
                    self.line = if is_lf { Line::Start } else { Line::AfterCr };
                }
                Line::AfterCr => {
                    self.at += usize::from(next == b'\n');
                    self.line = Line::Start;
                }
                Line::AfterBlankCr => {
                    self.at += usize::from(next == b'\n');
                    self.line = Line::Start;
                    return Some(self.at);
                }
            }
        }
    }
}

fn joined(first: &Bytes, second: &Bytes) -> Bytes {
    [&first[..], &second[..]].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The frames of a stream fed in these chunks, and the bytes handed out.
    fn split(chunks: &[&[u8]]) -> (Vec<(Extent, String)>, Vec<u8>) {
        let mut splitter = Splitter::new(1 << 20);
        let mut frames = Vec::new();
        let mut bytes = Vec::new();
        let told =
            |frame: &Frame<'_>| (frame.extent, String::from_utf8_lossy(frame.raw).into_owned());
        for chunk in chunks {
            splitter.feed(Bytes::copy_from_slice(chunk));
            while let Some(frame) = splitter.next().expect("short events") {
                frames.push(told(&frame));
            }
            bytes.extend(splitter.take_run().concat());
        }
        frames.extend(splitter.finish().as_ref().map(told));
        bytes.extend(splitter.take_run().concat());
        (frames, bytes)
    }

    fn check(stream: &str, expected: &[&str]) {
        let whole: Vec<_> = expected.iter().map(|raw| (Extent::Whole, (*raw).to_owned())).collect();
        let bytes = stream.as_bytes();
        assert_eq!(split(&[bytes]), (whole.clone(), bytes.to_vec()), "in one chunk: {stream:?}");
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(split(&single), (whole, bytes.to_vec()), "byte by byte: {stream:?}");
    }

    #[test]
    fn every_kind_of_line_end_closes_a_frame() {
        check("data: a\n\ndata: b\n\n", &["data: a\n\n", "data: b\n\n"]);
        check("data: a\r\n\r\ndata: b\r\n\r\n", &["data: a\r\n\r\n", "data: b\r\n\r\n"]);
        check("data: a\r\rdata: b\r\r", &["data: a\r\r", "data: b\r\r"]);
        check("data: a\n\r\ndata: b\r\n\n", &["data: a\n\r\n", "data: b\r\n\n"]);
        check("\u{feff}data: a\n\n\n: c\n\n", &["\u{feff}data: a\n\n", "\n", ": c\n\n"]);
    }

    #[test]
    fn a_stream_that_ends_inside_an_event_shows_it_as_cut() {
        let (frames, bytes) = split(&[b"data: a\n\nda", b"ta: b\n"]);
        let expected =
            [(Extent::Whole, "data: a\n\n".to_owned()), (Extent::Cut, "data: b\n".to_owned())];
        assert_eq!((&frames[..], &bytes[..]), (&expected[..], &b"data: a\n\ndata: b\n"[..]));
    }

    #[test]
    fn frames_inside_one_chunk_are_slices_of_it() {
        let chunk = Bytes::from("data: a\n\ndata: b\n\nda");
        let mut splitter = Splitter::new(100);
        splitter.feed(chunk.clone());
        while splitter.next().expect("short events").is_some() {}
        let [carried, run] = splitter.take_run();
        assert_eq!((carried.len(), run.as_ptr(), run.len()), (0, chunk.as_ptr(), 18));
        assert_eq!(splitter.held(), 2);
    }

    #[test]
    fn bytes_that_were_not_taken_are_kept() {
        let mut splitter = Splitter::new(100);
        splitter.feed(Bytes::from("data: a\n\ndata: b\n\nda"));
        assert!(splitter.next().expect("short events").is_some());
        splitter.feed(Bytes::from("ta: c\n\n"));
        let mut raws = Vec::new();
        while let Some(frame) = splitter.next().expect("short events") {
            raws.push(frame.raw.to_vec());
        }
        assert_eq!(raws, [b"data: b\n\n", b"data: c\n\n"]);
        assert_eq!(splitter.take_run().concat(), b"data: a\n\ndata: b\n\ndata: c\n\n");
    }

    #[test]
    fn the_frame_shown_last_can_be_left_out() {
        for chunks in [&["data: a\n\ndata: b\n\n"][..], &["data: a\n\nda", "ta: b\n\n"]] {
            let mut splitter = Splitter::new(100);
            let mut bytes = Vec::new();
            for chunk in chunks {
                splitter.feed(Bytes::from(*chunk));
                while splitter.next().expect("short events").is_some_and(|it| it.raw[6] != b'b') {}
                bytes.extend(splitter.take_run_but_last().concat());
                bytes.extend(splitter.take_run().concat());
            }
            // In the second case the first chunk's only frame was left out as well.
            let expected: &[u8] = if chunks.len() == 1 { b"data: a\n\n" } else { b"" };
            assert_eq!(bytes, expected, "{chunks:?}");
        }
    }

    #[test]
    fn an_event_over_the_limit_is_an_error_before_and_after_the_commit() {
        for is_committed in [false, true] {
            let mut splitter = Splitter::new(200_000);
            if is_committed {
                splitter.commit();
            }
            let mut result = Ok(());
            for _ in 0..10 {
                splitter.feed(Bytes::from(vec![b'a'; 50_000]));
                while result.is_ok() {
                    match splitter.next() {
                        Ok(None) => break,
                        Ok(Some(_)) => {}
                        Err(error) => result = Err(error),
                    }
                }
                splitter.take_run();
            }
            assert_eq!(result, Err(EventTooLong { max_event: 200_000 }));
        }
    }

    #[test]
    fn a_huge_event_after_the_commit_passes_in_parts_and_is_never_held() {
        let mut splitter = Splitter::new(usize::MAX);
        splitter.commit();
        let mut extents = Vec::new();
        let mut released = 0;
        let chunk = Bytes::from(vec![b'a'; 100_000]);
        for _ in 0..1_000 {
            splitter.feed(chunk.clone());
            while let Some(frame) = splitter.next().expect("no limit") {
                extents.push(frame.extent);
            }
            released += splitter.take_run().concat().len();
            assert_eq!(splitter.held(), 0);
        }
        assert!(splitter.is_mid_event());
        splitter.feed(Bytes::from("\n\r"));
        assert!(splitter.next().expect("no limit").is_some());
        splitter.feed(Bytes::from("\ndata: x\n\n"));
        let raw = |frame: Frame<'_>| (frame.extent, frame.raw.to_vec());
        let end = splitter.next().expect("no limit").map(raw);
        assert_eq!(end, Some((Extent::End, b"\r\n".to_vec())));
        let whole = splitter.next().expect("no limit").map(raw);
        assert_eq!(whole, Some((Extent::Whole, b"data: x\n\n".to_vec())));
        assert!(!splitter.is_mid_event());
        assert_eq!(released, 100_000_000);
        assert_eq!((extents[0], extents[1], extents.len()), (Extent::Start, Extent::Middle, 1_000));
    }

    #[test]
    fn a_commit_releases_what_was_held_of_a_long_event() {
        let mut splitter = Splitter::new(usize::MAX);
        splitter.feed(Bytes::from("data: a\n\ndata: "));
        assert!(splitter.next().expect("no limit").is_some());
        assert!(splitter.next().expect("no limit").is_none());
        splitter.feed(Bytes::from(vec![b'b'; PART_LIMIT]));
        assert!(splitter.next().expect("no limit").is_none());
        splitter.commit();
        let frame = splitter.next().expect("no limit").expect("the held part");
        assert_eq!((frame.extent, frame.raw.len()), (Extent::Start, PART_LIMIT + 6));
        assert_eq!(splitter.take_run().concat().len(), PART_LIMIT + 15);
    }
}

//! Reading a request and following a stream allocate nothing in the common case: a fact, not a
//! timing.

use bytes::Bytes;
use tidegate_wire::dialect::Dialect;
use tidegate_wire::head::RequestHead;
use tidegate_wire::splice::{EncodedName, Spliced};
use tidegate_wire::sse::Splitter;
use tidegate_wire::watch::{StreamEnd, Watch};

fn allocations(work: impl FnMut()) -> u64 {
    let mut work = work;
    // The searchers are made at their first use.
    work();
    allocation_counter::measure(work).count_total
}

#[test]
fn reading_a_head_and_splicing_allocate_nothing() {
    let text = r#"{"model":"fast","user":"u","stream":true,"messages":[{"content":"Zoë\n"}]}"#;
    let body = Bytes::from_static(text.as_bytes());
    let name = EncodedName::new("llama");
    // Sharing a buffer that was not static yet may cost its counter; the static one shows the rest.
    let count = allocations(|| {
        let head = RequestHead::read(&body).expect("a readable body");
        assert_eq!(Spliced::new(&body, &head, &name).len(), body.len() + 1);
    });
    assert_eq!(count, 0);
}

#[test]
fn following_a_stream_that_comes_in_whole_frames_allocates_for_its_template_alone() {
    let frame = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}],\"usage\":null}\n\n";
    let stream = Bytes::from(frame.repeat(1000) + "data: [DONE]\n\n");
    // The first clone makes the counter that all slices share.
    let _shared = stream.clone();
    let count = allocations(|| {
        let mut splitter = Splitter::new(1 << 20);
        let mut watch = Watch::new(Dialect::OpenAiChat);
        splitter.feed(stream.clone());
        while let Some(frame) = splitter.next().expect("short events") {
            watch.see(&frame);
        }
        assert_eq!(splitter.take_run()[1].len(), stream.len());
        assert_eq!(watch.end(), Some(StreamEnd::Complete));
    });
    assert_eq!(count, 2, "the first event and the places in it that may differ, and nothing later");
}

#[test]
fn the_counter_counts() {
    assert!(allocations(|| drop(EncodedName::new("llama"))) > 0);
}

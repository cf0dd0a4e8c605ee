//! Servers that are programs.

use tidegate_core::time::Millis;

use super::bed::{Bed, Manner};
use crate::hub::ServerAccess;

fn child(is_shared: bool) -> Bed {
    let mut bed = Bed::new(&["a"]);
    bed.settings.servers[0].access = ServerAccess::Child { is_shared };
    bed.start()
}

#[test]
fn every_session_has_a_program_of_its_own_or_all_share_one() {
    let mut bed = child(false);
    assert_eq!(bed.hub.sizes().connections, 0, "the one for the lists is gone");
    let (one, two) = (bed.open(), bed.open());
    assert_eq!((bed.tools(&one).len(), bed.tools(&two).len()), (4, 4));
    assert_eq!(bed.hub.sizes().connections, 2);
    let mut bed = child(true);
    let (one, two) = (bed.open(), bed.open());
    assert_eq!((bed.tools(&one).len(), bed.tools(&two).len()), (4, 4));
    assert_eq!(bed.hub.sizes().connections, 1);
}

#[test]
fn a_shared_program_that_ended_is_started_again_after_a_pause() {
    let mut bed = child(true);
    let session = bed.open();
    let before = bed.opened;
    bed.break_connections(0);
    bed.pass(Millis(100));
    assert_eq!(bed.opened, before, "not at once");
    bed.pass(Millis(500));
    assert_eq!(bed.opened, before + 1);
    let token = bed.call(&session, 1, "read");
    assert_eq!(bed.last(token)["id"], 1);
}

#[test]
fn a_call_waits_for_a_program_that_is_started_again_soon() {
    for is_shared in [false, true] {
        let mut bed = child(is_shared);
        let session = bed.open();
        bed.tools(&session);
        bed.break_connections(0);
        let before = bed.opened;
        let token = bed.call(&session, 1, "echo");
        assert_eq!(bed.opened, before, "not at once");
        bed.pass(Millis(500));
        let answer = bed.last(token);
        assert_eq!(answer["result"]["content"][0]["text"], "a", "shared: {is_shared}, {answer}");
        assert_eq!(answer["result"]["_meta"]["tidegate/session"], "new");
        assert_eq!(bed.opened, before + 1);
    }
}

#[test]
fn a_program_that_ends_during_a_harmless_call_is_asked_again() {
    for (tool, is_again) in [("read", true), ("echo", false)] {
        let mut bed = child(false);
        let session = bed.open();
        bed.tools(&session);
        bed.servers[0].manner = Manner::Silent;
        let token = bed.call(&session, 1, tool);
        bed.break_connections(0);
        bed.servers[0].manner = Manner::Works;
        bed.pass(Millis(500));
        let answer = bed.last(token);
        let code = &answer["result"]["structuredContent"]["code"];
        match is_again {
            true => assert_eq!(answer["result"]["content"][0]["text"], "a", "{answer}"),
            false => assert_eq!(code, "result_unknown", "{answer}"),
        }
        assert_eq!(bed.servers[0].count("tools/call"), if is_again { 2 } else { 1 });
    }
}

#[test]
fn a_call_does_not_wait_for_a_program_that_is_left_alone_for_long() {
    let mut bed = child(false);
    let session = bed.open();
    bed.tools(&session);
    for _ in 0..5 {
        bed.break_connections(0);
        let token = bed.call(&session, 1, "echo");
        bed.pass(Millis::seconds(5));
        bed.last(token);
    }
    bed.break_connections(0);
    let token = bed.call(&session, 2, "echo");
    let answer = bed.last(token);
    let text = answer["result"]["content"][0]["text"].as_str().expect("a text");
    assert!(text.ends_with("process keeps crashing"), "{text}");
}

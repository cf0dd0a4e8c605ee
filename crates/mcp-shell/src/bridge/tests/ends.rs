//! How a bridge ends: its input does, nobody reads, or somebody says so.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use http::Method;
use serde_json::json;
use tidegate_runtime::clock::timer_now;
use tokio::sync::Notify;

use super::{Bed, answer, usual};
use crate::http::tests::bed::{Piece, Reply, Seen, event, local, local_paused, note};

fn is_delete(seen: &Seen) -> bool {
    seen.method == Method::DELETE
}

#[test]
fn a_call_under_way_is_answered_after_the_input_has_ended_and_then_the_session_ends() {
    local(async {
        let word = Rc::new(Notify::new());
        let until = Rc::clone(&word);
        let mut bed = Bed::with(move |seen| {
            usual("s1", seen).unwrap_or_else(|| {
                let wait = Piece::Wait(Rc::clone(&until));
                Reply::events(vec![event(&note(1)), wait, event(&answer(seen, "late"))])
            })
        })
        .await;
        bed.open().await;
        bed.ask(1, "tools/call").await;
        assert_eq!(bed.hear().await, note(1));
        bed.close_input();
        word.notify_one();
        assert_eq!(bed.hear().await["result"]["text"], "late");
        bed.over().await;
        let deleted = bed.server.all(is_delete);
        assert_eq!(deleted.len(), 1);
        assert_eq!(deleted[0].header("mcp-session-id"), Some("s1"));
    });
}

#[test]
fn a_call_that_hangs_holds_the_end_back_for_seconds_only() {
    local_paused(async {
        let mut bed = Bed::with(|seen| usual("s1", seen).unwrap_or(Reply::Silence)).await;
        bed.open().await;
        bed.ask(1, "tools/call").await;
        bed.server.until(|it| it.count(|seen| seen.is("tools/call")) == 1).await;
        let began = timer_now();
        bed.close_input();
        bed.over().await;
        let took = began.elapsed();
        assert!(took >= Duration::from_secs(5) && took < Duration::from_secs(8), "{took:?}");
        assert_eq!(bed.server.count(is_delete), 1);
    });
}

#[test]
fn whoever_says_stop_waits_for_no_call() {
    local_paused(async {
        let mut bed = Bed::with(|seen| usual("s1", seen).unwrap_or(Reply::Silence)).await;
        bed.open().await;
        bed.ask(1, "tools/call").await;
        bed.server.until(|it| it.count(|seen| seen.is("tools/call")) == 1).await;
        let began = timer_now();
        bed.stop.send_replace(true);
        bed.over().await;
        assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
        assert_eq!(bed.server.count(is_delete), 1);
    });
}

#[test]
fn a_client_that_reads_no_more_ends_the_bridge() {
    local(async {
        let mut bed = Bed::with(|seen| usual("s1", seen).unwrap_or(Reply::Silence)).await;
        bed.open().await;
        bed.heard.close();
        bed.server.until(|it| it.count(is_delete) == 1).await;
    });
}

#[test]
fn a_request_given_up_in_a_session_is_told_and_its_stream_ends_without_an_answer() {
    local_paused(async {
        let (is_cancelled, word) = (Rc::new(Cell::new(false)), Rc::new(Notify::new()));
        let (seen_it, until) = (Rc::clone(&is_cancelled), Rc::clone(&word));
        let mut bed = Bed::with(move |seen| {
            if seen.is("notifications/cancelled") {
                seen_it.set(true);
                until.notify_one();
            }
            usual("s1", seen).unwrap_or_else(|| {
                let first = Piece::Say("id: 1-0\ndata:\n\n".to_owned());
                Reply::events(vec![first, event(&note(1)), Piece::Wait(Rc::clone(&until))])
            })
        })
        .await;
        bed.open().await;
        bed.ask(1, "tools/call").await;
        assert_eq!(bed.hear().await, note(1));
        let params = json!({"requestId": 1});
        let cancelled =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
        bed.say(cancelled).await;
        bed.close_input();
        bed.over().await;
        assert!(is_cancelled.get());
        let resumed = |seen: &Seen| seen.header("last-event-id").is_some();
        assert_eq!(bed.server.count(resumed), 0, "nobody waits for the rest");
    });
}

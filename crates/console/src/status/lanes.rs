//! The last minutes as lanes, drawn by what draws the simulator's.
//!
//! States are known to the millisecond and attempts by buckets of ten seconds. A cell is a second,
//! so that a breaker that opened two seconds ago is open for two seconds of its lane, also while
//! the whole lane is a bucket long.

use tidegate_core::{breaker::State, time::Now};
use tidegate_journal::api::{
    snapshot::SnapshotView,
    timeline::{LaneView, TimelineView},
};
use tidegate_sim::lanes::{Cell, Lane, Picture};

use crate::{look::Look, words::calm};

/// The width of a cell.
const CELL_MS: u64 = 1_000;

/// A row for each backend that was used or changed state; all of them idle and closed say nothing.
pub(super) fn lines(timeline: &TimelineView, snapshot: &SnapshotView, look: Look) -> Vec<String> {
    let is_news = |lane: &&LaneView| {
        lane.kind != "endpoint" && lane.states.iter().any(|it| it.state != "closed")
    };
    let lanes: Vec<Lane> = timeline
        .lanes
        .iter()
        .filter(is_news)
        .map(|lane| Lane {
            name: calm(&lane.id),
            state: state_of(snapshot, &lane.id),
            shows_share: false,
            cells: cells(lane, timeline),
        })
        .collect();
    if lanes.is_empty() {
        return Vec::new();
    }
    let to = Now(timeline.to_unix_ms.saturating_sub(timeline.from_unix_ms));
    let picture = Picture { from: Now::ZERO, to, lanes, marks: Vec::new() };
    let mut lines = vec![format!("last {}    {}", shown(to.0), picture.legend(look.glyphs()))];
    lines.extend(picture.draw(look.width, look.glyphs(), look.paint()).into_iter().skip(1));
    lines
}

fn state_of(snapshot: &SnapshotView, id: &str) -> State {
    let state = snapshot.backends.iter().find(|it| it.id == id).map(|it| it.state.as_str());
    match state {
        Some("open") => State::Open,
        Some("half_open") => State::HalfOpen,
        _ => State::Closed,
    }
}

/// How much time the lanes show: whole minutes, and seconds before the second one.
fn shown(ms: u64) -> String {
    match ms.div_ceil(1_000) {
        seconds @ 0..=120 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}

fn cells(lane: &LaneView, timeline: &TimelineView) -> Vec<Cell> {
    let shown_ms = timeline.to_unix_ms.saturating_sub(timeline.from_unix_ms);
    let cell = |index: u64| {
        let from = timeline.from_unix_ms + index * CELL_MS;
        let to = from + CELL_MS;
        let met = lane.states.iter().filter(|it| it.from_unix_ms < to && it.to_unix_ms > from);
        let was = |word: &str| met.clone().any(|it| it.state == word);
        let bucket = (index * CELL_MS / timeline.bucket_ms.max(1)) as usize;
        let count = |counts: &[u64]| counts.get(bucket).copied().unwrap_or(0);
        Cell {
            was_open: was("open") || was("off"),
            was_half_open: was("half_open"),
            had_trouble: count(&lane.failures) > 0 || was("window") || was("excluded"),
            attempts: count(&lane.attempts).min(u64::from(u32::MAX)) as u32,
            of: 0,
        }
    };
    (0..shown_ms.div_ceil(CELL_MS)).map(cell).collect()
}

#[cfg(test)]
mod tests {
    use tidegate_journal::api::timeline::{LaneView, StateSpan, TimelineView};

    use super::{cells, shown};

    fn span(state: &str, from_unix_ms: u64, to_unix_ms: u64) -> StateSpan {
        let state = state.to_owned();
        StateSpan { state, from_unix_ms, to_unix_ms, reason: None, detail: None }
    }

    #[test]
    fn a_breaker_is_open_for_as_long_as_it_was_however_young_the_gateway_is() {
        let start = 1_799_999_990_000;
        let lane = LaneView {
            id: "a/m".into(),
            kind: "target".into(),
            states: vec![
                span("closed", start, start + 5_000),
                span("open", start + 5_000, start + 7_000),
            ],
            attempts: vec![3],
            failures: vec![0],
        };
        let timeline = TimelineView {
            from_unix_ms: start,
            to_unix_ms: start + 7_000,
            bucket_ms: 10_000,
            lanes: Vec::new(),
            client_failures: vec![0],
            requests: vec![3],
            hops: vec![0],
            marks: Vec::new(),
        };
        let open: Vec<bool> = cells(&lane, &timeline).iter().map(|it| it.was_open).collect();
        assert_eq!(open, [false, false, false, false, false, true, true]);
        assert!(cells(&lane, &timeline).iter().all(|it| it.attempts == 3));
    }

    #[test]
    fn the_time_shown_is_said_in_seconds_first() {
        assert_eq!((shown(6_001), shown(120_000)), ("7 s".into(), "120 s".into()));
        assert_eq!((shown(121_000), shown(905_000)), ("3 min".into(), "16 min".into()));
    }
}

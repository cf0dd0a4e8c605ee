//! The last minutes as lanes, drawn by what draws the simulator's.

use tidegate_core::{breaker::State, time::Now};
use tidegate_journal::api::{
    snapshot::SnapshotView,
    timeline::{LaneView, TimelineView},
};
use tidegate_sim::lanes::{Cell, Lane, Picture};

use crate::{look::Look, words::calm};

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
    let minutes = to.0.div_ceil(60_000);
    let mut lines = vec![format!("last {minutes} min    {}", picture.legend(look.glyphs()))];
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

fn cells(lane: &LaneView, timeline: &TimelineView) -> Vec<Cell> {
    let cell = |(index, (attempts, failures)): (usize, (&u64, &u64))| {
        let from = timeline.from_unix_ms + index as u64 * timeline.bucket_ms;
        let to = from + timeline.bucket_ms;
        let met = lane.states.iter().filter(|it| it.from_unix_ms < to && it.to_unix_ms > from);
        let was = |word: &str| met.clone().any(|it| it.state == word);
        Cell {
            was_open: was("open") || was("off"),
            was_half_open: was("half_open"),
            had_trouble: *failures > 0 || was("window") || was("excluded"),
            attempts: (*attempts).min(u64::from(u32::MAX)) as u32,
            of: 0,
        }
    };
    lane.attempts.iter().zip(&lane.failures).enumerate().map(cell).collect()
}

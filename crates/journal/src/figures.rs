//! The figures of the last fifteen minutes, as the API shows them.
//!
//! One look takes the journal's lock once, so that all figures of a document are of one moment.

use std::collections::BTreeMap;

use tidegate_core::time::Now;
use tidegate_runtime::clock::Clock;

use crate::{
    api::snapshot::{BackendStats, CallerView, MemberStats, RouteStats, SessionMoves, TotalsView},
    journal::Journal,
};

/// The figures of everything at one moment.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Of the gateway as a whole.
    pub totals: TotalsView,
    /// Requests and calls that failed in the last minute, through no fault of their own.
    pub recent_failures: u64,
    /// Sessions that moved.
    pub moves: SessionMoves,
    /// Of backends, by id.
    pub backends: BTreeMap<String, BackendStats>,
    /// Of routes, by name.
    pub routes: BTreeMap<String, RouteStats>,
    /// Of the targets of routes, by route and target.
    pub members: BTreeMap<(String, String), MemberStats>,
    /// Of callers, busiest first.
    pub callers: Vec<CallerView>,
}

/// The lanes of the timeline: attempts and failures of a backend per bucket.
pub type Lane = (Vec<u64>, Vec<u64>);

impl Figures {
    /// Looks at everything.
    pub fn read<'a>(
        journal: &Journal,
        (clock, now): (&Clock, Now),
        backends: impl Iterator<Item = &'a str>,
        routes: impl Iterator<Item = (&'a str, Vec<&'a str>)>,
    ) -> Self {
        journal.with_stats(|stats| {
            let mut figures = Self {
                totals: stats.totals(now),
                recent_failures: stats.recent_failures(now),
                moves: stats.session_moves(now),
                callers: stats.callers(now, |moment| clock.unix_ms_of(moment)),
                ..Self::default()
            };
            for id in backends {
                figures.backends.insert(id.to_owned(), stats.backend(now, id));
            }
            for (name, targets) in routes {
                figures.routes.insert(name.to_owned(), stats.route(now, name));
                for target in targets {
                    let stats = stats.member(now, name, target);
                    figures.members.insert((name.to_owned(), target.to_owned()), stats);
                }
            }
            figures
        })
    }

    /// Attempts and failures per bucket of each backend, and requests, client failures and hops.
    pub fn lanes<'a>(
        journal: &Journal,
        now: Now,
        backends: impl Iterator<Item = &'a str>,
    ) -> (BTreeMap<String, Lane>, [Vec<u64>; 3]) {
        journal.with_stats(|stats| {
            let lanes = backends.map(|id| (id.to_owned(), stats.lane(now, id)));
            (lanes.collect(), stats.request_lanes(now))
        })
    }
}

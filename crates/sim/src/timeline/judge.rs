//! The judge: each expectation against the numbers of a run.
//!
//! A plain table. Every verdict has a fixed name (what was wanted), what came, and where to look.

use tidegate_config::duration::written;
use tidegate_core::time::{Millis, Now};

use super::{
    plot::{Plot, Shares, Span, Want},
    tally::Tally,
    trace::moment,
};

/// How one expectation came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Judgement {
    /// What was wanted; the same for every seed.
    pub(super) wanted: String,
    /// What came.
    pub(super) got: String,
    pub(super) holds: bool,
    /// The moments between which the cause is to be found.
    pub(super) look_at: Option<(Now, Now)>,
}

/// The verdicts of a run, in the order of what is wanted.
pub(super) fn judge(plot: &Plot, tally: &Tally) -> Vec<Judgement> {
    plot.wants.iter().map(|want| verdict(plot, tally, *want)).collect()
}

fn verdict(plot: &Plot, tally: &Tally, want: Want) -> Judgement {
    let id = |backend: usize| &plot.world.settings.backends[backend].id;
    match want {
        Want::ClientFailures { max } => {
            let failures = tally.failures;
            let when = failures.first.zip(failures.last);
            let between = when
                .map(|(first, last)| format!(", between {} and {}", seconds(first), seconds(last)));
            let got = format!("{}{}", failures.count, between.unwrap_or_default());
            let holds = failures.count <= max;
            Judgement { look_at: when, ..plain(format!("client failures ≤ {max}"), got, holds) }
        }
        Want::Opens { backend, span } => opens(id(backend), tally, backend, span),
        Want::OpensAtMost { backend, max } => {
            let count = tally.backends[backend].opens;
            let at = tally.backends[backend].last_open;
            let wanted = match max {
                0 => format!("{} never opens", id(backend)),
                max => format!("{} opens at most {}", id(backend), times(max)),
            };
            let verdict = plain(wanted, times(count), count <= max);
            Judgement { look_at: at.zip(at), ..verdict }
        }
        Want::Closes { backend, span } => closes(plot, tally, backend, span),
        Want::Amplification { max } => {
            let found = tally.amplification();
            let got = format!("{found:.3} attempts per request");
            plain(format!("amplification ≤ {max}"), got, found <= max)
        }
        Want::Share { backend, between } => {
            let count = tally.backends[backend].answered;
            let whole = tally.backends.iter().map(|it| it.answered).sum();
            share(format!("{} answers", id(backend)), count, whole, between)
        }
        Want::FirstShare { backend, between } => {
            let count = tally.backends[backend].firsts;
            let whole = tally.backends.iter().map(|it| it.firsts).sum();
            share(format!("{} is asked first for", id(backend)), count, whole, between)
        }
        Want::Hops { max } => at_most("hops", tally.hops, max),
        Want::LastResorts { max } => at_most("last resorts", tally.last_resorts, max),
        Want::SessionsMoved { max } => at_most("sessions moved", tally.sessions_moved, max),
        Want::WaitP95 { max } => {
            let found = tally.waits.quantile(0.95);
            let wanted = format!("19 of 20 clients wait ≤ {}", written(max));
            plain(wanted, short(found), found <= max)
        }
        Want::WaitMax { max } => {
            let (found, at) = (tally.waits.max, tally.waits.max_at);
            let wanted = format!("no client waits > {}", written(max));
            let got = format!("{}, at {}", short(found), seconds(at));
            let from = Now(at.0.saturating_sub(found.0));
            Judgement { look_at: Some((from, at)), ..plain(wanted, got, found <= max) }
        }
        Want::Hits { backend, span, min, max } => {
            let count = hits_of(plot, tally, want);
            let bounds = match (min, max) {
                (0, u64::MAX) => String::new(),
                (0, max) => format!(" ≤ {max}"),
                (min, u64::MAX) => format!(" ≥ {min}"),
                (min, max) => format!(" {min} to {max}"),
            };
            let wanted = format!("hits of {}{}{bounds}", id(backend), when(span));
            let from = (span.after > Now::ZERO).then_some(span.after);
            let look_at = from.or(edge(span)).map(|at| (at, edge(span).unwrap_or(at)));
            let holds = (min..=max).contains(&count);
            Judgement { look_at, ..plain(wanted, count.to_string(), holds) }
        }
        Want::HealthyAtEnd { backend } => {
            let holds = tally.backends[backend].is_healthy_at_end;
            let got = if holds { "healthy" } else { "unhealthy" };
            let end = Now(plot.lasts.0);
            let wanted = format!("{} is healthy at the end", id(backend));
            Judgement { look_at: Some((end, end)), ..plain(wanted, got.to_owned(), holds) }
        }
    }
}

/// The count that belongs to an expectation about hits.
fn hits_of(plot: &Plot, tally: &Tally, want: Want) -> u64 {
    let mut wants = plot.wants.iter().filter(|it| matches!(it, Want::Hits { .. }));
    let place = wants.position(|it| *it == want);
    place.and_then(|place| tally.hits.get(place)).copied().unwrap_or_default()
}

fn times(count: u64) -> String {
    match count {
        0 => "never".to_owned(),
        1 => "once".to_owned(),
        count => format!("{count} times"),
    }
}

fn plain(wanted: String, got: String, holds: bool) -> Judgement {
    Judgement { wanted, got, holds, look_at: None }
}

fn at_most(what: &str, count: u64, max: u64) -> Judgement {
    plain(format!("{what} ≤ {max}"), count.to_string(), count <= max)
}

fn opens(id: &str, tally: &Tally, backend: usize, span: Span) -> Judgement {
    let first = tally.backends[backend].first_open;
    let got = first.map_or("never".to_owned(), |at| format!("at {}", seconds(at)));
    let holds = first.is_some_and(|at| span.has(at));
    let look_at = first.or(edge(span)).map(|at| (at, at));
    Judgement { look_at, ..plain(format!("{id} opens{}", when(span)), got, holds) }
}

fn closes(plot: &Plot, tally: &Tally, backend: usize, span: Span) -> Judgement {
    let id = &plot.world.settings.backends[backend].id;
    let (opened, closed) = (tally.backends[backend].last_open, tally.backends[backend].last_close);
    let is_open_again = opened > closed;
    let got = match closed {
        None => "never".to_owned(),
        Some(at) if is_open_again => format!("at {}, but opened again", seconds(at)),
        Some(at) => format!("at {}", seconds(at)),
    };
    let holds = !is_open_again && closed.is_some_and(|at| span.has(at));
    let look_at = closed.or(edge(span)).map(|at| (at, at));
    Judgement { look_at, ..plain(format!("{id} closes{}", when(span)), got, holds) }
}

fn share(what: String, count: u64, whole: u64, between: Shares) -> Judgement {
    let found = count as f64 / whole.max(1) as f64;
    let bounds = match (between.min > 0.0, between.max < 1.0) {
        (true, true) => format!("{} to {}", percent(between.min), percent(between.max)),
        (true, false) => format!("≥ {}", percent(between.min)),
        (false, _) => format!("≤ {}", percent(between.max)),
    };
    let holds = (between.min..=between.max).contains(&found);
    plain(format!("{what} {bounds}"), format!("{} of {whole}", percent(found)), holds)
}

/// The nearest written bound.
fn edge(span: Span) -> Option<Now> {
    (span.before != Now::NEVER).then_some(span.before)
}

fn when(span: Span) -> String {
    match (span.after > Now::ZERO, edge(span)) {
        (true, Some(before)) => format!(" between {} and {}", moment(span.after), moment(before)),
        (true, None) => format!(" after {}", moment(span.after)),
        (false, Some(before)) => format!(" before {}", moment(before)),
        (false, None) => String::new(),
    }
}

/// A span of time as a reader says it: `455ms`, `3.5s`, `1m30s`.
pub(super) fn short(span: Millis) -> String {
    match span.0 {
        ms @ ..1000 => format!("{ms}ms"),
        ms @ 1000..60_000 => format!("{:.1}s", ms as f64 / 1000.0),
        ms => written(Millis(ms / 1000 * 1000)),
    }
}

/// A share in percent, as precise as a reader cares for.
pub(super) fn percent(share: f64) -> String {
    let rounded = (share * 1e4).round() / 100.0;
    format!("{rounded} %")
}

/// A moment to the second.
pub(super) fn seconds(at: Now) -> String {
    written(Millis(at.0 / 1000 * 1000))
}

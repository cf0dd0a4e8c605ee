//! Expectations into what the judge wants.

use indexmap::IndexMap;
use tidegate_config::{
    codes::BAD_VALUE, diagnostic::Diagnostic, duration::Duration, path::KeyPath,
};
use tidegate_core::time::Now;

use super::ProblemCollector;
use crate::timeline::{
    file::{Between, Moments, TimelineExpectFile},
    plot::{Shares, Span, Want},
};

/// Every expectation of the file, in a fixed order.
pub(super) fn wants(
    file: &TimelineExpectFile,
    ids: &[String],
    collector: &mut ProblemCollector<'_>,
) -> Vec<Want> {
    let here = KeyPath::from("expect");
    let mut wants = Vec::new();
    let mut add = |want: Want| wants.push(want);
    if let Some(most) = file.client_failures {
        add(Want::ClientFailures { max: most.max });
    }
    for (_, backend, moments) in each(&file.opens, &here.key("opens"), ids, collector) {
        if let Some(max) = moments.max {
            add(Want::OpensAtMost { backend, max });
        }
        if let Some(span) = span(moments) {
            add(Want::Opens { backend, span });
        }
    }
    for (path, backend, moments) in each(&file.closes, &here.key("closes"), ids, collector) {
        if moments.max.is_some() {
            let message = format!("`{path}.max`: only `opens` are counted");
            collector.refuse(&path.key("max"), Diagnostic::error(&BAD_VALUE, message));
        }
        if let Some(span) = span(moments) {
            add(Want::Closes { backend, span });
        }
    }
    if let Some(most) = file.amplification {
        add(Want::Amplification { max: most.max });
    }
    for (_, backend, between) in each(&file.shares, &here.key("shares"), ids, collector) {
        add(Want::Share { backend, between: shares(*between) });
    }
    for (_, backend, between) in each(&file.first_shares, &here.key("first_shares"), ids, collector)
    {
        add(Want::FirstShare { backend, between: shares(*between) });
    }
    if let Some(most) = file.hops {
        add(Want::Hops { max: most.max });
    }
    if let Some(most) = file.last_resorts {
        add(Want::LastResorts { max: most.max });
    }
    if let Some(most) = file.sessions_moved {
        add(Want::SessionsMoved { max: most.max });
    }
    if let Some(wait) = &file.wait {
        if let Some(p95) = &wait.p95 {
            add(Want::WaitP95 { max: p95.millis() });
        }
        if let Some(max) = &wait.max {
            add(Want::WaitMax { max: max.millis() });
        }
    }
    for (path, backend, hits) in each(&file.hits, &here.key("hits"), ids, collector) {
        if hits.min.is_none() && hits.max.is_none() {
            let message = format!("`{path}` wants nothing");
            let diagnostic =
                Diagnostic::error(&BAD_VALUE, message).help("write `{ max: 5 }` or `{ min: 5 }`");
            collector.refuse_key(&path, diagnostic);
        }
        let span = Span {
            after: moment(&hits.after, Now::ZERO),
            before: moment(&hits.before, Now::NEVER),
        };
        let (min, max) = (hits.min.unwrap_or(0), hits.max.unwrap_or(u64::MAX));
        add(Want::Hits { backend, span, min, max });
    }
    for (index, id) in file.healthy_at_end.iter().enumerate() {
        let path = here.key("healthy_at_end").index(index);
        if let Some(backend) = collector.backend(&path, id, ids) {
            add(Want::HealthyAtEnd { backend });
        }
    }
    wants
}

/// The entries of a map by backend; unknown ones become problems.
fn each<'a, T>(
    map: &'a IndexMap<String, T>,
    here: &KeyPath,
    ids: &[String],
    collector: &mut ProblemCollector<'_>,
) -> Vec<(KeyPath, usize, &'a T)> {
    let mut entries = Vec::new();
    for (id, value) in map {
        let path = here.key(id.clone());
        if let Some(backend) = collector.backend(&path, id, ids) {
            entries.push((path, backend, value));
        }
    }
    entries
}

fn span(moments: &Moments) -> Option<Span> {
    // A map with `max` alone says nothing about when.
    let says_when = moments.before.is_some() || moments.after.is_some() || moments.max.is_none();
    says_when.then(|| Span {
        after: moment(&moments.after, Now::ZERO),
        before: moment(&moments.before, Now::NEVER),
    })
}

fn moment(written: &Option<Duration>, or: Now) -> Now {
    written.as_ref().map_or(or, |it| Now(it.millis().0))
}

fn shares(between: Between) -> Shares {
    Shares {
        min: between.min.map_or(0.0, |it| it.fraction()),
        max: between.max.map_or(1.0, |it| it.fraction()),
    }
}

//! The replicas of a fleet, as one of them sees them.

use tidegate_journal::api::fleet::{FleetView, ReplicaView};
use tidegate_sim::paint::Tone;

use crate::{
    look::Look,
    table::{Align, Table},
    words::{calm, counted, filled, span, took},
};

/// The whole, line by line.
#[must_use]
pub fn lines(fleet: &FleetView, look: Look) -> Vec<String> {
    let count = counted(fleet.replicas.len() as u64, "replica");
    let store = match &fleet.store.problem {
        Some(problem) => format!("store {}: {}", calm(&fleet.store.url), calm(problem)),
        None if fleet.store.is_up => format!("store {}", calm(&fleet.store.url)),
        None => format!("store {} is being reached", calm(&fleet.store.url)),
    };
    let mut parts = vec![format!("fleet {}", calm(&fleet.fleet)), count, store];
    parts.push(format!("lag {}", took(fleet.lag_ms)));
    let waits = [(fleet.queued, "waiting"), (fleet.dropped, "dropped")];
    parts.extend(waits.iter().filter(|it| it.0 > 0).map(|(count, word)| format!("{count} {word}")));
    let mut lines = filled(&parts.join(&look.dot()), look.width, 2);
    let mut table = Table::new(&[
        ("replica", Align::Left),
        ("version", Align::Left),
        ("config", Align::Left),
        ("up", Align::Right),
        ("lag", Align::Right),
        ("heard", Align::Right),
    ]);
    for replica in &fleet.replicas {
        table.push(cells(replica), remark(replica));
    }
    if !table.is_empty() {
        lines.extend(table.lines(look));
    }
    if fleet.foreign > 0 {
        let count = counted(fleet.foreign, "replica");
        let words = format!("{count} under this name cannot be read: another `state.secret`");
        lines.extend(filled(&words, look.width, 2));
    }
    for rejected in fleet.rejected.iter().filter(|it| it.count > 0) {
        let count = counted(rejected.count, "value");
        let words = format!("{count} of the store ignored: {}", calm(&rejected.reason));
        lines.extend(filled(&words, look.width, 2));
    }
    lines
}

fn cells(replica: &ReplicaView) -> Vec<(Tone, String)> {
    let config = if replica.has_same_config { Tone::Plain } else { Tone::Trouble };
    let heard = match replica.is_self {
        true => "this one".to_owned(),
        false => replica.facts_heard.to_string(),
    };
    vec![
        (Tone::Plain, calm(&replica.replica)),
        (Tone::Plain, calm(&replica.version)),
        (config, calm(&replica.config_sha)),
        (Tone::Plain, span(replica.up_ms)),
        (Tone::Plain, took(replica.lag_ms)),
        (Tone::Plain, heard),
    ]
}

fn remark(replica: &ReplicaView) -> String {
    let last = replica.last_fact.as_ref().zip(replica.last_fact_age_ms);
    let last = last.map(|(fact, age)| format!("last {} {} ago", calm(fact), span(age)));
    let config = (!replica.has_same_config).then(|| "another config".to_owned());
    [config, last].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use tidegate_journal::api::fleet::{FleetStoreView, RejectedView};

    use super::*;

    fn replica(name: &str, sha: &str, is_self: bool) -> ReplicaView {
        ReplicaView {
            replica: name.into(),
            instance: "0".repeat(32),
            is_self,
            version: "0.1.0".into(),
            config_sha: sha.into(),
            has_same_config: sha == "aa",
            peer_url: None,
            up_ms: 61_000,
            heartbeat_age_ms: 1000,
            lag_ms: 2,
            queued: 0,
            facts_heard: 7,
            last_fact: (!is_self).then(|| "window".into()),
            last_fact_age_ms: (!is_self).then_some(3000),
        }
    }

    #[test]
    fn replicas_differences_and_what_is_wrong_are_shown() {
        let fleet = FleetView {
            fleet: "prod".into(),
            replica: "one".into(),
            instance: "0".repeat(32),
            peer_url: None,
            store: FleetStoreView {
                url: "redis://h:1".into(),
                is_up: false,
                problem: Some("it cannot be reached".into()),
                links: 1,
                gaps: 0,
            },
            queued: 3,
            dropped: 0,
            lag_ms: 2,
            replicas: vec![replica("one", "aa", true), replica("two", "bb", false)],
            foreign: 1,
            facts: Vec::new(),
            rejected: vec![RejectedView { reason: "secret".into(), count: 4 }],
        };
        let look = Look { width: 100, is_ascii: true, has_colour: false };
        let text = lines(&fleet, look).join("\n");
        for part in [
            "fleet prod",
            "2 replicas",
            "it cannot be reached",
            "3 waiting",
            "this one",
            "another config, last window 3s ago",
            "another `state.secret`",
            "4 values",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }
}

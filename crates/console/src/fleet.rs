//! The replicas of a fleet, as one of them sees them, and what to do about it.

pub mod advice;

use tidegate_journal::api::fleet::{FleetView, ReplicaView};
use tidegate_sim::paint::Tone;

use self::advice::{Advice, advice};
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
    for Advice { words, fix, .. } in advice(fleet) {
        lines.extend(filled(&words, look.width, 2));
        lines.extend(filled(&format!("{} {fix}", look.arrow()), look.width, 4));
    }
    lines
}

/// What has changed between two views, as lines for a reader who has no screen to draw on.
#[must_use]
pub fn changes(before: Option<&FleetView>, after: &FleetView) -> Vec<String> {
    let names = |it: &FleetView| -> Vec<(String, String)> {
        it.replicas.iter().map(|it| (it.instance.clone(), calm(&it.replica))).collect()
    };
    let (old, new) = (before.map(names).unwrap_or_default(), names(after));
    let come = new.iter().filter(|it| !old.contains(it)).map(|it| format!("{} is there", it.1));
    let gone = old.iter().filter(|it| !new.contains(it)).map(|it| format!("{} has left", it.1));
    let known: Vec<Advice> = before.map(advice).unwrap_or_default();
    let advices = advice(after).into_iter();
    let advices = advices.filter(|it| !known.iter().any(|known| known.fix == it.fix));
    let advices = advices.map(|it| format!("{}; {}", it.words, it.fix));
    let is_back = before.is_some_and(|it| it.store.problem.is_some());
    let store = (is_back && after.store.problem.is_none()).then(|| "the store is there".to_owned());
    let all = come.chain(gone).chain(store).chain(advices);
    all.map(|words| format!("fleet {}  {words}", calm(&after.fleet))).collect()
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

    fn fleet(replicas: Vec<ReplicaView>) -> FleetView {
        FleetView {
            fleet: "prod".into(),
            replica: "one".into(),
            instance: "0".repeat(32),
            peer_url: None,
            store: FleetStoreView {
                url: "redis://h:1".into(),
                is_up: true,
                problem: None,
                links: 1,
                gaps: 0,
            },
            queued: 0,
            dropped: 0,
            lag_ms: 2,
            replicas,
            foreign: 0,
            facts: Vec::new(),
            rejected: Vec::new(),
        }
    }

    fn text(fleet: &FleetView) -> String {
        let look = Look { width: 100, is_ascii: true, has_colour: false };
        lines(fleet, look).join("\n")
    }

    #[test]
    fn replicas_differences_and_what_is_wrong_are_shown_with_what_to_do() {
        let mut fleet = fleet(vec![replica("one", "aa", true), replica("two", "bb", false)]);
        fleet.store.problem = Some("it cannot be reached".into());
        fleet.queued = 3;
        fleet.foreign = 1;
        fleet.replicas[1].version = "0.2.0".into();
        fleet.replicas[1].lag_ms = 2300;
        fleet.rejected = vec![RejectedView { reason: "form".into(), count: 4 }];
        let text = text(&fleet);
        for part in [
            "fleet prod",
            "2 replicas",
            "the store is away (it cannot be reached)",
            "tidegate check --connect",
            "3 waiting",
            "this one",
            "another config, last window 3s ago",
            "another `state.secret`",
            "0.1.0 (one), 0.2.0 (two)",
            "another config than here: two",
            "tidegate reload --admin URL",
            "news takes up to 2.3s to two",
            "redis-cli --latency",
            "4 values",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
    }

    #[test]
    fn a_fleet_in_order_needs_no_advice() {
        let mut two = replica("two", "aa", false);
        two.instance = "1".repeat(32);
        let mut fleet = fleet(vec![replica("one", "aa", true), two]);
        fleet.replicas.iter_mut().for_each(|it| it.peer_url = Some("http://h:2".into()));
        assert_eq!(advice(&fleet), []);
        fleet.replicas[1].replica = "one".into();
        assert!(text(&fleet).contains("set `state.replica`"));
        fleet.replicas.truncate(1);
        assert!(text(&fleet).contains("no other replica is there"));
    }

    #[test]
    fn who_came_who_left_and_new_troubles_are_lines() {
        let mut two = replica("two", "aa", false);
        two.instance = "1".repeat(32);
        let alone = fleet(vec![replica("one", "aa", true)]);
        let mut both = fleet(vec![replica("one", "aa", true), two]);
        let all = changes(None, &alone);
        assert!(all.iter().any(|it| it == "fleet prod  one is there"), "{all:?}");
        assert!(changes(Some(&alone), &both).iter().any(|it| it.ends_with("two is there")));
        assert!(changes(Some(&both), &alone).iter().any(|it| it.ends_with("two has left")));
        let before = both.clone();
        assert_eq!(changes(Some(&before), &both), [""; 0]);
        both.store.problem = Some("it cannot be reached".into());
        let told = changes(Some(&before), &both);
        assert!(told.len() == 1 && told[0].contains("the store is away"), "{told:?}");
        assert_eq!(changes(Some(&both), &before), ["fleet prod  the store is there"]);
    }
}

//! What to do about a fleet: what is not as it should be, in words, and the next thing to type.

use std::collections::BTreeMap;

use tidegate_journal::api::fleet::{FleetView, ReplicaView};

use crate::words::{calm, counted, took};

/// News that takes longer than this to a replica is late: the first failures of an outage are over
/// by then.
const LATE_MS: u64 = 1000;
/// More than this waits only where the store does not keep up.
const WAITING_MAX: u64 = 1000;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// Clients are served as well as before; somebody should know.
    Note,
    /// Replicas do not share what they should.
    Trouble,
}

/// One thing that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// How bad it is.
    pub weight: Weight,
    /// What was found.
    pub words: String,
    /// What to do about it.
    pub fix: String,
}

/// Everything that is not as it should be, the worst first.
#[must_use]
pub fn advice(fleet: &FleetView) -> Vec<Advice> {
    let mut found = Vec::new();
    let mut say = |weight, words: String, fix: &str| {
        found.push(Advice { weight, words, fix: fix.to_owned() });
    };
    let rejected = |reason: &str| {
        fleet.rejected.iter().find(|it| it.reason == reason).map_or(0, |it| it.count)
    };
    if let Some(problem) = &fleet.store.problem {
        let words = format!("the store is away ({}): every replica goes on alone", calm(problem));
        say(Weight::Trouble, words, "`tidegate check --connect` tests it from here");
    }
    if fleet.foreign > 0 {
        let words = format!(
            "{} under this name cannot be read: another `state.secret`",
            counted(fleet.foreign, "replica")
        );
        let fix = "give all of them the same list of secrets, then restart those that differ";
        say(Weight::Trouble, words, fix);
    }
    let late = named(fleet, |it| it.lag_ms > LATE_MS);
    if !late.is_empty() {
        let longest = fleet.replicas.iter().map(|it| it.lag_ms).max().unwrap_or_default();
        let words = format!("news takes up to {} to {}", took(longest), late.join(", "));
        say(Weight::Trouble, words, "`redis-cli --latency` shows whether it is the store");
    }
    if fleet.queued > WAITING_MAX || fleet.dropped > 0 {
        let words = format!("{} wait to be told, {} were dropped", fleet.queued, fleet.dropped);
        let fix = "what was dropped is written again when the store is reached next; is it slow?";
        say(Weight::Note, words, fix);
    }
    let versions = by(fleet, |it| &it.version);
    if versions.len() > 1 {
        let words = format!("replicas run different versions: {}", listed(&versions));
        say(Weight::Note, words, "finish the update: restart those that run the older one");
    }
    if rejected("version") > 0 && versions.len() <= 1 {
        let words = counted(rejected("version"), "value") + " of another version were ignored";
        let fix = "is another version writing to this store? update it, or give it another \
                   `state.fleet`";
        say(Weight::Note, words, fix);
    }
    let others = named(fleet, |it| !it.has_same_config);
    if !others.is_empty() {
        let words = format!("another config than here: {}", others.join(", "));
        let fix = "bring the same file there, then `tidegate reload --admin URL` for each";
        say(Weight::Note, words, fix);
    }
    let deaf = named(fleet, |it| it.peer_url.is_none());
    if !deaf.is_empty() && fleet.replicas.len() > 1 {
        let words = format!("MCP sessions of {} cannot be reached by others", deaf.join(", "));
        say(Weight::Note, words, "set `state.peer_listen` there, or make the balancer sticky");
    }
    let names = by(fleet, |it| &it.replica);
    let double: Vec<String> =
        names.iter().filter(|(_, all)| all.len() > 1).map(|(name, _)| calm(name)).collect();
    if !double.is_empty() {
        let words = format!("several replicas are called {}", double.join(", "));
        say(Weight::Note, words, "set `state.replica`, or let it be the host name");
    }
    if rejected("form") > 0 {
        let words = counted(rejected("form"), "value") + " are nothing that a replica writes";
        say(Weight::Note, words, "who else writes to this store? give it a user of its own");
    }
    if rejected("secret") > 0 && fleet.foreign == 0 {
        let words = counted(rejected("secret"), "value") + " did not open";
        let fix = "a replica had another `state.secret`, or somebody changed what is in the store";
        say(Weight::Note, words, fix);
    }
    if fleet.store.is_up && fleet.replicas.len() == 1 && fleet.foreign == 0 {
        let words = "no other replica is there".to_owned();
        let fix = "start the others with the same `state.redis`, `fleet` and `secret`";
        say(Weight::Note, words, fix);
    }
    found.sort_by_key(|it| std::cmp::Reverse(it.weight));
    found
}

/// The names of the replicas for which this is so.
fn named(fleet: &FleetView, is_so: impl Fn(&ReplicaView) -> bool) -> Vec<String> {
    fleet.replicas.iter().filter(|it| is_so(it)).map(|it| calm(&it.replica)).collect()
}

/// The replicas by something they have.
fn by<'a>(
    fleet: &'a FleetView,
    key: impl Fn(&'a ReplicaView) -> &'a String,
) -> BTreeMap<&'a String, Vec<String>> {
    let mut found: BTreeMap<&String, Vec<String>> = BTreeMap::new();
    for replica in &fleet.replicas {
        found.entry(key(replica)).or_default().push(calm(&replica.replica));
    }
    found
}

fn listed(by: &BTreeMap<&String, Vec<String>>) -> String {
    let one =
        |(what, who): (&&String, &Vec<String>)| format!("{} ({})", calm(what), who.join(", "));
    by.iter().map(one).collect::<Vec<_>>().join(", ")
}

//! What a replica tells its fleet, and what it does with what it hears.

use tidegate_core::{
    breaker::State,
    hint::{BreakerOf, Excluded, Fact, Haste, Heard, Hint, OperatorAction, Stamp},
    mark::MarkReason,
    names::{Fingerprint, FleetSettings, HashKey, ReplicaId},
    settings::Tactic,
    time::Millis,
};

use crate::bed::{Bed, come_back, ok, status};

/// A name made of a word.
pub(crate) fn name(word: &str) -> Fingerprint {
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(word.bytes()).for_each(|(byte, it)| *byte = it);
    Fingerprint(bytes)
}

impl Bed {
    /// Makes it one of a fleet, in which everything is called by its id.
    pub(crate) fn in_fleet(self, replica: u128) -> Self {
        self.with(|settings| {
            let hash_keys = vec![HashKey([9; 16])];
            settings.fleet = Some(FleetSettings { replica: ReplicaId(replica), hash_keys });
            settings.backends.iter_mut().for_each(|it| it.fleet_names = vec![name(&it.id)]);
            settings.endpoints.iter_mut().for_each(|it| it.fleet_names = vec![name(&it.id)]);
            settings.keys.iter_mut().for_each(|it| it.fleet_names = vec![name(&it.id)]);
        })
    }

    pub(crate) fn hear(&mut self, hint: &Hint) -> Heard {
        self.core.hear(self.now, hint, &mut self.notes)
    }

    pub(crate) fn told(&mut self) -> Vec<Hint> {
        std::mem::take(&mut self.notes.hints)
    }

    /// What this bed told reaches another one, as old as it is.
    pub(crate) fn reaches(&mut self, other: &mut Bed, age_ms: u64) -> Vec<Heard> {
        let hints = self.told();
        let hear = |it: Hint| other.hear(&Hint { age: Millis(age_ms), ..it });
        hints.into_iter().map(hear).collect()
    }
}

fn pair(tiers: &[&str]) -> (Bed, Bed) {
    (Bed::of(tiers).in_fleet(1), Bed::of(tiers).in_fleet(2))
}

#[test]
fn a_429_that_one_replica_met_keeps_the_other_away() {
    let (mut a, mut b) = pair(&["x", "y"]);
    a.hit("x", come_back(429, 20_000));
    assert_eq!(a.reaches(&mut b, 5), [Heard::Taken]);
    assert_eq!(b.request(|_| ok()).visited, ["y"]);
    b.wait(19_994);
    assert_eq!(b.request(|_| ok()).visited, ["y"]);
    b.wait(1);
    assert_eq!(b.request(|_| ok()).visited, ["x"], "the age was taken off the time");
    assert!(b.told().iter().all(|it| !matches!(it.fact, Fact::Window { .. })));
}

#[test]
fn a_window_is_cut_to_an_hour_and_a_second_hearing_extends_nothing() {
    let (mut a, mut b) = pair(&["x", "y"]);
    a.hit("x", come_back(429, 1_000));
    let mut hint = a.told()[0];
    let Fact::Window { remaining, .. } = &mut hint.fact else { panic!("{hint:?}") };
    *remaining = Millis::minutes(600);
    assert_eq!(b.hear(&hint), Heard::Taken);
    assert_eq!(b.snap("x").deadline, Some(b.now.after(Millis::minutes(60))));
    b.wait(60_000);
    assert_eq!(b.hear(&Hint { age: Millis(60_000), ..hint }), Heard::Known);
    assert_eq!(b.snap("x").deadline.map(|it| it.0), Some(3_600_000));
    let late = Hint { age: Millis::minutes(61), ..hint };
    assert_eq!(b.hear(&late), Heard::Late);
}

#[test]
fn a_rejected_key_is_known_everywhere_and_so_is_its_healing() {
    let (mut a, mut b) = pair(&["x", "y"]);
    a.hit("x", status(401));
    let set = a.told();
    assert!(matches!(set[0].fact, Fact::Exclusion { of: Excluded::Key(_), .. }));
    assert_eq!(b.hear(&set[0]), Heard::Taken);
    assert_eq!(b.request(|_| ok()).visited, ["y"]);
    a.hit("x", ok());
    assert_eq!(a.reaches(&mut b, 3), [Heard::Taken]);
    assert_eq!(b.request(|_| ok()).visited, ["x"]);
    assert_eq!(b.hear(&set[0]), Heard::Known, "an old one does not come back");
    assert_eq!(b.request(|_| ok()).visited, ["x"]);
}

/// I22: without the hint nothing would stand against the only target.
#[test]
fn an_exclusion_that_was_heard_never_takes_the_last_candidate_away() {
    let (mut a, mut b) = pair(&["x"]);
    a.hit("x", status(401));
    assert_eq!(a.reaches(&mut b, 0), [Heard::Taken]);
    let mut held = Vec::new();
    for _ in 0..500 {
        let mut plan = b.begin("main", &Default::default());
        held.push((b.next_permit(&mut plan), plan));
    }
    assert_eq!(held.len(), 500, "more than the limit of last resorts");
}

#[test]
fn an_outage_met_elsewhere_costs_one_failure_and_is_not_told_again() {
    let (mut a, mut b) = pair(&["x", "y"]);
    a.trip("x");
    let told = a.told();
    assert!(matches!(told[0].fact, Fact::Opened { of: BreakerOf::Backend(_), .. }));
    assert_eq!(told.len(), 1);
    assert_eq!(b.hear(&told[0]), Heard::Taken);
    assert_eq!((b.state("x"), b.snap("x").rank.0), (State::Closed, 0), "I22");
    assert_eq!(b.request(|_| ok()).visited, ["x"], "rank and tier do not change");
    assert_eq!(b.hear(&told[0]), Heard::Known, "a success overtook it");
    b.hit("x", status(500));
    assert_eq!(b.state("x"), State::Closed, "the success ended the suspicion");

    let mut c = Bed::of(&["x", "y"]).in_fleet(3);
    c.hear(&told[0]);
    c.hit("x", status(500));
    assert_eq!(c.state("x"), State::Open);
    assert_eq!(c.told(), [], "I25");
    c.wait(30_000);
    c.hit("x", status(500));
    assert_eq!((c.state("x"), c.told()), (State::Open, vec![]), "two strikes are not three");
    c.wait(30_000);
    c.hit("x", status(500));
    assert_eq!(c.told().len(), 1, "three in a row are evidence of its own");
}

#[test]
fn suspicion_ends_with_the_time_that_the_breaker_stays_open() {
    let (mut a, mut b) = pair(&["x"]);
    a.trip("x");
    a.reaches(&mut b, 10_000);
    b.wait(20_000);
    b.hit("x", status(500));
    assert_eq!(b.state("x"), State::Closed);
}

#[test]
fn the_endpoint_of_a_suspected_target_is_probed_within_a_second() {
    let (a, b) = pair(&["x"]);
    let (mut a, mut b) = (a.endpoint("p", "x").in_fleet(1), b.endpoint("p", "x").in_fleet(2));
    for _ in 0..3 {
        a.hit("x", crate::bed::refused());
    }
    assert_eq!(a.told().len(), 2, "its own breaker and its endpoint's");
    a.core.endpoint_probed(a.now, "p", crate::bed::probed(false), false, &mut a.notes);
    a.wait(30_000);
    a.hit("x", crate::bed::refused());
    b.wait(30_000);
    a.reaches(&mut b, 0);
    let at = b.core.contact("p").probe_at.expect("a probe is wanted");
    assert!((b.now..b.now.after(Millis(1_000))).contains(&at), "{at:?}");
}

#[test]
fn operators_act_on_the_whole_fleet() {
    let (mut a, mut b) = pair(&["x", "y"]);
    a.core.switch_off(a.now, "x", Some(tidegate_core::time::Now(60_000)), &mut a.notes);
    assert_eq!(a.reaches(&mut b, 0), [Heard::Taken]);
    assert_eq!(b.request(|_| ok()).visited, ["y"]);
    b.core.switch_off(b.now, "x", None, &mut b.notes);
    assert_eq!(b.reaches(&mut a, 0), [Heard::Taken]);
    assert_eq!(a.request(|_| ok()).visited, ["x"]);

    a.core.hold(a.now, "x", tidegate_core::time::Now(60_000), &mut a.notes);
    a.reaches(&mut b, 0);
    assert_eq!(b.state("x"), State::Open);
    b.core.reset(b.now, "x", &mut b.notes);
    let told = b.told();
    let is_end = |it: &Hint| matches!(it.fact, Fact::Action { action: OperatorAction::Hold, .. });
    assert!(told.iter().any(is_end), "{told:?}");
    let reset = *told.iter().find(|it| matches!(it.fact, Fact::Reset { .. })).expect("it is told");
    assert_eq!(a.hear(&Hint { age: Millis(30_001), ..reset }), Heard::Late);
    assert_eq!(a.state("x"), State::Open);
    assert_eq!(a.hear(&reset), Heard::Taken);
    assert_eq!(a.state("x"), State::Closed);
    a.trip("x");
    assert_eq!(a.hear(&reset), Heard::Known, "an event happens once");
    assert_eq!(a.state("x"), State::Open);
}

#[test]
fn an_action_of_another_replica_lasts_no_longer_than_one_of_this() {
    let (mut a, mut b) = pair(&["x", "y"]);
    let day = 24 * 60 * 60 * 1000;
    a.core.switch_off(a.now, "x", Some(tidegate_core::time::Now(9 * day)), &mut a.notes);
    assert_eq!(a.reaches(&mut b, 0), [Heard::Taken]);
    b.wait(day - 1);
    assert_eq!(b.request(|_| ok()).visited, ["y"]);
    b.wait(1);
    assert_eq!(b.request(|_| ok()).visited, ["x"]);
}

#[test]
fn of_two_drains_at_once_the_higher_writer_counts_everywhere() {
    let (mut a, mut b) = pair(&["x", "y"]);
    a.core.switch_off(a.now, "x", Some(tidegate_core::time::Now(60_000)), &mut a.notes);
    b.core.switch_off(b.now, "x", Some(tidegate_core::time::Now(10_000)), &mut b.notes);
    let (from_a, from_b) = (a.told(), b.told());
    assert_eq!(a.hear(&from_b[0]), Heard::Taken);
    assert_eq!(b.hear(&from_a[0]), Heard::Known);
    for bed in [&mut a, &mut b] {
        bed.wait(10_000);
        assert_eq!(bed.request(|_| ok()).visited, ["x"]);
    }
}

#[test]
fn a_reset_overtakes_the_windows_that_were_told_before_it() {
    let (mut a, mut b) = pair(&["x", "y"]);
    a.hit("x", come_back(429, 20_000));
    let window = a.told()[0];
    b.wait(1_000);
    b.core.reset(b.now, "x", &mut b.notes);
    assert_eq!(b.hear(&Hint { age: Millis(1_000), ..window }), Heard::Known);
    b.wait(1_000);
    assert_eq!(b.hear(&window), Heard::Taken, "told after the reset");
}

#[test]
fn what_is_unknown_or_ones_own_is_ignored_and_alone_nothing_is_told() {
    let (mut a, mut b) = pair(&["x", "y"]);
    a.hit("x", come_back(429, 20_000));
    let window = a.told()[0];
    assert_eq!(a.hear(&window), Heard::Own);
    let mut other = Bed::of(&["z"]).in_fleet(3);
    assert_eq!(other.hear(&window), Heard::Unknown);
    let mut private = Bed::of(&["x", "y"]).in_fleet(4).with(|settings| {
        settings.backends[0].fleet_names.clear();
    });
    assert_eq!(private.hear(&window), Heard::Unknown);
    private.hit("x", come_back(429, 20_000));
    private.trip("x");
    assert_eq!(private.told(), []);
    let mut alone = Bed::of(&["x", "y"]);
    alone.trip("x");
    alone.session("s", |_| ok());
    alone.core.reset(alone.now, "x", &mut alone.notes);
    assert_eq!((alone.told(), alone.hear(&window)), (vec![], Heard::Unknown));
    assert_eq!(b.hear(&window), Heard::Taken);
}

#[test]
fn a_replica_that_starts_later_gets_what_is_held() {
    let (mut a, mut late) = pair(&["x", "y", "z"]);
    a.hit("x", come_back(429, 20_000));
    a.hit("y", status(401));
    a.core.switch_off(a.now, "z", Some(tidegate_core::time::Now::NEVER), &mut a.notes);
    a.session("s", |_| ok());
    for hint in a.core.holdings(a.now) {
        assert_eq!(late.hear(&hint), Heard::Taken, "{hint:?}");
    }
    let (pins, next) = a.core.held_pins(a.now, None, 10);
    assert_eq!((pins.len(), next), (1, None));
    assert_eq!(late.hear(&pins[0]), Heard::Taken);
    assert_eq!(late.pinned("s"), a.pinned("s"));
    let ranks = |bed: &Bed| ["x", "y", "z"].map(|it| bed.snap(it).rank.0);
    assert_eq!(ranks(&late), ranks(&a));
    assert_eq!(late.request(|_| ok()).visited, ["x"], "a window is less than an exclusion");
}

#[test]
fn a_first_lock_is_told_at_leisure_only_where_others_choose_the_same_without_it() {
    let haste = |bed: &mut Bed| {
        let told = bed.told();
        let is_pin = |it: &&Hint| matches!(it.fact, Fact::Pin { .. });
        told.iter().filter(is_pin).map(|it| it.haste).collect::<Vec<_>>()
    };
    let by = |tactic| Bed::of(&["a b", "c"]).route(|route| route.tactic = tactic).in_fleet(1);
    for (tactic, wanted) in [
        (Tactic::Random, Haste::Leisurely),
        (Tactic::Weighted, Haste::Leisurely),
        (Tactic::RoundRobin, Haste::BeforeNextTurn),
        (Tactic::LeastBusy, Haste::BeforeNextTurn),
        (Tactic::LeastLatency, Haste::BeforeNextTurn),
    ] {
        let mut bed = by(tactic);
        bed.session("s", |_| ok());
        assert_eq!(haste(&mut bed), [wanted], "{tactic:?}");
        // A replica that sees nothing against the target would choose otherwise.
        bed.trip("a");
        drop(bed.told());
        bed.session("t", |_| ok());
        assert_eq!(haste(&mut bed), [Haste::BeforeNextTurn], "{tactic:?} with a target open");
        // Others have heard of the pin that the session leaves.
        assert_eq!(bed.pinned("t").as_deref(), Some("b"));
        bed.trip("b");
        drop(bed.told());
        bed.session("t", |_| ok());
        assert_eq!(haste(&mut bed), [Haste::AtOnce], "{tactic:?} moved");
    }
}

#[test]
fn a_hold_that_ended_elsewhere_ends_here() {
    let (mut a, mut b) = pair(&["x", "y"]);
    a.core.hold(a.now, "x", tidegate_core::time::Now(60_000), &mut a.notes);
    a.reaches(&mut b, 0);
    b.core.reset(b.now, "x", &mut b.notes);
    let is_end = |it: &Hint| matches!(it.fact, Fact::Action { action: OperatorAction::Hold, .. });
    let end = b.told().into_iter().find(is_end).expect("it is told");
    assert_eq!(a.state("x"), State::Open);
    assert_eq!(a.hear(&end), Heard::Taken);
    assert_eq!(a.state("x"), State::Closed);
}

#[test]
fn a_key_that_one_target_refuses_elsewhere_still_serves_its_other_targets() {
    let beds = || Bed::of(&["x", "y"]).keys("k1 k2", "x y").in_fleet(2);
    let mut bed = beds();
    let of = Excluded::Pair { backend: name("x"), key: name("k1") };
    let (remaining, reason) = (Some(Millis(300_000)), MarkReason::AuthRejected);
    let stamp = Stamp { version: 1, writer: ReplicaId(1) };
    let fact = Fact::Exclusion { of, remaining, reason };
    let hint = Hint { age: Millis::ZERO, stamp, fact, haste: Haste::AtOnce };
    let key = |bed: &mut Bed, target: &str| bed.take(target).permit.key();
    let usual = (key(&mut beds(), "x"), key(&mut beds(), "y"));
    assert_eq!(bed.hear(&hint), Heard::Taken);
    assert_ne!(key(&mut bed, "x"), usual.0);
    assert_eq!(key(&mut bed, "y"), usual.1);
}

//! Picking one of a tier: a pure function of what was read and a draw.
//!
//! Every tactic sees only candidates that the ranks left over: there is no breaker-blind path.
//! Ties go to chance under `random`, `weighted` and `least_latency`, to file order under
//! `round_robin` and `least_busy`.
//!
//! A new session of a fleet has drawn a lot for each candidate (weighted rendezvous hashing): under
//! `random` and `weighted` the lots take the place of the draw, so that replicas with the same view
//! agree before the session's pin has travelled.

use crate::{
    draw::{below, fraction, mix},
    read::Read,
    settings::Tactic,
};

/// Picks one of the `peers` (positions in `reads`, in file order; `places` in their tier).
/// `None` only if there are no peers.
pub(crate) fn pick(
    tactic: Tactic,
    reads: &[Read],
    is_peer: impl Fn(&Read) -> bool,
    draw: u64,
    cursor: u32,
) -> Option<usize> {
    let peers = || reads.iter().enumerate().filter(|(_, read)| is_peer(read));
    let nth_peer = |n: u64| peers().nth(n as usize).map(|(index, _)| index);
    let count = || peers().count() as u64;
    match tactic {
        Tactic::Random | Tactic::Weighted if peers().all(|(_, read)| read.lot.is_some()) => {
            by_lot(peers(), tactic)
        }
        Tactic::Random => nth_peer(below(draw, count())),
        Tactic::RoundRobin => {
            let from_cursor = peers().find(|(_, read)| u32::from(read.candidate) >= cursor);
            from_cursor.or_else(|| peers().next()).map(|(index, _)| index)
        }
        Tactic::Weighted => {
            let total: u64 = peers().map(|(_, read)| u64::from(read.weight)).sum();
            if total == 0 {
                return nth_peer(below(draw, count()));
            }
            let mut left = below(draw, total);
            peers()
                .find(|(_, read)| {
                    let is_hit = left < u64::from(read.weight);
                    left = left.saturating_sub(u64::from(read.weight));
                    is_hit
                })
                .map(|(index, _)| index)
        }
        Tactic::LeastLatency => least_latency(reads, count(), nth_peer, draw),
        Tactic::LeastBusy => peers().min_by_key(|(_, read)| read.in_flight).map(|(index, _)| index),
    }
}

/// The peer whose lot wins. By weight it wins with the least time of arrival, where arrivals come
/// at random at the rate of the weight: so in proportion to the weights, and a peer that leaves
/// moves only the sessions it had.
fn by_lot<'a>(
    peers: impl Iterator<Item = (usize, &'a Read)> + Clone,
    tactic: Tactic,
) -> Option<usize> {
    let lot = |read: &Read| read.lot.unwrap_or_default();
    let is_weighed = peers.clone().any(|(_, read)| read.weight > 0) && tactic == Tactic::Weighted;
    if !is_weighed {
        return peers.max_by_key(|(_, read)| lot(read)).map(|(index, _)| index);
    }
    // Half a step above zero: the logarithm of zero is no number.
    let share = |read: &Read| fraction(lot(read)) + f64::EPSILON / 4.0;
    let arrives = |read: &Read| -share(read).ln() / f64::from(read.weight);
    let weighed = peers.filter(|(_, read)| read.weight > 0);
    let first = weighed.min_by(|(_, a), (_, b)| arrives(a).total_cmp(&arrives(b)));
    first.map(|(index, _)| index)
}

/// The better of two drawn at random.
fn least_latency(
    reads: &[Read],
    count: u64,
    nth_peer: impl Fn(u64) -> Option<usize>,
    draw: u64,
) -> Option<usize> {
    let first = below(draw, count);
    // The second is drawn among the others.
    let second = match below(mix(draw), count.saturating_sub(1)) {
        other if other >= first => other + 1,
        other => other,
    };
    let first = nth_peer(first)?;
    // The order of the two is random, so keeping the first in a tie leaves ties to chance.
    let Some(second) = nth_peer(second) else { return Some(first) };
    let is_better = expected(&reads[second]) < expected(&reads[first]);
    Some(if is_better { second } else { first })
}

/// What to expect of a target: one never heard of goes first, but while its first answer is still
/// awaited it goes last. Otherwise a new target that hangs would draw every request until its
/// first-content limit; so it draws one.
fn expected(read: &Read) -> (u8, f64) {
    match read.latency {
        None if read.in_flight == 0 => (0, 0.0),
        Some(latency) => (1, latency.expected_ms()),
        None => (2, 0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{breaker::State, latency::LatencyRead, rank::Rank, time::Millis};

    fn read(candidate: u16) -> Read {
        Read {
            candidate,
            tier: 0,
            rank: Rank(0),
            is_full: false,
            is_limited: false,
            is_over_limit: false,
            is_held: false,
            state: State::Closed,
            generation: 0,
            endpoint_generation: 0,
            in_flight: 0,
            weight: 1,
            lot: None,
            latency: None,
        }
    }

    fn sampled(peak_ms: f64) -> Option<LatencyRead> {
        Some(LatencyRead { peak_ms, age: Millis::ZERO })
    }

    fn shares(tactic: Tactic, reads: &[Read]) -> Vec<u32> {
        let mut shares = vec![0; reads.len()];
        let mut draw = 9;
        for _ in 0..6000 {
            draw = mix(draw);
            shares[pick(tactic, reads, |_| true, draw, 0).expect("there are peers")] += 1;
        }
        shares
    }

    #[test]
    fn no_peers_give_no_pick_under_any_tactic() {
        use Tactic::*;
        for tactic in [Random, RoundRobin, Weighted, LeastLatency, LeastBusy] {
            assert_eq!(pick(tactic, &[], |_| true, 5, 0), None);
            assert_eq!(pick(tactic, &[read(0)], |_| false, 5, 0), None);
        }
    }

    #[test]
    fn random_gives_each_the_same_chance() {
        for share in shares(Tactic::Random, &[read(0), read(1), read(2)]) {
            assert!((1850..2150).contains(&share), "{share}");
        }
    }

    #[test]
    fn weighted_follows_the_weights_and_zero_is_picked_only_alone() {
        let weighted = |weight, candidate| Read { weight, ..read(candidate) };
        let reads = [weighted(0, 0), weighted(1, 1), weighted(2, 2)];
        let found = shares(Tactic::Weighted, &reads);
        assert_eq!(found[0], 0);
        assert!((1850..2150).contains(&found[1]), "{found:?}");
        assert_eq!(pick(Tactic::Weighted, &reads[..1], |_| true, 77, 0), Some(0));
    }

    #[test]
    fn round_robin_starts_at_the_cursor_and_wraps() {
        let reads = [read(0), read(1), read(2)];
        let pick_from =
            |cursor| pick(Tactic::RoundRobin, &reads, |read| read.candidate != 1, 0, cursor);
        assert_eq!(pick_from(0), Some(0));
        assert_eq!(pick_from(1), Some(2));
        assert_eq!(pick_from(3), Some(0));
    }

    #[test]
    fn least_busy_takes_the_fewest_in_flight_then_file_order() {
        let busy = |in_flight, candidate| Read { in_flight, ..read(candidate) };
        let reads = [busy(2, 0), busy(1, 1), busy(1, 2)];
        assert_eq!(pick(Tactic::LeastBusy, &reads, |_| true, 3, 0), Some(1));
    }

    #[test]
    fn least_latency_takes_the_faster_of_two_and_ties_at_random() {
        let slow = |peak_ms, candidate| Read { latency: sampled(peak_ms), ..read(candidate) };
        assert_eq!(shares(Tactic::LeastLatency, &[slow(90.0, 0), slow(10.0, 1)]), [0, 6000]);
        let tied = shares(Tactic::LeastLatency, &[slow(5.0, 0), slow(5.0, 1)]);
        assert!((2850..3150).contains(&tied[0]), "{tied:?}");
        let three = shares(Tactic::LeastLatency, &[slow(9.0, 0), slow(1.0, 1), slow(5.0, 2)]);
        assert_eq!(three[0], 0, "the slowest of three never wins a pair");
    }

    #[test]
    fn a_target_without_samples_goes_first_until_it_is_being_tried() {
        let known = Read { latency: sampled(1.0), ..read(0) };
        let awaited = Read { in_flight: 1, ..read(1) };
        assert_eq!(shares(Tactic::LeastLatency, &[known, read(1)]), [0, 6000]);
        assert_eq!(shares(Tactic::LeastLatency, &[known, awaited]), [6000, 0]);
    }
}

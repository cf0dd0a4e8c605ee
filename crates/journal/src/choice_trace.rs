//! What the choices of one request read, in few bytes.
//!
//! With the draw and the cursor of an [`Attempt`](tidegate_core::attempt::Attempt), this is what an
//! exact replay of a choice needs. Verdicts and their words are worked out when somebody asks.
//!
//! Rules kept here:
//! - On the common path, where nothing stands against any candidate, a choice costs one allocation
//!   and sixteen bytes per candidate.
//! - What stands against a candidate is asked for only where its rank says that something does.

use tidegate_core::{
    LatencyRead,
    breaker::State,
    explain::{Obstacle, obstacles_of},
    rank::Rank,
    read::Read,
    route::{Needs, Route},
    time::Now,
};

/// What was read of one candidate for one choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CandidateRead {
    /// The number of the choice within its request.
    pub choice: u8,
    /// What stood against it.
    pub rank: Rank,
    /// The state of its own breaker.
    pub state: State,
    flags: u8,
    /// Its number in the route.
    pub candidate: u16,
    /// Attempts in flight; 65 535 stands for more.
    pub in_flight: u16,
    /// The generation of its own breaker.
    pub generation: u32,
    /// The generation of its endpoint's breaker.
    pub endpoint_generation: u32,
}

const FULL: u8 = 1;
const OVER_LIMIT: u8 = 2;
const HELD: u8 = 4;

impl CandidateRead {
    fn of(choice: u8, read: &Read) -> Self {
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        Self {
            choice,
            rank: read.rank,
            state: read.state,
            flags: flag(read.is_full, FULL)
                | flag(read.is_over_limit, OVER_LIMIT)
                | flag(read.is_held, HELD),
            candidate: read.candidate,
            in_flight: read.in_flight.min(u32::from(u16::MAX)) as u16,
            generation: read.generation as u32,
            endpoint_generation: read.endpoint_generation as u32,
        }
    }

    /// Every slot of its half-open breaker was taken.
    #[must_use]
    pub const fn is_full(&self) -> bool {
        self.flags & FULL != 0
    }

    /// It was over the limit of last resorts.
    #[must_use]
    pub const fn is_over_limit(&self) -> bool {
        self.flags & OVER_LIMIT != 0
    }

    /// It was inside its promotion hold.
    #[must_use]
    pub const fn is_held(&self) -> bool {
        self.flags & HELD != 0
    }
}

/// What stood against a candidate at a choice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FoundObstacle {
    /// The number of the choice within its request.
    pub choice: u8,
    /// The candidate's number in the route.
    pub candidate: u16,
    /// What it was.
    pub obstacle: Obstacle,
}

/// The latency that a choice read of a candidate, where its tactic asks for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FoundLatency {
    /// The number of the choice within its request.
    pub choice: u8,
    /// The candidate's number in the route.
    pub candidate: u16,
    /// What was read.
    pub latency: LatencyRead,
}

/// What all choices of a request read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChoiceTrace {
    /// Of every candidate of every choice, in order.
    pub reads: Vec<CandidateRead>,
    /// Of those that something stood against.
    pub obstacles: Vec<FoundObstacle>,
    /// Of those with a latency, under the tactic `least_latency`.
    pub latencies: Vec<FoundLatency>,
}

/// Choices that are kept of one request: more than `max_hops` allows by default.
const CHOICES_MAX: usize = 64;

impl ChoiceTrace {
    /// The next choice was made, from these reads. (Not inlined, for `cargo xtask bench journal`.)
    #[inline(never)]
    pub fn note(&mut self, number: usize, reads: &[Read], route: &Route, now: Now, needs: &Needs) {
        if number >= CHOICES_MAX {
            return;
        }
        let choice = number as u8;
        self.reads.reserve_exact(reads.len());
        let mut has_obstacles = false;
        for read in reads {
            has_obstacles |= !read.rank.is_clear();
            self.reads.push(CandidateRead::of(choice, read));
            if let Some(latency) = read.latency {
                self.latencies.push(FoundLatency { choice, candidate: read.candidate, latency });
            }
        }
        if has_obstacles {
            self.note_obstacles(choice, reads, route, now, needs);
        }
    }

    #[cold]
    fn note_obstacles(
        &mut self,
        choice: u8,
        reads: &[Read],
        route: &Route,
        now: Now,
        needs: &Needs,
    ) {
        for read in reads.iter().filter(|read| !read.rank.is_clear()) {
            let candidate = read.candidate;
            let found = obstacles_of(route, candidate, now, needs);
            let noted = |obstacle| FoundObstacle { choice, candidate, obstacle };
            self.obstacles.extend(found.into_iter().map(noted));
        }
    }

    /// The choice of this number came to nothing and is made again.
    pub fn forget(&mut self, number: usize) {
        self.reads.retain(|it| usize::from(it.choice) != number);
        self.obstacles.retain(|it| usize::from(it.choice) != number);
        self.latencies.retain(|it| usize::from(it.choice) != number);
    }

    /// Bytes on the heap.
    #[must_use]
    pub fn heap_bytes(&self) -> usize {
        self.reads.capacity() * size_of::<CandidateRead>()
            + self.obstacles.capacity() * size_of::<FoundObstacle>()
            + self.latencies.capacity() * size_of::<FoundLatency>()
    }
}

#[cfg(test)]
mod tests {
    use super::CandidateRead;

    #[test]
    fn a_candidate_takes_sixteen_bytes() {
        assert_eq!(size_of::<CandidateRead>(), 16);
    }
}

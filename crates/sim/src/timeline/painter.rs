//! Paints lanes while a run goes on: a fixed number of slices of time, whatever happens in them.

use tidegate_core::time::Now;

use crate::lanes::Cell;

/// Three columns of the widest picture each; memory does not grow with time or traffic.
const SLICES: usize = 480;

/// The cells of every backend.
#[derive(Clone, Debug)]
pub(super) struct Painter {
    view: View,
    /// Slices of the first backend, then of the second, …
    cells: Vec<Cell>,
    /// Attempts of all backends, by slice; of each replica's lanes their own.
    totals: Vec<u32>,
    /// Lanes that belong together.
    group: usize,
    breakers: Vec<Painted>,
}

/// The span of time that is painted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct View {
    pub(super) from: Now,
    pub(super) to: Now,
}

/// What is known of a backend's breakers, and how far it has been painted.
#[derive(Clone, Copy, Debug, Default)]
struct Painted {
    /// The worse of its own and its endpoint's deadline; `None` = both closed.
    open_until: Option<Now>,
    to: Now,
}

impl Painter {
    /// Lanes in groups of so many.
    pub(super) fn new(lanes: usize, group: usize, view: View) -> Self {
        let group = group.max(1);
        Self {
            view,
            cells: vec![Cell::default(); lanes * SLICES],
            totals: vec![0; lanes.div_ceil(group) * SLICES],
            group,
            breakers: vec![Painted::default(); lanes],
        }
    }

    pub(super) fn has(&self, lane: usize) -> bool {
        lane < self.breakers.len()
    }

    pub(super) fn attempt(&mut self, now: Now, backend: usize) {
        if let Some(slice) = self.slice(now) {
            let cell = &mut self.cells[backend * SLICES + slice];
            cell.attempts = cell.attempts.saturating_add(1);
            let total = &mut self.totals[backend / self.group * SLICES + slice];
            *total = total.saturating_add(1);
        }
    }

    /// Something was wrong with it from a moment to a moment.
    pub(super) fn trouble(&mut self, backend: usize, from: Now, to: Now) {
        self.paint(backend, from, to, |cell| cell.had_trouble = true);
    }

    /// From `now` on its breakers are open until a moment, half-open after it; `None`: closed.
    pub(super) fn breaker(&mut self, now: Now, backend: usize, open_until: Option<Now>) {
        let Painted { open_until: was_until, to } = self.breakers[backend];
        if let Some(until) = was_until {
            self.paint(backend, to, until.min(now), |cell| cell.was_open = true);
            self.paint(backend, until.max(to), now, |cell| cell.was_half_open = true);
        }
        self.breakers[backend] = Painted { open_until, to: now };
    }

    /// The cells of one backend, painted up to the end.
    pub(super) fn finish(&mut self, backend: usize) -> Vec<Cell> {
        let end = self.view.to;
        let open_until = self.breakers[backend].open_until;
        if self.breakers[backend].to < end {
            self.breaker(end, backend, open_until);
        }
        let cells = &self.cells[backend * SLICES..(backend + 1) * SLICES];
        let totals = &self.totals[backend / self.group * SLICES..];
        cells.iter().zip(totals).map(|(cell, of)| Cell { of: *of, ..*cell }).collect()
    }

    fn paint(&mut self, backend: usize, from: Now, to: Now, brush: impl Fn(&mut Cell)) {
        let start = from.max(self.view.from);
        let Some(first) = self.slice(start).filter(|_| start <= to) else { return };
        let last = self.slice(Now(to.0.saturating_sub(1)).max(start)).unwrap_or(SLICES - 1);
        for slice in first..=last {
            brush(&mut self.cells[backend * SLICES + slice]);
        }
    }

    /// The slice of a moment; `None` outside of the view.
    fn slice(&self, now: Now) -> Option<usize> {
        let (since, span) =
            (now.0.checked_sub(self.view.from.0)?, self.view.to.since(self.view.from));
        let slice = since.saturating_mul(SLICES as u64) / span.0.max(1);
        (slice < SLICES as u64).then_some(slice as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(to: u64) -> View {
        View { from: Now(0), to: Now(to) }
    }

    #[test]
    fn a_breaker_is_open_until_its_deadline_and_half_open_after_it() {
        let mut painter = Painter::new(1, 1, view(480));
        painter.breaker(Now(100), 0, Some(Now(130)));
        painter.breaker(Now(140), 0, None);
        let cells = painter.finish(0);
        let open = cells.iter().filter(|it| it.was_open).count();
        let half_open = cells.iter().filter(|it| it.was_half_open).count();
        assert_eq!((open, half_open), (30, 10));
        assert!(cells[100].was_open && !cells[99].was_open && cells[139].was_half_open);
    }

    #[test]
    fn what_lies_after_the_end_is_not_painted() {
        let mut painter = Painter::new(1, 1, view(10));
        painter.attempt(Now(10), 0);
        painter.trouble(0, Now(20), Now(30));
        painter.breaker(Now(50), 0, Some(Now(60)));
        assert!(painter.finish(0).iter().all(|cell| *cell == Cell::default()));
    }

    #[test]
    fn a_timeline_of_no_length_is_painted() {
        let mut painter = Painter::new(1, 1, view(0));
        painter.attempt(Now(0), 0);
        assert_eq!(painter.finish(0).len(), SLICES);
    }

    #[test]
    fn a_view_shows_what_began_before_it() {
        let mut painter = Painter::new(1, 1, View { from: Now(100), to: Now(580) });
        painter.breaker(Now(50), 0, Some(Now(110)));
        painter.attempt(Now(99), 0);
        let cells = painter.finish(0);
        assert_eq!(cells.iter().filter(|it| it.was_open).count(), 10);
        assert!(cells[0].was_open && cells[479].was_half_open && cells[0].attempts == 0);
    }
}

//! Lines on their way to stderr: a bounded queue and the thread that empties it.
//!
//! Why it exists: whoever reads stderr may stop reading, and then a write blocks for as long as
//! that lasts. The threads that serve must not notice.
//!
//! Rules kept here:
//! - A line is handed over under a short lock; nobody who logs ever waits for a write. The writer
//!   is woken for the first line only: it takes all that have come, and writes them at once.
//! - The queue is bounded. Lines that find it full are dropped and counted, and how many is told
//!   once, when writing goes on.
//! - At the end of the process what is queued is written, but nobody waits for ever.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Lines that wait: about a megabyte, some seconds of a busy access log.
const LINES_MAX: usize = 4096;
/// What the buffers keep of a burst.
const KEPT: usize = 64 * 1024;

/// The queue.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The lines that wait, one after the other, and how many they are.
    text: String,
    lines: usize,
    dropped: u64,
    is_writing: bool,
}

impl Queue {
    /// A queue whose thread writes with `write`, and tells with `tell` how many lines were dropped.
    /// The thread lives as long as the process.
    pub(super) fn start(
        write: impl Fn(&str) + Send + 'static,
        tell: impl Fn(u64) + Send + 'static,
    ) -> std::io::Result<Arc<Self>> {
        let queue = Arc::new(Self::default());
        let emptied = Arc::clone(&queue);
        let run = move || {
            let mut text = String::new();
            loop {
                emptied.empty_once(&mut text, &write, &tell);
            }
        };
        std::thread::Builder::new().name("tidegate-log".into()).spawn(run)?;
        Ok(queue)
    }

    /// Hands a line over.
    pub(super) fn push(&self, line: &str) {
        let mut state = self.lock();
        if state.lines >= LINES_MAX {
            state.dropped = state.dropped.saturating_add(1);
            return;
        }
        state.text.push_str(line);
        state.lines += 1;
        // One that is writing looks again before it waits.
        let is_waiting = state.lines == 1 && !state.is_writing;
        drop(state);
        if is_waiting {
            self.changed.notify_all();
        }
    }

    /// Waits until everything is written, for so long at most.
    pub(super) fn flush(&self, within: Duration) {
        let is_busy = |state: &mut State| state.lines > 0 || state.is_writing;
        drop(self.changed.wait_timeout_while(self.lock(), within, is_busy));
    }

    /// Waits for lines and writes them; `text` is the writer's own buffer.
    fn empty_once(&self, text: &mut String, write: &impl Fn(&str), tell: &impl Fn(u64)) {
        let waiting = self.changed.wait_while(self.lock(), |state| state.lines == 0);
        let mut state = waiting.unwrap_or_else(PoisonError::into_inner);
        text.clear();
        text.shrink_to(KEPT);
        std::mem::swap(&mut state.text, text);
        state.lines = 0;
        state.is_writing = true;
        drop(state);
        write(text);
        let mut state = self.lock();
        state.is_writing = false;
        let dropped = std::mem::take(&mut state.dropped);
        drop(state);
        self.changed.notify_all();
        if dropped > 0 {
            tell(dropped);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Longer than anything that is meant to come, on a busy machine too.
    const PATIENCE: Duration = Duration::from_secs(30);

    #[test]
    fn lines_are_written_in_order_and_a_flush_waits_for_them() {
        let (written, lines) = mpsc::channel();
        let write = move |line: &str| written.send(line.to_owned()).expect("the test listens");
        let queue = Queue::start(write, |_| {}).expect("a thread");
        (0..100).for_each(|number| queue.push(&format!("{number}\n")));
        queue.flush(PATIENCE);
        let lines: String = lines.try_iter().collect();
        let expected: String = (0..100).map(|number| format!("{number}\n")).collect();
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_stuck_reader_stops_nobody_and_what_was_dropped_is_told_once() {
        let (begun, has_begun) = mpsc::channel();
        let (go_on, may_go_on) = mpsc::channel::<()>();
        let (told, was_told) = mpsc::channel();
        // Stuck in its first write until it is let go.
        let write = move |_: &str| {
            begun.send(()).ok();
            may_go_on.recv().ok();
        };
        let queue = Queue::start(write, move |count| {
            told.send(count).ok();
        })
        .expect("a thread");
        queue.push("stuck");
        has_begun.recv_timeout(PATIENCE).expect("it begins to write");
        // All of this would never return if it waited for the write.
        (0..LINES_MAX + 7).for_each(|number| queue.push(&number.to_string()));
        assert_eq!(queue.lock().lines, LINES_MAX, "bounded");
        queue.flush(Duration::from_millis(10));
        assert!(was_told.try_recv().is_err(), "nothing can be told yet");
        drop(go_on);
        assert_eq!(was_told.recv_timeout(PATIENCE), Ok(7));
        queue.flush(PATIENCE);
        assert!(was_told.try_recv().is_err(), "told once");
    }
}

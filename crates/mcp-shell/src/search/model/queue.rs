//! Where texts wait for the model's thread: requests of searches first, then tools.
//!
//! Rules kept here: at most [`REQUESTS_MAX`] requests and [`FILLS_MAX`] versions of the tools wait;
//! what comes beyond is refused at once. A closed queue gives nothing out any more.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tidegate_search::{Index, Sentences};
use tokio::sync::{oneshot, watch};

/// At 10 ms each, what a search would wait for at all.
const REQUESTS_MAX: usize = 16;
/// As many versions of the tools as there are indexes.
const FILLS_MAX: usize = 8;

/// Tools to be encoded, and who is told.
pub(super) struct ToolsFill {
    pub(super) index: Arc<Index>,
    pub(super) told: watch::Sender<Option<Arc<Sentences>>>,
}

/// A request to be encoded, and who waits for it.
pub(super) struct AskedText {
    pub(super) text: String,
    pub(super) told: oneshot::Sender<Option<Vec<f32>>>,
}

/// What the thread does next.
pub(super) enum Next {
    Request(AskedText),
    Tools(ToolsFill),
    /// What it was at.
    Continue,
    End,
}

/// What waits.
#[derive(Default)]
pub(super) struct ModelQueue {
    waiting: Mutex<WaitingTexts>,
    came: Condvar,
}

#[derive(Default)]
struct WaitingTexts {
    requests: VecDeque<AskedText>,
    fills: VecDeque<ToolsFill>,
    is_closed: bool,
}

impl ModelQueue {
    /// Puts a request down; nothing if too many wait.
    pub(super) fn put_request(&self, text: &str) -> Option<oneshot::Receiver<Option<Vec<f32>>>> {
        let mut waiting = self.waiting();
        // Searches that have gone on without an answer make room.
        waiting.requests.retain(|it| !it.told.is_closed());
        if waiting.is_closed || waiting.requests.len() >= REQUESTS_MAX {
            return None;
        }
        let (told, answer) = oneshot::channel();
        waiting.requests.push_back(AskedText { text: text.to_owned(), told });
        self.came.notify_one();
        Some(answer)
    }

    /// Puts tools down; whether there was room.
    pub(super) fn put_tools(&self, fill: ToolsFill) -> bool {
        let mut waiting = self.waiting();
        waiting.fills.retain(|it| !it.told.is_closed());
        if waiting.is_closed || waiting.fills.len() >= FILLS_MAX {
            return false;
        }
        waiting.fills.push_back(fill);
        self.came.notify_one();
        true
    }

    /// Waits for what is next, unless the thread has something to go on with.
    pub(super) fn next(&self, is_busy: bool) -> Next {
        let mut waiting = self.waiting();
        loop {
            if waiting.is_closed {
                return Next::End;
            }
            if let Some(request) = waiting.requests.pop_front() {
                return Next::Request(request);
            }
            if is_busy {
                return Next::Continue;
            }
            if let Some(fill) = waiting.fills.pop_front() {
                return Next::Tools(fill);
            }
            waiting = self.came.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Ends the thread, and whatever waits for it.
    pub(super) fn close(&self) {
        let mut waiting = self.waiting();
        waiting.is_closed = true;
        waiting.requests.clear();
        waiting.fills.clear();
        self.came.notify_all();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.waiting().is_closed
    }

    fn waiting(&self) -> MutexGuard<'_, WaitingTexts> {
        // Every change is whole when the lock is let go.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tidegate_search::Document;

    use super::*;

    fn fill() -> (ToolsFill, watch::Receiver<Option<Arc<Sentences>>>) {
        let index = Arc::new(Index::build(vec![Document::plain("s", "t", "", [])]));
        let (told, known) = watch::channel(None);
        (ToolsFill { index, told }, known)
    }

    #[test]
    fn requests_go_before_tools_and_before_what_is_under_way() {
        let queue = ModelQueue::default();
        let (tools, _known) = fill();
        assert!(queue.put_tools(tools));
        let _answer = queue.put_request("first").expect("there is room");
        assert!(matches!(queue.next(true), Next::Request(it) if it.text == "first"));
        assert!(matches!(queue.next(true), Next::Continue));
        assert!(matches!(queue.next(false), Next::Tools(_)));
    }

    #[test]
    fn only_so_many_wait_and_those_that_gave_up_make_room() {
        let queue = ModelQueue::default();
        let mut answers: Vec<_> =
            (0..REQUESTS_MAX).map(|_| queue.put_request("x").expect("there is room")).collect();
        assert!(queue.put_request("one too many").is_none());
        answers.pop();
        assert!(queue.put_request("in its place").is_some());
        let mut known: Vec<_> = Vec::new();
        for _ in 0..FILLS_MAX {
            let (tools, receiver) = fill();
            assert!(queue.put_tools(tools));
            known.push(receiver);
        }
        let (tools, _known) = fill();
        assert!(!queue.put_tools(tools));
        known.pop();
        let (tools, _known) = fill();
        assert!(queue.put_tools(tools));
    }

    #[test]
    fn a_closed_queue_takes_nothing_and_lets_go_of_those_who_wait() {
        let queue = ModelQueue::default();
        let mut answer = queue.put_request("x").expect("there is room");
        queue.close();
        assert!(answer.try_recv().is_err() && queue.put_request("y").is_none());
        assert!(matches!(queue.next(false), Next::End));
    }
}

//! A future that is polled only when it asked to be.
//!
//! Why it exists: a connection waits for its client and, besides, for the drain of the gateway, an
//! eviction, an end of patience, none of which is likely to come. Polled with everything else, each
//! of them takes a lock and looks at its waker every time that a byte arrives. Wrapped in this, it
//! is polled once, and then when somebody wakes it.
//!
//! Rules kept here:
//! - A wake is never lost: it is marked before the task is woken, and the mark is cleared before
//!   the future is polled.
//! - The task may change: whoever polls is woken.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// A future that sleeps until it is woken.
#[derive(Debug)]
pub struct Dormant<F> {
    future: F,
    bell: Arc<Bell>,
    /// The waker of the bell, which the future gets.
    ring: Waker,
    /// The task that polled last: what the bell has, without its lock.
    task: Option<Waker>,
}

/// What wakes the task, and knows for whom.
#[derive(Debug)]
struct Bell {
    has_rung: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.has_rung.store(true, Ordering::Release);
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(task) = task {
            task.wake();
        }
    }
}

impl<F: Future + Unpin> Dormant<F> {
    /// A future that has not been polled yet.
    pub fn new(future: F) -> Self {
        let bell = Arc::new(Bell { has_rung: AtomicBool::new(true), task: Mutex::new(None) });
        let ring = Waker::from(Arc::clone(&bell));
        Self { future, bell, ring, task: None }
    }
}

impl<F: Future + Unpin> Future for Dormant<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.get_mut();
        if !this.task.as_ref().is_some_and(|task| task.will_wake(cx.waker())) {
            this.task = Some(cx.waker().clone());
            let mut task = this.bell.task.lock().unwrap_or_else(PoisonError::into_inner);
            task.clone_from(&this.task);
        }
        // After the waker is in its place: a ring before that is seen here, a later one wakes it.
        let has_rung = &this.bell.has_rung;
        if !has_rung.load(Ordering::Acquire) || !has_rung.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        Pin::new(&mut this.future).poll(&mut Context::from_waker(&this.ring))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::poll_fn;
    use std::pin::pin;
    use std::rc::Rc;

    use tokio::sync::Notify;

    use super::*;

    /// Counts how often it is woken.
    #[derive(Default)]
    struct Count(std::sync::atomic::AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn it_is_polled_when_it_was_woken_and_not_before() {
        let (polls, stored) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(None)));
        let (counted, kept) = (Rc::clone(&polls), Rc::clone(&stored));
        let mut dormant = Dormant::new(poll_fn(move |cx| {
            counted.set(counted.get() + 1);
            kept.set(Some(cx.waker().clone()));
            if counted.get() == 3 { Poll::Ready(()) } else { Poll::Pending }
        }));
        let count = Arc::new(Count::default());
        let task = Waker::from(Arc::clone(&count));
        let mut poll = || Pin::new(&mut dormant).poll(&mut Context::from_waker(&task));
        for _ in 0..5 {
            assert!(poll().is_pending());
        }
        assert_eq!(polls.get(), 1);
        let ring: Waker = stored.take().expect("it was polled");
        ring.wake_by_ref();
        assert_eq!(count.0.load(Ordering::Relaxed), 1, "the task hears of it");
        assert!(poll().is_pending() && poll().is_pending());
        assert_eq!(polls.get(), 2);
        ring.wake();
        assert!(poll().is_ready());
    }

    #[test]
    fn whoever_polled_last_is_woken() {
        let notify = Notify::new();
        let notified = pin!(notify.notified());
        let mut dormant = Dormant::new(notified);
        let counts = [Arc::new(Count::default()), Arc::new(Count::default())];
        for count in &counts {
            let task = Waker::from(Arc::clone(count));
            assert!(Pin::new(&mut dormant).poll(&mut Context::from_waker(&task)).is_pending());
        }
        notify.notify_one();
        let woken = counts.each_ref().map(|it| it.0.load(Ordering::Relaxed));
        assert_eq!(woken, [0, 1]);
        assert!(Pin::new(&mut dormant).poll(&mut Context::from_waker(Waker::noop())).is_ready());
    }
}

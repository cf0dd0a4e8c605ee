//! A module of a woven crate: which fault is switched on, and what runs through its functions.

use std::io::Write as _;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

static CHOSEN: LazyLock<u32> = LazyLock::new(|| {
    std::env::var("TIDEGATE_FAULT").ok().and_then(|it| it.parse().ok()).unwrap_or(0)
});
static REACHED_FILE: LazyLock<Option<std::ffi::OsString>> =
    LazyLock::new(|| std::env::var_os("TIDEGATE_FAULT_REACHED"));
static REACHED: [AtomicBool; 8192] = [const { AtomicBool::new(false) }; 8192];

/// The fault that is on, or 0 if it is none of this function's.
pub(crate) fn chosen(function: usize, faults: &[u32]) -> u32 {
    if let Some(file) = &*REACHED_FILE
        && !REACHED[function].swap(true, Ordering::Relaxed)
        && let Ok(mut file) = std::fs::OpenOptions::new().create(true).append(true).open(file)
    {
        drop(file.write_all(format!("{function}\n").as_bytes()));
    }
    let chosen = *CHOSEN;
    if chosen != 0 && faults.contains(&chosen) { chosen } else { 0 }
}

/// One of two types that do the same.
#[derive(Clone)]
pub(crate) enum Sum<A, B> {
    A(A),
    B(B),
}

impl<T, A: Iterator<Item = T>, B: Iterator<Item = T>> Iterator for Sum<A, B> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        match self {
            Self::A(it) => it.next(),
            Self::B(it) => it.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Self::A(it) => it.size_hint(),
            Self::B(it) => it.size_hint(),
        }
    }
}

impl<T, A, B> DoubleEndedIterator for Sum<A, B>
where
    A: DoubleEndedIterator<Item = T>,
    B: DoubleEndedIterator<Item = T>,
{
    fn next_back(&mut self) -> Option<T> {
        match self {
            Self::A(it) => it.next_back(),
            Self::B(it) => it.next_back(),
        }
    }
}

impl<T, A, B> ExactSizeIterator for Sum<A, B>
where
    A: ExactSizeIterator<Item = T>,
    B: ExactSizeIterator<Item = T>,
{
}

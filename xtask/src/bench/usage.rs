//! What a process used, as the kernel counts it, and which core it may use.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

/// Who runs where.
#[derive(Clone, Debug)]
pub(super) struct Cores {
    /// The contender's own core.
    pub(super) contender: String,
    /// For the load and the upstreams.
    pub(super) others: String,
}

impl Cores {
    /// The last core is the contender's; with a single core everybody shares it.
    pub(super) fn of_this_machine() -> Self {
        let count = std::thread::available_parallelism().map_or(1, usize::from);
        let others = match count {
            1 | 2 => "0".to_owned(),
            count => format!("0-{}", count - 2),
        };
        Self { contender: (count - 1).to_string(), others }
    }
}

/// Keeps this process, and what it starts, off the contender's core.
pub(super) fn pin_self(cores: &Cores) -> anyhow::Result<()> {
    let pid = std::process::id().to_string();
    let pinned = Command::new("taskset").args(["-acp", &cores.others, &pid]).output();
    if !pinned.context("cannot start `taskset`")?.status.success() {
        bail!("`taskset` cannot keep this process on core {}", cores.others);
    }
    Ok(())
}

/// Nanoseconds that all threads of a process and of its children have run.
pub(super) fn cpu_ns(pid: u32) -> anyhow::Result<u64> {
    let mut total = 0;
    for pid in family(pid) {
        let folder = format!("/proc/{pid}/task");
        let threads = fs::read_dir(&folder).with_context(|| format!("cannot list `{folder}`"))?;
        for thread in threads.flatten() {
            // A thread may end between the listing and the reading.
            let text = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
            total += text.split(' ').next().and_then(|it| it.parse::<u64>().ok()).unwrap_or(0);
        }
    }
    Ok(total)
}

/// Clock ticks that a process has run in its own code and in the kernel's.
pub(super) fn user_and_kernel_ticks(pid: u32) -> anyhow::Result<(u64, u64)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).context("the process has gone")?;
    ticks_of(&text).context("the kernel writes `stat` in another way")
}

/// Behind the name in brackets, which may hold anything, they are the 12th and 13th.
fn ticks_of(stat: &str) -> Option<(u64, u64)> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// Resident memory of a process and its children in KiB. Pages that they share count for each.
pub(super) fn memory_kib(pid: u32) -> u64 {
    family(pid).into_iter().map(|pid| status_kib(pid, "VmRSS:")).sum()
}

/// The most it has been since the process began.
pub(super) fn peak_memory_kib(pid: u32) -> u64 {
    family(pid).into_iter().map(|pid| status_kib(pid, "VmHWM:")).sum()
}

fn status_kib(pid: u32, key: &str) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}

/// A process and its children: nginx works in children, the others in threads.
pub(super) fn family(pid: u32) -> Vec<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let children = fs::read_to_string(Path::new(&path)).unwrap_or_default();
    let children = children.split_whitespace().filter_map(|child| child.parse().ok());
    std::iter::once(pid).chain(children).collect()
}

#[cfg(test)]
mod tests {
    use super::{cpu_ns, memory_kib, peak_memory_kib, ticks_of, user_and_kernel_ticks};

    #[test]
    fn ticks_are_found_behind_a_name_with_brackets_and_spaces() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194560 10 0 0 0 123 45 0 0 20 0 1 0 99 0 0";
        assert_eq!(ticks_of(stat), Some((123, 45)));
        assert_eq!(ticks_of("7 (a) S 1"), None);
        assert!(user_and_kernel_ticks(std::process::id()).is_ok());
    }

    #[test]
    fn this_process_has_run_and_has_memory() {
        let pid = std::process::id();
        assert!(cpu_ns(pid).expect("this process exists") > 0);
        assert!(memory_kib(pid) > 0);
        // Other tests of this process allocate meanwhile, and the kernel counts in batches.
        let now = memory_kib(pid);
        assert!(peak_memory_kib(pid) + 1024 >= now);
    }
}

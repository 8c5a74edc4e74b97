//! How long a thread had no CPU although it could have run, call by call. In: the kernel's counts for
//! the calling thread. Out: [`Runnable`], that time between two readings, and how much of it was
//! preemption.
//!
//! ```text
//!   /proc/thread-self/schedstat:  ns on a CPU, ns runnable without a CPU, number of turns
//!   getrusage(RUSAGE_THREAD):     voluntary switches (slept), involuntary switches (preempted)
//! ```
//!
//! A thread is runnable without a CPU after it was woken and after it was preempted. The first is
//! part of waiting for a lock; the second is not, it mostly hits the one that *holds* the lock. The
//! kernel has one sum for both. Where a call had one kind of switches only, all of the sum is of that
//! kind; where it had both, the sum is divided by their numbers, which is a guess. So the time
//! preempted is an estimate, and the whole sum is its upper bound.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use crate::sys::{self, Switches};

/// The counts of one thread at the last reading.
pub(crate) struct Preemption {
    schedstat: File,
    last: Counts,
}

/// Time runnable without a CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Runnable {
    /// After a waking or after a preemption.
    pub(crate) total: Duration,
    /// After a preemption: an estimate.
    pub(crate) preempted: Duration,
}

impl Runnable {
    pub(crate) fn plus(self, other: Runnable) -> Runnable {
        Runnable { total: self.total + other.total, preempted: self.preempted + other.preempted }
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    runnable: Duration,
    switches: Switches,
}

impl Preemption {
    /// Starts with the calling thread. None without CONFIG_SCHED_INFO or /proc.
    pub(crate) fn of_this_thread() -> Option<Preemption> {
        let schedstat = File::open("/proc/thread-self/schedstat").ok()?;
        let last = read(&schedstat).ok()?;
        Some(Preemption { schedstat, last })
    }

    /// Starts anew.
    pub(crate) fn forget(&mut self) -> io::Result<()> {
        self.since_last().map(drop)
    }

    /// Time runnable since the last reading. To be called by the thread that it was made by.
    pub(crate) fn since_last(&mut self) -> io::Result<Runnable> {
        let now = read(&self.schedstat)?;
        let between = between(self.last, now);
        self.last = now;
        Ok(between)
    }
}

fn read(schedstat: &File) -> io::Result<Counts> {
    // Three numbers of at most 20 digits.
    let mut bytes = [0; 64];
    let len = schedstat.read_at(&mut bytes, 0)?;
    let runnable = runnable(bytes.get(..len).unwrap_or_default())
        .ok_or_else(|| io::Error::other("schedstat has no run-queue delay"))?;
    Ok(Counts { runnable, switches: sys::thread_switches()? })
}

/// The second number.
fn runnable(schedstat: &[u8]) -> Option<Duration> {
    let text = std::str::from_utf8(schedstat).ok()?;
    text.split_ascii_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

fn between(before: Counts, now: Counts) -> Runnable {
    let total = now.runnable.saturating_sub(before.runnable);
    let involuntary = now.switches.involuntary.saturating_sub(before.switches.involuntary);
    let voluntary = now.switches.voluntary.saturating_sub(before.switches.voluntary);
    let share = involuntary as f64 / (involuntary + voluntary).max(1) as f64;
    Runnable { total, preempted: total.mul_f64(share) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(runnable: u64, voluntary: u64, involuntary: u64) -> Counts {
        let switches = Switches { voluntary, involuntary };
        Counts { runnable: Duration::from_millis(runnable), switches }
    }

    #[test]
    fn only_the_share_of_involuntary_switches_is_preemption() {
        let cases = [
            (counts(12, 3, 5), 0),
            (counts(12, 2, 6), 2),
            (counts(12, 3, 6), 1),
            (counts(14, 3, 8), 3),
            (counts(10, 2, 6), 0),
        ];
        for (now, milliseconds) in cases {
            let between = between(counts(10, 2, 5), now);
            assert_eq!(between.preempted, Duration::from_millis(milliseconds), "{now:?}");
            assert_eq!(between.total, now.runnable - Duration::from_millis(10), "{now:?}");
        }
    }

    #[test]
    fn the_run_queue_delay_is_the_second_number_of_schedstat() {
        assert_eq!(runnable(b"7 42 3\n"), Some(Duration::from_nanos(42)));
        for text in [&b""[..], b"7", b"7 -2 3", b"\xff 4 5"] {
            assert_eq!(runnable(text), None);
        }
    }
}

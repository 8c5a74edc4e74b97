//! How long a thread was kept from its CPU by others, call by call. In: the kernel's counts for the
//! calling thread. Out: the time between two readings that it was runnable because another thread
//! had taken its CPU.
//!
//! ```text
//!   /proc/thread-self/schedstat:  ns on a CPU, ns runnable without a CPU, number of turns
//!   getrusage(RUSAGE_THREAD):     voluntary switches (slept), involuntary switches (preempted)
//! ```
//!
//! A thread is runnable without a CPU after it was woken and after it was preempted. The first is
//! part of waiting for a lock; the second is not, it mostly hits the one that *holds* the lock. The
//! kernel has one sum for both, so where a call had both kinds of switches the sum is divided by
//! their numbers.

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

    /// Time preempted since the last reading. To be called by the thread that it was made by.
    pub(crate) fn since_last(&mut self) -> io::Result<Duration> {
        let now = read(&self.schedstat)?;
        let preempted = preempted(self.last, now);
        self.last = now;
        Ok(preempted)
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

fn preempted(before: Counts, now: Counts) -> Duration {
    let runnable = now.runnable.saturating_sub(before.runnable);
    let involuntary = now.switches.involuntary.saturating_sub(before.switches.involuntary);
    let voluntary = now.switches.voluntary.saturating_sub(before.switches.voluntary);
    match involuntary + voluntary {
        0 => Duration::ZERO,
        switches => runnable.mul_f64(involuntary as f64 / switches as f64),
    }
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
            let preempted = preempted(counts(10, 2, 5), now);
            assert_eq!(preempted, Duration::from_millis(milliseconds), "{now:?}");
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

//! The report's own quality: what was lost, guessed, left open or not recorded.

use crate::correlate::{Counts, SleepCounts};
use crate::model::{Cpu, Nanos};

/// Everything a reader must know before believing a number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trust {
    /// Records read, by what they were.
    pub records: u64,
    /// How begins and ends were paired.
    pub counts: Counts,
    /// Waits known by sleeps in lock code alone; `None` where those were not recorded.
    pub sleeps: Option<SleepCounts>,
    /// Lost records by CPU; `None` where the record does not say which.
    pub lost: Vec<(Option<Cpu>, u64)>,
    /// Times the kernel throttled sampling.
    pub throttled: u64,
    /// Wakings and context switches were recorded so long, not until the end: they came too fast.
    pub sched_until: Option<Nanos>,
    /// Records of wakings and context switches that were lost: releasers and phases around them are
    /// unknown, and no wait is uncertain.
    pub lost_sched: u64,
    /// Records that could not be decoded, by reason.
    pub unreadable: Vec<(String, u64)>,
    /// Records that came later than their round allows.
    pub out_of_order: u64,
    /// CPU samples read.
    pub cpu_samples: u64,
    /// The event that sampled CPUs, and its period in ns (1/frequency for counters).
    pub cpu_event: Option<(String, Nanos)>,
    /// What measuring adds to each wait.
    pub floor: Option<Nanos>,
    /// Wait time with a caller's name, out of all.
    pub caller_named: Nanos,
    /// Wait time with a lock's name that says more than its caller, out of all.
    pub lock_named: Nanos,
    /// Wait time charged to who handed the lock over; `None` where wakings were not recorded.
    pub charged: Option<Nanos>,
    /// All wait time, for the three above.
    pub wait: Nanos,
    /// Where kernel symbols came from, or why there are none.
    pub kernel_symbols: String,
    /// Keys folded into their parents because a table was full.
    pub folded_keys: u64,
    /// The rung of the ladder: what was traced on this kernel.
    pub rung: String,
    /// CPU time of the recorder, and its share of the recording.
    pub recorder_cpu: Option<Nanos>,
    /// CPUs that came or went while recording.
    pub cpus_changed: Vec<u32>,
    /// What was not recorded or done differently, in words.
    pub notes: Vec<String>,
}

impl Trust {
    /// The rung of a recording that has no events from which waits could be told.
    pub const NO_EVENTS: &str = "neither contention events nor CPU samples";

    /// The rung of a recording that has CPU samples and no contention events.
    pub const SAMPLES_ONLY: &str = "CPU samples only: spinning is seen, sleeping is not";

    /// The rung of a recording that has stacks of switches and no contention events.
    pub const SLEEPS_ONLY: &str = "no contention events: a wait is a run of sleeps on one stack of lock \
        code (sched_switch) with less than 100 us of CPU time between them; locks have no addresses: \
        releasers are those of the lock where its path names the only one, else of the end of the wait";

    /// The same with CPU samples.
    pub const SLEEPS_AND_SAMPLES: &str = "no contention events: a wait is a run of sleeps on one stack of \
        lock code (sched_switch) with less than 100 us of CPU time between them, or spinning seen by \
        CPU samples; locks have no addresses: releasers are those of the lock where its path names the \
        only one, else of the end of the wait";

    /// Whether waits are known by sleeps alone: the kernel has no contention events, or they were not
    /// recorded.
    pub fn sleeps_only(&self) -> bool {
        matches!(self.rung.as_str(), Trust::SLEEPS_ONLY | Trust::SLEEPS_AND_SAMPLES)
    }

    /// Whether waits were seen to begin and never to end, because the ends were not recorded.
    pub fn begins_only(&self) -> bool {
        self.counts.begins > 0 && self.counts.ends == 0
    }
}

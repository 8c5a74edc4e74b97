//! What recording costs so far: the CPU time of all threads of lockprof, not of what it records.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Since a recording began.
#[derive(Debug)]
pub(super) struct Cost {
    begun: Instant,
    before: Duration,
    cpus: u32,
}

impl Cost {
    /// The recording begins, on a machine with so many CPUs.
    pub(super) fn begin(cpus: u32) -> Cost {
        Cost { begun: Instant::now(), before: cpu_time(), cpus }
    }

    /// How long ago that was.
    pub(super) fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// CPU time since then.
    pub(super) fn cpu(&self) -> Duration {
        cpu_time().saturating_sub(self.before)
    }

    /// Its share of all CPUs, 0 to 1.
    pub(super) fn share(&self) -> f64 {
        let all = self.elapsed().as_secs_f64() * f64::from(self.cpus);
        if all > 0.0 { self.cpu().as_secs_f64() / all } else { 0.0 }
    }
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

//! One thread that holds the mmap lock at stated times, and threads that come while it does.
//! In: number of waiters, time, how long and how often it is held. Out: [`Outcome`] with the groups
//! `holder` and `waiters`, and what these must have waited.
//!
//! ```text
//!   holder     |==== hold ====|               |==== hold ====|          one every `every`
//!   waiter 1       ^----------|.                  ^----------|.         ^ comes, . reads for microseconds
//!   waiter 2            ^-----|.                       ^-----|.
//! ```
//!
//! A waiter that comes at `a` into a hold until `h` has to wait for `h - a`. Both are read from clocks
//! outside of any wait: `a` before the call, `h` behind the holder's. What the waiters measured of
//! their own waiting plays no part in it, nor does what a profiler measured: this is what to check
//! either by. The waiters take the lock for read, since readers queue at once; writers spin first.

use std::time::{Duration, Instant};

use crate::crew::{self, Job, Pace};
use crate::outcome::Label;
use crate::region::{Calibrated, Side, Sizing};
use crate::{Error, Hold, Outcome};

/// Holds of the mmap lock by a schedule: the threads of the group `waiters` (comm `hammer-waiter`)
/// come while the one of the group `holder` (comm `hammer-holder`) has the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// Threads that wait.
    pub waiters: usize,
    /// How long to run.
    pub seconds: Duration,
    /// How long the lock is held each time.
    pub hold: Hold,
    /// From the begin of one hold to that of the next.
    pub every: Duration,
}

impl Schedule {
    /// Measures the calls alone, then follows the schedule for `seconds`.
    pub fn run(&self) -> Result<Outcome, Error> {
        let hold = self.hold.target()?.ok_or(Error::ShortConvoy)?;
        if self.every < hold * 2 {
            return Err(Error::Schedule { hold, every: self.every });
        }
        let calls = (self.seconds.as_nanos() / self.every.as_nanos()) as usize + 2;
        let mut logs: Vec<Log> = (0..=self.waiters).map(|_| Log::of(calls)).collect();
        let tallies = crew::run(self.jobs(hold, &mut logs)?, self.seconds)?;
        let (holder, waiters) = tallies.split_at(1);
        let holder = (Label { name: "holder", comm: HOLDER, call: "mprotect" }, holder);
        let waiting = (Label { name: "waiters", comm: WAITER, call: "mincore" }, waiters);
        let mut outcome = Outcome::new("schedule", "mmap_lock", vec![holder, waiting]);
        let expected = logs.split_first().map(|(holds, arrivals)| expected(holds, arrivals));
        if let Some(group) = outcome.groups.iter_mut().find(|group| group.comm == WAITER) {
            group.expected_wait_ns = expected.and_then(|time| u64::try_from(time.as_nanos()).ok());
        }
        Ok(outcome)
    }

    /// The holder begins its holds on time, the waiters spread their arrivals over the middle half.
    fn jobs<'a>(&self, hold: Duration, logs: &'a mut [Log]) -> Result<Vec<Job<'a>>, Error> {
        let long = Sizing::find(Side::Write, self.hold)?;
        let short = Sizing::find(Side::Read, Hold::Short)?;
        let steps = u32::try_from(self.waiters.max(1)).unwrap_or(u32::MAX);
        let mut jobs = Vec::with_capacity(logs.len());
        for (thread, log) in (0..).zip(logs) {
            let (name, sizing, offset) = match thread {
                0 => (HOLDER, long, Duration::ZERO),
                n => (WAITER, short, hold / 4 + hold * (n - 1) / (2 * steps)),
            };
            let pace = Pace::Slots { offset, every: self.every };
            jobs.push(logged(name, sizing, pace, log)?);
        }
        Ok(jobs)
    }
}

const HOLDER: &str = "hammer-holder";
const WAITER: &str = "hammer-waiter";

/// When each call of one thread began and ended. Its memory is there before the threads start: more
/// would have to be mapped under the very lock.
struct Log {
    calls: Vec<(Instant, Instant)>,
    used: usize,
}

impl Log {
    fn of(calls: usize) -> Log {
        let now = Instant::now();
        Log { calls: vec![(now, now); calls], used: 0 }
    }

    /// A thread makes one call in a slot of the schedule, so there is room for each.
    fn add(&mut self, begin: Instant, end: Instant) {
        if let Some(call) = self.calls.get_mut(self.used) {
            *call = (begin, end);
            self.used += 1;
        }
    }

    fn calls(&self) -> &[(Instant, Instant)] {
        self.calls.get(..self.used).unwrap_or_default()
    }
}

/// The call of `sizing` on a region of its own, each written into the log.
fn logged<'a>(
    name: &'static str,
    sizing: Sizing,
    pace: Pace,
    log: &'a mut Log,
) -> Result<Job<'a>, Error> {
    let Calibrated { mut region, uncontended } = sizing.region()?;
    let call_name = sizing.call_name(&region);
    let call = Box::new(move || {
        let begin = Instant::now();
        sizing.call(&mut region)?;
        log.add(begin, Instant::now());
        Ok(())
    });
    Ok(Job { name, call_name, call, uncontended, pace })
}

/// What the waiters must have waited: from each arrival to the end of the hold that it came into.
fn expected(holds: &Log, arrivals: &[Log]) -> Duration {
    let holds = holds.calls();
    let wait = |arrival: Instant| {
        let at = holds.partition_point(|&(_, end)| end <= arrival);
        match holds.get(at) {
            Some(&(begin, end)) if begin <= arrival => end - arrival,
            _ => Duration::ZERO,
        }
    };
    arrivals.iter().flat_map(Log::calls).map(|&(arrival, _)| wait(arrival)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_into_a_hold_waits_for_its_end_and_who_comes_between_for_nothing() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let log = |calls: &[(u64, u64)]| {
            let mut log = Log::of(calls.len());
            calls.iter().for_each(|&(begin, end)| log.add(at(begin), at(end)));
            log
        };
        let holds = log(&[(10, 30), (50, 75)]);
        let arrivals = [log(&[(5, 5), (12, 31), (74, 80)]), log(&[(30, 30), (50, 75), (90, 90)])];
        assert_eq!(expected(&holds, &arrivals), Duration::from_millis(18 + 1 + 25));
    }

    #[test]
    fn a_full_log_keeps_what_it_has() {
        let now = Instant::now();
        let mut log = Log::of(1);
        log.add(now, now);
        log.add(now, now);
        assert_eq!(log.calls().len(), 1);
    }
}

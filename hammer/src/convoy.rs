//! One thread that keeps the mmap lock for long, and threads that need it for microseconds.
//! In: number of short threads, time, the long hold. Out: [`Outcome`] with the groups `long` and
//! `short`, the truth that blame for waiting can be checked against.
//!
//! ```text
//!   long    |== hold ==|pause|== hold ==|pause|      its uncontended time is its hold time
//!   short 1   |---wait--|.|    |--wait--|.|          . a hold of microseconds
//!   short 2     |--wait--|.|     |-wait--|.|
//! ```
//!
//! All threads sleep between their calls, so that the waits have one cause: the short ones wait
//! for the long one and hardly for each other, and few threads are runnable at a time. The wait of the long thread itself is a small difference of large numbers: it
//! is printed, but it is the short threads' wait that is exact (to microseconds a call).

use std::time::Duration;

use crate::crew::{self, Job, Pace};
use crate::mmap_sem::job;
use crate::outcome::Label;
use crate::region::{Side, Sizing};
use crate::{Error, Hold, Outcome};

/// A convoy behind one holder of the mmap lock: the threads of the group `short` (comm `hammer-short`)
/// wait for the one of the group `long` (comm `hammer-long`), hardly for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Convoy {
    /// Threads with short holds.
    pub short_threads: usize,
    /// How long to run.
    pub seconds: Duration,
    /// How long the one thread keeps the lock.
    pub hold: Hold,
}

impl Convoy {
    /// Measures the calls alone, then lets the threads contend for `seconds`.
    pub fn run(&self) -> Result<Outcome, Error> {
        let pause = self.hold.target()?.ok_or(Error::ShortConvoy)? / PAUSE_DIVISOR;
        let with_pause = |job: Job<'static>| Job { pace: Pace::Watch(pause), ..job };
        let long = Sizing::find(Side::Write, self.hold)?;
        let short = Sizing::find(Side::Write, Hold::Short)?;
        let mut jobs = vec![with_pause(job(LONG, long)?)];
        for _ in 0..self.short_threads {
            jobs.push(with_pause(job(SHORT, short)?));
        }
        let tallies = crew::run(jobs, self.seconds)?;
        let (long, short) = tallies.split_at(1);
        let long = (Label { name: "long", comm: LONG, call: "mprotect" }, long);
        let short = (Label { name: "short", comm: SHORT, call: "mprotect" }, short);
        Ok(Outcome::new("convoy", "mmap_lock", vec![long, short]))
    }
}

const LONG: &str = "hammer-long";
const SHORT: &str = "hammer-short";
/// All threads sleep for an eighth of the long hold after each call.
const PAUSE_DIVISOR: u32 = 8;

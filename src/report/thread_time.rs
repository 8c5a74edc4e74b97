//! Where the time of the target's threads went, in words, and what it was when it was hardly locks.
//!
//! In: the tables of thread time and the waits of the same tasks. Out: [`ThreadTime`], whose parts add
//! up to the lives of the threads as far as they were observed.

use std::collections::{BTreeMap, BTreeSet};

use lockprof_collectors::perf::attr::flag;

use super::build::{Cell, caller_of, task_name};
use super::sources::Sources;
use crate::analyse::{PartTime, TaskKey, ThreadPart};
use crate::model::{Context, Filter, Nanos};
use crate::recording::RecordedTarget;
use crate::report::TaskName;

/// Lock waits with less than this share of the time off CPU are little.
const LITTLE: f64 = 0.05;

/// With more unknown than this there is no verdict.
const TOO_MUCH_UNKNOWN: f64 = 0.1;

/// Time that threads slept in one function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SleepTime {
    /// The first function that is not the scheduler's; `None` where no stack was recorded.
    pub function: Option<String>,
    /// How often, how long.
    pub sum: PartTime,
}

/// Where the time of the threads went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadTime {
    /// Threads, as far as they were observed.
    pub threads: u64,
    /// Everything was recorded, not a command or processes.
    pub whole_machine: bool,
    /// With a CPU.
    pub on_cpu: Nanos,
    /// Without one, though they could run.
    pub runnable: Nanos,
    /// Asleep until they got a lock of the kernel.
    pub kernel_locks: Nanos,
    /// Asleep until they got a lock of user space.
    pub user_locks: Nanos,
    /// Asleep on something else, most first.
    pub sleeps: Vec<SleepTime>,
    /// Records are missing.
    pub unknown: Nanos,
    /// What all waits for kernel locks of these threads took, by the rows of the table: asleep, spinning
    /// and without a CPU.
    pub lock_wait: Nanos,
}

/// What threads did most instead of waiting for locks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instead {
    /// They had a CPU.
    Ran,
    /// They had none.
    NoCpu,
    /// They waited for locks of user space.
    UserLocks,
    /// They slept in this function.
    Slept(String),
}

/// Locks are little, and something else is more. Both are shares of the time off CPU; of all time when the
/// threads ran.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Waiting for locks of the kernel.
    pub locks: f64,
    /// What is more.
    pub instead: Instead,
    /// How much that is.
    pub share: f64,
}

impl ThreadTime {
    /// Asleep on something that is no lock.
    pub fn other_sleep(&self) -> Nanos {
        self.sleeps.iter().map(|sleep| sleep.sum.time).sum()
    }

    /// The lives of the threads: all parts.
    pub fn total(&self) -> Nanos {
        self.on_cpu + self.off_cpu() + self.unknown
    }

    /// Without a CPU, as far as it is known.
    pub fn off_cpu(&self) -> Nanos {
        self.runnable + self.kernel_locks + self.user_locks + self.other_sleep()
    }

    /// What the time was instead, when it was hardly locks.
    ///
    /// The whole machine always has threads that wait for work: there locks must be little beside the
    /// time on CPUs as well.
    pub fn verdict(&self) -> Option<Verdict> {
        let off_cpu = self.off_cpu();
        let locks = self.lock_wait.max(self.kernel_locks);
        let much_in = |whole: Nanos| share(locks, whole) >= LITTLE && locks > Nanos::ZERO;
        if self.total() == Nanos::ZERO
            || share(self.unknown, self.total()) > TOO_MUCH_UNKNOWN
            || much_in(off_cpu)
            || self.whole_machine && much_in(self.on_cpu)
        {
            return None;
        }
        let (whole, (time, instead)) = match share(off_cpu, self.total()) < LITTLE {
            true => (self.total(), (self.on_cpu, Some(Instead::Ran))),
            false => (off_cpu, self.most_off_cpu()),
        };
        let (locks, share) = (share(locks, whole), share(time, whole));
        instead.map(|instead| Verdict { locks, instead, share })
    }

    /// The largest known part of the time off CPU, locks of the kernel left out.
    fn most_off_cpu(&self) -> (Nanos, Option<Instead>) {
        let named = |sleep: &SleepTime| {
            sleep.function.clone().map(|name| (sleep.sum.time, Instead::Slept(name)))
        };
        let slept = self.sleeps.iter().find_map(named);
        let others = [(self.runnable, Instead::NoCpu), (self.user_locks, Instead::UserLocks)];
        let most = others.into_iter().chain(slept).max_by_key(|(time, _)| *time);
        most.map_or((Nanos::ZERO, None), |(time, instead)| {
            (time, (time > Nanos::ZERO).then_some(instead))
        })
    }

    /// Adds what another recording counted.
    pub(super) fn merge(&mut self, other: &ThreadTime) {
        // All fields by name: one that is added later cannot be left out.
        let ThreadTime {
            threads,
            whole_machine,
            on_cpu,
            runnable,
            kernel_locks,
            user_locks,
            sleeps,
            unknown,
            lock_wait,
        } = other;
        self.threads = self.threads.saturating_add(*threads);
        self.whole_machine |= *whole_machine;
        self.on_cpu += *on_cpu;
        self.runnable += *runnable;
        self.kernel_locks += *kernel_locks;
        self.user_locks += *user_locks;
        self.unknown += *unknown;
        self.lock_wait += *lock_wait;
        let own = std::mem::take(&mut self.sleeps);
        let both = own.into_iter().chain(sleeps.iter().cloned());
        self.sleeps = by_function(both.map(|sleep| (sleep.function, sleep.sum)));
    }
}

fn share(part: Nanos, whole: Nanos) -> f64 {
    if whole == Nanos::ZERO { 1.0 } else { part.0 as f64 / whole.0 as f64 }
}

/// The thread time of the tasks that pass the filter; `None` in a recording without switches. `cells`:
/// all waits of these tasks.
pub(super) fn thread_time(
    sources: &Sources<'_>,
    filter: &Filter,
    lock_wait: Nanos,
) -> Option<ThreadTime> {
    if !sources.switches {
        return None;
    }
    let mut time =
        ThreadTime { whole_machine: is_whole_machine(sources), lock_wait, ..ThreadTime::default() };
    let mut tasks = BTreeSet::new();
    let mut sleeps = Vec::new();
    for (key, sum) in sources.sums.lives() {
        if !is_wanted(&task_name(sources, Context::Task, key.task), filter) {
            continue;
        }
        if let TaskKey::Task(task) = key.task {
            tasks.insert(sources.tasks.info(task).id);
        }
        match key.part {
            ThreadPart::OnCpu => time.on_cpu += sum.time,
            ThreadPart::Runnable => time.runnable += sum.time,
            ThreadPart::KernelLock => time.kernel_locks += sum.time,
            ThreadPart::UserLock => time.user_locks += sum.time,
            ThreadPart::Unknown => time.unknown += sum.time,
            ThreadPart::Sleep(function) => {
                sleeps.push((caller_of(sources, function).map(str::to_owned), *sum));
            }
        }
    }
    time.threads = tasks.len() as u64;
    time.sleeps = by_function(sleeps.into_iter());
    Some(time)
}

/// Waiting for kernel locks of the tasks that pass the filter, wherever and for whichever lock.
pub(super) fn lock_wait(cells: &[Cell<'_>], filter: &Filter) -> Nanos {
    let wanted = cells.iter().filter(|cell| is_wanted(&cell.task, filter));
    wanted.map(|cell| cell.stat.wait()).sum()
}

/// Whether a task's time is asked for; the other parts of a filter speak of waits for locks.
pub(super) fn is_wanted(task: &TaskName, filter: &Filter) -> bool {
    (filter.comm.is_empty() || filter.comm.contains(&task.comm))
        && (filter.pid.is_empty() || filter.pid.contains(&task.pid))
        && (filter.tid.is_empty() || filter.tid.contains(&task.tid))
}

fn is_whole_machine(sources: &Sources<'_>) -> bool {
    match &sources.origin.settings {
        Some(settings) => settings.target == RecordedTarget::System,
        // perf lets the events of a command begin with it, and those of the machine at once.
        None => !sources.origin.events.iter().any(|e| e.attr.has(flag::ENABLE_ON_EXEC)),
    }
}

/// Most first, then by words; what has no name is last among equals.
fn by_function(sleeps: impl Iterator<Item = (Option<String>, PartTime)>) -> Vec<SleepTime> {
    let mut sums: BTreeMap<Option<String>, PartTime> = BTreeMap::new();
    sleeps.for_each(|(function, sum)| sums.entry(function).or_default().merge(&sum));
    let sleep = |(function, sum)| SleepTime { function, sum };
    let mut sleeps: Vec<SleepTime> = sums.into_iter().map(sleep).collect();
    sleeps.sort_by_key(|sleep| std::cmp::Reverse(sleep.sum.time));
    sleeps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleep(name: &str, ms: u64) -> SleepTime {
        let sum = PartTime { count: 1, time: Nanos(ms * 1_000_000) };
        SleepTime { function: (!name.is_empty()).then(|| name.to_owned()), sum }
    }

    /// Parts in ms: on CPU, runnable, kernel locks, user locks, unknown.
    fn of(parts: [u64; 5], sleeps: &[(&str, u64)]) -> ThreadTime {
        let [on_cpu, runnable, kernel_locks, user_locks, unknown] =
            parts.map(|ms| Nanos(ms * 1_000_000));
        ThreadTime {
            threads: 4,
            on_cpu,
            runnable,
            kernel_locks,
            user_locks,
            unknown,
            lock_wait: kernel_locks,
            sleeps: sleeps.iter().map(|(name, ms)| sleep(name, *ms)).collect(),
            ..ThreadTime::default()
        }
    }

    fn verdict(time: &ThreadTime) -> Option<(Instead, u32)> {
        time.verdict().map(|verdict| (verdict.instead, (verdict.share * 100.0).round() as u32))
    }

    #[test]
    fn a_verdict_says_what_the_time_off_cpu_was_when_it_was_not_locks() {
        let log = [("xlog_wait_on_iclog", 620), ("folio_wait_bit_common", 100)];
        let slept = |name: &str| Instead::Slept(name.into());
        for (parts, sleeps, wanted) in [
            ([500, 240, 40, 0, 0], &log[..], Some((slept("xlog_wait_on_iclog"), 62))),
            ([500, 240, 60, 0, 0], &log[..], None),
            ([500, 900, 1, 0, 0], &log[..], Some((Instead::NoCpu, 56))),
            ([500, 0, 0, 900, 0], &log[..], Some((Instead::UserLocks, 56))),
            ([500, 0, 0, 100, 0], &[("", 900)][..], Some((Instead::UserLocks, 10))),
            ([980, 20, 0, 0, 0], &[], Some((Instead::Ran, 98))),
            ([1000, 0, 0, 0, 0], &[], Some((Instead::Ran, 100))),
            ([500, 0, 0, 0, 300], &log[..], None),
            ([0, 0, 0, 0, 0], &[], None),
        ] {
            assert_eq!(verdict(&of(parts, sleeps)), wanted, "{parts:?}");
        }
    }

    #[test]
    fn waits_that_spun_or_had_no_cpu_count_against_the_verdict() {
        let mut time = of([500, 400, 10, 0, 0], &[("ep_poll", 600)]);
        assert!(time.verdict().is_some());
        time.lock_wait = Nanos(80_000_000);
        assert_eq!(time.verdict(), None);
    }

    #[test]
    fn threads_that_wait_for_work_do_not_hide_locks_of_the_whole_machine() {
        let mut time = of([500, 10, 40, 0, 0], &[("worker_thread", 100_000)]);
        assert!(time.verdict().is_some());
        time.whole_machine = true;
        assert_eq!(time.verdict(), None);
    }

    #[test]
    fn parts_add_up_and_merging_adds_every_part() {
        let mut a = of([1, 2, 3, 4, 5], &[("b", 6), ("a", 7)]);
        let b = of([10, 20, 30, 40, 50], &[("c", 8), ("b", 60)]);
        assert_eq!(a.total(), Nanos(28_000_000));
        let total = a.total() + b.total();
        a.merge(&b);
        assert_eq!(a.total(), total);
        assert_eq!(a.threads, 8);
        let names: Vec<_> = a.sleeps.iter().map(|sleep| sleep.function.as_deref()).collect();
        assert_eq!(names, [Some("b"), Some("c"), Some("a")]);
    }
}

//! What a workload did and what it cost. In: the tallies of the threads. Out: [`Outcome`], as text
//! (`Display`) or through serde, units in the names.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Fairness;
use crate::crew::Tally;
use crate::preemption::Runnable;

/// Version of the serialised [`Outcome`]; changes when a field changes its meaning or goes.
pub const SCHEMA_VERSION: u32 = 1;

/// What a workload did and what it cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// Name of the workload, as on the command line.
    pub workload: String,
    /// The lock, as lockprof names it.
    pub lock: String,
    /// CPUs that the process may run on.
    pub cpus: usize,
    /// From the common start to the end of the last call and of the pause after it.
    pub elapsed_ns: u64,
    /// The threads, by what they do.
    pub groups: Vec<Group>,
}

/// Threads that do the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Group {
    /// `readers`, `writers` ...
    pub name: String,
    /// The threads' comm, to filter by.
    pub comm: String,
    /// The calls that make up one operation.
    pub call: String,
    /// Number of threads.
    pub threads: usize,
    /// Operations of all threads.
    pub ops: u64,
    /// Operations a second of all threads.
    pub ops_per_second: f64,
    /// What one operation takes when nobody else wants the lock, mean over the threads. For the
    /// workloads on the mmap lock nearly all of it is spent holding the lock.
    pub uncontended_ns: u64,
    /// Wall time of one operation, mean.
    pub call_avg_ns: u64,
    /// Wall time of the longest operation.
    pub call_max_ns: u64,
    /// Wall time of the calls less their waiting, sum of all threads: how long the lock was held,
    /// preempted holders included. None with short holds and other locks than the mmap lock, where
    /// the calls do more than hold it.
    pub held_total_ns: Option<u64>,
    /// What they must have waited, by a schedule that is known from outside of the waits; none where
    /// there is no schedule.
    #[serde(default)]
    pub expected_wait_ns: Option<u64>,
    /// The estimate of waiting.
    pub waiting: Waiting,
    /// How evenly the threads got on; none without operations.
    pub fairness: Option<Fairness>,
}

/// Waiting of a group of threads, by their own clocks.
///
/// # How waiting is estimated
///
/// A thread cannot see when it gets a lock inside a system call. It can see how long the call took
/// (CLOCK_MONOTONIC), how long the same call takes when nobody else wants the lock (measured in CPU
/// time before the threads start), and how long it was kept off its CPU by preemption meanwhile
/// (schedstat and getrusage, after each call). The wait of a thread is the first summed over its
/// calls, less the number of calls times the second, less the third. What that means:
///
/// * Sleeping in the lock's queue, spinning for the lock, and the way from the waking to the CPU are
///   waiting.
/// * A thread that is preempted while it *holds* the lock does not wait for it. `preempted_ns` is
///   taken out, and is an estimate; `runnable_ns` is the most that it can be. When the two differ by
///   much, the machine had more to run than CPUs, and the wait is good to their difference only.
/// * What contention makes the call itself dearer (cold caches, a CPU shared with others) looks like
///   waiting: some percent of the work in the call. It is small against a wait of several holds, but
///   not for a thread that works much and waits little, such as `long` of the convoy.
/// * With short holds preemption is not read, and what is small above is most of the number.
///
/// The short threads of the convoy have all of it small, and are the ones to check a profiler by.
/// Against contention tracepoints plus samples of spinning, with 1, 2 and 8 of them and holds of 1
/// and 10 ms, on 2 CPUs with much else to run, their wait agreed within 2 % in 17 of 18 runs and
/// within 4 % in the other. Equal threads of [`MmapSem`](crate::MmapSem) were off by up to a quarter
/// there, and by a few percent on the same machine with CPUs to spare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// Sum of all threads.
    pub wait_total_ns: u64,
    /// Mean of one operation.
    pub wait_avg_ns: u64,
    /// Wall time inside the calls, sum of all threads: waiting and work.
    pub call_total_ns: u64,
    /// Time inside the calls runnable without a CPU after a preemption, sum of all threads: an
    /// estimate, not in `wait_total_ns`. None where it was not read, and is in it: with short holds.
    pub preempted_ns: Option<u64>,
    /// Time inside the calls runnable without a CPU, after a preemption or a waking: the upper bound
    /// of `preempted_ns`.
    pub runnable_ns: Option<u64>,
}

/// The words of a group.
pub(crate) struct Label {
    pub(crate) name: &'static str,
    pub(crate) comm: &'static str,
    pub(crate) call: &'static str,
}

impl Outcome {
    pub(crate) fn new(workload: &str, lock: &str, groups: Vec<(Label, &[Tally])>) -> Outcome {
        let elapsed =
            groups.iter().flat_map(|(_, tallies)| tallies.iter().map(|t| t.elapsed)).max();
        let elapsed = elapsed.unwrap_or_default();
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let groups = groups.into_iter().filter(|(_, tallies)| !tallies.is_empty());
        Outcome {
            schema_version: SCHEMA_VERSION,
            workload: workload.to_owned(),
            lock: lock.to_owned(),
            cpus,
            elapsed_ns: nanos(elapsed),
            groups: groups.map(|(label, tallies)| Group::new(&label, tallies, elapsed)).collect(),
        }
    }

    /// Sum of waiting of all groups, in ns.
    pub fn wait_total_ns(&self) -> u64 {
        self.groups.iter().map(|group| group.waiting.wait_total_ns).sum()
    }

    /// The group of this name.
    pub fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|group| group.name == name)
    }
}

impl Group {
    fn new(label: &Label, tallies: &[Tally], elapsed: Duration) -> Group {
        let ops: u64 = tallies.iter().map(|tally| tally.ops).sum();
        let uncontended: u64 = tallies.iter().map(|tally| nanos(tally.uncontended)).sum();
        let waiting = Waiting::of(tallies, ops);
        let held = waiting.call_total_ns.saturating_sub(waiting.wait_total_ns);
        let longest = tallies.iter().map(|tally| tally.longest_call).max().unwrap_or_default();
        let each: Vec<u64> = tallies.iter().map(|tally| tally.ops).collect();
        Group {
            name: label.name.to_owned(),
            comm: label.comm.to_owned(),
            call: label.call.to_owned(),
            threads: tallies.len(),
            ops,
            ops_per_second: ops as f64 / elapsed.as_secs_f64().max(1e-9),
            uncontended_ns: uncontended / (tallies.len() as u64).max(1),
            call_avg_ns: waiting.call_total_ns / ops.max(1),
            call_max_ns: nanos(longest),
            held_total_ns: waiting.runnable_ns.map(|_| held),
            expected_wait_ns: None,
            waiting,
            fairness: Fairness::of(&each),
        }
    }
}

impl Waiting {
    fn of(tallies: &[Tally], ops: u64) -> Waiting {
        let sum = |of: fn(&Tally) -> Duration| tallies.iter().map(|tally| nanos(of(tally))).sum();
        let wait_total_ns: u64 = sum(Tally::waited);
        let runnable = tallies.iter().map(|tally| tally.runnable);
        let runnable: Option<Vec<Runnable>> = runnable.collect();
        let runnable =
            runnable.map(|all| all.into_iter().fold(Runnable::default(), Runnable::plus));
        Waiting {
            wait_total_ns,
            wait_avg_ns: wait_total_ns / ops.max(1),
            call_total_ns: sum(|tally| tally.in_calls),
            preempted_ns: runnable.map(|runnable| nanos(runnable.preempted)),
            runnable_ns: runnable.map(|runnable| nanos(runnable.total)),
        }
    }
}

/// Whole nanoseconds; more than 584 years do not occur.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcome { workload, lock, cpus, .. } = self;
        let elapsed = Time(self.elapsed_ns);
        write!(f, "{workload}: {elapsed} on {cpus} CPUs, all threads want one {lock}")?;
        self.groups.iter().try_for_each(|group| write!(f, "\n{group}"))
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Group { name, comm, call, threads, ops, ops_per_second, waiting, .. } = self;
        writeln!(f, "\n  {threads} {name} (comm {comm}), {call}")?;
        writeln!(f, "    operations   {ops} ({ops_per_second:.0}/s)")?;
        write!(f, "    one takes    {} uncontended, ", Time(self.uncontended_ns))?;
        writeln!(f, "{} avg, {} max", Time(self.call_avg_ns), Time(self.call_max_ns))?;
        if let Some(held) = self.held_total_ns {
            write!(f, "    held         {} total, ", Time(held))?;
            writeln!(f, "{} avg", Time(held / (*ops).max(1)))?;
        }
        if let Some(expected) = self.expected_wait_ns {
            writeln!(f, "    must wait    {} total, by the schedule", Time(expected))?;
        }
        write!(f, "    waiting      {} total, ", Time(waiting.wait_total_ns))?;
        write!(f, "{} avg by the threads' clocks", Time(waiting.wait_avg_ns))?;
        match (waiting.preempted_ns, waiting.runnable_ns) {
            (Some(preempted), Some(most)) => {
                write!(f, "\n    preempted    {}, ", Time(preempted))?;
                write!(f, "at most {}, not counted as waiting", Time(most))?;
            }
            _ => write!(f, ", preemption included")?,
        }
        match &self.fairness {
            Some(fairness) if *threads > 1 => write!(f, "\n    fairness     {fairness}"),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Fairness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fairness { jain_index, least_share, most_share } = self;
        write!(f, "Jain index {jain_index:.3}; ")?;
        write!(f, "slowest thread {least_share:.2}, fastest {most_share:.2} of an equal share")
    }
}

/// Nanoseconds with three digits and a unit.
struct Time(u64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(f64, &str); 3] = [(1e9, "s"), (1e6, "ms"), (1e3, "us")];
        let nanos = self.0 as f64;
        // From 0.9995 of a unit on, three digits round up to one whole unit.
        let Some((unit, name)) = UNITS.into_iter().find(|(unit, _)| nanos >= unit * 0.9995) else {
            return write!(f, "{} ns", self.0);
        };
        let value = nanos / unit;
        let decimals = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
        write!(f, "{value:.decimals$} {name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_and_a_unit() {
        let cases = [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_000, "1.00 us"),
            (9_996, "10.0 us"),
            (123_456, "123 us"),
            (999_600, "1.00 ms"),
            (61_234_000_000, "61.2 s"),
        ];
        for (nanos, text) in cases {
            assert_eq!(Time(nanos).to_string(), text);
        }
    }

    #[test]
    fn waiting_is_the_time_of_the_calls_less_what_they_take_alone() {
        let tally = Tally {
            ops: 10,
            in_calls: Duration::from_millis(150),
            uncontended: Duration::from_millis(5),
            ..Tally::default()
        };
        let label = Label { name: "writers", comm: "w", call: "mprotect" };
        let outcome = Outcome::new("test", "mmap_lock", vec![(label, &[tally, tally])]);
        let group = outcome.group("writers").unwrap();
        assert_eq!(group.waiting.wait_total_ns, 200_000_000);
        assert_eq!(group.waiting.wait_avg_ns, 10_000_000);
        assert_eq!(group.call_avg_ns, 15_000_000);
        assert_eq!(outcome.wait_total_ns(), 200_000_000);
    }

    #[test]
    fn calls_faster_than_measured_alone_are_no_negative_wait() {
        let tally = Tally { ops: 3, uncontended: Duration::from_micros(1), ..Tally::default() };
        assert_eq!(tally.waited(), Duration::ZERO);
    }

    #[test]
    fn a_group_without_threads_is_left_out() {
        let label = |name| Label { name, comm: "c", call: "c" };
        let tallies = [Tally::default()];
        let groups = vec![(label("readers"), &[][..]), (label("writers"), &tallies[..])];
        let outcome = Outcome::new("test", "mmap_lock", groups);
        assert!(outcome.group("readers").is_none());
        assert_eq!(outcome.group("writers").unwrap().fairness, None);
    }
}

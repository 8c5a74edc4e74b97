//! All that a user can ask of a report: group, filter, window, sort.
//!
//! Command line, screen and library make the same struct.

use super::{LockTypePattern, Nanos, Timestamp};

/// What a row stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GroupBy {
    /// (lock type, site, lock name).
    #[default]
    Site,
    /// One lock: its address and name.
    Lock,
    /// One task: comm and pid.
    Task,
    /// The cgroup of the task.
    Cgroup,
    /// A task that handed locks over, and where.
    Releaser,
    /// Who waited where, and who let it wait: (lock type, site, lock name, releaser).
    Blame,
}

impl GroupBy {
    /// Whether rows are pieces of waits, each charged to who ended it.
    pub fn is_blame(self) -> bool {
        matches!(self, GroupBy::Releaser | GroupBy::Blame)
    }
}

/// perf's sort keys, and `wait`, which is traced and spun together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum SortKey {
    #[default]
    Wait,
    Contended,
    WaitTotal,
    WaitMax,
    WaitMin,
    AvgWait,
}

/// Part of a recording, in time since its first event. Times are clipped to it; a wait is counted
/// where it ends, so that neighbouring ranges add up: `from <= end < to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// First moment inside.
    pub from: Timestamp,
    /// First moment outside.
    pub to: Timestamp,
}

impl TimeRange {
    /// The whole recording.
    pub const ALL: TimeRange = TimeRange { from: Timestamp(0), to: Timestamp(u64::MAX) };

    /// Whether `at` lies inside.
    #[inline]
    pub fn contains(self, at: Timestamp) -> bool {
        self.from <= at && (at < self.to || self.to == Timestamp(u64::MAX))
    }

    /// What lies in this range and in another.
    #[inline]
    pub fn both(self, other: TimeRange) -> TimeRange {
        let from = self.from.max(other.from);
        TimeRange { from, to: self.to.min(other.to).max(from) }
    }

    /// How much of `begin..end` lies inside.
    #[inline]
    pub fn clip(self, begin: Timestamp, end: Timestamp) -> Nanos {
        end.min(self.to).since(begin.max(self.from))
    }
}

/// A part of the time of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum When {
    /// All of it.
    #[default]
    Always,
    /// The last so much.
    Last(Nanos),
    /// From one moment to another, in time since the first event.
    Between(Nanos, Nanos),
}

/// Which waits count. An empty list lets everything through; several entries are alternatives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Lock types.
    pub lock_type: Vec<LockTypePattern>,
    /// Substrings of the site's function or of its wrappers.
    pub caller: Vec<String>,
    /// A lock's name (`mmap_lock` and `mmap_sem` are one) or its address (`0xffff...`).
    pub lock: Vec<String>,
    /// Names of tasks, exact.
    pub comm: Vec<String>,
    /// Processes (thread group ids).
    pub pid: Vec<i32>,
    /// Threads.
    pub tid: Vec<i32>,
    /// Paths of cgroups: those below them count too.
    pub cgroup: Vec<String>,
    /// Shortest wait that counts.
    pub min_wait: Nanos,
    /// `--time A..B`, from the recording's first event.
    pub time: Option<(Nanos, Nanos)>,
}

impl Filter {
    /// Whether a cgroup is one of those asked for, or below one.
    pub fn takes_cgroup(&self, path: &str) -> bool {
        let below = |wanted: &String| {
            let wanted = wanted.trim_matches('/');
            let rest = path.trim_start_matches('/').strip_prefix(wanted);
            wanted.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.cgroup.is_empty() || self.cgroup.iter().any(below)
    }
}

/// A question to a recording or to a live session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// What a row stands for.
    pub by: GroupBy,
    /// Order of rows, largest first.
    pub sort: SortKey,
    /// Rows to show; the others are summed up. 0 shows all.
    pub top: usize,
    /// Which waits count.
    pub filter: Filter,
    /// Whether each row carries its full stacks with their shares.
    pub stacks: bool,
}

impl Default for Query {
    fn default() -> Query {
        Query {
            by: GroupBy::default(),
            sort: SortKey::default(),
            top: 20,
            filter: Filter::default(),
            stacks: false,
        }
    }
}

/// A question about lock paths: on what the CPU time went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathQuery {
    /// Rows to show; the others are summed up. 0 shows all.
    pub top: usize,
    /// Samples as taken, where interrupts went on, not where they were off.
    pub raw: bool,
    /// Whose samples count: `comm`, `pid`, `tid` and `time`; the rest speaks of waits.
    pub filter: Filter,
}

/// Over what a call tree is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weighed {
    /// CPU samples by their period.
    #[default]
    Cpu,
    /// Waits by their time.
    Waits,
}

/// Which way a call tree grows; perf's words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// From the lock function to its callers.
    #[default]
    Callee,
    /// From where the kernel was entered to the lock function.
    Caller,
}

/// A question about call paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeQuery {
    /// Over what.
    pub over: Weighed,
    /// Which way.
    pub order: Order,
    /// Percentages of everything, not of the branch.
    pub absolute: bool,
    /// Branchings shown, the rest is folded; 0 shows all.
    pub levels: usize,
    /// What counts.
    pub filter: Filter,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cgroup_is_taken_with_all_below_it() {
        let takes = |wanted: &str, path: &str| {
            let filter = Filter { cgroup: vec![wanted.to_owned()], ..Filter::default() };
            filter.takes_cgroup(path)
        };
        assert!(takes("/a", "/a") && takes("a", "/a/b") && takes("/a/", "/a/b"));
        assert!(!takes("/a", "/ab") && !takes("/a/b", "/a"));
        assert!(takes("/", "/a") && takes("/", "/"));
        assert!(Filter::default().takes_cgroup("/a"));
    }
}

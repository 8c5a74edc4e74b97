//! `lockprof report ...` and `lockprof flamegraph ...` as typed: which recording, which waits, which
//! form.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::DEFAULT_RECORDING;
use crate::model::{
    Filter, GroupBy, LockTypePattern, Nanos, Order, PathQuery, Query, SortKey, TreeQuery, Weighed,
};

/// Which recording, and whose symbols.
#[derive(Args, Debug, Default)]
pub struct InputArgs {
    /// A recording of lockprof or of perf
    #[arg(value_name = "FILE", default_value = DEFAULT_RECORDING)]
    pub file: PathBuf,
    /// Symbols of the recorded kernel: a copy of its /proc/kallsyms, plain, .gz or .xz
    #[arg(long, value_name = "FILE")]
    pub kallsyms: Option<PathBuf>,
}

/// Which waits count.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Filters")]
pub struct FilterArgs {
    /// Only locks of this type: rwsem, rwsem:R, mutex, spinlock ...
    #[arg(long, value_name = "TYPE", value_delimiter = ',')]
    pub lock_type: Vec<LockTypePattern>,
    /// Only waits whose caller, or a wrapper below it, contains this text
    #[arg(long, value_name = "TEXT")]
    pub caller: Vec<String>,
    /// Only this lock, by name or by address (0xffff...)
    #[arg(long, value_name = "LOCK")]
    pub lock: Vec<String>,
    /// Only tasks of this name
    #[arg(long, value_name = "NAME")]
    pub comm: Vec<String>,
    /// Only these processes
    #[arg(long, value_name = "PID", value_delimiter = ',')]
    pub pid: Vec<i32>,
    /// Only these threads
    #[arg(long, value_name = "TID", value_delimiter = ',')]
    pub tid: Vec<i32>,
    /// Only tasks of this cgroup and of those below it, as /system.slice
    #[arg(long, value_name = "PATH")]
    pub cgroup: Vec<String>,
    /// Only waits of at least this length: 10us, 1ms
    #[arg(long, value_name = "TIME")]
    pub min_wait: Option<Nanos>,
    /// Only this part of the recording, from its start: 2s..5s, 10s.., ..500ms
    #[arg(long, value_name = "A..B", value_parser = parse_range)]
    pub time: Option<(Nanos, Nanos)>,
}

/// What perf's own computation cannot be narrowed by.
const FILTERS: [&str; 10] =
    ["stacks", "lock_type", "caller", "lock", "comm", "pid", "tid", "cgroup", "min_wait", "time"];

/// What says nothing of readers and writers.
const NOT_OF_READERS_AND_WRITERS: [&str; 4] = ["blame", "tree", "raw", "perf_compat"];

/// What a call tree has not.
const NOT_OF_TREES: [&str; 6] = ["by", "sort", "top", "stacks", "raw", "perf_compat"];

/// `report`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  lockprof report                                 rows by call site
  lockprof report --by lock --lock-type rwsem     which rwsems
  lockprof report --by task --min-wait 1ms        who waited long
  lockprof report --blame --lock mmap_lock        who let them wait for it
  lockprof report --by lock --rw                  readers behind writers, writers behind readers
  lockprof report --by path                       where CPU time goes: spinning, waking, working
  lockprof report --tree                          the call tree of lock code, as perf shows it
  lockprof report --time 2s..5s --stacks          full stacks of a part of it
  lockprof report --format json | jq .rows        for other programs")]
pub struct ReportArgs {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub input: InputArgs,
    /// What a row stands for
    #[arg(long, value_enum, default_value_t)]
    pub by: By,
    /// Show who let whom wait: rows of a waiter's call site with the releaser that it waited for
    #[arg(long, conflicts_with_all = ["by", "stacks", "tree", "raw", "perf_compat"])]
    pub blame: bool,
    /// What rows are sorted by, largest first
    #[arg(long, value_enum, default_value_t)]
    pub sort: Sort,
    /// Rows to show; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub top: usize,
    /// Say below each row what its waiters did (slept, had no CPU), and those who let them wait
    #[arg(long, conflicts_with_all = ["tree", "perf_compat"])]
    pub phases: bool,
    /// Show the full stacks of each row, with their shares
    #[arg(long)]
    pub stacks: bool,
    /// Show below the table who waits behind whom: readers, writers, queued writers; and convoys
    #[arg(long, conflicts_with_all = NOT_OF_READERS_AND_WRITERS)]
    pub rw: bool,
    /// With --by path: samples as taken, not moved from where interrupts went on to where they were off
    #[arg(long)]
    pub raw: bool,
    /// Show the call tree of lock code, as perf does
    #[arg(long, conflicts_with_all = NOT_OF_TREES)]
    pub tree: bool,
    /// With --tree: from the lock function to its callers (the default)
    #[arg(long, requires = "tree", conflicts_with = "caller_first")]
    pub callee: bool,
    /// With --tree: from where the kernel was entered to the lock function
    #[arg(long, requires = "tree")]
    pub caller_first: bool,
    /// With --tree: percentages of everything, not of the branch above
    #[arg(long, requires = "tree")]
    pub absolute: bool,
    /// With --tree: over CPU samples, or over waits
    #[arg(long, value_enum, default_value_t, requires = "tree")]
    pub over: Over,
    /// With --tree: branchings to show, the rest is folded; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 0, requires = "tree")]
    pub levels: usize,
    /// Form of the output
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Compute as `perf lock contention --stack-skip 0` does, and say where lockprof differs
    #[arg(long, conflicts_with_all = FILTERS)]
    pub perf_compat: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub filter: FilterArgs,
}

/// `flamegraph`.
#[derive(Args, Debug)]
pub struct FlamegraphArgs {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub input: InputArgs,
    /// Write the picture here
    #[arg(short, long, value_name = "FILE", default_value = "lockprof.svg")]
    pub output: PathBuf,
    /// What the width of a frame means
    #[arg(long, value_enum, default_value_t)]
    pub weight: Weight,
    /// Put who let them wait on top of those who waited, upside down
    #[arg(long, conflicts_with = "weight")]
    pub blame: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub filter: FilterArgs,
}

/// `--by`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// Lock type, call site and lock
    #[default]
    Site,
    /// Lock
    Lock,
    /// Task
    Task,
    /// Cgroup, in recordings of record --cgroups or -G
    Cgroup,
    /// Who let others wait, and where
    Releaser,
    /// Lock path of the CPU samples: what share of the CPU time spins, wakes, works
    Path,
}

/// `--over`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Over {
    /// CPU samples, by their period
    #[default]
    Cpu,
    /// Waits, by their time
    Waits,
}

/// `--sort`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Sort {
    /// Traced and spun time
    #[default]
    Wait,
    /// Number of waits
    Contended,
    /// Traced time
    WaitTotal,
    /// Longest wait
    WaitMax,
    /// Shortest wait
    WaitMin,
    /// Mean wait
    AvgWait,
}

/// `--format`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Table,
    /// All numbers, with a schema
    Json,
    /// One line a row
    Csv,
    /// One line a stack, for flame graph tools
    Folded,
}

/// `--weight`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Weight {
    /// Time waited: traced and spun
    #[default]
    Wait,
    /// CPU time, by samples
    Cpu,
    /// Number of waits
    Count,
}

impl FilterArgs {
    /// Whether it says something that CPU samples have not.
    fn is_of_waits(&self) -> bool {
        !self.lock_type.is_empty()
            || !self.caller.is_empty()
            || !self.lock.is_empty()
            || self.min_wait.is_some()
    }

    /// The filter that was typed.
    pub fn filter(&self) -> Filter {
        Filter {
            lock_type: self.lock_type.clone(),
            caller: self.caller.clone(),
            lock: self.lock.clone(),
            comm: self.comm.clone(),
            pid: self.pid.clone(),
            tid: self.tid.clone(),
            cgroup: self.cgroup.clone(),
            min_wait: self.min_wait.unwrap_or_default(),
            time: self.time,
        }
    }
}

/// What narrows waits and says nothing of CPU time.
const OF_WAITS: &str = "--lock-type, --caller, --lock and --min-wait choose waits, not CPU time";

impl ReportArgs {
    /// The question about call paths that was typed.
    ///
    /// # Errors
    /// Why it cannot be answered.
    pub fn tree_query(&self) -> Result<TreeQuery, &'static str> {
        match (self.format, self.over) {
            (_, Over::Cpu) if self.filter.is_of_waits() => return Err(OF_WAITS),
            (Format::Table, _) => {}
            _ => return Err("a call tree is text; the other formats carry whole stacks"),
        }
        Ok(TreeQuery {
            over: match self.over {
                Over::Cpu => Weighed::Cpu,
                Over::Waits => Weighed::Waits,
            },
            order: if self.caller_first { Order::Caller } else { Order::Callee },
            absolute: self.absolute,
            levels: self.levels,
            filter: self.filter.filter(),
        })
    }

    /// The question about lock paths that was typed.
    ///
    /// # Errors
    /// Why it cannot be answered.
    pub fn path_query(&self) -> Result<PathQuery, &'static str> {
        let filter = &self.filter;
        match self.format {
            _ if filter.is_of_waits() => Err(OF_WAITS),
            _ if self.stacks => Err("--stacks shows the stacks of waits, not of CPU time"),
            Format::Folded => Err("--format folded writes the stacks of waits, not of CPU time"),
            _ => Ok(PathQuery { top: self.top, raw: self.raw, filter: filter.filter() }),
        }
    }

    /// The question that was typed.
    pub fn query(&self) -> Query {
        Query {
            by: if self.blame { GroupBy::Blame } else { self.by.into() },
            sort: self.sort.into(),
            top: self.top,
            filter: self.filter.filter(),
            stacks: self.stacks || self.format == Format::Folded,
        }
    }
}

impl From<By> for GroupBy {
    fn from(by: By) -> GroupBy {
        match by {
            By::Site => GroupBy::Site,
            By::Lock => GroupBy::Lock,
            By::Task => GroupBy::Task,
            By::Cgroup => GroupBy::Cgroup,
            By::Releaser => GroupBy::Releaser,
            // Paths are of CPU time, not of waits, and have a report of their own.
            By::Path => GroupBy::default(),
        }
    }
}

impl From<Sort> for SortKey {
    fn from(sort: Sort) -> SortKey {
        match sort {
            Sort::Wait => SortKey::Wait,
            Sort::Contended => SortKey::Contended,
            Sort::WaitTotal => SortKey::WaitTotal,
            Sort::WaitMax => SortKey::WaitMax,
            Sort::WaitMin => SortKey::WaitMin,
            Sort::AvgWait => SortKey::AvgWait,
        }
    }
}

fn parse_range(text: &str) -> Result<(Nanos, Nanos), String> {
    let (from, to) =
        text.split_once("..").ok_or_else(|| format!("`{text}` is no range; write 2s..5s"))?;
    let from = if from.is_empty() { Nanos::ZERO } else { from.parse()? };
    let to = if to.is_empty() { Nanos(u64::MAX) } else { to.parse()? };
    if from < to { Ok((from, to)) } else { Err(format!("`{text}` ends before it begins")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_range_may_be_open_on_either_side() {
        let s = |n: u64| Nanos(n * 1_000_000_000);
        assert_eq!(parse_range("2s..5s"), Ok((s(2), s(5))));
        assert_eq!(parse_range("..5s"), Ok((s(0), s(5))));
        assert_eq!(parse_range("2s.."), Ok((s(2), Nanos(u64::MAX))));
        assert!(parse_range("5s..2s").is_err() && parse_range("5s").is_err());
    }
}

//! What was typed. Nothing here looks at the machine.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::model::{Filter, GroupBy, LockTypePattern, Nanos, Query, SortKey};

/// Where recordings go and come from when nothing else is said.
pub const DEFAULT_RECORDING: &str = "lockprof.data";

/// The subcommand under which lockprof starts itself to hold a command back.
pub const EXEC_STUB: &str = "__exec";

/// Which kernel lock a program waits for, who makes it wait, what changed.
#[derive(Debug, Parser)]
#[command(name = "lockprof", version, max_term_width = 100, after_help = EXAMPLES)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  lockprof demo                                  see it work, in 5 seconds
  lockprof record -- xfs_repair -n /dev/vdb1     record a command
  lockprof record -a -d 10                       record the whole machine for 10 seconds
  lockprof report --by lock                      which locks it waited for
  lockprof flamegraph -o waits.svg               where it waited, as a picture
  lockprof doctor                                what is missing on this machine";

/// Subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Record lock contention of a command, of processes or of the whole machine
    Record(RecordArgs),
    /// Say who waited for which lock, where and for how long
    Report(ReportArgs),
    /// Draw the waits of a recording as a flame graph (SVG)
    Flamegraph(FlamegraphArgs),
    /// Print the events of a recording as text
    Script(ScriptArgs),
    /// Record a built-in workload for 5 seconds, report it, draw it
    Demo(DemoArgs),
    /// Check what recording needs on this machine
    Doctor(DoctorArgs),
    /// Finish the recording of a lockprof that was killed
    Repair(RepairArgs),
    /// Run a built-in workload that contends for one kernel lock
    Hammer(HammerArgs),
    /// Print the completions of a shell
    Completions(CompletionsArgs),
    /// Write man pages into a directory
    Man(ManArgs),
    /// Wait for a byte on a descriptor, then become a command
    #[command(name = EXEC_STUB, hide = true)]
    Exec(ExecArgs),
}

/// Samples of each CPU a second: odd, to keep out of step with timers that tick at round rates.
const DEFAULT_FREQUENCY: u64 = 997;

/// `record`.
#[derive(Args, Debug, Default)]
#[command(after_help = "\
Examples:
  lockprof record -- make -j8
  lockprof record -p 4242 -d 30
  lockprof record -a -d 10 -o all.data
  lockprof record --svg waits.svg -- fio job.fio

The exit status is the command's own; 125 when lockprof itself fails.")]
pub struct RecordArgs {
    /// Write the recording here; one that exists is kept as FILE.old
    #[arg(short, long, value_name = "FILE", default_value = DEFAULT_RECORDING)]
    pub output: PathBuf,
    /// Record the whole machine
    #[arg(short, long, conflicts_with_all = ["pid", "command"])]
    pub all: bool,
    /// Record these processes, with all their threads
    #[arg(short, long, value_name = "PID", value_delimiter = ',', conflicts_with = "command",
          value_parser = clap::value_parser!(i32).range(1..))]
    pub pid: Vec<i32>,
    /// Record only on these CPUs, as 0-3,8
    #[arg(short = 'C', long, value_name = "LIST")]
    pub cpus: Option<String>,
    /// Stop after this time: 30s, 2m
    #[arg(short, long, value_name = "TIME")]
    pub duration: Option<Nanos>,
    /// Sample CPUs this many times a second
    #[arg(short = 'F', long, value_name = "HZ", default_value_t = DEFAULT_FREQUENCY,
          value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub frequency: u64,
    /// Do not sample CPUs: spinning that no tracepoint shows stays unseen
    #[arg(long)]
    pub no_cpu: bool,
    /// Leave spinlocks out
    #[arg(long)]
    pub no_spin: bool,
    /// Record callchains at the end of waits too, which `perf lock contention` needs
    #[arg(long)]
    pub perf_compat: bool,
    /// Pages of each ring, a power of two
    #[arg(short, long, value_name = "PAGES")]
    pub mmap_pages: Option<u32>,
    /// Draw a flame graph of the waits at the end
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// The command to run and record
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

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
    /// Only waits of at least this length: 10us, 1ms
    #[arg(long, value_name = "TIME")]
    pub min_wait: Option<Nanos>,
    /// Only this part of the recording, from its start: 2s..5s, 10s.., ..500ms
    #[arg(long, value_name = "A..B", value_parser = parse_range)]
    pub time: Option<(Nanos, Nanos)>,
}

/// What perf's own computation cannot be narrowed by.
const FILTERS: [&str; 9] =
    ["stacks", "lock_type", "caller", "lock", "comm", "pid", "tid", "min_wait", "time"];

/// `report`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  lockprof report                                 rows by call site
  lockprof report --by lock --lock-type rwsem     which rwsems
  lockprof report --by task --min-wait 1ms        who waited long
  lockprof report --time 2s..5s --stacks          full stacks of a part of it
  lockprof report --format json | jq .rows        for other programs")]
pub struct ReportArgs {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub input: InputArgs,
    /// What a row stands for
    #[arg(long, value_enum, default_value_t)]
    pub by: By,
    /// What rows are sorted by, largest first
    #[arg(long, value_enum, default_value_t)]
    pub sort: Sort,
    /// Rows to show; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub top: usize,
    /// Show the full stacks of each row, with their shares
    #[arg(long)]
    pub stacks: bool,
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
    #[command(flatten)]
    #[allow(missing_docs)]
    pub filter: FilterArgs,
}

/// `script`.
#[derive(Args, Debug)]
pub struct ScriptArgs {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub input: InputArgs,
}

/// `demo`.
#[derive(Args, Debug)]
pub struct DemoArgs {
    /// Seconds to record
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub seconds: Nanos,
}

/// `doctor`.
#[derive(Args, Debug)]
pub struct DoctorArgs {
    /// Look for the debug symbols of this program too
    #[arg(value_name = "PROGRAM")]
    pub program: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `repair`.
#[derive(Args, Debug)]
pub struct RepairArgs {
    /// The recording
    #[arg(value_name = "FILE", default_value = DEFAULT_RECORDING)]
    pub file: PathBuf,
}

/// `hammer`.
#[derive(Args, Debug)]
pub struct HammerArgs {
    /// Print JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// How long to run
    #[arg(long, value_name = "TIME", default_value = "5s", global = true)]
    pub seconds: Nanos,
    /// Which lock
    #[command(subcommand)]
    pub workload: Hammer,
}

/// Workloads of `hammer`.
#[derive(Debug, Subcommand)]
pub enum Hammer {
    /// Readers (mincore, madvise) against writers (mprotect) of one mmap_lock
    MmapSem {
        /// Threads that take it for read
        #[arg(long, value_name = "N", default_value_t = 4)]
        readers: usize,
        /// Threads that take it for write
        #[arg(long, value_name = "N", default_value_t = 4)]
        writers: usize,
        /// How long a call holds it: short, long, or a time
        #[arg(long, value_name = "HOLD", default_value = "short")]
        hold: lockprof_hammer::Hold,
    },
    /// One thread that holds the mmap_lock long, others that hold it for microseconds
    Convoy {
        /// Threads with short holds
        #[arg(long, value_name = "N", default_value_t = 8)]
        threads: usize,
        /// How long the one holds it
        #[arg(long, value_name = "HOLD", default_value = "10ms")]
        hold: lockprof_hammer::Hold,
    },
    /// Create and unlink files in one directory
    DirectoryRwsem {
        /// Threads
        #[arg(long, value_name = "N", default_value_t = 4)]
        threads: usize,
        /// Make the directory here
        #[arg(long, value_name = "DIR", default_value = "/tmp")]
        directory: PathBuf,
    },
    /// Write to and read from one pipe
    PipeMutex {
        /// Threads
        #[arg(long, value_name = "N", default_value_t = 4)]
        threads: usize,
    },
    /// Open and close files in one table of file descriptors
    FdTable {
        /// Threads
        #[arg(long, value_name = "N", default_value_t = 4)]
        threads: usize,
    },
}

/// `completions`.
#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// `man`.
#[derive(Args, Debug)]
pub struct ManArgs {
    /// The directory
    pub directory: PathBuf,
}

/// `__exec`.
#[derive(Args, Debug)]
pub struct ExecArgs {
    /// Descriptors and command, as the recorder wrote them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<std::ffi::OsString>,
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

impl RecordArgs {
    /// As if nothing had been typed.
    pub fn of_defaults() -> RecordArgs {
        let output = PathBuf::from(DEFAULT_RECORDING);
        RecordArgs { output, frequency: DEFAULT_FREQUENCY, ..RecordArgs::default() }
    }
}

impl FilterArgs {
    /// The filter that was typed.
    pub fn filter(&self) -> Filter {
        Filter {
            lock_type: self.lock_type.clone(),
            caller: self.caller.clone(),
            lock: self.lock.clone(),
            comm: self.comm.clone(),
            pid: self.pid.clone(),
            tid: self.tid.clone(),
            min_wait: self.min_wait.unwrap_or_default(),
            time: self.time,
        }
    }
}

impl ReportArgs {
    /// The question that was typed.
    pub fn query(&self) -> Query {
        Query {
            by: self.by.into(),
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
    use clap::CommandFactory;

    #[test]
    fn the_definitions_are_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn a_time_range_may_be_open_on_either_side() {
        let s = |n: u64| Nanos(n * 1_000_000_000);
        assert_eq!(parse_range("2s..5s"), Ok((s(2), s(5))));
        assert_eq!(parse_range("..5s"), Ok((s(0), s(5))));
        assert_eq!(parse_range("2s.."), Ok((s(2), Nanos(u64::MAX))));
        assert!(parse_range("5s..2s").is_err() && parse_range("5s").is_err());
    }
}

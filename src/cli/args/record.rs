//! `lockprof record ...` as typed.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::DEFAULT_RECORDING;
use crate::model::Nanos;

/// Samples of each CPU a second: odd, to keep out of step with timers that tick at round rates.
const DEFAULT_FREQUENCY: u64 = 997;

/// `record`.
#[derive(Args, Debug, Default)]
#[command(after_help = "\
Examples:
  lockprof record -- make -j8
  lockprof record -p 4242 -d 30
  lockprof record -a -d 10 -o all.data
  lockprof record -G /system.slice/postgresql.service -d 30
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
    /// Record this cgroup and those below it: a path from the mount of its hierarchy on
    #[arg(short = 'G', long, value_name = "PATH", conflicts_with_all = ["all", "pid", "command"])]
    pub cgroup: Option<String>,
    /// Record the cgroup of each task, for `report --by cgroup`: 8 bytes a sample
    #[arg(long)]
    pub cgroups: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub seen: SeenArgs,
    /// Stop after this time: 30s, 2m
    #[arg(short, long, value_name = "TIME")]
    pub duration: Option<Nanos>,
    /// Sample CPUs this many times a second
    #[arg(short = 'F', long, value_name = "HZ", default_value_t = DEFAULT_FREQUENCY,
          value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub frequency: u64,
    /// Record the stack of each release of a lock that is waited for (Linux 7.2 and later), about ten
    /// for each wait; without, those that wake somebody have one
    #[arg(long, conflicts_with = "no_blame")]
    pub release_stacks: bool,
    /// Sample CPUs and nothing else: shares of `report --by path` without the cost of other events
    #[arg(long, conflicts_with_all = ["no_cpu", "no_spin", "perf_compat", "release_stacks", "collect"])]
    pub cpu_only: bool,
    /// Record more: mmap-lock proves whose mmap_lock an rwsem is, for a few per cent of the throughput
    /// of what locks it; mmap-lock-holds tells how long it is held, for half of it
    #[arg(long, value_enum, value_name = "WHAT", value_delimiter = ',')]
    pub collect: Vec<Collect>,
    /// Record callchains at the end of waits too, which `perf lock contention` needs
    #[arg(long)]
    pub perf_compat: bool,
    /// Pages of each ring, a power of two
    #[arg(short, long, value_name = "PAGES")]
    pub mmap_pages: Option<u32>,
    /// Draw a flame graph of the waits at the end
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// No screen while it runs, where there is a terminal: the command keeps it
    #[arg(long)]
    pub no_tui: bool,
    /// The command to run and record
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// What is seen of the machine.
#[derive(Args, Clone, Debug, Default)]
pub struct SeenArgs {
    /// Record only on these CPUs, as 0-3,8
    #[arg(short = 'C', long, value_name = "LIST")]
    pub cpus: Option<String>,
    /// Leave spinlocks out
    #[arg(long)]
    pub no_spin: bool,
    /// Do not sample CPUs: spinning that no tracepoint shows stays unseen
    #[arg(long)]
    pub no_cpu: bool,
    /// Do not record who wakes whom: releasers stay unknown; saves a callchain for each waking
    #[arg(long)]
    pub no_blame: bool,
    /// Do not record context switches: whether a waiter slept or had no CPU stays unknown
    #[arg(long)]
    pub no_phases: bool,
    /// Do not record where tasks sleep: saves a callchain for each sleep
    #[arg(long)]
    pub no_sleeps: bool,
}

/// `--collect`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Collect {
    /// One of 1,000 uses of an mmap_lock
    MmapLock,
    /// Every use of an mmap_lock
    MmapLockHolds,
}

impl RecordArgs {
    /// As if nothing had been typed.
    pub fn of_defaults() -> RecordArgs {
        let output = PathBuf::from(DEFAULT_RECORDING);
        RecordArgs { output, frequency: DEFAULT_FREQUENCY, ..RecordArgs::default() }
    }
}

//! `lockprof hammer ...` as typed.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::model::Nanos;

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
    /// One thread that holds the mmap_lock at stated times, others that come meanwhile: the waits are
    /// known beforehand
    Schedule {
        /// Threads that wait
        #[arg(long, value_name = "N", default_value_t = 3)]
        waiters: usize,
        /// How long the one holds it
        #[arg(long, value_name = "HOLD", default_value = "20ms")]
        hold: lockprof_hammer::Hold,
        /// How often
        #[arg(long, value_name = "TIME", default_value = "60ms")]
        every: Nanos,
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

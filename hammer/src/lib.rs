//! Workloads that contend for one kernel lock each, and say what it cost them.
//!
//! One lock a file: [`MmapSem`], [`Convoy`], [`Schedule`], [`DirectoryRwsem`], [`PipeMutex`],
//! [`FdTable`]. Each is a struct of settings with a `run` that starts the threads, waits for the end and gives an
//! [`Outcome`]: operations, rates, fairness and the waiting by the threads' own clocks. The last is
//! what a lock profiler can be checked against; [`Waiting`] says how it is estimated.
//!
//! No signal handler is installed: Ctrl-C ends the process, and what a workload leaves on disk is
//! one empty directory at most.
//!
//! # Unsafe policy
//!
//! `unsafe` lives in `sys.rs` only, one operation a block, each with a `SAFETY:` note.

mod convoy;
mod crew;
mod directory_rwsem;
mod error;
mod fairness;
mod fd_table;
mod hold;
mod mmap_sem;
mod outcome;
mod pipe_mutex;
mod preemption;
mod region;
mod schedule;
mod sys;

pub use convoy::Convoy;
pub use directory_rwsem::DirectoryRwsem;
pub use error::Error;
pub use fairness::Fairness;
pub use fd_table::FdTable;
pub use hold::{Hold, HoldError};
pub use mmap_sem::MmapSem;
pub use outcome::{Group, Outcome, SCHEMA_VERSION, Waiting};
pub use pipe_mutex::PipeMutex;
pub use schedule::Schedule;

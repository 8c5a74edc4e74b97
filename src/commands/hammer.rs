//! `lockprof hammer`: a built-in workload, and what it says of itself.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use lockprof_hammer::{Convoy, DirectoryRwsem, FdTable, MmapSem, PipeMutex, Schedule};

use crate::cli::args::{Hammer, HammerArgs};
use crate::cli::messages::Failure;

pub(super) fn run(args: HammerArgs) -> Result<ExitCode, Failure> {
    let seconds = Duration::from_nanos(args.seconds.0);
    let outcome = match args.workload {
        Hammer::MmapSem { readers, writers, hold } => {
            MmapSem { readers, writers, seconds, hold }.run()
        }
        Hammer::Convoy { threads, hold } => Convoy { short_threads: threads, seconds, hold }.run(),
        Hammer::Schedule { waiters, hold, every } => {
            let every = Duration::from_nanos(every.0);
            Schedule { waiters, seconds, hold, every }.run()
        }
        Hammer::DirectoryRwsem { threads, directory } => {
            DirectoryRwsem { threads, seconds, parent: directory }.run()
        }
        Hammer::PipeMutex { threads } => PipeMutex { threads, seconds }.run(),
        Hammer::FdTable { threads } => FdTable { threads, seconds }.run(),
    }?;
    let mut out = io::stdout().lock();
    match args.json {
        true => writeln!(out, "{}", serde_json::to_string_pretty(&outcome)?)?,
        false => writeln!(out, "{outcome}")?,
    }
    Ok(ExitCode::SUCCESS)
}

//! What was typed. Nothing here looks at the machine.

mod hammer;
mod record;
mod report;
mod screen;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub use hammer::{Hammer, HammerArgs};
pub use record::{Collect, RecordArgs, SeenArgs};
pub use report::{By, FilterArgs, FlamegraphArgs, Format, InputArgs, ReportArgs, Sort, Weight};

pub use screen::{TopArgs, TopFormat, TuiArgs};

use crate::model::Nanos;

/// Where recordings go and come from when nothing else is said.
pub const DEFAULT_RECORDING: &str = "lockprof.data";

/// The subcommand under which lockprof starts itself to hold a command back.
pub const EXEC_STUB: &str = "__exec";

/// Its first word where the command gets a terminal of its own.
pub const OWN_TERMINAL: &str = "own-terminal";

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
  lockprof explain mmap_lock                     what a lock protects, what relieves it
  lockprof flamegraph -o waits.svg               where it waited, as a picture
  lockprof doctor                                what is missing on this machine";

/// Subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Record lock contention of a command, of processes or of the whole machine
    Record(RecordArgs),
    /// Say who waited for which lock, where and for how long
    Report(ReportArgs),
    /// Look at a recording on the terminal: locks, call paths, releasers, when
    Tui(TuiArgs),
    /// Watch the lock contention of the whole machine, without a file
    Top(TopArgs),
    /// Draw the waits of a recording as a flame graph (SVG)
    Flamegraph(FlamegraphArgs),
    /// Say what a lock protects and what relieves it
    Explain(ExplainArgs),
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

/// `explain`.
#[derive(Args, Debug)]
pub struct ExplainArgs {
    /// The lock, as reports name it; all locks are listed without a name
    #[arg(value_name = "LOCK")]
    pub name: Vec<String>,
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definitions_are_consistent() {
        Arguments::command().debug_assert();
    }
}

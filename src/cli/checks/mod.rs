//! What recording needs on this machine, looked at one thing at a time.
//!
//! ```text
//!   this machine --Facts::gather--> Facts --checks--> [Check]        lockprof doctor
//!                                     └-----hint----> words          errors of lockprof record
//! ```
//!
//! In: files of the kernel, limits, one event that is opened on trial. Out: [`Check`]s, each with the
//! command that mends it, and hints for errors, made from the same facts. From [`Facts`] on all is
//! pure, so that tests may be any machine; hints about a file look at that file.

mod facts;
mod hint;
mod kernel;
mod limits;
mod mount;
mod program;
mod rights;
mod workload;

use std::path::Path;

use serde::Serialize;

pub use facts::{Addresses, Facts, Space, Tracing};
pub use hint::{hint, hint_with, output_hint};
pub use mount::{MountError, mount_tracefs};
pub use program::{Debug, Program};

/// How it stands with one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// As it should be.
    Ok,
    /// Recording works, with less to see or at a price.
    Warn,
    /// Recording does not work, or says nothing, until it is mended.
    Fail,
}

impl Level {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Warn => "warn",
            Level::Fail => "fail",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What; a stable name, the kernel's own where it has one.
    pub name: &'static str,
    /// How it stands.
    pub level: Level,
    /// What was found and what follows from it, a sentence.
    pub found: String,
    /// What to type, a command a line; a sentence where no command mends it.
    pub remedy: Option<String>,
}

impl Check {
    fn ok(name: &'static str, found: impl Into<String>) -> Check {
        Check { name, level: Level::Ok, found: found.into(), remedy: None }
    }

    fn warn(name: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Check {
        Check { name, level: Level::Warn, found: found.into(), remedy: Some(remedy.into()) }
    }

    fn fail(name: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Check {
        Check { name, level: Level::Fail, found: found.into(), remedy: Some(remedy.into()) }
    }
}

/// Looks at this machine, and for the debug symbols of `program`.
pub fn all(program: Option<&Path>) -> Vec<Check> {
    checks(&Facts::gather(program))
}

/// Why kernel functions have no names here, and what to type, as a note.
pub fn hidden_symbols() -> String {
    let check = rights::kallsyms(&Facts::gather(None));
    let remedy = check.remedy.map(|commands| format!(" ({})", commands.replace('\n', "; ")));
    check.found + &remedy.unwrap_or_default()
}

/// Every check, in the order in which things are needed.
pub fn checks(facts: &Facts) -> Vec<Check> {
    let mut checks = vec![
        kernel::version(facts),
        kernel::tracepoints(facts),
        rights::paranoid(facts),
        rights::capabilities(facts),
        rights::tracefs(facts),
        rights::trial(facts),
        rights::kallsyms(facts),
        kernel::pmu(facts),
        limits::locked_memory(facts),
        limits::open_files(facts),
        limits::disk(facts),
        kernel::btf(facts),
    ];
    checks.extend(facts.program.as_ref().map(program::debug_files));
    checks
}

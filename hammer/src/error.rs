//! What can go wrong in a workload. In: the failed step and the kernel's answer. Out: a sentence
//! with the values, to be shown as it is.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why a workload could not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not one thread was asked for.
    #[error("no threads: ask for at least one")]
    NoThreads,
    /// The time to run is zero.
    #[error("the time to run is zero")]
    NoTime,
    /// Below, the system call itself takes longer; above, preparing would take minutes.
    #[error("a hold time of {asked:?} is out of range: ask for {least:?} to {most:?}")]
    HoldOutOfRange {
        /// What was asked for.
        asked: Duration,
        /// The shortest hold.
        least: Duration,
        /// The longest hold.
        most: Duration,
    },
    /// A convoy or a schedule with [`Hold::Short`](crate::Hold::Short).
    #[error("this workload needs a long hold: ask for long, or for a time such as 10ms")]
    ShortConvoy,
    /// A schedule whose holds leave no time between them.
    #[error(
        "a hold of {hold:?} every {every:?} leaves too little time between: ask for twice the hold"
    )]
    Schedule {
        /// How long the lock is held.
        hold: Duration,
        /// How often.
        every: Duration,
    },
    /// A thread could not be started.
    #[error("cannot start thread {name}")]
    Spawn {
        /// The name of the thread.
        name: String,
        /// The answer of clone(2).
        source: io::Error,
    },
    /// A thread panicked.
    #[error("thread {0} panicked")]
    Panicked(String),
    /// One of the calls that make up the workload failed.
    #[error("{call} failed")]
    Call {
        /// The system call.
        call: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The directory for the files could not be made.
    #[error("cannot make directory {}", path.display())]
    Directory {
        /// Its path.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn call(call: &str) -> impl FnOnce(io::Error) -> Error {
        let call = call.to_owned();
        |source| Error::Call { call, source }
    }
}

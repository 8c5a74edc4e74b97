//! Threads of one process that duplicate and close a file descriptor: both take `file_lock`, the
//! spinlock of the table of file descriptors. In: number of threads, time. Out: [`Outcome`] with
//! the group `writers`.

use std::io::{self, PipeReader};
use std::time::Duration;

use crate::crew::{self, Job, Pace};
use crate::outcome::Label;
use crate::{Error, Outcome};

/// Threads that want the `file_lock` of their process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FdTable {
    /// Number of threads.
    pub threads: usize,
    /// How long to run.
    pub seconds: Duration,
}

impl FdTable {
    /// Measures the calls alone, then lets the threads contend for `seconds`.
    pub fn run(&self) -> Result<Outcome, Error> {
        // Any descriptor will do; each thread has its own, so that no reference count is shared.
        let descriptors = (0..self.threads).map(|_| io::pipe().map(|(reader, _)| reader));
        let descriptors: Vec<PipeReader> =
            descriptors.collect::<Result<_, _>>().map_err(Error::call("pipe"))?;
        let mut jobs = Vec::with_capacity(self.threads);
        for descriptor in &descriptors {
            let call = || descriptor.try_clone().map(drop);
            let uncontended = crew::uncontended(call).map_err(Error::call(CALL))?;
            let pace = Pace::Rush;
            jobs.push(Job { name: COMM, call_name: CALL, call: Box::new(call), uncontended, pace });
        }
        let tallies = crew::run(jobs, self.seconds)?;
        let label = Label { name: "writers", comm: COMM, call: CALL };
        Ok(Outcome::new("fd-table", "file_lock", vec![(label, &tallies)]))
    }
}

const COMM: &str = "hammer-fd";
const CALL: &str = "fcntl(F_DUPFD) + close";

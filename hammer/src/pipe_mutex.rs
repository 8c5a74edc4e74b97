//! Threads that write to and read from one pipe: each call takes the pipe's mutex.
//! In: number of threads, time. Out: [`Outcome`] with the group `writers`.
//!
//! A thread reads as many bytes as it has just written, so there is always something to read and
//! room to write, and no thread ever waits for data: the mutex is all there is to wait for.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::time::Duration;

use crate::crew::{self, Job, Pace};
use crate::outcome::Label;
use crate::{Error, Outcome};

/// Threads that want the mutex of one pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PipeMutex {
    /// Number of threads.
    pub threads: usize,
    /// How long to run.
    pub seconds: Duration,
}

impl PipeMutex {
    /// Measures the calls alone, then lets the threads contend for `seconds`.
    pub fn run(&self) -> Result<Outcome, Error> {
        let (reader, writer) = io::pipe().map_err(Error::call("pipe"))?;
        let call = || write_and_read(&writer, &reader);
        let uncontended = crew::uncontended(call).map_err(Error::call(CALL))?;
        let job = || Job {
            name: COMM,
            call_name: CALL,
            call: Box::new(call),
            uncontended,
            pace: Pace::Rush,
        };
        let tallies = crew::run((0..self.threads).map(|_| job()).collect(), self.seconds)?;
        let label = Label { name: "writers", comm: COMM, call: CALL };
        Ok(Outcome::new("pipe-mutex", "pipe mutex", vec![(label, &tallies)]))
    }
}

const COMM: &str = "hammer-pipe";
const CALL: &str = "write + read";
/// Bytes of one write. A pipe takes 64 KiB, so a thousand threads fit.
const BYTES: usize = 64;

fn write_and_read(mut writer: &PipeWriter, mut reader: &PipeReader) -> io::Result<()> {
    let mut bytes = [0; BYTES];
    writer.write_all(&bytes)?;
    reader.read_exact(&mut bytes)
}

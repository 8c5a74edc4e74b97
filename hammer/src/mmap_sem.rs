//! Readers and writers of one mmap lock. In: numbers of threads, time, hold. Out: [`Outcome`] with
//! the groups `readers` and `writers`.
//!
//! Writers call mprotect(2). Readers call mincore(2) with short holds; that lets go of the lock
//! after 4,096 pages, so with longer holds they call madvise(MADV_POPULATE_READ), or before Linux
//! 5.14 madvise(MADV_COLD). Each thread has a region of its own.

use std::time::Duration;

use crate::crew::{self, Job, Pace};
use crate::outcome::Label;
use crate::region::{Calibrated, Side, Sizing};
use crate::{Error, Hold, Outcome};

/// Threads that want the mmap lock (`mmap_sem` before Linux 5.8) of their process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MmapSem {
    /// Threads that take it for read.
    pub readers: usize,
    /// Threads that take it for write.
    pub writers: usize,
    /// How long to run.
    pub seconds: Duration,
    /// How long each call keeps the lock.
    pub hold: Hold,
}

impl MmapSem {
    /// Measures the calls alone, then lets the threads contend for `seconds`.
    pub fn run(&self) -> Result<Outcome, Error> {
        let (mut jobs, reading) = jobs(Side::Read, self.readers, self.hold)?;
        let (writers, writing) = jobs_of_writers(self)?;
        jobs.extend(writers);
        let tallies = crew::run(jobs, self.seconds)?;
        let (readers, writers) = tallies.split_at(self.readers);
        let readers = (Label { name: "readers", comm: READER, call: reading }, readers);
        let writers = (Label { name: "writers", comm: WRITER, call: writing }, writers);
        Ok(Outcome::new("mmap-sem", "mmap_lock", vec![readers, writers]))
    }
}

const READER: &str = "hammer-reader";
const WRITER: &str = "hammer-writer";

fn jobs_of_writers(settings: &MmapSem) -> Result<(Vec<Job<'static>>, &'static str), Error> {
    jobs(Side::Write, settings.writers, settings.hold)
}

/// The jobs of one side and the name of their call.
fn jobs(
    side: Side,
    threads: usize,
    hold: Hold,
) -> Result<(Vec<Job<'static>>, &'static str), Error> {
    if threads == 0 {
        return Ok((Vec::new(), ""));
    }
    let sizing = Sizing::find(side, hold)?;
    let name = if side == Side::Read { READER } else { WRITER };
    let jobs: Vec<_> = (0..threads).map(|_| job(name, sizing)).collect::<Result<_, _>>()?;
    let call_name = jobs.first().map_or("", |job| job.call_name);
    Ok((jobs, call_name))
}

/// A thread that makes the sized call on a region of its own, without a pause.
pub(crate) fn job(name: &'static str, sizing: Sizing) -> Result<Job<'static>, Error> {
    let Calibrated { mut region, uncontended } = sizing.region()?;
    let call_name = sizing.call_name(&region);
    let call = Box::new(move || sizing.call(&mut region));
    let pace = if sizing.calibrated() { Pace::Watch(Duration::ZERO) } else { Pace::Rush };
    Ok(Job { name, call_name, call, uncontended, pace })
}

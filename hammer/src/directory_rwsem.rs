//! Threads that make and remove files in one directory: each takes the directory's `i_rwsem` for
//! write. In: number of threads, time, where. Out: [`Outcome`] with the group `writers`.
//!
//! Files are made with mknod(2), not open(2), so that the threads do not meet in the table of file
//! descriptors as well. One operation is mknod and unlink, two turns at the lock.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::time::Duration;

use crate::crew::{self, Job, Pace};
use crate::outcome::Label;
use crate::{Error, Outcome, sys};

/// Threads that want the `i_rwsem` of one directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryRwsem {
    /// Number of threads.
    pub threads: usize,
    /// How long to run.
    pub seconds: Duration,
    /// A directory for the files is made in here, and removed at the end: the file system under
    /// test.
    pub parent: PathBuf,
}

impl DirectoryRwsem {
    /// Measures the calls alone, then lets the threads contend for `seconds`.
    pub fn run(&self) -> Result<Outcome, Error> {
        let directory = Scratch::new(&self.parent)?;
        let mut jobs = Vec::with_capacity(self.threads);
        for number in 0..self.threads {
            let file = directory.0.join(format!("file-{number}"));
            let call = move || make_and_remove(&file);
            let uncontended = crew::uncontended(&call).map_err(Error::call(CALL))?;
            let pace = Pace::Rush;
            jobs.push(Job { name: COMM, call_name: CALL, call: Box::new(call), uncontended, pace });
        }
        let tallies = crew::run(jobs, self.seconds)?;
        let label = Label { name: "writers", comm: COMM, call: CALL };
        Ok(Outcome::new("directory-rwsem", "i_rwsem", vec![(label, &tallies)]))
    }
}

const COMM: &str = "hammer-dir";
const CALL: &str = "mknod + unlink";

fn make_and_remove(file: &Path) -> io::Result<()> {
    sys::make_file(file)?;
    fs::remove_file(file)
}

/// A directory of our own, removed when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(parent: &Path) -> Result<Scratch, Error> {
        let path = parent.join(format!("lockprof-hammer-{}", process::id()));
        fs::create_dir(&path).map_err(|source| Error::Directory { path: path.clone(), source })?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Nothing is lost when an empty directory stays, and there is nobody to tell.
        let _ = fs::remove_dir_all(&self.0);
    }
}

//! The kernel's text files, turned into plain structs.
//!
//! Parsers take bytes, never a path; the functions that open the files stand beside them and name
//! the file in their errors.

pub mod cgroup;
pub mod kallsyms;
pub mod tracefs;
pub mod maps;
pub mod modules;
pub mod task;
pub mod sysctl;
pub mod system;

use std::path::{Path, PathBuf};
use std::{fs, io};

/// A file of the kernel that could not be used.
#[derive(Debug, thiserror::Error)]
pub enum ProcError {
    /// It could not be read.
    #[error("cannot read {}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It holds something else than it should.
    #[error("{} is not as expected", .path.display())]
    Unexpected {
        /// The file.
        path: PathBuf,
    },
}

impl ProcError {
    /// Whether the file, and with it the task that it tells of, is gone.
    pub fn is_gone(&self) -> bool {
        let ProcError::Io { source, .. } = self else { return false };
        source.kind() == io::ErrorKind::NotFound || source.raw_os_error() == Some(libc::ESRCH)
    }
}

fn read(path: impl AsRef<Path>) -> Result<Vec<u8>, ProcError> {
    let path = path.as_ref();
    fs::read(path).map_err(|source| ProcError::Io { path: path.to_path_buf(), source })
}

/// Reads a file and takes what `parse` makes of it.
fn read_as<T>(
    path: impl AsRef<Path>,
    parse: impl FnOnce(&[u8]) -> Option<T>,
) -> Result<T, ProcError> {
    let path = path.as_ref();
    parse(&read(path)?).ok_or_else(|| ProcError::Unexpected { path: path.to_path_buf() })
}

/// A number in decimal, surrounded by space or not.
fn number<T: std::str::FromStr>(bytes: &[u8]) -> Option<T> {
    std::str::from_utf8(bytes).ok()?.trim().parse().ok()
}

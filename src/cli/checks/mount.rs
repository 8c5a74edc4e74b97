//! Mounting tracefs, as the first tracer on a machine does.
//!
//! In: nothing. Out: whether it was done; the caller tells the user.

use std::io;
use std::path::Path;

use lockprof_collectors::procfs::tracefs::{Tracefs, TracefsError};
use rustix::mount::{MountFlags, mount};

/// Where tracefs belongs (`Documentation/trace/ftrace.rst`).
const PLACE: &str = "/sys/kernel/tracing";

/// Why tracefs is still not mounted.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// `mount(2)` refused.
    #[error("cannot mount tracefs at {PLACE}: {0}")]
    Mount(#[source] io::Error),
}

/// Mounts tracefs when it is not mounted anywhere. Gives the place when it was mounted just now, to
/// be told to the user, and `None` when there was nothing to do: it is mounted, readable or not.
pub fn mount_tracefs() -> Result<Option<&'static Path>, MountError> {
    if !matches!(Tracefs::find(), Err(TracefsError::NotMounted)) {
        return Ok(None);
    }
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    match mount("nodev", PLACE, "tracefs", flags, None) {
        Ok(()) => Ok(Some(Path::new(PLACE))),
        Err(errno) => Err(MountError::Mount(errno.into())),
    }
}

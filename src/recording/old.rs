//! The recording that stands where a new one is to be written.
//!
//! ```text
//!   put_aside ── new one is made ──┬── it has begun: keep ──> FILE.old, in place of an older one
//!                                  └── it came to nothing: drop ──> FILE, as if nothing had been
//! ```
//!
//! A command that was typed wrong must not cost two recordings, hence the step between.

use std::io;
use std::path::{Path, PathBuf};

/// A recording that was put aside, or nothing.
#[derive(Debug)]
#[must_use = "dropped, it goes back to where it stood"]
pub struct Old {
    place: PathBuf,
    aside: Option<PathBuf>,
}

impl Old {
    /// Puts the file at `place` aside, if there is one. What is no file stays.
    pub fn put_aside(place: &Path) -> io::Result<Old> {
        let mut old = Old { place: place.to_owned(), aside: None };
        match place.symlink_metadata() {
            Ok(found) if found.is_file() || found.is_symlink() => {}
            Ok(_) => return Ok(old),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(old),
            Err(error) => return Err(error),
        }
        let aside = with_suffix(place, &format!(".{}.old", std::process::id()));
        std::fs::rename(place, &aside)?;
        old.aside = Some(aside);
        Ok(old)
    }

    /// Keeps it as `.old`, in place of an older one there. Gives the name, or `None` when there was
    /// nothing to keep.
    pub fn keep(mut self) -> io::Result<Option<PathBuf>> {
        let Some(aside) = self.aside.take() else { return Ok(None) };
        let old = with_suffix(&self.place, ".old");
        std::fs::rename(aside, &old)?;
        Ok(Some(old))
    }
}

impl Drop for Old {
    fn drop(&mut self) {
        if let Some(aside) = self.aside.take() {
            // Over what may have been begun there. If it fails, the file is still beside.
            let _ = std::fs::rename(aside, &self.place);
        }
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

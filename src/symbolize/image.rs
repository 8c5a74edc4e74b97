//! The bytes of a file, read piece by piece.
//!
//! Files are read with pread(2), never mapped: one that is truncated meanwhile gives an error, not
//! SIGBUS. A recording may name any path, so only regular files are opened (opening a device or a
//! pipe may block, or do something), and nothing is allocated that the file does not have.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use super::Reason;

/// The largest piece that is read. The symbol names of a browser with all debug information take
/// about 150 MB.
const PIECE_LIMIT: u64 = 256 << 20;

/// The bytes of a file, or of something that looks like one.
#[derive(Debug)]
pub(super) enum Image {
    File { file: File, len: u64 },
    Memory(Vec<u8>),
}

impl Image {
    /// Opens the regular file at `path`, through symbolic links.
    pub(super) fn open(path: &Path) -> Result<Image, Reason> {
        // Before opening it: even that may have an effect on a device.
        let metadata = std::fs::metadata(path).map_err(|error| reason(&error))?;
        if !metadata.is_file() {
            return Err(Reason::NotElf);
        }
        let (file, metadata) = open(path, OFlags::empty()).map_err(|error| reason(&error))?;
        if !metadata.is_file() {
            return Err(Reason::NotElf);
        }
        Ok(Image::File { file, len: metadata.len() })
    }

    /// Opens a file in a directory where everyone may write. It must be a regular file that this
    /// user or root owns, and no symbolic link.
    pub(super) fn open_own(path: &Path) -> Result<Image, Reason> {
        let (file, metadata) = match open(path, OFlags::NOFOLLOW) {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(Reason::NoPerfMap),
            Err(_) => return Err(Reason::ForeignPerfMap),
        };
        let own = rustix::process::geteuid().as_raw();
        if !metadata.is_file() || ![0, own].contains(&metadata.uid()) {
            return Err(Reason::ForeignPerfMap);
        }
        Ok(Image::File { file, len: metadata.len() })
    }

    /// Bytes in all.
    pub(super) fn len(&self) -> u64 {
        match self {
            Image::File { len, .. } => *len,
            Image::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// `size` bytes from `offset` on.
    pub(super) fn read(&self, offset: u64, size: u64) -> Result<Vec<u8>, Reason> {
        let end = offset.checked_add(size).ok_or(Reason::Damaged)?;
        if end > self.len() {
            return Err(Reason::Damaged);
        }
        if size > PIECE_LIMIT {
            return Err(Reason::TooLarge);
        }
        match self {
            Image::File { file, .. } => {
                let mut bytes = vec![0; size as usize];
                file.read_exact_at(&mut bytes, offset).map_err(|error| match error.kind() {
                    io::ErrorKind::UnexpectedEof => Reason::Damaged,
                    _ => Reason::Unreadable,
                })?;
                Ok(bytes)
            }
            Image::Memory(bytes) => {
                let piece = bytes.get(offset as usize..end as usize);
                piece.map(<[u8]>::to_vec).ok_or(Reason::Damaged)
            }
        }
    }
}

fn open(path: &Path, flags: OFlags) -> io::Result<(File, std::fs::Metadata)> {
    let flags = flags | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let metadata = file.metadata()?;
    Ok((file, metadata))
}

fn reason(error: &io::Error) -> Reason {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Reason::FileMissing,
        _ => Reason::Unreadable,
    }
}

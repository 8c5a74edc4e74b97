//! Why a file cannot be read, repaired or written: one sentence each, and what to type instead.
//!
//! In: what the other files of this room found. Out: [`ReadError`], [`WriteError`], [`RepairError`]
//! for `commands`, which adds the path.

use std::io;
use std::path::PathBuf;

/// Why a file gives no recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// Not one byte.
    #[error("the file is empty")]
    Empty,
    /// Some other kind of file.
    #[error("not a perf.data file: it starts with {start:?} instead of \"PERFILE2\"")]
    NotPerfData {
        /// Its first bytes, as text.
        start: String,
    },
    /// `"PERFFILE"`, the format of 2009.
    #[error("a perf.data file of the first format (\"PERFFILE\"), which no perf of today writes")]
    FirstFormat,
    /// Written on a machine of the other byte order.
    #[error("a big-endian perf.data file: only little-endian ones are read")]
    BigEndian,
    /// Written by `perf record -o -`.
    #[error("a perf.data stream, as `perf record -o -` writes it into a pipe")]
    Pipe,
    /// Written by `perf record -z`.
    #[error("the records are compressed (`perf record -z`)")]
    Compressed,
    /// Ends before its own header does.
    #[error("the file ends after {len} bytes, inside its header of {header} bytes")]
    TooShort {
        /// Bytes of the file.
        len: u64,
        /// Bytes that the header takes.
        header: u64,
    },
    /// A header field that no perf writes.
    #[error("the file header is damaged: {field} is {value}")]
    Header {
        /// Name of the field.
        field: &'static str,
        /// What stands there.
        value: u64,
    },
    /// A section that points behind the end of the file.
    #[error("{what}: {size} bytes at offset {offset} are not within the file of {len} bytes")]
    OutOfFile {
        /// Which section.
        what: &'static str,
        /// Where it should start.
        offset: u64,
        /// How long it should be.
        size: u64,
        /// Bytes of the file.
        len: u64,
    },
    /// Two sections that claim the same bytes.
    #[error("the file header is damaged: {first} and {second} overlap")]
    Overlap {
        /// One section.
        first: &'static str,
        /// The other one.
        second: &'static str,
    },
    /// A section that is longer than any real one.
    #[error("{what}: {size} bytes are more than the {limit} that are read")]
    TooLarge {
        /// Which section.
        what: &'static str,
        /// How long it says it is.
        size: u64,
        /// What is read at most.
        limit: u64,
    },
    /// Neither attrs nor anything that could be read without them.
    #[error("the file describes no event")]
    NoEvents,
    /// The system's own refusal.
    #[error("cannot read {what}: {source}")]
    Io {
        /// Which part of the file.
        what: &'static str,
        /// `read(2)` or `lseek(2)`.
        source: io::Error,
    },
}

impl ReadError {
    /// What to do about it, when that is known.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            ReadError::Empty => "the recorder wrote nothing; record again",
            ReadError::NotPerfData { .. } => {
                "recordings are made by `lockprof record`, `perf record` and `perf lock record`"
            }
            ReadError::Pipe => {
                "record into a file: `perf record -o FILE ...`; a stream without tracepoints can \
                 be turned into one: `perf inject -o OUT < FILE`"
            }
            ReadError::Compressed => {
                "record again without -z; `perf inject` leaves the records compressed"
            }
            ReadError::BigEndian => "read it on a machine of its own byte order",
            ReadError::FirstFormat => "record again with a perf of today",
            ReadError::TooShort { .. } => "the file was cut; copy it again",
            _ => return None,
        };
        Some(hint.to_owned())
    }
}

/// Why a recording could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// `ENOSPC` or `EDQUOT`: the recording holds what was appended before and can be finished.
    #[error("no space left for the recording after {bytes} bytes of records")]
    DiskFull {
        /// Bytes of records that the file holds.
        bytes: u64,
    },
    /// The disk is so full that not even a recording without records fits.
    #[error("no space left for the recording")]
    NoRoom,
    /// Another file stands there.
    #[error("{} exists already", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// Any other refusal of the system.
    #[error("cannot {action} the recording: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

/// Why a recording could not be repaired.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RepairError {
    /// What is left of it cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// perf writes the tracepoint formats last, and they stand nowhere else.
    #[error("the formats of its tracepoints, which perf writes last, are missing from the file")]
    NoFormats,
    /// Not one whole record.
    #[error("the file holds no whole record")]
    NoRecords,
    /// The system's own refusal.
    #[error("cannot {action} the file: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

impl RepairError {
    /// What to do about it, when that is known.
    pub fn hint(&self) -> Option<String> {
        match self {
            RepairError::Read(error) => error.hint(),
            RepairError::NoFormats | RepairError::NoRecords => Some("record again".to_owned()),
            RepairError::Io { .. } => None,
        }
    }
}

//! Writes a recording while it is being made.
//!
//! In: an origin and the formats once, then the bytes of the rings, then what is known at the end.
//! Out: a perf.data file; at every moment before `finish` one that a killed recorder may leave (the
//! reader and `repair` know it).
//!
//! ```text
//! create --> append* finished_round --+--> finish
//!               ^---------------------+       | no room for the tail: give up the last round
//!               | no room: this round is cut   '--> again
//! ```
//!
//! Only whole rounds stay in a file on a full disk: of half a round some CPUs would be missing.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt, fchown};
use std::path::Path;

use lockprof_collectors::perf::record::{HEADER_SIZE, RecordHeader, kind as record_kind};

use super::block::{Block, kind};
use super::build_id;
use super::error::WriteError;
use super::features;
use super::header::FileHeader;
use super::layout::{Start, Tail};
use super::origin::{BuildId, End, Origin};
use super::tracing_data::TracingData;

/// Ends of rounds that are remembered: what can be given up for the tail, which takes some KiB.
const ROUNDS_MAX: usize = 4096;

/// A recording that is being written.
#[derive(Debug)]
pub struct Writer {
    file: File,
    header: FileHeader,
    block: Block,
    /// Behind the last record.
    data_end: u64,
    /// Behind the last FINISHED_ROUND.
    round_start: u64,
    /// Where the rounds before that started, oldest first.
    rounds: VecDeque<u64>,
    /// Bytes of records that found no room.
    cut_bytes: u64,
    full: bool,
}

/// A recording that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Bytes of its records.
    pub record_bytes: u64,
    /// Bytes of records that the disk had no room for.
    pub cut_bytes: u64,
}

impl Writer {
    /// Makes the file, which must not exist ([`Old`](super::Old) puts one aside), with mode 0600, and writes all that
    /// comes before the records. Under sudo it belongs to the user who called sudo.
    pub fn create(
        path: &Path,
        origin: &Origin,
        tracing: &TracingData,
    ) -> Result<Writer, WriteError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        let file = options.open(path).map_err(|source| match source.kind() {
            io::ErrorKind::AlreadyExists => WriteError::Exists { path: path.to_owned() },
            _ => WriteError::Io { action: "create", source },
        })?;
        if let Some((uid, gid)) = sudo_user() {
            // Where files have no owners (vfat, 9p) this is refused, and nothing is lost by it.
            let _ = fchown(&file, Some(uid), Some(gid));
        }
        Writer::new(file, origin, tracing).inspect_err(|_| {
            // The first error says more than one about the file that is left.
            let _ = std::fs::remove_file(path);
        })
    }

    /// As [`create`](Self::create), into an empty file that is open for reading and writing.
    pub fn new(file: File, origin: &Origin, tracing: &TracingData) -> Result<Writer, WriteError> {
        let start = Start::of(origin, tracing)
            .map_err(|error| WriteError::Io { action: "describe", source: error.into() })?;
        file.write_all_at(&start.bytes, 0).map_err(|error| match is_full(&error) {
            true => WriteError::NoRoom,
            false => WriteError::Io { action: "write", source: error },
        })?;
        let Start { header, block, .. } = start;
        let data_end = header.data.offset;
        let (round_start, rounds) = (data_end, VecDeque::new());
        Ok(Writer { file, header, block, data_end, round_start, rounds, cut_bytes: 0, full: false })
    }

    /// Appends whole records as they came from the rings. After [`WriteError::DiskFull`] the file
    /// has the rounds before this one, and takes no more.
    pub fn append(&mut self, records: &[u8]) -> Result<(), WriteError> {
        if self.full {
            self.cut_bytes += records.len() as u64;
            return Err(self.disk_full());
        }
        match self.file.write_all_at(records, self.data_end) {
            Ok(()) => {
                self.data_end += records.len() as u64;
                Ok(())
            }
            Err(error) if is_full(&error) => {
                self.full = true;
                self.cut_bytes += records.len() as u64;
                self.cut_to(self.round_start)?;
                Err(self.disk_full())
            }
            Err(source) => Err(WriteError::Io { action: "write", source }),
        }
    }

    /// Says that every ring was read once since the last call.
    pub fn finished_round(&mut self) -> Result<(), WriteError> {
        let header =
            RecordHeader { kind: record_kind::FINISHED_ROUND, misc: 0, size: HEADER_SIZE as u16 };
        self.append(&header.to_bytes())?;
        if self.rounds.len() == ROUNDS_MAX {
            self.rounds.pop_front();
        }
        self.rounds.push_back(self.round_start);
        self.round_start = self.data_end;
        Ok(())
    }

    /// Bytes of records in the file.
    pub fn record_bytes(&self) -> u64 {
        self.data_end - self.header.data.offset
    }

    /// Writes what perf needs behind the records, and makes the file a finished one. On a full
    /// disk the last rounds are given up until it fits.
    pub fn finish(
        mut self,
        end: &End,
        build_ids: &[BuildId],
        sample_time: Option<(u64, u64)>,
    ) -> Result<Written, WriteError> {
        // What was cut has made room again.
        self.full = false;
        // perf takes a file without a byte of records for a broken one.
        if self.data_end != self.round_start || self.record_bytes() == 0 {
            match self.finished_round() {
                Err(WriteError::DiskFull { .. }) => {}
                other => other?,
            }
        }
        while self.record_bytes() > 0 {
            let sections = self.end_sections(end, build_ids, sample_time)?;
            let tail = Tail::of(&self.header, &self.block, &sections, self.data_end);
            match tail.write(&self.file, true) {
                Ok(()) => return Ok(self.written(&tail)),
                Err(error) if is_full(&error) => self.give_up_round()?,
                Err(source) => return Err(WriteError::Io { action: "finish", source }),
            }
        }
        Err(WriteError::NoRoom)
    }

    fn written(&self, tail: &Tail) -> Written {
        Written {
            file_bytes: tail.file_len(),
            record_bytes: self.record_bytes(),
            cut_bytes: self.cut_bytes,
        }
    }

    fn end_sections(
        &self,
        end: &End,
        build_ids: &[BuildId],
        sample_time: Option<(u64, u64)>,
    ) -> Result<Vec<(u64, Vec<u8>)>, WriteError> {
        let end = End { cut_bytes: end.cut_bytes + self.cut_bytes, ..end.clone() };
        let end = serde_json::to_vec(&end)
            .map_err(|error| WriteError::Io { action: "describe", source: error.into() })?;
        let mut sections = vec![(kind::END, end)];
        if !build_ids.is_empty() {
            sections.push((kind::BUILD_ID, build_id::encode(build_ids)));
        }
        if let Some((first, last)) = sample_time {
            sections.push((kind::SAMPLE_TIME, features::words_of([first, last])));
        }
        Ok(sections)
    }

    /// Makes room by the last round.
    fn give_up_round(&mut self) -> Result<(), WriteError> {
        let start = self.rounds.pop_back().ok_or(WriteError::NoRoom)?;
        self.cut_to(start)?;
        self.round_start = start;
        Ok(())
    }

    /// Cuts the file, which may have more bytes than were counted.
    fn cut_to(&mut self, end: u64) -> Result<(), WriteError> {
        let cut = self.file.set_len(end);
        cut.map_err(|source| WriteError::Io { action: "cut back", source })?;
        self.cut_bytes += self.data_end - end;
        self.data_end = end;
        Ok(())
    }

    fn disk_full(&self) -> WriteError {
        WriteError::DiskFull { bytes: self.record_bytes() }
    }
}

/// Out of space, of quota, or of what the filesystem takes in one file.
fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// User and group who called sudo, when we are root by it.
fn sudo_user() -> Option<(u32, u32)> {
    let number = |name| std::env::var(name).ok()?.parse().ok();
    rustix::process::geteuid()
        .is_root()
        .then(|| Some((number("SUDO_UID")?, number("SUDO_GID")?)))?
}

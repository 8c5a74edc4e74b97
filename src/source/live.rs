//! Live rings: drained, written into the recording as they stand, handed on as rounds.
//!
//! ```text
//!   rings ──drain──> buffer ──append──> file        then FINISHED_ROUND
//!                      └────────Round──> whoever listens; never waited for
//! ```
//!
//! In: open rings ([`Rings`]) and a [`Writer`]. Out: [`Round`]s, until it is told to stop. All that is
//! taken out are samples before its begin and after its end (`cut`). All that is added to the kernel's
//! records are the mappings of programs that were executed meanwhile:
//! asking the kernel for them costs time inside the mmap_lock of everyone who maps or protects
//! memory, reading `/proc/PID/maps` after an exec costs nobody anything; and THROTTLE records of events
//! that were stopped because nobody could take what they wrote.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use lockprof_collectors::perf::plan::COMMON_SAMPLE;
use lockprof_collectors::perf::record::{HEADER_SIZE, RecordHeader, kind, misc};
use lockprof_collectors::perf::session::{Ready, Session, SessionError};

use super::Round;
use super::cut::{cut, sample_time};
use super::mappings::Mappings;
use crate::model::Timestamp;
use crate::recording::{Synthesizer, WriteError, Writer};

/// A ring is looked at that often even when it is not half full.
const PERIOD: Duration = Duration::from_millis(100);

/// Programs whose mappings are read in one round at the most: a machine that executes more in a
/// tenth of a second loses some user symbols, not records.
const EXECS_A_ROUND: usize = 64;

/// Bytes of the sample id at the end of all other records of ours: `TID TIME CPU IDENTIFIER`.
const TRAILER: usize = 32;

/// Rings that can be waited for and drained: a session, or a test.
pub trait Rings {
    /// Waits for a ring that is half full, for `stop`, or for the time to pass.
    fn poll(&self, timeout: Duration, stop: BorrowedFd<'_>) -> Result<Ready, SessionError>;

    /// Appends what stands in the rings, each read once. Gives the bytes.
    fn drain(&mut self, into: &mut Vec<u8>) -> usize;

    /// Stops what comes too fast to be taken: gives the ids of the instances that were stopped.
    fn stop_flood(&mut self) -> Result<Vec<u64>, SessionError> {
        Ok(Vec::new())
    }
}

impl Rings for Session {
    fn poll(&self, timeout: Duration, stop: BorrowedFd<'_>) -> Result<Ready, SessionError> {
        Session::poll(self, timeout, &[stop])
    }

    fn drain(&mut self, into: &mut Vec<u8>) -> usize {
        Session::drain(self, into)
    }

    fn stop_flood(&mut self) -> Result<Vec<u64>, SessionError> {
        Session::stop_flood(self)
    }
}

/// What ended the recording early.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The rings could not be waited for.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// The recorder: rings in, file and rounds out.
#[derive(Debug)]
pub struct Recorder<R> {
    rings: R,
    writer: Option<Writer>,
    mappings: Option<Mappings>,
    /// Samples of the first round that are older do not count.
    since: u64,
    sample_time: Option<(u64, u64)>,
    offset: u64,
    spare: Vec<u8>,
}

/// What is left when recording is over.
#[derive(Debug)]
pub struct Recorded<R> {
    /// The rings, drained.
    pub rings: R,
    /// The file, without its end; `None` where none was written.
    pub writer: Option<Writer>,
    /// First and last sample.
    pub sample_time: Option<(u64, u64)>,
    /// Files that were mapped for execution.
    pub mapped_files: Vec<Vec<u8>>,
    /// What ended it before it was told to stop.
    pub failure: Option<LiveError>,
}

impl<R: Rings> Recorder<R> {
    /// Records from `rings` into `writer`, or for listeners alone. With `mappings`, those of executed
    /// programs are added.
    pub fn new(
        rings: R,
        writer: impl Into<Option<Writer>>,
        mappings: Option<Mappings>,
    ) -> Recorder<R> {
        let (writer, since, offset) = (writer.into(), 0, 0);
        Recorder { rings, writer, mappings, since, sample_time: None, offset, spare: Vec::new() }
    }

    /// The same, of samples from `time` on, at which every event was enabled.
    pub fn since(self, time: Timestamp) -> Recorder<R> {
        Recorder { since: time.0, ..self }
    }

    /// Writes records that come before those of the rings; gives them as a round.
    pub fn begin(&mut self, records: Vec<u8>) -> Result<Round, LiveError> {
        self.write(&records)?;
        Ok(self.counted(records))
    }

    /// Records until `stop` is readable or hung up. `listen` takes each round and gives back a buffer
    /// when it has one.
    pub fn run(
        mut self,
        stop: BorrowedFd<'_>,
        mut listen: impl FnMut(Round) -> Option<Vec<u8>>,
    ) -> Recorded<R> {
        let failure = self.rounds(stop, &mut listen).err();
        Recorded {
            rings: self.rings,
            writer: self.writer,
            sample_time: self.sample_time,
            mapped_files: self.mappings.map(Mappings::into_files).unwrap_or_default(),
            failure,
        }
    }

    fn rounds(
        &mut self,
        stop: BorrowedFd<'_>,
        listen: &mut impl FnMut(Round) -> Option<Vec<u8>>,
    ) -> Result<(), LiveError> {
        while self.rings.poll(PERIOD, stop)?.others.is_empty() {
            self.round(listen, u64::MAX)?;
        }
        self.round(listen, u64::MAX)?;
        // This one takes what was written while the one before was read, as far as that came.
        let end = self.sample_time.map_or(0, |(_, newest)| newest);
        self.round(listen, end)
    }

    fn round(
        &mut self,
        listen: &mut impl FnMut(Round) -> Option<Vec<u8>>,
        end: u64,
    ) -> Result<(), LiveError> {
        let mut bytes = std::mem::take(&mut self.spare);
        bytes.clear();
        if self.rings.drain(&mut bytes) > 0 {
            // Older samples than the first round's there are not.
            let since = std::mem::take(&mut self.since);
            if since > 0 || end < u64::MAX {
                cut(&mut bytes, &(since..=end));
            }
        }
        if bytes.is_empty() {
            self.spare = bytes;
            return Ok(());
        }
        self.look_at(&mut bytes);
        let stopped = self.rings.stop_flood()?;
        if !stopped.is_empty() {
            let mut records = Synthesizer::new(COMMON_SAMPLE);
            records.at(newest(&bytes));
            stopped.iter().for_each(|&id| records.throttle(id));
            bytes.extend(records.take());
        }
        self.write(&bytes)?;
        let round = self.counted(bytes);
        self.spare = listen(round).unwrap_or_default();
        Ok(())
    }

    fn write(&mut self, records: &[u8]) -> Result<(), WriteError> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        writer.append(records)?;
        writer.finished_round()
    }

    fn counted(&mut self, bytes: Vec<u8>) -> Round {
        let offset = self.offset;
        self.offset += (bytes.len() + HEADER_SIZE) as u64;
        Round { bytes, offset, finished: true }
    }

    /// Notes when samples were taken, and adds the mappings of programs that were executed.
    fn look_at(&mut self, bytes: &mut Vec<u8>) {
        let mut executed: Vec<(i32, u64)> = Vec::new();
        let mut newest = 0;
        for record in records(bytes) {
            let Some(header) = RecordHeader::parse(record) else { break };
            match header.kind {
                kind::SAMPLE => {
                    let Some(time) = sample_time(record) else { continue };
                    let (first, last) = self.sample_time.unwrap_or((time, time));
                    self.sample_time = Some((first.min(time), last.max(time)));
                    newest = newest.max(time);
                }
                kind::COMM if header.misc & misc::COMM_EXEC != 0 => executed.extend(exec(record)),
                _ => {}
            }
        }
        if let Some(mappings) = &mut self.mappings {
            executed.truncate(EXECS_A_ROUND);
            mappings.executed(&executed);
            bytes.extend_from_slice(&mappings.due(newest));
        }
    }
}

/// The time of the newest record.
fn newest(bytes: &[u8]) -> u64 {
    let of_other = |record: &[u8]| word(record, record.len().checked_sub(TRAILER)? + 8);
    let time = |record: &[u8]| sample_time(record).or_else(|| of_other(record));
    records(bytes).filter_map(time).max().unwrap_or(0)
}

/// Process and time of a COMM record of ours: `u32 pid, tid; char comm[]; TID TIME CPU IDENTIFIER`.
fn exec(record: &[u8]) -> Option<(i32, u64)> {
    let pid = word(record, HEADER_SIZE)? as i32;
    let time = word(record, record.len().checked_sub(TRAILER)? + 8)?;
    Some((pid, time))
}

/// Whole records, back to back.
fn records(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let size = usize::from(RecordHeader::parse(rest)?.size);
        let (record, next) = rest.split_at_checked(size.max(HEADER_SIZE))?;
        rest = next;
        Some(record)
    })
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes)
}

//! A recording, read round by round: [`Origin`] first, then its records as they stand in the file.
//!
//! In: a file of `perf record` or of lockprof. Out: [`Round`]s of whole records, cut behind each
//! FINISHED_ROUND. Bytes are read straight into the caller's buffer; only what is read beyond a
//! round's end is kept here for the next one. Records are walked by their headers alone.
//!
//! ```text
//! file     | record | record | FINISHED_ROUND | record | rec...
//! buffer   |<------------ one read ------------------------->|
//! round    |<-------- round.bytes ---------->|<--- carried ->|
//! ```
//!
//! A damaged record ends the reading with a warning: what stands before it is good.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use super::Round;
use crate::recording::{DataRange, Origin, ReadError, Reader, Stop, Walk};

/// Bytes asked for in one read: two of them fit into the second-level cache.
const READ_SIZE: u64 = 256 * 1024;
/// A round comes in pieces of so many bytes or a read more, which are dated while they are in that cache.
const PIECE: usize = 256 * 1024;

/// What records are read from.
trait Input: Read + Seek + Send {}
impl<R: Read + Seek + Send> Input for R {}

/// A recording that is being read.
pub struct Replay {
    origin: Origin,
    data: DataRange,
    input: Box<dyn Input>,
    /// Where the next read starts in the file.
    next_read: u64,
    /// Read already, not handed out yet: the bytes from `carried_from` on.
    carried: Vec<u8>,
    carried_from: usize,
    /// Nothing more can be read.
    ended: bool,
    warnings: Vec<String>,
}

impl Replay {
    /// Opens the recording at `path`.
    pub fn open(path: &Path) -> Result<Replay, ReadError> {
        Ok(Replay::new(Reader::open(path)?))
    }

    /// Reads the recording from memory.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Replay, ReadError> {
        Ok(Replay::new(Reader::new(io::Cursor::new(bytes))?))
    }

    /// Reads on where `reader` stopped: at the first record.
    pub fn new<R: Read + Seek + Send + 'static>(reader: Reader<R>) -> Replay {
        let (origin, data, input) = reader.into_parts();
        Replay {
            origin,
            data,
            input: Box::new(input),
            next_read: data.start,
            carried: Vec::new(),
            carried_from: 0,
            ended: false,
            warnings: Vec::new(),
        }
    }

    /// What is known before the first record.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The origin, to keep; what is left in its place is empty.
    pub fn take_origin(&mut self) -> Origin {
        std::mem::take(&mut self.origin)
    }

    /// Where the records stand in the file, and whether the recorder said so.
    pub fn data(&self) -> DataRange {
        self.data
    }

    /// Bytes of records handed out so far, of [`len`](Self::len).
    pub fn position(&self) -> u64 {
        self.next_record() - self.data.start
    }

    /// Bytes of all records.
    pub fn len(&self) -> u64 {
        self.data.end - self.data.start
    }

    /// Whether the file has no records at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What was wrong with the records read so far, in words for the user.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Fills `into` with the next records; its buffer is used again. `false`: there are no more,
    /// and `into` is empty.
    pub fn next_round(&mut self, into: &mut Round) -> Result<bool, ReadError> {
        loop {
            self.next_piece(into)?;
            if !into.bytes.is_empty() {
                return Ok(true);
            }
            if self.ended {
                return Ok(false);
            }
        }
    }

    /// As [`next_round`](Self::next_round), but a piece may be empty in front of bytes to skip.
    fn next_piece(&mut self, into: &mut Round) -> Result<(), ReadError> {
        into.bytes.clear();
        into.finished = false;
        into.offset = self.next_record();
        if self.ended {
            return Ok(());
        }
        let mut walk = Walk::default();
        let carried = self.carried.get(self.carried_from..).unwrap_or_default();
        let mut stop = walk.on(carried);
        if stop != Stop::NeedMore {
            into.bytes.extend_from_slice(carried.get(..walk.at()).unwrap_or_default());
            self.carried_from += walk.at();
        } else {
            into.bytes.extend_from_slice(carried);
            self.carried.clear();
            self.carried_from = 0;
            while stop == Stop::NeedMore && self.read_on(&mut into.bytes)? {
                stop = walk.on(&into.bytes);
                if stop == Stop::NeedMore && walk.at() >= PIECE {
                    self.carry(into, walk.at());
                    return Ok(());
                }
            }
            self.carry(into, walk.at());
        }
        self.act_on(stop, into)
    }

    /// What a walk's end means for the round and for what comes behind it.
    fn act_on(&mut self, stop: Stop, into: &mut Round) -> Result<(), ReadError> {
        match stop {
            Stop::RoundEnd => into.finished = true,
            Stop::Followed(extra) => self.skip(extra)?,
            Stop::Compressed => return Err(ReadError::Compressed),
            // The end of the records, or the end of a file that was cut inside a record.
            Stop::NeedMore => self.end_with(|left| {
                format!("the last {left} bytes are a part of a record and were left out")
            }),
            Stop::Damaged(size) => {
                let offset = self.next_record();
                self.end_with(|left| {
                    format!(
                        "the record at offset {offset} says that it is {size} bytes long: it and \
                         the {left} bytes from there on cannot be read"
                    )
                });
            }
        }
        Ok(())
    }

    /// Where the record behind the last one handed out starts in the file.
    fn next_record(&self) -> u64 {
        let carried = self.carried.len().saturating_sub(self.carried_from);
        self.next_read - carried as u64
    }

    /// Reads one chunk more; `false` at the end of the records or of the file.
    fn read_on(&mut self, into: &mut Vec<u8>) -> Result<bool, ReadError> {
        let what = "the records";
        let error = |source| ReadError::Io { what, source };
        let most = READ_SIZE.min(self.data.end - self.next_read);
        if self.next_read == self.data.start {
            self.input.seek(SeekFrom::Start(self.next_read)).map_err(error)?;
        }
        into.reserve(most as usize);
        let read = (&mut self.input).take(most).read_to_end(into).map_err(error)?;
        self.next_read += read as u64;
        Ok(read > 0)
    }

    /// Keeps what was read beyond `end` for the next round.
    fn carry(&mut self, into: &mut Round, end: usize) {
        self.carried.extend_from_slice(into.bytes.get(end..).unwrap_or_default());
        into.bytes.truncate(end);
    }

    /// Leaves out the bytes that follow a record without being one.
    fn skip(&mut self, extra: u64) -> Result<(), ReadError> {
        let to = self.next_record().saturating_add(extra).min(self.data.end);
        let carried = self.carried.len() as u64;
        if let Some(ahead) = self.next_read.checked_sub(to).filter(|&ahead| ahead <= carried) {
            self.carried_from = (carried - ahead) as usize;
            return Ok(());
        }
        (self.carried_from, self.next_read) = (0, to);
        self.carried.clear();
        let seek = self.input.seek(SeekFrom::Start(to));
        seek.map(|_| ()).map_err(|source| ReadError::Io { what: "the records", source })
    }

    /// Ends the reading; `warning` words what is left, if anything is.
    fn end_with(&mut self, warning: impl FnOnce(u64) -> String) {
        let left = self.data.end - self.next_record();
        if left > 0 {
            self.warnings.push(warning(left));
        }
        self.ended = true;
    }
}

impl std::fmt::Debug for Replay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replay")
            .field("data", &self.data)
            .field("position", &self.position())
            .field("warnings", &self.warnings)
            .finish_non_exhaustive()
    }
}

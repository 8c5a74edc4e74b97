//! A round whose records are dated and in order of time among themselves.
//!
//! Nothing but the round itself is needed for it, so that a thread which reads ahead can do it. In: a
//! [`Round`]. Out: when and where each of its records is; their bytes stay where they are.

use lockprof_collectors::perf::record::{HEADER_SIZE, RecordHeader, kind};

use crate::decode::Stamps;
use crate::model::Timestamp;
use crate::source::Round;

/// Bytes of most records and more: how many places a round of that many bytes may want.
const RECORD_BYTES: usize = 128;

/// A dated round.
#[derive(Debug)]
pub struct Dated {
    pub(super) round: Round,
    /// When each record was written and where it starts in the round, sorted by both.
    pub(super) records: Vec<(Timestamp, u32)>,
    /// Bytes at the end that are no whole record.
    pub(super) broken_bytes: u64,
}

impl Dated {
    /// Dates the records of `round`. Marks of rounds are left out: they say nothing more.
    pub fn new(round: Round, stamps: &Stamps) -> Dated {
        let bytes = &round.bytes;
        let mut records = Vec::with_capacity(bytes.len() / RECORD_BYTES);
        let mut at: usize = 0;
        while let Ok(start) = u32::try_from(at)
            && let Some(header) = RecordHeader::parse(&bytes[at..])
        {
            let size = usize::from(header.size);
            let Some(record) = bytes.get(at..at + size).filter(|r| r.len() >= HEADER_SIZE) else {
                break;
            };
            if header.kind != kind::FINISHED_ROUND {
                records.push((stamps.time(header, record), start));
            }
            at += size;
        }
        // Stable, and quick on the sorted runs that rings are: the place in the file breaks ties.
        records.sort_by_key(|&(time, _)| time);
        Dated { broken_bytes: (bytes.len() - at) as u64, round, records }
    }

    /// Bytes of its records.
    pub fn bytes(&self) -> usize {
        self.round.bytes.len()
    }

    /// The youngest record.
    pub(super) fn newest(&self) -> Timestamp {
        self.records.last().map_or(Timestamp(0), |&(time, _)| time)
    }
}

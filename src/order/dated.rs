//! A round whose records are dated and in order of time among themselves.
//!
//! Nothing but the round itself is needed for it, so that a thread which reads ahead can do it. In: a
//! [`Round`]. Out: when and where each of its records is, and the id of its kernel stack; their bytes
//! stay where they are.

use lockprof_collectors::perf::record::{HEADER_SIZE, RecordHeader, kind};

use crate::decode::{LayoutError, RawChain, Stamps};
use crate::model::{StackId, Timestamp};
use crate::recording::EventDesc;
use crate::source::Round;
use crate::stacks::KernelIds;

/// Bytes of most records and more: how many places a round of that many bytes may want.
const RECORD_BYTES: usize = 128;

/// Dates records, and gives their kernel stacks ids: while their bytes are near.
#[derive(Debug)]
pub struct Dater {
    stamps: Stamps,
    ids: KernelIds,
}

impl Dater {
    /// For the records of these events.
    pub fn new(events: &[EventDesc]) -> Result<Dater, LayoutError> {
        Ok(Dater { stamps: Stamps::new(events)?, ids: KernelIds::default() })
    }

    fn stack(&mut self, header: RecordHeader, record: &[u8]) -> StackId {
        let Some(bytes) = self.stamps.callchain(header, record) else { return StackId::EMPTY };
        let chain = RawChain { bytes, ..RawChain::default() };
        self.ids.id(chain.split().kernel)
    }
}

/// A record of a round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub(super) time: Timestamp,
    /// Where it starts.
    pub(super) at: u32,
    pub(super) stack: StackId,
}

/// A dated round.
#[derive(Debug)]
pub struct Dated {
    pub(super) round: Round,
    /// Sorted by time and place.
    pub(super) records: Vec<Record>,
    /// Bytes at the end that are no whole record.
    pub(super) broken_bytes: u64,
}

impl Dated {
    /// Dates the records of `round`. Marks of rounds are left out: they say nothing more.
    pub fn new(round: Round, dater: &mut Dater) -> Dated {
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
                let time = dater.stamps.time(header, record);
                records.push(Record { time, at: start, stack: dater.stack(header, record) });
            }
            at += size;
        }
        // Stable, and quick on the sorted runs that rings are: the place in the file breaks ties.
        records.sort_by_key(|record| record.time);
        Dated { broken_bytes: (bytes.len() - at) as u64, round, records }
    }

    /// The youngest record.
    pub(super) fn newest(&self) -> Timestamp {
        self.records.last().map_or(Timestamp(0), |record| record.time)
    }
}

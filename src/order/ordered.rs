//! Records in order of time, and the bytes that they stand in.
//!
//! Nothing but itself is needed to read it, so that another thread can do that. In: what
//! [`Order`](super::Order) has put in order. Out: one [`RawRecord`] after the other; then the buffers that
//! nobody needs any more.

use std::sync::Arc;

use lockprof_collectors::perf::record::RecordHeader;

use super::OrderFaults;
use crate::decode::RawRecord;
use crate::model::{StackId, Timestamp};

/// Where a record is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub(super) time: Timestamp,
    /// The number of its piece, counted from the first that ever was.
    pub(super) piece: u32,
    /// Where it starts there.
    pub(super) at: u32,
    pub(super) stack: StackId,
}

/// A piece of a round as it stands in a ring or a file.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) bytes: Vec<u8>,
    pub(super) offset: u64,
}

/// Some records, none of which is younger than any that follows later.
#[derive(Debug)]
pub struct Ordered {
    pub(super) records: Vec<Placed>,
    /// The number of the first of `pieces`.
    pub(super) first_piece: u32,
    /// Those that are not all read; `None`: one that is.
    pub(super) pieces: Vec<Option<Arc<Piece>>>,
    pub(super) taken: u64,
    pub(super) faults: OrderFaults,
}

impl Ordered {
    /// The records in order of time.
    pub fn records(&self) -> impl Iterator<Item = RawRecord<'_>> {
        self.records.iter().filter_map(|&placed| self.record(placed))
    }

    #[inline]
    fn record(&self, Placed { time, piece, at, stack }: Placed) -> Option<RawRecord<'_>> {
        let index = piece.wrapping_sub(self.first_piece) as usize;
        let piece = self.pieces.get(index)?.as_deref()?;
        let bytes = piece.bytes.get(at as usize..)?;
        let size = usize::from(RecordHeader::parse(bytes)?.size);
        let offset = piece.offset.saturating_add(u64::from(at));
        Some(RawRecord { bytes: bytes.get(..size)?, offset, time, stack })
    }

    /// Bytes of all rounds that were taken until then.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// What was left out or bent since the records before these.
    pub fn faults(&self) -> OrderFaults {
        self.faults
    }

    /// The buffers of the pieces that were read to their ends.
    pub fn into_buffers(self) -> impl Iterator<Item = Vec<u8>> {
        self.pieces.into_iter().flatten().filter_map(Arc::into_inner).map(|piece| piece.bytes)
    }
}

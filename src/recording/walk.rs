//! A walk over records by their headers alone: where they end, and where a round does.
//!
//! In: bytes as they stand in the file, a chunk at a time. Out: how far whole records go, and why
//! the walk stopped there ([`Stop`]). What a record says is left to `decode`.

use lockprof_collectors::perf::record::{HEADER_SIZE, RecordHeader, kind};

/// Why a walk over records stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The bytes end before the next record does.
    NeedMore,
    /// Behind a FINISHED_ROUND.
    RoundEnd,
    /// Behind a record that so many bytes follow which are no records.
    Followed(u64),
    /// In front of a record of `perf record -z`.
    Compressed,
    /// In front of a record that says it is shorter than its own header.
    Damaged(u16),
}

/// A walk that goes on where it stopped when there are more bytes.
#[derive(Debug, Default)]
pub(crate) struct Walk {
    at: usize,
}

impl Walk {
    /// Bytes of the whole records so far.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// Walks on over `bytes`, which start where the walk started.
    pub(crate) fn on(&mut self, bytes: &[u8]) -> Stop {
        loop {
            let rest = bytes.get(self.at..).unwrap_or_default();
            let Some(header) = RecordHeader::parse(rest) else { return Stop::NeedMore };
            let size = usize::from(header.size);
            if size < HEADER_SIZE {
                return Stop::Damaged(header.size);
            }
            let Some(record) = rest.get(..size) else { return Stop::NeedMore };
            let stop = stop_of(header.kind, record);
            if stop != Some(Stop::Compressed) {
                self.at += size;
            }
            if let Some(stop) = stop {
                return stop;
            }
        }
    }
}

/// What the perf tool's own records mean for a walk; the kernel's mean nothing.
#[inline]
fn stop_of(kind: u32, record: &[u8]) -> Option<Stop> {
    if kind < kind::USER_TYPE_START {
        return None;
    }
    let number = |len: usize| {
        let bytes = record.get(HEADER_SIZE..)?.get(..len)?;
        Some(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    };
    match kind {
        kind::FINISHED_ROUND => Some(Stop::RoundEnd),
        // u32 size; the bytes that follow are padded to 8.
        kind::HEADER_TRACING_DATA => Some(Stop::Followed(number(4)?.next_multiple_of(8))),
        // u64 size
        kind::AUXTRACE => Some(Stop::Followed(number(8)?)),
        kind::COMPRESSED | kind::COMPRESSED2 => Some(Stop::Compressed),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, payload: &[u8]) -> Vec<u8> {
        let size = (HEADER_SIZE + payload.len()) as u16;
        [&RecordHeader { kind, misc: 0, size }.to_bytes()[..], payload].concat()
    }

    #[test]
    fn a_walk_stops_where_the_readers_care() {
        let lost = record(kind::LOST, &[0; 16]);
        let zero = record(kind::LOST, &[]).iter().take(6).copied().chain([0, 0]).collect();
        let cases: [(Vec<u8>, usize, Stop); 7] = [
            (lost[..23].to_vec(), 0, Stop::NeedMore),
            (lost[..7].to_vec(), 0, Stop::NeedMore),
            (record(kind::FINISHED_ROUND, &[]), 8, Stop::RoundEnd),
            (record(kind::HEADER_TRACING_DATA, &[9, 1, 0, 0]), 12, Stop::Followed(272)),
            (record(kind::AUXTRACE, &[0xff; 40]), 48, Stop::Followed(u64::MAX)),
            (record(kind::COMPRESSED, &[1; 8]), 0, Stop::Compressed),
            (zero, 0, Stop::Damaged(0)),
        ];
        for (bytes, at, stop) in cases {
            let mut walk = Walk::default();
            assert_eq!(walk.on(&[&lost[..], &bytes].concat()), stop);
            assert_eq!(walk.at(), 24 + at, "{stop:?}");
        }
    }

    #[test]
    fn a_walk_goes_on_when_more_bytes_have_come() {
        let bytes = [record(kind::LOST, &[0; 16]), record(kind::FINISHED_ROUND, &[])].concat();
        let mut walk = Walk::default();
        for len in 0..bytes.len() {
            assert_eq!(walk.on(&bytes[..len]), Stop::NeedMore);
        }
        assert_eq!(walk.on(&bytes), Stop::RoundEnd);
        assert_eq!(walk.at(), bytes.len());
    }
}

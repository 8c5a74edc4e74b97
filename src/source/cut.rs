//! Where a recording begins and ends: at one moment on all CPUs.
//!
//! In: a round of live rings and a span of time. Out: the round without the samples outside of it.
//!
//! ```text
//!          all events are enabled       newest sample of the round before the last
//!   CPU 0: .....|===========================|..
//!   CPU 1:   ...|===========================|.......
//! ```
//!
//! Events are enabled one after the other, and rings are read one after the other: without a cut the
//! recording would have ends of waits that began on a CPU whose begins were not enabled yet, and begins
//! on a CPU that was read after the one on which the task's wait before had ended. Of what was written
//! until the newest sample of a round, nothing is missing after the next round. What tells of tasks,
//! mappings and losses is never cut.

use std::ops::RangeInclusive;

use lockprof_collectors::perf::record::{HEADER_SIZE, RecordHeader, kind};

/// Offset of TIME in every sample of ours: header, IDENTIFIER, IP, TID.
const SAMPLE_TIME: usize = HEADER_SIZE + 24;

/// When a sample was taken; `None` for any other record.
pub(super) fn sample_time(record: &[u8]) -> Option<u64> {
    let header = RecordHeader::parse(record)?;
    let time = record.get(SAMPLE_TIME..SAMPLE_TIME + 8)?.try_into().ok()?;
    (header.kind == kind::SAMPLE).then(|| u64::from_le_bytes(time))
}

/// Takes out the samples that were not taken within `span`.
pub(super) fn cut(bytes: &mut Vec<u8>, span: &RangeInclusive<u64>) {
    let (mut kept, mut at) = (0, 0);
    while let Some(record) = bytes.get(at..).and_then(first_record) {
        let (size, stays) = (record.len(), sample_time(record).is_none_or(|t| span.contains(&t)));
        if stays {
            bytes.copy_within(at..at + size, kept);
            kept += size;
        }
        at += size;
    }
    bytes.drain(kept..at);
}

/// The record that stands first in `bytes`, whole.
fn first_record(bytes: &[u8]) -> Option<&[u8]> {
    let size = usize::from(RecordHeader::parse(bytes)?.size);
    bytes.get(..size.max(HEADER_SIZE))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u32, time: u64) -> Vec<u8> {
        let size = (SAMPLE_TIME + 16) as u16;
        let mut bytes = RecordHeader { kind, misc: 0, size }.to_bytes().to_vec();
        bytes.resize(SAMPLE_TIME, 0xee);
        bytes.extend(time.to_le_bytes());
        bytes.resize(usize::from(size), time as u8);
        bytes
    }

    #[test]
    fn samples_outside_of_the_span_are_taken_out_and_nothing_else() {
        let sample = |time| record(kind::SAMPLE, time);
        let others = [record(kind::FORK, 1), record(kind::LOST, 99)];
        let [fork, lost] = &others;
        let mut bytes = [sample(4), fork.clone(), sample(5), sample(9), lost.clone()].concat();
        bytes.extend(sample(10));
        cut(&mut bytes, &(5..=9));
        assert_eq!(bytes, [fork.clone(), sample(5), sample(9), lost.clone()].concat());
    }

    #[test]
    fn a_record_without_its_end_stays_as_it_is() {
        let whole = record(kind::SAMPLE, 4);
        for end in 0..whole.len() {
            let mut bytes = [&whole[..], &whole[..end]].concat();
            cut(&mut bytes, &(5..=9));
            assert_eq!(bytes, &whole[..end]);
        }
        let mut zeroes = vec![0; 20];
        cut(&mut zeroes, &(5..=9));
        assert_eq!(zeroes, [0; 20], "sizes of zero end the walk");
    }
}

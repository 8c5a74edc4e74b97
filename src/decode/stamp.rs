//! When a record happened: all that ordering needs, without decoding the rest.

use lockprof_collectors::perf::record::{RecordHeader, kind};

use super::layout::{LayoutError, Layouts, word};
use crate::model::Timestamp;
use crate::recording::EventDesc;

/// One record as it stands in a ring or a file: whole, header first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawRecord<'a> {
    /// Its bytes, header included.
    pub bytes: &'a [u8],
    /// Where it stands in the file, for messages.
    pub offset: u64,
    /// Its time; 0 when it has none.
    pub time: Timestamp,
}

/// Reads the time of records.
#[derive(Clone, Debug)]
pub struct Stamps {
    layouts: Layouts,
}

impl Stamps {
    /// For the records of these events.
    pub fn new(events: &[EventDesc]) -> Result<Stamps, LayoutError> {
        Ok(Stamps { layouts: Layouts::new(events)? })
    }

    /// When the record happened; 0 for records without a time: those that the recorder made up.
    #[inline]
    pub fn time(&self, header: RecordHeader, record: &[u8]) -> Timestamp {
        Timestamp(self.find(header, record).unwrap_or(0))
    }

    #[inline]
    fn find(&self, header: RecordHeader, record: &[u8]) -> Option<u64> {
        if header.kind == kind::SAMPLE {
            return word(record, self.layouts.time_of_sample(record)?.sample_time?);
        }
        if header.kind >= kind::USER_TYPE_START {
            return None;
        }
        let layout = self.layouts.time_of_other(record);
        let trailer = record.len().checked_sub(layout.id_size).filter(|_| layout.sample_id_all)?;
        word(record, trailer + layout.id_time?)
    }
}

//! When a record happened, and its callchain: all that is wanted of it before it is decoded.

use lockprof_collectors::perf::record::{RecordHeader, kind};

use super::layout::{LayoutError, Layouts, word};
use super::record::callchain;
use crate::model::{StackId, Timestamp};
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
    /// The id of the kernel part of its callchain.
    pub stack: StackId,
}

/// Reads the time of records, and finds their callchains.
#[derive(Clone, Debug)]
pub struct Stamps {
    layouts: Layouts,
    /// Of each event, whether anyone looks at its kernel stacks.
    wanted: Vec<bool>,
}

impl Stamps {
    /// For the records of these events.
    pub fn new(events: &[EventDesc]) -> Result<Stamps, LayoutError> {
        // A wait ends where it began.
        let is_end =
            |event: &EventDesc| event.format.iter().any(|format| format.name == "contention_end");
        let wanted = events.iter().map(|event| !is_end(event)).collect();
        Ok(Stamps { layouts: Layouts::new(events)?, wanted })
    }

    /// The callchain of a sample whose kernel stack somebody will look at: 8 bytes an address.
    #[inline]
    pub fn callchain<'a>(&self, header: RecordHeader, record: &'a [u8]) -> Option<&'a [u8]> {
        if header.kind != kind::SAMPLE {
            return None;
        }
        let (event, layout) = self.layouts.of_sample(record)?;
        let wanted = self.wanted.get(event).is_some_and(|&wanted| wanted);
        if wanted { callchain(layout, &mut layout.tail(record)?) } else { None }
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

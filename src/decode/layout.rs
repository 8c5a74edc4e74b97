//! What the attrs of a recording say about where things stand in its records.
//!
//! ```text
//! sample:   header | IDENTIFIER | IP | TID | TIME | ADDR | ID | STREAM_ID | CPU | PERIOD | READ | CALLCHAIN | RAW | ...
//!           ... | PHYS_ADDR | CGROUP | DATA_PAGE_SIZE | CODE_PAGE_SIZE | AUX
//! others:   header | body | TID | TIME | ID | STREAM_ID | CPU | IDENTIFIER      (with sample_id_all)
//! ```
//!
//! Each field is there when its bit is set in `attr.sample_type`, and all are 8 bytes up to READ. What
//! stands between RAW and CGROUP has many lengths: the cgroup is found from the end, where AUX, whose
//! length is no fixed one either, does not follow.
//! Source: `include/uapi/linux/perf_event.h`, at `PERF_RECORD_SAMPLE` and `struct sample_id`.

use hashbrown::HashMap;
use lockprof_collectors::perf::attr::{Attr, flag, sample};
use lockprof_collectors::perf::record::HEADER_SIZE;
use thiserror::Error;

use super::reader::Bytes;
use crate::recording::EventDesc;

/// Attrs that do not tell which record belongs to which event.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum LayoutError {
    /// A file without events.
    #[error("the recording describes no events")]
    NoEvents,
    /// Unknown fields have unknown sizes.
    #[error("event {event} samples fields that this version does not know (sample_type {bits:#x})")]
    UnknownFields {
        /// The event's name or index.
        event: String,
        /// The unknown bits.
        bits: u64,
    },
    /// Without an id at one place no sample can be told from another.
    #[error("the events of the recording put their ids at different places")]
    NoCommonId,
}

/// Bytes from the start of a sample, and from the end of other records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    /// `attr.sample_type`.
    pub(super) sample_type: u64,
    /// `attr.read_format`.
    pub(super) read_format: u64,
    /// Whether records other than samples end with a sample id.
    pub(super) sample_id_all: bool,
    /// TIME in a sample.
    pub(super) sample_time: Option<usize>,
    /// IP, TID, CPU and PERIOD in a sample.
    pub(super) sample_ip: Option<usize>,
    pub(super) sample_tid: Option<usize>,
    pub(super) sample_cpu: Option<usize>,
    pub(super) sample_period: Option<usize>,
    /// Where the fields begin whose length is no fixed one: READ, CALLCHAIN, RAW.
    pub(super) sample_tail: usize,
    /// Bytes of a sample id.
    pub(super) id_size: usize,
    /// TIME in a sample id.
    pub(super) id_time: Option<usize>,
    /// Where the event's id stands in a sample.
    pub(super) sample_event: Option<usize>,
    /// Where the event's id stands in a sample id.
    pub(super) id_event: Option<usize>,
    /// CGROUP of a sample, counted from its end.
    pub(super) cgroup_from_end: Option<usize>,
}

impl Layout {
    fn of(attr: &Attr) -> Layout {
        use sample::{ADDR, CPU, ID, IDENTIFIER, IP, PERIOD, STREAM_ID, TID, TIME};
        const SAMPLE: [u64; 9] = [IDENTIFIER, IP, TID, TIME, ADDR, ID, STREAM_ID, CPU, PERIOD];
        const SAMPLE_ID: [u64; 6] = [TID, TIME, ID, STREAM_ID, CPU, IDENTIFIER];
        let sample_at = |field| offset(attr, &SAMPLE, field).map(|at| at + HEADER_SIZE);
        let id_at = |field| offset(attr, &SAMPLE_ID, field);
        Layout {
            sample_type: attr.sample_type,
            read_format: attr.read_format,
            sample_id_all: attr.has(flag::SAMPLE_ID_ALL),
            sample_time: sample_at(TIME),
            sample_ip: sample_at(IP),
            sample_tid: sample_at(TID),
            sample_cpu: sample_at(CPU),
            sample_period: sample_at(PERIOD),
            sample_tail: HEADER_SIZE + size(attr, &SAMPLE),
            id_size: size(attr, &SAMPLE_ID),
            id_time: id_at(TIME),
            sample_event: sample_at(IDENTIFIER).or(sample_at(ID)),
            id_event: id_at(IDENTIFIER).or(id_at(ID)),
            cgroup_from_end: cgroup_from_end(attr),
        }
    }

    /// The fields whose length is no fixed one.
    #[inline]
    pub(super) fn tail<'a>(&self, record: &'a [u8]) -> Option<Bytes<'a>> {
        record.get(self.sample_tail..).map(Bytes)
    }
}

fn cgroup_from_end(attr: &Attr) -> Option<usize> {
    const BEHIND: [u64; 2] = [sample::DATA_PAGE_SIZE, sample::CODE_PAGE_SIZE];
    let found = attr.samples(sample::CGROUP) && !attr.samples(sample::AUX);
    let behind = BEHIND.iter().filter(|&&field| attr.samples(field)).count();
    found.then_some((behind + 1) * 8)
}

/// Bytes of those fields of `order` that `attr` samples.
fn size(attr: &Attr, order: &[u64]) -> usize {
    order.iter().filter(|&&field| attr.samples(field)).count() * 8
}

/// Bytes before `field` among those of `order` that `attr` samples; `None` when it does not.
fn offset(attr: &Attr, order: &[u64], field: u64) -> Option<usize> {
    let before = order.split(|&f| f == field).next().unwrap_or_default();
    attr.samples(field).then(|| size(attr, before))
}

/// The layouts of all events, and how a record finds its own.
#[derive(Clone, Debug)]
pub(super) struct Layouts {
    events: Vec<Layout>,
    by_id: HashMap<u64, usize>,
    /// The layout of every event, as far as time is concerned, when they agree: dating a record then
    /// takes no look-up.
    of_time: Option<Layout>,
}

impl Layouts {
    pub(super) fn new(events: &[EventDesc]) -> Result<Layouts, LayoutError> {
        if events.is_empty() {
            return Err(LayoutError::NoEvents);
        }
        for (index, event) in events.iter().enumerate() {
            let bits = event.attr.sample_type & !sample::KNOWN;
            if bits != 0 {
                let name =
                    if event.name.is_empty() { index.to_string() } else { event.name.clone() };
                return Err(LayoutError::UnknownFields { event: name, bits });
            }
        }
        let layouts: Vec<Layout> = events.iter().map(|event| Layout::of(&event.attr)).collect();
        let place = |layout: &Layout| (layout.sample_event, layout.id_event);
        let common = layouts.iter().all(|layout| place(layout) == place(&layouts[0]));
        if layouts.len() > 1 && (!common || layouts[0].sample_event.is_none()) {
            return Err(LayoutError::NoCommonId);
        }
        let ids = |(index, event): (usize, &EventDesc)| {
            event.ids.iter().map(move |&id| (id, index)).collect::<Vec<_>>()
        };
        let by_id = events.iter().enumerate().flat_map(ids).collect();
        let time = |layout: &Layout| {
            (layout.sample_time, layout.id_time, layout.id_size, layout.sample_id_all)
        };
        let agree = layouts.iter().all(|layout| time(layout) == time(&layouts[0]));
        let of_time = agree.then_some(layouts[0]);
        Ok(Layouts { events: layouts, by_id, of_time })
    }

    /// The layout by which a sample is dated.
    #[inline]
    pub(super) fn time_of_sample(&self, record: &[u8]) -> Option<&Layout> {
        self.of_time.as_ref().or_else(|| self.of_sample(record).map(|(_, layout)| layout))
    }

    /// The layout by which another record is dated.
    #[inline]
    pub(super) fn time_of_other(&self, record: &[u8]) -> &Layout {
        self.of_time.as_ref().unwrap_or_else(|| self.of_other(record))
    }

    /// Index and layout of the event that a sample belongs to.
    #[inline]
    pub(super) fn of_sample(&self, record: &[u8]) -> Option<(usize, &Layout)> {
        if let [only] = self.events.as_slice() {
            return Some((0, only));
        }
        let at = self.events[0].sample_event?;
        self.by_event_id(word(record, at)?)
    }

    /// The layout of the sample id at the end of another record. Ids that belong to no event (0 in
    /// records that the recorder made up) have the first event's layout, as all of them must.
    #[inline]
    pub(super) fn of_other(&self, record: &[u8]) -> &Layout {
        let first = &self.events[0];
        let id = first.id_event.and_then(|at| {
            let trailer = record.len().checked_sub(first.id_size)?;
            word(record, trailer + at)
        });
        match id.filter(|_| self.events.len() > 1).and_then(|id| self.by_event_id(id)) {
            Some((_, layout)) => layout,
            None => first,
        }
    }

    #[inline]
    fn by_event_id(&self, id: u64) -> Option<(usize, &Layout)> {
        let &index = self.by_id.get(&id)?;
        Some((index, &self.events[index]))
    }
}

#[inline]
pub(super) fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(sample_type: u64, ids: &[u64]) -> EventDesc {
        let attr = Attr { sample_type, flags: flag::SAMPLE_ID_ALL, ..Attr::default() };
        EventDesc { attr, name: String::new(), ids: ids.to_vec(), format: None }
    }

    #[test]
    fn fields_stand_in_the_kernels_order() {
        use sample::{CPU, ID, IDENTIFIER, IP, TID, TIME};
        let layout = Layout::of(&event(IDENTIFIER | IP | TID | TIME | CPU, &[]).attr);
        assert_eq!((layout.sample_time, layout.sample_event), (Some(32), Some(8)));
        assert_eq!((layout.id_size, layout.id_time, layout.id_event), (32, Some(8), Some(24)));
        let layout = Layout::of(&event(IP | TIME | ID, &[]).attr);
        assert_eq!((layout.sample_time, layout.sample_event), (Some(16), Some(24)));
        assert_eq!((layout.id_size, layout.id_time, layout.id_event), (16, Some(0), Some(8)));
    }

    #[test]
    fn the_cgroup_stands_before_the_page_sizes_and_is_lost_before_aux() {
        use sample::{AUX, CGROUP, CODE_PAGE_SIZE, DATA_PAGE_SIZE, RAW};
        let from_end = |fields| Layout::of(&event(fields, &[]).attr).cgroup_from_end;
        assert_eq!(from_end(RAW | CGROUP), Some(8));
        assert_eq!(from_end(CGROUP | CODE_PAGE_SIZE), Some(16));
        assert_eq!(from_end(CGROUP | DATA_PAGE_SIZE | CODE_PAGE_SIZE), Some(24));
        assert_eq!(from_end(CGROUP | AUX), None);
        assert_eq!(from_end(RAW), None);
    }

    #[test]
    fn events_that_cannot_be_told_apart_are_refused() {
        let refuse = |events: &[EventDesc]| Layouts::new(events).unwrap_err();
        assert_eq!(refuse(&[]), LayoutError::NoEvents);
        let (a, b) = (event(sample::IP, &[1]), event(sample::IP, &[2]));
        assert_eq!(refuse(&[a.clone(), b]), LayoutError::NoCommonId);
        assert!(Layouts::new(&[a]).is_ok());
        let unknown = event(1 << 40, &[]);
        assert_eq!(
            refuse(&[unknown]),
            LayoutError::UnknownFields { event: "0".into(), bits: 1 << 40 }
        );
    }
}

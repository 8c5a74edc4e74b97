//! The first half of the pipe: rounds in, events in order of time out.
//!
//! Records that cannot be read are counted by reason; nothing is dropped in silence.

use std::collections::BTreeMap;

use lockprof_collectors::perf::record::{RecordHeader, kind};

use crate::decode::{DecodeError, Decoder, Event, LayoutError, RawRecord, Stamps};
use crate::order::{Dated, Order, OrderFaults};
use crate::recording::Origin;
use crate::source::Round;

/// Rounds -> events, also for those who want no more than them.
#[derive(Debug)]
pub struct EventStream {
    stamps: Stamps,
    order: Order,
    decoder: Decoder,
    /// By reason; sorted, so that every report lists them in one order.
    unreadable: BTreeMap<DecodeError, u64>,
    records: u64,
}

impl EventStream {
    /// For the rounds of a recording.
    pub fn new(origin: &Origin) -> Result<EventStream, LayoutError> {
        Ok(EventStream {
            stamps: Stamps::new(&origin.events)?,
            order: Order::default(),
            decoder: Decoder::new(&origin.events)?,
            unreadable: BTreeMap::new(),
            records: 0,
        })
    }

    /// Takes a round; events that nothing can precede any more go to `sink`.
    pub fn push(&mut self, round: Round, sink: &mut impl FnMut(&Event<'_>)) {
        let dated = Dated::new(round, &self.stamps);
        self.push_dated(dated, sink);
    }

    /// The same for a round that another thread has dated.
    pub fn push_dated(&mut self, round: Dated, sink: &mut impl FnMut(&Event<'_>)) {
        let EventStream { order, decoder, unreadable, records, .. } = self;
        order.push(round, &mut |raw| {
            *records += u64::from(!is_recorders(raw));
            hand_on(decoder, unreadable, raw, sink);
        });
    }

    /// Hands on all that is left.
    pub fn finish(&mut self, sink: &mut impl FnMut(&Event<'_>)) {
        let EventStream { order, decoder, unreadable, records, .. } = self;
        order.finish(&mut |raw| {
            *records += u64::from(!is_recorders(raw));
            hand_on(decoder, unreadable, raw, sink);
        });
    }

    /// A buffer for the next round.
    pub fn spare_buffer(&mut self) -> Vec<u8> {
        self.order.spare_buffer()
    }

    /// Records so far, those left out that only the file has.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Records that could not be read, by reason.
    pub fn unreadable(&self) -> &BTreeMap<DecodeError, u64> {
        &self.unreadable
    }

    /// What ordering had to leave out or to bend.
    pub fn order_faults(&self) -> OrderFaults {
        self.order.faults()
    }
}

/// Whether the recorder wrote this into the file, for whoever reads it: a live screen has not seen it.
#[inline]
fn is_recorders(raw: RawRecord<'_>) -> bool {
    let kind = RecordHeader::parse(raw.bytes).map(|header| header.kind);
    matches!(kind, Some(kind::FINISHED_ROUND | kind::LOST_SAMPLES))
}

#[inline]
fn hand_on(
    decoder: &Decoder,
    unreadable: &mut BTreeMap<DecodeError, u64>,
    raw: RawRecord<'_>,
    sink: &mut impl FnMut(&Event<'_>),
) {
    match decoder.decode(raw) {
        Ok(event) => sink(&event),
        Err(error) => *unreadable.entry(error).or_default() += 1,
    }
}

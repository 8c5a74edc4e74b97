//! The first half of the pipe: rounds in, events in order of time out.
//!
//! Records that cannot be read are counted by reason; nothing is dropped in silence.

use std::collections::BTreeMap;

use lockprof_collectors::perf::record::{RecordHeader, kind};

use crate::decode::{DecodeError, Decoder, Event, LayoutError, RawRecord};
use crate::order::{Dated, Dater, Order, OrderFaults, Ordered};
use crate::recording::Origin;
use crate::source::Round;

/// Buffers kept for the next rounds: as many pieces as a long round has. Memory that is given back and
/// asked for again costs more than reading a file into it.
const SPARE_BUFFERS: usize = 64;

/// Rounds -> events, also for those who want no more than them.
#[derive(Debug)]
pub struct EventStream {
    dater: Dater,
    order: Order,
    events: Events,
}

/// Ordered records -> events, and what came of them.
#[derive(Debug)]
struct Events {
    decoder: Decoder,
    /// By reason; sorted, so that every report lists them in one order.
    unreadable: BTreeMap<DecodeError, u64>,
    records: u64,
    faults: OrderFaults,
    spare: Vec<Vec<u8>>,
}

impl Events {
    fn take(&mut self, ordered: Ordered, sink: &mut impl FnMut(&Event<'_>)) {
        for raw in ordered.records() {
            self.records += u64::from(!is_recorders(raw));
            match self.decoder.decode(raw) {
                Ok(event) => sink(&event),
                Err(error) => *self.unreadable.entry(error).or_default() += 1,
            }
        }
        self.faults.merge(ordered.faults());
        for mut bytes in ordered.into_buffers() {
            if self.spare.len() < SPARE_BUFFERS {
                bytes.clear();
                self.spare.push(bytes);
            }
        }
    }
}

impl EventStream {
    /// For the rounds of a recording.
    pub fn new(origin: &Origin) -> Result<EventStream, LayoutError> {
        let events = Events {
            decoder: Decoder::new(&origin.events)?,
            unreadable: BTreeMap::new(),
            records: 0,
            faults: OrderFaults::default(),
            spare: Vec::new(),
        };
        Ok(EventStream { dater: Dater::new(&origin.events)?, order: Order::default(), events })
    }

    /// Takes a round; events that nothing can precede any more go to `sink`.
    pub fn push(&mut self, round: Round, sink: &mut impl FnMut(&Event<'_>)) {
        let EventStream { dater, order, events } = self;
        order.push(Dated::new(round, dater), &mut |ordered| events.take(ordered, sink));
    }

    /// Takes what another thread has put in order; instead of any round.
    pub fn push_ordered(&mut self, ordered: Ordered, sink: &mut impl FnMut(&Event<'_>)) {
        self.events.take(ordered, sink);
    }

    /// Hands on all that is left of the rounds.
    pub fn finish(&mut self, sink: &mut impl FnMut(&Event<'_>)) {
        let EventStream { order, events, .. } = self;
        order.finish(&mut |ordered| events.take(ordered, sink));
    }

    /// A buffer for the next round, whose memory was used before.
    pub fn spare_buffer(&mut self) -> Option<Vec<u8>> {
        self.events.spare.pop()
    }

    /// Records so far, those left out that only the file has.
    pub fn records(&self) -> u64 {
        self.events.records
    }

    /// Records that could not be read, by reason.
    pub fn unreadable(&self) -> &BTreeMap<DecodeError, u64> {
        &self.events.unreadable
    }

    /// What ordering had to leave out or to bend.
    pub fn order_faults(&self) -> OrderFaults {
        self.events.faults
    }
}

/// Whether the recorder wrote this into the file, for whoever reads it: a live screen has not seen it.
#[inline]
fn is_recorders(raw: RawRecord<'_>) -> bool {
    let kind = RecordHeader::parse(raw.bytes).map(|header| header.kind);
    matches!(kind, Some(kind::FINISHED_ROUND | kind::LOST_SAMPLES))
}

//! Rounds -> one time order over all CPUs.
//!
//! Each ring is in order of time, rings among each other are not. A round is one pass over all rings:
//!
//! ```text
//!            ring 0     ring 1                  what may still come
//!   round 1  t1 t4      t2 t3                   anything later than the start of this pass
//!   round 2  t6 t9      t5 t7  <- max of 1: t4  nothing older than t4: deliver t1..t4
//!   round 3  t8         t10    <- max of 2: t9  deliver t5..t9
//! ```
//!
//! A record that is written while round n is being read shows up in round n or n + 1, and is no older
//! than the newest record of round n - 1. So at the end of each round everything up to the newest
//! record of the round before goes out. Records are sorted by (time, place in the file); their bytes
//! stay where they are. Records without a time (0) go out first, in the order of the file.

mod dated;

use std::collections::VecDeque;

use lockprof_collectors::perf::record::RecordHeader;

use crate::decode::RawRecord;
use crate::model::Timestamp;
pub use dated::Dated;

/// Bytes held back at the most. A file without FINISHED_ROUND is one round of any size: beyond this
/// the older half goes out early, and what then comes too late is counted.
const HELD_LIMIT: usize = 256 << 20;

/// Buffers kept for the next rounds: as many pieces as a long round has. Memory that is given back and
/// asked for again costs more than reading a file into it.
const SPARE_BUFFERS: usize = 16;

/// A record that waits for its turn.
#[derive(Clone, Copy, Debug)]
struct Pending {
    time: Timestamp,
    piece: u32,
    at: u32,
}

/// A piece of a round whose records have not all gone out.
#[derive(Debug)]
struct Piece {
    bytes: Vec<u8>,
    offset: u64,
    waiting: usize,
}

/// What ordering had to leave out or to bend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderFaults {
    /// Records that came after a younger one had gone out.
    pub out_of_order: u64,
    /// Bytes that are no whole record: the rest of their piece was left out.
    pub broken_bytes: u64,
}

/// Holds records back until nothing older can come.
#[derive(Debug)]
pub struct Order {
    pending: Vec<Pending>,
    pieces: VecDeque<Piece>,
    first_piece: u32,
    spare: Vec<Vec<u8>>,
    held: usize,
    limit: usize,
    newest: Timestamp,
    newest_of_last_round: Timestamp,
    delivered: Timestamp,
    faults: OrderFaults,
}

impl Default for Order {
    fn default() -> Order {
        Order {
            pending: Vec::new(),
            pieces: VecDeque::new(),
            first_piece: 0,
            spare: Vec::new(),
            held: 0,
            limit: HELD_LIMIT,
            newest: Timestamp(0),
            newest_of_last_round: Timestamp(0),
            delivered: Timestamp(0),
            faults: OrderFaults::default(),
        }
    }
}

impl Order {
    /// Takes a round, hands on what no later round can precede.
    pub fn push(&mut self, dated: Dated, deliver: &mut impl FnMut(RawRecord<'_>)) {
        let finished = dated.round.finished;
        self.take_in(dated);
        if finished {
            self.deliver(self.newest_of_last_round, deliver);
            self.newest_of_last_round = self.newest;
        } else if self.held > self.limit {
            self.deliver(self.middle(), deliver);
        }
    }

    /// Hands on all that is left.
    pub fn finish(&mut self, deliver: &mut impl FnMut(RawRecord<'_>)) {
        self.deliver(Timestamp(u64::MAX), deliver);
    }

    /// An empty buffer whose memory was used before, for the next round.
    pub fn spare_buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// What was left out so far.
    pub fn faults(&self) -> OrderFaults {
        self.faults
    }

    fn take_in(&mut self, dated: Dated) {
        self.newest = self.newest.max(dated.newest());
        self.faults.broken_bytes += dated.broken_bytes;
        let Dated { round, records, .. } = dated;
        if records.is_empty() {
            return keep_spare(&mut self.spare, round.bytes);
        }
        let piece = self.first_piece.wrapping_add(self.pieces.len() as u32);
        let waiting = records.len();
        self.pending.extend(records.into_iter().map(|(time, at)| Pending { time, piece, at }));
        self.held += round.bytes.len();
        self.pieces.push_back(Piece { bytes: round.bytes, offset: round.offset, waiting });
    }

    fn middle(&self) -> Timestamp {
        let mut times: Vec<Timestamp> = self.pending.iter().map(|p| p.time).collect();
        let middle = times.len() / 2;
        if times.is_empty() { Timestamp(0) } else { *times.select_nth_unstable(middle).1 }
    }

    fn deliver(&mut self, up_to: Timestamp, deliver: &mut impl FnMut(RawRecord<'_>)) {
        // Stable, and quick on the sorted runs that rounds are.
        self.pending.sort_by_key(|pending| pending.time);
        let ready = self.pending.partition_point(|pending| pending.time <= up_to);
        for pending in self.pending.drain(..ready) {
            let index = pending.piece.wrapping_sub(self.first_piece) as usize;
            let Some(piece) = self.pieces.get_mut(index) else { continue };
            piece.waiting -= 1;
            if pending.time.0 != 0 && pending.time < self.delivered {
                self.faults.out_of_order += 1;
            }
            self.delivered = self.delivered.max(pending.time);
            let at = pending.at as usize;
            let size = RecordHeader::parse(&piece.bytes[at..]).map_or(0, |h| usize::from(h.size));
            deliver(RawRecord {
                bytes: &piece.bytes[at..at + size],
                offset: piece.offset.saturating_add(at as u64),
                time: pending.time,
            });
            // At once, whatever an earlier piece still waits for: one record of the far future must
            // not hold all that comes after it.
            if piece.waiting == 0 {
                self.held -= piece.bytes.len();
                keep_spare(&mut self.spare, std::mem::take(&mut piece.bytes));
            }
        }
        while self.pieces.front().is_some_and(|piece| piece.waiting == 0) {
            self.pieces.pop_front();
            self.first_piece = self.first_piece.wrapping_add(1);
        }
    }
}

fn keep_spare(spare: &mut Vec<Vec<u8>>, mut bytes: Vec<u8>) {
    if spare.len() < SPARE_BUFFERS {
        bytes.clear();
        spare.push(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Stamps;
    use crate::source::{Round, Synthetic};

    /// Sorts rounds of `(time, cpu)` and gives back times, by push.
    fn order(rounds: &[&[u64]]) -> (Vec<Vec<u64>>, OrderFaults) {
        let mut synthetic = Synthetic::new();
        let stamps = Stamps::new(&synthetic.origin().events).unwrap();
        let mut order = Order::default();
        let mut out: Vec<Vec<u64>> = Vec::new();
        for times in rounds {
            for &time in *times {
                synthetic.comm(time, 1, 1, "x", false);
            }
            let mut got = Vec::new();
            order
                .push(Dated::new(synthetic.take_round(), &stamps), &mut |raw| got.push(raw.time.0));
            out.push(got);
        }
        let mut got = Vec::new();
        order.finish(&mut |raw| got.push(raw.time.0));
        out.push(got);
        (out, order.faults())
    }

    #[test]
    fn a_round_lets_go_what_the_round_before_has_seen() {
        let (out, faults) = order(&[&[1, 4, 2, 3], &[6, 9, 5, 7], &[8, 10]]);
        assert_eq!(out, [vec![], vec![1, 2, 3, 4], vec![5, 6, 7, 8, 9], vec![10]]);
        assert_eq!(faults, OrderFaults::default());
    }

    #[test]
    fn an_inverted_pair_inside_a_ring_is_sorted_and_not_a_fault() {
        let (out, faults) = order(&[&[2, 1], &[3]]);
        assert_eq!((out, faults.out_of_order), (vec![vec![], vec![1, 2], vec![3]], 0));
    }

    #[test]
    fn a_record_older_than_its_round_allows_is_delivered_and_counted() {
        let (out, faults) = order(&[&[5], &[6], &[1], &[7]]);
        assert_eq!(out, [vec![], vec![5], vec![1, 6], vec![], vec![7]]);
        assert_eq!(faults.out_of_order, 1);
    }

    #[test]
    fn records_without_a_time_come_first_in_file_order() {
        let (out, faults) = order(&[&[5, 0, 0], &[6]]);
        assert_eq!((out, faults.out_of_order), (vec![vec![0, 0], vec![5], vec![6]], 0));
    }

    #[test]
    fn without_round_marks_memory_stays_bounded_and_late_records_are_counted() {
        let mut synthetic = Synthetic::new();
        let stamps = Stamps::new(&synthetic.origin().events).unwrap();
        let mut order = Order { limit: 1000, ..Order::default() };
        let mut times = Vec::new();
        for time in 1..=200 {
            synthetic.comm(time * 10, 1, 1, "x", false);
            let round = Round { finished: false, ..synthetic.take_round() };
            order.push(Dated::new(round, &stamps), &mut |raw| times.push(raw.time.0));
            assert!(order.held <= 1000 + 100, "{} bytes held", order.held);
        }
        synthetic.comm(15, 1, 1, "x", false);
        order.push(Dated::new(synthetic.take_round(), &stamps), &mut |raw| times.push(raw.time.0));
        order.finish(&mut |raw| times.push(raw.time.0));
        assert_eq!((times.len(), order.faults().out_of_order), (201, 1));
    }

    #[test]
    fn a_record_of_the_far_future_does_not_hold_the_memory_of_all_that_follows() {
        let mut synthetic = Synthetic::new();
        let stamps = Stamps::new(&synthetic.origin().events).unwrap();
        let mut order = Order { limit: 1000, ..Order::default() };
        synthetic.comm(u64::MAX - 1, 1, 1, "x", false);
        for time in 1..=200 {
            synthetic.comm(time * 10, 1, 1, "x", false);
            let round = Round { finished: false, ..synthetic.take_round() };
            order.push(Dated::new(round, &stamps), &mut |_| {});
            assert!(order.held <= 1000 + 100, "{} bytes held", order.held);
        }
    }

    #[test]
    fn a_record_of_no_size_ends_its_piece_and_its_bytes_are_counted() {
        let synthetic = Synthetic::new();
        let stamps = Stamps::new(&synthetic.origin().events).unwrap();
        let mut order = Order::default();
        let round = Round { bytes: vec![0; 24], offset: 0, finished: true };
        order.push(Dated::new(round, &stamps), &mut |_| panic!("nothing is whole"));
        assert_eq!(order.faults().broken_bytes, 24);
    }
}

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
mod ordered;

use std::collections::VecDeque;
use std::sync::Arc;

use crate::model::Timestamp;
use dated::Record;
pub use dated::{Dated, Dater};
pub use ordered::Ordered;
use ordered::{Piece, Placed};

/// Bytes held back at the most. A file without FINISHED_ROUND is one round of any size: beyond this
/// the older half goes out early, and what then comes too late is counted.
const HELD_LIMIT: usize = 256 << 20;

/// Records that go out together at the most: another thread may work on them while more are read.
const TOGETHER: usize = 8192;

/// A piece of a round whose records have not all gone out.
#[derive(Debug)]
struct Held {
    /// `None` once they all have.
    piece: Option<Arc<Piece>>,
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

impl OrderFaults {
    /// Adds those of what came later.
    pub fn merge(&mut self, other: OrderFaults) {
        self.out_of_order += other.out_of_order;
        self.broken_bytes += other.broken_bytes;
    }
}

/// Holds records back until nothing older can come.
#[derive(Debug)]
pub struct Order {
    pending: Vec<Placed>,
    pieces: VecDeque<Held>,
    first_piece: u32,
    held: usize,
    limit: usize,
    taken: u64,
    newest: Timestamp,
    newest_of_last_round: Timestamp,
    delivered: Timestamp,
    /// Not told yet.
    faults: OrderFaults,
}

impl Default for Order {
    fn default() -> Order {
        Order {
            pending: Vec::new(),
            pieces: VecDeque::new(),
            first_piece: 0,
            held: 0,
            limit: HELD_LIMIT,
            taken: 0,
            newest: Timestamp(0),
            newest_of_last_round: Timestamp(0),
            delivered: Timestamp(0),
            faults: OrderFaults::default(),
        }
    }
}

impl Order {
    /// Takes a round, hands on what no later round can precede.
    pub fn push(&mut self, dated: Dated, out: &mut impl FnMut(Ordered)) {
        let finished = dated.round.finished;
        self.take_in(dated);
        if finished {
            self.deliver(self.newest_of_last_round, out);
            self.newest_of_last_round = self.newest;
        } else if self.held > self.limit {
            self.deliver(self.middle(), out);
        }
    }

    /// Hands on all that is left, and with it what was left out.
    pub fn finish(&mut self, out: &mut impl FnMut(Ordered)) {
        self.deliver(Timestamp(u64::MAX), out);
        out(self.hand_on(&[]));
    }

    fn take_in(&mut self, dated: Dated) {
        self.newest = self.newest.max(dated.newest());
        self.faults.broken_bytes += dated.broken_bytes;
        let Dated { round, records, .. } = dated;
        self.taken += round.bytes.len() as u64;
        if records.is_empty() {
            return;
        }
        let number = self.first_piece.wrapping_add(self.pieces.len() as u32);
        let placed =
            |&Record { time, at, stack }: &Record| Placed { time, piece: number, at, stack };
        self.pending.extend(records.iter().map(placed));
        self.held += round.bytes.len();
        let piece = Arc::new(Piece { bytes: round.bytes, offset: round.offset });
        self.pieces.push_back(Held { piece: Some(piece), waiting: records.len() });
    }

    fn middle(&self) -> Timestamp {
        let mut times: Vec<Timestamp> = self.pending.iter().map(|p| p.time).collect();
        let middle = times.len() / 2;
        if times.is_empty() { Timestamp(0) } else { *times.select_nth_unstable(middle).1 }
    }

    fn deliver(&mut self, up_to: Timestamp, out: &mut impl FnMut(Ordered)) {
        let mut pending = std::mem::take(&mut self.pending);
        // Stable, and quick on the sorted runs that rounds are.
        pending.sort_by_key(|placed| placed.time);
        let ready = pending.partition_point(|placed| placed.time <= up_to);
        for records in pending[..ready].chunks(TOGETHER) {
            out(self.hand_on(records));
        }
        pending.drain(..ready);
        self.pending = pending;
    }

    fn hand_on(&mut self, records: &[Placed]) -> Ordered {
        let first_piece = self.first_piece;
        let pieces = self.pieces.iter().map(|held| held.piece.clone()).collect();
        records.iter().for_each(|placed| self.let_go(placed));
        while self.pieces.front().is_some_and(|held| held.waiting == 0) {
            self.pieces.pop_front();
            self.first_piece = self.first_piece.wrapping_add(1);
        }
        let (taken, faults) = (self.taken, std::mem::take(&mut self.faults));
        Ordered { records: records.to_vec(), first_piece, pieces, taken, faults }
    }

    /// One record less waits in its piece.
    #[inline]
    fn let_go(&mut self, placed: &Placed) {
        if placed.time.0 != 0 && placed.time < self.delivered {
            self.faults.out_of_order += 1;
        }
        self.delivered = self.delivered.max(placed.time);
        let index = placed.piece.wrapping_sub(self.first_piece) as usize;
        let Some(held) = self.pieces.get_mut(index) else { return };
        held.waiting -= 1;
        // At once, whatever an earlier piece still waits for: one record of the far future must
        // not hold all that comes after it.
        if held.waiting == 0
            && let Some(piece) = held.piece.take()
        {
            self.held -= piece.bytes.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{Round, Synthetic};

    /// Sorts rounds of `(time, cpu)` and gives back times, by push.
    fn order(rounds: &[&[u64]]) -> (Vec<Vec<u64>>, OrderFaults) {
        let mut synthetic = Synthetic::new();
        let mut dater = Dater::new(&synthetic.origin().events).unwrap();
        let mut order = Order::default();
        let mut out: Vec<Vec<u64>> = Vec::new();
        let mut faults = OrderFaults::default();
        for round in rounds {
            for &time in *round {
                synthetic.comm(time, 1, 1, "x", false);
            }
            let mut got = Vec::new();
            let dated = Dated::new(synthetic.take_round(), &mut dater);
            order.push(dated, &mut |ordered| take(ordered, &mut got, &mut faults));
            out.push(got);
        }
        let mut got = Vec::new();
        order.finish(&mut |ordered| take(ordered, &mut got, &mut faults));
        out.push(got);
        (out, faults)
    }

    fn take(ordered: Ordered, got: &mut Vec<u64>, faults: &mut OrderFaults) {
        got.extend(times(&ordered));
        faults.merge(ordered.faults());
    }

    fn times(ordered: &Ordered) -> Vec<u64> {
        ordered.records().map(|raw| raw.time.0).collect()
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
        let mut dater = Dater::new(&synthetic.origin().events).unwrap();
        let mut order = Order { limit: 1000, ..Order::default() };
        let (mut got, mut faults) = (Vec::new(), OrderFaults::default());
        for time in 1..=200 {
            synthetic.comm(time * 10, 1, 1, "x", false);
            let round = Round { finished: false, ..synthetic.take_round() };
            let dated = Dated::new(round, &mut dater);
            order.push(dated, &mut |ordered| take(ordered, &mut got, &mut faults));
            assert!(order.held <= 1000 + 100, "{} bytes held", order.held);
        }
        synthetic.comm(15, 1, 1, "x", false);
        let dated = Dated::new(synthetic.take_round(), &mut dater);
        order.push(dated, &mut |ordered| take(ordered, &mut got, &mut faults));
        order.finish(&mut |ordered| take(ordered, &mut got, &mut faults));
        assert_eq!((got.len(), faults.out_of_order), (201, 1));
    }

    #[test]
    fn a_record_of_the_far_future_does_not_hold_the_memory_of_all_that_follows() {
        let mut synthetic = Synthetic::new();
        let mut dater = Dater::new(&synthetic.origin().events).unwrap();
        let mut order = Order { limit: 1000, ..Order::default() };
        synthetic.comm(u64::MAX - 1, 1, 1, "x", false);
        for time in 1..=200 {
            synthetic.comm(time * 10, 1, 1, "x", false);
            let round = Round { finished: false, ..synthetic.take_round() };
            order.push(Dated::new(round, &mut dater), &mut |_| {});
            assert!(order.held <= 1000 + 100, "{} bytes held", order.held);
        }
    }

    #[test]
    fn a_record_of_no_size_ends_its_piece_and_its_bytes_are_counted() {
        let synthetic = Synthetic::new();
        let mut dater = Dater::new(&synthetic.origin().events).unwrap();
        let mut order = Order::default();
        let round = Round { bytes: vec![0; 24], offset: 0, finished: true };
        let mut told = OrderFaults::default();
        order.push(Dated::new(round, &mut dater), &mut |_| panic!("nothing is whole"));
        order.finish(&mut |ordered| told = ordered.faults());
        assert_eq!(told.broken_bytes, 24);
    }

    #[test]
    fn many_records_go_out_a_part_at_a_time_and_their_buffers_come_back() {
        let mut synthetic = Synthetic::new();
        let mut dater = Dater::new(&synthetic.origin().events).unwrap();
        let mut order = Order::default();
        let count = 2 * TOGETHER as u64 + 1;
        let mut parts = Vec::new();
        let mut buffers = 0;
        let mut take = |ordered: Ordered| {
            parts.push(ordered.records().count());
            buffers += ordered.into_buffers().count();
        };
        for half in [1..=count / 2, count / 2 + 1..=count] {
            for time in half {
                synthetic.comm(time, 1, 1, "x", false);
            }
            order.push(Dated::new(synthetic.take_round(), &mut dater), &mut take);
        }
        order.finish(&mut take);
        assert_eq!(parts.iter().sum::<usize>() as u64, count);
        assert!(parts.iter().all(|&part| part <= TOGETHER), "{parts:?}");
        assert_eq!((buffers, order.held), (2, 0));
    }
}

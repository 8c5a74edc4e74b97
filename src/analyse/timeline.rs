//! Everything that is counted, by time: slices with sums of their own, at most [`SLICES`] of them.
//!
//! ```text
//!   first event                                                    last event
//!   |   slice   |   slice   |  slice  | slice | s | s | s | ... | s | s |
//!                when full: the two that are      `-- recent: as they are --'
//!                shortest together merge
//! ```
//!
//! A slice counts what a report of its range of time counts. So slices add up to the whole, whatever was
//! merged. Their tables are narrow: what weighs least in a slice soon gives up its user stack, its lock,
//! its task.

use std::collections::VecDeque;

use super::sums::Sums;
use crate::attribute::Attribution;
use crate::model::{Nanos, TimeRange, Timestamp};

/// Slices at the most.
const SLICES: usize = 256;

/// Cells of each table of a slice at the most: as many as fill a hash table of 512.
const CELLS: usize = 448;

/// How time is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slicing {
    /// How wide a slice is before it is merged with another.
    pub width: Nanos,
    /// So long before the last event slices are not merged.
    pub recent: Nanos,
}

impl Slicing {
    /// For a recording that is read at once: as fine as its length allows.
    pub const WHOLE: Slicing = Slicing { width: Nanos(1_000_000), recent: Nanos::ZERO };

    /// For one that is watched: a minute by seconds.
    pub const LIVE: Slicing =
        Slicing { width: Nanos(1_000_000_000), recent: Nanos(61_000_000_000) };
}

/// A piece of time and what was counted in it.
#[derive(Clone, Debug)]
pub struct Slice {
    /// From when to when.
    pub range: TimeRange,
    /// What was counted.
    pub sums: Sums,
}

/// What is counted, by time.
#[derive(Clone, Debug)]
pub struct Timeline {
    slicing: Slicing,
    slices: VecDeque<Slice>,
}

impl Timeline {
    /// Nothing yet.
    pub fn new(slicing: Slicing) -> Timeline {
        Timeline { slicing, slices: VecDeque::new() }
    }

    /// From the first event on, without gaps.
    pub fn slices(&self) -> impl ExactSizeIterator<Item = &Slice> + DoubleEndedIterator {
        self.slices.iter()
    }

    /// The last `length`, in whole slices: one that began before is left out, so that what is said
    /// holds for all of it. `None` before the first event.
    pub fn last(&self, length: Nanos) -> Option<TimeRange> {
        let to = self.slices.back()?.range.to;
        let begins = self.slices.iter().map(|slice| slice.range.from);
        let from = begins.rev().take_while(|from| to.since(*from) <= length).last();
        Some(TimeRange { from: from.unwrap_or(to), to })
    }

    /// The slices that touch `range` added up, and which time that is.
    pub fn part(&self, range: TimeRange) -> Option<(Sums, TimeRange)> {
        let touches = |slice: &&Slice| slice.range.from < range.to && range.from < slice.range.to;
        let mut sums = Sums::default();
        let mut all: Option<TimeRange> = None;
        for slice in self.slices.iter().filter(touches) {
            sums.merge(&slice.sums);
            all = Some(TimeRange { from: all.map_or(slice.range, |all| all).from, ..slice.range });
        }
        Some((sums, all?))
    }

    /// Time has come to `now`; it began at `first`.
    #[inline]
    pub fn advance(&mut self, first: Timestamp, now: Timestamp, attribution: &Attribution) {
        let end = self.slices.back().map_or(first, |slice| slice.range.to);
        if end <= now && end != Timestamp(u64::MAX) {
            self.grow(end, now, attribution);
        }
    }

    fn grow(&mut self, mut end: Timestamp, now: Timestamp, attribution: &Attribution) {
        let width = self.slicing.width;
        while end <= now && end != Timestamp(u64::MAX) {
            // A long silence is one slice, not thousands that would be merged at once.
            let silence = Nanos(now.since(end).0 / width.0.max(1) * width.0);
            let skip = silence.0 / width.0.max(1) > SLICES as u64;
            let to = if skip { end + silence } else { end + width };
            let range = TimeRange { from: end, to };
            self.slices.push_back(Slice { range, sums: Sums::default() });
            self.make_room(attribution);
            end = to;
        }
    }

    /// Counts what happened between two moments in all slices that it lies in, as far as `inside` goes.
    /// What came too late to have a slice of its own is counted in the first.
    #[inline]
    pub(super) fn count(
        &mut self,
        (from, to): (Timestamp, Timestamp),
        inside: TimeRange,
        attribution: &Attribution,
        mut count: impl FnMut(&mut Sums, TimeRange),
    ) {
        let Some(last) = self.slices.len().checked_sub(1) else { return };
        let mut at = match self.slices[last].range.from <= from {
            true => last,
            false => self.slices.partition_point(|slice| slice.range.to <= from).min(last),
        };
        while let Some(slice) = self.slices.get_mut(at) {
            let begin = if at == 0 { Timestamp(0) } else { slice.range.from };
            if begin > to {
                break;
            }
            count(&mut slice.sums, TimeRange { from: begin, ..slice.range }.both(inside));
            slice.sums.make_room(CELLS, attribution);
            at += 1;
        }
    }

    /// Merges the two neighbours that are shortest together, the oldest of those; recent ones only
    /// when there are no others.
    fn make_room(&mut self, attribution: &Attribution) {
        while self.slices.len() > SLICES {
            let last = self.slices.back().map_or(Timestamp(0), |slice| slice.range.to);
            let recent = last - self.slicing.recent;
            let old = self.slices.partition_point(|slice| slice.range.to <= recent);
            let among = if old >= 2 { old } else { self.slices.len() };
            let length =
                |at: &usize| self.slices[*at + 1].range.to.since(self.slices[*at].range.from);
            let Some(at) = (0..among - 1).min_by_key(length) else { return };
            let Some(later) = self.slices.remove(at + 1) else { return };
            let earlier = &mut self.slices[at];
            earlier.range.to = later.range.to;
            earlier.sums.merge(&later.sums);
            earlier.sums.make_room(CELLS, attribution);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::{CellKey, StackKey, TaskKey};
    use crate::model::{
        Context, Cpu, LockAddr, LockKind, LockType, Mode, Outcome, PhaseTimes, StackId, TaskRef,
        Wait, WaitStat,
    };

    const MS: u64 = 1_000_000;

    fn wait(begin: u64, end: u64, lock: u64) -> Wait {
        Wait {
            task: TaskRef(0),
            context: Context::Task,
            cpu: Cpu(0),
            lock_type: LockType::new(LockKind::Mutex, Mode::Exclusive),
            lock: LockAddr(lock),
            begin: Timestamp(begin),
            end: Timestamp(end),
            nested: Nanos::ZERO,
            spun: Nanos::ZERO,
            outcome: Outcome::Acquired,
            writer_ahead: None,
            kernel_stack: StackId::EMPTY,
            user_stack: StackId::EMPTY,
        }
    }

    fn key(wait: &Wait) -> CellKey {
        CellKey {
            lock_type: wait.lock_type,
            kernel: StackKey::Stack(wait.kernel_stack),
            user: StackId::EMPTY,
            lock: Some(wait.lock),
            task: TaskKey::Task(wait.task),
            context: wait.context,
        }
    }

    fn add(timeline: &mut Timeline, wait: &Wait) {
        let attribution = Attribution::default();
        timeline.advance(Timestamp(0), wait.end, &attribution);
        timeline.count((wait.begin, wait.end), TimeRange::ALL, &attribution, |sums, range| {
            sums.add_wait((key(wait), wait), range, &|_| PhaseTimes::default());
        });
    }

    fn sum<'a>(slices: impl Iterator<Item = &'a Slice>) -> WaitStat {
        let mut sum = WaitStat::default();
        slices.flat_map(|slice| slice.sums.waits()).for_each(|(_, stat)| sum.merge(stat));
        sum
    }

    #[test]
    fn an_hour_of_ever_new_locks_stays_small_and_its_sums_exact() {
        let mut timeline = Timeline::new(Slicing::LIVE);
        let waits = 200_000u64;
        for n in 0..waits {
            let begin = n * 18 * MS;
            add(&mut timeline, &wait(begin, begin + 30 * MS, n + 1));
        }
        let all = sum(timeline.slices());
        assert_eq!((all.ended.count, all.ended.own), (waits, Nanos(waits * 30 * MS)));
        assert!(timeline.slices().len() <= SLICES);
        assert!(timeline.slices().all(|slice| slice.sums.widest() <= CELLS));
        assert!(timeline.slices().any(|slice| slice.sums.folded() > 0));
        let recent: Vec<u64> = timeline
            .slices()
            .rev()
            .take(60)
            .map(|slice| slice.range.to.since(slice.range.from).0)
            .collect();
        assert!(recent.iter().all(|width| *width == 1_000_000_000), "{recent:?}");
        let (mut from, mut gaps) = (Timestamp(0), 0);
        for slice in timeline.slices() {
            gaps += usize::from(slice.range.from != from);
            from = slice.range.to;
        }
        assert_eq!(gaps, 0);
    }

    #[test]
    fn a_wait_over_many_slices_is_in_all_of_them_and_counts_once() {
        let mut timeline = Timeline::new(Slicing { width: Nanos(MS), recent: Nanos::ZERO });
        add(&mut timeline, &wait(MS / 2, 5 * MS + MS / 4, 7));
        let own: Vec<u64> =
            timeline.slices().map(|slice| sum(std::iter::once(slice)).ended.own.0).collect();
        assert_eq!(own, [MS / 2, MS, MS, MS, MS, MS / 4]);
        let counted: Vec<u64> =
            timeline.slices().map(|slice| sum(std::iter::once(slice)).ended.count).collect();
        assert_eq!(counted, [0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn the_last_seconds_are_whole_slices() {
        let mut timeline = Timeline::new(Slicing { width: Nanos(MS), recent: Nanos(100 * MS) });
        for n in 0..20 {
            add(&mut timeline, &wait(n * MS, n * MS + 10, 1));
        }
        let range = timeline.last(Nanos(5 * MS)).unwrap();
        assert_eq!((range.from, range.to), (Timestamp(15 * MS), Timestamp(20 * MS)));
        let (sums, all) = timeline.part(range).unwrap();
        assert_eq!(sums.waits().map(|(_, stat)| stat.ended.count).sum::<u64>(), 5);
        assert_eq!(all, range);
    }

    #[test]
    fn a_silence_of_a_day_is_one_slice() {
        let mut timeline = Timeline::new(Slicing::LIVE);
        add(&mut timeline, &wait(0, 10, 1));
        let day = 86_400_000_000_000;
        add(&mut timeline, &wait(day, day + 10, 1));
        assert!(timeline.slices().len() < 5, "{}", timeline.slices().len());
        assert_eq!(sum(timeline.slices()).ended.count, 2);
        add(&mut timeline, &wait(u64::MAX - 5, u64::MAX, 1));
        assert!(timeline.slices().len() < 9);
    }
}

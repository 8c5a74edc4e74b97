//! Waits by time: slices, each a small table of its own, at most [`SLICES`] of them.
//!
//! ```text
//!   first event                                                    last event
//!   |   slice   |   slice   |  slice  | slice | s | s | s | ... | s | s |
//!                when full: the two that are      `-- recent: as they are --'
//!                shortest together merge
//! ```
//!
//! A slice counts what a report of its range of time counts: times are clipped to it, a wait is counted
//! in the slice in which it ends. So slices add up, whatever was merged.

use std::collections::VecDeque;

use hashbrown::HashMap;

use super::blame::fold;
use super::key::CellKey;
use super::tables::count;
use crate::model::{
    FunctionId, Nanos, PhaseTimes, Spun, StackId, TimeRange, Timestamp, Wait, WaitStat,
};

/// Slices at the most.
const SLICES: usize = 256;

/// Cells of a slice at the most.
const CELLS: usize = 512;

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

/// A piece of time and what was waited in it.
#[derive(Clone, Debug)]
pub struct Slice {
    /// From when to when.
    pub range: TimeRange,
    /// Cells without user stacks.
    pub waits: HashMap<CellKey, WaitStat>,
}

/// Waits by time.
#[derive(Clone, Debug)]
pub struct Timeline {
    slicing: Slicing,
    slices: VecDeque<Slice>,
    folded: u64,
}

impl Timeline {
    /// Nothing yet.
    pub fn new(slicing: Slicing) -> Timeline {
        Timeline { slicing, slices: VecDeque::new(), folded: 0 }
    }

    /// From the first event on, without gaps.
    pub fn slices(&self) -> impl ExactSizeIterator<Item = &Slice> + DoubleEndedIterator {
        self.slices.iter()
    }

    /// Cells that were merged into their parents.
    pub fn folded(&self) -> u64 {
        self.folded
    }

    /// The slices of the last `length`, added up, and since when that is. A slice that began before
    /// is left out, so that what is said holds for all of it.
    pub fn last(&self, length: Nanos) -> (HashMap<CellKey, WaitStat>, Option<TimeRange>) {
        let mut sum: HashMap<CellKey, WaitStat> = HashMap::new();
        let Some(to) = self.slices.back().map(|slice| slice.range.to) else { return (sum, None) };
        let mut range = TimeRange { from: to, to };
        let wanted = |slice: &&Slice| to.since(slice.range.from) <= length;
        for slice in self.slices.iter().rev().take_while(wanted) {
            range.from = slice.range.from;
            slice.waits.iter().for_each(|(key, stat)| sum.entry(*key).or_default().merge(stat));
        }
        (sum, Some(range))
    }

    /// Time has come to `now`; it began at `first`.
    pub fn advance(
        &mut self,
        first: Timestamp,
        now: Timestamp,
        site: &impl Fn(StackId) -> Option<FunctionId>,
    ) {
        let width = self.slicing.width;
        let mut end = self.slices.back().map_or(first, |slice| slice.range.to);
        while end <= now && end != Timestamp(u64::MAX) {
            // A long silence is one slice, not thousands that would be merged at once.
            let silence = Nanos(now.since(end).0 / width.0.max(1) * width.0);
            let skip = silence.0 / width.0.max(1) > SLICES as u64;
            let to = if skip { end + silence } else { end + width };
            let range = TimeRange { from: end, to };
            self.slices.push_back(Slice { range, waits: HashMap::new() });
            self.make_room(site);
            end = to;
        }
    }

    /// Counts a wait in all slices that it lies in, as far as `inside` goes.
    pub(super) fn add_wait(
        &mut self,
        wait: &Wait,
        key: CellKey,
        inside: TimeRange,
        phases: &impl Fn(TimeRange) -> PhaseTimes,
        site: &impl Fn(StackId) -> Option<FunctionId>,
    ) {
        let key = CellKey { user: StackId::EMPTY, ..key };
        let first = self.slices.partition_point(|slice| slice.range.to <= wait.begin);
        let mut folded = 0;
        for slice in self.slices.range_mut(first.min(self.slices.len())..) {
            if slice.range.from > wait.end {
                break;
            }
            let from = slice.range.from.max(inside.from);
            let range = TimeRange { from, to: slice.range.to.min(inside.to) };
            if let Some(part) = count(wait, range, phases) {
                slice.waits.entry(key).or_default().merge(&part);
                folded += make_room_in(&mut slice.waits, site);
            }
        }
        self.folded += folded;
    }

    /// Counts a sample that waits unseen.
    pub(super) fn add_spun(&mut self, time: Timestamp, key: CellKey, spun: Spun) {
        let at = self.slices.partition_point(|slice| slice.range.to <= time);
        if let Some(slice) = self.slices.get_mut(at) {
            let key = CellKey { user: StackId::EMPTY, ..key };
            slice.waits.entry(key).or_default().spun.merge(spun);
        }
    }

    /// Merges the two neighbours that are shortest together, the oldest of those; recent ones only
    /// when there are no others.
    fn make_room(&mut self, site: &impl Fn(StackId) -> Option<FunctionId>) {
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
            for (key, stat) in &later.waits {
                earlier.waits.entry(*key).or_default().merge(stat);
            }
            self.folded += make_room_in(&mut earlier.waits, site);
        }
    }
}

fn make_room_in(
    waits: &mut HashMap<CellKey, WaitStat>,
    site: &impl Fn(StackId) -> Option<FunctionId>,
) -> u64 {
    if waits.len() <= CELLS {
        return 0;
    }
    fold(waits, CELLS, |key| key.parent(site), WaitStat::wait, WaitStat::merge)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::{StackKey, TaskKey};
    use crate::model::{Context, Cpu, LockAddr, LockKind, LockType, Mode, Outcome, TaskRef};

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
        timeline.advance(Timestamp(0), wait.end, &|_| None);
        let phases = |_| PhaseTimes::default();
        timeline.add_wait(wait, key(wait), TimeRange::ALL, &phases, &|_| None);
    }

    fn sum<'a>(slices: impl Iterator<Item = &'a Slice>) -> WaitStat {
        let mut sum = WaitStat::default();
        slices.flat_map(|slice| slice.waits.values()).for_each(|stat| sum.merge(stat));
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
        assert!(timeline.slices().all(|slice| slice.waits.len() <= CELLS));
        assert!(timeline.folded() > 0);
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
        let (cells, range) = timeline.last(Nanos(5 * MS));
        assert_eq!(cells.values().map(|stat| stat.ended.count).sum::<u64>(), 5);
        let range = range.unwrap();
        assert_eq!((range.from, range.to), (Timestamp(15 * MS), Timestamp(20 * MS)));
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

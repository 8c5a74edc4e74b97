//! What is counted, where: in the sums of the whole recording, and in those of the slices of time that
//! it lies in.
//!
//! In: waits, CPU samples with the facts of their stacks, stretches of lives. Out: [`Sums`]. One table of
//! waits serves every question: a report groups its cells by site, lock or task.

use super::key::{CellKey, CpuKey, CpuStackKey, StackKey, TaskKey};
use super::sums::{Sums, count};
use super::thread_time::{Accounted, LifePiece, UserLockKey};
use super::timeline::{Slicing, Timeline};
use crate::attribute::{Attribution, Facts, Standing};
use crate::correlate::{Busy, Sample};
use crate::model::{
    LockType, Nanos, Outcome, PhaseTimes, Spun, StackId, TaskId, TimeRange, Timestamp, Wait,
    WaitStat,
};

/// Cells of a table at the most.
const CELL_LIMIT: usize = 1 << 16;

/// How finely keys are told apart. Less detail is less memory and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detail {
    /// Keep user stacks apart.
    pub user_stacks: bool,
    /// Keep the stacks of all CPU samples.
    pub cpu_stacks: bool,
    /// Keep everything by time too, and how it is cut.
    pub slicing: Option<Slicing>,
    /// Cells of a table at the most.
    pub cells: usize,
}

impl Default for Detail {
    fn default() -> Detail {
        Detail { user_stacks: false, cpu_stacks: false, slicing: None, cells: CELL_LIMIT }
    }
}

/// The part of a filter that needs single waits; the rest is applied to cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitFilter {
    /// Times are clipped to it, ends must lie in it.
    pub time: TimeRange,
    /// Shorter waits do not count.
    pub min_wait: Nanos,
}

impl Default for WaitFilter {
    fn default() -> WaitFilter {
        WaitFilter { time: TimeRange::ALL, min_wait: Nanos::ZERO }
    }
}

/// The whole and its slices.
#[derive(Debug, Default)]
pub struct Tables {
    pub(super) detail: Detail,
    filter: WaitFilter,
    whole: Sums,
    timeline: Option<Timeline>,
    accounted: Accounted,
    span: Option<(Timestamp, Timestamp)>,
}

impl Tables {
    /// Empty tables.
    pub fn new(detail: Detail, filter: WaitFilter) -> Tables {
        let timeline = detail.slicing.map(Timeline::new);
        Tables { detail, filter, timeline, ..Tables::default() }
    }

    /// Counts a wait. `phases`: what it was spent on inside a range of time.
    #[inline]
    pub fn add_wait(
        &mut self,
        wait: &Wait,
        phases: impl Fn(TimeRange) -> PhaseTimes,
        attribution: &Attribution,
    ) {
        if self.wants(wait) {
            let of = (cell_key(wait, self.detail), wait);
            self.count((wait.begin, wait.end), attribution, |sums, range| {
                sums.add_wait(of, range, &phases);
            });
        }
    }

    /// Counts whom the parts of a wait that was counted stood behind.
    pub fn add_standings(&mut self, wait: &Wait, parts: &[Standing], attribution: &Attribution) {
        if self.wants(wait) && wait.outcome != Outcome::Uncertain {
            let of = (cell_key(wait, self.detail), wait);
            self.count((wait.begin, wait.end), attribution, |sums, range| {
                sums.add_standings(of, parts, range);
            });
        }
    }

    /// Counts a CPU sample; one that waits for a lock unseen by the tracepoints enters the waits.
    pub fn add_sample(&mut self, sample: &Sample, facts: &Facts, attribution: &Attribution) {
        let one = Spun { samples: 1, time: sample.weight };
        if sample.idle {
            return self.count_at(sample.time, attribution, |sums| sums.add_idle(one));
        }
        let spun = untraced(sample, facts).map(|lock_type| CellKey {
            lock_type,
            kernel: StackKey::Stack(sample.kernel_stack),
            user: if self.detail.user_stacks { sample.user_stack } else { StackId::EMPTY },
            lock: None,
            task: TaskKey::of(sample.task),
            context: facts.context,
        });
        let cpu = self.detail.cpu_stacks.then_some(CpuKey {
            kernel: CpuStackKey::Stack(sample.kernel_stack),
            user: sample.user_stack,
            task: TaskKey::of(sample.task),
        });
        self.count_at(sample.time, attribution, |sums| {
            sums.add_cpu(cpu, one);
            spun.into_iter().for_each(|key| sums.add_spun(key, sample));
        });
    }

    /// Counts a CPU sample of a task that is not the target's.
    pub fn add_outside(
        &mut self,
        (time, weight): (Timestamp, Nanos),
        idle: bool,
        attribution: &Attribution,
    ) {
        let one = Spun { samples: 1, time: weight };
        self.count_at(time, attribution, |sums| match idle {
            true => sums.add_idle(one),
            false => sums.add_outside(one),
        });
    }

    /// Counts a wait that stood in the queue of its lock.
    pub fn add_queued(&mut self, wait: &Wait, attribution: &Attribution) {
        if wait.outcome != Outcome::Uncertain {
            let time = (wait.begin, wait.end);
            self.count(time, attribution, |sums, range| sums.add_queued(wait, range));
        }
    }

    /// Counts what a queue did until it ran empty.
    pub fn add_stretch(&mut self, stretch: &Busy, attribution: &Attribution) {
        let time = (stretch.from, stretch.to);
        self.count(time, attribution, |sums, range| sums.add_stretch(stretch, range));
    }

    /// Counts a stretch of a thread's life; what passed unrecorded since the one before is a part of its
    /// own.
    pub fn add_life(&mut self, piece: &LifePiece, attribution: &Attribution) {
        let unknown = self.accounted.until(piece);
        unknown.iter().chain(Some(piece)).for_each(|piece| self.count_life(piece, attribution));
    }

    /// Counts a wait for a lock of user space.
    pub fn add_user_lock(
        &mut self,
        key: UserLockKey,
        time: (Timestamp, Timestamp),
        attribution: &Attribution,
    ) {
        self.count(time, attribution, |sums, range| sums.add_user_lock(key, time, range));
    }

    /// The task ended at `time`.
    pub fn end_life(&mut self, id: TaskId, time: Timestamp, attribution: &Attribution) {
        if let Some(unknown) = self.accounted.end(id, time) {
            self.count_life(&unknown, attribution);
        }
    }

    /// The recording ended at `time`.
    pub fn end_lives(&mut self, time: Timestamp, attribution: &Attribution) {
        let unknown = self.accounted.finish(time);
        unknown.iter().for_each(|piece| self.count_life(piece, attribution));
    }

    fn count_life(&mut self, piece: &LifePiece, attribution: &Attribution) {
        let time = (piece.from, piece.to);
        self.count(time, attribution, |sums, range| sums.add_life(piece, range));
    }

    /// Widens the span of time that the tables speak of.
    #[inline]
    pub fn see(&mut self, time: Timestamp) {
        let (first, last) = self.span.unwrap_or((time, time));
        self.span = Some((first.min(time), last.max(time)));
    }

    /// First and last event; `None` without events.
    pub fn span(&self) -> Option<(Timestamp, Timestamp)> {
        self.span
    }

    /// Which waits count.
    pub fn filter(&self) -> WaitFilter {
        self.filter
    }

    /// Restricts what is counted from here on. Waits counted already stay.
    pub fn set_time(&mut self, time: TimeRange) {
        self.filter.time = time;
    }

    /// Counts from here on only, and nothing of what was before.
    pub fn restart(&mut self, from: Timestamp) {
        let time = TimeRange { from, ..self.filter.time };
        *self = Tables::new(self.detail, WaitFilter { time, ..self.filter });
        self.span = Some((from, from));
    }

    /// Time has come to the last event, also where nobody waited.
    pub fn advance(&mut self, attribution: &Attribution) {
        if let (Some(timeline), Some((first, last))) = (&mut self.timeline, self.span) {
            let range = self.filter.time;
            timeline.advance(first.max(range.from), last.min(range.to), attribution);
        }
    }

    /// The cell of a wait, and what it counts in a range of time; `None` for nothing.
    pub fn cell_of(
        &self,
        wait: &Wait,
        inside: TimeRange,
        phases: &impl Fn(TimeRange) -> PhaseTimes,
    ) -> Option<(CellKey, WaitStat)> {
        let range = self.filter.time.both(inside);
        if !self.wants(wait) {
            return None;
        }
        Some((cell_key(wait, self.detail), count(wait, range, phases)?))
    }

    /// All that was counted.
    pub fn whole(&self) -> &Sums {
        &self.whole
    }

    /// The same by time, where it is kept so.
    pub fn timeline(&self) -> Option<&Timeline> {
        self.timeline.as_ref()
    }

    /// The slices that lie in a range of time added up, and which time that is.
    pub fn part(&self, range: TimeRange, attribution: &Attribution) -> Option<(Sums, TimeRange)> {
        let (mut sums, range) = self.timeline.as_ref()?.part(range)?;
        sums.make_room(self.detail.cells, attribution);
        Some((sums, range))
    }

    #[inline]
    pub(super) fn wants(&self, wait: &Wait) -> bool {
        wait.full() >= self.filter.min_wait
    }

    /// Counts what happened between two moments in the whole, and in the slices that it lies in.
    #[inline]
    pub(super) fn count(
        &mut self,
        (from, to): (Timestamp, Timestamp),
        attribution: &Attribution,
        mut count: impl FnMut(&mut Sums, TimeRange),
    ) {
        let range = self.filter.time;
        count(&mut self.whole, range);
        self.whole.make_room(self.detail.cells, attribution);
        if let Some(timeline) = &mut self.timeline {
            let first = self.span.map_or(from, |(first, _)| first).max(range.from);
            timeline.advance(first, to.min(range.to), attribution);
            timeline.count((from, to), range, attribution, count);
        }
    }

    /// The same of a moment.
    #[inline]
    pub(super) fn count_at(
        &mut self,
        time: Timestamp,
        attribution: &Attribution,
        mut count: impl FnMut(&mut Sums),
    ) {
        self.count((time, time), attribution, |sums, range| {
            if range.contains(time) {
                count(sums);
            }
        });
    }
}

#[inline]
pub(super) fn cell_key(wait: &Wait, detail: Detail) -> CellKey {
    CellKey {
        lock_type: wait.lock_type,
        kernel: StackKey::Stack(wait.kernel_stack),
        user: if detail.user_stacks { wait.user_stack } else { StackId::EMPTY },
        lock: wait.lock.known(),
        task: TaskKey::of(wait.task),
        context: wait.context,
    }
}

/// The type of lock that a sample waits for without a tracepoint having said so. Where the task has an
/// open wait for any lock whose code is on the stack, the time is in that wait: the spinlock inside an
/// rwsem is spun for by those who wait for the rwsem.
fn untraced(sample: &Sample, facts: &Facts) -> Option<LockType> {
    let path = facts.path.filter(|path| path.waits())?;
    let traced = match path.kinds.is_empty() {
        true => !sample.waiting.is_empty(),
        false => sample.waiting.intersects(path.kinds),
    };
    (!traced).then_some(path.lock_type)
}

//! The tables: sums and histograms by key, in bounded memory.
//!
//! One table of waits serves every question: a report groups its cells by site, lock or task. When it
//! is full, the cells that waited least merge into their parents until half of it is free. Totals,
//! types and histograms stay exact; how many keys were folded is counted.

use hashbrown::HashMap;

use super::blame::{Blame, fold};
use super::key::{CellKey, StackKey, TaskKey};
use super::queues::{QueueKey, QueueTable};
use super::thread_time::{LifePiece, ThreadTimes, UserLockKey};
use super::timeline::{Slicing, Timeline};
use crate::attribute::{Facts, Standing};
use crate::correlate::{Busy, Sample};
use crate::model::{
    Behind, FunctionId, LockType, Nanos, Outcome, PhaseTimes, QueueStat, Spun, StackId, TaskId,
    TaskRef, TimeRange, Timestamp, Wait, WaitStat,
};

/// Cells of the table of waits, and of that of CPU samples.
const CELL_LIMIT: usize = 1 << 16;

/// How finely keys are told apart. Less detail is less memory and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detail {
    /// Keep user stacks apart.
    pub user_stacks: bool,
    /// Keep the stacks of all CPU samples.
    pub cpu_stacks: bool,
    /// Keep waits by time too, and how it is cut.
    pub slicing: Option<Slicing>,
    /// Cells at the most.
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

/// Key of CPU samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuKey {
    /// Kernel part; empty when folded.
    pub kernel: StackId,
    /// User part.
    pub user: StackId,
    /// Whom the CPU ran; `None` when folded.
    pub task: Option<TaskRef>,
}

/// What a cell counts, and when.
#[derive(Debug, Default)]
struct Cell {
    stat: WaitStat,
    /// From the first begin to the last end.
    seen: Option<TimeRange>,
}

impl Cell {
    #[inline]
    fn see(&mut self, from: Timestamp, to: Timestamp) {
        let seen = self.seen.get_or_insert(TimeRange { from, to });
        *seen = TimeRange { from: seen.from.min(from), to: seen.to.max(to) };
    }

    fn wait(&self) -> Nanos {
        self.stat.wait()
    }

    fn merge(&mut self, other: &Cell) {
        self.stat.merge(&other.stat);
        if let Some(seen) = other.seen {
            self.see(seen.from, seen.to);
        }
    }
}

/// Sums by key.
#[derive(Debug, Default)]
pub struct Tables {
    pub(super) detail: Detail,
    pub(super) filter: WaitFilter,
    waits: HashMap<CellKey, Cell>,
    cpu: HashMap<CpuKey, Spun>,
    cpu_total: Spun,
    pub(super) blame: Blame,
    queues: QueueTable,
    thread_times: ThreadTimes,
    idle: Spun,
    outside: Spun,
    timeline: Option<Timeline>,
    folded: u64,
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
        site: impl Fn(StackId) -> Option<FunctionId>,
    ) {
        let range = self.filter.time;
        if wait.full() < self.filter.min_wait || !is_counted(wait, range) {
            return;
        }
        let key = cell_key(wait, self.detail);
        let cell = self.waits.entry(key).or_default();
        cell.see(wait.begin, wait.end);
        count_into(&mut cell.stat, wait, range, &phases);
        if let Some(timeline) = &mut self.timeline {
            let first = self.span.map_or(wait.begin, |(first, _)| first.max(range.from));
            timeline.advance(first, wait.end.min(range.to), &site);
            timeline.add_wait(wait, key, range, &phases, &site);
        }
        self.make_room(site);
    }

    /// Counts whom the parts of a wait that was counted stood behind.
    pub fn add_standings(&mut self, wait: &Wait, parts: &[Standing]) {
        let range = self.filter.time;
        if wait.full() < self.filter.min_wait || wait.outcome == Outcome::Uncertain {
            return;
        }
        let mut behind = Behind::default();
        for part in parts {
            let inside = TimeRange { from: part.from.max(range.from), to: part.to.min(range.to) };
            behind.add(part.behind, wait.own_inside(inside));
        }
        if behind != Behind::default() {
            let cell = self.waits.entry(cell_key(wait, self.detail)).or_default();
            cell.stat.behind.merge(behind);
        }
    }

    /// Counts a CPU sample; one that waits for a lock unseen by the tracepoints enters the waits.
    pub fn add_sample(
        &mut self,
        sample: &Sample,
        facts: &Facts,
        site: impl Fn(StackId) -> Option<FunctionId>,
    ) {
        if !self.filter.time.contains(sample.time) {
            return;
        }
        let one = Spun { samples: 1, time: sample.weight };
        if sample.idle {
            return self.idle.merge(one);
        }
        self.cpu_total.merge(one);
        if let Some(lock_type) = untraced(sample, facts) {
            let key = CellKey {
                lock_type,
                kernel: StackKey::Stack(sample.kernel_stack),
                user: if self.detail.user_stacks { sample.user_stack } else { StackId::EMPTY },
                lock: None,
                task: TaskKey::Task(sample.task),
                context: facts.context,
            };
            let cell = self.waits.entry(key).or_default();
            cell.see(sample.time, sample.time);
            cell.stat.spun.merge(one);
            if let Some(timeline) = &mut self.timeline {
                let first = self.span.map_or(sample.time, |(first, _)| first);
                timeline.advance(first.max(self.filter.time.from), sample.time, &site);
                timeline.add_spun(sample.time, key, one);
            }
            self.make_room(site);
        }
        if self.detail.cpu_stacks {
            self.add_cpu_stack(sample, one);
        }
    }

    /// Adds what a queue did until it ran empty.
    pub fn add_stretch(&mut self, stretch: &Busy) {
        self.queues.add(stretch, self.filter.time, self.detail.cells);
    }

    /// What the queue of a lock did.
    pub fn queue(&self, key: &QueueKey) -> Option<&QueueStat> {
        self.queues.queues.get(key)
    }

    /// Counts a stretch of a thread's life.
    pub fn add_life(&mut self, piece: &LifePiece) {
        self.thread_times.add(piece, self.filter.time, self.detail.cells);
    }

    /// Counts a wait for a lock of user space.
    pub fn add_user_lock(&mut self, key: UserLockKey, from: Timestamp, to: Timestamp) {
        self.thread_times.add_user_lock(key, (from, to), self.filter.time, self.detail.cells);
    }

    /// The task ended at `time`.
    pub fn end_life(&mut self, id: TaskId, time: Timestamp) {
        self.thread_times.end(id, time, self.filter.time);
    }

    /// The recording ended at `time`.
    pub fn end_lives(&mut self, time: Timestamp) {
        self.thread_times.finish(time, self.filter.time);
    }

    /// Where the time of the threads went.
    pub fn thread_times(&self) -> &ThreadTimes {
        &self.thread_times
    }

    /// Counts a CPU sample of a task that is not the target's.
    pub fn add_outside(&mut self, time: Timestamp, weight: Nanos, idle: bool) {
        if self.filter.time.contains(time) {
            let sum = if idle { &mut self.idle } else { &mut self.outside };
            sum.merge(Spun { samples: 1, time: weight });
        }
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
    pub fn advance(&mut self, site: impl Fn(StackId) -> Option<FunctionId>) {
        if let (Some(timeline), Some((first, last))) = (&mut self.timeline, self.span) {
            timeline.advance(first.max(self.filter.time.from), last, &site);
        }
    }

    /// The cell of a wait, and what it counts in a range of time; `None` for nothing.
    pub fn cell_of(
        &self,
        wait: &Wait,
        inside: TimeRange,
        phases: &impl Fn(TimeRange) -> PhaseTimes,
    ) -> Option<(CellKey, WaitStat)> {
        let range = self.filter.time;
        let range = TimeRange { from: range.from.max(inside.from), to: range.to.min(inside.to) };
        if wait.full() < self.filter.min_wait {
            return None;
        }
        Some((cell_key(wait, self.detail), count(wait, range, phases)?))
    }

    /// All cells, in no order.
    pub fn waits(&self) -> impl Iterator<Item = (&CellKey, &WaitStat)> {
        self.waits.iter().map(|(key, cell)| (key, &cell.stat))
    }

    /// Waits by time, where they are kept so.
    pub fn timeline(&self) -> Option<&Timeline> {
        self.timeline.as_ref()
    }

    /// From the first begin to the last end of the waits of a cell.
    pub fn seen(&self, key: &CellKey) -> Option<TimeRange> {
        self.waits.get(key)?.seen
    }

    /// The cell of a key.
    pub fn wait(&self, key: &CellKey) -> Option<(&CellKey, &WaitStat)> {
        self.waits.get_key_value(key).map(|(key, cell)| (key, &cell.stat))
    }

    /// CPU samples by stack, in no order.
    pub fn cpu(&self) -> impl Iterator<Item = (&CpuKey, &Spun)> {
        self.cpu.iter()
    }

    /// All CPU samples, the idle tasks' left out.
    pub fn cpu_total(&self) -> Spun {
        self.cpu_total
    }

    /// CPU samples of idle CPUs.
    pub fn idle(&self) -> Spun {
        self.idle
    }

    /// CPU samples of tasks that are not the target's.
    pub fn outside(&self) -> Spun {
        self.outside
    }

    /// Keys that were merged into their parents.
    pub fn folded(&self) -> u64 {
        let by_time = self.timeline.as_ref().map_or(0, Timeline::folded);
        let of_waits = self.folded + self.blame.folded + self.queues.folded;
        of_waits + self.thread_times.folded() + by_time
    }

    fn add_cpu_stack(&mut self, sample: &Sample, one: Spun) {
        let mut key = CpuKey {
            kernel: sample.kernel_stack,
            user: sample.user_stack,
            task: Some(sample.task),
        };
        if self.cpu.len() >= self.detail.cells && !self.cpu.contains_key(&key) {
            self.folded += 1;
            key = CpuKey { kernel: StackId::EMPTY, user: StackId::EMPTY, task: None };
        }
        self.cpu.entry(key).or_default().merge(one);
    }

    /// Merges the cells that waited least into their parents while the table is over its limit.
    fn make_room(&mut self, site: impl Fn(StackId) -> Option<FunctionId>) {
        if self.waits.len() <= self.detail.cells {
            return;
        }
        let parent = |key: CellKey| key.parent(&site);
        let limit = self.detail.cells;
        self.folded += fold(&mut self.waits, limit, parent, Cell::wait, Cell::merge);
    }
}

/// Whether a wait counts in a range of time at all.
#[inline]
fn is_counted(wait: &Wait, range: TimeRange) -> bool {
    range.contains(wait.end) || wait.own_inside(range) != Nanos::ZERO
}

/// What a wait counts in a range of time; `None` for nothing.
pub(super) fn count(
    wait: &Wait,
    range: TimeRange,
    phases: &impl Fn(TimeRange) -> PhaseTimes,
) -> Option<WaitStat> {
    let mut stat = WaitStat::default();
    is_counted(wait, range).then(|| count_into(&mut stat, wait, range, phases))?;
    Some(stat)
}

#[inline]
fn count_into(
    stat: &mut WaitStat,
    wait: &Wait,
    range: TimeRange,
    phases: &impl Fn(TimeRange) -> PhaseTimes,
) {
    let (ends_inside, own) = (range.contains(wait.end), wait.own_inside(range));
    match wait.outcome {
        Outcome::Open => {
            stat.open_time += own;
            stat.open += u64::from(ends_inside);
        }
        Outcome::Uncertain => {
            stat.uncertain_time += own;
            stat.uncertain += u64::from(ends_inside);
        }
        outcome => {
            if ends_inside {
                stat.ended.add(wait.full());
                stat.failed += u64::from(outcome == Outcome::Failed);
                stat.backed_off += u64::from(outcome == Outcome::BackedOff);
            }
            stat.ended.own += own;
        }
    }
    if wait.outcome != Outcome::Uncertain {
        stat.phases.merge(&phases(range));
    }
}

#[inline]
pub(super) fn cell_key(wait: &Wait, detail: Detail) -> CellKey {
    CellKey {
        lock_type: wait.lock_type,
        kernel: StackKey::Stack(wait.kernel_stack),
        user: if detail.user_stacks { wait.user_stack } else { StackId::EMPTY },
        lock: wait.lock.known(),
        task: TaskKey::Task(wait.task),
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

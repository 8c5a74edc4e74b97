//! Everything that is counted, by key: of a recording, or of a slice of it.
//!
//! In: waits, their pieces, CPU samples, stretches of lives, each with the range of time that these sums
//! speak of. Out: bounded tables for reports. Times are clipped to the range, and what ends is counted
//! where it ends: sums of neighbouring ranges add up to those of both.

use super::blame::{BlameKey, HoldKey, SleepKey, ThroughKey};
use super::key::{CellKey, CpuKey};
use super::queues::QueueKey;
use super::table::{Sum, Table};
use super::thread_time::{PartTime, ThreadKey, UserLockKey};
use crate::attribute::{Attribution, Standing};
use crate::correlate::Sample;
use crate::model::{
    Behind, Nanos, Outcome, PhaseTimes, QueueStat, Spun, Stat, TimeRange, Timestamp, Wait, WaitStat,
};

/// What a cell of waits counts, and when.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
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
}

impl Sum for Cell {
    fn merge(&mut self, other: &Cell) {
        self.stat.merge(&other.stat);
        if let Some(seen) = other.seen {
            self.see(seen.from, seen.to);
        }
    }

    fn weight(&self) -> Nanos {
        self.stat.wait()
    }
}

/// Sums by key.
#[derive(Clone, Debug, Default)]
pub struct Sums {
    waits: Table<CellKey, Cell>,
    cpu: Table<CpuKey, Spun>,
    cpu_total: Spun,
    idle: Spun,
    outside: Spun,
    pub(super) pieces: Table<BlameKey, WaitStat>,
    pub(super) holds: Table<HoldKey, Stat>,
    /// Waiting that passed while its holder slept.
    pub(super) sleeps: Table<SleepKey, Nanos>,
    pub(super) through: Table<ThroughKey, Stat>,
    pub(super) cut: Nanos,
    pub(super) queues: Table<QueueKey, QueueStat>,
    pub(super) lives: Table<ThreadKey, PartTime>,
    pub(super) user_locks: Table<UserLockKey, Stat>,
}

impl Sums {
    /// Adds everything that `other` counted.
    pub fn merge(&mut self, other: &Sums) {
        // All fields by name: one that is added later cannot be left out.
        let Sums {
            waits,
            cpu,
            cpu_total,
            idle,
            outside,
            pieces,
            holds,
            sleeps,
            through,
            cut,
            queues,
            lives,
            user_locks,
        } = other;
        self.waits.merge(waits);
        self.cpu.merge(cpu);
        self.cpu_total.merge(*cpu_total);
        self.idle.merge(*idle);
        self.outside.merge(*outside);
        self.pieces.merge(pieces);
        self.holds.merge(holds);
        self.sleeps.merge(sleeps);
        self.through.merge(through);
        self.cut += *cut;
        self.queues.merge(queues);
        self.lives.merge(lives);
        self.user_locks.merge(user_locks);
    }

    /// Merges keys into their parents in every table that has more than `limit`.
    #[inline]
    pub(super) fn make_room(&mut self, limit: usize, attribution: &Attribution) {
        self.waits.make_room(limit, attribution);
        self.cpu.make_room(limit, attribution);
        self.pieces.make_room(limit, attribution);
        self.holds.make_room(limit, attribution);
        self.sleeps.make_room(limit, attribution);
        self.through.make_room(limit, attribution);
        self.queues.make_room(limit, attribution);
        self.lives.make_room(limit, attribution);
        self.user_locks.make_room(limit, attribution);
    }

    /// Keys that were merged into their parents.
    pub fn folded(&self) -> u64 {
        let of_waits = self.waits.folded() + self.queues.folded();
        let of_cpu = self.cpu.folded() + self.lives.folded() + self.user_locks.folded();
        let of_blame = self.pieces.folded() + self.holds.folded() + self.sleeps.folded();
        of_waits + of_cpu + of_blame + self.through.folded()
    }

    /// Counts a wait. `phases`: what it was spent on inside a range of time.
    #[inline]
    pub(super) fn add_wait(
        &mut self,
        (key, wait): (CellKey, &Wait),
        range: TimeRange,
        phases: &impl Fn(TimeRange) -> PhaseTimes,
    ) {
        if is_counted(wait, range) {
            let cell = self.waits.cell(key);
            cell.see(wait.begin, wait.end);
            count_into(&mut cell.stat, wait, range, phases);
        }
    }

    /// Counts whom the parts of a wait stood behind.
    pub(super) fn add_standings(
        &mut self,
        (key, wait): (CellKey, &Wait),
        parts: &[Standing],
        range: TimeRange,
    ) {
        let mut behind = Behind::default();
        for part in parts {
            let inside = TimeRange { from: part.from.max(range.from), to: part.to.min(range.to) };
            behind.add(part.behind, wait.own_inside(inside));
        }
        if behind != Behind::default() {
            self.waits.cell(key).stat.behind.merge(behind);
        }
    }

    /// Counts a sample that waits for a lock unseen by the tracepoints.
    pub(super) fn add_spun(&mut self, key: CellKey, sample: &Sample) {
        let cell = self.waits.cell(key);
        cell.see(sample.time, sample.time);
        cell.stat.spun.merge(Spun { samples: 1, time: sample.weight });
    }

    /// Counts a CPU sample; `key` where its stack is kept.
    pub(super) fn add_cpu(&mut self, key: Option<CpuKey>, one: Spun) {
        self.cpu_total.merge(one);
        if let Some(key) = key {
            self.cpu.cell(key).merge(one);
        }
    }

    /// Counts a CPU sample of an idle CPU.
    pub(super) fn add_idle(&mut self, one: Spun) {
        self.idle.merge(one);
    }

    /// Counts a CPU sample of a task that is not the target's.
    pub(super) fn add_outside(&mut self, one: Spun) {
        self.outside.merge(one);
    }

    /// Waits by key, in no order.
    pub fn waits(&self) -> impl Iterator<Item = (&CellKey, &WaitStat)> {
        self.waits.iter().map(|(key, cell)| (key, &cell.stat))
    }

    /// The cell of a key.
    pub fn wait(&self, key: &CellKey) -> Option<(&CellKey, &WaitStat)> {
        self.waits.get(key).map(|(key, cell)| (key, &cell.stat))
    }

    /// From the first begin to the last end of the waits of a cell.
    pub fn seen(&self, key: &CellKey) -> Option<TimeRange> {
        self.waits.get(key)?.1.seen
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

    /// Pieces of waits by waiter and releaser, in no order.
    pub fn pieces(&self) -> impl Iterator<Item = (&BlameKey, &WaitStat)> {
        self.pieces.iter()
    }

    /// Where those slept who are charged with waiting, and how much of the waiting that was, in no order.
    pub fn holder_sleeps(&self) -> impl Iterator<Item = (&SleepKey, &Nanos)> {
        self.sleeps.iter()
    }

    /// How long `key` kept a lock.
    pub fn hold(&self, key: &HoldKey) -> Option<&Stat> {
        self.holds.get(key).map(|(_, stat)| stat)
    }

    /// Charged waiting that goes on to another than its releaser, by waiter and chain, in no order.
    pub fn through(&self) -> impl Iterator<Item = (&ThroughKey, &Stat)> {
        self.through.iter()
    }

    /// Charged time that may go on to another unseen, because a limit was reached.
    pub fn cut(&self) -> Nanos {
        self.cut
    }

    /// What the queue of a lock did.
    pub fn queue(&self, key: &QueueKey) -> Option<&QueueStat> {
        self.queues.get(key).map(|(_, stat)| stat)
    }

    /// Time of threads by task and part, in no order.
    pub fn lives(&self) -> impl Iterator<Item = (&ThreadKey, &PartTime)> {
        self.lives.iter()
    }

    /// Waits for locks of user space, in no order.
    pub fn user_locks(&self) -> impl Iterator<Item = (&UserLockKey, &Stat)> {
        self.user_locks.iter()
    }

    /// Keys of the table that has most.
    pub fn widest(&self) -> usize {
        let of_waits = self.waits.len().max(self.queues.len()).max(self.through.len());
        let of_cpu = self.cpu.len().max(self.lives.len()).max(self.user_locks.len());
        let of_blame = self.pieces.len().max(self.holds.len()).max(self.sleeps.len());
        of_waits.max(of_cpu).max(of_blame)
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

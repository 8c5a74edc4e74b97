//! Where the time of the target's threads went, and what they waited for in locks of their own.
//!
//! In: what each task did, stretch by stretch, and on what it slept. Out: two bounded tables: time by
//! task and part, whose parts add up to the lives of the threads as far as they were observed, from the
//! first stretch of each to its end; and the waits for locks of user space by call site. When one is
//! full, the keys that count least are merged into their parents.
//!
//! ```text
//!   user stack -> none     task -> any     function slept in -> any
//! ```

use hashbrown::HashMap;

use super::blame::fold;
use super::key::TaskKey;
use crate::model::{FunctionId, Nanos, StackId, Stat, TaskId, TaskRef, TimeRange, Timestamp};

/// Tasks whose latest stretch is remembered.
const TASKS_KEPT: usize = 1 << 16;

/// On what a thread spends its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ThreadPart {
    /// It has a CPU.
    OnCpu,
    /// It could run and has no CPU.
    Runnable,
    /// It sleeps until it gets a lock of the kernel.
    KernelLock,
    /// It sleeps until it gets a lock of user space.
    UserLock,
    /// It sleeps on something else, in this function; `None` where that was not recorded.
    Sleep(Option<FunctionId>),
    /// Records are missing.
    Unknown,
}

/// What one cell counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadKey {
    /// Whose time.
    pub task: TaskKey,
    /// Spent on what.
    pub part: ThreadPart,
}

/// Waits for locks of user space at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UserLockKey {
    /// Who waited.
    pub task: TaskKey,
    /// Through which function it entered the kernel.
    pub entry: Option<FunctionId>,
    /// User part of its stack.
    pub user: StackId,
}

/// A stretch of a thread's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LifePiece {
    /// Whose, by its global pid.
    pub id: TaskId,
    /// The same with its name.
    pub task: TaskRef,
    /// Its first moment.
    pub from: Timestamp,
    /// The moment after it.
    pub to: Timestamp,
    /// Spent on what.
    pub part: ThreadPart,
}

/// How much, and how often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartTime {
    /// Stretches that ended in the range asked for.
    pub count: u64,
    /// Their time, clipped to it.
    pub time: Nanos,
}

impl PartTime {
    /// Adds everything that `other` counted.
    pub fn merge(&mut self, other: &PartTime) {
        self.count += other.count;
        self.time += other.time;
    }
}

/// The tables.
#[derive(Debug, Default)]
pub struct ThreadTimes {
    parts: HashMap<ThreadKey, PartTime>,
    user_locks: HashMap<UserLockKey, Stat>,
    /// Until when each living task is accounted for, and under which name.
    accounted: HashMap<TaskId, (Timestamp, TaskRef)>,
    folded: u64,
}

impl ThreadTimes {
    /// Adds a stretch; what passed unrecorded since the one before is a part of its own.
    pub(super) fn add(&mut self, piece: &LifePiece, range: TimeRange, limit: usize) {
        let before = self.accounted.insert(piece.id, (piece.to, piece.task));
        if let Some((before, _)) = before {
            self.count_unknown(piece.task, (before, piece.from), range);
        }
        self.count(piece.task, piece.part, (piece.from, piece.to), range);
        if self.parts.len() > limit {
            let weight = |sum: &PartTime| sum.time;
            self.folded += fold(&mut self.parts, limit, ThreadKey::parent, weight, PartTime::merge);
        }
        if self.accounted.len() > TASKS_KEPT {
            self.forget_silent();
        }
    }

    /// Adds a wait for a lock of user space.
    pub(super) fn add_user_lock(
        &mut self,
        key: UserLockKey,
        (from, to): (Timestamp, Timestamp),
        range: TimeRange,
        limit: usize,
    ) {
        let own = range.clip(from, to);
        let ends_inside = range.contains(to);
        if own == Nanos::ZERO && !ends_inside {
            return;
        }
        let stat = self.user_locks.entry(key).or_default();
        stat.own += own;
        if ends_inside {
            stat.add(to.since(from));
        }
        if self.user_locks.len() > limit {
            let weight = |stat: &Stat| stat.own;
            self.folded +=
                fold(&mut self.user_locks, limit, UserLockKey::parent, weight, Stat::merge);
        }
    }

    /// The task ended: who has its number next is another. What passed unrecorded before is part of
    /// its life.
    pub(super) fn end(&mut self, id: TaskId, time: Timestamp, range: TimeRange) {
        if let Some((before, task)) = self.accounted.remove(&id) {
            self.count_unknown(task, (before, time), range);
        }
    }

    /// The recording ended, and with it what is known of the lives of all.
    pub(super) fn finish(&mut self, time: Timestamp, range: TimeRange) {
        for (before, task) in std::mem::take(&mut self.accounted).into_values() {
            self.count_unknown(task, (before, time), range);
        }
    }

    /// Time by task and part, in no order.
    pub fn parts(&self) -> impl Iterator<Item = (&ThreadKey, &PartTime)> {
        self.parts.iter()
    }

    /// Waits for locks of user space, in no order.
    pub fn user_locks(&self) -> impl Iterator<Item = (&UserLockKey, &Stat)> {
        self.user_locks.iter()
    }

    /// Keys that were merged into their parents.
    pub(super) fn folded(&self) -> u64 {
        self.folded
    }

    fn count_unknown(
        &mut self,
        task: TaskRef,
        (from, to): (Timestamp, Timestamp),
        range: TimeRange,
    ) {
        if from < to {
            self.count(task, ThreadPart::Unknown, (from, to), range);
        }
    }

    fn count(
        &mut self,
        task: TaskRef,
        part: ThreadPart,
        (from, to): (Timestamp, Timestamp),
        range: TimeRange,
    ) {
        let time = range.clip(from, to);
        let count = u64::from(range.contains(to));
        if time == Nanos::ZERO && count == 0 {
            return;
        }
        let key = ThreadKey { task: TaskKey::Task(task), part };
        self.parts.entry(key).or_default().merge(&PartTime { count, time });
    }

    /// Forgets the half of the tasks that nothing was heard of for longest: when they are heard of
    /// again, their lives begin anew.
    fn forget_silent(&mut self) {
        let mut latest: Vec<Timestamp> = self.accounted.values().map(|known| known.0).collect();
        let middle = latest.len() / 2;
        let (_, &mut middle, _) = latest.select_nth_unstable(middle);
        self.accounted.retain(|_, (until, _)| *until > middle);
    }
}

impl ThreadKey {
    fn parent(self) -> Option<ThreadKey> {
        match self {
            ThreadKey { task: TaskKey::Task(_), .. } => {
                Some(ThreadKey { task: TaskKey::Folded, ..self })
            }
            ThreadKey { part: ThreadPart::Sleep(Some(_)), .. } => {
                Some(ThreadKey { part: ThreadPart::Sleep(None), ..self })
            }
            _ => None,
        }
    }
}

impl UserLockKey {
    fn parent(self) -> Option<UserLockKey> {
        match self {
            UserLockKey { user, .. } if user != StackId::EMPTY => {
                Some(UserLockKey { user: StackId::EMPTY, ..self })
            }
            UserLockKey { task: TaskKey::Task(_), .. } => {
                Some(UserLockKey { task: TaskKey::Folded, ..self })
            }
            UserLockKey { entry: Some(_), .. } => Some(UserLockKey { entry: None, ..self }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: TimeRange = TimeRange::ALL;

    fn piece(id: i32, from: u64, to: u64, part: ThreadPart) -> LifePiece {
        LifePiece {
            id: TaskId(id),
            task: TaskRef(id as u32),
            from: Timestamp(from),
            to: Timestamp(to),
            part,
        }
    }

    fn sum(times: &ThreadTimes, part: ThreadPart) -> u64 {
        times.parts().filter(|(key, _)| key.part == part).map(|(_, sum)| sum.time.0).sum()
    }

    fn total(times: &ThreadTimes) -> u64 {
        times.parts().map(|(_, sum)| sum.time.0).sum()
    }

    #[test]
    fn what_passed_between_two_stretches_of_a_life_is_unknown() {
        let mut times = ThreadTimes::default();
        times.add(&piece(7, 10, 30, ThreadPart::OnCpu), ALL, 100);
        times.add(&piece(7, 45, 50, ThreadPart::KernelLock), ALL, 100);
        times.end(TaskId(7), Timestamp(50), ALL);
        times.add(&piece(7, 80, 90, ThreadPart::OnCpu), ALL, 100);
        assert_eq!(sum(&times, ThreadPart::Unknown), 15);
        assert_eq!(total(&times), 40 + 10);
    }

    #[test]
    fn what_passed_between_the_last_stretch_and_the_end_is_unknown() {
        let mut times = ThreadTimes::default();
        let range = TimeRange { from: Timestamp(0), to: Timestamp(100) };
        for id in [7, 8, 9] {
            times.add(&piece(id, 10, 30, ThreadPart::OnCpu), range, 100);
        }
        times.end(TaskId(7), Timestamp(30), range);
        times.end(TaskId(8), Timestamp(34), range);
        times.finish(Timestamp(120), range);
        assert_eq!(sum(&times, ThreadPart::Unknown), 4 + 70);
        assert_eq!(sum(&times, ThreadPart::OnCpu), 60);
    }

    #[test]
    fn full_tables_keep_their_sums() {
        let mut times = ThreadTimes::default();
        for id in 1..200 {
            let part = ThreadPart::Sleep(Some(FunctionId(id as u32 % 40)));
            times.add(&piece(id, 0, 10, part), ALL, 16);
            let user = StackId(id as u32);
            let task = TaskKey::Task(TaskRef(id as u32));
            let key = UserLockKey { task, entry: None, user };
            times.add_user_lock(key, (Timestamp(0), Timestamp(5)), ALL, 16);
        }
        assert!(times.parts.len() <= 16 && times.user_locks.len() <= 16);
        assert!(times.folded() > 300);
        assert_eq!(total(&times), 199 * 10);
        let waited: u64 = times.user_locks().map(|(_, stat)| stat.own.0).sum();
        let count: u64 = times.user_locks().map(|(_, stat)| stat.count).sum();
        assert_eq!((waited, count), (199 * 5, 199));
    }

    #[test]
    fn a_range_of_time_cuts_stretches_and_neighbouring_ranges_add_up() {
        let of = |from, to| {
            let mut times = ThreadTimes::default();
            let range = TimeRange { from: Timestamp(from), to: Timestamp(to) };
            times.add(&piece(7, 10, 30, ThreadPart::OnCpu), range, 100);
            times.add(&piece(7, 30, 90, ThreadPart::UserLock), range, 100);
            (sum(&times, ThreadPart::OnCpu), sum(&times, ThreadPart::UserLock))
        };
        assert_eq!((of(0, 40), of(40, u64::MAX)), ((20, 10), (0, 50)));
    }
}

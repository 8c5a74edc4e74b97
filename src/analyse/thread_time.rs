//! Where the time of the target's threads went, and what they waited for in locks of their own.
//!
//! In: what each task did, stretch by stretch, and on what it slept. Out: time by task and part, whose
//! parts add up to the lives of the threads as far as they were observed, from the first stretch of each
//! to its end; and the waits for locks of user space by call site. When a table is full:
//!
//! ```text
//!   user stack -> none     task -> any     function slept in -> any
//! ```

use hashbrown::HashMap;

use super::key::TaskKey;
use super::sums::Sums;
use super::table::{Key, Sum};
use crate::attribute::Attribution;
use crate::model::{FunctionId, Nanos, StackId, TaskId, TaskRef, TimeRange, Timestamp};

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

impl Sum for PartTime {
    fn merge(&mut self, other: &PartTime) {
        self.merge(other);
    }

    fn weight(&self) -> Nanos {
        self.time
    }
}

impl Sums {
    /// Adds a stretch.
    pub(super) fn add_life(&mut self, piece: &LifePiece, range: TimeRange) {
        let time = range.clip(piece.from, piece.to);
        let count = u64::from(range.contains(piece.to));
        if time == Nanos::ZERO && count == 0 {
            return;
        }
        let key = ThreadKey { task: TaskKey::of(piece.task), part: piece.part };
        self.lives.cell(key).merge(&PartTime { count, time });
    }

    /// Adds a wait for a lock of user space.
    pub(super) fn add_user_lock(
        &mut self,
        key: UserLockKey,
        (from, to): (Timestamp, Timestamp),
        range: TimeRange,
    ) {
        let own = range.clip(from, to);
        let ends_inside = range.contains(to);
        if own == Nanos::ZERO && !ends_inside {
            return;
        }
        let stat = self.user_locks.cell(key);
        stat.own += own;
        if ends_inside {
            stat.add(to.since(from));
        }
    }
}

/// Until when each living task is accounted for, and under which name.
#[derive(Debug, Default)]
pub(super) struct Accounted(HashMap<TaskId, (Timestamp, TaskRef)>);

impl Accounted {
    /// What passed unrecorded between the stretch before and this one.
    pub(super) fn until(&mut self, piece: &LifePiece) -> Option<LifePiece> {
        let before = self.0.insert(piece.id, (piece.to, piece.task));
        if self.0.len() > TASKS_KEPT {
            self.forget_silent();
        }
        let (before, _) = before?;
        unknown(piece.id, (before, piece.task), piece.from)
    }

    /// The task ended: who has its number next is another. What passed unrecorded before is part of
    /// its life.
    pub(super) fn end(&mut self, id: TaskId, time: Timestamp) -> Option<LifePiece> {
        unknown(id, self.0.remove(&id)?, time)
    }

    /// The recording ended, and with it what is known of the lives of all.
    pub(super) fn finish(&mut self, time: Timestamp) -> Vec<LifePiece> {
        let lives = std::mem::take(&mut self.0).into_iter();
        let mut left: Vec<LifePiece> =
            lives.filter_map(|(id, known)| unknown(id, known, time)).collect();
        // What is folded meanwhile must not depend on the order of a hash table.
        left.sort_unstable_by_key(|piece| piece.id);
        left
    }

    /// Forgets the half of the tasks that nothing was heard of for longest: when they are heard of
    /// again, their lives begin anew.
    fn forget_silent(&mut self) {
        let mut latest: Vec<Timestamp> = self.0.values().map(|known| known.0).collect();
        let middle = latest.len() / 2;
        let (_, &mut middle, _) = latest.select_nth_unstable(middle);
        self.0.retain(|_, (until, _)| *until > middle);
    }
}

fn unknown(id: TaskId, (from, task): (Timestamp, TaskRef), to: Timestamp) -> Option<LifePiece> {
    (from < to).then_some(LifePiece { id, task, from, to, part: ThreadPart::Unknown })
}

impl Key for ThreadKey {
    fn parent(self, _: &Attribution) -> Option<ThreadKey> {
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

impl Key for UserLockKey {
    fn parent(self, _: &Attribution) -> Option<UserLockKey> {
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
    use crate::analyse::{Detail, Tables, WaitFilter};

    fn tables(range: TimeRange, cells: usize) -> Tables {
        let filter = WaitFilter { time: range, ..WaitFilter::default() };
        Tables::new(Detail { cells, ..Detail::default() }, filter)
    }

    fn add(tables: &mut Tables, id: i32, (from, to): (u64, u64), part: ThreadPart) {
        let piece = LifePiece {
            id: TaskId(id),
            task: TaskRef(id as u32),
            from: Timestamp(from),
            to: Timestamp(to),
            part,
        };
        tables.add_life(&piece, &Attribution::default());
    }

    fn sum(tables: &Tables, part: ThreadPart) -> u64 {
        let parts = tables.whole().lives();
        parts.filter(|(key, _)| key.part == part).map(|(_, sum)| sum.time.0).sum()
    }

    fn total(tables: &Tables) -> u64 {
        tables.whole().lives().map(|(_, sum)| sum.time.0).sum()
    }

    #[test]
    fn what_passed_between_two_stretches_of_a_life_is_unknown() {
        let mut tables = tables(TimeRange::ALL, 100);
        add(&mut tables, 7, (10, 30), ThreadPart::OnCpu);
        add(&mut tables, 7, (45, 50), ThreadPart::KernelLock);
        tables.end_life(TaskId(7), Timestamp(50), &Attribution::default());
        add(&mut tables, 7, (80, 90), ThreadPart::OnCpu);
        assert_eq!(sum(&tables, ThreadPart::Unknown), 15);
        assert_eq!(total(&tables), 40 + 10);
    }

    #[test]
    fn what_passed_between_the_last_stretch_and_the_end_is_unknown() {
        let mut tables = tables(TimeRange { from: Timestamp(0), to: Timestamp(100) }, 100);
        for id in [7, 8, 9] {
            add(&mut tables, id, (10, 30), ThreadPart::OnCpu);
        }
        let attribution = Attribution::default();
        tables.end_life(TaskId(7), Timestamp(30), &attribution);
        tables.end_life(TaskId(8), Timestamp(34), &attribution);
        tables.end_lives(Timestamp(120), &attribution);
        assert_eq!(sum(&tables, ThreadPart::Unknown), 4 + 70);
        assert_eq!(sum(&tables, ThreadPart::OnCpu), 60);
    }

    #[test]
    fn full_tables_keep_their_sums() {
        let mut tables = tables(TimeRange::ALL, 16);
        for id in 1..200 {
            let part = ThreadPart::Sleep(Some(FunctionId(id as u32 % 40)));
            add(&mut tables, id, (0, 10), part);
            let task = TaskKey::Task(TaskRef(id as u32));
            let key = UserLockKey { task, entry: None, user: StackId(id as u32) };
            let time = (Timestamp(0), Timestamp(5));
            tables.add_user_lock(key, time, &Attribution::default());
        }
        let sums = tables.whole();
        assert!(sums.widest() <= 16 && sums.folded() > 300);
        assert_eq!(total(&tables), 199 * 10);
        let waited: u64 = sums.user_locks().map(|(_, stat)| stat.own.0).sum();
        let count: u64 = sums.user_locks().map(|(_, stat)| stat.count).sum();
        assert_eq!((waited, count), (199 * 5, 199));
    }

    #[test]
    fn a_range_of_time_cuts_stretches_and_neighbouring_ranges_add_up() {
        let of = |from, to| {
            let range = TimeRange { from: Timestamp(from), to: Timestamp(to) };
            let mut tables = tables(range, 100);
            add(&mut tables, 7, (10, 30), ThreadPart::OnCpu);
            add(&mut tables, 7, (30, 90), ThreadPart::UserLock);
            (sum(&tables, ThreadPart::OnCpu), sum(&tables, ThreadPart::UserLock))
        };
        assert_eq!((of(0, 40), of(40, u64::MAX)), ((20, 10), (0, 50)));
    }
}

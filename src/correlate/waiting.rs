//! What is waited for right now.
//!
//! In: nothing but the open waits. Out: all of them, for a screen, and those in which a task may sleep,
//! for who wakes it.

use super::identity::Identity;
use super::open::{KindSet, Open, Part};
use super::pairing::Correlate;
use super::wakeups::LockId;
use crate::model::{LockAddr, LockType, TaskId, TaskRef, Timestamp};

/// A wait that has not ended, as wakings see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenWait {
    /// For which lock.
    pub lock: Identity,
    /// Since when.
    pub begin: Timestamp,
}

impl Correlate {
    /// What is waited for right now: `(who, since when, type, lock)`.
    pub fn open_waits(
        &self,
    ) -> impl Iterator<Item = (TaskRef, Timestamp, LockType, LockAddr)> + '_ {
        let of_tasks = self.tasks.values().flat_map(|state| &state.opens);
        of_tasks
            .chain(self.cpus.values().flatten())
            .filter(|open| open.part != Part::Joined)
            .map(|open| (open.task, open.begin, open.lock_type, open.lock))
    }

    /// Whether the task has an open wait in which it may sleep.
    #[inline]
    pub fn waits(&self, task: TaskId) -> bool {
        self.tasks.get(&task).is_some_and(|state| !state.opens.is_empty())
    }

    /// The innermost wait of a task for a lock of these kinds in which it may sleep.
    pub fn waits_for(&self, task: TaskId, kinds: KindSet) -> Option<OpenWait> {
        let opens = &self.tasks.get(&task)?.opens;
        opens.iter().rev().find(|open| open.kinds().intersects(kinds)).map(open_wait)
    }

    /// All open waits in which a task may sleep, a writer's first half on PREEMPT_RT included.
    pub fn sleeping_waits(&self) -> impl Iterator<Item = OpenWait> + '_ {
        self.tasks.values().flat_map(|state| {
            let half = state.half.iter().map(|(half, ..)| half);
            half.chain(&state.opens).map(open_wait)
        })
    }
}

fn open_wait(open: &Open) -> OpenWait {
    let lock = LockId { addr: open.lock, kind: open.lock_type.kind };
    OpenWait { lock: Identity::At(lock), begin: open.begin }
}

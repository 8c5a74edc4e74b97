//! A wait: one waiter, one lock, from `contention_begin` to `contention_end`.

use super::{Context, Cpu, LockAddr, LockType, Nanos, StackId, TaskRef, TimeRange, Timestamp};

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// The lock was taken.
    Acquired,
    /// `ret < 0`: killed or timed out.
    Failed,
    /// `ret == -EDEADLK`: a ww_mutex backed off.
    BackedOff,
    /// Still waiting at the end of the recording or of the task: the wait is at least this long.
    Open,
    /// Lost records may have cut or joined it: the wait is at most this long.
    Uncertain,
}

/// What correlate hands on, and everything later rooms know of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Who waited. In an interrupt: whom it interrupted.
    pub task: TaskRef,
    /// Whether the task itself waited.
    pub context: Context,
    /// Where it began.
    pub cpu: Cpu,
    /// What it asked for.
    pub lock_type: LockType,
    /// Which lock: on PREEMPT_RT that of the rw lock, not of the rt-mutex inside.
    pub lock: LockAddr,
    /// When `contention_begin` came.
    pub begin: Timestamp,
    /// When `contention_end` came, or the last moment it was known to wait.
    pub end: Timestamp,
    /// Time of waits nested in this one.
    pub nested: Nanos,
    /// Time in phases of spinning: all of it for a spinlock.
    pub spun: Nanos,
    /// Until when a writer stood ahead of it in the queue of its lock, where that is known.
    pub writer_ahead: Option<Timestamp>,
    /// How it ended.
    pub outcome: Outcome,
    /// Kernel part of the callchain of the begin.
    pub kernel_stack: StackId,
    /// User part, resolved to objects and offsets.
    pub user_stack: StackId,
}

impl Wait {
    /// From begin to end.
    #[inline]
    pub fn full(&self) -> Nanos {
        self.end.since(self.begin)
    }

    /// Its own time inside a range: nested time is spread over the wait evenly, so that the parts of
    /// neighbouring ranges add up to the whole.
    #[inline]
    pub fn own_inside(&self, range: TimeRange) -> Nanos {
        let (own, full) = (self.own(), self.full());
        if range == TimeRange::ALL || full == Nanos::ZERO {
            return own;
        }
        let until = |moment: Timestamp| {
            let part = moment.clamp(self.begin, self.end).since(self.begin);
            Nanos((u128::from(own.0) * u128::from(part.0) / u128::from(full.0)) as u64)
        };
        until(range.to).saturating_sub(until(range.from))
    }

    /// Without the waits nested in it: what totals add up, so that no second counts twice.
    #[inline]
    pub fn own(&self) -> Nanos {
        self.full().saturating_sub(self.nested)
    }
}

//! A wait that has begun and not ended, and where it is kept.
//!
//! Spinning waits belong to their CPU: the task cannot leave it, and an interrupt may spin on top.
//! Sleeping waits belong to their task. Both are short stacks in order of begin; the last entry is
//! the innermost wait.

use super::queues::Begun;
use super::wakeups::LockId;
use crate::model::{
    Context, Cpu, LockAddr, LockFlags, LockKind, LockType, Mode, Nanos, Outcome, StackId, TaskId,
    TaskRef, Timestamp, Wait,
};

/// CPU number of records that do not say where they come from.
pub(super) const UNKNOWN_CPU: Cpu = Cpu(u32::MAX);

/// An open wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Open {
    pub(super) task: TaskRef,
    pub(super) id: TaskId,
    pub(super) context: Context,
    pub(super) cpu: Cpu,
    /// The address in the records, by which the end is found.
    pub(super) addr: LockAddr,
    /// The lock that is meant: differs from `addr` inside rw locks of PREEMPT_RT.
    pub(super) lock: LockAddr,
    pub(super) lock_type: LockType,
    /// Flags of the latest phase.
    pub(super) flags: LockFlags,
    pub(super) begin: Timestamp,
    /// When the latest phase began.
    pub(super) phase_since: Timestamp,
    /// Time in earlier phases of spinning.
    pub(super) spun: Nanos,
    pub(super) nested: Nanos,
    /// Time of its own that the wait around it was told of.
    pub(super) given: Nanos,
    pub(super) kernel_stack: StackId,
    pub(super) user_stack: StackId,
    /// Lost records may have cut or joined it.
    pub(super) touched: bool,
    pub(super) part: Part,
}

/// What an open wait is of a longer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A wait of its own.
    Whole,
    /// The rt-mutex inside an rw lock whose own begin came first: only its end is waited for.
    Joined,
    /// The rt-mutex that a writer of an rw lock takes first; the rw lock's own begin may follow.
    FirstHalf,
    /// The rw lock's own wait of a writer, which goes on with the first half.
    SecondHalf,
}

impl Open {
    /// Spinning waits belong to their CPU, where that is known; so do all waits of the idle task, of
    /// which every CPU has its own.
    pub(super) fn belongs_to_cpu(&self) -> bool {
        self.id == TaskId::IDLE || (self.flags.spins() && self.cpu != UNKNOWN_CPU)
    }

    /// The kinds of lock whose code it may be in: inside an rw lock of PREEMPT_RT that is an rt-mutex.
    pub(super) fn kinds(&self) -> KindSet {
        let mut kinds = KindSet::default();
        kinds.insert(self.lock_type.kind);
        kinds.insert(LockType::from_flags(self.flags).kind);
        kinds
    }

    /// Whether both wait for one lock. A semaphore and its own spinlock share an address.
    pub(super) fn same_lock(&self, other: &Open) -> bool {
        self.addr == other.addr && self.flags.spins() == other.flags.spins()
    }

    /// That it begins, for the queue of a lock with readers and writers.
    pub(super) fn begun(&self) -> Option<Begun> {
        let Open { task, cpu, begin, lock, lock_type, .. } = *self;
        let lock = LockId { addr: lock, kind: lock_type.kind };
        let has_queue = lock_type.mode != Mode::Exclusive;
        has_queue.then_some(Begun { task, cpu, lock, mode: lock_type.mode, begin })
    }

    /// The other phase begins.
    pub(super) fn change_phase(&mut self, flags: LockFlags, time: Timestamp) {
        self.spun = self.spun_until(time);
        (self.flags, self.phase_since) = (flags, time);
    }

    fn spun_until(&self, time: Timestamp) -> Nanos {
        let latest = time.since(self.phase_since);
        self.spun + if self.flags.has(LockFlags::SPIN) { latest } else { Nanos::ZERO }
    }

    pub(super) fn close(&self, end: Timestamp, outcome: Outcome) -> Wait {
        let outcome = if self.touched { Outcome::Uncertain } else { outcome };
        Wait {
            task: self.task,
            context: self.context,
            cpu: self.cpu,
            lock_type: self.lock_type,
            lock: self.lock,
            begin: self.begin,
            end: end.max(self.begin),
            nested: self.nested,
            spun: self.spun_until(end),
            writer_ahead: None,
            outcome,
            kernel_stack: self.kernel_stack,
            user_stack: self.user_stack,
        }
    }

    /// A mutex waiter alternates between spinning (SPIN|MUTEX) and sleeping (MUTEX); any other begin
    /// over an open wait means that the end was lost.
    pub(super) fn changes_phase(&self, flags: LockFlags) -> bool {
        let both_mutex = self.flags.has(LockFlags::MUTEX) && flags.has(LockFlags::MUTEX);
        both_mutex && self.flags.has(LockFlags::SPIN) != flags.has(LockFlags::SPIN)
    }
}

/// Kinds of lock: those that a task waits for, those whose code is on a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KindSet(u16);

impl KindSet {
    /// Adds a kind.
    pub fn insert(&mut self, kind: LockKind) {
        self.0 |= 1 << kind as u16;
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: KindSet) {
        self.0 |= other.0;
    }

    /// Whether that kind is among them.
    pub fn contains(self, kind: LockKind) -> bool {
        self.0 & 1 << kind as u16 != 0
    }

    /// Whether both have a kind in common.
    pub fn intersects(self, other: KindSet) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

//! What a kernel function does with locks: the rows of `symbols.tsv`.

use crate::model::{LockKind, Mode};

/// What a frame in this function means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Lock API: takes a lock, fast path first. Its self time is a cache miss, or the spin itself
    /// on kernels with inlined ticket locks.
    Acquire,
    /// Waits with the CPU.
    Spin,
    /// Waits asleep.
    Block,
    /// Does both: takes the role of the nearest definite frame called by it, spins as the leaf.
    SpinBlock,
    /// Lets a waiter go.
    Wake,
    /// Lock API: releases a lock.
    Release,
    /// A release that turns interrupts on: samples of an irqs-off section land here.
    IrqOn,
    /// Takes a lock or gives up at once.
    Trylock,
    /// Only work: take or release a lock of a subsystem. A site lies above it.
    Wrapper,
    /// Entry of an interrupt: frames called by it belong to the interrupt, not to the task.
    Interrupt,
    /// Scheduler code below a blocking frame: `schedule`, `schedule_preempt_disabled`.
    Schedule,
    /// perf and tracepoint code: the recorder's own cost.
    Recording,
}

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockFunction {
    /// Folded name.
    pub name: &'static str,
    /// Kind of lock; `None` where the name alone does not tell (`osq_lock`, `schedule`).
    pub kind: Option<LockKind>,
    /// What it does.
    pub role: Role,
    /// How the lock is asked for; `None` where the name does not tell.
    pub mode: Option<Mode>,
    /// First kernel that has it, as `3.0`.
    pub first: &'static str,
    /// Last kernel that has it; empty while it is there.
    pub last: &'static str,
    /// Kernel source file.
    pub source: &'static str,
}

impl LockFunction {
    /// Whether a frame in it is the lock's own code, which a site skips. Wrappers are not.
    pub fn is_lock_code(&self) -> bool {
        !matches!(self.role, Role::Wrapper | Role::Interrupt | Role::Schedule | Role::Recording)
    }
}

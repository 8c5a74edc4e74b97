//! What a kernel function does with locks: the words of `symbols.tsv`.
//!
//! In: nothing. Out: [`Role`] and [`LockFunction`], the facts on which attribution decides which
//! frame is a site, what a CPU sample was doing, and where the stack of an interrupt ends.

use crate::model::{Context, LockKind, Mode};

/// What a frame in this function means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Lock API: takes a lock, fast path first. Its self time is a cache miss, or the spin itself
    /// on kernels with inlined ticket locks. Blocks itself where the compiler inlined the slow path.
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
    /// A release that turns interrupts on: samples of an irqs-off section land here. Without a kind
    /// it is another place that turns them on, and no lock code.
    IrqOn,
    /// Takes a lock or gives up at once.
    Trylock,
    /// Takes or releases a lock for its caller, or hands it a locked object (`xfs_buf_lock`,
    /// `xfs_buf_read_map`): the site lies above it. Counts only directly above lock code.
    Wrapper,
    /// Entry of a hardware interrupt: what it calls belongs to the interrupt, not to the task.
    Interrupt,
    /// The softirq loop, on the way out of an interrupt or called by the task: what it calls
    /// belongs to softirqs.
    Softirq,
    /// Entry of a non-maskable interrupt.
    Nmi,
    /// The way out of an interrupt, still below its entry: what it calls (preemption, signals,
    /// task work) runs for the task again.
    InterruptReturn,
    /// Scheduler code below a blocking frame: `schedule`, `schedule_preempt_disabled`.
    Schedule,
    /// Waits for a futex: a lock of user space, which is told apart from locks of the kernel. No lock
    /// code: a kernel lock that is asked for in it has it as its site.
    Futex,
    /// perf, BPF and tracepoint code: the recorder's own cost.
    Recording,
}

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockFunction {
    /// Folded name, or a pattern: `asm_sysvec_*`.
    pub name: &'static str,
    /// Kind of lock; `None` where the name alone does not tell (`osq_lock`, `schedule`), and for
    /// wrappers of several kinds.
    pub kind: Option<LockKind>,
    /// What it does.
    pub role: Role,
    /// How the lock is asked for; `None` where the name does not tell.
    pub mode: Option<Mode>,
    /// First kernel that is known to have it, as `3.0` or `5.15-rt`.
    pub first: &'static str,
    /// Last kernel that is known to have it; empty while it is there.
    pub last: &'static str,
    /// Kernel source file.
    pub source: &'static str,
}

impl LockFunction {
    /// Whether a frame in it is the lock's own code, which a site skips. Wrappers are not.
    pub fn is_lock_code(&self) -> bool {
        match self.role {
            Role::Acquire | Role::Spin | Role::Block | Role::SpinBlock => true,
            Role::Wake | Role::Release | Role::Trylock => true,
            Role::IrqOn => self.kind.is_some(),
            Role::Wrapper | Role::Schedule | Role::Futex | Role::Recording => false,
            Role::Interrupt | Role::Softirq | Role::Nmi | Role::InterruptReturn => false,
        }
    }

    /// Whether interrupts that were off go on in it, so that a clock's sample of the time before lands
    /// here.
    pub fn turns_irqs_on(&self) -> bool {
        match self.role {
            Role::IrqOn | Role::Softirq | Role::InterruptReturn => true,
            Role::Schedule => self.ends_switch(),
            _ => false,
        }
    }

    /// Whether it is the end of a context switch, whose beginning is the previous task's.
    pub fn ends_switch(&self) -> bool {
        self.name == "finish_task_switch"
    }

    /// Whether it is where a task sleeps for a futex with priority inheritance: the rt-mutex that its
    /// frames speak of stands for a lock of user space. (`kernel/locking/rtmutex_api.c`: called by
    /// `kernel/futex/` only.)
    pub fn waits_for_pi_futex(&self) -> bool {
        self.name == "rt_mutex_wait_proxy_lock"
    }

    /// What the CPU does in the frames called by this one, when this one is where an interrupt or
    /// softirq begins: a stack is looked at only up to its innermost such frame.
    pub fn interrupt(&self) -> Option<Context> {
        match self.role {
            Role::Interrupt => Some(Context::Hardirq),
            Role::Softirq => Some(Context::Softirq),
            Role::Nmi => Some(Context::Nmi),
            _ => None,
        }
    }
}

impl Role {
    /// Whether a task that this frame had switched out waits for the lock.
    pub fn may_block(self) -> bool {
        matches!(self, Role::Block | Role::SpinBlock | Role::Acquire)
    }
}

//! What a task sleeps on, as the stack with which it left its CPU tells it.

use super::{FunctionId, LockType};

/// What a task sleeps on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SleepOn {
    /// A lock of the kernel: lock code that blocks called the scheduler itself.
    Lock(LockType),
    /// A lock of user space. The function is the first one above the futex code, through which the
    /// kernel was entered.
    Futex(Option<FunctionId>),
    /// Anything else: disks, logs, pipes, timers, children. The function is the first one that is not
    /// the scheduler's.
    Other(FunctionId),
    /// The stack was not recorded, or has no symbols.
    #[default]
    Unknown,
}

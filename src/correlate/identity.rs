//! Which lock a wait is for, as far as a recording tells.
//!
//! ```text
//!   contention events                       its address
//!   sleeps only, mprotect < down_write      no address: a path that takes no other lock of its kind, of
//!                                           which there is one in each process, or one in the kernel
//!   sleeps only, unlink < down_write        which one of many is not known: only that this task waits for it
//! ```
//!
//! In: addresses, what the catalogue says of call paths. Out: [`Identity`], by which hand-overs are kept.

use super::wakeups::LockId;
use crate::model::{LockAddr, LockKind, TaskId, Wait};

/// By what a lock is told from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Identity {
    /// Its address.
    At(LockId),
    /// It is the only lock of this name.
    Only(OnlyLock),
    /// It is the lock of this kind that this task sleeps for.
    SleptForBy(TaskId, LockKind),
}

/// A lock of which there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OnlyLock {
    /// In the catalogue.
    pub name: &'static str,
    /// Of which process it is; `None`: there is one in the kernel.
    pub pid: Option<i32>,
}

impl Identity {
    /// Of the lock that a contention event told the address of.
    pub fn at(wait: &Wait) -> Identity {
        Identity::At(LockId { addr: wait.lock, kind: wait.lock_type.kind })
    }

    /// Its address, where that is known.
    pub(super) fn addr(self) -> Option<LockAddr> {
        self.id().map(|id| id.addr)
    }

    /// The lock by its address, where that is known.
    pub(super) fn id(self) -> Option<LockId> {
        match self {
            Identity::At(id) => Some(id),
            Identity::Only(_) | Identity::SleptForBy(..) => None,
        }
    }
}

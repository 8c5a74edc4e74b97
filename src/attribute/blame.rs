//! What lock code woke somebody: is a waking the hand-over of a lock, and at which site?
//!
//! ```text
//!   try_to_wake_up         the waking itself, and what leads to it: no lock code of a sleeping lock
//!   wake_up_q
//!   rwsem_wake             release code, or the slow path of a waiter that passes the lock on
//!   up_write
//!   do_mprotect_pkey       site
//! ```
//!
//! In: the frames of the innermost context of a waker. Out: [`Release`]; `None` for every other waking.

use super::site::{self, Site};
use crate::correlate::KindSet;
use crate::kernel::{KernelFrame, LockFunction, Role};
use crate::model::{HandOverKind, LockKind, Mode};

/// A stack that hands a lock over when it wakes one of those who wait for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// Where: the first function above the lock code that is no wrapper.
    pub site: Site,
    /// Released, or passed on by another waiter.
    pub kind: HandOverKind,
    /// Kinds of the lock code: the lock that is waited for must be one of them.
    pub kinds: KindSet,
    /// How the lock was held that is released, where the code tells.
    pub mode: Option<Mode>,
}

impl Release {
    /// Nobody else can have held the lock: it is not one that readers share, or was not held so.
    pub fn is_exclusive(&self) -> bool {
        self.mode.is_some_and(|mode| mode != Mode::Read)
    }
}

/// The lock code of a lock in which tasks sleep. Wakings hold spinlocks of their own.
fn sleeping_lock(frame: &KernelFrame) -> Option<&'static LockFunction> {
    let own = frame.lock.filter(|row| row.is_lock_code())?;
    own.kind.filter(|kind| !matches!(kind, LockKind::Spinlock | LockKind::Rwlock)).map(|_| own)
}

/// What the frames, innermost first, would hand over.
pub(super) fn release(frames: &[KernelFrame]) -> Option<Release> {
    let at = frames.iter().position(|frame| sleeping_lock(frame).is_some())?;
    let (below, from) = frames.split_at(at);
    // Going to sleep in a slow path wakes workers (wq_worker_sleeping): no hand-over.
    if below.iter().any(|frame| frame.lock.is_some_and(|row| row.role == Role::Schedule)) {
        return None;
    }
    let mut kinds = KindSet::default();
    let mut kind = HandOverKind::Release;
    let mut mode = None;
    for row in from.iter().take_while(|frame| frame.lock_code).filter_map(sleeping_lock) {
        row.kind.into_iter().for_each(|kind| kinds.insert(kind));
        if !matches!(row.role, Role::Wake | Role::Release | Role::IrqOn) {
            kind = HandOverKind::PassOn;
        }
        // rwsem_wake does not tell; the up_read or up_write that calls it does.
        mode = mode.or(row.mode);
    }
    // Who passes a lock on was let in itself: how it was held until then is not told by that.
    let mode = mode.filter(|_| kind == HandOverKind::Release);
    Some(Release { site: site::find(from), kind, kinds, mode })
}

//! What lock code does at the innermost end of a CPU sample's stack.
//!
//! The innermost frame of lock code decides. One that both spins and sleeps does what the frames that
//! it called say: it sleeps when the scheduler is among them and spins otherwise. A frame whose name
//! does not tell the kind of lock (`osq_lock`) takes it from its callers.

use crate::correlate::KindSet;
use crate::kernel::{KernelFrame, LockFunction, Role};
use crate::model::{LockKind, LockType, Mode};

/// What a CPU does in lock code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathRole {
    /// Takes a lock that is free, or nearly.
    Acquire,
    /// Waits for the lock.
    Spin,
    /// Waits for the spinlock inside a sleeping lock.
    WaitLock,
    /// Goes to sleep, or comes back.
    Block,
    /// Wakes a waiter.
    Wake,
    /// Releases a lock.
    Release,
    /// Turns interrupts on after a release: what happened meanwhile shows up here.
    IrqOff,
    /// Is being recorded: frames of perf or a tracepoint on top of lock code.
    Recording,
}

/// Role, kind and mode of the innermost lock frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockPath {
    /// What it does.
    pub role: PathRole,
    /// With which kind of lock.
    pub lock_type: LockType,
    /// Kinds of all the lock code on the stack: a spinlock spun for inside the slow path of an rwsem
    /// has both.
    pub kinds: KindSet,
}

impl LockPath {
    /// Whether this is waiting with the CPU.
    pub fn waits(self) -> bool {
        matches!(self.role, PathRole::Spin | PathRole::WaitLock)
    }
}

fn lock_code(frame: &KernelFrame) -> Option<&'static LockFunction> {
    frame.lock.filter(|row| row.is_lock_code())
}

/// Index of the innermost frame of lock code that the table knows.
pub(super) fn innermost(frames: &[KernelFrame]) -> Option<usize> {
    frames.iter().position(|frame| lock_code(frame).is_some())
}

/// The lock path of frames of one context, innermost first, whose lock code begins at index `at`.
pub(super) fn at(frames: &[KernelFrame], at: usize) -> Option<LockPath> {
    let (below, from) = frames.split_at(at);
    let callers = || from.iter().filter_map(lock_code);
    let innermost = callers().next()?;
    let kind = callers().find_map(|row| row.kind).unwrap_or(LockKind::Unknown);
    let same_kind = |row: &&LockFunction| row.kind == Some(kind);
    let mode = callers().filter(same_kind).find_map(|row| row.mode).unwrap_or(Mode::Exclusive);
    let calls = |role| below.iter().any(|frame| frame.lock.is_some_and(|row| row.role == role));
    let role = if calls(Role::Recording) {
        PathRole::Recording
    } else {
        path_role(innermost.role, calls(Role::Schedule), is_wait_lock(kind, callers()))
    };
    let mut kinds = KindSet::default();
    callers().filter_map(|row| row.kind).for_each(|kind| kinds.insert(kind));
    Some(LockPath { role, lock_type: LockType::new(kind, mode), kinds })
}

/// A spinlock asked for by the slow path of a sleeping lock.
fn is_wait_lock<'a>(kind: LockKind, callers: impl Iterator<Item = &'a LockFunction>) -> bool {
    let is_slow = |role| matches!(role, Role::Block | Role::SpinBlock | Role::Wake);
    kind == LockKind::Spinlock
        && callers.into_iter().any(|row| row.kind != Some(LockKind::Spinlock) && is_slow(row.role))
}

fn path_role(innermost: Role, sleeps: bool, wait_lock: bool) -> PathRole {
    match innermost {
        Role::Spin | Role::Acquire if wait_lock => PathRole::WaitLock,
        Role::Spin => PathRole::Spin,
        Role::SpinBlock if !sleeps => PathRole::Spin,
        Role::Block | Role::SpinBlock => PathRole::Block,
        Role::Wake => PathRole::Wake,
        Role::IrqOn => PathRole::IrqOff,
        Role::Release => PathRole::Release,
        _ => PathRole::Acquire,
    }
}

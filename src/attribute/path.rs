//! What lock code does at the innermost end of a CPU sample's stack.
//!
//! The innermost frame of lock code decides. One that both spins and sleeps does what the frames that
//! it called say: it sleeps when the scheduler is among them and spins otherwise. A frame whose name
//! does not tell the kind of lock (`osq_lock`) takes it from its callers.
//!
//! PREEMPT_RT builds rwsems and rwlocks from an rt-mutex; the lock that is waited for is the outer one:
//!
//! ```text
//!   rtmutex code < rwbase_write_lock < down_write < caller       rwsem:W (rt)   5.15 and later
//!   rtmutex code < rwbase_read_lock < rt_read_lock < caller      rwlock-rt:R
//!   rtmutex code < __down_write_common < down_write < caller     rwsem:W (rt)   before
//! ```

use crate::correlate::KindSet;
use crate::kernel::{KernelFrame, LockFunction, Role};
use crate::model::{FunctionId, LockKind, LockType, Mode};

/// What a CPU does in lock code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathRole {
    /// Takes a lock that is free, or nearly.
    Acquire,
    /// Waits for the lock.
    Spin,
    /// Waits for the spinlock inside a sleeping lock; by skid also what is done under it.
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
    /// The innermost frame of lock code.
    pub function: FunctionId,
    /// The sleeping lock whose slow path asks for the spinlock inside it, without a mode.
    pub within: Option<LockType>,
}

/// On what CPU time goes: the rows of `report --by path`, the same for every kernel era.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CpuPath {
    /// No lock code: what is left to do the work.
    Work,
    /// Lock code. The type is without a mode where kernels differ in whether the stack tells it.
    Lock(PathRole, LockType),
    /// The end of a context switch, begun by the task before: seen by skid only.
    ContextSwitch,
    /// perf and tracepoints.
    Recording,
    /// Without symbols, or not kept apart because a table was full.
    Unknown,
}

impl CpuPath {
    /// The type of lock whose code it is.
    pub fn lock_type(self) -> Option<LockType> {
        match self {
            CpuPath::Lock(_, lock_type) => Some(lock_type),
            _ => None,
        }
    }

    /// The path of a section that ended where this one unlocked: a slow path that would spin or sleep
    /// was under its `wait_lock` instead.
    pub fn under_wait_lock(self) -> CpuPath {
        match self {
            CpuPath::Lock(PathRole::Spin | PathRole::Block, lock_type) => {
                let lock_type = LockType { mode: Mode::Exclusive, ..lock_type };
                CpuPath::Lock(PathRole::WaitLock, lock_type)
            }
            other => other,
        }
    }
}

impl LockPath {
    /// Where it counts: a `wait_lock` with the lock that it is in. Before 4.20 `rwsem_wake` had no caller that
    /// told readers from writers, and 6.1 jumps there from `up_write`: the mode of whom it wakes for is no
    /// part of a path.
    pub fn cpu_path(self) -> CpuPath {
        let LockPath { role, lock_type, .. } = self;
        let exclusive = LockType { mode: Mode::Exclusive, ..lock_type };
        match role {
            PathRole::Recording => CpuPath::Recording,
            PathRole::Wake => CpuPath::Lock(role, exclusive),
            PathRole::WaitLock => CpuPath::Lock(role, self.within.unwrap_or(exclusive)),
            _ => CpuPath::Lock(role, lock_type),
        }
    }

    /// Whether this is waiting with the CPU.
    pub fn waits(self) -> bool {
        matches!(self.role, PathRole::Spin | PathRole::WaitLock)
    }
}

fn lock_code(frame: &KernelFrame) -> Option<&'static LockFunction> {
    frame.lock.filter(|row| row.is_lock_code())
}

/// Whether perf or a tracepoint is among the frames.
pub(super) fn is_recorded(frames: &[KernelFrame]) -> bool {
    frames.iter().any(|frame| frame.lock.is_some_and(|row| row.role == Role::Recording))
}

/// Index of the innermost frame of lock code that the table knows.
pub(super) fn innermost(frames: &[KernelFrame]) -> Option<usize> {
    frames.iter().position(|frame| lock_code(frame).is_some())
}

/// The lock path of frames of one context, innermost first, whose lock code begins at index `at`.
/// `rt`: of a PREEMPT_RT kernel.
pub(super) fn at(frames: &[KernelFrame], at: usize, rt: bool) -> Option<LockPath> {
    let (below, from) = frames.split_at(at);
    let callers = || from.iter().filter_map(lock_code);
    let innermost = callers().next()?;
    let function = from.iter().find(|frame| lock_code(frame).is_some())?.function?;
    let kind = callers().find_map(|row| row.kind).unwrap_or(LockKind::Unknown);
    let kind = if rt { outer_of_rt(kind, from) } else { kind };
    // `rwbase_*` has the mode of the rwsem that it is the slow path of.
    let of_kind = |row: &&LockFunction| {
        row.kind == Some(kind) || (kind == LockKind::Rwsem && row.kind == Some(LockKind::RwlockRt))
    };
    let mode = callers().filter(of_kind).find_map(|row| row.mode).unwrap_or(Mode::Exclusive);
    let calls = |role| below.iter().any(|frame| frame.lock.is_some_and(|row| row.role == role));
    let of_rt = |kind| {
        let kind = if rt { outer_of_rt(kind, from) } else { kind };
        LockType { kind, mode: Mode::Exclusive, rt: rt && kind == LockKind::Rwsem }
    };
    let within = around_wait_lock(kind, callers()).map(of_rt);
    let role = if calls(Role::Recording) {
        PathRole::Recording
    } else {
        path_role(innermost.role, calls(Role::Schedule), within.is_some())
    };
    let mut kinds = KindSet::default();
    callers().filter_map(|row| row.kind).for_each(|kind| kinds.insert(kind));
    if kind != LockKind::Unknown {
        kinds.insert(kind);
    }
    let lock_type = LockType { kind, mode, rt: rt && kind == LockKind::Rwsem };
    Some(LockPath { role, lock_type, kinds, function, within })
}

/// The lock that rt-mutex code of PREEMPT_RT at the innermost end is a part of: `kind`, or what the
/// lock code that called it says. Of the API functions one may be missing (a tail call), so that
/// `rwbase_*` alone is an rwsem's: `rt_read_*` and `rt_write_*` are never missing.
fn outer_of_rt(kind: LockKind, frames: &[KernelFrame]) -> LockKind {
    if !matches!(kind, LockKind::RtMutex | LockKind::RwlockRt) {
        return kind;
    }
    let own = || frames.iter().map_while(lock_code);
    let of = |kind| own().any(|row| row.kind == Some(kind));
    let api = ["rt_read_", "rt_write_"];
    let is_rwlock = || own().any(|row| api.iter().any(|name| row.name.starts_with(name)));
    match of(LockKind::RwlockRt) {
        true if is_rwlock() => LockKind::RwlockRt,
        true => LockKind::Rwsem,
        false if of(LockKind::Rwsem) => LockKind::Rwsem,
        false => kind,
    }
}

/// The kind of the sleeping lock whose slow path asks for this spinlock.
fn around_wait_lock<'a>(
    kind: LockKind,
    mut callers: impl Iterator<Item = &'a LockFunction>,
) -> Option<LockKind> {
    let is_slow = |role| matches!(role, Role::Block | Role::SpinBlock | Role::Wake);
    let sleeps = |row: &&LockFunction| row.kind != Some(LockKind::Spinlock) && is_slow(row.role);
    let around = callers.find(sleeps).filter(|_| kind == LockKind::Spinlock)?;
    Some(around.kind.unwrap_or(LockKind::Unknown))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;

    /// The type that a CPU waits for in these functions, innermost first, of a PREEMPT_RT kernel.
    fn type_of(stack: &[&str]) -> String {
        let names = stack.iter().chain(&["do_mprotect_pkey", "rt_spin_lock"]).zip(0u64..);
        let line = |(name, at): (&&str, u64)| format!("{:x} T {name}\n", 0x1000 + at * 0x100);
        let kernel = Kernel::from_kallsyms(names.map(line).collect::<String>().as_bytes());
        assert!(kernel.preempt_rt());
        let frames = (0..=stack.len() as u64).map(|at| kernel.frame(0x1010 + at * 0x100));
        let frames: Vec<KernelFrame> = frames.collect();
        at(&frames, 0, true).expect("lock code").lock_type.to_string()
    }

    #[test]
    fn an_rt_mutex_inside_an_rwsem_or_rwlock_of_preempt_rt_is_that_lock() {
        for (stack, wanted) in [
            (&["rt_mutex_slowlock", "rwbase_write_lock", "down_write"][..], "rwsem:W (rt)"),
            (&["rt_mutex_slowlock", "__down_write_common", "down_write"], "rwsem:W (rt)"),
            (&["rwbase_write_lock"], "rwsem:W (rt)"),
            (&["__rwbase_read_lock"], "rwsem:R (rt)"),
            (&["down_read"], "rwsem:R (rt)"),
            (&["rtlock_slowlock_locked", "__rwbase_read_lock", "rt_read_lock"], "rwlock-rt:R"),
            (&["rtlock_slowlock_locked", "rt_write_lock"], "rwlock-rt:W"),
            (&["__rwbase_write_unlock", "rt_write_unlock"], "rwlock-rt:W"),
            (&["rtlock_slowlock_locked"], "rt-mutex"),
            (&["rt_mutex_slowlock", "mutex_lock"], "rt-mutex"),
            (&["_raw_spin_lock_irq", "__rwbase_read_lock"], "spinlock"),
        ] {
            assert_eq!(type_of(stack), wanted, "{stack:?}");
        }
    }
}

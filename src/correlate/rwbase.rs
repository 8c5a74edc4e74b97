//! PREEMPT_RT builds rw locks from an rt-mutex; their waits are put together here.
//!
//! ```text
//! struct rwbase_rt { atomic_t readers; struct rt_mutex_base rtmutex; }     rtmutex at offset 8
//!
//!   reader  begin(A, RT|READ) { begin(A+8, RT) end(A+8) } end(A)           nested: one wait
//!   writer  begin(A+8, RT) end(A+8) [begin(A, RT|WRITE) end(A)]            in turn: one wait
//! ```
//!
//! Source: `include/linux/rwbase_rt.h`, `kernel/locking/rwbase_rt.c`.

use hashbrown::HashMap;

use crate::kernel::Kernel;
use crate::model::{LockAddr, LockFlags, LockKind, LockType, Mode, StackId};
use crate::stacks::Stacks;

const RTMUTEX_OFFSET: u64 = 8;

/// What a stack says of an RT wait, looked up once for each distinct stack.
#[derive(Clone, Debug, Default)]
pub(super) struct Rwbase {
    known: HashMap<StackId, Option<LockType>>,
}

impl Rwbase {
    /// The rw lock that an RT wait is for: its address and type. `None` for waits off PREEMPT_RT and
    /// for rt-mutexes of their own.
    pub(super) fn of(
        &mut self,
        addr: LockAddr,
        flags: LockFlags,
        stack: StackId,
        books: (&Kernel, &Stacks),
    ) -> Option<(LockAddr, LockType)> {
        if !flags.has(LockFlags::RT) {
            return None;
        }
        let (kernel, stacks) = books;
        let lock_type =
            (*self.known.entry(stack).or_insert_with(|| classify(kernel, stacks.kernel(stack))))?;
        let outer = flags.0 & (LockFlags::READ | LockFlags::WRITE) != 0;
        let lock = if outer { addr } else { LockAddr(addr.0.wrapping_sub(RTMUTEX_OFFSET)) };
        Some((lock, lock_type))
    }
}

/// Reads the mode off the rwbase function and the kind off the API function that called it.
fn classify(kernel: &Kernel, frames: &[u64]) -> Option<LockType> {
    let mut names = frames.iter().filter_map(|&ip| kernel.function(ip)).map(|f| kernel.name(f));
    let mode = names.by_ref().find_map(|name| match name.trim_start_matches('_') {
        "rwbase_read_lock" => Some(Mode::Read),
        "rwbase_write_lock" => Some(Mode::Write),
        _ => None,
    })?;
    let is_rwlock = names
        .take(2)
        .any(|name| name.starts_with("rt_read_lock") || name.starts_with("rt_write_lock"));
    let kind = if is_rwlock { LockKind::RwlockRt } else { LockKind::Rwsem };
    Some(LockType { kind, mode, rt: kind == LockKind::Rwsem })
}

//! The site of a wait: the first frame that is neither lock code nor a wrapper.
//!
//! ```text
//!   rwsem_down_write_slowpath   lock code: by the table, or by .sched.text/.spinlock.text
//!   down_write_killable         lock code
//!   xfs_ilock                   wrapper: shown in front, `xfs_ilock < xfs_file_buffered_write`
//!   xfs_file_buffered_write     site
//! ```
//!
//! Found by symbol, never by counting frames: compilers inline and tail-call lock code differently in
//! every kernel.

use crate::kernel::{Kernel, KernelFrame, Role};
use crate::model::{Context, FunctionId};

/// Where a lock is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// The site's function; `None` when no frame has a symbol or all are lock code.
    pub caller: Option<FunctionId>,
    /// Wrappers between lock code and the site, innermost first.
    pub wrappers: Box<[FunctionId]>,
}

/// How many of the frames, innermost first, belong to the innermost context, and which it is.
///
/// Frames above an interrupt entry belong to the interrupt; what the way out of an interrupt calls
/// runs for the task again.
pub fn innermost_context(kernel: &Kernel, frames: &[u64]) -> (usize, Context) {
    let border = |(index, &ip): (usize, &u64)| {
        let row = kernel.frame(ip).lock?;
        let is_return = row.role == Role::InterruptReturn;
        let context = row.interrupt().or(is_return.then_some(Context::Task))?;
        Some((index, context))
    };
    frames.iter().enumerate().find_map(border).unwrap_or((frames.len(), Context::Task))
}

/// Finds the site in the frames of one context, innermost first.
pub(super) fn find(frames: &[KernelFrame]) -> Site {
    let mut wrappers = Vec::new();
    let mut in_lock_code = false;
    for frame in frames {
        let Some(function) = frame.function else { break };
        match frame.lock.map(|row| row.role) {
            Some(Role::Wrapper) => wrappers.push(function),
            Some(Role::Recording) => {}
            // Called by lock code that sleeps; calling it (for a run-queue lock), it is the site.
            Some(Role::Schedule) if !in_lock_code => {}
            _ if frame.lock_code => in_lock_code = true,
            _ => return Site { caller: Some(function), wrappers: wrappers.into() },
        }
    }
    // A wrapper with nothing above it is the best there is.
    let caller = wrappers.pop();
    Site { caller, wrappers: wrappers.into() }
}

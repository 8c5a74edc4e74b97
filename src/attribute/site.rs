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

use crate::kernel::{Kernel, Role};
use crate::model::FunctionId;

/// Where a lock is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// The site's function; `None` when no frame has a symbol or all are lock code.
    pub caller: Option<FunctionId>,
    /// Wrappers between lock code and the site, innermost first.
    pub wrappers: Box<[FunctionId]>,
    /// Index of the site's frame in the stack.
    pub frame: usize,
}

/// Index of the innermost frame that is the entry of an interrupt: it and all frames that it
/// interrupted are of no interest to the innermost context.
pub(super) fn interrupt_entry(kernel: &Kernel, frames: &[u64]) -> Option<usize> {
    frames.iter().position(|&ip| role(kernel, ip) == Some(Role::Interrupt))
}

pub(super) fn role(kernel: &Kernel, ip: u64) -> Option<Role> {
    let function = kernel.function(ip)?;
    kernel.lock_function(function).map(|row| row.role)
}

/// Finds the site in the frames of one context, innermost first.
pub(super) fn find(kernel: &Kernel, frames: &[u64]) -> Site {
    let mut wrappers = Vec::new();
    for (frame, &ip) in frames.iter().enumerate() {
        let Some(function) = kernel.function(ip) else { break };
        match role(kernel, ip) {
            Some(Role::Wrapper) => wrappers.push(function),
            Some(_) => {}
            None if kernel.in_lock_text(ip) => {}
            None => return Site { caller: Some(function), wrappers: wrappers.into(), frame },
        }
    }
    // A wrapper with nothing above it is the best there is.
    let caller = wrappers.pop();
    Site { caller, wrappers: wrappers.into(), frame: frames.len().saturating_sub(1) }
}

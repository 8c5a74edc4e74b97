//! The kernel of unit tests: a closure of the test answers every [`Syscall`] of its thread.
//!
//! An `Open` must be answered by the number of a real fd, because it is closed when its owner is
//! dropped: [`any_fd`] makes one.

use std::cell::RefCell;
use std::fs::File;
use std::os::fd::IntoRawFd;

use super::sys::{SysResult, Syscall};

type Kernel = Box<dyn FnMut(Syscall<'_>) -> SysResult>;

thread_local! {
    static KERNEL: RefCell<Option<Kernel>> = const { RefCell::new(None) };
}

/// Lets `kernel` answer the calls of this thread from now on.
pub(crate) fn install(kernel: impl FnMut(Syscall<'_>) -> SysResult + 'static) {
    KERNEL.with_borrow_mut(|installed| *installed = Some(Box::new(kernel)));
}

/// What the test's kernel says; one that was never installed knows no call.
pub(crate) fn answer(call: Syscall<'_>) -> SysResult {
    KERNEL
        .with_borrow_mut(|kernel| kernel.as_mut().map_or(Err(libc::ENOSYS), |kernel| kernel(call)))
}

/// A new fd that may be closed.
pub(crate) fn any_fd() -> usize {
    File::open("/dev/null").unwrap().into_raw_fd() as usize
}

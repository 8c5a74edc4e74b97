//! The one gate to the kernel: every call on a perf event goes through [`syscall`].
//!
//! In: a [`Syscall`], its arguments as safe types. Out: what the kernel returned, or its errno. In
//! unit tests of this crate the gate leads to a closure of the test (`sys_fake.rs`), so that rings
//! and sessions are tested without a kernel. Constants and ioctl numbers come from
//! perf-event-open-sys, generated from the kernel's own headers.

use std::ffi::CStr;
use std::fmt;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::{self, NonNull};

use perf_event_open_sys::bindings::{PERF_FLAG_FD_CLOEXEC, PERF_FLAG_PID_CGROUP, perf_event_attr};
use perf_event_open_sys::{self as perf, ioctls};
use rustix::mm::{MapFlags, ProtFlags};

use super::attr::Attr;

/// A call that the kernel refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct SyscallError {
    /// The call with what matters of its arguments: `perf_event_open(lock:contention_begin) on CPU 0`.
    pub call: String,
    /// The kernel's answer, an `E...` constant of libc.
    pub errno: i32,
}

impl SyscallError {
    /// Whether rights were missing.
    pub fn is_denied(&self) -> bool {
        matches!(self.errno, libc::EACCES | libc::EPERM)
    }
}

impl fmt::Display for SyscallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed: {}", self.call, io::Error::from_raw_os_error(self.errno))
    }
}

/// What is asked of a perf event, one variant a call.
pub(crate) enum Syscall<'a> {
    /// `perf_event_open`, close-on-exec, without a group. With `cgroup`, `pid` is the fd of a cgroup's
    /// directory. Gives the new fd.
    Open { attr: &'a Attr, pid: i32, cpu: i32, cgroup: bool },
    /// Starts counting, children included.
    Enable { fd: BorrowedFd<'a> },
    /// Stops counting, children included.
    Disable { fd: BorrowedFd<'a> },
    /// The id that records of this event carry.
    Id { fd: BorrowedFd<'a>, id: &'a mut u64 },
    /// Lets the event write into the ring of `into`.
    SetOutput { fd: BorrowedFd<'a>, into: BorrowedFd<'a> },
    /// Sets a tracepoint's filter.
    SetFilter { fd: BorrowedFd<'a>, filter: &'a CStr },
    /// Reads the counts, as `attr.read_format` says. Gives the number of bytes.
    Read { fd: BorrowedFd<'a>, into: &'a mut [u8] },
    /// Maps the event's ring, readable and writable. Gives the address.
    Map { fd: BorrowedFd<'a>, bytes: usize },
    /// Ends a mapping.
    Unmap { mapping: &'a Mapping },
}

/// What the kernel returned, or its errno.
pub(crate) type SysResult = Result<usize, i32>;

/// Makes the call.
pub(crate) fn syscall(call: Syscall<'_>) -> SysResult {
    #[cfg(test)]
    return super::sys_fake::answer(call);
    #[cfg(not(test))]
    ask_kernel(call)
}

#[cfg_attr(test, allow(dead_code))]
fn ask_kernel(call: Syscall<'_>) -> SysResult {
    match call {
        Syscall::Open { attr, pid, cpu, cgroup } => open(attr, pid, cpu, cgroup),
        Syscall::Enable { fd } => {
            // SAFETY: the ioctl reads no memory; the fd is open as long as it is borrowed.
            returned(unsafe { ioctls::ENABLE(fd.as_raw_fd(), 0) })
        }
        Syscall::Disable { fd } => {
            // SAFETY: the ioctl reads no memory; the fd is open as long as it is borrowed.
            returned(unsafe { ioctls::DISABLE(fd.as_raw_fd(), 0) })
        }
        Syscall::Id { fd, id } => {
            // SAFETY: the kernel writes 8 bytes to `id`, which is exclusively borrowed.
            returned(unsafe { ioctls::ID(fd.as_raw_fd(), id) })
        }
        Syscall::SetOutput { fd, into } => {
            // SAFETY: the ioctl reads no memory; both fds are open as long as they are borrowed.
            returned(unsafe { ioctls::SET_OUTPUT(fd.as_raw_fd(), into.as_raw_fd()) })
        }
        Syscall::SetFilter { fd, filter } => {
            // SAFETY: the kernel copies the string up to its NUL and writes nothing back
            // (`strndup_user` in kernel/events/core.c), so a shared borrow is enough.
            returned(unsafe { ioctls::SET_FILTER(fd.as_raw_fd(), filter.as_ptr().cast_mut()) })
        }
        Syscall::Read { fd, into } => rustix::io::read(fd, into).map_err(|e| e.raw_os_error()),
        Syscall::Map { fd, bytes } => map(fd, bytes),
        Syscall::Unmap { mapping } => unmap(mapping),
    }
}

/// 64-bit words that hold a `perf_event_attr` of the headers this was built with.
const ATTR_WORDS: usize = size_of::<perf_event_attr>().div_ceil(8);

fn open(attr: &Attr, pid: i32, cpu: i32, cgroup: bool) -> SysResult {
    // Words rather than bytes: the struct wants the alignment of u64. What lies behind
    // ATTR_SIZE stays zero and is not read, because `attr.size` says so.
    let mut words = [0_u64; ATTR_WORDS];
    for (word, chunk) in words.iter_mut().zip(attr.to_bytes().as_chunks::<8>().0) {
        *word = u64::from_ne_bytes(*chunk);
    }
    let attr: *mut perf_event_attr = words.as_mut_ptr().cast();
    let of_cgroup = if cgroup { PERF_FLAG_PID_CGROUP } else { 0 };
    let flags = libc::c_ulong::from(PERF_FLAG_FD_CLOEXEC | of_cgroup);
    // SAFETY: `attr` points to as many initialised, aligned bytes as a perf_event_attr has; the
    // kernel reads `size` of them and may write `size` back. The call touches no other memory.
    returned(unsafe { perf::perf_event_open(attr, pid, cpu, -1, flags) })
}

fn map(fd: BorrowedFd<'_>, bytes: usize) -> SysResult {
    let prot = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: no address is asked for, so no existing mapping is replaced; the new one belongs to
    // the caller alone, who wraps it into a `Mapping`.
    let at = unsafe { rustix::mm::mmap(ptr::null_mut(), bytes, prot, MapFlags::SHARED, fd, 0) };
    at.map(|at| at as usize).map_err(|e| e.raw_os_error())
}

fn unmap(mapping: &Mapping) -> SysResult {
    // SAFETY: a `Mapping` is made by a successful `Map` only and asks for this in its `drop` only;
    // borrows of its bytes cannot outlive it.
    let done = unsafe { rustix::mm::munmap(mapping.at.as_ptr().cast(), mapping.bytes) };
    done.map(|()| 0).map_err(|e| e.raw_os_error())
}

fn returned(value: libc::c_int) -> SysResult {
    usize::try_from(value).map_err(|_| io::Error::last_os_error().raw_os_error().unwrap_or(0))
}

/// Opens an event; the fd is close-on-exec.
pub(crate) fn open_event(attr: &Attr, pid: i32, cpu: i32, cgroup: bool) -> Result<OwnedFd, i32> {
    let fd = syscall(Syscall::Open { attr, pid, cpu, cgroup })?;
    // SAFETY: the kernel has just made this fd for us, and nobody else knows its number.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Takes over an fd that was inherited from the process that started this one.
///
/// The number comes from a command line; it must be above the standard three and open. This is
/// meant for the first lines of `main` in a helper process, where nothing else owns an fd.
pub(crate) fn take_inherited(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: F_GETFD takes no pointer; any number is allowed, EBADF says that it is no open fd.
    let open = fd > libc::STDERR_FILENO && unsafe { libc::fcntl(fd, libc::F_GETFD) } >= 0;
    if !open {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: the fd is open, as was just seen, and belongs to whom its number was given to.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A ring's memory, unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    at: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory belongs to the process, not to the thread that mapped it; nothing in it is
// bound to a thread.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps `bytes` of the event's ring: one page of state, then a power of two of data pages.
    pub(crate) fn new(fd: BorrowedFd<'_>, bytes: usize) -> Result<Mapping, i32> {
        let at = syscall(Syscall::Map { fd, bytes })?;
        let at = NonNull::new(ptr::with_exposed_provenance_mut(at)).ok_or(libc::EFAULT)?;
        Ok(Mapping { at, bytes })
    }

    /// The first byte.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.at
    }

    /// Bytes mapped.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // An munmap of what mmap gave cannot fail; if it did, there is nothing to be done here.
        let _ = syscall(Syscall::Unmap { mapping: self });
    }
}

//! The kernel calls that the workloads make, and the only `unsafe` of this crate.
//!
//! In: lengths in bytes, inside mappings that this module made itself. Out: `io::Result`.
//! A [`Mapping`] is address space to change and walk, never memory to compute with: nobody outside
//! this file sees its address, so taking its access rights away cannot pull memory from under
//! anybody.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::time::Duration;

/// What may be done with the pages of a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    None,
    Read,
}

impl Access {
    fn prot(self) -> libc::c_int {
        match self {
            Access::None => libc::PROT_NONE,
            Access::Read => libc::PROT_READ,
        }
    }
}

/// Private anonymous address space, without accounting. Unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<libc::c_void>,
    len: usize,
}

// SAFETY: the address is only ever handed to the kernel or read as a byte, from any thread; the
// mapping belongs to nobody else and no state hangs on the thread that made it.
unsafe impl Send for Mapping {}

impl Mapping {
    /// `len` bytes, readable and writable. mmap(2).
    pub(crate) fn new(len: usize) -> io::Result<Mapping> {
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: without MAP_FIXED the kernel chooses an address where nothing is mapped.
        let start = unsafe { libc::mmap(ptr::null_mut(), len, prot, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start =
            NonNull::new(start).ok_or_else(|| io::Error::other("mmap returned address 0"))?;
        Ok(Mapping { start, len })
    }

    /// Changes the access to a part. mprotect(2): the mmap lock is held for write all along.
    pub(crate) fn protect(&self, part: Part, access: Access) -> io::Result<()> {
        let addr = self.address(part)?;
        // SAFETY: the part lies inside this mapping, to which no reference exists.
        check(unsafe { libc::mprotect(addr, part.len, access.prot()) })
    }

    /// Gives the kernel advice on a part. madvise(2). Only advice that keeps the mapping mapped is
    /// used here.
    pub(crate) fn advise(&self, part: Part, advice: Advice) -> io::Result<()> {
        let addr = self.address(part)?;
        // SAFETY: the part lies inside this mapping, to which no reference exists, and none of
        // the advices changes what is mapped where.
        check(unsafe { libc::madvise(addr, part.len, advice.number()) })
    }

    /// Which pages of a part are resident: one byte a page into `pages`. mincore(2): the mmap lock
    /// is held for read, for at most 4,096 pages (one page of answers) at a time.
    pub(crate) fn residency(&self, part: Part, pages: &mut [u8]) -> io::Result<()> {
        let addr = self.address(part)?;
        if pages.len() < part.len.div_ceil(page_size()) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: the answer has one byte a page of the part, and `pages` has room for them.
        check(unsafe { libc::mincore(addr, part.len, pages.as_mut_ptr()) })
    }

    /// Reads one byte of each page of a part, so that every page has a page table entry.
    /// The part must be readable.
    pub(crate) fn touch(&self, part: Part) -> io::Result<()> {
        let addr = self.address(part)?.cast::<u8>();
        for offset in (0..part.len).step_by(page_size()) {
            // SAFETY: `offset` is below the length of the part, and the part is in this mapping.
            let byte = unsafe { addr.add(offset) };
            // SAFETY: callers touch readable parts only, before any other thread knows the mapping.
            unsafe { byte.read_volatile() };
        }
        Ok(())
    }

    fn address(&self, part: Part) -> io::Result<*mut libc::c_void> {
        let inside = part.offset.checked_add(part.len).is_some_and(|end| end <= self.len);
        if !inside {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: the offset is at most the length of the mapping.
        Ok(unsafe { self.start.as_ptr().byte_add(part.offset) })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is our own, and no reference into it exists.
        unsafe { libc::munmap(self.start.as_ptr(), self.len) };
    }
}

/// A range of bytes of a [`Mapping`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) offset: usize,
    pub(crate) len: usize,
}

/// Advice for madvise(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Advice {
    /// No huge pages: the cost of a walk is then proportional to its length.
    SmallPages,
    /// Fault all pages in for reading (Linux 5.14): the mmap lock is held for read all along.
    PopulateRead,
    /// Mark all pages old (Linux 5.4): the mmap lock is held for read all along.
    Cold,
}

impl Advice {
    fn number(self) -> libc::c_int {
        match self {
            Advice::SmallPages => libc::MADV_NOHUGEPAGE,
            Advice::PopulateRead => libc::MADV_POPULATE_READ,
            Advice::Cold => libc::MADV_COLD,
        }
    }
}

/// Bytes of a page. sysconf(3).
pub(crate) fn page_size() -> usize {
    // SAFETY: sysconf only reads.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(size).unwrap_or(4096)
}

/// CPU time that the calling thread has used. clock_gettime(2), CLOCK_THREAD_CPUTIME_ID.
pub(crate) fn thread_cpu_time() -> io::Result<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a timespec of our own, to be written.
    check(unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) })?;
    let (Ok(seconds), Ok(nanos)) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec)) else {
        return Err(io::Error::other("the thread's CPU time is negative"));
    };
    Ok(Duration::new(seconds, nanos))
}

/// How often a thread left its CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Switches {
    /// Because it slept.
    pub(crate) voluntary: u64,
    /// Because another thread got the CPU.
    pub(crate) involuntary: u64,
}

/// Context switches of the calling thread. getrusage(2), RUSAGE_THREAD.
pub(crate) fn thread_switches() -> io::Result<Switches> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is room for an rusage, to be written.
    check(unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) })?;
    // SAFETY: an rusage is numbers only, so all zeros are one too, and the call has filled it.
    let usage = unsafe { usage.assume_init() };
    Ok(Switches {
        voluntary: u64::try_from(usage.ru_nvcsw).unwrap_or(0),
        involuntary: u64::try_from(usage.ru_nivcsw).unwrap_or(0),
    })
}

/// Makes an empty regular file without opening it, so that no file descriptor table is involved.
/// mknod(2).
pub(crate) fn make_file(path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: `path` is a string that ends in NUL and outlives the call.
    check(unsafe { libc::mknod(path.as_ptr(), libc::S_IFREG | 0o600, 0) })
}

fn check(returned: libc::c_int) -> io::Result<()> {
    if returned == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

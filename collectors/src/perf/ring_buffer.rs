//! A ring: memory shared with the kernel, into which it writes records and from which we take them.
//!
//! ```text
//! | state page: ... data_head @1024, data_tail @1032 ... | 2^n data pages: records, wrapping |
//!
//!   data:   ......[tail ========== records ========== head]......
//!            free                                          free
//! ```
//!
//! Both positions only grow; their place in the data is the remainder. The kernel moves the head
//! after a record is whole and never writes beyond the tail plus the size: what does not fit is
//! lost and announced by a LOST record later. Source: `kernel/events/ring_buffer.c`.

use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{mem, slice};

use perf_event_open_sys::bindings::perf_event_mmap_page;

use super::sys::Mapping;

/// Where the kernel counts the bytes that it has written.
const HEAD: usize = mem::offset_of!(perf_event_mmap_page, data_head);
/// Where we count the bytes that we have taken.
const TAIL: usize = mem::offset_of!(perf_event_mmap_page, data_tail);

/// A mapped ring.
#[derive(Debug)]
pub struct Ring {
    mapping: Mapping,
    /// Bytes before the data.
    state: usize,
    /// Bytes of data, a power of two.
    size: usize,
}

impl Ring {
    /// Maps the ring of an event: `pages` of data, rounded up to a power of two. The errno is
    /// EPERM when the memory that may be locked (`perf_event_mlock_kb`, RLIMIT_MEMLOCK) is used up.
    pub(crate) fn map(fd: BorrowedFd<'_>, pages: usize) -> Result<Ring, i32> {
        let page = rustix::param::page_size();
        let size = pages
            .checked_next_power_of_two()
            .and_then(|pages| pages.checked_mul(page))
            .ok_or(libc::EINVAL)?;
        let bytes = size.checked_add(page).ok_or(libc::EINVAL)?;
        Ok(Ring { mapping: Mapping::new(fd, bytes)?, state: page, size })
    }

    /// Appends every record that is there to `into`, whole and in order, and frees their room.
    /// Gives the bytes appended.
    pub fn drain(&mut self, into: &mut Vec<u8>) -> usize {
        // Acquire: the records up to the head are read after the head. It pairs with the barrier
        // before the kernel's store of data_head in `perf_output_put_handle`.
        let head = self.position(HEAD).load(Ordering::Acquire);
        // Nobody else writes the tail.
        let tail = self.position(TAIL).load(Ordering::Relaxed);
        let unread = usize::try_from(head.wrapping_sub(tail)).unwrap_or(self.size).min(self.size);
        let start = tail as usize & (self.size - 1);
        let before_wrap = unread.min(self.size - start);
        into.reserve(unread);
        into.extend_from_slice(self.data(start, before_wrap));
        into.extend_from_slice(self.data(0, unread - before_wrap));
        // Release: the records are read before their room is given back. It pairs with the
        // kernel's control dependency on data_tail in `__perf_output_begin`.
        self.position(TAIL).store(head, Ordering::Release);
        unread
    }

    /// Bytes that it holds.
    pub fn size(&self) -> usize {
        self.size
    }

    fn position(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(offset + size_of::<u64>() <= self.mapping.len());
        // SAFETY: `offset` lies in the state page, which is the mapping's first page.
        let at = unsafe { self.mapping.start().add(offset) };
        // SAFETY: the field is a naturally aligned u64 of a live mapping, and both sides access it
        // by single loads and stores only.
        unsafe { at.cast::<AtomicU64>().as_ref() }
    }

    /// `len` bytes of data from `at`, all of them between tail and head.
    fn data(&self, at: usize, len: usize) -> &[u8] {
        assert!(at + len <= self.size, "{at} + {len} is beyond the ring");
        // SAFETY: in bounds of the mapping: the data follows the state, and `at` is inside it.
        let start = unsafe { self.mapping.start().add(self.state + at) };
        // SAFETY: initialised by the kernel, in bounds, and not written to until the tail moves
        // past it, which only `drain` does, after the slice is gone.
        unsafe { slice::from_raw_parts(start.as_ptr(), len) }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::ptr;
    use std::rc::Rc;

    use super::super::record::RecordHeader;
    use super::super::sys::Syscall;
    use super::super::sys_fake::install;
    use super::*;

    /// A ring of one data page over memory of the test, which plays the kernel's part.
    struct Kernel {
        memory: Rc<RefCell<Vec<u64>>>,
        page: usize,
        head: u64,
    }

    impl Kernel {
        fn with_ring() -> (Kernel, Ring) {
            let page = rustix::param::page_size();
            let memory = Rc::new(RefCell::new(vec![0_u64; page / 4]));
            let shared = Rc::clone(&memory);
            install(move |call| match call {
                Syscall::Map { bytes, .. } => {
                    assert_eq!(bytes, 2 * rustix::param::page_size());
                    Ok(shared.borrow_mut().as_mut_ptr().expose_provenance())
                }
                Syscall::Unmap { .. } => Ok(0),
                _ => Err(libc::ENOSYS),
            });
            let ring = Ring::map(File::open("/dev/null").unwrap().as_fd(), 1).unwrap();
            (Kernel { memory, page, head: 0 }, ring)
        }

        fn word(&self, offset: usize) -> *mut u64 {
            ptr::from_mut(&mut self.memory.borrow_mut()[offset / 8])
        }

        fn position(&self, offset: usize) -> &AtomicU64 {
            // SAFETY: an aligned word of memory that lives as long as `self`.
            unsafe { AtomicU64::from_ptr(self.word(offset)) }
        }

        /// Both ends stand at `at`: the ring is empty there.
        fn start_at(&mut self, at: u64) {
            self.head = at;
            self.position(HEAD).store(at, Ordering::Relaxed);
            self.position(TAIL).store(at, Ordering::Relaxed);
        }

        /// Writes a record of `size` bytes filled with `fill`; false when there is no room.
        fn write(&mut self, size: u16, fill: u8) -> bool {
            let tail = self.position(TAIL).load(Ordering::Acquire);
            if self.head + u64::from(size) - tail > self.page as u64 {
                return false;
            }
            for chunk in record(size, fill).as_chunks::<8>().0 {
                let at = self.page + self.head as usize % self.page;
                // SAFETY: an aligned word of the test's memory.
                unsafe { self.word(at).write_volatile(u64::from_ne_bytes(*chunk)) };
                self.head += 8;
            }
            self.position(HEAD).store(self.head, Ordering::Release);
            true
        }
    }

    fn record(size: u16, fill: u8) -> Vec<u8> {
        let mut bytes = RecordHeader { kind: 9, misc: 1, size }.to_bytes().to_vec();
        bytes.resize(usize::from(size), fill);
        bytes
    }

    #[test]
    fn an_empty_ring_gives_nothing_and_leaves_the_buffer_as_it_is() {
        let (_kernel, mut ring) = Kernel::with_ring();
        let mut buffer = b"before".to_vec();
        assert_eq!(ring.drain(&mut buffer), 0);
        assert_eq!(buffer, b"before");
    }

    #[test]
    fn records_come_whole_in_order_and_once() {
        let (mut kernel, mut ring) = Kernel::with_ring();
        let mut buffer = Vec::new();
        kernel.write(24, 1);
        assert_eq!(ring.drain(&mut buffer), 24);
        kernel.write(16, 2);
        kernel.write(48, 3);
        assert_eq!(ring.drain(&mut buffer), 64);
        assert_eq!(ring.drain(&mut buffer), 0);
        assert_eq!(buffer, [record(24, 1), record(16, 2), record(48, 3)].concat());
    }

    #[test]
    fn a_record_that_wraps_is_joined_at_every_offset() {
        let (mut kernel, mut ring) = Kernel::with_ring();
        for offset in (0..kernel.page as u64).step_by(8) {
            kernel.start_at(offset);
            let mut buffer = Vec::new();
            assert!(kernel.write(40, 7) && kernel.write(4000, 8));
            assert_eq!(ring.drain(&mut buffer), 4040, "from offset {offset}");
            assert_eq!(buffer, [record(40, 7), record(4000, 8)].concat(), "from offset {offset}");
        }
    }

    #[test]
    fn a_full_ring_is_emptied_and_takes_records_again() {
        let (mut kernel, mut ring) = Kernel::with_ring();
        kernel.start_at(4096 * 5 + 8);
        let half = (kernel.page / 2) as u16;
        assert!(kernel.write(half, 1) && kernel.write(half, 2));
        assert!(!kernel.write(8, 3), "there is no room before the tail moves");
        let mut buffer = Vec::new();
        assert_eq!(ring.drain(&mut buffer), kernel.page);
        assert_eq!(buffer, [record(half, 1), record(half, 2)].concat());
        assert!(kernel.write(half, 3));
        assert_eq!(ring.drain(&mut buffer), usize::from(half));
    }

    #[test]
    fn the_tail_moves_to_the_head_and_not_beyond() {
        let (mut kernel, mut ring) = Kernel::with_ring();
        kernel.start_at(u64::MAX - 4095 - 16);
        kernel.write(8, 1);
        ring.drain(&mut Vec::new());
        assert_eq!(kernel.position(TAIL).load(Ordering::Relaxed), kernel.head);
    }

    #[test]
    fn a_size_that_cannot_be_is_refused() {
        let fd = File::open("/dev/null").unwrap();
        for pages in [usize::MAX, usize::MAX / 2, usize::MAX / 4096] {
            assert_eq!(Ring::map(fd.as_fd(), pages).unwrap_err(), libc::EINVAL, "{pages} pages");
        }
    }
}

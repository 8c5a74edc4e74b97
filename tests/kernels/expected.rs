//! What each kernel is known for: its events, and its names for what the workloads do.
//!
//! Read from the sources of these releases (`mm/mprotect.c`, `mm/mincore.c`, `fs/namei.c`,
//! `kernel/locking/`), and seen on them.

/// A kernel of the matrix.
#[derive(Debug)]
pub(crate) struct Expected {
    /// As `run.sh` takes it.
    pub(crate) version: &'static str,
    /// PREEMPT_RT builds sleeping locks from rt-mutexes, and their types say so.
    pub(crate) rt: bool,
    /// `lock:contention_begin` and `_end`: since 5.19.
    pub(crate) contention_events: bool,
    /// `lock:contended_release`: since 7.2.
    pub(crate) contended_release: bool,
    /// Where mincore(2) and a page fault take the mmap lock for read.
    pub(crate) mincore: &'static str,
    /// Where mknod(2) and unlink(2) take the lock of their directory.
    pub(crate) directory: &'static [&'static str],
    /// Functions that spin, in samples of 8 CPUs that want one rwsem.
    pub(crate) spins: &'static [&'static str],
}

/// Where mprotect(2) takes the mmap lock for write, everywhere.
pub(crate) const MPROTECT: &str = "do_mprotect_pkey";

/// Where x86 CPUs spin for a spinlock without a hypervisor's help, everywhere.
pub(crate) const SPINLOCK: &str = "native_queued_spin_lock_slowpath";

const RWSEM: &[&str] = &["osq_lock", "rwsem_spin_on_owner"];

/// The matrix.
pub(crate) const KERNELS: [Expected; 6] = [
    Expected {
        version: "5.10",
        rt: false,
        contention_events: false,
        contended_release: false,
        mincore: "__do_sys_mincore",
        directory: &["filename_create", "do_unlinkat"],
        spins: RWSEM,
    },
    Expected {
        version: "6.1",
        rt: false,
        contention_events: true,
        contended_release: false,
        mincore: "__do_sys_mincore",
        directory: &["filename_create", "do_unlinkat"],
        spins: RWSEM,
    },
    Expected {
        version: "6.12",
        rt: false,
        contention_events: true,
        contended_release: false,
        mincore: "__x64_sys_mincore",
        directory: &["filename_create", "do_unlinkat"],
        spins: RWSEM,
    },
    Expected {
        version: "7.2",
        rt: false,
        contention_events: true,
        contended_release: true,
        mincore: "__x64_sys_mincore",
        directory: &["filename_create", "filename_unlinkat", "__start_dirop"],
        spins: RWSEM,
    },
    Expected {
        version: "5.10-rt",
        rt: true,
        contention_events: false,
        contended_release: false,
        mincore: "__do_sys_mincore",
        directory: &["filename_create", "do_unlinkat"],
        spins: &[],
    },
    Expected {
        version: "6.12-rt",
        rt: true,
        contention_events: true,
        contended_release: false,
        mincore: "__x64_sys_mincore",
        directory: &["filename_create", "do_unlinkat"],
        spins: &[],
    },
];

/// What is known of a version; of those that are in no row, the release before it.
pub(crate) fn of(version: &str) -> Option<&'static Expected> {
    KERNELS.iter().find(|kernel| kernel.version == version)
}

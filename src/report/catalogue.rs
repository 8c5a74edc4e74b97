//! Locks known by the call paths that take them.
//!
//! Kept small and strict: a path proves a name only when it takes no other lock of that kind.

use crate::model::{LockKind, LockType};

/// What a site says about the rwsem that is waited for there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    /// This path takes no other rwsem.
    MmapLock,
    /// Nobody has looked, or the path takes the mmap_lock and other rwsems.
    Perhaps,
    /// This path takes another rwsem.
    Other,
}

/// System calls whose entry or worker takes the mmap_lock and no other rwsem.
const SYSCALLS: [&str; 12] = [
    "brk",
    "madvise",
    "mincore",
    "mlock",
    "mlock2",
    "mlockall",
    "mprotect",
    "mremap",
    "munlock",
    "munlockall",
    "munmap",
    "pkey_mprotect",
];

/// Functions of mm, faults, exec and exit that take the mmap_lock and no other rwsem. Sources:
/// `mm/{mmap,mprotect,madvise,mincore,mlock,mremap,gup,memory,khugepaged,mempolicy,util}.c`,
/// `arch/*/mm/fault.c`, `kernel/exit.c`, `kernel/sched/fair.c`, of 3.0 to 7.2.
const FUNCTIONS: [&str; 36] = [
    "__access_remote_vm",
    "__do_page_fault",
    "__get_user_pages_locked",
    "__gup_longterm_locked",
    "__mm_populate",
    "__vm_munmap",
    "access_remote_vm",
    "collapse_huge_page",
    "do_exit",
    "do_madvise",
    "do_mbind",
    "do_migrate_pages",
    "do_mlock",
    "do_mprotect_pkey",
    "do_mremap",
    "do_page_fault",
    "do_shmat",
    "do_user_addr_fault",
    "exit_mm",
    "faultin_page_range",
    "get_user_pages_unlocked",
    "khugepaged_scan_mm_slot",
    "ksys_shmdt",
    "lock_mm_and_find_vma",
    "madvise_do_behavior",
    "madvise_dontneed_free",
    "madvise_lock",
    "madvise_populate",
    "mmap_read_lock_maybe_expand",
    "process_vm_rw_core",
    "setup_arg_pages",
    "task_numa_work",
    "upgrade_mmap_lock_carefully",
    "vm_brk_flags",
    "vm_mmap_pgoff",
    "vm_munmap",
];

/// Functions that take another rwsem: inodes, mappings, anonymous memory. Prefixes of file systems
/// end with `_`.
const OTHERS: [&str; 21] = [
    "__anon_vma_prepare",
    "btrfs_",
    "chown_common",
    "do_renameat2",
    "do_rmdir",
    "do_truncate",
    "do_unlinkat",
    "ext4_",
    "f2fs_",
    "filename_create",
    "filename_unlinkat",
    "iterate_dir",
    "lookup_slow",
    "nfs_",
    "open_last_lookups",
    "path_openat",
    "sync_inodes_sb",
    "unlink_anon_vmas",
    "unlink_file_vma",
    "unlink_file_vma_batch_process",
    "xfs_",
];

/// Prefixes of system call entries, over the eras and architectures.
const ENTRIES: [&str; 10] = [
    "__x64_sys_",
    "__ia32_sys_",
    "__arm64_sys_",
    "__s390x_sys_",
    "__do_sys_",
    "__se_sys_",
    "SyS_",
    "ksys_",
    "compat_sys_",
    "sys_",
];

/// What waiting for an rwsem in `caller` says about which one it is.
pub(super) fn mmap_lock(lock_type: LockType, caller: &str) -> Proof {
    if lock_type.kind != LockKind::Rwsem {
        return Proof::Other;
    }
    let syscall = ENTRIES.iter().find_map(|prefix| caller.strip_prefix(prefix));
    let other = |name: &str| match name.strip_suffix('_') {
        Some(_) => caller.starts_with(name),
        None => caller == name,
    };
    if syscall.is_some_and(|name| SYSCALLS.contains(&name)) || FUNCTIONS.contains(&caller) {
        Proof::MmapLock
    } else if OTHERS.iter().any(|name| other(name)) {
        Proof::Other
    } else {
        Proof::Perhaps
    }
}

/// The name of an address space's lock on that kernel: `mmap_sem` before 5.8.
pub(super) fn mmap_lock_name(release: &str) -> &'static str {
    let mut parts = release.split(['.', '-', '+']).map(|part| part.parse::<u32>().ok());
    match (parts.next().flatten(), parts.next().flatten()) {
        (Some(major), Some(minor)) if (major, minor) < (5, 8) => "mmap_sem",
        _ => "mmap_lock",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Mode;

    #[test]
    fn paths_of_every_era_prove_the_mmap_lock() {
        let rwsem = LockType::new(LockKind::Rwsem, Mode::Write);
        for caller in ["sys_mprotect", "SyS_mprotect", "__x64_sys_mincore", "do_mprotect_pkey"] {
            assert_eq!(mmap_lock(rwsem, caller), Proof::MmapLock, "{caller}");
        }
        assert_eq!(mmap_lock(rwsem, "dup_mmap"), Proof::Perhaps);
        assert_eq!(mmap_lock(rwsem, "path_openat"), Proof::Other);
        assert_eq!(mmap_lock(rwsem, "xfs_file_fsync"), Proof::Other);
        let mutex = LockType::new(LockKind::Mutex, Mode::Exclusive);
        assert_eq!(mmap_lock(mutex, "do_mprotect_pkey"), Proof::Other);
    }

    #[test]
    fn the_name_follows_the_kernel() {
        for (release, name) in [
            ("3.16.0", "mmap_sem"),
            ("5.7.19-generic", "mmap_sem"),
            ("5.8.0", "mmap_lock"),
            ("6.18.44", "mmap_lock"),
            ("", "mmap_lock"),
        ] {
            assert_eq!(mmap_lock_name(release), name, "{release}");
        }
    }
}

use std::collections::HashSet;

use super::*;
use crate::model::Mode;

const RWSEM: LockType = LockType::new(LockKind::Rwsem, Mode::Write);
const SPINLOCK: LockType = LockType::new(LockKind::Spinlock, Mode::Exclusive);

/// What the innermost `inner` of these functions say; empty for nothing.
fn claimed(lock_type: LockType, names: &[&str], inner: usize) -> &'static str {
    match claim(lock_type, &CallPath::made_up(names, inner)) {
        Claim::Lock { entry, .. } => entry.name,
        Claim::Sort(entry) if entry.scope == Scope::Other => "other",
        Claim::Sort(entry) => entry.name,
        Claim::Unknown => "",
    }
}

#[test]
fn every_row_parses_and_no_name_stands_for_two_locks() {
    let mut names = HashSet::new();
    for line in rows(TEXT) {
        let entry = parse(line).unwrap_or_else(|| panic!("out of form: {line}"));
        for name in entry.names() {
            assert!(names.insert(name.to_ascii_lowercase()), "twice: {name}");
        }
        for version in [entry.first, entry.last].into_iter().filter(|text| !text.is_empty()) {
            assert!(super::version(version).is_some(), "{}: {version}", entry.name);
        }
        assert!(!entry.kinds.is_empty(), "{}", entry.name);
        if entry.scope != Scope::Other {
            assert!(!entry.paths.is_empty(), "{}", entry.name);
            assert!(entry.source.contains('/'), "{}: {}", entry.name, entry.source);
            for sentence in [entry.protects, entry.relief] {
                assert!(sentence.ends_with('.'), "{}: {sentence}", entry.name);
            }
        }
    }
    assert!(names.len() > 150, "{}", names.len());
}

#[test]
fn paths_of_every_era_prove_the_mmap_lock() {
    for caller in ["sys_mprotect", "SyS_mprotect", "__x64_sys_mincore", "do_mprotect_pkey"] {
        assert_eq!(claimed(RWSEM, &[caller], 1), "mmap_lock", "{caller}");
    }
    let mutex = LockType::new(LockKind::Mutex, Mode::Exclusive);
    assert_eq!(claimed(mutex, &["do_mprotect_pkey"], 1), "");
}

#[test]
fn the_longest_path_counts_and_two_as_long_prove_nothing() {
    let agi =
        ["down", "xfs_buf_lock", "xfs_buf_find_lock", "xfs_trans_read_buf_map", "xfs_read_agi"];
    let semaphore = LockType::new(LockKind::Semaphore, Mode::Exclusive);
    assert_eq!(claimed(semaphore, &agi, 5), "xfs AGI buffer lock");
    assert_eq!(claimed(semaphore, &agi[..4], 4), "xfs buffer lock");
    // It takes the mmap_lock of the parent, which it says, and locks of mappings.
    assert_eq!(claimed(RWSEM, &["down_write_killable", "dup_mmap"], 2), "mmap_lock");
    assert_eq!(claimed(RWSEM, &["down_write", "dup_mmap"], 2), "");
    assert_eq!(claimed(SPINLOCK, &["_raw_spin_lock", "try_to_wake_up"], 2), "rq->__lock");
    assert_eq!(claimed(SPINLOCK, &["_raw_spin_lock_irqsave", "try_to_wake_up"], 2), "pi_lock");
}

#[test]
fn of_the_three_locks_of_an_xfs_inode_the_caller_tells() {
    let of = |caller| claimed(RWSEM, &["down_write", "xfs_ilock", caller], 3);
    assert_eq!(of("xfs_file_buffered_write"), "i_rwsem");
    assert_eq!(of("xfs_create"), "xfs ILOCK");
    assert_eq!(of("__xfs_filemap_fault"), "invalidate_lock");
    assert_eq!(of("xfs_new_function"), "xfs inode lock (which of three unknown)");
    assert_eq!(claimed(RWSEM, &["down_write", "xfs_new_function"], 2), "other");
}

#[test]
fn functions_above_the_site_alone_prove_nothing() {
    assert_eq!(claimed(RWSEM, &["down_write", "some_driver", "path_openat"], 2), "");
    assert_eq!(claimed(RWSEM, &["down_write", "path_openat"], 2), "i_rwsem");
}

#[test]
fn on_preempt_rt_lock_code_tells_mutexes_from_spinlocks() {
    let rt = LockType::new(LockKind::RtMutex, Mode::Exclusive);
    let mutex = ["__rt_mutex_slowlock", "pipe_read"];
    let spinlock = ["rtlock_slowlock_locked", "rt_spin_lock", "folio_batch_move_lru"];
    assert_eq!(claimed(rt, &mutex, 2), "pipe mutex");
    assert_eq!(claimed(rt, &spinlock, 3), "lruvec lru_lock");
    assert_eq!(claimed(rt, &["rtlock_slowlock_locked", "rt_spin_lock", "pipe_read"], 3), "");
}

#[test]
fn entries_are_found_by_every_name_and_suggested_by_part_of_one() {
    for name in ["mmap_lock", "MMAP_SEM", "mmap_lock.wait_lock"] {
        assert_eq!(entry(name).map(|entry| entry.name), Some("mmap_lock"), "{name}");
    }
    assert!(entry("mmap").is_none() && entry("").is_none());
    let names: Vec<&str> = suggestions("mmap").iter().map(|entry| entry.name).collect();
    assert_eq!(names.first(), Some(&"mmap_lock"));
    assert!(names.contains(&"i_mmap_rwsem"), "{names:?}");
    assert!(suggestions("no such lock").is_empty());
}

#[test]
fn the_name_follows_the_kernel() {
    let mmap_lock = entry("mmap_lock").unwrap();
    for (release, name) in [
        ("3.16.0", "mmap_sem"),
        ("5.7.19-generic", "mmap_sem"),
        ("5.8.0", "mmap_lock"),
        ("6.18.44", "mmap_lock"),
        ("", "mmap_lock"),
    ] {
        assert_eq!(mmap_lock.name_on(release), name, "{release}");
    }
}

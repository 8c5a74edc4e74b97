//! What must hold of these recordings, whatever the goldens say.

use std::collections::BTreeSet;

use lockprof::kernel::{Role, Verdict, verdict};
use lockprof::model::{LockKind, Nanos};
use lockprof::report::{NameEvidence, Row};

use crate::fixtures::{Recording, recording, recordings};

fn lock_type(row: &Row) -> String {
    row.key.lock_type.map(|lock_type| lock_type.to_string()).unwrap_or_default()
}

fn caller(row: &Row) -> &str {
    row.key.caller.as_deref().unwrap_or_default()
}

fn lock(row: &Row) -> &str {
    let lock = row.key.lock.as_ref();
    lock.filter(|lock| lock.evidence != NameEvidence::Caller).map_or("", |lock| &lock.name)
}

/// The first row of each recording that names its workload: type, caller, and the lock.
const FIRST_ROWS: [(&str, &str, [&str; 3]); 37] = [
    ("5.10", "cpu-append", ["rwsem:W", "xfs_file_buffered_aio_write", "i_rwsem"]),
    ("5.10", "cpu-dir", ["rwsem:W", "do_unlinkat", "i_rwsem"]),
    ("5.10", "cpu-mmap", ["rwsem:W", "do_mprotect_pkey", "mmap_lock"]),
    ("5.10", "cpu-pipe", ["mutex", "pipe_write", "pipe mutex"]),
    ("5.10", "pairs-mmap", ["rwsem:R", "__do_sys_mincore", "mmap_lock"]),
    ("5.10", "pairs-pipe", ["mutex", "pipe_write", "pipe mutex"]),
    ("5.10-rt", "cpu-mmap", ["rwsem:R (rt)", "__do_sys_mincore", "mmap_lock"]),
    ("5.10-rt", "pairs-mmap", ["rwsem:W (rt)", "do_mprotect_pkey", "mmap_lock"]),
    ("5.10-rt", "pairs-pipe", ["rt-mutex", "pipe_write", "pipe mutex"]),
    ("6.1", "contention-mmap", ["rwsem:R", "__do_sys_mincore", "mmap_lock"]),
    ("6.1", "contention-pipe", ["mutex", "pipe_write", "pipe mutex"]),
    ("6.1", "cpu-append", ["rwsem:W", "xfs_file_buffered_write", "i_rwsem"]),
    ("6.1", "cpu-dir", ["rwsem:W", "do_unlinkat", "i_rwsem"]),
    ("6.1", "cpu-mmap", ["rwsem:W", "do_mprotect_pkey", "mmap_lock"]),
    ("6.1", "pairs-mmap", ["rwsem:R", "__do_sys_mincore", "mmap_lock"]),
    ("6.1", "pairs-pipe", ["mutex", "pipe_write", "pipe mutex"]),
    ("6.12", "contention-mmap", ["rwsem:R", "__x64_sys_mincore", "mmap_lock"]),
    ("6.12", "contention-pipe", ["mutex", "pipe_write", "pipe mutex"]),
    ("6.12", "cpu-append", ["rwsem:W", "xfs_file_buffered_write", "i_rwsem"]),
    ("6.12", "cpu-dir", ["rwsem:W", "do_unlinkat", "i_rwsem"]),
    ("6.12", "cpu-mmap", ["rwsem:W", "do_mprotect_pkey", "mmap_lock"]),
    ("6.12", "cpu-pipe", ["mutex", "pipe_write", "pipe mutex"]),
    ("6.12", "pairs-mmap", ["rwsem:R", "__x64_sys_mincore", "mmap_lock"]),
    ("6.12", "pairs-pipe", ["mutex", "pipe_write", "pipe mutex"]),
    ("6.12-rt", "contention-mmap", ["rwsem:W (rt)", "do_mprotect_pkey", "mmap_lock"]),
    ("6.12-rt", "pairs-mmap", ["rwsem:W (rt)", "do_mprotect_pkey", "mmap_lock"]),
    ("6.12-rt", "pairs-pipe", ["rt-mutex", "pipe_write", "pipe mutex"]),
    ("6.18", "convoy", ["rwsem:W", "do_mprotect_pkey", "mmap_lock"]),
    ("6.18", "pairs-mmap", ["rwsem:R", "__x64_sys_mincore", "mmap_lock"]),
    ("6.18", "xfs-buf-semaphore", ["semaphore", "xfs_read_agi", "xfs AGI buffer lock"]),
    ("7.2", "contention-mmap", ["rwsem:R", "__x64_sys_mincore", "mmap_lock"]),
    ("7.2", "contention-pipe", ["mutex", "anon_pipe_write", "pipe mutex"]),
    ("7.2", "cpu-append", ["rwsem:W", "xfs_file_buffered_write", "i_rwsem"]),
    ("7.2", "cpu-mmap", ["rwsem:W", "do_mprotect_pkey", "mmap_lock"]),
    ("7.2", "cpu-pipe", ["mutex", "anon_pipe_write", "pipe mutex"]),
    ("7.2", "pairs-mmap", ["rwsem:R", "__x64_sys_mincore", "mmap_lock"]),
    ("7.2", "pairs-pipe", ["mutex", "anon_pipe_write", "pipe mutex"]),
];

#[test]
fn the_first_row_is_what_the_workload_fights_for() {
    for (kernel, name, wanted) in FIRST_ROWS {
        let row = recording(kernel, name).by_site.rows.first();
        let row = row.unwrap_or_else(|| panic!("{kernel}/{name}: no rows"));
        let got = [lock_type(row), caller(row).to_owned(), lock(row).to_owned()];
        assert_eq!(got, wanted, "{kernel}/{name}");
    }
}

/// Entries, thunks and the like, by their beginnings.
const NO_SITES: [&str; 9] = [
    "asm_",
    "do_syscall_",
    "entry_",
    "exc_",
    "ret_from_fork",
    "srso_",
    "sysvec_",
    "x64_sys_call",
    "__x86_",
];

#[test]
fn no_site_is_lock_code_a_wrapper_or_an_entry() {
    let mut bad = BTreeSet::new();
    for Recording { kernel, name, by_site, .. } in recordings() {
        for row in &by_site.rows {
            let caller = caller(row);
            let is_row = match verdict(caller) {
                Verdict::Lock(function) => {
                    function.is_lock_code() || function.role == Role::Wrapper
                }
                Verdict::NotALock | Verdict::Unknown => false,
            };
            if is_row || NO_SITES.iter().any(|start| caller.starts_with(start)) {
                bad.insert(format!("{kernel}/{name}: {} {caller}", lock_type(row)));
            }
        }
    }
    assert!(bad.is_empty(), "{bad:#?}");
}

#[test]
fn every_wait_with_a_callchain_has_a_site() {
    let all = recordings().iter().filter(|recording| recording.name != "pid-namespace");
    for Recording { kernel, name, by_site, .. } in all {
        let trust = &by_site.trust;
        assert_eq!(trust.caller_named, trust.wait, "{kernel}/{name}");
    }
}

#[test]
fn an_rwsem_is_always_asked_for_in_one_of_two_ways() {
    for Recording { kernel, name, by_site, .. } in recordings() {
        for row in &by_site.rows {
            let lock_type = lock_type(row);
            let two_ways = ["rwsem", "rwlock", "pcpu-sem"].iter().any(|k| lock_type.starts_with(k));
            let one_of_two = lock_type.contains(":R") || lock_type.contains(":W");
            assert_eq!(two_ways, one_of_two, "{kernel}/{name}: {lock_type} {}", caller(row));
        }
    }
}

#[test]
fn every_begin_and_every_end_is_accounted_for() {
    for Recording { kernel, name, by_site: report, .. } in recordings() {
        assert!(report.trust.counts.balance(), "{kernel}/{name}: {:?}", report.trust.counts);
        let rows = |count: fn(&Row) -> u64| report.rows.iter().map(count).sum::<u64>();
        let by_sleeps = report.trust.sleeps.map_or(0, |sleeps| sleeps.waits);
        let waits = report.trust.counts.begun + report.trust.counts.restarts + by_sleeps;
        assert_eq!(rows(|row| row.stat.contended()), waits, "{kernel}/{name}");
        assert_eq!(rows(|row| row.stat.wait().0), report.total.wait().0, "{kernel}/{name}");
    }
}

#[test]
fn no_second_of_a_thread_counts_twice() {
    for Recording { kernel, name, by_task: report, .. } in recordings() {
        for row in &report.rows {
            let task = row.key.task.as_ref().unwrap();
            // Pseudo-tasks run on every CPU.
            if task.pid != 0 {
                let (waited, elapsed) = (row.stat.ended.own, report.header.elapsed);
                assert!(waited <= elapsed, "{kernel}/{name}: {task:?} waited {waited:?}");
            }
        }
    }
}

/// Waits for an rwsem of PREEMPT_RT and for the rt-mutex inside it are one.
#[test]
fn a_rw_semaphore_of_preempt_rt_is_one_lock() {
    let report = &recording("6.12-rt", "pairs-mmap").by_lock;
    let rwsems: Vec<&Row> =
        report.rows.iter().filter(|row| row.key.lock_kind == Some(LockKind::Rwsem)).collect();
    let [rwsem] = rwsems.as_slice() else { panic!("{rwsems:#?}") };
    assert_eq!(lock(rwsem), "mmap_lock");
    let types: Vec<String> = rwsem.splits.iter().map(|s| s.lock_type.to_string()).collect();
    assert_eq!(types, ["rwsem:R (rt)", "rwsem:W (rt)"]);
    let inside = rwsem.key.lock_addr.unwrap().0..rwsem.key.lock_addr.unwrap().0 + 0x30;
    let within = report.rows.iter().filter(|row| inside.contains(&row.key.lock_addr.unwrap().0));
    assert_eq!(within.count(), 1, "{:#?}", report.rows);
    let all = Nanos(report.header.elapsed.0 * report.header.threads);
    assert!(report.total.ended.own <= all);
    assert!(report.trust.counts.joined > 0, "nothing was put together");
}

/// Waiting that only CPU samples show has the types that tracepoints of the same kernel give it.
#[test]
fn samples_and_tracepoints_of_preempt_rt_agree_on_types() {
    let types = |name| -> BTreeSet<String> {
        let rows = &recording("6.12-rt", name).by_site.rows;
        rows.iter().map(lock_type).filter(|lock_type| lock_type != "spinlock").collect()
    };
    let wanted: BTreeSet<String> =
        ["rt-mutex", "rwsem:R (rt)", "rwsem:W (rt)"].map(str::to_owned).into();
    let rwsems: BTreeSet<String> = ["rwsem:R (rt)", "rwsem:W (rt)"].map(str::to_owned).into();
    for name in ["contention-mmap", "cpu-mmap", "pairs-mmap"] {
        let types = types(name);
        assert!(types.is_subset(&wanted) && types.is_superset(&rwsems), "{name}: {types:?}");
    }
}

#[test]
fn a_semaphore_and_its_own_spinlock_share_an_address() {
    let report = &recording("6.18", "xfs-buf-semaphore").by_lock;
    let counts = report.trust.counts;
    assert_eq!((counts.unmatched, counts.restarts, counts.uncertain), (0, 0, 0));
    let addresses = |kind| -> BTreeSet<u64> {
        let of_kind = report.rows.iter().filter(|row| row.key.lock_kind == Some(kind));
        of_kind.map(|row| row.key.lock_addr.unwrap().0).collect()
    };
    let (semaphores, spinlocks) = (addresses(LockKind::Semaphore), addresses(LockKind::Spinlock));
    let shared: Vec<&u64> = semaphores.intersection(&spinlocks).collect();
    assert!(!shared.is_empty(), "{semaphores:x?} {spinlocks:x?}");
}

#[test]
fn a_recording_made_in_a_pid_namespace_pairs_by_global_pids() {
    let report = &recording("6.18", "pid-namespace").by_task;
    let counts = report.trust.counts;
    assert!(counts.begins > 1_800, "{counts:?}");
    assert!(counts.unmatched <= 4 && counts.restarts <= 1, "{counts:?}");
}

/// 5.10 has no contention events: readers and writers that spin are seen by samples.
#[test]
fn spinning_is_seen_where_there_are_no_contention_events() {
    for name in ["cpu-append", "cpu-dir", "cpu-mmap", "cpu-pipe"] {
        let report = &recording("5.10", name).by_site;
        assert!(report.total.spun.samples > 100, "{name}: {:?}", report.total.spun);
        assert_eq!(report.total.contended(), 0, "{name}");
    }
    let mmap = &recording("5.10", "cpu-mmap").by_site;
    let readers = mmap.rows.iter().find(|row| lock_type(row) == "rwsem:R").unwrap();
    assert!(mmap.share(&readers.stat) > 0.2, "{:?}", readers.stat.spun);
}

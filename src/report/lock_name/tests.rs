use super::*;
use crate::attribute::CallPath;
use crate::attribute::catalogue::claim;
use crate::decode::{Body, Event, MmapLock, MmapLockStep, RawChain, RawTask, TaskChange};
use crate::model::{Mode, Timestamp};

const RWSEM: LockType = LockType::new(LockKind::Rwsem, Mode::Write);
const MUTEX: LockType = LockType::new(LockKind::Mutex, Mode::Exclusive);
const SPINLOCK: LockType = LockType::new(LockKind::Spinlock, Mode::Exclusive);
const P: i32 = 7;
const Q: i32 = 8;

/// A wait of process `P` at time 10.
fn wait(lock: u64, lock_type: LockType, caller: &str) -> Evidence<'_> {
    Evidence {
        lock: Some(LockAddr(lock)),
        lock_type,
        caller: Some(caller),
        claim: claim(lock_type, &CallPath::made_up(&[caller], 1)),
        pid: P,
        seen: Some(TimeRange { from: Timestamp(10), to: Timestamp(11) }),
    }
}

fn later<'a>(from: u64, pid: i32, wait: Evidence<'a>) -> Evidence<'a> {
    let seen = Some(TimeRange { from: Timestamp(from), to: Timestamp(from + 1) });
    Evidence { pid, seen, ..wait }
}

fn exit(pid: i32, time: u64) -> Event<'static> {
    let change = TaskChange { pid, tid: pid, parent_pid: 1, parent_tid: 1 };
    Event {
        time: Timestamp(time),
        cpu: None,
        pid,
        tid: pid,
        cgroup: None,
        instance: 0,
        offset: 0,
        body: Body::Exit(change),
    }
}

fn named(waits: &[Evidence<'_>], spaces: &AddressSpaces) -> Vec<Named> {
    let names = LockNames::learn(waits.iter().copied(), spaces, "6.18");
    waits.iter().map(|wait| names.name(wait, &Kernel::default())).collect()
}

fn names(waits: &[Evidence<'_>]) -> Vec<String> {
    let named = named(waits, &AddressSpaces::default());
    named.into_iter().map(|named| named.name.name).collect()
}

#[test]
fn a_path_that_takes_no_other_rwsem_names_the_mmap_lock_its_owner_and_its_wait_lock() {
    let waits = [
        wait(0x1000, RWSEM, "do_mprotect_pkey"),
        wait(0x1000, RWSEM, "exit_mmap"),
        wait(0x1014, SPINLOCK, "do_mprotect_pkey"),
        wait(0x2000, SPINLOCK, "do_mprotect_pkey"),
    ];
    assert_eq!(
        names(&waits),
        ["mmap_lock", "mmap_lock", "mmap_lock.wait_lock", "spinlock @ do_mprotect_pkey"]
    );
    let owners = named(&waits, &AddressSpaces::default());
    assert_eq!(
        owners.iter().map(|n| n.owner).collect::<Vec<_>>(),
        [Some(P), Some(P), Some(P), None]
    );
}

#[test]
fn only_the_wait_lock_is_inside_a_lock() {
    let waits = [
        wait(0x1000, MUTEX, "pipe_read"),
        wait(0x1008, SPINLOCK, "pipe_read"),
        // The lock of a wait queue behind the mutex.
        wait(0x1020, SPINLOCK, "some_function"),
        wait(0x3000, MUTEX, "some_driver"),
        wait(0x3008, SPINLOCK, "some_driver"),
    ];
    assert_eq!(
        names(&waits),
        [
            "pipe mutex",
            "pipe mutex.wait_lock",
            "spinlock @ some_function",
            "mutex @ some_driver",
            "spinlock @ some_driver"
        ]
    );
}

#[test]
fn a_contradiction_leaves_the_address_unnamed() {
    let waits = [wait(0x1000, RWSEM, "do_mprotect_pkey"), wait(0x1000, RWSEM, "path_openat")];
    assert_eq!(names(&waits), ["rwsem @ do_mprotect_pkey", "rwsem @ path_openat"]);
    let waits = [wait(0x1000, RWSEM, "do_mprotect_pkey"), wait(0x1000, RWSEM, "xfs_any")];
    assert_eq!(names(&waits), ["rwsem @ do_mprotect_pkey", "rwsem @ xfs_any"]);
}

#[test]
fn a_name_ends_with_its_owner_and_not_before() {
    let waits = [
        wait(0x1000, RWSEM, "do_mprotect_pkey"),
        later(30, Q, wait(0x1000, RWSEM, "path_openat")),
        later(40, Q, wait(0x1000, RWSEM, "some_function")),
    ];
    let mut spaces = AddressSpaces::default();
    let words = |spaces: &AddressSpaces| -> Vec<String> {
        named(&waits, spaces).into_iter().map(|named| named.name.name).collect()
    };
    assert_eq!(words(&spaces)[..2], ["rwsem @ do_mprotect_pkey", "rwsem @ path_openat"]);
    spaces.apply(&exit(P, 20));
    assert_eq!(words(&spaces), ["mmap_lock", "i_rwsem", "i_rwsem"]);
}

#[test]
fn an_mm_struct_that_is_used_again_has_another_owner() {
    let of_q = later(30, Q, wait(0x1000, RWSEM, "do_mprotect_pkey"));
    let waits = [wait(0x1000, RWSEM, "do_mprotect_pkey"), of_q];
    let mut spaces = AddressSpaces::default();
    spaces.apply(&exit(P, 20));
    let owners: Vec<_> = named(&waits, &spaces).into_iter().map(|named| named.owner).collect();
    assert_eq!(owners, [Some(P), Some(Q)]);
}

#[test]
fn an_ambiguous_path_alone_proves_nothing() {
    assert_eq!(names(&[wait(0x1000, RWSEM, "dup_mmap")]), ["rwsem @ dup_mmap"]);
}

#[test]
fn a_sample_is_of_the_only_mmap_lock_of_its_process() {
    let sample = Evidence { lock: None, ..wait(0, RWSEM, "do_mprotect_pkey") };
    let waits = [wait(0x1000, RWSEM, "do_mprotect_pkey"), sample];
    let addr = |waits: &[Evidence<'_>]| named(waits, &AddressSpaces::default())[1].addr;
    assert_eq!(addr(&waits), Some(LockAddr(0x1000)));
    // Of two nobody knows which; another process has another one.
    assert_eq!(addr(&[waits[0], sample, wait(0x2000, RWSEM, "do_madvise")]), None);
    assert_eq!(addr(&[waits[0], Evidence { pid: Q, ..sample }]), None);
    // A process has many inodes.
    let inode = wait(0x1000, RWSEM, "path_openat");
    assert_eq!(addr(&[inode, Evidence { lock: None, ..inode }]), None);
}

#[test]
fn mmap_lock_events_prove_by_pointer_and_offset() {
    let mut spaces = AddressSpaces::default();
    let who = RawTask::default();
    let mut locks = |pid, mm| {
        let (step, chain) = (MmapLockStep::StartLocking, RawChain::default());
        spaces.mmap_lock(Timestamp(5), pid, &MmapLock { who, mm, step, write: true, chain });
    };
    locks(P, 0x10_0000);
    locks(Q, 0x20_0000);
    let waits = [
        wait(0x10_0078, RWSEM, "do_mprotect_pkey"),
        // No path of this one says what it is.
        later(10, Q, wait(0x20_0078, RWSEM, "dup_mmap")),
        wait(0x30_0078, RWSEM, "dup_mmap"),
    ];
    let named = named(&waits, &spaces);
    let words: Vec<_> =
        named.iter().map(|n| (n.name.name.as_str(), n.name.evidence, n.owner)).collect();
    assert_eq!(
        words,
        [
            ("mmap_lock", NameEvidence::Events, Some(P)),
            ("mmap_lock", NameEvidence::Events, Some(Q)),
            ("rwsem @ dup_mmap", NameEvidence::Caller, None)
        ]
    );
}

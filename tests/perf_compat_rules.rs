//! perf's rules for pairing and counting waits, one case a test, and what is said of each where
//! lockprof's own rules differ. `tests/perf_compat.rs` compares whole recordings with perf itself.
//!
//! In: events made by hand. Out: rows, and the names and counts of the differences.

use lockprof::decode::{Begin, Body, Comm, End, Event, RawChain, RawTask};
use lockprof::kernel::Kernel;
use lockprof::model::{Cpu, GroupBy, LockAddr, LockFlags, Timestamp};
use lockprof::perf_compat::{CompatKey, CompatReport, PerfCompat, Walk};

const LOCK: LockAddr = LockAddr(0xffff_8880_0000_1000);
const OTHER: LockAddr = LockAddr(0xffff_8880_0000_2000);
const RWSEM_W: u32 = LockFlags::WRITE;
const SPIN: u32 = LockFlags::SPIN;

/// Feeds `(time, cpu, tid)` and bodies.
fn run(by: GroupBy, events: &[((u64, u32, i32), Body<'_>)]) -> CompatReport {
    let mut compat = PerfCompat::new(by, Walk::default());
    for &((time, cpu, tid), body) in events {
        let cpu = Some(Cpu(cpu));
        let event = Event {
            time: Timestamp(time),
            cpu,
            pid: tid,
            tid,
            instance: 0,
            cgroup: None,
            offset: 0,
            body,
        };
        compat.push(&event, &Kernel::default());
    }
    compat.finish()
}

/// What stands in front of the first mark is kernel.
fn chain(kernel: &[u8]) -> RawChain<'_> {
    RawChain { bytes: kernel, ..RawChain::default() }
}

fn begin_at(lock: LockAddr, flags: u32, kernel: &[u8]) -> Body<'_> {
    let chain = chain(kernel);
    let who = RawTask::default();
    Body::ContentionBegin(Begin { who, lock, flags: LockFlags(flags), chain })
}

fn end_at(lock: LockAddr, ret: i32, kernel: &[u8]) -> Body<'_> {
    let chain = chain(kernel);
    Body::ContentionEnd(End { who: RawTask::default(), lock, ret, chain })
}

fn begin(flags: u32) -> Body<'static> {
    begin_at(LOCK, flags, &[])
}

fn end() -> Body<'static> {
    end_at(LOCK, 0, &[])
}

/// contended, total, max, min, avg of the only row.
fn only_row(report: &CompatReport) -> [u64; 5] {
    let [row] = &report.rows[..] else { panic!("one row in {report:?}") };
    [row.contended, row.total_ns, row.max_ns, row.min_ns, row.avg_ns]
}

fn applied(report: &CompatReport) -> Vec<(&'static str, u64)> {
    let entries = report.differences.entries();
    entries.into_iter().filter(|e| e.count > 0).map(|e| (e.name, e.count)).collect()
}

#[test]
fn waits_of_a_thread_are_counted_at_their_begin_and_timed_at_their_end() {
    let at = |time| (time, 0, 7);
    let report = run(
        GroupBy::Task,
        &[
            (at(10), begin(RWSEM_W)),
            (at(40), end()),
            (at(50), begin(RWSEM_W)),
            (at(60), end()),
            (at(70), begin(RWSEM_W)),
            (at(75), begin_at(OTHER, SPIN, &[])),
        ],
    );
    assert_eq!(only_row(&report), [4, 40, 30, 10, 20]);
    assert_eq!(applied(&report), [("open", 2)]);
    assert_eq!(report.differences.open.time_ns, 5);
}

#[test]
fn phases_of_a_mutex_are_one_wait_and_no_difference() {
    let (spin, sleep) = (LockFlags::MUTEX | SPIN, LockFlags::MUTEX);
    let at = |time| (time, 0, 7);
    let report = run(
        GroupBy::Lock,
        &[(at(1), begin(spin)), (at(2), begin(sleep)), (at(3), begin(spin)), (at(9), end())],
    );
    assert_eq!(only_row(&report), [1, 8, 8, 8, 8]);
    assert_eq!((report.rows[0].lock_type.as_str(), applied(&report)), ("mutex", vec![]));
}

#[test]
fn a_semaphore_and_its_spinlock_at_one_address_end_each_other() {
    let at = |time| (time, 0, 7);
    let report = run(
        GroupBy::Task,
        &[(at(1), begin(0)), (at(2), begin(SPIN)), (at(3), end()), (at(9), end()), (at(10), end())],
    );
    assert_eq!(only_row(&report), [1, 2, 2, 2, 2]);
    assert_eq!((report.bad, report.total), (1, 1));
    assert_eq!(applied(&report), [("swallowed_begins", 1), ("bad_ends", 1), ("unmatched_ends", 1)]);
}

#[test]
fn a_wait_is_paired_over_losses_cpus_and_failure_and_each_is_told() {
    let report = run(
        GroupBy::Task,
        &[((1, 0, 0), begin(SPIN)), ((2, 0, 0), Body::Lost(5)), ((9, 1, 0), end_at(LOCK, -4, &[]))],
    );
    assert_eq!(only_row(&report), [1, 8, 8, 8, 8]);
    let expected = [("failed", 1), ("across_lost", 1), ("across_cpus", 1), ("nameless", 1)];
    assert_eq!(applied(&report), expected);
}

#[test]
fn an_end_gives_its_time_to_the_row_of_its_own_callchain() {
    let (a, b) = (1u64.to_le_bytes(), 2u64.to_le_bytes());
    let at = |time| (time, 0, 7);
    let report = run(
        GroupBy::Site,
        &[
            (at(1), begin_at(OTHER, RWSEM_W, &b)),
            (at(2), end_at(OTHER, 0, &b)),
            (at(3), begin_at(LOCK, RWSEM_W, &a)),
            (at(9), end_at(LOCK, 0, &b)),
        ],
    );
    let rows: Vec<_> = report.rows.iter().map(|row| (row.contended, row.total_ns)).collect();
    assert_eq!(rows, [(1, 7), (1, 0)]);
    // Without symbols both are `Unknown`: one row of lockprof's.
    assert_eq!(applied(&report), [("moved", 1), ("split_by_kernel_frames", 1)]);
}

#[test]
fn ends_without_callchain_find_no_row_by_caller() {
    let frame = 1u64.to_le_bytes();
    let at = |time| (time, 0, 7);
    let report = run(GroupBy::Site, &[(at(1), begin_at(LOCK, RWSEM_W, &frame)), (at(9), end())]);
    assert_eq!(only_row(&report), [1, 0, 0, 0, 0]);
    assert_eq!(applied(&report), [("open", 1), ("dropped_ends", 1), ("ends_without_callchain", 1)]);
}

#[test]
fn the_inner_of_two_waits_of_a_thread_is_told() {
    let at = |time| (time, 0, 7);
    let report = run(
        GroupBy::Task,
        &[
            (at(1), begin(RWSEM_W)),
            (at(2), begin_at(OTHER, SPIN, &[])),
            (at(5), end_at(OTHER, 0, &[])),
            (at(9), end()),
        ],
    );
    assert_eq!(only_row(&report), [2, 11, 8, 3, 5]);
    assert_eq!(applied(&report), [("nested", 1)]);
    assert_eq!(report.differences.nested.time_ns, 3);
}

#[test]
fn a_thread_has_the_last_name_it_was_given() {
    let comm = |name: &'static [u8]| Body::Comm(Comm { pid: 7, tid: 7, exec: false, name });
    let report = run(
        GroupBy::Task,
        &[
            ((1, 0, 7), comm(b"sh")),
            ((2, 0, 7), begin(RWSEM_W)),
            ((3, 0, 7), end()),
            ((4, 0, 7), comm(b"xfs_repair")),
            ((5, 0, 8), begin(RWSEM_W)),
            ((5, 0, 0), begin(SPIN)),
        ],
    );
    let names: Vec<_> = report.rows.iter().map(|row| row.key.clone()).collect();
    let task = |tid, comm: &str| CompatKey::Task { tid, comm: comm.into() };
    assert_eq!(names, [task(7, "xfs_repair"), task(0, "swapper"), task(8, ":8")]);
}

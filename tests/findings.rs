//! Each finding fires on a report that calls for it, and not on one that nearly does.

mod reports;

use lockprof::model::{GroupBy, HandOverKind, HolderTimes, Nanos};
use lockprof::report::{ChargedName, Finding, NameEvidence, Report, Row, RowKey, TaskName};
use reports::{RWSEM_R, RWSEM_W, SPINLOCK, lock, report, site_row, spun, waits};

const MS: u64 = 1_000_000;

/// Names of the findings of `report`.
fn found(report: &Report) -> Vec<&'static str> {
    report.findings().iter().map(|finding| lockprof::render::sentence(finding).id).collect()
}

fn mmap_sites(readers: Row, writers: Row) -> Report {
    report(GroupBy::Site, vec![readers, writers])
}

fn site(lock_type: lockprof::model::LockType, caller: &str, groups: &[(u64, u64)]) -> Row {
    site_row(lock_type, caller, lock("mmap_lock", NameEvidence::Path), waits(groups))
}

/// What thread `tid` of process 7 let wait for the mmap_lock at `caller`, holding it for `hold` each time.
fn charged(tid: i32, caller: &str, wait: &[(u64, u64)], hold: u64) -> Row {
    let releaser = ChargedName::Releaser {
        task: TaskName { comm: "worker".into(), pid: 7, tid },
        caller: Some(caller.into()),
        wrappers: Vec::new(),
        kind: HandOverKind::Release,
    };
    let row = site(RWSEM_W, "do_mprotect_pkey", wait);
    Row {
        key: RowKey { releaser: Some(releaser), ..row.key },
        hold: Some(waits(&[(10, hold)]).ended),
        ..row
    }
}

/// A second of waiting in two sites, charged as told.
fn with_charged(charged: Vec<Row>) -> Report {
    let mut report = mmap_sites(
        site(RWSEM_R, "__x64_sys_mincore", &[(100, 5 * MS)]),
        site(RWSEM_W, "do_mprotect_pkey", &[(100, 5 * MS)]),
    );
    report.charged = charged;
    report
}

#[test]
fn a_report_without_anything_to_say_says_nothing() {
    assert_eq!(found(&with_charged(Vec::new())), [""; 0]);
    assert_eq!(found(&reports::empty()), [""; 0]);
}

#[test]
fn waiting_of_a_hundredth_of_the_time_needs_no_advice() {
    let mut report = with_charged(vec![charged(1, "ksys_write", &[(100, 9 * MS)], MS)]);
    assert_eq!(found(&report), ["one_releaser"]);
    report.header.elapsed = Nanos(101 * 1_000 * MS);
    assert_eq!(found(&report), [""; 0]);
}

#[test]
fn losses_that_cut_a_tenth_of_the_waiting_come_first() {
    let mut report = with_charged(vec![charged(1, "ksys_write", &[(100, 9 * MS)], MS)]);
    report.total.uncertain = 4;
    report.total.uncertain_time = Nanos(300 * MS);
    report.trust.lost = vec![(None, 12)];
    assert_eq!(found(&report), ["lost_waits", "one_releaser"]);
    report.total.uncertain_time = Nanos(50 * MS);
    assert_eq!(found(&report), ["one_releaser"]);
    report.total.uncertain_time = Nanos(300 * MS);
    report.trust.lost = Vec::new();
    assert_eq!(found(&report), ["one_releaser"], "uncertain for another reason than a loss");
}

#[test]
fn waits_as_short_as_measuring_them_are_called_so_when_they_are_most_of_all() {
    let spinlock = |ns| site(SPINLOCK, "try_to_wake_up", &[(20_000, ns)]);
    let of = |other| report(GroupBy::Site, vec![spinlock(5_000), other]);
    assert_eq!(found(&of(site(RWSEM_R, "do_exit", &[(10, 5 * MS)]))), ["short_waits"]);
    assert_eq!(found(&of(site(RWSEM_R, "do_exit", &[(30, 5 * MS)]))), [""; 0]);
    let longer = report(GroupBy::Site, vec![spinlock(8_000)]);
    assert_eq!(found(&longer), [""; 0]);
    let mut unmeasured = report(GroupBy::Site, vec![spinlock(5_000)]);
    unmeasured.trust.floor = None;
    assert_eq!(found(&unmeasured), [""; 0]);
}

#[test]
fn a_task_that_lets_most_of_the_waiting_pass_is_named_with_its_hold() {
    let report = with_charged(vec![
        charged(1, "ksys_write", &[(80, 5 * MS)], 8 * MS),
        charged(1, "ksys_write", &[(80, 5 * MS)], 8 * MS),
        charged(2, "ksys_write", &[(20, 5 * MS)], MS),
    ]);
    let findings = report.findings();
    let [Finding::OneReleaser(one)] = findings.as_slice() else { panic!("{findings:?}") };
    assert_eq!((one.task.tid, one.caller.as_str(), one.hold), (1, "ksys_write", Nanos(8 * MS)));
    assert!((one.share - 0.888).abs() < 0.01, "{}", one.share);
    let shared = (1..=3).map(|tid| charged(tid, "ksys_write", &[(50, 5 * MS)], MS)).collect();
    assert_eq!(found(&with_charged(shared)), [""; 0]);
}

#[test]
fn threads_of_one_process_in_mprotect_grow_their_heaps() {
    let threads = |caller: &str, count| {
        with_charged((1..=count).map(|tid| charged(tid, caller, &[(20, 5 * MS)], MS)).collect())
    };
    assert_eq!(found(&threads("do_mprotect_pkey", 5)), ["heap_growth"]);
    assert_eq!(found(&threads("do_mprotect_pkey", 3)), [""; 0], "three threads are no arenas");
    assert_eq!(found(&threads("ksys_write", 5)), [""; 0]);
    let mut one_of_them = threads("do_mprotect_pkey", 5).charged;
    one_of_them.push(charged(6, "do_mprotect_pkey", &[(200, 5 * MS)], MS));
    assert_eq!(found(&with_charged(one_of_them)), ["one_releaser"]);
}

#[test]
fn a_site_that_spins_unseen_is_told_when_the_samples_are_sure_of_it() {
    let writers = |traced, samples| {
        let row = site(RWSEM_W, "do_mprotect_pkey", &[(10, traced)]);
        Row { stat: spun(row.stat, samples), ..row }
    };
    let of = |row| report(GroupBy::Site, vec![row]);
    assert_eq!(found(&of(writers(10 * MS, 1_700))), ["unseen_spin"]);
    assert_eq!(found(&of(writers(300 * MS, 1_700))), [""; 0], "most of it is traced");
    assert_eq!(found(&of(writers(0, 3))), [""; 0], "three samples may be chance");
    let only_spun = Row { stat: spun(waits(&[]), 1_700), ..writers(0, 0) };
    assert_eq!(found(&of(only_spun.clone())), ["unseen_spin"]);
    let mut samples_only = of(only_spun);
    samples_only.trust.counts.begins = 0;
    assert_eq!(found(&samples_only), [""; 0], "no kernel before 5.19 tells of more");
}

/// The same, of which the holder was known to be running, runnable and asleep for so many ms.
fn held([running, runnable, asleep]: [u64; 3], slept_in: &[&str]) -> Report {
    let [running, runnable, asleep] = [running, runnable, asleep].map(|ms| Nanos(ms * MS));
    let holder = HolderTimes { running, runnable, asleep, ..HolderTimes::default() };
    let rows = (1..=3).map(|tid| {
        let mut row = charged(tid, "ksys_write", &[(60, 5 * MS)], MS);
        row.stat.holder = holder;
        row.holder_slept = slept_in.iter().map(|on| (on.to_string(), asleep)).collect();
        row
    });
    with_charged(rows.collect())
}

#[test]
fn a_holder_that_has_no_cpu_is_told_from_one_that_works() {
    assert_eq!(found(&held([90, 210, 0], &[])), ["holder_without_cpu"]);
    assert_eq!(found(&held([160, 140, 0], &[])), [""; 0]);
    assert_eq!(found(&held([20, 50, 0], &[])), [""; 0], "hardly anything is known");
}

#[test]
fn a_holder_that_sleeps_is_told_with_what_it_sleeps_in() {
    let report = held([180, 0, 120], &["folio_wait_bit_common"]);
    let findings = report.findings();
    let [Finding::HolderAsleep(asleep)] = findings.as_slice() else { panic!("{findings:?}") };
    assert_eq!(asleep.slept_in.as_deref(), Some("folio_wait_bit_common"));
    assert!((asleep.share - 0.4).abs() < 0.001, "{}", asleep.share);
    assert_eq!(found(&held([220, 0, 80], &["folio_wait_bit_common"])), [""; 0]);
}

#[test]
fn readers_behind_a_queued_writer_are_told_when_it_is_much_of_their_waiting() {
    let readers = |queued_writer| {
        let mut row = site(RWSEM_R, "do_user_addr_fault", &[(100, 5 * MS)]);
        row.stat.behind.queued_writer = Nanos(queued_writer * MS);
        mmap_sites(row, site(RWSEM_W, "do_mprotect_pkey", &[(100, 5 * MS)]))
    };
    assert_eq!(found(&readers(300)), ["queued_writer"]);
    assert_eq!(found(&readers(140)), [""; 0]);
}

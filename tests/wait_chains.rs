//! Who let those wait who let others wait: chains through two and three locks, case by case, through the
//! public pipe.

mod streams;

use lockprof::model::{Filter, GroupBy, Nanos, Query};
use lockprof::report::{ChainRow, ChargedName, Report, Row, SEVERAL};
use lockprof::source::{At, Synthetic};
use proptest::prelude::*;
use streams::symbols::Symbols;
use streams::{MUTEX, Reading, SPIN, WRITE, at};

const FUNCTIONS: Symbols = Symbols(&[
    "_text",
    "rwsem_down_write_slowpath",
    "down_write",
    "do_mprotect_pkey",
    "try_to_wake_up",
    "wake_up_q",
    "rwsem_wake",
    "up_write",
    "__mutex_lock",
    "__mutex_unlock_slowpath",
    "do_flush",
    "do_commit",
    "_raw_spin_lock",
    "_etext",
]);
/// Locks.
const MM: u64 = 0x100;
const LOG: u64 = 0x200;
const DISK: u64 = 0x300;

fn stack(names: &[&str]) -> Vec<u64> {
    FUNCTIONS.stack(names)
}

/// Begins to wait for the rwsem or one of the mutexes.
fn wait(s: &mut Synthetic, at: At, lock: u64) {
    match lock {
        MM => {
            let frames = ["rwsem_down_write_slowpath", "down_write", "do_mprotect_pkey"];
            s.begin(at, lock, WRITE, &stack(&frames));
        }
        _ => drop(s.begin(at, lock, MUTEX, &stack(&["__mutex_lock", site(lock)]))),
    }
}

/// Releases a lock and wakes `woken`.
fn wake(s: &mut Synthetic, at: At, lock: u64, woken: i32) {
    let frames = match lock {
        MM => {
            vec!["try_to_wake_up", "wake_up_q", "rwsem_wake", "up_write", "do_mprotect_pkey"]
        }
        _ => vec!["try_to_wake_up", "wake_up_q", "__mutex_unlock_slowpath", site(lock)],
    };
    s.waking(at, woken, &stack(&frames));
}

fn site(lock: u64) -> &'static str {
    if lock == LOG { "do_commit" } else { "do_flush" }
}

fn reading() -> Reading {
    Reading { kallsyms: FUNCTIONS.kallsyms(), wakings: true, ..Reading::with_switches() }
}

fn report(write: impl FnOnce(&mut Synthetic)) -> Report {
    checked(reading().report(GroupBy::Blame, write))
}

/// Time by roots adds up to the time that is charged, and no row passes on more than it has.
fn checked(report: Report) -> Report {
    let charged: u64 =
        report.rows.iter().filter(|row| !row.is_uncharged()).map(|row| row.stat.wait().0).sum();
    let roots: u64 = report.chains.roots.iter().map(|(_, time)| time.0).sum();
    assert_eq!(roots, charged, "{:#?}", report.chains);
    for row in &report.rows {
        assert!(row.via <= row.stat.wait(), "{row:?}");
    }
    let via: Nanos = report.rows.iter().map(|row| row.via).sum();
    assert_eq!(via, report.chains.through());
    report
}

fn tid(name: &ChargedName) -> i32 {
    match name {
        ChargedName::Releaser { task, .. } => task.tid,
        ChargedName::Nobody(why) => panic!("{why:?} is no releaser"),
    }
}

/// `waiter's lock <- releaser <- ... <- root: ns`, for each chain.
fn chains(report: &Report) -> Vec<String> {
    report.chains.rows.iter().map(words).collect()
}

fn words(row: &ChainRow) -> String {
    let mut words = row.waiter.lock.as_ref().expect("a lock").name.clone();
    for link in &row.links {
        words += &format!(" <- {}", tid(&link.by));
        if let Some(waited) = &link.waited {
            words += &format!(" for {}", waited.caller.as_deref().unwrap_or("?"));
        }
    }
    format!("{words}: {}", row.stat.own.0)
}

fn roots(report: &Report) -> Vec<(i32, u64)> {
    let mut roots: Vec<_> =
        report.chains.roots.iter().map(|(name, time)| (tid(name), time.0)).collect();
    roots.sort_unstable();
    roots
}

/// 3 holds the log; 2 holds the mm and waits for the log from 150 to 250; 1 waits for the mm from 100.
fn two_locks(s: &mut Synthetic) {
    wait(s, at(100, 0, 1), MM);
    wait(s, at(150, 1, 2), LOG);
    wake(s, at(250, 2, 3), LOG, 2);
    s.end(at(260, 1, 2), LOG, 0);
    wake(s, at(300, 1, 2), MM, 1);
    s.end(at(310, 0, 1), MM, 0);
}

/// 4 holds the disk, 3 the log, 2 the mm; each waits for the one before.
fn three_locks(s: &mut Synthetic) {
    wait(s, at(100, 0, 1), MM);
    wait(s, at(110, 1, 2), LOG);
    wait(s, at(120, 2, 3), DISK);
    wake(s, at(220, 3, 4), DISK, 3);
    s.end(at(230, 2, 3), DISK, 0);
    wake(s, at(240, 2, 3), LOG, 2);
    s.end(at(250, 1, 2), LOG, 0);
    wake(s, at(260, 1, 2), MM, 1);
    s.end(at(270, 0, 1), MM, 0);
}

type Case = (&'static str, fn(&mut Synthetic), &'static [&'static str], &'static [(i32, u64)]);

/// `(what happens, the records, the chains, time by root)`.
const CASES: &[Case] = &[
    (
        "a releaser that did not wait is the root",
        |s| {
            wait(s, at(100, 0, 1), MM);
            wake(s, at(300, 1, 2), MM, 1);
            s.end(at(310, 0, 1), MM, 0);
        },
        &[],
        &[(2, 200)],
    ),
    (
        "what the releaser waited for goes on to who let it wait",
        two_locks,
        &["mmap_lock <- 2 for do_commit <- 3: 100"],
        // 100 ns of 2's own wait, 100 of 1's, and the rest of 1's.
        &[(2, 100), (3, 200)],
    ),
    (
        "a wait that the releaser began before the waiter did counts from then on",
        |s| {
            wait(s, at(100, 1, 2), LOG);
            wait(s, at(200, 0, 1), MM);
            wake(s, at(250, 2, 3), LOG, 2);
            s.end(at(260, 1, 2), LOG, 0);
            wake(s, at(300, 1, 2), MM, 1);
            s.end(at(310, 0, 1), MM, 0);
        },
        &["mmap_lock <- 2 for do_commit <- 3: 50"],
        &[(2, 50), (3, 200)],
    ),
    (
        "a chain has as many links as locks",
        three_locks,
        &[
            "mmap_lock <- 2 for do_commit <- 3 for do_flush <- 4: 100",
            "mutex @ do_commit <- 3 for do_flush <- 4: 100",
            "mmap_lock <- 2 for do_commit <- 3: 30",
        ],
        &[(2, 30), (3, 20 + 30 + 10), (4, 300)],
    ),
    (
        "after it was woken the releaser waits for nobody",
        |s| {
            wait(s, at(100, 0, 1), MM);
            wait(s, at(110, 1, 2), LOG);
            wake(s, at(120, 2, 3), LOG, 2);
            s.end(at(290, 1, 2), LOG, 0);
            wake(s, at(300, 1, 2), MM, 1);
            s.end(at(310, 0, 1), MM, 0);
        },
        &["mmap_lock <- 2 for do_commit <- 3: 10"],
        &[(2, 190), (3, 20)],
    ),
    (
        "the releaser's wait for the same lock is over when its piece begins",
        |s| {
            wait(s, at(100, 1, 2), MM);
            wait(s, at(100, 0, 1), MM);
            wake(s, at(200, 2, 3), MM, 2);
            s.end(at(210, 1, 2), MM, 0);
            wake(s, at(300, 1, 2), MM, 1);
            s.end(at(310, 0, 1), MM, 0);
        },
        &[],
        &[(2, 100), (3, 200)],
    ),
    (
        "of waits inside each other the inner one tells who is waited for",
        |s| {
            wait(s, at(100, 0, 1), MM);
            wait(s, at(110, 1, 2), LOG);
            wait(s, at(150, 1, 2), DISK);
            wake(s, at(170, 3, 4), DISK, 2);
            s.end(at(170, 1, 2), DISK, 0);
            wake(s, at(210, 2, 3), LOG, 2);
            s.end(at(210, 1, 2), LOG, 0);
            wake(s, at(300, 1, 2), MM, 1);
            s.end(at(310, 0, 1), MM, 0);
        },
        &["mmap_lock <- 2 for do_commit <- 3: 80", "mmap_lock <- 2 for do_flush <- 4: 20"],
        &[(2, 100), (3, 80 + 80), (4, 20 + 20)],
    ),
    (
        "a wait for a spinlock, of which nobody tells the end, ends no chain",
        |s| {
            wait(s, at(100, 0, 1), MM);
            wait(s, at(110, 1, 2), LOG);
            s.begin(at(120, 1, 2), 0x900, SPIN, &stack(&["_raw_spin_lock", "do_commit"]));
            s.end(at(130, 1, 2), 0x900, 0);
            wake(s, at(210, 2, 3), LOG, 2);
            s.end(at(210, 1, 2), LOG, 0);
            wake(s, at(300, 1, 2), MM, 1);
            s.end(at(310, 0, 1), MM, 0);
        },
        &["mmap_lock <- 2 for do_commit <- 3: 100"],
        &[(2, 100), (3, 190)],
    ),
    (
        "records that go round in a circle end where it closes",
        |s| {
            // 2 was let go by 1, who waits for 2 all the time: that cannot be.
            wait(s, at(100, 0, 1), MM);
            wait(s, at(110, 1, 2), LOG);
            wake(s, at(210, 0, 1), LOG, 2);
            s.end(at(210, 1, 2), LOG, 0);
            wake(s, at(300, 1, 2), MM, 1);
            s.end(at(310, 0, 1), MM, 0);
        },
        &[],
        &[(1, 100), (2, 200)],
    ),
];

#[test]
fn time_goes_on_to_the_root_of_its_chain() {
    for (name, write, expected, expected_roots) in CASES {
        let report = report(write);
        assert_eq!(chains(&report), *expected, "{name}");
        assert_eq!(roots(&report), *expected_roots, "{name}");
    }
}

#[test]
fn where_a_circle_closes_the_report_says_that_more_may_be_unseen() {
    let (_, circle, ..) = CASES.last().expect("the circle");
    assert_eq!(report(circle).chains.cut, Nanos(100));
    assert_eq!(report(two_locks).chains.cut, Nanos::ZERO);
}

#[test]
fn a_row_of_blame_says_how_much_of_it_goes_through() {
    let report = report(two_locks);
    let row = report.rows.iter().find(|row| row.stat.wait().0 == 200).expect("1's wait");
    assert_eq!(tid(row.key.releaser.as_ref().expect("a releaser")), 2);
    assert_eq!(row.via, Nanos(100));
    let by_releaser = checked(reading().report(GroupBy::Releaser, two_locks));
    assert_eq!(by_releaser.chains.through(), Nanos(100));
}

/// In another recording the same waiter comes to the lock by a wrapper more.
#[test]
fn a_merged_row_goes_through_as_much_as_both_together() {
    let mut whole = report(two_locks);
    let mut by_wrapper = whole.clone();
    for row in by_wrapper.rows.iter_mut().filter(|row| !row.is_uncharged()) {
        row.key.wrappers = vec!["mmap_write_lock".to_owned()];
    }
    whole.merge(&by_wrapper).expect("both are of blame");
    let through: Vec<&Row> = whole.rows.iter().filter(|row| row.via > Nanos::ZERO).collect();
    let [row] = through.as_slice() else { panic!("{through:#?}") };
    assert_eq!((row.via, row.stat.wait()), (Nanos(200), Nanos(400)));
    assert_eq!(row.key.wrappers, [SEVERAL]);
    checked(whole);
}

#[test]
fn a_filter_chooses_waiters_and_keeps_their_chains() {
    let mut synthetic = Synthetic::new();
    three_locks(&mut synthetic);
    let pipeline = reading().pipeline([synthetic.take_round()]);
    let filter = Filter { lock: vec!["mmap_lock".into()], ..Filter::default() };
    let query = Query { by: GroupBy::Blame, top: 0, filter, ..Query::default() };
    let report = checked(pipeline.report(&query));
    assert_eq!(roots(&report), [(2, 30), (3, 30), (4, 100)]);
}

#[test]
fn parts_of_a_recording_add_up_to_its_chains() {
    let part = |from, to| {
        let filter = Filter { time: Some((Nanos(from), Nanos(to))), ..Filter::default() };
        let report = checked(Reading { filter, ..reading() }.report(GroupBy::Blame, three_locks));
        report.chains.through().0
    };
    // The first event, at 100, starts the clock.
    assert_eq!(part(0, 90), 10 + 70 + 70);
    assert_eq!(part(90, u64::MAX), 20 + 30 + 30);
    assert_eq!(part(0, u64::MAX), 230);
}

/// Task n holds lock n + 1 and waits for lock n, whose holder waits for lock n - 1.
fn staircase(s: &mut Synthetic, steps: i32) {
    let lock = |n: i32| 0x1000 + 0x100 * n as u64;
    for n in 1..=steps {
        wait(s, at(100 + n as u64, 0, n), lock(n));
    }
    for n in 1..=steps {
        let time = 10_000 + 10 * n as u64;
        wake(s, at(time, 1, n - 1 + if n == 1 { 1_000 } else { 0 }), lock(n), n);
        s.end(at(time + 1, 0, n), lock(n), 0);
    }
}

#[test]
fn a_chain_without_end_is_cut_and_says_so() {
    let longest = |steps| {
        let report = report(|s| staircase(s, steps));
        let longest = report.chains.longest().expect("a chain").links.len();
        (longest, report.chains.cut > Nanos::ZERO)
    };
    assert_eq!(longest(8), (8, false));
    assert_eq!(longest(30), (8, true));
}

#[test]
fn two_recordings_of_one_workload_have_its_chains_twice() {
    let mut both = report(two_locks);
    both.merge(&report(two_locks)).expect("rows of one kind");
    assert_eq!(chains(&both), ["mmap_lock <- 2 for do_commit <- 3: 200"]);
    assert_eq!(both.chains.rows[0].stat.count, 2);
    assert_eq!(roots(&checked(both)), [(2, 200), (3, 400)]);
}

proptest! {
    /// Whatever waits for whatever: what the roots are charged with adds up, and so do parts.
    #[test]
    fn time_by_root_adds_up_to_the_time_charged(
        steps in proptest::collection::vec((0u8..4, 0i32..5, 0i32..5, 1u64..3_000), 1..150),
        cut in 1u64..100_000,
    ) {
        let write = |s: &mut Synthetic| {
            let mut time = 1_000;
            for &(what, a, b, dt) in &steps {
                time += dt;
                let here = at(time, a as u32 % 3, a + 1);
                let lock = [MM, LOG, DISK][b as usize % 3];
                match what {
                    0 => wait(s, here, lock),
                    1 => drop(s.end(here, lock, 0)),
                    2 => wake(s, here, lock, b + 1),
                    _ => wake(s, here, [MM, LOG, DISK][a as usize % 3], b + 1),
                }
            }
        };
        let through = |time| {
            let filter = Filter { time, ..Filter::default() };
            let report = Reading { filter, ..reading() }.report(GroupBy::Blame, write);
            checked(report).chains.through().0
        };
        let all = through(None);
        let cut = Nanos(cut);
        prop_assert_eq!(through(Some((Nanos(0), cut))) + through(Some((cut, Nanos(u64::MAX)))), all);
    }
}

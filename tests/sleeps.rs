//! Waits that no contention event told of, case by case, through the public pipe: which sleeps they are
//! made of, how they are named, and what a report says of this rung of the ladder.

mod streams;

use lockprof::model::{Filter, GroupBy, LockTypePattern};
use lockprof::render::{Renderer, Table};
use lockprof::report::{NameEvidence, Report, Row, Trust};
use lockprof::source::Synthetic;
use streams::{MUTEX, Reading, WRITE, at};

/// Functions of 0x100 bytes each, from `FIRST` on.
const FIRST: u64 = 0xffff_ffff_8100_0000;
const FUNCTIONS: [&str; 20] = [
    "_text",
    "__schedule",
    "schedule",
    "_cond_resched",
    "rwsem_down_write_slowpath",
    "rwsem_down_read_slowpath",
    "down_write",
    "do_mprotect_pkey",
    "do_unlinkat",
    "__mutex_lock",
    "pipe_write",
    "percpu_down_write",
    "cgroup_attach_lock",
    "rcu_sync_enter",
    "wait_for_completion",
    "__vma_start_write",
    "dup_mmap",
    "__lock_sock",
    "lock_sock_nested",
    "tcp_sendmsg",
];
const WRITER: &str =
    "__schedule < schedule < rwsem_down_write_slowpath < down_write < do_mprotect_pkey";
const US: u64 = 1_000;

fn stack(names: &str) -> Vec<u64> {
    let ip = |name: &str| {
        let at = FUNCTIONS.iter().position(|function| *function == name);
        FIRST + at.unwrap_or_else(|| panic!("no function {name}")) as u64 * 0x100 + 0x10
    };
    names.split(" < ").map(ip).collect()
}

/// A recording of switches and wakings, with or without contention events.
fn reading(contention: bool) -> Reading {
    let line = |(name, at): (&&str, u64)| format!("{:x} T {name}\n", FIRST + at * 0x100);
    let kallsyms: String = FUNCTIONS.iter().zip(0..).map(line).collect();
    let kallsyms = Box::leak(kallsyms.into_boxed_str());
    Reading { kallsyms, wakings: true, sleeps: true, contention, ..Reading::default() }
}

/// Task 7 leaves CPU 0 in `state` at `time` us.
fn leaves(s: &mut Synthetic, time: u64, state: u64, names: &str) {
    s.sched_switch(at(time * US, 0, 7), state, 0, (&stack(names), &[]));
}

/// It comes back.
fn comes(s: &mut Synthetic, time: u64) {
    s.sched_switch(at(time * US, 0, 0), 0, 7, (&[], &[]));
}

/// It sleeps from `from` on, is woken, and comes back.
fn sleeps(s: &mut Synthetic, (from, woken, back): (u64, u64, u64), names: &str) {
    leaves(s, from, 2, names);
    s.waking(at(woken * US, 1, 8), 7, &[]);
    comes(s, back);
}

/// Type, caller, lock, waits, their full time in us.
fn rows(report: &Report) -> Vec<(String, &str, &str, u64, u64)> {
    let row = |row: &'_ Row| {
        let lock_type = row.key.lock_type.map(|t| t.to_string()).unwrap_or_default();
        (lock_type, row.stat.contended(), row.stat.ended.total.0 / US)
    };
    let rows = report.rows.iter().map(|r| {
        let (lock_type, waits, time) = row(r);
        let caller = r.key.caller.as_deref().unwrap_or("-");
        let lock = r.key.lock.as_ref().map_or("-", |lock| lock.name.as_str());
        (lock_type, caller, lock, waits, time)
    });
    rows.collect()
}

fn page(report: &Report) -> String {
    let mut page = Vec::new();
    Table { width: 250, ..Table::default() }
        .render(report, &mut page)
        .expect("writing to memory cannot fail");
    String::from_utf8(page).expect("a page is UTF-8")
}

#[test]
fn without_contention_events_a_wait_is_a_run_of_sleeps_in_lock_code() {
    let report = reading(false).report(GroupBy::Site, |s| {
        comes(s, 1000);
        sleeps(s, (2000, 2500, 2600), WRITER);
        // Woken, and too late: it sleeps again 40 us later.
        sleeps(s, (2640, 3000, 3100), WRITER);
        sleeps(s, (5000, 5200, 5300), WRITER);
        leaves(s, 9000, 1, "schedule < pipe_write");
    });
    let wanted = ("rwsem:W".into(), "do_mprotect_pkey", "mmap_lock", 2, 1100 + 300);
    assert_eq!(rows(&report), [wanted]);
    let sleeps = report.trust.sleeps.unwrap();
    assert_eq!((sleeps.waits, sleeps.sleeps), (2, 3));
    // The 40 us on the CPU are not the wait's own.
    assert_eq!(report.total.traced().0, (1100 - 40 + 300) * US);
}

#[test]
fn the_report_names_the_rung_and_its_blind_spots() {
    let report = reading(false).report(GroupBy::Site, |s| {
        comes(s, 1000);
        sleeps(s, (2000, 2500, 2600), WRITER);
        leaves(s, 9000, 1, "schedule < pipe_write");
    });
    assert_eq!(report.trust.rung, Trust::SLEEPS_AND_SAMPLES);
    let page = page(&report);
    for words in [
        "waited 600 us for kernel locks: 1 wait, each a run of sleeps",
        "1 sleep in lock code in 1 wait, 0 lost",
        "0 % of the waiting charged to a releaser",
        "less than 100 us of CPU time between them",
        "locks have no addresses",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
}

#[test]
fn completions_and_rcu_inside_lock_code_are_no_lock_waits() {
    let report = reading(false).report(GroupBy::Site, |s| {
        comes(s, 1000);
        sleeps(s, (2000, 2500, 2600), "schedule < wait_for_completion < rcu_sync_enter < percpu_down_write < cgroup_attach_lock");
        sleeps(s, (4000, 4500, 4600), "schedule < pipe_write < down_write < do_mprotect_pkey");
        leaves(s, 9000, 1, "schedule < pipe_write");
    });
    assert_eq!(rows(&report), []);
    assert!(page(&report).contains("No task slept in lock code while recording"));
}

#[test]
fn preemption_in_a_slow_path_is_part_of_the_wait_beside_it_and_no_wait_alone() {
    let report = reading(false).report(GroupBy::Site, |s| {
        comes(s, 1000);
        leaves(s, 2000, 256, "__schedule < _cond_resched < rwsem_down_write_slowpath < down_write < do_mprotect_pkey");
        comes(s, 2500);
        sleeps(s, (2530, 3000, 3100), WRITER);
        leaves(s, 6000, 256, "__schedule < _cond_resched < rwsem_down_read_slowpath < do_unlinkat");
        comes(s, 8000);
        leaves(s, 9000, 1, "schedule < pipe_write");
    });
    assert_eq!(rows(&report), [("rwsem:W".into(), "do_mprotect_pkey", "mmap_lock", 1, 1100)]);
}

#[test]
fn locks_without_contention_events_are_waited_for_beside_those_that_have_them() {
    let report = reading(true).report(GroupBy::Site, |s| {
        comes(s, 1000);
        sleeps(s, (2000, 2900, 3000), "schedule < percpu_down_write < cgroup_attach_lock");
        sleeps(s, (4000, 4700, 4800), "schedule < __vma_start_write < dup_mmap");
        sleeps(s, (6000, 6500, 6600), "schedule < __lock_sock < lock_sock_nested < tcp_sendmsg");
        leaves(s, 9000, 1, "schedule < pipe_write");
    });
    assert_eq!(
        rows(&report),
        [
            ("pcpu-sem:W".into(), "cgroup_attach_lock", "cgroup_threadgroup_rwsem", 1, 1000),
            ("unknown".into(), "dup_mmap", "per-VMA lock @ dup_mmap", 1, 800),
            ("unknown".into(), "tcp_sendmsg", "socket lock @ tcp_sendmsg", 1, 600),
        ]
    );
    assert!(report.rows.iter().all(|row| row.key.lock_addr.is_none()));
    assert!(page(&report).contains("3 sleeps in lock code in 3 waits"));
}

#[test]
fn a_sleep_inside_a_traced_wait_is_that_wait() {
    let report = reading(true).report(GroupBy::Site, |s| {
        comes(s, 1000);
        s.begin(at(1900 * US, 0, 7), 0xa0, WRITE, &stack(WRITER)[2..]);
        sleeps(s, (2000, 2900, 3000), WRITER);
        s.end(at(3050 * US, 0, 7), 0xa0, 0);
        leaves(s, 9000, 1, "schedule < pipe_write");
    });
    assert_eq!(rows(&report), [("rwsem:W".into(), "do_mprotect_pkey", "mmap_lock", 1, 1150)]);
    assert_eq!(report.trust.sleeps.unwrap().waits, 0);
    assert!(report.trust.counts.balance());
}

#[test]
fn begins_without_ends_are_not_counted_a_second_time_by_their_sleeps() {
    let reading = Reading { ends: false, ..reading(true) };
    let report = reading.report(GroupBy::Site, |s| {
        comes(s, 1000);
        s.begin(at(1900 * US, 0, 7), 0xa0, MUTEX | 1, &stack("__mutex_lock < pipe_write"));
        sleeps(s, (2000, 2900, 3000), "schedule < __mutex_lock < pipe_write");
        leaves(s, 9000, 1, "schedule < pipe_write");
    });
    assert_eq!((report.total.contended(), report.trust.sleeps), (1, None));
}

#[test]
fn waits_by_sleeps_pass_the_same_filters_and_stand_in_the_same_reports() {
    let mut s = Synthetic::new();
    s.comm(0, 7, 7, "writer", true);
    comes(&mut s, 1000);
    sleeps(&mut s, (2000, 2900, 3000), WRITER);
    sleeps(&mut s, (5000, 5100, 5200), "schedule < __mutex_lock < pipe_write");
    leaves(&mut s, 9000, 1, "schedule < pipe_write");
    let pipeline = reading(false).pipeline([s.take_round()]);
    let by_task = pipeline.report(&streams::ask(GroupBy::Task));
    assert_eq!(streams::of_task(&by_task, "writer").stat.contended(), 2);
    let by_lock = pipeline.report(&streams::ask(GroupBy::Lock));
    let names = by_lock.rows.iter().filter_map(|row| row.key.lock.as_ref());
    let names: Vec<_> = names.map(|lock| (lock.name.as_str(), lock.evidence)).collect();
    let wanted = [("mmap_lock", NameEvidence::Path), ("pipe mutex", NameEvidence::Path)];
    assert_eq!(names, wanted);
    let lock_type = vec!["mutex".parse::<LockTypePattern>().unwrap()];
    let filter = Filter { lock_type, ..Filter::default() };
    let query = lockprof::model::Query { filter, ..streams::ask(GroupBy::Site) };
    assert_eq!(rows(&pipeline.report(&query)).len(), 1);
}

#[test]
fn a_wait_that_goes_on_at_the_end_is_open_and_one_that_lost_records_hide_uncertain() {
    let report = reading(false).report(GroupBy::Site, |s| {
        comes(s, 1000);
        leaves(s, 2000, 2, WRITER);
        s.cpu_sample(at(3000 * US, 0, 0), &[], &[]);
        s.lost(at(4000 * US, 0, 0), 3);
        comes(s, 6000);
        leaves(s, 8000, 2, WRITER);
        s.waking(at(9000 * US, 1, 8), 5, &[]);
    });
    let total = &report.total;
    assert_eq!((total.open, total.open_time.0 / US), (1, 1000));
    assert_eq!((total.uncertain, total.uncertain_time.0 / US), (1, 4000));
    assert_eq!(total.ended.count, 0);
}
